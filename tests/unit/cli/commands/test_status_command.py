"""kafka-rebalance status: the summary."""

import json
from datetime import timedelta

import pytest
import yaml
from tests.fakes.kube_in_memory import KubeInMemory
from tests.unit.cli.commands.status_runs import NOW, resource, run

from kafka_rebalance.api.conditions import ConditionType, ReadySummary, set_condition, summarise
from kafka_rebalance.api.resource_status import (
    BatchRow,
    ByteProgress,
    Display,
    KafkaRebalanceStatus,
    LoadStatus,
    OutsideRow,
    PartitionProgress,
    PlanStatus,
    ProgressStatus,
    ReplicaProgress,
    ResourceLoadRow,
    SkippedRow,
    StepProgress,
    ThrottleStatus,
)
from kafka_rebalance.api.v1alpha1 import REBALANCES, parse_rebalance
from kafka_rebalance.cli.tables import console
from kafka_rebalance.cli.tables.status_table import print_summary
from kafka_rebalance.reasons import Reason


def full_status(**more):
    conditions = summarise(
        (), ReadySummary.IN_PROGRESS, Reason.REBALANCING, "NoLeader (1, e.g. t-9)", generation=1, now=NOW
    )
    conditions = set_condition(
        conditions, ConditionType.PLANNED, True, "Planned", "3 partitions", generation=1, now=NOW
    )
    row = BatchRow(
        topic="t", partition=1, current=(1, 2), step=(3, 1, 2), target=(3, 2), adding=(3,), bytes_remaining=9
    )
    return KafkaRebalanceStatus(
        observed_generation=1,
        conditions=conditions,
        plan=PlanStatus(
            hash="sha256:abc",
            partitions=30,
            replica_moves=40,
            lower_bound=8,
            optimal=False,
            leader_moves=1,
            data_to_move=512,
        ),
        progress=ProgressStatus(
            percent=37,
            partitions=PartitionProgress(total=30, completed=5, in_flight=21, waiting=3, skipped=1),
            replica_moves=ReplicaProgress(total=40, completed=7),
            steps=StepProgress(completed=0, in_flight=0),
            bytes=ByteProgress(total=3 * 2**30, moved=2**30),
            rate=10 * 2**20,
            above_replication_factor=2,
        ),
        current_batch=(row,),
        current_batch_size=21,
        throttle=ThrottleStatus(leader_rate=2**20, follower_rate=2 * 2**20, source="x", brokers=6),
        skipped=(SkippedRow(topic="u", partition=4, reason="Drifted"),),
        skipped_count=3,
        display=Display(progress="37%", eta="3m24s"),
    ).model_copy(update=more)


def summary(capsys, body, now=NOW + timedelta(seconds=65)):
    print_summary(parse_rebalance(body), now)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


