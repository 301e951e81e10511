"""Plans for KafkaConnections do not exhaust the container together, and no namespace keeps the others waiting."""

import asyncio

import pytest

from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning.problem.request import PartitionInput, PlanRequest
from kafka_rebalance.reconcile.runs import plan_memory, solving
from kafka_rebalance.reconcile.runs.plan_memory import START_BYTES, DraftMemory, MemoryTaken, PlanMemory

MIB = 2**20
START = START_BYTES // MIB
LEAST = 256
FOR_TWO = 704
"""The figure of docs/security.md."""


class Container:
    """``free``: MiB without what plans use, None: without a limit. ``used``: by the plans, in MiB, by namespace.

    ``planning``: the limits of the plans in MiB, by namespace.
    """

    def __init__(self, free, monkeypatch):
        self.free = free
        self.memory = PlanMemory(self._free, LEAST * MIB)
        self.used, self.planning, self.tasks, self._ends = {}, {}, {}, {}
        monkeypatch.setattr(plan_memory, "used_bytes", lambda pid: self.used.get(pid, 0) * MIB)

    def _free(self):
        return None if self.free is None else (self.free - sum(self.used.values())) * MIB

    def begin(self, namespace):
        self._ends[namespace] = asyncio.Event()
        self.tasks[namespace] = asyncio.create_task(self._plan(namespace, self._ends[namespace]))

    async def _plan(self, namespace, ends):
        grant, held = await self.memory.take(namespace, wait=True)
        with held:
            grant.pid = namespace
            self.planning[namespace] = grant.limit // MIB
            await ends.wait()
            self.used.pop(namespace, None)
            del self.planning[namespace]

    async def end(self, *namespaces):
        for namespace in namespaces:
            self._ends[namespace].set()
            await self.tasks[namespace]

    async def until(self, *namespaces, waiting=0):
        """Wait until exactly these namespaces plan, and this number of other plans waits for memory."""
        async with asyncio.timeout(10):
            # Nothing tells who begins to wait.
            while self.planning.keys() != set(namespaces) or self.memory._looking.total() != waiting:  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    async def has_room_for(self, namespace):
        """The limit of a plan in MiB that would not have to wait, or 0."""
        try:
            grant, held = await self.memory.take(namespace, wait=False)
        except MemoryTaken:
            return 0
        held.close()
        return grant.limit // MIB

    def is_idle(self):
        memory = self.memory
        return not any((memory._grants, memory._asking, memory._looking, memory._next.locked()))


@pytest.fixture
def container(monkeypatch):
    return lambda free: Container(free, monkeypatch)


