"""kafka-rebalance top: what is in motion, once and refreshed."""

import json

import pytest
from rich.live import Live
from tests.unit.cli.commands.resource_runs import RUNNING, body, program, status, world

from kafka_rebalance.api.resource_status import (
    BatchRow,
    ByteProgress,
    Display,
    PartitionProgress,
    ProgressStatus,
    ReplicaProgress,
    StepProgress,
    ThrottleStatus,
)
from kafka_rebalance.api.throttle_resource import KafkaReassignmentThrottleStatus, ThrottledBroker
from kafka_rebalance.cli.commands import top_command


def row(partition, adding, left):
    lists = {"current": (1, 2), "step": (1, 2, *adding), "target": (1, 2, *adding)}
    return BatchRow(topic="orders", partition=partition, adding=adding, bytes_remaining=left, **lists)


NO_METER = "- not measured: rates of brokers need a KafkaReassignmentThrottle"


def moving(name="r", *rows, size=None, namespace="kafka", **reported):
    found = rows or (row(0, (3,), 1024), row(1, (3, 4), 4096))
    batch = {"current_batch": found, "current_batch_size": size or len(found)}
    return body(reported=status(RUNNING, **batch, **reported), name=name, namespace=namespace)


def progress(rate):
    return ProgressStatus(
        percent=37,
        partitions=PartitionProgress(total=2, completed=0, in_flight=2, waiting=0),
        replica_moves=ReplicaProgress(total=3, completed=0),
        steps=StepProgress(completed=0, in_flight=2),
        bytes=ByteProgress(total=5120, moved=0),
        rate=rate,
    )


def limits():
    brokers = (ThrottledBroker(id=3, follower_rate=100, follower_bytes_per_second=2048, leader_bytes_per_second=0),)
    reported = KafkaReassignmentThrottleStatus(brokers=brokers).as_patch()["status"]
    return body({"leaderRate": "1Mi"}, reported, kind="KafkaReassignmentThrottle", name="limits")


class TestOnce:
    def test_what_moves(self):
        """Rebalances, then brokers with measured rates, then partitions, those with the most bytes left first."""
        done = program(world(moving(), limits()), "top", "--once")
        assert (done.code, done.err) == (0, "")
        lines = [" ".join(line.split()) for line in done.out.splitlines()]
        assert lines[0] == "REBALANCE STATE PROGRESS RATE ETA IN FLIGHT"
        assert lines[1].startswith("kafka/r Rebalancing")
        assert "3 2 3.0 KiB 2.0 KiB/s 0 B/s" in lines
        assert "4 1 2.0 KiB - -" in lines
        after = lines.index("TOPIC-PARTITION CURRENT ADDING LEFT REBALANCE") + 1
        assert lines[after : after + 2] == ["orders-1 1,2 3,4 4.0 KiB kafka/r", "orders-0 1,2 3 1.0 KiB kafka/r"]

    def test_rates_that_are_not_measured(self):
        """A dash says why: nothing measures them, or nothing has yet."""
        assert NO_METER in " ".join(program(world(moving()), "top", "--once").out.split())
        found = " ".join(program(world(moving(), limits()), "top", "--once").out.split())
        assert NO_METER not in found
        assert "- not known, or not measured yet" in found

    def test_all_is_known(self):
        """Without a dash there is nothing to explain."""
        kube = world(moving("r", row(0, (3,), 1024), progress=progress(100), display=Display(eta="2m")), limits())
        lines = program(kube, "top", "--once").out.splitlines()
        assert not [line for line in lines if line.startswith("- ")]

    def test_a_rate_above_the_throttle_is_explained(self):
        throttle = ThrottleStatus(leader_rate=50, follower_rate=200, source="x", brokers=2)
        fast = moving(progress=progress(100), throttle=throttle)
        assert "The rate is above the throttle" in program(world(fast), "top", "--once").out
        assert "The rate is above the throttle" not in program(world(moving()), "top", "--once").out

    def test_more_than_the_status_lists(self):
        out = program(world(moving(size=30)), "top", "--once").out
        assert "… 28 more: status NAME --batch" in out

    def test_all_namespaces(self):
        kube = world(moving(), moving("s", namespace="other"))
        assert "other/s" not in program(kube, "top", "--once").out
        assert "other/s" in program(kube, "top", "--once", "-A").out

    def test_nothing(self):
        out = program(world(body()), "top", "--once").out
        assert out == "nothing is in motion; kafka-rebalance list shows rebalances that wait or have ended\n"

    def test_for_programs(self):
        found = json.loads(program(world(moving(), limits()), "top", "-o", "json").out)
        assert found["rebalances"] == ["kafka/r"]
        assert found["brokers"][0] == {
            "id": 3,
            "fetches": 2,
            "left": 3072,
            "sends_per_second": 0,
            "fetches_per_second": 2048,
        }
        assert [part["partition"] for part in found["partitions"]] == ["orders-1", "orders-0"]

    def test_one_that_cannot_be_read(self):
        """The others are shown."""
        done = program(world(moving(), body({"priority": "high"}, name="bad")), "top", "--once")
        assert "kafka/bad: spec.priority" in done.err
        assert "kafka/r" in done.out


def test_refreshed(monkeypatch):
    """On a terminal, until Ctrl-C."""
    shown = []

    class Terminal(Live):
        def update(self, renderable, *, refresh=False):
            shown.append(renderable)
            if len(shown) == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(top_command, "Live", Terminal)
    monkeypatch.setattr(top_command, "_EVERY_SECONDS", 0)
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    assert program(world(moving()), "top").code == 130
    assert len(shown) == 3


@pytest.mark.parametrize("options", [("--once", "-o", "wide"), ("name",)])
def test_wrong_usage(options):
    assert program(world(), "top", *options).code == 2
