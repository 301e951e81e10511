"""What is restored in a cluster does not wait for another one, which is slow."""

import asyncio

from tests.fakes.shared_clusters import Cluster
from tests.unit.reconcile.test_unfinished_work import left_in, restarted, unthrottled

from kafka_rebalance.api.v1alpha1 import CONNECTIONS
from kafka_rebalance.reconcile import unfinished_work


async def test_a_slow_cluster_whose_connection_is_edited(world, monkeypatch):
    """The edit waits for the present round in its former cluster. Throttles in others are restored meanwhile."""
    monkeypatch.setattr(unfinished_work, "_EVERY_SECONDS", 0.02)
    slow, answers = Cluster([1, 2, 3], mine=[[1, 2, 3]]), asyncio.Event()
    slow.cluster_id, describe, asked = "d", slow.describe_cluster, asyncio.Event()
    other = Cluster([1, 2, 3], mine=[[1, 2, 3]])
    other.cluster_id = "f"
    world.servers |= {"slow": slow, "other": other}
    edited, look = asyncio.Event(), unfinished_work.UnfinishedWork._look

    async def look_then(work):
        await edited.wait()
        await look(work)

    async def held():
        asked.set()
        await answers.wait()
        return await describe()

    monkeypatch.setattr(unfinished_work.UnfinishedWork, "_look", look_then)
    await left_in(world)
    world.connection("x", "slow", see=False)
    await restarted(world)
    await world.until(lambda: world.supervisor._engines.get("d"))
    engine = world.supervisor._engines.get("d").engine
    slow.describe_cluster = held
    engine.wake()
    await world.until(asked.is_set)
    world.edit(CONNECTIONS, "x", "prod", bootstrapServers="other:9092")
    await world.until(lambda: world.supervisor._engines._one_claim("d").locked())
    edited.set()
    world.real.arrive()
    await world.until(lambda: unthrottled(world))
    assert world.supervisor._engines.get("d").engine is engine
    answers.set()
    await world.until(lambda: world.supervisor._engines.get("f"))
