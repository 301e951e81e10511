"""One reading at a time for everybody who asks, and in the long run a part of the time for any number of callers.

The records of all runs are read for each resource that may not use its connection, and users may create thousands of
these.
"""

import asyncio
from asyncio import sleep
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_PART = 0.2
"""The part of the time that readings take at most."""
_SAVED_SECONDS = 5.0
"""Time for readings that is saved up while there are none: a hundred resources that are applied at once do not wait."""
_LONGEST_REST_SECONDS = 2.0


class SharedReading(Generic[T]):
    """``read`` must return a value that nobody changes."""

    def __init__(self, read: Callable[[], Awaitable[T]]) -> None:
        self._read = read
        self._now: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None
        """Has not begun to read, so whoever asks now may have it."""
        self._left, self._since = _SAVED_SECONDS, float("-inf")
        """The seconds of readings that were left then, by the clock of the event loop."""

    async def latest(self) -> T:
        """A reading that begins after this call. Raises what ``read`` raises."""
        if self._next is None or self._next.done():
            self._next = asyncio.create_task(self._after(self._now))
            self._next.add_done_callback(_seen)
        return await asyncio.shield(self._next)

    async def _after(self, before: asyncio.Task[T] | None) -> T:
        loop = asyncio.get_running_loop()
        if before is not None and not before.done():
            await asyncio.wait({before})
        if (rest := self._rest(loop.time())) > 0:
            await sleep(rest)
        self._now, self._next = self._next, None
        began = loop.time()
        self._left, self._since = self._saved(began), began
        try:
            return await self._read()
        finally:
            ended = loop.time()
            self._left = max(self._left - (1 - _PART) * (ended - began), -_PART * _LONGEST_REST_SECONDS)
            self._since = ended

    def _rest(self, now: float) -> float:
        """The seconds until a reading may begin."""
        return -self._saved(now) / _PART

    def _saved(self, now: float) -> float:
        return min(_SAVED_SECONDS, self._left + _PART * max(0.0, now - self._since))


def _seen(reading: asyncio.Task[T]) -> None:
    """The error of a reading for which nobody waits any more is nobody's."""
    if not reading.cancelled():
        reading.exception()
