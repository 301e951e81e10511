"""Resources that cannot be read wait for their turn: any number of them, and of their edits, hold up nobody else."""

import asyncio
import collections

import pytest
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, FINALIZER, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.reconcile import supervisor as supervising
from kafka_rebalance.reconcile.act import unreadable_resources

NAMES = [f"r{number}" for number in range(300)]


class Calls:
    """``most``: how many were under way at once; ``written``: the generations by name; ``answers``: by namespace."""

    def __init__(self, kube):
        self.under_way = self.most = self.count = 0
        self.written = collections.defaultdict(list)
        self.answers = collections.defaultdict(asyncio.Event)
        self.write = kube.patch_status
        kube.get, kube.patch_status = self.counted(kube.get), self.counted(self.note)

    def counted(self, call):
        async def counted(plural, namespace, name, *arguments):
            self.count += 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            await self.answers[namespace].wait()
            await asyncio.sleep(0)
            self.under_way -= 1
            return await call(plural, namespace, name, *arguments)

        return counted

    async def note(self, plural, namespace, name, patch):
        self.written[name].append(patch["status"]["observedGeneration"])
        return await self.write(plural, namespace, name, patch)


@pytest.fixture
def calls(world):
    return Calls(world.kube)


async def ended(world):
    """All work in the background."""
    await world.until(lambda: not world.supervisor._background)
    assert not world.supervisor._unreadable._waiting
    assert not world.supervisor._unreadable._again


async def settled():
    for _ in range(20):
        await asyncio.sleep(0.001)


def deleted(world, name, plural=REBALANCES):
    """A resource that is being deleted and that the operator cannot read, as the API server has it now."""
    body = world.create("a", name=name, plural=plural, kafka={})
    body["metadata"]["finalizers"] = [FINALIZER]
    world.kube.create(plural, body)
    return world.kube.delete(plural, "a", name, NOON.isoformat())


@pytest.mark.parametrize("plural", [REBALANCES, REASSIGNMENT_THROTTLES, CONNECTIONS])
async def test_many_that_are_edited(world, calls, plural):
    """One call of a namespace is under way at a time, and only the newest state of each resource costs calls."""
    for name in NAMES:
        world.create("a", name=name, plural=plural, kafka={})
    world.see()
    for name in NAMES:
        world.edit(plural, "a", name, later=1)
    await settled()
    calls.answers["a"].set()
    await ended(world)
    assert calls.most == 1
    assert calls.written == {name: [2] for name in NAMES}
    assert calls.count <= 2 * len(NAMES)


async def test_edits_while_it_is_handled(world, calls):
    """All that come during a call are one more piece of work."""
    world.create("a", kafka={})
    world.see()
    await world.until(lambda: calls.under_way)
    for number in range(5):
        world.edit(REBALANCES, "a", "r", later=number)
        await settled()
    assert (calls.under_way, calls.count) == (1, 1)
    calls.answers["a"].set()
    await ended(world)
    assert calls.written == {"r": [1, 6]}


async def test_another_namespace(world, calls):
    """It does not wait for an answer about a resource of the first one."""
    world.create("a", kafka={})
    world.create("b", kafka={})
    calls.answers["b"].set()
    world.see()
    await world.until(lambda: world.state("b") == "InvalidSpec" and calls.under_way == 1)
    assert not world.state("a")


async def test_an_unexpected_error(world, monkeypatch):
    """The others of the namespace are still handled."""
    get = world.kube.get

    async def fails(plural, namespace, name):
        if name == "r1":
            raise OverflowError("date value out of range")
        return await get(plural, namespace, name)

    monkeypatch.setattr(world.kube, "get", fails)
    for name in ("r1", "r2"):
        world.supervisor.seen(REBALANCES, deleted(world, name), deleted=False)
    await ended(world)
    assert [name for _, _, name in world.kube.resources] == ["r1"]
    assert world.state("a", "r1") == "InvalidSpec"


