"""The outputs in docs/cli.md and docs/getting-started.md are those of the program.

Those of `plan`, `explain` and `steps` are compared in `tests/unit/cli/test_main_docs.py`.
"""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from tests.docs.pages import ROOT, sample
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.whole_program import run_program
from tests.unit.cli.commands.execute_runs import Kube
from tests.unit.cli.commands.resource_runs import ENDED, UID, body, program, status, world

from kafka_rebalance.api.conditions import ConditionType, ReadySummary, set_condition, summarise
from kafka_rebalance.api.resource_status import (
    BatchRow,
    ByteProgress,
    Display,
    KafkaRebalanceStatus,
    PartitionProgress,
    PlanStatus,
    ProgressStatus,
    ReplicaProgress,
    StepProgress,
    ThrottleStatus,
)
from kafka_rebalance.api.spec_warnings import low_rate
from kafka_rebalance.api.throttle_resource import KafkaReassignmentThrottleStatus, ThrottledBroker
from kafka_rebalance.api.v1alpha1 import parse_rebalance, planning_hash
from kafka_rebalance.cli.commands import list_command, status_command, watch_command
from kafka_rebalance.cli.options import override_options
from kafka_rebalance.cli.options.resource_lookup import stores
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run, RunOutcome
from kafka_rebalance.model.topology import TopicPartition, replicas_of

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
KIB, RATE = 1024, 64 * 1024
BATCH = (
    ("orders", 8, (3, 1, 2), (4, 3, 1, 2), (4, 5, 3), 994 * KIB),
    ("orders", 10, (2, 3, 1), (4, 2, 3, 1), (4, 2, 3), 994 * KIB),
    ("orders", 11, (3, 1, 2), (3, 1, 2, 4), (3, 2, 4), 1946 * KIB),
    ("payments", 1, (2, 3, 1), (4, 2, 3, 1), (4, 3, 2), 1946 * KIB),
)


def resource():
    """A rebalance of 13 partitions after 17 seconds."""
    begun = NOW - timedelta(seconds=17)
    conditions = summarise(
        (), ReadySummary.IN_PROGRESS, "Rebalancing", "moving replicas in small steps", generation=1, now=begun
    )
    for kind, holds, reason, message in (
        (ConditionType.PLANNED, True, "Planned", "13 partitions, 14 replica moves"),
        (ConditionType.REBALANCING, True, "Rebalancing", "moving replicas in small steps"),
        (ConditionType.THROTTLE_APPLIED, True, "Applied", "64.0 KiB/s from spec.throttle"),
        (ConditionType.SUCCEEDED, False, "Rebalancing", "moving replicas in small steps"),
        (ConditionType.SPEC_WARNING, True, "VeryLowRate", f"spec.throttle.leaderRate: {low_rate(RATE)}"),
    ):
        conditions = set_condition(conditions, kind, holds, reason, message, generation=1, now=begun)
    rows = tuple(
        BatchRow(topic=topic, partition=n, current=at, step=step, target=to, adding=(4,), bytes_remaining=left)
        for topic, n, at, step, to, left in BATCH
    )
    status = KafkaRebalanceStatus(
        observed_generation=1,
        conditions=conditions,
        plan=PlanStatus(
            hash="sha256:8e4f443686e66a986d79b32a9f2dadec9bd303ca66f7b3c8b137a536ffdac448",
            partitions=13,
            replica_moves=14,
            lower_bound=14,
            optimal=True,
            leader_moves=6,
            data_to_move=27341 * KIB,
        ),
        progress=ProgressStatus(
            percent=7,
            partitions=PartitionProgress(total=13, completed=0, in_flight=4, waiting=9),
            replica_moves=ReplicaProgress(total=14, completed=0),
            steps=StepProgress(completed=0, in_flight=4),
            bytes=ByteProgress(total=27341 * KIB, moved=1946 * KIB),
            rate=167 * KIB,
        ),
        throttle=ThrottleStatus(leader_rate=RATE, follower_rate=RATE, source="spec.throttle", brokers=5),
        current_batch=rows,
        current_batch_size=4,
        display=Display(progress="7%", moved="1.9 MiB/26.7 MiB", eta="2m33s", throttle="64.0 KiB/s"),
    )
    return body(
        {"throttle": {"leaderRate": RATE, "followerRate": RATE}},
        status.as_patch()["status"],
        name="add-brokers",
        namespace="default",
        creationTimestamp="2026-01-01T11:59:41Z",
    )


