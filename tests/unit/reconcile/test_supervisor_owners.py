"""Whose cluster it is: everything is done to a Kafka cluster with the client of its owner, whoever claims its id."""

import asyncio
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.kafka.ports import ClusterInfo
from kafka_rebalance.model.topology import Broker, BrokerId
from kafka_rebalance.reconcile import supervisor as supervising
from kafka_rebalance.reconcile.supervisor import Supervisor


class Cluster(KafkaInMemory):
    """Four brokers with a topic of four partitions; ``asked`` are the calls that it answered."""

    async def close(self):
        pass


class OneAnswer:
    """A server that answers one call, with the id and an address of the cluster."""

    def __init__(self):
        self.asked = []

    async def describe_cluster(self):
        self.asked.append("describe_cluster")
        return ClusterInfo("c", {BrokerId(1): Broker(BrokerId(1), host="kafka-1", port=9092)})

    async def close(self):
        pass

    def __getattr__(self, name):
        self.asked.append(name)
        raise AssertionError(name)


def listener_of(cluster, port):
    """Another listener of the same cluster: all addresses differ."""
    other = Cluster([])
    other.__dict__ = dict(cluster.__dict__)
    other.brokers = {b: Broker(b, host=f"kafka-{b}", port=port) for b in cluster.brokers}
    return other


class World:
    """``servers`` by the host of spec.kafka.bootstrapServers."""

    def __init__(self):
        self.kube = KubeInMemory()
        self.real = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
        self.servers = {"kafka": self.real}
        self.supervisors = []
        self.clock = StoppedClock()
        self.begin()

    def begin(self):
        """Start the operator, without any resource seen."""
        self.supervisor = Supervisor(self.kube, self.connect, self.loads, self.clock)
        self.supervisors.append(self.supervisor)

    def connect(self, settings):
        return self.servers[settings.bootstrap_servers.partition(":")[0]]

    async def loads(self, _cluster_id):
        return None

    def create(self, namespace, server="kafka", name="r", **spec):
        metadata = {"name": name, "namespace": namespace, "uid": f"u-{namespace}-{name}"}
        metadata["creationTimestamp"] = NOON.isoformat()
        spec = {"kafka": {"bootstrapServers": f"{server}:9092"}, **spec}
        return self.kube.create(REBALANCES, {"metadata": metadata, "spec": spec})

    def see(self, *namespaces):
        for (plural, namespace, _), body in list(self.kube.resources.items()):
            if plural == REBALANCES and (not namespaces or namespace in namespaces):
                self.supervisor.rebalance_seen(body, deleted=False)

    def ready(self, namespace, name="r"):
        conditions = self.kube.resources[REBALANCES, namespace, name].get("status", {}).get("conditions", ())
        return next(((c["reason"], c["message"]) for c in conditions if c["type"] == "Ready"), ("", ""))

    def state(self, namespace, name="r"):
        return self.ready(namespace, name)[0]

    async def until(self, holds):
        """Watch events of everything that was seen come along the way."""

        def looked():
            for known in self.supervisor._book:
                for rebalance in list(known.rebalances.values()):
                    metadata = rebalance.desired.metadata
                    body = self.kube.resources.get((REBALANCES, metadata.namespace, metadata.name))
                    if body is not None:
                        self.supervisor.rebalance_seen(body, deleted=False)
            return holds()

        for _ in range(2000):
            if looked():
                return
            self.clock.at += timedelta(seconds=1)
            await asyncio.sleep(0.005)
        raise AssertionError({key[1:]: self.ready(*key[1:]) for key in self.kube.resources if key[0] == REBALANCES})

    async def draining(self):
        """The cluster's first user has copies in flight to a slow broker, under a throttle."""
        self.real.slow = {BrokerId(4)}
        self.create("a", brokers={"decommission": [1]}, throttle={"leaderRate": "1Mi", "followerRate": "1Mi"})
        self.see("a")
        await self.until(lambda: len(self.real.flying) == 4)

    async def restart(self, *first):
        """The operator is killed; after the restart, the resources of these namespaces are seen first."""
        await self.supervisor.stop()
        self.begin()
        self.see(*first)


@pytest.fixture
async def world(monkeypatch):
    for name in ("_FIRST_RETRY_SECONDS", "_LAST_RETRY_SECONDS"):
        monkeypatch.setattr(supervising, name, 0.02)
    world = World()
    yield world
    for supervisor in world.supervisors:
        await supervisor.stop()


class TestAnotherNamespace:
    async def test_a_server_that_claims_the_id(self, world):
        """It drives nobody's cluster: the resource is refused, and the cluster gets no order."""
        world.create("a", execution={"suspend": True})
        world.see()
        await world.until(lambda: world.state("a") == "NothingToDo" or world.state("a") == "Suspended")
        world.servers["evil"] = fake = OneAnswer()
        world.create("evil", "evil", brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see()
        await world.until(lambda: world.state("evil") not in {"", "Planning", "Queued"})
        assert world.state("evil") == "ClusterOwnedElsewhere"
        assert "connectionRef" in world.ready("evil")[1]
        assert (world.real.altered, fake.asked[0]) == ([], "describe_cluster")

    async def test_a_server_that_claims_the_id_first_after_a_restart(self, world):
        """The owner on record wins, whoever comes first: the open run is never shown to it."""
        await world.draining()
        world.servers["other"] = Cluster([1, 2, 3, 4])
        world.create("b", "other", execution={"suspend": True})
        await world.restart("b")
        await world.until(lambda: world.state("b") not in {"", "Planning", "Queued"})
        assert world.state("b") == "ClusterOwnedElsewhere"
        world.see("a")
        await world.until(lambda: world.supervisor._engines.get("c"))
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")
        assert all(1 not in replicas for replicas in world.real.lists("orders"))
        assert not any(world.real.values.values())

    async def test_right_credentials_are_no_permission(self, world):
        """Another namespace is refused whatever its credentials: it may be the same cluster."""
        await world.draining()
        world.create("b", execution={"suspend": True})
        world.see("b")
        await world.until(lambda: world.state("b") == "ClusterOwnedElsewhere")


class TestSameNamespace:
    async def test_two_listeners(self, world):
        """Their addresses are disjoint; it is the same cluster, also where the other one is first after a restart."""
        await world.draining()
        world.servers["other"] = listener_of(world.real, 9094)
        world.create("a", "other", "s", execution={"suspend": True})
        world.see()
        await world.until(lambda: world.state("a", "s") in {"Queued", "Suspended"})
        await world.restart()
        await world.until(
            lambda: world.state("a", "s") in {"Queued", "Suspended"} and world.state("a") == "Rebalancing"
        )
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")
