"""How many plans an engine makes at a time: each may need hundreds of MB."""

import asyncio

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.renamed_resources import Renamed

from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.act.retention import limit
from kafka_rebalance.reconcile.runs import plan_maker
from kafka_rebalance.reconcile.state.record import Stores


async def test_one_at_a_time(monkeypatch):
    """The number of resources does not matter: a user can create as many as the API server accepts.

    A plan that waits for another one has not read the cluster yet.
    """
    make_plan, known_ones, now, most = plan_maker.make_plan, plan_maker.known_ones, 0, 0

    def read(*arguments):
        nonlocal now, most
        now += 1
        most = max(most, now)
        return known_ones(*arguments)

    async def observed(*arguments):
        nonlocal now
        await asyncio.sleep(0)
        made = await make_plan(*arguments)
        now -= 1
        return made

    monkeypatch.setattr(plan_maker, "known_ones", read)
    monkeypatch.setattr(plan_maker, "make_plan", observed)
    topics = {f"t{number}": [[1], [1]] for number in range(4)}
    operator = Renamed(KafkaInMemory([1, 2], **topics))
    for topic in topics:
        operator.apply_another(topic, topics={"include": [topic]})
    for _ in range(8):
        await operator.round()
    assert most == 1


@pytest.mark.parametrize("is_gone", [False, True])
async def test_a_resource_that_is_gone_without_a_deletion_seen(is_gone):
    """Others removed its finalizer while the plan was made. The plan that is stored after that is deleted."""
    operator = OperatorInMemory(KafkaInMemory([1, 2], t=[[1], [1]]))
    operator.apply()
    for _ in range(2):
        await operator.engine.tick()
    rebalance = operator.engine.rebalances.pop("u-1")
    if is_gone:
        operator.kube.resources.clear()
    await rebalance.memory.planning
    stores = Stores(PlanStore(operator.kube), OriginStore(operator.kube), RunStore(operator.kube))
    assert await limit(stores, Resources(operator.kube, operator.clock.now)) == 0
    assert any(name.startswith("plan-") for name in operator.kube.config_maps) is not is_gone


async def test_a_deletion_while_the_plan_is_stored(monkeypatch):
    """The API server still carries the request out. Nothing of it may stay: no run names the plan."""
    operator = OperatorInMemory(KafkaInMemory([1, 2], t=[[1], [1]]))
    create, goes_on, under_way = operator.kube.create_config_map, asyncio.Event(), []
    asked = asyncio.Event()

    async def created_late(body):
        await goes_on.wait()
        return await create(body)

    async def request(body):
        if not body["metadata"]["name"].startswith("plan-"):
            return await create(body)
        under_way.append(asyncio.create_task(created_late(body)))
        asked.set()
        return await asyncio.shield(under_way[-1])

    monkeypatch.setattr(operator.kube, "create_config_map", request)
    operator.apply()
    for _ in range(2):
        await operator.engine.tick()
    await asked.wait()
    operator.delete()
    deleting = asyncio.create_task(operator.until_true(lambda: not operator.engine.rebalances))
    await asyncio.wait({deleting, asyncio.create_task(asyncio.to_thread(int))}, return_when=asyncio.FIRST_COMPLETED)
    goes_on.set()
    await asyncio.gather(deleting, *under_way)
    assert [name for name in operator.kube.config_maps if name.startswith("plan-")] == []