class Noon(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz=None):
        return NOW


@pytest.fixture
def at_noon():
    with patch.object(status_command, "datetime", Noon), patch.object(list_command, "datetime", Noon):
        yield


def plan():
    """A plan of 13 partitions with 14 replica moves, 6 changes of leaders and 26.7 MiB to copy."""
    moves = (
        [((1, 2, 3), (4, 2, 3))] * 6  # another leader
        + [((1, 2, 3), (1, 2, 4))] * 6
        + [((1, 2, 3), (1, 4, 5))]
    )
    sizes = [2 * 1024 * KIB] * 12 + [(27341 - 12 * 2048) * KIB // 2]
    return Plan(
        tuple(
            PlannedPartition(TopicPartition("orders", n), replicas_of(*now), replicas_of(*then), size_bytes=size)
            for n, ((now, then), size) in enumerate(zip(moves, sizes, strict=True))
        ),
        Certificate(14, optimal=True),
    )


def test_status(at_noon):
    done = program(world(resource()), "status", "add-brokers", "-n", "default")
    assert [line.rstrip() for line in done.out.splitlines()] == sample("status add-brokers")


def test_report(tmp_path, monkeypatch):
    """In the tutorial, of a resource in the namespace of the context."""
    monkeypatch.chdir(tmp_path)
    done = program(finished(name="first"), "report", "first", "-n", "default", "-o", "first.html")
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines() == sample("report first -o first.html", page="docs/getting-started.md")
    assert "KafkaRebalance default/first" in (tmp_path / "first.html").read_text(encoding="utf-8")


def test_top():
    """The brokers' rates are those of the KafkaReassignmentThrottle."""
    brokers = (
        ThrottledBroker(id=1, leader_bytes_per_second=85094, follower_bytes_per_second=0),
        ThrottledBroker(id=4, leader_bytes_per_second=0, follower_bytes_per_second=167 * KIB),
    )
    reported = KafkaReassignmentThrottleStatus(brokers=brokers).as_patch()["status"]
    limits = body({"leaderRate": RATE}, reported, kind="KafkaReassignmentThrottle", name="limits")
    done = program(world(resource(), limits), "top", "-A", "--once")
    assert [line.rstrip() for line in done.out.splitlines()] == sample("top -A --once")


def test_list(at_noon):
    done = program(world(resource()), "list", "-A")
    assert [line.rstrip() for line in done.out.splitlines()] == sample("list -A")


def test_run_and_watch():
    """Without a terminal: one line for the state, and one for the figures."""
    shown = sample("run examples/add-brokers.yaml --records /var/lib/kafka-rebalance/add-brokers")
    figures = KafkaRebalanceStatus(
        conditions=summarise(
            (), ReadySummary.IN_PROGRESS, "Rebalancing", "moving replicas in small steps", generation=1, now=NOW
        ),
        progress=ProgressStatus(
            percent=37,
            partitions=PartitionProgress(total=200, completed=74, in_flight=10, waiting=116),
            replica_moves=ReplicaProgress(total=200, completed=74),
            steps=StepProgress(completed=74, in_flight=10),
            bytes=ByteProgress(total=510 * KIB * KIB, moved=189 * KIB * KIB),
            rate=25 * KIB * KIB,
        ),
        current_batch_size=10,
        display=Display(eta="1m-2m", throttle="25.0 MiB/s"),
    )
    end = summarise(
        (), ReadySummary.DONE, "Succeeded", "200 of 200 partitions are at their targets", generation=1, now=NOW
    )
    ended = KafkaRebalanceStatus(observed_generation=1, conditions=end)
    readings = [body(reported=found.as_patch()["status"], generation=1) for found in (figures, ended)]
    kube = KubeInMemory()

    async def get(*_):
        return readings.pop(0)

    kube.get = get
    with patch.object(watch_command, "_EVERY_SECONDS", 0):
        done = program(kube, "watch", "r")
    assert [line for line in done.out.splitlines() if line in shown] == shown[1:]


def finished(uid=UID, name="add-brokers"):
    """An API server with the rebalance after its success, and with the records of its run."""
    made = plan()
    shown = PlanStatus(
        hash=made.hash, partitions=13, replica_moves=14, lower_bound=14, optimal=True, leader_moves=6, data_to_move=1
    )
    found = body({}, status(ENDED, shown), name=name, namespace="default", generation=1)
    hashed = planning_hash(parse_rebalance(found).spec)
    ended = (NOW, RunOutcome.SUCCEEDED)
    run = Run(uid, "default", name, "c", "run-1", hashed, made.hash, NOW, *ended, started_at=NOW)
    kube = world(found)

    async def save():
        records = stores(kube)
        await records.runs.save(run)
        await records.plans.save(uid, made.hash, "c", made, NOW)
        await records.origins.append(uid, "run-1", [Origin(p.tp, "", p.current) for p in made.partitions])

    asyncio.run(save())
    return kube


def test_undo():
    done = program(finished(), "undo", "add-brokers", "-n", "default", answer="y\n")
    assert done.out.splitlines() == sample("undo add-brokers")


class TestUndoPrint:
    def test_the_file(self):
        """Its beginning; the page leaves out the rest."""
        done = program(finished(), "undo", "add-brokers", "--print", "-n", "default")
        beginning, _, rest = sample("undo add-brokers --print")[0].partition("…")
        assert done.out.startswith(beginning)
        assert rest == ""
        assert len(json.loads(done.out)["partitions"]) == 13

    def test_the_resource_is_gone(self):
        """The message has the options with which the next command of the page works."""
        uid = "99a86ba3-7747-44f9-9be1-b65cc0e63358"
        kube = finished(uid)
        kube.resources.clear()
        done = program(kube, "undo", "add-brokers", "-n", "default")
        assert done.err.splitlines() == sample("undo add-brokers", at=1)
        assert program(kube, "undo", "--uid", uid, "--print", "-n", "default").code == 0


def test_suspend():
    """Until two hours later."""
    arguments = ("suspend", "add-brokers", "--override", "--for", "2h", "--reason")
    with patch.object(override_options, "datetime", Noon):
        done = program(world(resource()), *arguments, "disks of broker 4", "-n", "default")
    assert done.out.splitlines() == sample(f'{" ".join(arguments)} "disks of broker 4"')


def test_drain():
    kube = Kube()
    options = ("--connection", "prod", "-n", "kafka", "--throttle", "50Mi", "--apply")
    done = program(kube, "drain", "4,5", *options)
    assert done.out.splitlines() == sample(" ".join(("drain", "4,5", *options)))


def test_throttle():
    done = program(world(resource()), "throttle", "add-brokers", "--leader-rate", "20Mi", "-n", "default")
    assert done.out.splitlines() == sample("throttle add-brokers --leader-rate 20Mi")


def test_lint(tmp_path, monkeypatch):
    """Of the example with a rate without its unit."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "manifests").mkdir()
    text = (ROOT / "examples" / "add-brokers.yaml").read_text(encoding="utf-8")
    (tmp_path / "manifests" / "add-brokers.yaml").write_text(text.replace("leaderRate: 25Mi", "leaderRate: 50"))
    done = run_program("lint", "manifests/add-brokers.yaml")
    assert done.out.splitlines() == sample("lint manifests/*.yaml")


def test_approve_shows_the_plan():
    """Its first two lines are those of the status, with less space."""
    plan = sample("approve add-brokers")[:2]
    assert [" ".join(line.split()) for line in plan] == [
        " ".join(line.split()) for line in sample("status add-brokers")[3:5]
    ]
