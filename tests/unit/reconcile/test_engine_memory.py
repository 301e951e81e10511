"""An engine that ends frees its memory: what a large run needs is never searched for reference cycles."""

import asyncio
import gc
import weakref
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.shared_clusters import REF, Cluster

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.reconcile.rounds import Rounds
from kafka_rebalance.reconcile.runs.plan_maker import PlanMaker


@pytest.fixture(autouse=True)
def _no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def parts_of(engine):
    """Weak references to what keeps the readings of a cluster."""
    return [weakref.ref(part) for part in (engine, engine._rounds, engine._rounds._observer)]


def test_at_once_and_without_the_garbage_collector():
    """A KafkaConnection that is edited gets another engine; those before would stay in memory for ever."""
    operator = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2]] * 4))
    operator.assign(*(("t", number, [3, 2]) for number in range(4)))
    asyncio.run(operator.until("Rebalancing"))
    parts = parts_of(operator.engine)
    operator.restart()
    assert [part() for part in parts] == [None] * 3


class TestOfASupervisor:
    """Each server may claim any number of cluster ids, one after the other."""

    @pytest.fixture
    async def begun(self, world):
        """Returns a function that waits for the engine to know its cluster."""

        async def of(namespace, states=("NothingToDo", "Suspended", "Rebalancing")):
            await world.until(lambda: world.state(namespace) in states)
            return parts_of(world.supervisor._engines.get("c").engine)

        return of

    async def freed(self, world, parts):
        for _ in range(600):
            if not any(part() for part in parts):
                return
            world.clock.at += timedelta(seconds=1)
            await asyncio.sleep(0.005)
        raise AssertionError([part() for part in parts])

    async def test_without_its_last_resource(self, world, begun):
        world.create("a", execution={"suspend": True})
        world.see()
        parts = await begun("a")
        world.gone(REBALANCES, "a", "r")
        await self.freed(world, parts)

    async def test_after_a_run(self, world, begun):
        """A history of runs is read beside the rounds, and plans are made there."""
        world.create("a", brokers={"decommission": [1]})
        world.see()
        parts = await begun("a")
        await world.until(lambda: world.state("a") == "Succeeded")
        world.gone(REBALANCES, "a", "r")
        await self.freed(world, parts)

    async def test_of_a_kafka_connection(self, world, begun):
        world.connection()
        world.create("a", kafka=REF, execution={"suspend": True})
        world.see()
        parts = await begun("a")
        world.gone(REBALANCES, "a", "r")
        world.gone(CONNECTIONS, "k", "prod")
        await self.freed(world, parts)

    async def test_of_a_kafka_connection_that_leads_elsewhere(self, world, begun):
        world.servers["other"] = other = Cluster([1, 2, 3], t=[[1, 2]] * 4)
        other.cluster_id = "d"
        world.connection()
        world.create("a", kafka=REF, brokers={"decommission": [1]})
        world.see()
        parts = await begun("a", {"Succeeded"})
        world.edit(CONNECTIONS, "k", "prod", bootstrapServers="other:9092")
        await world.until(lambda: world.supervisor._engines.get("d"))
        await self.freed(world, parts)

    async def test_for_an_owner_that_outranks_it(self, world, begun):
        world.create("a", execution={"suspend": True})
        world.see()
        parts = await begun("a")
        world.connection()
        await world.until(lambda: world.state("a") == "ClusterOwnedElsewhere")
        await self.freed(world, parts)

    async def test_after_a_round_that_failed(self, world, begun):
        """The error is kept for the status. Its traceback would name everything that the round has read."""
        world.create("a", execution={"suspend": True})
        world.see()
        parts = await begun("a")

        async def fails():
            raise Transient("KafkaUnreachable", "no broker answered", retry_after=0.01)

        world.real.describe_cluster = fails
        await world.until(lambda: world.supervisor._engines.get("c").engine.problem is not None)
        world.gone(REBALANCES, "a", "r")
        await self.freed(world, parts)

    async def test_after_a_problem_of_one_rebalance(self, world, begun):
        """The same of an error that concerns only one."""
        world.create("a", brokers={"decommission": [7]}, execution={"suspend": True})
        world.see()
        parts = await begun("a", {"UnknownBroker"})
        (kept,) = world.supervisor._engines.get("c").engine.rebalances.values()
        world.gone(REBALANCES, "a", "r")
        await self.freed(world, parts)
        assert kept.memory.problem is not None

    @pytest.mark.parametrize("gone", [True, False])
    async def test_while_a_plan_is_made(self, world, begun, monkeypatch, gone):
        """The plan keeps what it has read of the cluster, and the rebalance keeps the plan's task."""
        asked = asyncio.Event()

        async def solved(*_):
            asked.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(PlanMaker, "_solved", solved)
        world.create("a", brokers={"decommission": [1]})
        world.see()
        parts = await begun("a", {"Planning"})
        await asked.wait()
        if gone:
            world.gone(REBALANCES, "a", "r")
        else:
            world.connection()
            await world.until(lambda: world.state("a") == "ClusterOwnedElsewhere")
        await self.freed(world, parts)

    async def test_the_readings_even_if_something_keeps_the_engine(self, world, begun):
        """As a reference cycle would that nobody has noticed."""
        world.create("a", execution={"suspend": True})
        world.see()
        await begun("a")
        engine = world.supervisor._engines.get("c").engine
        read = weakref.ref(engine._rounds._observer.sizes.replica_bytes)
        world.gone(REBALANCES, "a", "r")
        await self.freed(world, [read])
        assert isinstance(engine._rounds, Rounds)
