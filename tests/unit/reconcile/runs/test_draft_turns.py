"""One draft of a cluster at a time. None of them waits for memory while it keeps the others of its cluster waiting."""

import asyncio
import gc
import weakref

import pytest

from kafka_rebalance.reconcile.runs.draft_turns import DraftTurns
from kafka_rebalance.reconcile.runs.plan_memory import DraftMemory, PlanMemory


class Drafts:
    """Of several clusters, in a container with memory for one process.

    ``begun``: the names of the drafts, each time that the cluster is read for one. ``made``: of those that have ended.
    """

    def __init__(self):
        self.memory = PlanMemory(lambda: 1, 1)
        self.clusters = {name: DraftTurns() for name in ("L", "S")}
        self.begun, self.made, self.tasks, self._ends = [], [], {}, {}

    def begin(self, cluster, namespace, *, hard=True, ends=False, number=""):
        """``hard``: it needs a process. ``ends``: by itself; else see `end`. ``number``: of several in a namespace."""
        name = f"{cluster}/{namespace}{number}"
        end = self._ends[name] = asyncio.Event()
        if ends:
            end.set()

        async def make(memory):
            self.begun.append(name)
            await asyncio.sleep(0)
            if hard:
                await memory.take()
            await end.wait()
            if hard:
                await memory.take()  # for the log dirs
            self.made.append(name)
            return name

        memory = DraftMemory(self.memory, namespace)
        self.tasks[name] = asyncio.create_task(self.clusters[cluster].draft(make, memory))

    async def end(self, name):
        self._ends[name].set()
        assert await self.tasks[name] == name

    async def until(self, condition):
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.001)

    async def assert_all_is_free(self):
        """Of each cluster and of the memory."""
        memory = self.memory
        assert not any((memory._grants, memory._asking, memory._looking, memory._next.locked()))
        for cluster in self.clusters:
            self.begin(cluster, "last")
            async with asyncio.timeout(20):
                await self.end(f"{cluster}/last")


@pytest.fixture
def drafts():
    return Drafts()


@pytest.mark.parametrize("namespace", ["a", "b"], ids=["its own namespace", "others"])
async def test_others_of_the_cluster_go_on_while_one_waits_for_memory(drafts, namespace):
    """Their plans would wait for a plan in a cluster that they know nothing of, for half an hour.

    The one that waits is made from new readings when it has the memory.
    """
    drafts.begin("L", namespace)
    await drafts.until(lambda: drafts.memory._grants)
    drafts.begin("S", "a")
    await drafts.until(lambda: "S/a" in drafts.begun)
    drafts.begin("S", "c", hard=False, ends=True)
    async with asyncio.timeout(20):
        await drafts.tasks["S/c"]
    await drafts.end(f"L/{namespace}")
    await drafts.until(lambda: drafts.begun.count("S/a") == 2)
    await drafts.end("S/a")
    assert drafts.made == ["S/c", f"L/{namespace}", "S/a"]
    await drafts.assert_all_is_free()


async def test_one_at_a_time(drafts):
    """Each reads the whole cluster."""
    for namespace in "abc":
        drafts.begin("S", namespace, hard=False)
    for namespace in "abc":
        await drafts.until(lambda: drafts.begun)
        await asyncio.sleep(0.01)
        assert drafts.begun[-1] == f"S/{namespace}"
        await drafts.end(f"S/{namespace}")
        await drafts.until(lambda at=namespace: drafts.begun[-1] != f"S/{at}" or at == "c")
    assert drafts.begun == drafts.made == ["S/a", "S/b", "S/c"]
    await drafts.assert_all_is_free()


async def test_many_of_a_namespace_delay_others_by_one(drafts):
    for at in range(5):
        drafts.begin("S", "a", hard=False, ends=True, number=at)
    drafts.begin("S", "b", hard=False, ends=True)
    async with asyncio.timeout(20):
        await asyncio.wait(drafts.tasks.values())
    assert drafts.made[:3] == ["S/a0", "S/b", "S/a1"]
    await drafts.assert_all_is_free()


async def test_others_of_the_cluster_go_on_while_a_process_plans(drafts):
    """That may take half an hour."""
    drafts.begin("S", "a")
    await drafts.until(lambda: drafts.memory._grants)
    drafts.begin("S", "b", hard=False, ends=True)
    async with asyncio.timeout(20):
        await drafts.tasks["S/b"]
    assert not drafts.tasks["S/a"].done()
    await drafts.end("S/a")
    await drafts.assert_all_is_free()


async def test_an_error_ends_all(drafts):
    async def failing(memory):
        await memory.take()
        raise ValueError("as the planner says")

    with pytest.raises(ValueError, match="as the planner says"):
        await drafts.clusters["S"].draft(failing, DraftMemory(drafts.memory, "a"))
    await drafts.assert_all_is_free()


async def test_the_readings_are_freed_while_it_waits(drafts):
    """Those of a large cluster take hundreds of MB, and each cluster may have a draft that waits."""

    class Readings:
        pass

    read, made = [], []

    async def make(memory):
        readings = Readings()
        read.append(weakref.ref(readings))
        await memory.take()
        made.append(readings)

    drafts.begin("L", "b")
    await drafts.until(lambda: drafts.memory._grants)
    gc.disable()
    try:
        waiting = asyncio.create_task(drafts.clusters["S"].draft(make, DraftMemory(drafts.memory, "a")))
        await drafts.until(lambda: drafts.memory._looking)
        assert [reading() for reading in read] == [None]
    finally:
        gc.enable()
    await drafts.end("L/b")
    await waiting
    assert [reading() for reading in read] == [None, *made]


@pytest.mark.parametrize("steps", range(40))
async def test_cancelled_at_any_moment(drafts, steps):
    """A rebalance that is edited or deleted: nothing that it had taken stays taken."""
    drafts.begin("L", "b")
    await drafts.until(lambda: drafts.memory._grants)
    drafts.begin("S", "a")

    async def others():
        """What the draft waits for, one after the other: memory, and its cluster."""
        await drafts.until(lambda: drafts.memory._looking)
        drafts.begin("S", "c", hard=False)
        await drafts.end("L/b")
        await asyncio.sleep(0.005)
        await drafts.end("S/c")

    going_on = asyncio.create_task(others())
    for _ in range(steps):
        await asyncio.sleep(0.0005)
    drafts.tasks["S/a"].cancel()
    await asyncio.wait({drafts.tasks["S/a"]})
    if not going_on.done():
        going_on.cancel()
        await asyncio.wait({going_on})
    for name, task in drafts.tasks.items():
        drafts._ends[name].set()
        await asyncio.wait({task})
    await drafts.assert_all_is_free()


async def test_drafts_that_want_what_the_others_have(drafts):
    """All come to their end: nobody waits for memory with the turn of a cluster."""
    for at in range(30):
        drafts.begin("LS"[at % 2], "abc"[at % 3], hard=at % 4 != 0, ends=True, number=at)
    async with asyncio.timeout(20):
        await asyncio.wait(drafts.tasks.values())
    assert sorted(drafts.made) == sorted(drafts.tasks)
    await drafts.assert_all_is_free()
