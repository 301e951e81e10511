"""An operator's supervisor with clusters in memory, which several namespaces and several servers claim."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import ClusterInfo
from kafka_rebalance.model.topology import Broker, BrokerId
from kafka_rebalance.reconcile.connection_book import NamedConnection
from kafka_rebalance.reconcile.supervisor import Supervisor

REF = {"connectionRef": {"name": "prod", "namespace": "k"}}
"""The spec.kafka of a resource that names what ``SharedClusters.connection`` creates."""


class Cluster(KafkaInMemory):
    """A cluster that is closed and connected to again."""

    cluster_id = "c"

    @property
    def info(self):
        return replace(super().info, cluster_id=self.cluster_id)

    async def close(self):
        pass


class Away:
    """A server that is gone."""

    async def describe_cluster(self):
        raise Transient("KafkaUnreachable", "no broker answered", retry_after=0.01)

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


def placed(monkeypatch, *, ending=False):
    """What engines are given from now on to serve; ``ending``: or only to end."""
    found, place, place_throttles = [], NamedConnection.place, NamedConnection.place_throttles

    def one(self, rebalance, engine, refusal=None):
        found.extend([rebalance.name] if refusal is None or ending else [])
        place(self, rebalance, engine, refusal)

    def throttles(self, given, engine):
        found.extend(throttle.name for throttle in given.values())
        place_throttles(self, given, engine)

    monkeypatch.setattr(NamedConnection, "place", one)
    monkeypatch.setattr(NamedConnection, "place_throttles", throttles)
    return found


class SharedClusters:
    """``servers`` by the host of spec.kafka.bootstrapServers."""

    def __init__(self):
        self.kube = KubeInMemory()
        self.real = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
        self.servers = {"kafka": self.real}
        self.supervisors = []
        self.clock, self.count = StoppedClock(), 0
        self.begin()

    def begin(self, **options):
        """Start the operator, without any resource seen."""
        self.supervisor = Supervisor(self.kube, self.connect, self.loads, self.clock, **options)
        self.supervisors.append(self.supervisor)

    def connect(self, settings, _owner):
        return self.servers[settings.bootstrap_servers.partition(":")[0]]

    async def loads(self, _cluster_id):
        return None

    def create(self, namespace, server="kafka", name="r", plural=REBALANCES, **spec):
        """A resource with an inline connection, unless ``kafka`` is given."""
        self.count += 1
        metadata = {"name": name, "namespace": namespace, "uid": f"u-{self.count}"}
        metadata["creationTimestamp"] = (NOON + timedelta(seconds=self.count)).isoformat()
        spec = {"kafka": {"bootstrapServers": f"{server}:9092"}, **spec}
        return self.kube.create(plural, {"metadata": metadata, "spec": spec})

    def connection(self, namespace="k", server="kafka", name="prod", *, see=True, **allowed):
        """A KafkaConnection; ``allowed``: spec.allowedNamespaces."""
        self.count += 1
        metadata = {"name": name, "namespace": namespace, "uid": f"u-{self.count}"}
        metadata["creationTimestamp"] = (NOON + timedelta(seconds=self.count)).isoformat()
        spec = {"bootstrapServers": f"{server}:9092", "allowedNamespaces": allowed or {"from": "All"}}
        body = self.kube.create(CONNECTIONS, {"metadata": metadata, "spec": spec})
        if see:
            self.supervisor.connection_seen(body, deleted=False)
        return body

    def edit(self, plural, namespace, name, **spec):
        body = self.kube.edit(plural, namespace, name, **spec)
        self.supervisor.seen(plural, body, deleted=False)

    def gone(self, plural, namespace, name):
        body = self.kube.resources.pop((plural, namespace, name))
        self.supervisor.seen(plural, body, deleted=True)

    def see(self, *namespaces):
        for (plural, namespace, _), body in list(self.kube.resources.items()):
            if not namespaces or namespace in namespaces:
                self.supervisor.seen(plural, body, deleted=False)

    def condition(self, namespace, kind, name="r", plural=REBALANCES):
        conditions = self.kube.resources[plural, namespace, name].get("status", {}).get("conditions", ())
        return next((c for c in conditions if c["type"] == kind), None)

    def ready(self, namespace, name="r", plural=REBALANCES):
        found = self.condition(namespace, "Ready", name, plural)
        return (found["reason"], found["message"]) if found else ("", "")

    def state(self, namespace, name="r", plural=REBALANCES):
        return self.ready(namespace, name, plural)[0]

    @property
    def binding(self):
        """What is on record of the cluster."""
        found = [body for name, body in self.kube.config_maps.items() if name.startswith("binding-")]
        return json.loads(found[0]["data"]["binding.json"]) if found else None

    @property
    def owner(self):
        """The owner on record."""
        return self.binding["owner"] if self.binding else None

    @property
    def runs(self):
        """The stored outcome of the run of each rebalance r, by namespace; None: open."""
        found = [json.loads(b["data"]["run.json"]) for n, b in self.kube.config_maps.items() if n.startswith("run-")]
        return {run["namespace"]: run["outcome"] for run in found if run["name"] == "r"}

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

        for _ in range(12000):
            if looked():
                return
            self.clock.at += timedelta(seconds=1)
            await asyncio.sleep(0.005)
        raise AssertionError({key: self.ready(key[1], key[2], key[0]) for key in self.kube.resources})

    async def deleted(self, namespace):
        """The rebalance of the namespace is deleted, and gone."""
        body = self.kube.delete(REBALANCES, namespace, "r", self.clock.at.isoformat())
        self.supervisor.rebalance_seen(body, deleted=False)
        await self.until(lambda: (REBALANCES, namespace, "r") not in self.kube.resources)

    async def draining(self, flying=4, **spec):
        """Namespace a has copies in flight to a slow broker, under a throttle."""
        self.real.slow = {BrokerId(4)}
        rate = {"leaderRate": "1Mi", "followerRate": "1Mi"}
        self.create("a", brokers={"decommission": [1]}, throttle=rate, **spec)
        self.see("a")
        await self.until(lambda: len(self.real.flying) == flying)

    async def claimed_by(self, fake, topic, **spec):
        """Another server claims the cluster id first, before a topic is on record.

        Four copies of a drain of its broker 1 are in flight there.
        """
        self.servers["evil"] = fake
        self.create("evil", "evil", "first", execution={"suspend": True})
        self.see("evil")
        await self.until(lambda: self.owner)
        fake.create(topic, [[1, 2, 3]] * 4, "evil")
        fake.slow = {BrokerId(4)}
        self.create("evil", "evil", brokers={"decommission": [1]}, **spec)
        self.see("evil")
        await self.until(lambda: len(fake.flying) == 4)

    async def restart(self, *first):
        """The operator is killed; after the restart, the resources of these namespaces are seen first."""
        await self.supervisor.stop()
        self.begin()
        self.see(*first)
