"""Claims of a cluster that overlap in time with the rounds of an engine, with other claims and with slow servers."""

import asyncio
from functools import partial

import pytest
from tests.fakes.shared_clusters import REF, Cluster, listener_of

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES
from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.store import OriginStore, RunStore
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile import engines
from kafka_rebalance.reconcile.act.claimed_server import Claimed
from kafka_rebalance.reconcile.act.cluster_owners import ClusterOwners
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle


class Hanging(Cluster):
    """A server that claims the id of the cluster; from the first question about topics on it gives no answer."""

    def __init__(self, *arguments, **lists):
        super().__init__(*arguments, **lists)
        self.hanging, self.answers = asyncio.Event(), asyncio.Event()

    async def topic_ids(self, topics=None):
        self.hanging.set()
        await self.answers.wait()
        return await super().topic_ids(topics)


class TestServersThatHang:
    async def test_the_first_one_that_claims_the_id(self, world):
        """Nothing is bound to it before it has answered; the owner does not wait for that."""
        world.servers["evil"] = hanging = Hanging([1, 2, 3, 4], t=[[1]])
        world.create("evil", "evil", execution={"suspend": True})
        world.see("evil")
        await world.until(hanging.hanging.is_set)
        world.create("a")
        world.see("a")
        await world.until(lambda: world.state("a") == "Succeeded")
        hanging.answers.set()
        await world.until(lambda: world.state("evil") == "ClusterOwnedElsewhere")
        assert world.owner["namespace"] == "a"

    async def test_a_connection_that_outranks_the_owner(self, world):
        """The owner is served until it has answered, after a restart too; then it is another cluster."""
        await world.draining(1, execution={"parallelPartitionCount": 1})
        world.servers["wrong"] = hanging = Hanging([1, 2, 3, 4], t=[[1]])
        world.connection(server="wrong")
        await world.until(hanging.hanging.is_set)
        await world.restart("k")
        hanging.hanging.clear()
        await world.until(hanging.hanging.is_set)
        world.see("a")
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")
        brokers = {"include": [1, 3, 4], "decommission": [2]}
        world.create("a", name="s", brokers=brokers, throttle={"unlimited": True})
        world.real.slow = {BrokerId(1)}
        world.see("a")
        await world.until(lambda: world.real.flying)
        hanging.answers.set()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterIdCollision")
        assert hanging.altered == []

    async def test_the_owner_that_is_outranked(self, world, monkeypatch):
        """Its last round is cancelled when it has had its time; what that had begun to send ends before."""
        monkeypatch.setattr(engines, "_LAST_ROUND_SECONDS", 0.05)
        monkeypatch.setattr(engines, "_LATE_SECONDS", 0.5)
        await world.draining(1, execution={"parallelPartitionCount": 1})
        world.servers["new"] = listener_of(world.real, 9094)
        asked, late, found = asyncio.Event(), [], world.supervisor._engines
        former = found.get("c")

        async def hang():
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                asyncio.get_running_loop().call_later(0.05, lambda: late.append(found.get("c")))

        world.real.describe_cluster = hang
        await world.until(asked.is_set)
        world.connection(server="new:9092,kafka")  # the address of the owner is one of this cluster
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert world.owner["connection"] == "prod"
        assert late[0] is former


class TestEviction:
    async def test_of_an_engine_that_is_given_a_resource_meanwhile(self, world, monkeypatch):
        """No engine that has ended keeps a resource."""
        world.create("a", execution={"suspend": True})
        world.create("b")
        world.see("a")
        await world.until(lambda: world.owner)
        world.see("b")
        await world.until(lambda: world.state("b") == "ClusterOwnedElsewhere")
        engine = world.supervisor._engines.get("c").engine
        other = next(known for known in world.supervisor._book if known.owner.namespace == "b")
        retire, why = engine.retire, Refused("ClusterOwnedElsewhere", "not yours")

        def place_after():
            retire()
            for rebalance in other.rebalances.values():
                other.place(rebalance, engine, why)

        monkeypatch.setattr(engine, "retire", place_after)
        world.connection()
        await world.until(lambda: world.owner["connection"] == "prod" and not other.placed)

    async def test_of_an_engine_whose_server_is_being_asked_what_it_is_known_by(self, world):
        """Its answer is not put on record: the cluster has another owner now."""
        world.create("a", execution={"suspend": True})
        world.see("a")
        await world.until(lambda: world.owner)
        before, wrong = world.binding, Cluster([7, 8], t=[[7, 8]])
        found = world.supervisor._engines
        ended, server = found.get("c")._replace(admin=wrong), Claimed(await wrong.describe_cluster(), wrong)
        await server.judged(lambda: found._remember(ended, server))
        assert world.binding == before


