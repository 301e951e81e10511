"""If an engine is ended for another owner, its connections start again, even while they wait for something."""

import asyncio

from tests.fakes.shared_clusters import Away, listener_of

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES


class Hangs(Away):
    """A server that answers nothing until it is gone."""

    def __init__(self):
        self.gone = asyncio.Event()

    async def describe_cluster(self):
        await self.gone.wait()
        return await super().describe_cluster()


class TestWhileItStarts:
    """An inline connection whose engine is ended before its rebalances are handed over."""

    async def test_while_it_waits_for_the_limits_of_others(self, world):
        """It asks again for the cluster, and its rebalances say who owns it now."""
        world.servers["hangs"] = hangs = Hangs()
        world.create("z", "hangs", "t", plural=REASSIGNMENT_THROTTLES, freeze=True)
        world.create("a", brokers={"decommission": [1]})
        world.see()
        await world.until(lambda: world.owner)
        world.connection(names=["k"])
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        hangs.gone.set()
        await world.until(lambda: world.state("a") == "ClusterOwnedElsewhere")

    async def test_while_its_spare_client_is_closed(self, world):
        """Another connection of the namespace has the new engine by then; the ended engine gets no resource."""
        world.create("a", execution={"suspend": True})
        world.see()
        await world.until(lambda: world.state("a") in {"NothingToDo", "Suspended"})
        world.servers["other"] = other = listener_of(world.real, 9094)
        closing, closed = asyncio.Event(), asyncio.Event()

        async def close():
            closing.set()
            await closed.wait()

        other.close = close
        world.create("a", "other", "s", execution={"suspend": True})
        world.see("a")
        await closing.wait()
        world.connection()
        await world.until(lambda: world.state("a") == "ClusterOwnedElsewhere")
        closed.set()
        await world.until(lambda: world.state("a", "s") == "ClusterOwnedElsewhere")
