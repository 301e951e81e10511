"""Errors are reported on the resource by name, retried where that can help, and block no other resource."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes.hostile_server import CRASHING, HostileServer

from e2e.bench.kafka import KafkaCluster
from e2e.bench.kafka_properties import SASL_USERS
from e2e.bench.load import create_topics
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.waiting import wait_until
from e2e.rebalance import NAMESPACE, Rebalance, condition, state
from e2e.world import FAST, SMALL, World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver]

WRONG = "no-such-password-91c4"


@contextlib.contextmanager
def _served(**answers: Any) -> Iterator[str]:
    """The address of a hostile server."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="hostile-server", daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(HostileServer(**answers).__aenter__(), loop).result(30)
    try:
        yield server.address
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


@pytest.fixture(scope="module")
def guarded() -> Iterator[KafkaCluster]:
    """A broker that requires authentication."""
    with KafkaCluster({1: "r1"}, sasl=True) as cluster:
        create_topics(cluster, {"guarded": [[1]]})
        yield cluster


class TestConnection:
    """Errors of the connection to Kafka."""

    def test_unreachable(self, world: World) -> None:
        """No broker answers: reported and retried; other rebalances run, and a deletion does not wait for Kafka."""
        port = reserve_port()
        try:
            nobody = {"bootstrapServers": f"127.0.0.1:{port}"}
            rebalance = world.rebalance("unreachable", "some-topic", kafka=nobody)
            message = _stuck(rebalance, "KafkaUnreachable")
            assert f"127.0.0.1:{port}" in message
            _another_is_served(world)
            rebalance.delete()
            rebalance.wait_gone()
        finally:
            release_port(port)

    @pytest.mark.parametrize("case", CRASHING)
    def test_a_server_that_crashes_its_client(self, world: World, case: str) -> None:
        """The operator and all other rebalances continue; no crashed process is left."""
        before = world.operator.pid
        with _served(**CRASHING[case]) as address:
            rebalance = world.rebalance("hostile", "some-topic", kafka={"bootstrapServers": address})
            assert "crashed (SIGSEGV)" in _stuck(rebalance, "KafkaClientEnded")
            _another_is_served(world)
            rebalance.delete()
            rebalance.wait_gone()
        assert world.operator.running
        assert world.operator.pid == before

    def test_wrong_password(self, world: World, guarded: KafkaCluster) -> None:
        """An authentication failure is reported without the credentials; correct ones are used at once."""
        secret = world.secret("login", username="operator", password=WRONG)
        rebalance = world.rebalance("password", "guarded", kafka=_with_sasl(guarded, secret))
        message = _stuck(rebalance, "KafkaAuthenticationFailed")
        assert guarded.address(1) in message
        _another_is_served(world)
        events = world.kube.kubectl("get", "events", "-n", NAMESPACE, "-o", "yaml")
        told = (str(rebalance.get()), events, world.operator.log.read_text())
        assert not any(WRONG in text for text in told)
        world.secret("login", username="operator", password=SASL_USERS["operator"])
        rebalance.wait_for("Succeeded")
        assert SASL_USERS["operator"] not in world.operator.log.read_text()

    def test_missing_secret(self, world: World, guarded: KafkaCluster) -> None:
        """A missing Secret is named; when it is created, the rebalance continues."""
        name = world.unique("later")
        rebalance = world.rebalance("secretless", "guarded", kafka=_with_sasl(guarded, name))
        assert f"{NAMESPACE}/{name}" in _stuck(rebalance, "SecretNotFound")
        _another_is_served(world)
        world.secret("later", username="operator", password=SASL_USERS["operator"])
        rebalance.wait_for("Succeeded")


class TestPlan:
    """The cluster cannot satisfy the spec."""

    def test_fewer_brokers_than_replicas(self, world: World) -> None:
        """Two brokers cannot hold three replicas: reported, nothing moves; other rebalances of the cluster run."""
        topic = world.skewed("few", SMALL)
        before = world.partitions(topic)
        rebalance = world.rebalance("few", topic, brokers={"decommission": [1, 4, 5]})
        assert "3" in _stuck(rebalance, "InsufficientBrokers")
        _another_is_served(world)
        assert world.partitions(topic) == before
        rebalance.patch(brokers={"decommission": [1]})
        rebalance.wait_for("Succeeded")
        assert all(1 not in found.replicas for found in world.partitions(topic).values())

    def test_unknown_broker(self, world: World) -> None:
        """A broker id that does not exist is named; other rebalances of the cluster run."""
        topic = world.skewed("unknown", SMALL)
        rebalance = world.rebalance("unknown", topic, brokers={"decommission": [99]})
        assert "99" in _stuck(rebalance, "UnknownBroker")
        _another_is_served(world)

    def test_partition_without_a_leader(self, world: World) -> None:
        """It is skipped and listed in status.skipped; the others move."""
        topic = world.topic("headless", [[5], [1], [1], [1], [1]], SMALL)
        world.kafka.stop(5)
        try:
            wait_until("partition 0 has no leader", lambda: world.partitions(topic)[0].leader == -1)
            beside = {"maxUnhealthy": 100}  # topics of other tests miss a replica on the broker, too
            brokers = {"include": [1, 2, 3, 4]}
            rebalance = world.rebalance("headless", topic, throttle=FAST, brokers=brokers, execution=beside)
            rebalance.wait_for("Succeeded")
            status = rebalance.status
            assert [(row["topic"], row["partition"]) for row in status["skipped"]] == [(topic, 0)]
            assert status["skippedCount"] == 1
            found = world.judge.describe_topics(topic)
            assert found[topic, 0].replicas == (5,)
            assert {found[topic, partition].replicas for partition in range(1, 5)} == {(1,), (2,), (3,), (4,)}
        finally:
            world.kafka.start_brokers(5)


def _stuck(rebalance: Rebalance, reason: str) -> str:
    """Wait until the status reports the problem, in Ready and for kstatus; returns the message."""
    status = rebalance.wait_state(reason)
    found = {kind: condition(status, kind) for kind in ("Ready", "Stalled", "Reconciling")}
    assert found == {"Ready": "False", "Stalled": "True", "Reconciling": "False"}
    return state(status)[1]


def _another_is_served(world: World) -> None:
    """Meanwhile another rebalance of the same cluster completes."""
    other = world.topic("served", [[1], [1]], SMALL)
    served = world.rebalance("served", other, throttle=FAST, brokers={"include": [1, 2]})
    served.wait_for("Succeeded")
    assert {found.replicas for found in world.partitions(other).values()} == {(1,), (2,)}


def _with_sasl(cluster: KafkaCluster, secret: str) -> dict[str, Any]:
    sasl = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": secret}}
    return {"bootstrapServers": cluster.bootstrap_servers, "sasl": sasl}