class TestRefusedResources:
    """A namespace that may not use a connection does not delay permitted ones, even if its status takes long."""

    @staticmethod
    def held(world, monkeypatch, namespace, resource="r"):
        """The status of this refused resource is being written if the first event is set, until the second is."""
        begun, written, patch_status = asyncio.Event(), asyncio.Event(), world.kube.patch_status

        async def patch(plural, where, name, change):
            if (where, name) == (namespace, resource):
                begun.set()
                await written.wait()
            return await patch_status(plural, where, name, change)

        monkeypatch.setattr(world.kube, "patch_status", patch)
        return begun, written

    async def reported(self, world, monkeypatch):
        """The status of a refused resource is being written, until this event is set."""
        world.connection(names=["a"])
        begun, written = self.held(world, monkeypatch, "evil")
        world.create("evil", kafka=REF)
        world.see("evil")
        await world.until(begun.is_set)
        return written

    async def test_others_do_not_wait_for_their_status(self, world, monkeypatch):
        written = await self.reported(world, monkeypatch)
        world.create("a", kafka=REF)
        world.see("a")
        await world.until(lambda: world.state("a") == "Succeeded")
        written.set()
        await world.until(lambda: world.state("evil") == "ConnectionNotPermitted")

    async def test_one_that_has_begun_a_run_comes_first(self, world, monkeypatch):
        """Steps in flight end, although the resources of its namespace before it take long."""
        world.connection(names=["a"])
        await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
        await world.supervisor.stop()
        world.kube.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
        begun, _ = self.held(world, monkeypatch, "a", "before")
        world.begin()
        world.supervisor.seen(REBALANCES, world.create("a", kafka=REF, name="before"), deleted=False)
        world.see()
        await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
        await world.until(begun.is_set)

    async def test_one_that_is_permitted_meanwhile(self, world, monkeypatch):
        """It is served when what was begun for it has ended: two must not write its records at the same time."""
        written = await self.reported(world, monkeypatch)
        world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "All"})
        world.create("a", kafka=REF)
        world.see("a")
        await world.until(lambda: world.state("a") == "Succeeded")
        assert {r.name for r in world.supervisor._engines.get("c").engine.rebalances.values()} == {"a/r"}
        written.set()
        await world.until(lambda: world.state("evil") in {"Succeeded", "NothingToDo"})

    async def test_those_of_other_namespaces_do_not_wait_for_its_server(self, world):
        """Open runs of its own cluster name the connection now, and it does not answer where they were begun."""
        world.connection(names=["friend"])
        world.create("friend", kafka=REF)
        world.servers["evil"] = fake = Hanging([1, 2, 3, 4], **{f"t{n}": [[1, 2, 3]] for n in range(3)})
        fake.cluster_id = "x"
        fake.slow = {BrokerId(4)}
        fake.answers.set()
        world.create("evil", "evil", "keeper", topics={"include": ["none"]})
        names = [f"r{n}" for n in range(3)]
        for n, name in enumerate(names):
            spec = {"topics": {"include": [f"t{n}"]}, "throttle": {"unlimited": True}}
            world.create("evil", "evil", name, brokers={"decommission": [1]}, **spec)
        world.see()
        await world.until(lambda: all(world.state("evil", name) == "Rebalancing" for name in names))
        await world.until(lambda: world.state("friend") == "Succeeded")
        fake.answers.clear()
        fake.hanging.clear()
        for name in names:
            world.edit(REBALANCES, "evil", name, kafka=REF)
        await world.until(fake.hanging.is_set)
        world.create("stranger", kafka=REF)
        world.see("stranger")
        await world.until(lambda: world.state("stranger") == "ConnectionNotPermitted")
        world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
        await world.deleted("friend")
        assert not fake.answers.is_set()
        fake.answers.set()
        await world.until(lambda: all(world.state("evil", name) == "ConnectionNotPermitted" for name in names))


