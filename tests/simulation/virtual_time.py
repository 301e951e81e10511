"""An event loop whose time jumps to the next timer, and on which nothing runs in threads.

A simulated hour takes as long as the work in it. Everything is a function of the seed: no clock of the machine is read,
and what the product hands to a thread is carried out at once.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


class NothingMoves(Exception):
    """Every task waits for another one, and no timer is left."""


class _Jumps:
    """In place of a selector: no socket is waited for, so the time until the next timer is over at once."""

    def __init__(self, loop):
        self._loop = loop

    def select(self, timeout):
        if timeout is None:
            raise NothingMoves
        if timeout > 0:
            self._loop.now += timeout
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """``now`` is its time in seconds, and that of all clocks."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self._selector = _Jumps(self)

    def time(self):
        return self.now

    def run_in_executor(self, executor, func: Callable, *args):
        """`asyncio.to_thread` and executors: at once, in this thread."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            done.set_exception(error)
        return done

    def _process_events(self, event_list):
        pass

    def _write_to_self(self):
        pass


class VirtualClock:
    """The `Clock` of the product, and that of its Lease."""

    def __init__(self, loop):
        self._loop = loop

    def now(self):
        return START + timedelta(seconds=self._loop.now)

    def monotonic(self):
        return self._loop.now

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)


def in_simulated_time(coroutine):
    """Its result."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()
