"""Replicas between the log dirs of brokers with three each: evened, drained, throttled, cancelled and undone.

By Kafka's own tools. Each topic is created empty, which spreads it over the log dirs by number; the partitions in one
of them then get the data.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from e2e.bench.kafka import KafkaCluster
from e2e.bench.kube import KubeCluster
from e2e.bench.load import fill
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.lane import NAMESPACE, OPERATOR_NAMESPACE
from e2e.world import BIG, FINE, LOG_DIR_RATE, World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver, pytest.mark.campaign]

PARTITIONS = 9
CRAWLING, CRAWL_BYTES = {"logDirRate": "16Ki"}, "16384"
QUICK = {"logDirRate": "500Mi"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Copies fetch little at a time: a broker keeps a rate over ten seconds, and lets the first fetch pass."""
    small_fetches = {"replica.fetch.max.bytes": str(FINE)}
    with KafkaCluster({1: "a", 2: "b"}, properties=small_fetches, log_dirs=3) as cluster:
        yield cluster


@pytest.fixture
def jbod(
    cluster: KafkaCluster, kube: KubeCluster, operator: OperatorProcess, unique: Callable[[str], str]
) -> Iterator[World]:
    world = World(cluster, kube, operator, unique)
    yield world
    world.close()


class Dirs:
    """A topic whose data is in the first log dir of broker 1 alone."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.topic = world.empty_topic(name, [[1]] * PARTITIONS)
        self.paths = [str(path) for path in world.kafka.log_dirs_of(1)]
        wait_until("all replicas are created", lambda: sum(map(len, self.held().values())) == PARTITIONS)
        self.full = self.paths[0]
        self.heavy = sorted(self.held()[self.full])
        fill(world.kafka, {(self.topic, number): BIG for number in self.heavy}, batch_bytes=FINE)
        wait_until("the data is on disk", lambda: self.bytes()[self.full] > BIG * len(self.heavy) * 0.9)

    def held(self, broker: int = 1) -> dict[str, dict[int, int]]:
        return self.world.judge.log_dirs(self.topic)[broker]

    def places(self) -> dict[int, str]:
        """The log dir of each partition."""
        return {number: path for path, of in self.held().items() for number in of}

    def bytes(self, broker: int = 1) -> dict[str, int]:
        return {path: sum(of.values()) for path, of in self.held(broker).items()}

    def copies(self) -> dict[int, str]:
        """What is being copied, and to which log dir."""
        there = self.world.judge.log_dirs(self.topic, future=True)[1]
        return {number: path for path, of in there.items() for number in of}

    def even(self, broker: int = 1) -> bool:
        """Whether no log dir has more than its third and a tenth of that."""
        found = self.bytes(broker)
        return max(found.values()) <= 1.1 * sum(found.values()) / 3

    def rebalance(self, name: str, throttle: Any = CRAWLING, **spec: Any) -> Any:
        goals = {"logDirs": {"band": "10%", **spec.pop("logDirs", {})}}
        return self.world.rebalance(name, self.topic, throttle=throttle, strategy="LogDirs", goals=goals, **spec)

    def rate(self) -> str | None:
        """The rate that is set on broker 1."""
        return self.world.judge.broker_configs().get("1", {}).get(LOG_DIR_RATE)


class TestEvened:
    def test_under_a_throttle_and_undone(self, jbod: World) -> None:
        """Three partitions of 2 MB in one of three log dirs: one in each at the end, and all back after the undo."""
        dirs = Dirs(jbod, "even")
        before = dirs.places()
        rebalance = dirs.rebalance("even")
        copied = wait_until("both copies are in flight", lambda: len(found := dirs.copies()) == 2 and found)
        assert set(copied) < set(dirs.heavy)
        assert set(copied.values()) == set(dirs.paths[1:])
        assert dirs.rate() == CRAWL_BYTES
        told = {"total": 2, "completed": 0, "inFlight": 2}
        rebalance.until("the status says so", lambda status: status["progress"].get("logDirMoves") == told)
        rebalance.patch(throttle=QUICK)
        rebalance.wait_for("Succeeded")
        assert dirs.even()
        assert dirs.copies() == {}
        jbod.assert_tidy()
        jbod.command("undo", rebalance.name, "-n", NAMESPACE, "--operator-namespace", OPERATOR_NAMESPACE, "--yes")
        rebalance.wait_state("Undone")
        assert dirs.places() == before
        jbod.assert_tidy()

    def test_a_rate_of_the_broker_is_restored(self, jbod: World) -> None:
        dirs = Dirs(jbod, "rated")
        with jbod.broker_config("--entity-name", "1", replica_alter_log_dirs_io_max_bytes_per_second="400000000"):
            rebalance = dirs.rebalance("rated")
            wait_until("the rate is set", lambda: dirs.rate() == CRAWL_BYTES)
            rebalance.patch(throttle=QUICK)
            rebalance.wait_for("Succeeded")
            wait_until("the rate is restored", lambda: dirs.rate() == "400000000", every=1)
        assert dirs.even()


class TestDrained:
    def test_a_log_dir_is_emptied(self, jbod: World) -> None:
        """Of the selected topic nothing is left in it, and a plan that is made then is empty."""
        dirs = Dirs(jbod, "drain")
        drain = {"drain": [{"broker": 1, "path": dirs.full}]}
        dirs.rebalance("drain", QUICK, logDirs=drain).wait_for("Succeeded")
        assert dirs.held()[dirs.full] == {}
        assert sum(map(len, dirs.held().values())) == PARTITIONS
        again = dirs.rebalance("again", QUICK, logDirs=drain)
        again.wait_state("NothingToDo")
        jbod.assert_tidy()

    def test_a_log_dir_that_is_not_there(self, jbod: World) -> None:
        dirs = Dirs(jbod, "unknown")
        rebalance = dirs.rebalance("unknown", logDirs={"drain": [{"broker": 2, "path": "/data/9"}]})
        status = rebalance.wait_state("UnknownLogDir")
        message = next(c["message"] for c in status["conditions"] if c["type"] == "Ready")
        assert "spec.goals.logDirs.drain[0]: broker 2 has no log dir /data/9 online" in message


class TestDeleted:
    def test_in_the_middle(self, jbod: World) -> None:
        """One copy has arrived and one is in flight: both replicas are where they were."""
        dirs = Dirs(jbod, "deleted")
        before = dirs.places()
        rebalance = dirs.rebalance("deleted", execution={"maxPerBroker": {"betweenLogDirs": 1}})
        wait_until("one copy is in flight", lambda: len(dirs.copies()) == 1)
        rebalance.patch(throttle=QUICK, execution={"suspend": True})
        wait_until("it has arrived", lambda: dirs.places() != before)
        rebalance.patch(throttle=CRAWLING, execution={"suspend": False})
        wait_until("the other one is in flight", lambda: len(dirs.copies()) == 1)
        rebalance.delete()
        rebalance.patch(throttle=QUICK)
        rebalance.wait_gone()
        assert dirs.places() == before
        assert dirs.copies() == {}
        jbod.assert_tidy()

    def test_the_operator_is_killed(self, jbod: World) -> None:
        """While copies are in flight; the next operator goes on from what the brokers say, with the throttle on."""
        dirs = Dirs(jbod, "killed")
        rebalance = dirs.rebalance("killed")
        wait_until("both copies are in flight", lambda: len(dirs.copies()) == 2)
        jbod.operator.kill9()
        assert dirs.rate() == CRAWL_BYTES
        jbod.operator.ensure_running()
        rebalance.patch(throttle=QUICK)
        rebalance.wait_for("Succeeded")
        assert dirs.even()
        jbod.assert_tidy()


class TestPlaced:
    def test_new_replicas(self, jbod: World) -> None:
        """Kafka places by number; with goals.logDirs the bytes are even where replicas come to, and where they stay."""
        dirs = Dirs(jbod, "placed")
        rebalance = jbod.rebalance(
            "placed",
            dirs.topic,
            throttle={"unlimited": True},
            replicationFactor=2,
            goals={"logDirs": {"band": "10%"}},
        )
        rebalance.wait_for("Succeeded")
        wait_until("even on both brokers", lambda: dirs.even(1) and dirs.even(2))
        jbod.assert_tidy()
