"""The threads in which topics are matched: waits, turns and cancellation."""

import asyncio
import threading
from functools import partial

import pytest

from kafka_rebalance.heartbeat import heard_by
from kafka_rebalance.reconcile.state import inline_thread
from kafka_rebalance.reconcile.state.inline_thread import in_thread
from kafka_rebalance.reconcile.state.namespace_turns import NamespaceTurns


@pytest.fixture
def turns():
    """The turns of all namespaces."""
    return NamespaceTurns()


@pytest.fixture
async def busy(turns):
    """Set it to end the work that occupies the thread."""
    free = threading.Event()
    before = asyncio.create_task(in_thread(partial(free.wait, 60), partial(turns.of, "first")))
    await asyncio.sleep(0)
    yield free
    free.set()
    assert await before


async def test_waiting_for_the_thread_is_a_beat(turns, busy, monkeypatch):
    """The work of others in the queue may take minutes."""
    monkeypatch.setattr(inline_thread, "_BEAT_SECONDS", 0.01)
    beats = []
    with heard_by(lambda: beats.append(1) or (busy.set() if len(beats) == 3 else None)):
        assert await in_thread(lambda: 7, partial(turns.of, "a")) == 7
    assert len(beats) >= 3


async def test_a_wait_that_is_cancelled(turns, busy):
    """Work that has not started is not done any more."""
    done = []
    for namespace in ("first", "a"):
        waiting = asyncio.create_task(in_thread(lambda: done.append(1), partial(turns.of, namespace)))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    busy.set()
    assert await in_thread(lambda: 7, partial(turns.of, "a")) == 7
    assert not done


async def test_namespaces_take_turns(turns, busy):
    """A namespace with many slow matches delays a match of another namespace by only one."""
    done = []
    async with asyncio.TaskGroup() as waiting:
        for namespace in ("a", "a", "a", "b", "first"):
            waiting.create_task(in_thread(partial(done.append, namespace), partial(turns.of, namespace)))
        await asyncio.sleep(0)
        busy.set()
    assert done == ["a", "b", "first", "a", "a"]


class TestKafkaConnections:
    """Many of them may permit the same namespace."""

    @pytest.fixture
    async def held(self):
        """Set it to end the pieces of a namespace."""
        free = threading.Event()
        pieces = [asyncio.create_task(in_thread(partial(free.wait, 60), None, "a")) for _ in range(3)]
        await asyncio.sleep(0)
        yield free
        free.set()
        assert await asyncio.gather(*pieces) == [True] * 3

    @pytest.mark.usefixtures("held")
    async def test_a_namespace_has_one_thread(self):
        """Another one does not wait for its slow matches."""
        async with asyncio.timeout(30):
            assert await in_thread(lambda: 7, None, "b") == 7

    async def test_a_failure(self, held):
        """It is raised to the caller, and the next piece is begun."""
        failing = asyncio.create_task(in_thread(lambda: 1 // 0, None, "a"))
        following = asyncio.create_task(in_thread(lambda: 7, None, "a"))
        await asyncio.sleep(0)
        held.set()
        with pytest.raises(ZeroDivisionError):
            await failing
        assert await following == 7

    async def test_a_wait_that_is_cancelled(self, held):
        done = []
        waiting = asyncio.create_task(in_thread(lambda: done.append(1), None, "a"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        held.set()
        assert await in_thread(lambda: 7, None, "a") == 7
        assert not done

    async def test_one_that_is_cancelled_while_it_runs(self):
        """The thread goes on, so the namespace gets no other one."""
        begun, free, done = threading.Event(), threading.Event(), []
        running = asyncio.create_task(in_thread(lambda: begun.set() or free.wait(60), None, "a"))
        await asyncio.to_thread(begun.wait, 60)
        running.cancel()
        await asyncio.wait({running})
        following = asyncio.create_task(in_thread(lambda: done.append(1), None, "a"))
        await asyncio.sleep(0)
        assert await in_thread(lambda: 7, None, "b") == 7
        assert not done
        free.set()
        await following
        assert done == [1]


async def test_the_threads_of_the_event_loop_stay_free(turns):
    """Slow expressions must not hold up the rounds of other clusters."""
    of_the_loop = await asyncio.to_thread(lambda: threading.current_thread())
    prefix = of_the_loop.name.rpartition("_")[0]
    for turn in (None, partial(turns.of, "a")):
        name = await in_thread(lambda: threading.current_thread().name, turn)
        assert name.rpartition("_")[0] != prefix
