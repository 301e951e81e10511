"""A KafkaConnection outranks inline connections: it takes a cluster over, without the work of other servers."""

from dataclasses import replace

import pytest
from tests.fakes.shared_clusters import REF, Cluster, placed
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.ledger import Ledger
from kafka_rebalance.execution.ledger_json import ledger_to_json
from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES, RATE_NAMES
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.engines import Engines

SET = Ledger(entries={"orders": {LIST_NAMES[0]: frozenset({"0:1"})}})


class TestOutranks:
    """A KafkaConnection takes a cluster over, but no work of a server that only claims its id."""

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

    @pytest.mark.parametrize("restart", [False, True])
    async def test_ends_a_run_whose_topics_were_created_again(self, world, restart):
        """That it was begun in this cluster follows from the other topics that its owner had on record."""
        world.real.create("other", [[1, 2, 3]])
        await world.draining(topics={"include": ["orders"]})
        world.real.delete("orders")
        world.real.create("orders", [[2, 3, 4]] * 4, "id-2")
        world.connection()
        await world.until(lambda: world.owner["connection"] == "prod")
        if restart:
            await world.restart()
        world.supervisor.seen(REBALANCES, world.kube.delete(REBALANCES, "a", "r", NOON.isoformat()), deleted=False)
        await world.until(lambda: (REBALANCES, "a", "r") not in world.kube.resources)
        assert world.real.lists("orders") == [[2, 3, 4]] * 4

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

    async def test_a_finished_one_whose_status_was_not_written(self, world):
        """The operator was killed between the record of the end and the status: the next one reports the end."""
        world.create("a", brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see("a")
        await world.until(lambda: world.state("a") == "Succeeded")
        body = world.kube.resources[REBALANCES, "a", "r"]
        (ready,) = (c for c in body["status"]["conditions"] if c["type"] == "Ready")
        ready.update(reason="Rebalancing", status="False")
        del body["status"]["completedAt"]
        await world.supervisor.stop()
        world.begin()
        world.connection()
        await world.until(lambda: world.owner["connection"] == "prod")
        world.see("a")
        await world.until(lambda: world.state("a") != "Rebalancing")
        assert world.state("a") == "Succeeded"

    async def test_one_whose_end_was_recorded_without_an_answer(self, world):
        """The engine takes its run for open. What is stored counts when no engine has it any more, so it is let go."""
        await world.draining()
        world.connection()
        await world.until(lambda: world.state("a") == "ClusterOwnedElsewhere")
        (run,) = await RunStore(world.kube).list_all()
        await RunStore(world.kube).save(replace(run, outcome=RunOutcome.SUCCEEDED, closed_at=world.clock.at))
        await world.deleted("a")
        assert world.runs["a"] == "Succeeded"

    @pytest.mark.parametrize("restart", [False, True])
    async def test_a_finished_one_with_a_problem(self, world, monkeypatch, restart):
        """Its annotation could not be written. No round of an engine ends that problem any more."""

        async def no_answer(*_arguments):
            raise Transient("ApiServerUnreachable", "annotate: no answer", 1.0)

        monkeypatch.setattr(world.kube, "annotate", no_answer)
        world.create("a", brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see("a")
        await world.until(lambda: world.state("a") == "Succeeded")
        world.edit(REBALANCES, "a", "r", execution={"parallelPartitionCount": 2})
        await world.until(lambda: world.state("a") == "ApiServerUnreachable")
        world.connection()
        if restart:
            await world.restart()
        await world.until(lambda: world.owner["connection"] == "prod")
        world.see("a")
        await world.until(lambda: world.state("a") != "ApiServerUnreachable")
        assert world.state("a") == "Succeeded"

    @pytest.mark.parametrize("edited", [False, True])
    async def test_takes_no_open_run_of_a_server_that_claimed_the_id_before(self, world, monkeypatch, edited):
        """No topic of the plan is there with its id: what it has begun is not ended here, nor rolled back.

        Naming the KafkaConnection without permission does not help either.
        """
        await world.claimed_by(Cluster([1, 2, 3, 4]), "orders", throttle={"unlimited": True})
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
        """The cluster has none of that server's topics, so its throttle ledger would remove those of other tools."""
        await world.claimed_by(Cluster([1, 2, 3, 4]), "orders", throttle={"leaderRate": "1Ki", "followerRate": "1Ki"})
        there = {("orders", name): "0:1,0:2,0:3,0:4" for name in LIST_NAMES}
        world.real.values = {**there, **{(BrokerId(1), name): "1024" for name in RATE_NAMES}}
        before = dict(world.real.values)
        world.connection(names=["a"])
        await world.until(lambda: world.real.values != before or world.state("k", "prod", CONNECTIONS))
        refused = "ClusterIdCollision"
        await world.until(lambda: world.real.values != before or world.state("k", "prod", CONNECTIONS) == refused)
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
        await world.claimed_by(Cluster([1, 2, 3, 4]), "orders", throttle={"unlimited": True})
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

    async def test_topics_that_were_created_again(self, world):
        """What is on record is compared as the owner sees the cluster now, not as it was up to an hour ago."""
        await world.draining()
        ids = {"orders": "orders-id-2"}
        world.real.states = {tp: replace(state, topic_id=ids[tp.topic]) for tp, state in world.real.states.items()}
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert world.owner == {"namespace": "k", "connection": "prod"}

    async def test_a_server_that_claims_the_id_after_topics_were_created_again(self, world):
        """It shows none of the topics that the owner sees now."""
        await world.draining()
        world.real.states = {tp: replace(state, topic_id="new") for tp, state in world.real.states.items()}
        world.servers["fake"] = fake = Cluster([1, 2, 3, 4], bogus=[[1, 2, 3]] * 4)
        world.connection(server="fake")
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterIdCollision")
        await world.until(lambda: world.binding["topics"] == {"orders": "new"})
        assert world.owner["namespace"] == "a"
        assert fake.altered == []

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

    @pytest.mark.parametrize("throttled", [False, True])
    async def test_open_runs_without_a_resource_do_not_hold_it(self, world, throttled):
        """Somebody has taken the finalizer away. Nobody can delete what is gone already, so it is not asked for."""
        await self.squatter(world, brokers={"decommission": [1]}, throttle={"unlimited": True})
        await world.until(lambda: world.servers["evil"].flying)
        world.gone(REBALANCES, "evil", "r")
        await world.supervisor.stop()
        if throttled:
            await LedgerStore(world.kube).save("c", ledger_to_json(SET))
        world.begin()
        await world.supervisor.know(())
        world.connection()
        if throttled:
            await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterIdCollision")
            message = world.ready("k", "prod", CONNECTIONS)[1]
            assert not [part for part in ("evil/r", "delete the resources") if part in message]
            await LedgerStore(world.kube).delete_if("c", lambda _: True)
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert (world.runs, world.real.altered) == ({"evil": "Abandoned"}, [])

    async def test_looks_for_work_when_nothing_can_begin_any_more(self, world, monkeypatch):
        """A run that the engine of that server opens while it is being ended counts."""
        await self.squatter(world, execution={"suspend": True})
        evict, opened = Engines._evict, []
        uid = world.create("evil", "evil", "s", execution={"suspend": True})["metadata"]["uid"]

        async def late(engines, running):
            if not opened:
                opened.append(Run(uid, "evil", "s", "c", "run", "p", "h", opened_at=world.clock.at))
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