class TestSummary:
    """What an on-call engineer needs to know, the most important first."""

    def test_everything_is_said(self, capsys):
        lines = summary(capsys, resource(status=full_status().as_patch()["status"]))
        assert lines[:2] == ["kafka/r: Rebalancing", "NoLeader (1, e.g. t-9)"]
        for line in (
            "Plan 30 partitions, 40 replica moves (lower bound 8), 1 preferred leader to change, 512 B to copy",
            "sha256:abc",
            "Progress 37%: of 30 partitions 5 completed, 21 in flight, 3 waiting, 1 skipped",
            "Copied 1.0 GiB of 3.0 GiB at 10.0 MiB/s, 3m24s left; 7 of 40 replica moves in sync",
            "2 partitions temporarily above the replication factor",
            "Throttle leaders send at most 1.0 MiB/s, followers fetch at most 2.0 MiB/s, by x; set on 6 brokers now",
            "In flight 21 partitions",
            "Skipped 3: u-4 (Drifted), …",
            "t-1 1,2 3,1,2 3,2 3 9 B",
            "… 20 more: --batch",
            "Planned True Planned 1m5s",
            "Planned: 3 partitions",
        ):
            assert line in lines

    def test_a_rate_above_the_throttle_is_explained(self, capsys):
        """The lower side counts, and an ended run copies nothing."""
        said = "The rate is above the throttle because it is the sum over all brokers, with bursts of up to 10 MiB"
        found = " ".join(summary(capsys, resource(status=full_status().as_patch()["status"])))
        assert said in found
        slower = full_status(throttle=ThrottleStatus(leader_rate=20 * 2**20, source="x", brokers=6))
        assert said not in " ".join(summary(capsys, resource(status=slower.as_patch()["status"])))
        ended = full_status(completed_at=NOW)
        assert said not in " ".join(summary(capsys, resource(status=ended.as_patch()["status"])))

    def test_the_load(self, capsys):
        """A line for each resource, the bound, and who stays outside."""
        status = full_status()
        disk = ResourceLoadRow(resource="Disk", peak_before=198, peak_after=112, outside_before=2, outside_after=1)
        left = OutsideRow(broker=3, resource="Disk", use=112, allowed=110, reason="PartitionTooLarge")
        load = LoadStatus(
            resources=(disk.model_copy(update={"peak_measured": 114}), disk.model_copy(update={"resource": "BytesIn"})),
            data_lower_bound=453,
            gap="1.13",
            outside=(left,),
        )
        status = status.model_copy(update={"plan": status.plan.model_copy(update={"load": load})})
        lines = summary(capsys, resource(status=status.as_patch()["status"]))
        measured = "Load Disk: fullest broker 198% -> 112% of its share (114% measured afterwards)"
        at = lines.index(f"{measured}, 2 -> 1 brokers above the band")
        assert lines[at + 1 : at + 4] == [
            "BytesIn: fullest broker 198% -> 112% of its share, 2 -> 1 brokers above the band",
            "1.13 times the lower bound of 453 B to copy",
            "broker 3 stays above the band of Disk: PartitionTooLarge",
        ]

    def test_a_message_that_repeats_the_state_is_said_once(self, capsys):
        lines = summary(capsys, resource(status=full_status().as_patch()["status"]))
        assert [line for line in lines if "NoLeader" in line] == ["NoLeader (1, e.g. t-9)"]
        assert "Ready False Rebalancing 1m5s" in lines

    def test_a_long_message_makes_no_line_but_its_own_long(self, capsys):
        """Also where several conditions have it, and the output is a file: there, no line is cut or folded."""
        conditions = full_status().conditions
        for kind in (ConditionType.THROTTLE_APPLIED, ConditionType.DRAINED, ConditionType.SPEC_WARNING):
            conditions = set_condition(conditions, kind, False, "Pending", "long " * 80, generation=1, now=NOW)
        body = resource(status=full_status(conditions=conditions).as_patch()["status"])
        print_summary(parse_rebalance(body), NOW)
        long = [line for line in capsys.readouterr().out.splitlines() if len(line) > 120]
        assert [line.partition(":")[0] for line in long] == ["ThrottleApplied"]

    def test_it_fits_a_terminal(self, capsys, monkeypatch):
        """Of 80 columns, also with long names and lists: cells are folded."""
        monkeypatch.setattr(console, "_at_terminal", lambda: True)
        monkeypatch.setenv("COLUMNS", "80")
        row = full_status().current_batch[0]
        long = row.model_copy(update={"topic": "a.topic.with.a.long.name" * 4, "current": tuple(range(1, 12))})
        body = resource(status=full_status(current_batch=(long,)).as_patch()["status"])
        print_summary(parse_rebalance(body), NOW)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 80

    def test_nobody_has_looked_at_it(self, capsys):
        lines = summary(capsys, resource())
        assert lines == [
            "kafka/r: Pending",
            "no operator has processed it yet: is one running, and does it watch this namespace?",
        ]

    def test_a_status_that_lags_behind_the_spec_says_so(self, capsys):
        body = resource(status=full_status().as_patch()["status"], metadata={"generation": 2})
        assert "this status is of generation 1 of the spec; the current one is 2" in summary(capsys, body)

    def test_a_deletion_is_said(self, capsys):
        metadata = {"deletionTimestamp": "2026-01-01T12:00:05Z"}
        body = resource(status=full_status().as_patch()["status"], metadata=metadata, spec={"deletionPolicy": "Revert"})
        assert "deleted 1m ago, with deletionPolicy Revert" in summary(capsys, body)

    @pytest.mark.parametrize(
        ("throttle", "said"),
        [
            (ThrottleStatus(source="spec.throttle"), "Throttle none, by spec.throttle"),
            (
                ThrottleStatus(leader_rate=1024, source="spec.throttle"),
                "Throttle leaders send at most 1.0 KiB/s, by spec.throttle; set on no broker now",
            ),
            (
                ThrottleStatus(leader_rate=1024, source="spec.throttle", bound_by="krb", brokers=1),
                "Throttle leaders send at most 1.0 KiB/s, by spec.throttle; set on 1 broker now; less on some, by krb",
            ),
        ],
        ids=["unlimited", "restored", "bound"],
    )
    def test_how_far_a_throttle_holds(self, capsys, throttle, said):
        assert said in summary(capsys, resource(status=full_status(throttle=throttle).as_patch()["status"]))

    def test_json_and_yaml_are_the_status_itself(self):
        """Including fields that only a newer operator knows."""
        status = full_status().as_patch()["status"] | {"novelty": 1}
        kube = KubeInMemory()
        kube.resources[REBALANCES, "kafka", "r"] = resource(status=status)
        assert json.loads(run(kube, "r", "-n", "kafka", "-o", "json").out) == status
        assert yaml.safe_load(run(kube, "r", "-n", "kafka", "-o", "yaml").out) == status
        assert run(kube, "r", "-n", "kafka").out.startswith("kafka/r: Rebalancing\n")


class TestTheContext:
    """As kubectl: the namespace of the context, unless -n is given; --context and --kubeconfig choose another one."""

    @pytest.fixture
    def kube(self):
        kube = KubeInMemory()
        for namespace in ("kafka", "other", "default"):
            kube.resources[REBALANCES, namespace, "r"] = resource(metadata={"namespace": namespace})
        return kube

    @pytest.fixture
    def kubeconfig(self, tmp_path):
        path = tmp_path / "config"
        rows = [{"name": "a", "context": {"namespace": "kafka"}}, {"name": "b", "context": {"namespace": "other"}}]
        path.write_text(yaml.safe_dump({"current-context": "a", "contexts": rows}))
        return str(path)

    def test_its_namespace_is_the_default(self, kube, kubeconfig, monkeypatch):
        assert run(kube, "r").out.startswith("default/r: Pending")
        monkeypatch.setenv("KUBECONFIG", kubeconfig)
        assert run(kube, "r").out.startswith("kafka/r: Pending")
        assert run(kube, "r", "-n", "default").out.startswith("default/r: Pending")

    def test_the_options_choose_it(self, kube, kubeconfig):
        """And the client connects with them."""
        done = run(kube, "r", "--kubeconfig", kubeconfig, "--context", "b")
        assert done.out.startswith("other/r: Pending")
        assert kube.connected_with == {"kubeconfig": kubeconfig, "context": "b"}
