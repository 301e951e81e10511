"""A topic of 2,000 partitions and broker ids of four digits: its lists of throttled replicas must not grow too long.

On Kafka 3.9, whose controller resigns when a list becomes longer than 32,767 bytes.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Self

import pytest

from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.kube import KubeCluster
from e2e.bench.operator import OperatorProcess
from e2e.world import FAST, LEADER_LIST, World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver, pytest.mark.campaign]

PARTITIONS = 2000
OLD, TARGET = (1001, 1002, 1003), (1001, 1002, 1004)
MOST = 30_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(racks_of(range(1001, 1005)), version="3.9") as cluster:
        yield cluster


@pytest.fixture
def large(
    cluster: KafkaCluster, kube: KubeCluster, operator: OperatorProcess, unique: Callable[[str], str]
) -> Iterator[World]:
    world = World(cluster, kube, operator, unique)
    yield world
    world.close()


class _Lists:
    """Reads both lists of a topic again and again. ``longest``: in bytes."""

    def __init__(self, world: World, topic: str) -> None:
        self._world, self._topic = world, topic
        self.longest: dict[str, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._over.wait(0.1):
            for name, length in self._world.list_lengths(self._topic).items():
                self.longest[name] = max(length, self.longest.get(name, 0))


class TestTwoThousandPartitions:
    def test_moved_by_a_rebalance(self, large: World) -> None:
        """Completely, with the throttle on, all at once as far as the lists have room."""
        epoch = large.controller_epoch()
        topic = large.empty_topic("large", [OLD] * PARTITIONS)
        with _Lists(large, topic) as lists:
            limits = {"parallelPartitionCount": PARTITIONS, "parallelLeaderMovements": PARTITIONS}
            rebalance = large.rebalance(
                "large", topic, throttle=FAST, brokers={"include": list(TARGET)}, execution=limits
            )
            rebalance.wait_for("Succeeded", timeout=240)
        assert {len(s.replicas) for s in large.partitions(topic).values()} == {3}
        assert all(set(s.replicas) == set(TARGET) for s in large.partitions(topic).values())
        assert MOST / 2 < lists.longest[LEADER_LIST] <= MOST
        assert large.controller_epoch() == epoch
        large.assert_tidy()