class TestEditedConnection:
    async def test_while_a_plan_is_being_finished(self, world, monkeypatch):
        """The round that is under way opens a run after it was looked whether there is one: the engine stays for it.

        Nothing is sent for it, as the connection leads elsewhere.
        """
        world.connection()
        world.real.slow = {BrokerId(4)}
        planned, looked = asyncio.Event(), asyncio.Event()
        begin, work_in = Lifecycle.begin, ClusterOwners.work_in

        async def begin_later(*arguments):
            planned.set()
            await looked.wait()
            await begin(*arguments)

        async def look(owners, cluster_id):
            found = await work_in(owners, cluster_id)
            looked.set()
            return found

        monkeypatch.setattr(Lifecycle, "begin", begin_later)
        world.create("a", kafka=REF, brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see("a")
        await world.until(planned.is_set)
        world.servers["other"] = other = Cluster([7, 8], t=[[7, 8]])
        other.cluster_id = "d"
        monkeypatch.setattr(ClusterOwners, "work_in", look)
        world.edit(CONNECTIONS, "k", "prod", bootstrapServers="other:9092")
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterChanged")
        await world.until(lambda: world.state("a") == "ClusterChanged")
        body = world.kube.delete(REBALANCES, "a", "r", world.clock.at.isoformat())
        world.supervisor.rebalance_seen(body, deleted=False)
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert world.real.altered == other.altered == []


class TestUnreadableTopics:
    @pytest.mark.parametrize(
        ("unreadable", "state"), [("failing", "KafkaUnreachable"), ("hidden", "KafkaAuthorizationFailed")]
    )
    async def test_where_a_run_was_begun_is_not_known(self, world, unreadable, state):
        """It waits and says so, instead of being taken for the run of another server. Then it ends as it should."""
        world.connection(names=["a"])
        await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
        world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
        await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
        setattr(world.real, unreadable, {"orders"})
        await world.restart()
        await world.until(lambda: world.state("a") == state)
        assert "is not known whether the open run started in Kafka cluster c" in world.ready("a")[1]
        setattr(world.real, unreadable, set())
        await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
        world.real.arrive()
        await world.until(lambda: not any(world.real.values.values()))
        assert sum(1 in replicas for replicas in world.real.lists("orders")) == 3


class TestAnEditThatLeadsToAnotherCluster:
    """The former engine is about to begin its finished plan. It must not replace the run of now."""

    async def test_in_the_round_that_would_open_it(self, world, monkeypatch):
        former, engine = self.planned_in_former(world, monkeypatch)
        describe, asked, answers = former.describe_cluster, asyncio.Event(), asyncio.Event()

        async def slow():
            if asyncio.current_task() is not before.memory.planning:
                asked.set()
                await answers.wait()
            return await describe()

        await world.until(lambda: engine() and any(r.memory.planning for r in engine().engine.rebalances.values()))
        (before,) = engine().engine.rebalances.values()
        monkeypatch.setattr(former, "describe_cluster", slow)
        await world.until(asked.is_set)
        await world.until(before.memory.planning.done)
        await self.moves_in_the_other(world, engine, answers)

    async def test_while_its_record_is_written(self, world, monkeypatch):
        save, asked, answers = RunStore.save, asyncio.Event(), asyncio.Event()

        async def slow(*arguments):
            if not asked.is_set():
                asked.set()
                await answers.wait()
            await save(*arguments)

        monkeypatch.setattr(RunStore, "save", slow)
        _, engine = self.planned_in_former(world, monkeypatch)
        await world.until(asked.is_set)
        await self.moves_in_the_other(world, engine, answers)

    def planned_in_former(self, world, monkeypatch):
        monkeypatch.setattr(world.real, "slow", {BrokerId(4)})
        world.connection()
        world.servers["former"] = former = Cluster([1, 2, 3], t=[[1]] * 4)
        former.cluster_id = "former"
        world.create("a", "former", brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see("a")
        return former, partial(world.supervisor._engines.get, "former")

    async def moves_in_the_other(self, world, engine, answers):
        (before,) = engine().engine.rebalances.values()
        world.kube.resources[REBALANCES, "a", "r"]["spec"].pop("kafka")
        world.edit(REBALANCES, "a", "r", kafka=REF)
        await world.until(lambda: world.real.flying)
        answers.set()
        await world.until(lambda: engine() is None)
        run = await RunStore(world.kube).load(before.uid)
        assert (run.cluster_id, run.open) == ("c", True)
        assert await OriginStore(world.kube).load(before.uid, run.run_id)
