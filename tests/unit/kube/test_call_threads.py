"""The calls about the objects of one namespace hold few threads, however slow they are."""

import asyncio
import gc
import threading

import pytest

from kafka_rebalance.errors import Transient
from kafka_rebalance.kube import call_threads
from kafka_rebalance.kube.call_threads import CallShare, CallThreads


class SlowCalls:
    """Calls that block until ``may_end`` is set. ``begun``: the names of those that threads have begun, in order."""

    def __init__(self):
        self.begun = []
        self.may_end = threading.Event()
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __call__(self, name):
        def call():
            self.begun.append(name)
            self._loop.call_soon_threadsafe(self._told.set)
            self.may_end.wait()
            return name

        return call

    async def until_begun(self, number):
        while len(self.begun) < number:
            self._told.clear()
            await self._told.wait()


@pytest.fixture
async def threads():
    made = CallThreads()
    yield made
    await made.close()


@pytest.fixture
async def slow():
    calls = SlowCalls()
    yield calls
    calls.may_end.set()


async def held_by(threads, slow, number=20):
    """Tasks with slow calls about one namespace, of which as many as possible have begun."""
    tasks = [asyncio.create_task(threads.run(slow(at), "slow")) for at in range(number)]
    await slow.until_begun(2)
    return tasks


class TestShares:
    async def test_other_namespaces(self, threads, slow):
        """Calls about the objects of others, and the operator's own, do not wait for those of a slow namespace."""
        tasks = await held_by(threads, slow)
        assert await threads.run(lambda: "other", "other") == "other"
        assert await threads.run(lambda: "own", None) == "own"
        assert slow.begun == [0, 1]
        slow.may_end.set()
        assert await asyncio.gather(*tasks) == list(range(20))
        assert slow.begun == list(range(20))

    async def test_reads(self, threads, slow):
        """They do not wait for writes about the same namespace, which users can make slow, or for reads of Secrets."""
        tasks = await held_by(threads, slow)
        tasks += [asyncio.create_task(threads.run(slow("secret"), "slow", CallShare.SECRETS)) for _ in range(20)]
        await slow.until_begun(4)
        assert await threads.run(lambda: "read", "slow", CallShare.READS) == "read"
        assert slow.begun == [0, 1, "secret", "secret"]
        slow.may_end.set()
        await asyncio.gather(*tasks)

    async def test_many_slow_namespaces(self, threads, slow):
        """They hold up writes of others, but not the calls about the operator's own records, nor what rounds read."""
        tasks = [asyncio.create_task(threads.run(slow(at), f"slow{at // 2}")) for at in range(8)]
        await slow.until_begun(8)
        tasks.append(asyncio.create_task(threads.run(slow("write"), "other")))
        async with asyncio.timeout(60):
            assert await threads.run(lambda: "own", None) == "own"
            assert await threads.run(lambda: "read", "other", CallShare.READS) == "read"
            assert await threads.run(lambda: "secret", "other", CallShare.SECRETS) == "secret"
        assert slow.begun == list(range(8))
        slow.may_end.set()
        await asyncio.gather(*tasks)

    async def test_the_operators_own_calls_have_no_share(self, threads, slow):
        """All threads for them work at the same time."""
        tasks = [asyncio.create_task(threads.run(slow(at), None)) for at in range(8)]
        await slow.until_begun(8)
        slow.may_end.set()
        await asyncio.gather(*tasks)

    async def test_nothing_is_kept(self, threads, slow):
        """What is known of a namespace is freed when its calls have ended."""
        tasks = await held_by(threads, slow)
        slow.may_end.set()
        await asyncio.gather(*tasks)
        tasks.clear()
        await threads.close()  # a thread refers to its last call until it has taken note of its end
        await asyncio.sleep(0)
        gc.collect()
        assert not threads._turns


class TestWaiting:
    async def test_it_ends(self, threads, slow, monkeypatch):
        """A round that other namespaces share does not wait for all calls of a slow one. The call is not sent."""
        tasks = await held_by(threads, slow, 2)
        monkeypatch.setattr(call_threads, "_LONGEST_WAIT_SECONDS", 0)
        with pytest.raises(Transient, match="namespace slow take long") as failed:
            await threads.run(slow("late"), "slow")
        assert failed.value.reason == "ApiServerBusy"
        slow.may_end.set()
        await asyncio.gather(*tasks)
        assert await threads.run(slow("again"), "slow") == "again"
        assert slow.begun == [0, 1, "again"]

    async def test_a_cancelled_task_that_waits(self, threads, slow):
        """Its place goes to the next one, and its call is not sent."""
        tasks = await held_by(threads, slow, 5)
        tasks[2].cancel()
        slow.may_end.set()
        await asyncio.wait(tasks)
        assert slow.begun == [0, 1, 3, 4]

    async def test_a_cancelled_task_whose_call_has_begun(self, threads, slow, monkeypatch):
        """The call still holds its thread, and so its place, until it has ended."""
        tasks = await held_by(threads, slow, 2)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        with monkeypatch.context() as patched:
            patched.setattr(call_threads, "_LONGEST_WAIT_SECONDS", 0)
            with pytest.raises(Transient):
                await threads.run(slow("late"), "slow")
        slow.may_end.set()
        assert await threads.run(slow("again"), "slow") == "again"
