"""After a restart, an open run whose spec cannot be read comes to rest, and holds up no other rebalance."""

import pytest
from tests.fakes.shared_clusters import Cluster
from tests.unit.reconcile.test_engine_cordons import Brokers

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act.cordoning import CONFIG

INVALID = {"strategy": "PreferredLeaders", "replicationFactor": 3}
"""Neither field alone is refused."""
PROBLEM = "spec: replicationFactor is not allowed with the strategy PreferredLeaders, which copies nothing"


class Cordoning(Brokers, Cluster):
    """A cluster that is connected to again, and offers cordons. ``rounds``: how many have begun."""

    rounds = 0

    async def describe_cluster(self):
        self.rounds += 1
        return await super().describe_cluster()


@pytest.fixture
async def restarted(world):
    """Two of the four copies of r are in flight, and its spec cannot be read."""
    await world.draining(2, execution={"parallelPartitionCount": 2})
    world.edit(REBALANCES, "a", "r", **INVALID)
    await world.restart("a")
    await world.until(lambda: "reassignments in flight finish" in world.ready("a")[1])
    return world


def wake(world):
    """Without this, the engine looks only every few seconds."""
    world.supervisor._engines.get("c").engine.wake()


def on(broker, world):
    """The number of partitions with a replica on this broker."""
    return sum(broker in replicas for replicas in world.real.lists("orders"))


async def test_nothing_new_starts(restarted):
    """The reassignments in flight finish, under the throttle of the spec."""
    state, message = restarted.ready("a")
    assert state == "InvalidSpec"
    assert message == f"{PROBLEM}; no new step is started; reassignments in flight finish"
    rates = {value for (_, name), value in restarted.real.values.items() if name.endswith(".rate")}
    assert rates == {str(2**20)}
    restarted.real.arrive()
    await restarted.until(lambda: restarted.ready("a")[1].endswith("; no new step is started"))
    assert on(1, restarted) == 2
    assert not restarted.real.flying


async def test_others_do_not_wait_for_it(restarted):
    """Not even one that moves the same partitions, once nothing of it is in flight."""
    restarted.create("a", name="s", brokers={"decommission": [2]})
    restarted.see("a")
    await restarted.until(lambda: restarted.state("a", "s") == "Queued")
    restarted.real.slow = set()
    restarted.real.arrive()
    await restarted.until(lambda: restarted.state("a", "s") == "Succeeded")
    assert restarted.state("a") == "InvalidSpec"
    assert on(2, restarted) == 0


async def test_it_goes_on_when_its_spec_is_repaired(restarted):
    """The plan on record still holds if the spec asks for the same again."""
    restarted.real.slow = set()
    restarted.real.arrive()
    del restarted.kube.resources[REBALANCES, "a", "r"]["spec"]["replicationFactor"]
    restarted.edit(REBALANCES, "a", "r", strategy="MinimalMovement")
    await restarted.until(lambda: restarted.state("a") == "Succeeded")
    assert on(1, restarted) == 0


async def test_its_deletion_rolls_back(restarted):
    """As if it had been deleted before the restart."""
    restarted.real.slow = set()
    restarted.real.arrive()
    await restarted.deleted("a")
    assert on(1, restarted) == 4


async def test_a_broker_that_is_emptied_stays_cordoned(world):
    """Which brokers are to be empty is not known, so the run does not end before that is proved."""
    world.servers["kafka"] = world.real = Cordoning([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
    await world.draining()
    assert world.real.cordoned == [1]
    world.edit(REBALANCES, "a", "r", **INVALID)
    await world.restart("a")
    await world.until(lambda: world.state("a") == "InvalidSpec")
    world.real.slow = set()
    world.real.arrive()
    await world.until(lambda: wake(world) or world.ready("a")[1].endswith("; no new step is started"))
    rounds = world.real.rounds
    await world.until(lambda: wake(world) or world.real.rounds > rounds + 5)
    assert (world.runs["a"], set(world.real.values)) == (None, {(BrokerId(1), CONFIG)})
    del world.kube.resources[REBALANCES, "a", "r"]["spec"]["replicationFactor"]
    world.edit(REBALANCES, "a", "r", strategy="MinimalMovement")
    await world.until(lambda: world.state("a") == "Succeeded")
    assert world.condition("a", "Drained")["status"] == "True"
    assert world.real.cordoned == [1]
