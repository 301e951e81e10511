"""The operator changes a Kafka cluster only with the client of its owner, even if others claim its id."""

import asyncio
import json

import pytest
from tests.fakes.shared_clusters import REF, Away, Cluster, OneAnswer, listener_of, placed

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.ledger import Ledger
from kafka_rebalance.execution.ledger_json import ledger_to_json
from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES, RATE_NAMES
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.store import LedgerStore, RunStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.engines import Engines

SET = Ledger(entries={"orders": {LIST_NAMES[0]: frozenset({"0:1"})}})


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

    async def test_a_listener_that_has_moved(self, world):
        """The run goes on with another connection of the same namespace, after a restart too."""
        await world.draining()
        world.servers["new"] = listener_of(world.real, 9094)
        world.servers["kafka"] = Away()
        world.create("a", "new", "s", execution={"suspend": True})
        await world.restart()
        await world.until(lambda: world.state("a") == "Rebalancing")
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")


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


class TestKafkaConnection:
    async def test_leads_to_its_cluster(self, world):
        """Its own namespace may always use it; another one if it is permitted."""
        world.connection(names=["a"])
        for namespace in ("a", "b", "k"):
            world.create(namespace, kafka=REF)
        world.see()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        await world.until(lambda: {world.state("a"), world.state("k")} <= {"Succeeded", "NothingToDo"})
        await world.until(lambda: world.state("b") == "ConnectionNotPermitted")
        status = world.kube.resources[CONNECTIONS, "k", "prod"]["status"]
        assert (status["clusterId"], status["brokers"]) == ("c", {"live": 4})
        assert world.owner == {"namespace": "k", "connection": "prod"}

    async def test_edits_without_permission_wake_nobody(self, world, monkeypatch):
        """The rounds of the cluster are not for a namespace to order that may not use it."""
        world.connection(names=["a"])
        for namespace in ("a", "evil"):
            world.create(namespace, kafka=REF)
        world.see()
        await world.until(lambda: world.state("a") == "Succeeded" and world.state("evil") == "ConnectionNotPermitted")
        woken = []
        monkeypatch.setattr(world.supervisor._engines.get("c").engine, "wake", lambda: woken.append("c"))
        world.edit(REBALANCES, "evil", "r", execution={"suspend": True})
        world.create("evil", name="s", kafka=REF)
        world.create("evil", name="t", plural=REASSIGNMENT_THROTTLES, kafka=REF, freeze=True)
        world.see("evil")
        await world.until(lambda: world.state("evil", "t", REASSIGNMENT_THROTTLES) == "ConnectionNotPermitted")
        assert woken == []
        world.edit(REBALANCES, "a", "r", execution={"suspend": True})
        assert woken == ["c"]

    async def test_names_what_its_user_may_not(self, world):
        """Also while nothing is moved with it."""
        world.real.may -= {"AlterConfigs"}
        world.connection()
        world.see()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        status = world.kube.resources[CONNECTIONS, "k", "prod"]
        await world.until(lambda: status["status"].get("missingPermissions") == ["AlterConfigs on the cluster"])

    async def test_that_comes_later(self, world):
        """The resource waits for it."""
        world.create("a", kafka=REF)
        world.see()
        await world.until(lambda: world.state("a") == "ConnectionNotFound")
        world.connection()
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_permits_by_labels(self, world):
        """As they are now."""
        world.connection(selector={"matchLabels": {"kafka": "prod"}})
        world.create("a", kafka=REF)
        world.see()
        await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
        world.kube.labels["a"] = {"kafka": "prod", "more": "x"}
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_one_that_comes_while_labels_are_read(self, world, monkeypatch):
        """It was not judged with the others, so nothing is done for it, neither to move nor to freeze."""
        world.connection(selector={"matchLabels": {"kafka": "prod"}})
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        served, asked = placed(monkeypatch), []

        async def labels(namespace):
            asked.append(namespace)
            if len(asked) == 1:
                world.create("evil", name="late", kafka=REF, brokers={"decommission": [1]})
                world.create("evil", name="frozen", plural=REASSIGNMENT_THROTTLES, kafka=REF, freeze=True)
                world.see("evil")
            await asyncio.sleep(0)
            return {}

        monkeypatch.setattr(world.kube, "namespace_labels", labels)
        world.create("evil", kafka=REF)
        world.create("evil", name="s", kafka=REF)
        world.see("evil")
        await world.until(lambda: asked)
        await world.until(lambda: world.state("evil", "late") == "ConnectionNotPermitted")
        await world.until(lambda: world.state("evil", "frozen", REASSIGNMENT_THROTTLES) == "ConnectionNotPermitted")
        assert served == []

    async def test_takes_no_open_run_that_comes_while_others_are_looked_at(self, world, monkeypatch):
        """It was not looked up to which cluster that run belongs."""
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        world.servers["other"] = other = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]], more=[[1, 2, 3]])
        other.cluster_id, other.slow = "d", {BrokerId(4)}
        for name, topic in (("r", "orders"), ("s", "more")):
            spec = {"brokers": {"decommission": [1]}, "throttle": {"unlimited": True}, "topics": {"include": [topic]}}
            world.create("a", "other", name, **spec)
        world.see("a")
        await world.until(lambda: len(other.flying) == 2)
        served, edited, list_config_maps = placed(monkeypatch), [], world.kube.list_config_maps

        async def meanwhile(labels):
            found = await list_config_maps(labels)
            if not edited:
                edited.append("s")
                world.edit(REBALANCES, "a", "s", kafka=REF)
            return found

        world.edit(REBALANCES, "a", "r", kafka=REF)
        monkeypatch.setattr(world.kube, "list_config_maps", meanwhile)
        await world.until(lambda: (world.state("a"), world.state("a", "s")) == ("OtherCluster", "OtherCluster"))
        assert (served, edited) == ([], ["s"])

    async def test_outranks_inline_connections(self, world):
        """Their open runs stop, and continue when the resource names the KafkaConnection."""
        await world.draining(1, execution={"parallelPartitionCount": 1})
        world.connection()
        await world.until(lambda: world.owner["connection"] == "prod")
        await world.until(lambda: world.state("a") == "ClusterOwnedElsewhere")
        assert "name: prod, namespace: k" in world.ready("a")[1]
        world.real.arrive()
        await world.until(lambda: not any(world.real.values.values()))
        assert sum(1 in replicas for replicas in world.real.lists("orders")) == 3
        world.edit(REBALANCES, "a", "r", kafka=REF)
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_a_finished_one_that_is_edited_without_permission(self, world):
        """Its status is of the new spec. It still says what became of it, unless another plan is asked for."""
        world.create("a", brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see("a")
        await world.until(lambda: world.state("a") == "Succeeded")
        world.connection()
        await world.until(lambda: world.owner["connection"] == "prod")
        world.edit(REBALANCES, "a", "r", execution={"parallelPartitionCount": 2})
        body = world.kube.resources[REBALANCES, "a", "r"]
        await world.until(lambda: body["status"]["observedGeneration"] == body["metadata"]["generation"])
        assert world.state("a") == "Succeeded"
        world.edit(REBALANCES, "a", "r", brokers={"decommission": [2]})
        await world.until(lambda: body["status"]["observedGeneration"] == body["metadata"]["generation"])
        assert world.state("a") == "ClusterOwnedElsewhere"

    @pytest.mark.parametrize("edited", [False, True])
    async def test_takes_no_open_run_of_a_server_that_claimed_the_id_before(self, world, monkeypatch, edited):
        """No topic of the plan is there with its id: what it has begun is not ended here, nor rolled back.

        Naming the KafkaConnection without permission does not help either.
        """
        world.servers["evil"] = fake = Cluster([1, 2, 3, 4])
        world.create("evil", "evil", "first", execution={"suspend": True})
        world.see("evil")
        await world.until(lambda: world.owner)  # no topic is on record
        fake.create("orders", [[1, 2, 3]] * 4, "evil")
        fake.slow = {BrokerId(4)}
        world.create("evil", "evil", brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see("evil")
        await world.until(lambda: len(fake.flying) == 4)
        served = placed(monkeypatch, ending=True)
        world.connection(names=["a"])
        await world.until(lambda: world.state("evil") == "ClusterOwnedElsewhere")
        if edited:
            world.edit(REBALANCES, "evil", "r", kafka=REF)
            await world.until(lambda: world.state("evil") == "ConnectionNotPermitted")
        body = world.kube.delete(REBALANCES, "evil", "r", world.clock.at.isoformat())
        world.supervisor.rebalance_seen(body, deleted=False)
        world.create("a", kafka=REF)
        world.see("a")
        await world.until(lambda: world.state("a") in {"Succeeded", "NothingToDo"})
        assert set(served) == {"a/r"}

    async def test_takes_no_throttles_of_a_server_that_claimed_the_id_before(self, world):
        """No topic of that server is on record. To remove its throttles here would remove those of other tools."""
        world.servers["evil"] = fake = Cluster([1, 2, 3, 4])
        world.create("evil", "evil", "first", execution={"suspend": True})
        world.see("evil")
        await world.until(lambda: world.owner)
        fake.create("orders", [[1, 2, 3]] * 4, "evil")
        fake.slow = {BrokerId(4)}
        rate = {"leaderRate": "1Ki", "followerRate": "1Ki"}
        world.create("evil", "evil", brokers={"decommission": [1]}, throttle=rate)
        world.see("evil")
        await world.until(lambda: len(fake.flying) == 4)
        there = {("orders", name): "0:1,0:2,0:3,0:4" for name in LIST_NAMES}
        world.real.values = {**there, **{(BrokerId(1), name): "1024" for name in RATE_NAMES}}
        before = dict(world.real.values)
        world.connection(names=["a"])
        await world.until(lambda: world.real.values != before or world.state("k", "prod", CONNECTIONS))
        await world.until(lambda: world.real.values != before or "hour" in world.ready("k", "prod", CONNECTIONS)[1])
        assert world.real.values == before
        assert "delete the KafkaRebalances" in world.ready("k", "prod", CONNECTIONS)[1]
        assert world.owner["namespace"] == "evil"
        for name in ("r", "first"):
            body = world.kube.delete(REBALANCES, "evil", name, world.clock.at.isoformat())
            world.supervisor.rebalance_seen(body, deleted=False)
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert (world.real.values, world.real.altered) == (before, [])

    async def test_nor_those_that_it_sets_while_it_is_ended(self, world, monkeypatch):
        """It has an open run without a throttle when the KafkaConnection comes."""
        world.servers["evil"] = fake = Cluster([1, 2, 3, 4])
        world.create("evil", "evil", "first", execution={"suspend": True})
        world.see("evil")
        await world.until(lambda: world.owner)
        fake.create("orders", [[1, 2, 3]] * 4, "evil")
        fake.slow = {BrokerId(4)}
        world.create("evil", "evil", brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see("evil")
        await world.until(lambda: len(fake.flying) == 4)
        evict = Engines._evict

        async def late(engines, running):
            await evict(engines, running)
            await LedgerStore(world.kube).save("c", ledger_to_json(SET))

        monkeypatch.setattr(Engines, "_evict", late)
        world.connection(names=["a"])
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) in {"Connected", "ClusterIdCollision"})
        assert world.owner["namespace"] == "evil"

    @pytest.mark.parametrize("topics", [{}, {"bogus": "AAAA"}])
    async def test_says_how_to_get_a_cluster_with_throttles_of_another_owner(self, world, topics):
        """Nothing reaches the former server any more. The record of the owner alone does not help."""
        await BindingStore(world.kube).save(Binding("c", Owner("evil"), frozenset({BrokerId(9)}), topics))
        await LedgerStore(world.kube).save("c", ledger_to_json(SET))
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterIdCollision")
        message = world.ready("k", "prod", CONNECTIONS)[1]
        named = [name for name in world.kube.config_maps if f"/{name}" in message]
        assert any(name.startswith("ledger-") for name in named)
        for name in named:
            del world.kube.config_maps[name]
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")

    async def squatter(self, world, **spec):
        """A server that is not the cluster, and claimed its id first."""
        world.servers["evil"] = Cluster([1, 2, 3, 4], bogus=[[1, 2, 3]] * 4)
        world.servers["evil"].slow = {BrokerId(4)}
        world.create("evil", "evil", **spec)
        world.see()
        await world.until(lambda: world.owner and world.owner["namespace"] == "evil" and world.state("evil"))

    async def test_outranks_a_server_that_only_claimed_the_id(self, world):
        """Without work there is nothing to compare: the engine of that server is ended."""
        await self.squatter(world, execution={"suspend": True})
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert world.owner == {"namespace": "k", "connection": "prod"}
        await world.until(lambda: world.state("evil") == "ClusterOwnedElsewhere")

    async def test_names_who_holds_the_id_with_a_run(self, world):
        """The run of another cluster is never shown to it; with that run, what is in the way is gone."""
        await self.squatter(world, brokers={"decommission": [1]}, throttle={"unlimited": True})
        await world.until(lambda: world.runs.get("evil", "") is None)
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterIdCollision")
        message = world.ready("k", "prod", CONNECTIONS)[1]
        assert "belongs to the inline connections of namespace evil so far, and runs are open (evil/r)" in message
        assert "delete the KafkaRebalances" in message
        assert world.owner["namespace"] == "evil"
        world.supervisor.rebalance_seen(
            world.kube.delete(REBALANCES, "evil", "r", world.clock.at.isoformat()), deleted=False
        )
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert world.real.altered == []

    async def test_looks_for_work_when_nothing_can_begin_any_more(self, world, monkeypatch):
        """A run that the engine of that server opens while it is being ended counts."""
        await self.squatter(world, execution={"suspend": True})
        evict, opened = Engines._evict, []

        async def late(engines, running):
            if not opened:
                opened.append(Run("u-0", "evil", "r", "c", "run", "p", "h", opened_at=world.clock.at))
                await RunStore(world.kube).save(opened[0])
            await evict(engines, running)

        monkeypatch.setattr(Engines, "_evict", late)
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterIdCollision")
        assert world.owner["namespace"] == "evil"

    async def test_of_two_the_older_one_has_the_cluster(self, world):
        """Also if the younger one came first. The other one says so."""
        old = world.connection("k", see=False)
        world.connection("l")
        await world.until(lambda: world.state("l", "prod", CONNECTIONS) == "Connected")
        world.supervisor.connection_seen(old, deleted=False)
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        await world.until(lambda: world.state("l", "prod", CONNECTIONS) == "Conflicted")
        world.gone(CONNECTIONS, "k", "prod")
        await world.until(lambda: world.state("l", "prod", CONNECTIONS) == "Connected")

    async def test_permission_that_is_lost_in_mid_run(self, world):
        """What is in flight completes its step, nothing new starts; with the permission back, it goes on."""
        world.connection(names=["a"])
        await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
        world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
        await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
        world.real.arrive()
        await world.until(lambda: not any(world.real.values.values()))
        assert sum(1 in replicas for replicas in world.real.lists("orders")) == 3
        await world.restart()
        await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
        world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "All"})
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_a_deletion_without_permission(self, world):
        """It cancels what is in flight, and moves nothing back."""
        world.connection(names=["a"])
        await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
        world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
        await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
        world.real.arrive()
        await world.until(lambda: not any(world.real.values.values()))
        moved = world.real.lists("orders")
        body = world.kube.delete(REBALANCES, "a", "r", world.clock.at.isoformat())
        world.supervisor.rebalance_seen(body, deleted=False)
        await world.until(lambda: (REBALANCES, "a", "r") not in world.kube.resources)
        assert (world.real.lists("orders"), world.runs["a"]) == (moved, "Reverted")

    async def test_is_deleted_in_mid_run(self, world):
        """The client in memory is enough to come to rest; the run goes on when the KafkaConnection is back."""
        world.connection()
        await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
        world.gone(CONNECTIONS, "k", "prod")
        await world.until(lambda: world.state("a") == "ConnectionNotFound")
        world.real.arrive()
        await world.until(lambda: not any(world.real.values.values()))
        assert sum(1 in replicas for replicas in world.real.lists("orders")) == 3
        await world.restart()
        await world.until(lambda: world.state("a") == "ConnectionNotFound")
        assert world.owner == {"namespace": "k", "connection": "prod"}
        world.connection()
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_without_readable_metadata(self, world):
        """It cannot be reported anywhere but in the log; the others are served."""
        world.supervisor.connection_seen({"metadata": {"name": "prod"}, "spec": {}}, deleted=False)
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")

    async def test_whose_deletion_was_missed(self, world):
        """The watch may have a gap: within a minute or so, nothing uses it any more."""
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        del world.kube.resources[CONNECTIONS, "k", "prod"]
        await world.until(lambda: not list(world.supervisor._book))
        world.create("a", kafka=REF, brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see("a")
        await world.until(lambda: world.state("a") == "ConnectionNotFound")
        assert world.real.altered == []

    async def test_its_cluster_does_not_change_under_an_open_run(self, world):
        """The run ends with the former connection; then the new cluster is used."""
        world.connection()
        await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
        world.servers["other"] = other = Cluster([7, 8], t=[[7, 8]])
        other.cluster_id = "d"
        world.create("b", kafka=REF)
        world.see("b")
        world.edit(CONNECTIONS, "k", "prod", bootstrapServers="other:9092")
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterChanged")
        await world.until(lambda: world.state("b") == "ClusterChanged")
        assert other.altered == []
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert world.kube.resources[CONNECTIONS, "k", "prod"]["status"]["clusterId"] == "d"

    async def test_its_listener_may_be_moved(self, world):
        """The run goes on."""
        world.connection()
        await world.draining(kafka=REF)
        world.servers["new"] = listener_of(world.real, 9094)
        world.edit(CONNECTIONS, "k", "prod", bootstrapServers="new:9094")
        world.servers["kafka"] = Away()
        await world.restart()
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_of_another_cluster_takes_no_open_run(self, world):
        """An inline connection may be replaced, but not by one to another cluster."""
        await world.draining(1, execution={"parallelPartitionCount": 1})
        world.servers["other"] = other = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
        other.cluster_id = "d"
        world.connection(server="other")
        world.edit(REBALANCES, "a", "r", kafka=REF)
        await world.until(lambda: world.state("a") == "OtherCluster")
        world.real.arrive()
        await world.until(lambda: not any(world.real.values.values()))
        assert (sum(1 in replicas for replicas in world.real.lists("orders")), other.altered) == (3, [])

    async def test_inline_connections_may_be_refused(self, world):
        """With --require-connections."""
        world.begin(inline=False)
        world.create("a")
        world.see()
        await world.until(lambda: world.state("a") == "InlineConnectionRefused")
        assert world.owner is None
