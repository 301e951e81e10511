"""kafka-rebalance top: what is in motion, once and refreshed."""

import json

import pytest
from rich.live import Live
from tests.unit.cli.commands.resource_runs import RUNNING, body, program, status, world

from kafka_rebalance.api.resource_status import BatchRow
from kafka_rebalance.api.throttle_resource import KafkaReassignmentThrottleStatus, ThrottledBroker
from kafka_rebalance.cli.commands import top_command


def row(partition, adding, left):
    lists = {"current": (1, 2), "step": (1, 2, *adding), "target": (1, 2, *adding)}
    return BatchRow(topic="orders", partition=partition, adding=adding, bytes_remaining=left, **lists)


def moving(name="r", *rows, size=None, **about):
    found = rows or (row(0, (3,), 1024), row(1, (3, 4), 4096))
    return body(
        reported=status(RUNNING, current_batch=found, current_batch_size=size or len(found)), name=name, **about
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
        assert lines[-2:] == ["orders-1 1,2 3,4 4.0 KiB kafka/r", "orders-0 1,2 3 1.0 KiB kafka/r"]

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
