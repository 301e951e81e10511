"""One reading at a time for everybody who asks, with a rest after it: any number of callers costs a part of the time.

The records of all runs are read for each resource that may not use its connection, and users may create thousands of
these.
"""

import asyncio
from asyncio import sleep
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_REST = 4.0
"""The rest, as a multiple of the time that the reading took: readings take a fifth of the time."""
_LONGEST_REST_SECONDS = 2.0


class SharedReading(Generic[T]):
    """``read`` must return a value that nobody changes."""

    def __init__(self, read: Callable[[], Awaitable[T]]) -> None:
        self._read = read
        self._now: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None
        """Has not begun to read, so whoever asks now may have it."""
        self._not_before = float("-inf")

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
        if (rest := self._not_before - loop.time()) > 0:
            await sleep(rest)
        self._now, self._next = self._next, None
        began = loop.time()
        try:
            return await self._read()
        finally:
            ended = loop.time()
            self._not_before = ended + min(_REST * (ended - began), _LONGEST_REST_SECONDS)


def _seen(reading: asyncio.Task[T]) -> None:
    """The error of a reading for which nobody waits any more is nobody's."""
    if not reading.cancelled():
        reading.exception()