@pytest.mark.parametrize("plural", [REBALANCES, REASSIGNMENT_THROTTLES, CONNECTIONS])
async def test_metadata_that_cannot_be_taken_in(world, monkeypatch, caplog, plural):
    """There is nothing to report on, and the watch goes on."""

    def fails(body):
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr(supervising, "parse_metadata", fails)
    monkeypatch.setattr(unreadable_resources, "parse_metadata", fails)
    world.supervisor.seen(plural, world.create("a", plural=plural), deleted=False)
    world.supervisor.seen(plural, {"metadata": {}}, deleted=False)
    await ended(world)
    assert "unexpected error" in caplog.text


async def test_another_of_its_name(world, calls):
    """The status of the first one is not written to it."""
    for name in ("r1", "r2"):
        world.create("a", name=name, kafka={})
    world.see()
    await world.until(lambda: calls.under_way)
    world.create("a", name="r2")
    calls.answers["a"].set()
    await ended(world)
    assert world.state("a", "r1") == "InvalidSpec"
    assert not world.state("a", "r2")


async def test_an_unexpected_error_removes_no_finalizer(world):
    """The resource may be in use."""
    world.supervisor._unreadable.failed(REBALANCES, deleted(world, "r"))
    await ended(world)
    assert world.state("a") == "InternalError"


async def test_an_unexpected_error_while_a_deletion_waits(world, calls):
    """The finalizer is removed: no further event may come."""
    world.supervisor.seen(REBALANCES, world.create("a", name="other", kafka={}), deleted=False)
    await world.until(lambda: calls.under_way)
    body = deleted(world, "r")
    world.supervisor.seen(REBALANCES, body, deleted=False)
    world.supervisor._unreadable.failed(REBALANCES, body)
    calls.answers["a"].set()
    await ended(world)
    assert [name for _, _, name in world.kube.resources] == ["other"]


class TestFinalizerNotRemoved:
    """The API server refuses it."""

    @pytest.fixture
    def refused(self, world, monkeypatch):
        """What happens during each of the next removals, which are refused."""
        patch, meanwhile = world.kube.patch_finalizers, []

        async def refusing(*arguments):
            if not meanwhile:
                return await patch(*arguments)
            meanwhile.pop(0)()
            raise Transient("ApiServerBusy", "too many requests")

        monkeypatch.setattr(world.kube, "patch_finalizers", refusing)
        monkeypatch.setattr(unreadable_resources, "_AGAIN_SECONDS", 0.01)
        return meanwhile

    @pytest.mark.parametrize("plural", [REBALANCES, REASSIGNMENT_THROTTLES])
    async def test_again_after_a_pause(self, world, refused, calls, plural):
        """The status is not written again: by then it may say something else."""
        refused += [int, int]
        calls.answers["a"].set()
        world.supervisor.seen(plural, deleted(world, "r", plural), deleted=False)
        await ended(world)
        assert not world.kube.resources
        assert calls.written == {"r": [2]}

    async def test_one_pause_for_all_of_its_events(self, world, refused, monkeypatch):
        """However often it is edited meanwhile."""
        monkeypatch.setattr(unreadable_resources, "_AGAIN_SECONDS", 3600.0)
        refused += [int, int, int]
        world.supervisor.seen(REBALANCES, deleted(world, "r"), deleted=False)
        await world.until(lambda: len(refused) == 2)
        for left in (1, 0):
            world.edit(REBALANCES, "a", "r", later=left)
            await world.until(lambda left=left: len(refused) == left)
        await world.until(lambda: not world.supervisor._unreadable._waiting)
        assert len(world.supervisor._background) == 1

    async def test_an_edit_waits(self, world, refused, calls):
        """The pause ends while an edit waits, which is reported on."""

        def meanwhile():
            calls.answers["a"].clear()
            world.supervisor.seen(REBALANCES, world.create("a", name="other", kafka={}), deleted=False)
            world.edit(REBALANCES, "a", "r", later=1)

        refused.append(meanwhile)
        calls.answers["a"].set()
        world.supervisor.seen(REBALANCES, deleted(world, "r"), deleted=False)
        await world.until(lambda: not refused and not world.supervisor._unreadable._again)
        calls.answers["a"].set()
        await ended(world)
        assert calls.written == {"r": [2, 3], "other": [1]}
        assert [name for _, _, name in world.kube.resources] == ["other"]
