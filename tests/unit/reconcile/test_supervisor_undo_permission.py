"""An undo moves nothing without permission, and nothing while the run is suspended or its cluster frozen."""

import json

import pytest
from tests.fakes.shared_clusters import REF, Cluster
from tests.unit.reconcile.test_supervisor_cordons import Cordoning

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile import supervisor

ONE_BY_ONE = {"parallelLeaderMovements": 1}


def order_undo(world):
    """As `kafka-rebalance undo` does."""
    records = [json.loads(b["data"]["run.json"]) for n, b in world.kube.config_maps.items() if n.startswith("run-")]
    body = world.kube.resources[REBALANCES, "a", "r"]
    body["metadata"].setdefault("annotations", {})[UNDO_ANNOTATION] = records[0]["plan_hash"]
    world.supervisor.seen(REBALANCES, body, deleted=False)


async def refused(world):
    """The namespace of the rebalance has lost its permission; its lists then."""
    world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
    await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
    return world.real.lists("orders")


async def rounds_later(world):
    """A permitted rebalance that has nothing to do was planned meanwhile, and ended."""
    world.create("k", kafka=REF, topics={"include": ["none"]})
    world.see("k")
    await world.until(lambda: world.state("k") == "NothingToDo")


@pytest.fixture
async def led(world):
    """A run has moved leaders, and ended."""
    world.servers["kafka"] = world.real = Cluster([1, 2, 3], orders=[[1, 2, 3]] * 30)
    world.connection(names=["a"])
    world.create("a", kafka=REF, execution=ONE_BY_ONE)
    world.see()
    await world.until(lambda: world.state("a") == "Succeeded")
    return world


class TestRefused:
    async def test_an_undo_under_way_rests(self, led):
        moved = led.real.lists("orders")
        order_undo(led)
        await led.until(lambda: led.real.lists("orders") != moved)
        await refused(led)
        await rounds_later(led)  # what was ordered before has arrived
        rests = led.real.lists("orders")
        led.gone(REBALANCES, "k", "r")
        await rounds_later(led)
        assert (led.real.lists("orders"), led.runs["a"]) == (rests, None)
        led.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["a", "k"]})
        await led.until(lambda: led.runs["a"] == "Undone")

    async def test_an_undo_that_is_ordered_then(self, world, monkeypatch):
        """The engine still has the rebalance, because it has just ended its run."""
        world.servers["kafka"] = world.real = Cordoning([1, 2, 3, 4], orders=[[1, 2, 3]] * 9 + [[1, 2, 4]])
        world.connection(names=["a"])
        world.real.slow = {BrokerId(3)}
        world.create("a", kafka=REF, brokers={"decommission": [4]}, throttle={"unlimited": True})
        world.see()
        await world.until(lambda: world.real.flying and world.real.cordoned == [4])
        await refused(world)
        monkeypatch.setattr(supervisor, "_LOOK_SECONDS", 60.0)
        await rounds_later(world)
        world.real.slow = set()
        world.real.arrive()
        await world.until(lambda: world.runs["a"] == "Succeeded")
        ended = world.real.lists("orders")
        order_undo(world)
        world.gone(REBALANCES, "k", "r")
        await rounds_later(world)
        assert (world.runs["a"], world.real.lists("orders"), world.real.cordoned) == ("Succeeded", ended, [4])


@pytest.mark.parametrize(("how", "state"), [("freeze", "Frozen"), ("suspend", "Suspended")])
async def test_held(led, how, state):
    """Copies of an undo wait too; the lists are as the run has left them."""
    moved = led.real.lists("orders")
    if how == "freeze":
        led.create("k", name="t", plural=REASSIGNMENT_THROTTLES, kafka=REF, freeze=True)
        led.see("k")
        await led.until(lambda: led.state("k", "t", REASSIGNMENT_THROTTLES) == "Applied")
    else:
        led.edit(REBALANCES, "a", "r", execution=ONE_BY_ONE | {"suspend": True})
    order_undo(led)
    await led.until(lambda: led.state("a") == state)
    await rounds_later(led)
    assert (led.real.lists("orders"), led.runs["a"]) == (moved, None)
