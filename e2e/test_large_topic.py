"""A topic of 2,000 partitions and broker ids of four digits: its lists of throttled replicas must not grow too long.

On Kafka 3.9, whose controller resigns when a list becomes longer than 32,767 bytes, unless `KAFKA_VERSION` is set.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.kube import KubeCluster
from e2e.bench.load import fill
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.bench.watching import Watcher
from e2e.rebalance import state
from e2e.world import FAST, FINE, LEADER_LIST, World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver, pytest.mark.campaign]

PARTITIONS = 2000
OLD, TARGET = (1001, 1002, 1003), (1001, 1002, 1004)
THEIRS, THEIR_TARGET = PARTITIONS - 1, (1001, 1002, 1005)
THEIR_BYTES = 16_000_000
"""At `STANDSTILL` a copy takes more than half an hour: longer than all others together."""
STANDSTILL = "1024"
ALL_AT_ONCE = {"parallelPartitionCount": PARTITIONS, "parallelLeaderMovements": PARTITIONS}
MOST = 30_000
TIMEOUT = 900


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    version = os.environ.get("KAFKA_VERSION") or "3.9"
    small_fetches = {"replica.fetch.max.bytes": "65536"}
    with KafkaCluster(racks_of(range(1001, 1006)), properties=small_fetches, version=version) as cluster:
        yield cluster


@pytest.fixture
def large(
    cluster: KafkaCluster, kube: KubeCluster, operator: OperatorProcess, unique: Callable[[str], str]
) -> Iterator[World]:
    world = World(cluster, kube, operator, unique)
    yield world
    world.close()


class _Lists(Watcher):
    """Reads both lists of a topic again and again. ``longest``: in bytes."""

    def __init__(self, world: World, topic: str) -> None:
        super().__init__("reader of the lists")
        self._world, self._topic = world, topic
        self.longest: dict[str, int] = {}

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(0.1):
            for name, length in self._world.list_lengths(self._topic).items():
                self.longest[name] = max(length, self.longest.get(name, 0))


class TestTwoThousandPartitions:
    def test_moved_by_a_rebalance(self, large: World) -> None:
        """Completely, with the throttle on, all at once as far as the lists have room."""
        epoch = large.controller_epoch()
        topic = large.empty_topic("large", [OLD] * PARTITIONS)
        with _Lists(large, topic) as lists:
            rebalance = large.rebalance(
                "large", topic, throttle=FAST, brokers={"include": list(TARGET)}, execution=ALL_AT_ONCE
            )
            rebalance.wait_for("Succeeded", timeout=TIMEOUT)
        assert {len(s.replicas) for s in large.partitions(topic).values()} == {3}
        assert all(set(s.replicas) == set(TARGET) for s in large.partitions(topic).values())
        assert MOST / 2 < lists.longest[LEADER_LIST] <= MOST
        assert large.controller_epoch() == epoch
        large.assert_tidy()

    def test_moved_beside_another_tool(self, large: World) -> None:
        """Another tool moves one of them and has listed its replicas: its move and its entries stay; all others arrive.

        Theirs begins after the plan was made, and leaves the run when it ends.
        """
        epoch = large.controller_epoch()
        theirs = {
            "leader_replication_throttled_replicas": ",".join(f"{THEIRS}:{broker}" for broker in OLD),
            "follower_replication_throttled_replicas": f"{THEIRS}:1005",
        }
        topic = large.empty_topic("beside", [OLD] * PARTITIONS, **theirs)
        fill(large.kafka, {(topic, THEIRS): THEIR_BYTES}, batch_bytes=FINE)
        before = large.judge.throttles()
        approval = {"policy": "Manual", "driftBudget": 100}
        rebalance = large.rebalance(
            "beside",
            topic,
            throttle=FAST,
            brokers={"include": list(TARGET)},
            execution=ALL_AT_ONCE,
            approval=approval,
        )
        plan = rebalance.wait_state("AwaitingApproval", timeout=TIMEOUT)["plan"]
        with large.broker_config("--entity-name", "1005", follower_replication_throttled_rate=STANDSTILL):
            large.reassign({(topic, THEIRS): THEIR_TARGET})
            with _Lists(large, topic) as lists:
                rebalance.patch(approval={"planHash": plan["hash"]})
                told = f"ForeignReassignment (1, e.g. {topic}-{THEIRS}: "
                rebalance.until(
                    "theirs is the only one left",
                    lambda status: _completed(status) == PARTITIONS - 1 and told in state(status)[1],
                    timeout=TIMEOUT,
                )
            assert large.in_flight(topic) == {(topic, THEIRS): (1005,)}
        wait_until("theirs arrives", lambda: not large.in_flight(topic), timeout=TIMEOUT)
        rebalance.wait_for("Succeeded", timeout=TIMEOUT)
        found = large.partitions(topic)
        assert set(found.pop(THEIRS).replicas) == set(THEIR_TARGET)
        assert all(set(s.replicas) == set(TARGET) for s in found.values())
        assert rebalance.skipped() == {(topic, THEIRS): "Drifted"}
        assert MOST / 2 < lists.longest[LEADER_LIST] <= MOST
        assert large.controller_epoch() == epoch
        assert large.judge.list_reassignments() == {}
        assert large.judge.throttles() == before


def _completed(status: Mapping[str, Any]) -> int:
    return int(status.get("progress", {}).get("partitions", {}).get("completed", 0))
