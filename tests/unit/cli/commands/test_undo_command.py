"""kafka-rebalance undo: what it refuses, what it requests, and the way back as Kafka's JSON."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from unittest.mock import patch

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.whole_program import run_program

from kafka_rebalance.api.conditions import ReadySummary, summarise
from kafka_rebalance.api.resource_status import KafkaRebalanceStatus, PlanStatus
from kafka_rebalance.api.v1alpha1 import REBALANCES, UNDO_ANNOTATION, parse_rebalance, planning_hash
from kafka_rebalance.cli.commands.undo_command import WayBack, reassignment, way_back
from kafka_rebalance.cli.options.resource_lookup import stores
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run, RunOutcome
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
UID = "3f2a91c4-0000-4000-8000-000000000000"


def tp(number, topic="t"):
    return TopicPartition(topic, number)


PLAN = Plan(
    (
        PlannedPartition(tp(0), replicas_of(1, 2), replicas_of(3, 2), size_bytes=2**20),
        # An earlier plan of the run moved it from 1,2 to 4,5; the last one left it there.
        PlannedPartition(tp(1), replicas_of(4, 5), replicas_of(4, 5), size_bytes=2**20),
        # Moved by the earlier plan, and back by the last one.
        PlannedPartition(tp(2), replicas_of(4, 5), replicas_of(1, 2), size_bytes=2**20),
        PlannedPartition(tp(0, "u"), replicas_of(1, 2), replicas_of(2, 1), size_bytes=2**20),
    ),
    Certificate(2, optimal=True),
)
WAY_BACK = {
    "version": 1,
    "partitions": [
        {"topic": "t", "partition": 0, "replicas": [1, 2], "original_replicas": [3, 2]},
        {"topic": "t", "partition": 1, "replicas": [1, 2], "original_replicas": [4, 5]},
        {"topic": "u", "partition": 0, "replicas": [1, 2], "original_replicas": [2, 1]},
    ],
}
NOTHING = Plan((), Certificate(0, optimal=True))


def resource(reason=Reason.SUCCEEDED, *, metadata=None, plan_hash=PLAN.hash, spec=None, skipped=0):
    verdict = (
        ReadySummary.DONE
        if reason in {Reason.SUCCEEDED, Reason.NOTHING_TO_DO, Reason.UNDONE}
        else ReadySummary.IN_PROGRESS
    )
    told = PlanStatus(
        hash=plan_hash, partitions=2, replica_moves=2, lower_bound=2, optimal=True, leader_moves=1, data_to_move=0
    )
    status = KafkaRebalanceStatus(
        observed_generation=1,
        plan=told,
        conditions=summarise((), verdict, reason, "told", generation=1, now=NOW),
        skipped_count=skipped,
    )
    return {
        "metadata": {"name": "r", "namespace": "kafka", "uid": UID, "generation": 1} | (metadata or {}),
        "spec": {"kafka": {"bootstrapServers": "kafka:9092"}} | (spec or {}),
        "status": status.as_patch()["status"],
    }


def succeeded(plan=PLAN, **changes):
    spec = parse_rebalance(resource()).spec
    ended = (NOW, RunOutcome.SUCCEEDED)
    run = Run(UID, "kafka", "r", "cluster-1", "run-1", planning_hash(spec), plan.hash, NOW, *ended, started_at=NOW)
    return replace(run, **changes)


def world(body=None, run=None, *, plan=PLAN, origins=True):
    """An API server with the resource (unless None) and records of the operator; ``origins`` None: an empty record."""
    kube = KubeInMemory()
    if body is not None:
        kube.create(REBALANCES, body)

    async def save():
        records = stores(kube)
        if run is not None:
            await records.runs.save(run)
        if plan is not None:
            await records.plans.save(UID, plan.hash, "cluster-1", plan, NOW)
            if origins is None:
                await records.origins.replace(UID, "run-1", ())
            if origins and plan.partitions:
                await records.origins.append(
                    UID, "run-1", [Origin(p.tp, "", replicas_of(1, 2)) for p in plan.partitions]
                )

    asyncio.run(save())
    kube.writes.clear()
    return kube


def undo(kube, *arguments, answer=""):
    """Run the whole program, exit codes included."""

    def connect(namespace=None, **_):
        kube.namespace = namespace or kube.namespace
        return kube

    with patch.object(KubeClient, "connect", connect):
        return run_program("undo", *arguments, stdin=answer)


def asked(kube):
    return kube.resources[REBALANCES, "kafka", "r"]["metadata"].get("annotations", {}).get(UNDO_ANNOTATION)


class TestUndo:
    """Requests the rollback from the operator, by an annotation with the hash of the plan."""

    def test_yes(self):
        """The cost is printed first; then the annotation gets the hash of the plan in the status."""
        kube = world(resource(), succeeded())
        done = undo(kube, "r", "-n", "kafka", "--yes")
        assert (done.code, done.err) == (0, "")
        cost, told = done.out.splitlines()
        assert cost.startswith("kafka/r: 3 partitions return to their original replicas: 3 replicas and 3.0 MiB to")
        assert "3 preferred leaders change" in cost
        assert told == "undo requested; follow it with: kafka-rebalance watch r -n kafka"
        assert asked(kube) == PLAN.hash
        assert kube.writes == [("patch", REBALANCES, "kafka", "r")]
        assert kube.closed

    @pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 3), ("", 3)], ids=["yes", "no", "end"])
    def test_asks_first(self, answer, code):
        """Only an explicit yes has an effect."""
        kube = world(resource(), succeeded())
        done = undo(kube, "r", "-n", "kafka", answer=answer)
        assert done.code == code
        assert (asked(kube) == PLAN.hash) is (code == 0)
        assert ("nothing was changed" in done.err) is (code == 3)

    def test_deleted_in_between(self):
        kube = world(resource(), succeeded())

        async def patched(*_):
            return None

        kube.patch = patched
        done = undo(kube, "r", "-n", "kafka", "--yes")
        assert done.code == 1
        assert "KafkaRebalance kafka/r not found" in done.err

    def test_changed_in_between(self):
        """The confirmed plan differs from the plan that would be undone. A status update in between does not matter."""

        def edited(found):
            found["metadata"]["generation"] += 1

        kube = world(resource(), succeeded())
        kube.rivals = [edited]
        done = undo(kube, "r", "-n", "kafka", "--yes")
        assert (done.code, asked(kube)) == (3, None)
        assert "was changed meanwhile" in done.err
        kube = world(resource(), succeeded())
        kube.rivals = [lambda _: None]
        assert undo(kube, "r", "-n", "kafka", "--yes").code == 0
        assert asked(kube) == PLAN.hash

    def test_records_are_looked_for_where_it_is_told(self):
        kube = world(resource(), succeeded())
        undo(kube, "r", "-n", "kafka", "--yes", "--operator-namespace", "elsewhere")
        assert kube.namespace == "elsewhere"

    def test_the_last_run_has_sent_nothing(self):
        """The last success is undone, and it is said which run that is; the annotation names the present plan."""
        run = succeeded(NOTHING, run_id="run-2", started_at=None, last_success=succeeded())
        kube = world(resource(Reason.NOTHING_TO_DO, plan_hash=NOTHING.hash), run)
        done = undo(kube, "r", "-n", "kafka", "--yes")
        assert (done.code, done.err) == (0, "")
        assert "3 partitions return to their original replicas" in done.out
        assert "undoes the one that succeeded at 2026-01-01 12:00 UTC" in done.out
        assert asked(kube) == NOTHING.hash


REFUSED = {
    "running": (resource(Reason.REBALANCING), succeeded(closed_at=None, outcome=None), PLAN, True, "Running"),
    "awaiting approval": (
        resource(Reason.AWAITING_APPROVAL),
        succeeded(closed_at=None, outcome=None),
        PLAN,
        True,
        "Running",
    ),
    "awaiting approval after a success": (
        resource(Reason.AWAITING_APPROVAL),
        succeeded(closed_at=None, outcome=None, started_at=None, last_success=succeeded()),
        PLAN,
        True,
        "Running",
    ),
    "being undone": (
        resource(Reason.UNDOING),
        succeeded(closed_at=None, outcome=None, undo=True),
        PLAN,
        True,
        "Undoing",
    ),
    "undone": (resource(Reason.UNDONE), succeeded(outcome=RunOutcome.UNDONE), PLAN, True, "AlreadyUndone"),
    "never ran": (resource(Reason.PLANNING), None, None, True, "NotSucceeded"),
    "spec changed since": (resource(spec={"brokers": {"include": [1]}}), succeeded(), PLAN, True, "NotSucceeded"),
    "status says otherwise": (resource(Reason.KAFKA_UNREACHABLE), succeeded(), PLAN, True, "NotSucceeded"),
    "status names another plan": (resource(plan_hash="sha256:1"), succeeded(), PLAN, True, "NotSucceeded"),
    "taken over": (resource(), succeeded(outcome=RunOutcome.TAKEN_OVER), PLAN, True, "NotSucceeded"),
    "being deleted": (
        resource(metadata={"deletionTimestamp": "2026-01-01T12:00:00Z"}),
        succeeded(),
        PLAN,
        True,
        "Deleting",
    ),
    "run expired": (resource(), None, None, True, "OriginsExpired"),
    "plan expired": (resource(), succeeded(), None, True, "OriginsExpired"),
    "origins expired": (resource(), succeeded(), PLAN, False, "OriginsExpired"),
    "nothing moved": (
        resource(Reason.NOTHING_TO_DO, plan_hash=NOTHING.hash),
        succeeded(NOTHING),
        NOTHING,
        True,
        "NothingToUndo",
    ),
    "killed before the first step": (resource(), succeeded(), PLAN, None, "NothingToUndo"),
    "others moved it": (resource(), succeeded(started_at=None), PLAN, True, "NothingToUndo"),
}


class TestRefusals:
    """Exit 3, the reason on stderr, nothing on stdout, nothing changed; also with --print."""

    @pytest.mark.parametrize("option", ["--yes", "--print"])
    @pytest.mark.parametrize("case", REFUSED)
    def test_refused(self, case, option):
        body, run, plan, origins, reason = REFUSED[case]
        kube = world(body, run, plan=plan, origins=origins)
        done = undo(kube, "r", "-n", "kafka", option)
        assert (done.code, done.out) == (3, "")
        assert done.err.startswith(f"refused ({reason}): ")
        assert kube.writes == []

    def test_asked_for_already(self):
        """The operator has not processed the request yet: a second one would not help. --print still works."""
        kube = world(resource(metadata={"annotations": {UNDO_ANNOTATION: PLAN.hash}}), succeeded())
        assert undo(kube, "r", "-n", "kafka", "--yes").err.startswith("refused (AlreadyAsked): ")
        assert undo(kube, "r", "-n", "kafka", "--print").code == 0

    def test_an_annotation_of_an_earlier_run_does_not_count(self):
        kube = world(resource(metadata={"annotations": {UNDO_ANNOTATION: "sha256:earlier"}}), succeeded())
        assert undo(kube, "r", "-n", "kafka", "--yes").code == 0
        assert asked(kube) == PLAN.hash


class TestPrint:
    """--print: KIP-236's reassignment file, for Kafka's own tool. Changes nothing."""

    def test_leads_to_the_origins(self):
        """Including moves of an earlier plan of the run; partitions at their origin are not in the file."""
        kube = world(resource(), succeeded())
        done = undo(kube, "r", "-n", "kafka", "--print")
        assert (done.code, done.err) == (0, "")
        assert json.loads(done.out) == WAY_BACK
        assert kube.writes == []

    def test_partitions_that_the_run_left_alone_are_mentioned(self):
        """On stderr, because stdout is the file."""
        done = undo(world(resource(skipped=2), succeeded()), "r", "-n", "kafka", "--print")
        assert json.loads(done.out) == WAY_BACK
        assert "skipped 2 partitions" in done.err

    def test_by_uid_where_the_resource_is_gone(self):
        kube = world(None, succeeded())
        done = undo(kube, "--uid", UID, "--print")
        assert (done.code, done.err) == (0, "")
        assert json.loads(done.out) == WAY_BACK

    def test_a_resource_that_was_deleted_before_its_last_run_sent_anything(self):
        run = succeeded(NOTHING, outcome=RunOutcome.ROLLED_BACK, started_at=None, last_success=succeeded())
        done = undo(world(None, run), "--uid", UID, "--print")
        assert (done.code, done.err) == (0, "")
        assert json.loads(done.out) == WAY_BACK

    @pytest.mark.parametrize("outcome", [RunOutcome.ABANDONED, RunOutcome.REVERTED, RunOutcome.ROLLED_BACK_PARTIALLY])
    def test_a_run_that_ended_half_way(self, outcome):
        """The present replicas are unknown, so original_replicas is absent."""
        done = undo(world(None, succeeded(outcome=outcome)), "--uid", UID, "--print")
        rows = json.loads(done.out)["partitions"]
        assert [row["replicas"] for row in rows] == [[1, 2]] * 3
        assert not any("original_replicas" in row for row in rows)
        assert f"ended as {outcome}" in done.err

    @pytest.mark.parametrize(
        ("run", "reason"),
        [
            (None, "OriginsExpired"),
            (succeeded(closed_at=None, outcome=None), "Running"),
            (succeeded(outcome=RunOutcome.UNDONE), "AlreadyUndone"),
        ],
        ids=["expired", "running", "undone"],
    )
    def test_refused_by_uid(self, run, reason):
        done = undo(world(None, run), "--uid", UID, "--print")
        assert (done.code, done.out) == (3, "")
        assert done.err.startswith(f"refused ({reason}): ")

    @pytest.mark.parametrize(
        "arguments",
        [["--uid", UID], ["--uid", UID, "--yes"], ["r", "--uid", UID, "--print"], ["--print"], []],
        ids=["uid", "uid yes", "both", "neither", "nothing"],
    )
    def test_wrong_usage(self, arguments):
        """Without the resource only --print is possible, and a name and --uid exclude each other."""
        kube = world(resource(), succeeded())
        assert undo(kube, *arguments).code == 2
        assert kube.writes == []


class TestMissing:
    def test_a_missing_resource_fails_and_names_what_is_kept(self):
        """Users no longer know the uid once the resource is gone."""
        done = undo(world(None, succeeded()), "r", "-n", "kafka", "--yes")
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("failed (NotFound): KafkaRebalance kafka/r not found; kept runs of that name: ")
        assert f"--print --uid {UID} (Succeeded, started 2026-01-01 12:00 UTC)" in done.err

    def test_nothing_is_kept(self):
        done = undo(world(None, succeeded()), "other", "-n", "kafka", "--yes")
        assert done.err == "failed (NotFound): KafkaRebalance kafka/other not found\n"


class TestWayBack:
    def test_counts(self):
        """Bytes: size times the number of original replicas that the target lacks."""
        errands = [
            PartitionMove(tp(0), "", replicas_of(1, 2, 3), replicas_of(1, 2, 3), replicas_of(1, 4, 5), 10),
            PartitionMove(tp(1), "", replicas_of(1, 2), replicas_of(1, 2), replicas_of(1, 2), 100),
            PartitionMove(tp(2), "", replicas_of(1, 2), replicas_of(1, 2), replicas_of(2, 1), 1000),
            PartitionMove(tp(3), "", replicas_of(1), replicas_of(1), replicas_of(1, 2), 10000),
        ]
        assert way_back(errands) == WayBack(partitions=3, copies=2, bytes_to_copy=20, leaders=1)

    def test_rows_are_sorted(self):
        errands = [PartitionMove(tp(n), "", replicas_of(1), replicas_of(1), replicas_of(2)) for n in (10, 2, 1)]
        rows = reassignment(errands, from_targets=True)["partitions"]
        assert [row["partition"] for row in rows] == [1, 2, 10]
