"""Who may plan for KafkaConnections at the same time, and how much memory of the container each process may take.

A process is always given enough for an ordinary plan. It waits while other plans might need that much.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

START_BYTES = 96 * 2**20
"""What a process takes before it plans: the interpreter and the libraries."""
_FREE_SHARE = 0.5
"""The share of what is free that a plan may take, so that another one fits beside it."""


class PlanMemory:
    """One plan of each namespace at a time, whatever the cluster: no namespace alone keeps the others waiting.

    ``free``: bytes that are free in the container, None: it has no limit. ``least``: bytes that each plan may take.
    """

    def __init__(self, free: Callable[[], int | None], least: int) -> None:
        self._free = free
        self._least = least
        self._granted: list[int] = []
        """What processes that are planning now may take: one that has just started uses little of it."""
        self._changed = asyncio.Condition()
        self._of_namespace: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def granted(self, namespace: str) -> AsyncIterator[int]:
        """Wait for the turn of a plan of this namespace. Yields its limit in bytes, beside ``START_BYTES``; 0: none."""
        async with self._of_namespace[namespace]:
            async with self._changed:
                while (limit := await self._limit()) is None:
                    await self._changed.wait()
                self._granted.append(taken := limit + START_BYTES if limit else 0)
            try:
                yield limit
            finally:
                self._granted.remove(taken)
                async with self._changed:
                    self._changed.notify_all()

    async def _limit(self) -> int | None:
        free = await asyncio.to_thread(self._free)
        if free is None:
            return 0
        left = free - sum(self._granted) - START_BYTES
        if self._granted and left < self._least:
            return None
        return max(self._least, int(_FREE_SHARE * left))
