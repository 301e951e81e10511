"""Plans for KafkaConnections do not exhaust the container together, and no namespace keeps the others waiting."""

import asyncio

import pytest

from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning.problem.request import PartitionInput, PlanRequest
from kafka_rebalance.reconcile.runs import solving
from kafka_rebalance.reconcile.runs.plan_memory import START_BYTES, PlanMemory

MIB = 2**20
START = START_BYTES // MIB
LEAST = 256


class Container:
    """``free``: MiB, None: without a limit. ``planning``: the limits of the plans in MiB, by namespace."""

    def __init__(self, free):
        self.memory = PlanMemory(lambda: None if free is None else free * MIB, LEAST * MIB)
        self.planning, self._ends, self._tasks = {}, {}, {}

    def begin(self, namespace):
        self._ends[namespace] = asyncio.Event()
        self._tasks[namespace] = asyncio.create_task(self._plan(namespace, self._ends[namespace]))

    async def _plan(self, namespace, ends):
        async with self.memory.granted(namespace) as limit:
            self.planning[namespace] = limit // MIB
            await ends.wait()
            del self.planning[namespace]

    async def end(self, namespace):
        self._ends[namespace].set()
        await self._tasks[namespace]

    async def until(self, *namespaces, waiting=0):
        """Wait until exactly these namespaces plan, and this number of other plans waits for memory."""
        async with asyncio.timeout(60):
            # Nothing tells who begins to wait.
            while self.planning.keys() != set(namespaces) or len(self.memory._changed._waiters) != waiting:  # noqa: ASYNC110
                await asyncio.sleep(0.001)


async def test_as_many_as_fit():
    """Each takes half of what is left, and at least what an ordinary plan needs. The others wait."""
    free = 1_000 + 2 * START
    container = Container(free)
    container.begin("a")
    await container.until("a")
    container.begin("b")
    await container.until("a", "b")
    container.begin("c")
    await container.until("a", "b", waiting=1)
    assert container.planning == {"a": (free - START) // 2, "b": max(LEAST, (free - START - (free + START) // 2) // 2)}
    assert sum(container.planning.values()) + 2 * START <= free
    await container.end("b")
    await container.until("a", "c")
    for namespace in ("a", "c"):
        await container.end(namespace)


async def test_one_in_any_case():
    """Even if next to nothing is free: else nothing would ever be planned."""
    container = Container(10)
    container.begin("a")
    await container.until("a")
    assert container.planning == {"a": LEAST}
    container.begin("b")
    await container.until("a", waiting=1)
    await container.end("a")
    await container.until("b")
    await container.end("b")


async def test_one_of_each_namespace():
    """It may be permitted in many clusters, and ask each for a plan that takes half an hour."""
    container, memory = Container(10_000), []
    container.begin("a")
    await container.until("a")

    async def again():
        async with container.memory.granted("a") as limit:
            memory.append(limit)

    other = asyncio.create_task(again())
    container.begin("b")
    await container.until("a", "b")
    assert memory == []
    await container.end("a")
    await other
    assert memory
    await container.end("b")


async def test_one_that_is_cancelled_while_it_waits():
    """It takes nothing."""
    container = Container(10)
    container.begin("a")
    await container.until("a")
    container.begin("b")
    await container.until("a", waiting=1)
    container._tasks["b"].cancel()
    await container.until("a", waiting=0)
    await container.end("a")
    assert container.memory._granted == []


async def test_no_limit():
    container = Container(None)
    for namespace in ("a", "b"):
        container.begin(namespace)
    await container.until("a", "b")
    assert container.planning == {"a": 0, "b": 0}
    for namespace in ("a", "b"):
        await container.end(namespace)


@pytest.mark.parametrize("kind", ["plan", "log dirs"])
async def test_processes_take_what_is_granted(monkeypatch, kind):
    """Two plans of one namespace run one after the other."""
    limits = []

    async def asked(_kind, _question, _what, most, _why):
        limits.append((most, len(memory._granted)))
        raise TimeoutError

    memory = PlanMemory(lambda: 2_000 * MIB + START_BYTES, LEAST * MIB)
    monkeypatch.setattr(solving, "_asked", asked)
    monkeypatch.setattr(solving, "_memory", memory)
    monkeypatch.setattr(solving, "size_of", lambda _questions: 10**9)
    partitions = tuple(PartitionInput(TopicPartition("t", at), replicas_of(1)) for at in range(solving.LARGE))
    request = PlanRequest((Broker(BrokerId(1)),), partitions, frozenset([BrokerId(1)]))
    work = [
        solving.run_planner(request, None, "a") if kind == "plan" else solving.run_log_dirs([], None, "a")
        for _ in range(2)
    ]
    await asyncio.gather(*work, return_exceptions=True)
    assert limits == [(1_000 * MIB, 1)] * 2
