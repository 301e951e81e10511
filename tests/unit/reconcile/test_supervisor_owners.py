"""The operator changes a Kafka cluster only with the client of its owner, even if others claim its id."""

import asyncio
import json

import pytest
from tests.fakes.shared_clusters import REF, Away, Cluster, OneAnswer, listener_of

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Permanent, Refused
from kafka_rebalance.kube.blobs import KIND_LABEL, object_name
from kafka_rebalance.model.topology import Broker, BrokerId
from kafka_rebalance.reconcile import engines
from kafka_rebalance.reconcile.act import cluster_owners
from kafka_rebalance.reconcile.act.cluster_owners import ClusterOwners
from kafka_rebalance.reconcile.throttle.ledger_cache import INLINE_BYTES
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper


class TestAnotherNamespace:
    async def test_a_server_that_claims_the_id(self, world):
        """It gets no engine: the resource is refused, and the cluster gets no order."""
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

    async def test_a_server_that_claims_the_id_later(self, world):
        """Bound with an id of its own, it answers with the other one in mid-run: it is not asked further."""
        world.create("a", execution={"suspend": True})
        world.see()
        await world.until(lambda: world.owner)
        world.servers["evil"] = fake = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
        fake.cluster_id, fake.slow = "x", {BrokerId(4)}
        world.create("evil", "evil", execution={"suspend": True})
        world.see("evil")
        await world.until(lambda: world.state("evil") in {"NothingToDo", "Suspended"})
        fake.cluster_id = "c"
        world.create("evil", "evil", "s", brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see("evil")
        await world.until(lambda: world.state("evil", "s") == "OtherCluster")
        assert (fake.altered, world.real.altered) == ([], [])

    async def test_a_server_that_claims_the_id_first_after_a_restart(self, world):
        """The owner on record wins in any order: the open run is never shown to the server."""
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
        """Another namespace is refused with any credentials: it may be the same cluster."""
        await world.draining()
        world.create("b", execution={"suspend": True})
        world.see("b")
        await world.until(lambda: world.state("b") == "ClusterOwnedElsewhere")


class TestManyClusters:
    """Servers may claim a new id at any time. What is left in a cluster stays on record until it can be restored."""

    @staticmethod
    def server(world, number):
        world.servers[f"s{number}"] = found = Cluster([1, 2, 3], orders=[[1, 2]])
        found.cluster_id = f"id-{number}"

    def bindings(self, world):
        return [name for name in world.kube.config_maps if name.startswith("binding-")]

    async def test_a_namespace_has_a_limit(self, world, monkeypatch):
        """Other namespaces have their own."""
        monkeypatch.setattr(cluster_owners, "MOST_CLUSTERS", 2)
        for number in range(6):
            self.server(world, number)
            world.create("a" if number < 5 else "b", f"s{number}", f"r{number}", execution={"suspend": True})
        world.see("a")
        world.see("b")
        names = [f"r{number}" for number in range(5)]
        await world.until(lambda: all(world.state("a", name) not in {"", "Planning", "Queued"} for name in names))
        refused = [name for name in names if world.state("a", name) == "InlineConnectionRefused"]
        assert len(refused) == 3
        await world.until(lambda: world.state("b", "r5") not in {"", "Planning", "Queued"})
        assert world.state("b", "r5") != "InlineConnectionRefused"
        assert len(self.bindings(world)) == 3

    async def test_the_clusters_on_record_are_known_after_a_restart(self, world, monkeypatch):
        monkeypatch.setattr(cluster_owners, "MOST_CLUSTERS", 1)
        for number in range(2):
            self.server(world, number)
        world.create("a", "s0", "r0", execution={"suspend": True})
        world.see("a")
        await world.until(lambda: self.bindings(world))
        world.create("a", "s1", "r1", execution={"suspend": True})
        await world.restart("a")
        await world.until(lambda: world.state("a", "r1") == "InlineConnectionRefused")
        assert len(self.bindings(world)) == 1

    async def test_a_namespace_at_its_limit_ends_no_engine(self, world, monkeypatch):
        """The record of an idle cluster was lost: another namespace could have it, if it may have one more."""
        monkeypatch.setattr(cluster_owners, "MOST_CLUSTERS", 1)
        world.create("b", topics={"include": ["none"]})
        self.server(world, 0)
        world.create("a", "s0", "r0", execution={"suspend": True})
        world.see()
        await world.until(lambda: len(self.bindings(world)) == 2)
        await world.until(lambda: world.state("b") == "NothingToDo")
        engine = world.supervisor._engines.get("c").engine
        del world.kube.config_maps[object_name("binding", "c")]
        world.create("a", name="r1", execution={"suspend": True})
        world.see("a")
        await world.until(lambda: world.state("a", "r1") == "InlineConnectionRefused")
        assert world.supervisor._engines.get("c").engine is engine
        assert not engine.retired

    async def test_the_record_of_a_cluster_is_small(self, world):
        """A namespace may have 20 of them, and all are read at once. Its servers claim as much as a client accepts."""
        brokers = [BrokerId(2**31 - 1 - number) for number in range(1500)]
        world.servers["s"] = found = Cluster([1], **{f"{'t' * 247}{number:02}": [[1]] for number in range(20)})
        found.brokers |= {b: Broker(b, host="h" * 244 + str(b), port=65535) for b in brokers}
        found.dirs |= dict.fromkeys(brokers, ("/data",))
        world.create("a", "s", execution={"suspend": True})
        world.see("a")
        await world.until(lambda: world.binding)
        assert len(world.binding["brokers"]) == 1501
        assert len(json.dumps(world.binding)) < 64 * 1024

    @pytest.mark.parametrize(("spec", "most"), [({}, INLINE_BYTES), ({"kafka": REF}, None)])
    async def test_the_throttle_ledger_of_a_cluster_has_a_limit(self, world, monkeypatch, spec, most):
        """Its servers may show other brokers and topics in each round. Those of a KafkaConnection are trusted."""
        limits = []

        def keeper(*arguments, most):
            limits.append(most)
            return ThrottleKeeper(*arguments, most=most)

        monkeypatch.setattr(engines, "ThrottleKeeper", keeper)
        if spec:
            world.connection()
        world.create("a", execution={"suspend": True}, **spec)
        world.see("a")
        await world.until(lambda: world.supervisor._engines.get("c"))
        assert limits == [most]


class TestManyRecords:
    """A namespace may have thousands of runs on record: a list of them takes long, and a rest follows."""

    @staticmethod
    def listed(world, monkeypatch, kind):
        """The lists of records of this kind from now on; each waits until the event is set."""
        lists, may_end, list_config_maps = [], asyncio.Event(), world.kube.list_config_maps

        async def one(labels):
            if labels == {KIND_LABEL: kind}:
                lists.append(kind)
                await may_end.wait()
            return await list_config_maps(labels)

        monkeypatch.setattr(world.kube, "list_config_maps", one)
        return lists, may_end

    async def test_the_owner_does_not_wait_for_lists_for_others(self, world, monkeypatch):
        """Servers of another namespace that claim its cluster are refused by the binding alone."""
        world.connection()
        await world.until(lambda: world.owner)
        world.servers["kafka"] = Away()
        for number in range(3):
            world.servers[f"s{number}"] = Cluster([1], t=[[1]])
            world.create("evil", f"s{number}", f"r{number}")
        await world.restart("k")
        _, may_end = self.listed(world, monkeypatch, "run")
        claim, refused = ClusterOwners.claim, []

        async def claimed(self, claimant, *arguments, **options):
            try:
                return await claim(self, claimant, *arguments, **options)
            except Refused as error:
                refused.append((claimant.owner.namespace, error.reason))
                raise

        monkeypatch.setattr(ClusterOwners, "claim", claimed)
        world.see("evil")
        await world.until(lambda: len(refused) == 3)
        assert set(refused) == {("evil", "ClusterOwnedElsewhere")}
        may_end.set()

    async def test_named_clusters_cost_no_list(self, world, monkeypatch):
        """A start waits for a look at each binding."""
        world.connection()
        await world.until(lambda: world.owner)
        await world.supervisor.stop()
        world.begin()
        lists, may_end = self.listed(world, monkeypatch, "run")
        may_end.set()
        world.servers["kafka"] = Away()
        await world.supervisor.know(())
        assert world.owner
        assert not lists

    async def test_engines_that_end_look_at_all_bindings_together(self, world, monkeypatch):
        """Users can end many engines. If each end started a look at all bindings, owners would wait for these."""
        for number in range(8):
            world.servers[f"s{number}"] = found = Cluster([1, 2], t=[[1]])
            found.cluster_id = f"id-{number}"
            world.create("a", f"s{number}", f"r{number}", execution={"suspend": True})
        world.see("a")
        engines = world.supervisor._engines
        await world.until(lambda: all(engines.get(f"id-{number}") for number in range(8)))
        lists, may_end = self.listed(world, monkeypatch, "binding")
        for number in range(8):
            world.gone(REBALANCES, "a", f"r{number}")
        await world.until(lambda: lists and not any(engines.get(f"id-{number}") for number in range(8)))
        assert len(lists) == 1
        may_end.set()
        await world.until(lambda: not engines._closing)
        assert len(lists) == 2
        assert world.owner is None

    async def test_connections_that_end_look_at_all_bindings_together(self, world, monkeypatch):
        """Users can name any number of KafkaConnections that do not exist, and delete all these resources at once."""
        for number in range(8):
            world.create("a", name=f"r{number}", kafka={"connectionRef": {"name": f"none-{number}"}})
        world.see("a")
        await world.until(lambda: all(world.state("a", f"r{number}") == "ConnectionNotFound" for number in range(8)))
        lists, may_end = self.listed(world, monkeypatch, "binding")
        for number in range(8):
            world.gone(REBALANCES, "a", f"r{number}")
        await world.until(lambda: lists and not list(world.supervisor._book))
        assert len(lists) == 1
        may_end.set()
        await world.until(lambda: not world.supervisor._engines._closing)
        assert len(lists) == 2


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

    async def test_a_server_without_the_topics(self, world):
        """It is another cluster with the same id: the open run is never shown to it."""
        await world.draining()
        world.servers["other"] = Cluster([1, 2, 3, 4])
        world.create("a", "other", "s", execution={"suspend": True})
        await world.supervisor.stop()
        world.begin()
        world.supervisor.rebalance_seen(world.kube.resources[REBALANCES, "a", "s"], deleted=False)
        await world.until(lambda: world.state("a", "s") == "ClusterIdCollision")
        world.see()
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")

    @pytest.mark.parametrize(
        ("unreadable", "state"), [("failing", "KafkaUnreachable"), ("hidden", "KafkaAuthorizationFailed")]
    )
    async def test_whose_topics_cannot_be_read(self, world, unreadable, state):
        """They may be there: it is not taken for another cluster, and it goes on when they can be read."""
        await world.draining()
        world.servers["other"] = listener = listener_of(world.real, 9094)
        known = {tp.topic for tp in world.real.states}
        setattr(listener, unreadable, known)
        world.create("a", "other", "s", execution={"suspend": True})
        await world.supervisor.stop()
        world.begin()
        world.supervisor.rebalance_seen(world.kube.resources[REBALANCES, "a", "s"], deleted=False)
        await world.until(lambda: world.state("a", "s") == state)
        setattr(listener, unreadable, set())
        await world.until(lambda: world.state("a", "s") in {"Queued", "Suspended"})

    async def test_whose_topics_were_all_deleted(self, world):
        """At the address on record it is the same cluster, after a restart too: the open run goes on."""
        await world.draining()
        name = next(name for name in world.kube.config_maps if name.startswith("binding-"))
        data = world.kube.config_maps[name]["data"]
        data["binding.json"] = json.dumps({**json.loads(data["binding.json"]), "topics": {"deleted": "AAAA"}})
        await world.restart("a")
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_with_a_broker_that_may_hang(self, world):
        """After a restart it may have a call of the run, although it is not live any more."""
        await world.draining()
        del world.real.brokers[BrokerId(2)]
        await world.restart("a")
        (run,) = (rebalance for known in world.supervisor._book for rebalance in known.rebalances.values())
        await world.until(lambda: run.memory.called)
        assert run.memory.called == {1, 2, 3, 4}

    async def test_a_listener_that_has_moved(self, world):
        """After a restart, the run goes on with another connection of the same namespace."""
        await world.draining(flying=1, execution={"parallelPartitionCount": 1})
        world.servers["new"] = listener_of(world.real, 9094)
        world.servers["kafka"] = Away()
        world.create("a", "new", "s", execution={"suspend": True})
        await world.restart()
        await world.until(lambda: world.real.arrive() or world.state("a") == "Succeeded")
        assert all(1 not in replicas for replicas in world.real.lists("orders"))


class TestWithoutPermissionOnTheCluster:
    """Reassignments cannot be listed; what a cluster is known by can be read."""

    async def test_it_is_said_and_work_begins_when_it_is_there(self, world):
        """The missing permission is named, and topics are on record before there is work."""
        refused = Permanent("KafkaAuthorizationFailed", "Kafka does not allow us to list reassignments")

        async def refuse(_topics=None):
            raise refused

        may, world.real.may = world.real.may, frozenset()
        world.real.list_reassignments = world.real.describe_partitions = refuse
        world.create("a", brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see()
        await world.until(lambda: world.state("a") == "KafkaAuthorizationFailed" and world.condition("a", "Permitted"))
        assert world.condition("a", "Permitted")["message"].startswith("Alter on the cluster is not permitted")
        assert world.binding["topics"] == {"orders": "orders-id-1"}
        world.real.may = may
        del world.real.list_reassignments, world.real.describe_partitions
        world.supervisor._engines.get("c").engine.wake()  # else it looks again in a while
        await world.until(lambda: world.state("a") == "Succeeded")


class TestBinding:
    async def test_ends_with_the_last_resource(self, world):
        """Then another namespace may have the cluster."""
        world.create("a")
        world.create("b")
        world.see("a")
        await world.until(lambda: world.state("a") == "Succeeded" and world.owner["namespace"] == "a")
        world.see("b")
        await world.until(lambda: world.state("b") == "ClusterOwnedElsewhere")
        world.gone(REBALANCES, "a", "r")
        await world.until(lambda: world.state("b") == "NothingToDo" and world.owner["namespace"] == "b")

    async def test_that_has_ended_while_nobody_looked(self, world):
        """All resources are known before it is decided that nothing names the cluster."""
        world.create("a")
        world.see("a")
        await world.until(lambda: world.state("a") == "Succeeded")
        await world.supervisor.stop()
        del world.kube.resources[REBALANCES, "a", "r"]
        world.create("b")
        world.begin()
        await world.supervisor.know(())
        await world.until(lambda: world.state("b") == "NothingToDo")

    async def test_an_upgrade_in_mid_run(self, world):
        """A run from before there were bindings keeps its cluster, even if another connection comes first."""
        await world.draining()
        world.create("b", execution={"suspend": True})
        await world.supervisor.stop()
        for name in [name for name in world.kube.config_maps if name.startswith("binding-")]:
            del world.kube.config_maps[name]
        world.begin()
        world.see("b")
        await world.until(lambda: world.state("b") == "ClusterOwnedElsewhere")
        assert world.owner["namespace"] == "a"
        world.see()
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_that_cannot_be_read(self, world):
        """Nothing is guessed: the message names the ConfigMap."""
        world.create("a")
        world.see()
        await world.until(lambda: world.state("a") == "Succeeded")
        await world.supervisor.stop()
        name = next(name for name in world.kube.config_maps if name.startswith("binding-"))
        world.kube.config_maps[name]["data"] = {"binding.json": "{}"}
        world.create("a", "kafka", "s")
        world.begin()
        world.see()
        await world.until(lambda: world.state("a", "s") == "StoredStateCorrupt")
        assert name in world.ready("a", "s")[1]
