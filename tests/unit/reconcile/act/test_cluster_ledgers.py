"""The throttle ledger of a cluster is deleted when nothing needs it any more."""

import asyncio
from functools import partial

import pytest
from tests.fakes.shared_clusters import REF, Cluster

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.ledger import Ledger
from kafka_rebalance.execution.ledger_json import ledger_to_json
from kafka_rebalance.execution.reassignment_throttle import LEADER_RATE
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.blobs import object_name
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile import connection_retries, engines

SET = ledger_to_json(Ledger(cordons=frozenset({BrokerId(1)})))


def recorded(world, kind):
    return [name for name in world.kube.config_maps if name.startswith(f"{kind}-")]


async def planned(world, cluster_id):
    """A server with this id, and a resource that leads to it: its ledger is stored."""
    world.servers["s"] = found = Cluster([1, 2], t=[[1]])
    found.cluster_id = cluster_id
    world.create("a", "s")
    world.see("a")
    await world.until(lambda: world.state("a") == "NothingToDo")
    assert recorded(world, "ledger")


class TestWithTheBinding:
    async def test_an_empty_one(self, world):
        """A server may claim another cluster id for each resource."""
        for number in range(3):
            await planned(world, f"id-{number}")
            world.gone(REBALANCES, "a", "r")
            await world.until(lambda: not recorded(world, "binding"))
            assert not recorded(world, "ledger")

    @pytest.mark.parametrize("carried_out", [False, True])
    async def test_without_an_answer(self, world, monkeypatch, carried_out):
        """Or the operator is killed: the binding stays too, and the next look ends both."""
        await planned(world, "id")
        delete, asked = world.kube.delete_config_map, []

        async def lost(name, version=None):
            if name.startswith("ledger-") and not asked:
                asked.append(name)
                if carried_out:
                    await delete(name, version)
                raise Transient("ApiServerUnreachable", "no answer")
            return await delete(name, version)

        monkeypatch.setattr(world.kube, "delete_config_map", lost)
        world.gone(REBALANCES, "a", "r")
        await world.until(lambda: asked and not world.supervisor._engines._closing)
        assert recorded(world, "binding")
        assert bool(recorded(world, "ledger")) is not carried_out
        await world.supervisor._engines.unfinished()
        assert not [*recorded(world, "binding"), *recorded(world, "ledger")]

    async def test_not_one_with_entries(self, world):
        """It alone says what to restore."""
        await BindingStore(world.kube).save(Binding("id", Owner("a")))
        await LedgerStore(world.kube).save("id", SET)
        await world.supervisor.know(())
        assert recorded(world, "binding")
        assert await LedgerStore(world.kube).load("id") == SET

    async def test_not_with_a_throttle_resource(self, world):
        """If it were missing when the KafkaConnection is back, rates of others would be taken for ours."""
        world.connection()
        world.create("k", plural=REASSIGNMENT_THROTTLES, kafka=REF, leaderRate="50Mi")
        world.see("k")
        state = partial(world.state, "k", plural=REASSIGNMENT_THROTTLES)
        await world.until(lambda: state() == "NothingToThrottle")
        world.real.values[BrokerId(1), LEADER_RATE] = "1000"
        del world.kube.resources[CONNECTIONS, "k", "prod"]
        await world.supervisor.stop()
        world.begin()
        await world.supervisor.know(())
        await world.until(lambda: not recorded(world, "binding"))
        await world.until(lambda: state() == "ConnectionNotFound")
        world.connection()
        await world.until(lambda: state() != "ConnectionNotFound")
        assert state() == "NothingToThrottle"

    async def test_not_while_a_run_may_be_undone(self, world, monkeypatch):
        """The undo opens the run again: a rate of others would be taken for ours if the ledger were missing."""
        monkeypatch.setattr(connection_retries, "FIRST_PAUSE_SECONDS", 0.02)
        world.real.values[BrokerId(2), LEADER_RATE] = "100000000"
        world.connection()
        world.create("a", brokers={"decommission": [1]}, kafka=REF)
        world.see("a")
        await world.until(lambda: world.state("a") == "Succeeded")
        world.gone(CONNECTIONS, "k", "prod")
        await world.until(lambda: not recorded(world, "binding"))
        await world.supervisor._engines._forget_ledgers()
        assert recorded(world, "ledger")
        world.connection()
        await world.until(lambda: recorded(world, "binding"))
        plan = world.kube.resources[REBALANCES, "a", "r"]["status"]["plan"]["hash"]
        world.kube.resources[REBALANCES, "a", "r"]["metadata"]["annotations"] = {UNDO_ANNOTATION: plan}
        await world.until(lambda: world.state("a") == "Undone")


class TestWithoutABinding:
    @pytest.fixture
    async def looked(self, world, monkeypatch):
        """Look as every hour."""
        monkeypatch.setattr(engines, "_REMEMBER_SECONDS", 0.01)
        task = asyncio.create_task(world.supervisor._engines.keep_remembering())
        yield
        task.cancel()

    async def test_what_earlier_versions_have_left(self, world, looked):
        """They deleted only the binding. What has entries stays, what cannot be read, and what is in use."""
        await planned(world, "id")
        store = LedgerStore(world.kube)
        await store.save("throttled", SET)
        await store.save("unknown", {"version": 99})
        await store.save("damaged", SET)
        world.kube.config_maps[store.where("damaged").rpartition("/")[2]]["binaryData"] = {}
        await store.save("left", ledger_to_json(Ledger()))
        await store.save("owned", ledger_to_json(Ledger()))
        await BindingStore(world.kube).save(Binding("owned", Owner("b")))
        world.kube.config_maps[object_name("binding", "owned")]["data"] = {}
        await world.until(lambda: len(recorded(world, "ledger")) == 5)
        await world.supervisor._engines._forget_ledgers()
        left = await store.load_all()
        assert None in left.values()
        assert {cluster_id for cluster_id, ledger in left.items() if ledger is not None} == {
            "id",
            "owned",
            "throttled",
            "unknown",
        }
