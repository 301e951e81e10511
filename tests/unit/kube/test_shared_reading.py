"""A reading for all who ask at the same time: it must not be older than the question."""

import asyncio
from types import SimpleNamespace

import pytest

from kafka_rebalance.errors import Transient
from kafka_rebalance.kube import shared_reading
from kafka_rebalance.kube.shared_reading import SharedReading


class Read:
    """Numbers the readings; each waits until it may end."""

    def __init__(self):
        self.begun, self.may_end = 0, asyncio.Event()

    async def __call__(self):
        self.begun += 1
        number = self.begun
        await self.may_end.wait()
        return number


async def asked(shared, count):
    """That many ask at the same time, and wait."""
    tasks = [asyncio.create_task(shared.latest()) for _ in range(count)]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


async def test_all_who_ask_during_a_reading_share_the_next():
    """What they ask for may have changed since the present one began."""
    read = Read()
    shared = SharedReading(read)
    first, later = await asked(shared, 1), await asked(shared, 100)
    assert read.begun == 1
    read.may_end.set()
    assert await asyncio.gather(*first, *later) == [1, *[2] * 100]
    assert read.begun == 2


class TestRests:
    """A reading takes 0.1 s of the loop's time, which only readings and rests let pass."""

    @pytest.fixture
    async def clock(self, monkeypatch):
        """The time, and the rests."""
        clock = SimpleNamespace(now=0.0, rests=[])

        async def rest(seconds):
            clock.now += seconds
            clock.rests.append(round(seconds, 3))

        monkeypatch.setattr(shared_reading, "sleep", rest)
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock.now)
        return clock

    def shared(self, clock, seconds=0.1):
        async def read():
            clock.now += seconds

        return SharedReading(read)

    async def test_not_for_what_is_applied_at_once(self, clock):
        """A hundred resources, one after the other: the time for their readings has been saved up."""
        shared = self.shared(clock, 0.05)
        for _ in range(100):
            await shared.latest()
        assert clock.rests == []

    async def test_in_the_long_run_readings_take_a_fifth_of_the_time(self, clock):
        shared = self.shared(clock)
        for _ in range(1000):
            await shared.latest()
        assert 0.2 * clock.now <= 1000 * 0.1 < 0.21 * clock.now + 5

    async def test_a_slow_reading_does_not_stop_the_next_for_long(self, clock):
        shared = self.shared(clock, 60.0)
        for _ in range(3):
            await shared.latest()
        assert clock.rests == [2.0, 2.0]


async def test_one_that_does_not_wait_any_more():
    """The others get their reading."""
    read = Read()
    shared = SharedReading(read)
    gone, other = await asked(shared, 2)
    gone.cancel()
    read.may_end.set()
    assert await other == 1


async def test_a_failure():
    """Everybody who has asked gets it, and the next one asks anew."""
    failures = [Transient("ApiServerUnreachable", "no")]

    async def read():
        if failures:
            raise failures.pop()
        return "read"

    shared = SharedReading(read)
    for task in await asked(shared, 2):
        with pytest.raises(Transient):
            await task
    assert await shared.latest() == "read"


def test_after_a_loop_was_closed():
    """As in tests: what was under way there has ended."""
    read = Read()
    shared = SharedReading(read)

    async def left():
        asyncio.create_task(shared.latest())  # noqa: RUF006 - it is cancelled with the loop
        await asyncio.sleep(0.001)

    asyncio.run(left())
    read.may_end = asyncio.Event()
    read.may_end.set()
    assert asyncio.run(shared.latest()) == 2