async def test_as_many_as_fit(container):
    """Each takes half of what is left, and at least what an ordinary plan needs. The others wait."""
    there = container(1_236)
    there.begin("a")
    await there.until("a")
    there.begin("b")
    await there.until("a", "b")
    there.begin("c")
    await there.until("a", "b", waiting=1)
    assert there.planning == {"a": (1_236 - START) // 2, "b": LEAST}
    await there.end("b")
    await there.until("a", "c")
    await there.end("a", "c")
    assert there.is_idle()


@pytest.mark.parametrize("share", [0, 0.25, 0.5, 0.75, 1])
@pytest.mark.parametrize("free", [FOR_TWO, 1_236, 4_000, 16_000])
async def test_what_a_process_uses_counts_once(container, free, share):
    """It is not free any more, so only what the process may still take is kept for it: another plan always fits."""
    there = container(free)
    there.begin("a")
    await there.until("a")
    there.used["a"] = int(share * (there.planning["a"] + START))
    assert LEAST <= await there.has_room_for("b") <= free - there.planning["a"] - 2 * START
    await there.end("a")


async def test_a_process_that_uses_more_than_its_limit(container):
    """Its memory at the start is an estimate. What it uses beyond the grant is not given to others."""
    there = container(1_236)
    there.begin("a")
    await there.until("a")
    there.used["a"] = there.planning["a"] + START + 200
    there.begin("b")
    await there.until("a", "b")
    assert sum(there.planning.values()) + 2 * START + 200 <= 1_236
    await there.end("a", "b")


async def test_memory_for_one_plan(container):
    """Less than two ordinary plans need. One is made even if next to nothing is free: else none would ever be made."""
    for free in (10, FOR_TWO - 1):
        there = container(free)
        there.begin("a")
        await there.until("a")
        assert there.planning["a"] == LEAST
        there.begin("b")
        await there.until("a", waiting=1)
        await there.end("a")
        await there.until("b")
        await there.end("b")


async def test_memory_that_others_free(container, monkeypatch):
    """Clients of the operator use memory too. Nothing tells when they free it."""
    monkeypatch.setattr(plan_memory, "_LOOK_SECONDS", 0.01)
    there = container(500)
    there.begin("a")
    await there.until("a")
    there.begin("b")
    await there.until("a", waiting=1)
    there.free = FOR_TWO
    await there.until("a", "b")
    await there.end("a", "b")


async def test_one_of_each_namespace(container):
    """It may be permitted in many clusters, and ask each for a plan that takes half an hour."""
    there = container(10_000)
    there.begin("a")
    await there.until("a")
    other = asyncio.create_task(there.memory.take("a", wait=True))
    there.begin("b")
    await there.until("a", "b")
    assert not other.done()
    await there.end("a")
    _, held = await other
    held.close()
    await there.end("b")
    assert there.is_idle()


async def test_first_come_first_served(container):
    """A plan that does not wait is not before those that do."""
    there = container(10)
    there.begin("a")
    await there.until("a")
    for at, namespace in enumerate("bc", 1):
        there.begin(namespace)
        await there.until("a", waiting=at)
    there.free = 10_000
    assert not await there.has_room_for("d")
    there.free = 10
    await there.end("a")
    await there.until("b", waiting=1)
    await there.end("b")
    await there.until("c")
    await there.end("c")
    assert there.is_idle()


async def test_without_waiting(container):
    there = container(FOR_TWO)
    assert await there.has_room_for("a")
    there.begin("a")
    await there.until("a")
    assert not await there.has_room_for("a")
    assert await there.has_room_for("b")
    there.free = FOR_TWO - 1
    assert not await there.has_room_for("b")
    await there.end("a")
    assert await there.has_room_for("b")
    assert there.is_idle()


@pytest.mark.parametrize("namespace", ["a", "b"])
async def test_one_that_is_cancelled_while_it_waits(container, namespace):
    """It takes nothing: neither the turn of its namespace nor memory."""
    there = container(10)
    there.begin("a")
    await there.until("a")
    waiting = asyncio.create_task(there.memory.take(namespace, wait=True))
    for _ in range(20):
        await asyncio.sleep(0.001)
    waiting.cancel()
    await asyncio.wait({waiting})
    await there.end("a")
    assert there.is_idle()
    assert await there.has_room_for("a")
    assert await there.has_room_for("b")


async def test_no_limit(container):
    there = container(None)
    for namespace in ("a", "b"):
        there.begin(namespace)
    await there.until("a", "b")
    assert there.planning == {"a": 0, "b": 0}
    await there.end("a", "b")


async def test_one_grant_for_all_processes_of_a_draft(monkeypatch):
    """For the plan and for the log dirs. Another plan of the namespace cannot take it in between."""
    limits = []

    async def asked(_kind, _question, _what, grant, _why):
        limits.append((grant.limit, len(memory._grants)))
        raise TimeoutError

    memory = PlanMemory(lambda: 2_000 * MIB + START_BYTES, LEAST * MIB)
    monkeypatch.setattr(solving, "_asked", asked)
    monkeypatch.setattr(solving, "_memory", memory)
    monkeypatch.setattr(solving, "size_of", lambda _questions: 10**9)
    partitions = tuple(PartitionInput(TopicPartition("t", at), replicas_of(1)) for at in range(solving.LARGE))
    request = PlanRequest((Broker(BrokerId(1)),), partitions, frozenset([BrokerId(1)]))
    draft, other = solving.draft_memory("a"), DraftMemory(memory, "a")
    await asyncio.gather(solving.run_planner(request, None, draft), return_exceptions=True)
    with pytest.raises(MemoryTaken):
        await solving.run_planner(request, None, other)
    await asyncio.gather(solving.run_log_dirs([], None, draft), return_exceptions=True)
    assert limits == [(1_000 * MIB, 1)] * 2
    draft.release()
    assert memory._grants == []
    with pytest.raises(Exception, match="took more than"):
        await solving.run_log_dirs([], None, other)
    other.release()
