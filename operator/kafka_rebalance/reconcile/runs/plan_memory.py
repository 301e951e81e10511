"""Who may plan for KafkaConnections at the same time, and how much memory of the container each process may take.

A process is always given enough for an ordinary plan. It waits while other plans might need that much.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from kafka_rebalance.reconcile.runs.container_memory import used_bytes

START_BYTES = 96 * 2**20
"""What a process takes before it plans: the interpreter and the libraries."""
_FREE_SHARE = 0.5
"""The share of what is free that a plan may take, so that another one fits beside it."""
_LOOK_SECONDS = 5.0
"""How often a plan that waits for memory looks again: other processes of the container free some of theirs too."""


class PlanGrant:
    """What a process may take. ``limit``: bytes, in addition to ``START_BYTES``; 0: there is no limit.

    ``pid``: of the process while there is one.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.pid: int | None = None

    def unused(self) -> int:
        """The bytes that it may still take in addition to what it uses now."""
        if not self.limit:
            return 0
        return max(0, self.limit + START_BYTES - (used_bytes(self.pid) if self.pid is not None else 0))


class PlanMemory:
    """One plan of each namespace at a time, whatever the cluster: no namespace alone keeps the others waiting.

    That needs memory for two plans: 704 MiB that are free if ``least`` is 256 MiB. With less there is one plan at a
    time. Plans that wait are served in the order in which they came.

    ``free``: bytes that are free in the container, None: it has no limit. ``least``: bytes that each plan may take.
    """

    def __init__(self, free: Callable[[], int | None], least: int) -> None:
        self._free = free
        self._least = least
        self._grants: list[PlanGrant] = []
        self._ended = asyncio.Event()
        self._of_namespace: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._next = asyncio.Lock()
        """Held by the plan that looks whether there is memory for it. The others wait behind it."""

    @asynccontextmanager
    async def granted(self, namespace: str) -> AsyncIterator[PlanGrant]:
        """Wait for the turn of a plan of this namespace, and for memory."""
        async with self._of_namespace[namespace]:
            async with self._next:
                grant = PlanGrant(await self._found())
                self._grants.append(grant)
            try:
                yield grant
            finally:
                self._end(grant)

    def _end(self, grant: PlanGrant) -> None:
        self._grants.remove(grant)
        self._ended.set()

    async def _found(self) -> int:
        """The limit, when there is memory for it."""
        while True:
            self._ended.clear()
            limit = await asyncio.to_thread(self._limit, tuple(self._grants))
            if limit is not None:
                return limit
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._ended.wait()

    def _limit(self, grants: tuple[PlanGrant, ...]) -> int | None:
        # Read before what is free: what a process takes in between is then subtracted twice, which is safe.
        unused = sum(grant.unused() for grant in grants)
        free = self._free()
        if free is None:
            return 0
        left = free - unused - START_BYTES
        if grants and left < self._least:
            return None
        beside_another = left - self._least - START_BYTES
        return max(self._least, min(int(_FREE_SHARE * left), beside_another))
