"""A server is refused as another cluster although it is the owner's: the advice of the operator must work."""

import json
import shlex

import pytest
from tests.fakes.shared_clusters import REF, Away, Cluster, listener_of, placed

from kafka_rebalance.api.v1alpha1 import CONNECTIONS
from kafka_rebalance.execution.ledger import Ledger
from kafka_rebalance.execution.ledger_json import ledger_to_json
from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.topology import BrokerId

PROD = {"namespace": "k", "connection": "prod"}


def name_of(world, kind):
    return next(name for name in world.kube.config_maps if name.startswith(f"{kind}-"))


def follow(world, message):
    """Annotate as the message says."""
    command = shlex.split(message.partition("run: ")[2].partition(";")[0])
    *start, name, _, annotation = command[:7]
    assert start == ["kubectl", "annotate", "-n", world.kube.namespace]
    key, _, value = annotation.partition("=")
    body = world.kube.config_maps[name.removeprefix("configmap/")]
    version = str(int(body["metadata"]["resourceVersion"]) + 1000)
    body["metadata"] |= {"annotations": {key: value}, "resourceVersion": version}


class TestAllTopicsCreatedAgainAndTheListenerMoved:
    """This happened while the operator was down, with an open run of a permitted namespace and throttles in place."""

    @pytest.fixture
    async def moved(self, world):
        world.connection(names=["a"])
        await world.draining(kafka=REF)
        await world.supervisor.stop()
        data = world.kube.config_maps[name_of(world, "binding")]["data"]
        data["binding.json"] = json.dumps({**json.loads(data["binding.json"]), "topics": {"deleted": "AAAA"}})
        world.servers["new"] = listener_of(world.real, 9094)
        world.servers["kafka"] = Away()
        world.kube.edit(CONNECTIONS, "k", "prod", bootstrapServers="new:9094")
        return world

    async def test_the_advice_keeps_the_cluster_with_its_owner(self, moved):
        """The annotation names the servers, and confirms only these."""
        moved.begin()
        moved.see()
        await moved.until(lambda: moved.state("k", "prod", CONNECTIONS) == "ClusterIdCollision")
        follow(moved, moved.ready("k", "prod", CONNECTIONS)[1])
        await moved.until(lambda: moved.state("k", "prod", CONNECTIONS) == "Connected")
        assert (moved.owner, moved.binding["confirmed"]) == (PROD, "")
        moved.real.arrive()
        await moved.until(lambda: moved.state("a") == "Succeeded")
        assert not any(moved.real.values.values())

    @pytest.mark.parametrize("named", ["ledger", "resource"])
    async def test_a_lost_record_gives_it_to_no_permitted_namespace(self, moved, named, monkeypatch):
        """A server of that namespace answers first. The ledger names the owner, or the resource of the run does."""
        del moved.kube.config_maps[name_of(moved, "binding")]
        if named == "resource":  # the ledger was saved by an operator that did not record the owner there
            index = moved.kube.config_maps[name_of(moved, "ledger")]["data"]
            described = json.loads(index["index.json"])
            del described["attributes"]["owner"]
            index["index.json"] = json.dumps(described)
        moved.servers["new"], there = Away(), moved.servers["new"]
        moved.servers["evil"] = evil = Cluster([1, 2, 3, 4])
        moved.create("a", "evil", "mine", brokers={"decommission": [1]}, throttle={"unlimited": True})
        served = placed(monkeypatch)
        moved.begin()
        moved.see()
        await moved.until(lambda: moved.state("a", "mine") == "ClusterOwnedElsewhere")
        assert moved.owner == PROD
        moved.servers["new"] = there
        await moved.until(lambda: moved.state("k", "prod", CONNECTIONS) == "Connected")
        moved.real.arrive()
        await moved.until(lambda: moved.state("a") == "Succeeded")
        assert (set(served), evil.altered) == ({"a/r"}, [])
        assert not any(moved.real.values.values())


class TestOneOfSeveralAddresses:
    """The owner adds the address of another cluster, which answers first, or an address leads elsewhere."""

    @pytest.fixture
    async def stopped(self, world):
        world.connection(names=["a"])
        await world.draining(kafka=REF)
        await world.supervisor.stop()
        world.servers["evil"] = Cluster([7, 8, 9], other=[[7, 8, 9]])
        return world

    async def collides(self, world):
        throttled = dict(world.real.values)
        world.begin()
        world.see()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterIdCollision")
        assert (world.real.values, world.runs) == (throttled, {"a": None})

    async def test_an_address_on_record_does_not_prove_the_others(self, stopped):
        """What answers is compared with the brokers and topics on record."""
        stopped.kube.edit(CONNECTIONS, "k", "prod", bootstrapServers="evil:9092,kafka:9092")
        await self.collides(stopped)

    async def test_an_address_on_record_is_no_proof_if_all_brokers_differ(self, stopped):
        """The host name may point to another cluster by now. Deleting topics does not change broker ids."""
        stopped.servers["kafka"] = stopped.servers["evil"]
        await self.collides(stopped)


class TestThrottlesOfAnotherOwner:
    """A KafkaConnection outranks the owner on record, and its server has no topic on record."""

    @pytest.mark.parametrize("topics", [{}, {"bogus": "AAAA"}])
    async def test_the_advice_takes_them_over(self, world, topics):
        """If it is the same cluster, the KafkaConnection takes over the throttles and the runs of the former owner."""
        ledger = Ledger(entries={"orders": {LIST_NAMES[0]: frozenset({"0:1"})}})
        await BindingStore(world.kube).save(Binding("c", Owner("a"), frozenset({BrokerId(1)}), topics))
        await LedgerStore(world.kube).save("c", ledger_to_json(ledger))
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterIdCollision")
        follow(world, world.ready("k", "prod", CONNECTIONS)[1])
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert world.owner == PROD
        assert world.binding["recognised"] == [{"namespace": "a", "connection": ""}]
