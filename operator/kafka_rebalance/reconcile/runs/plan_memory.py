"""Who may plan for KafkaConnections at the same time, and how much memory of the container each process may take.

A process is always given enough for an ordinary plan. It waits while other plans might need that much.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from kafka_rebalance.reconcile.runs.container_memory import used_bytes

START_BYTES = 96 * 2**20
"""What a process takes before it plans: the interpreter and the libraries."""
_FREE_SHARE = 0.5
"""The share of what is free that a plan may take, so that another one fits beside it."""
_LOOK_SECONDS = 5.0
"""How often a plan that waits for memory looks again: other processes of the container free some of theirs too."""


class MemoryTaken(Exception):
    """The plan would have to wait for memory, or for another plan of its namespace."""


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
        self._asking: Counter[str] = Counter()
        """By namespace, the plans that have their turn or wait for it."""
        self._next = asyncio.Lock()
        """Held by the plan that looks whether there is memory for it. The others wait behind it."""
        self._looking: Counter[str] = Counter()
        """By namespace, the plans that have ``_next`` or wait for it."""

    async def take(self, namespace: str, *, wait: bool) -> tuple[PlanGrant, ExitStack]:
        """A grant for a plan of this namespace. It ends when the stack is closed, which waits for nothing.

        ``wait``: for the turn of the plan and for memory; else MemoryTaken if it is not free now.
        """
        if not wait and (self._asking[namespace] or self._looking.total()):
            raise MemoryTaken
        with ExitStack() as held:
            held.enter_context(_counted(self._asking, namespace))
            await self._of_namespace[namespace].acquire()  # at once if nobody else asks
            held.callback(self._of_namespace[namespace].release)
            with _counted(self._looking, namespace):
                async with self._next:
                    grant = PlanGrant(await self._found(wait=wait))
                    self._grants.append(grant)
                    held.callback(self._end, grant)
            return grant, held.pop_all()

    def _end(self, grant: PlanGrant) -> None:
        self._grants.remove(grant)
        self._ended.set()

    async def _found(self, *, wait: bool) -> int:
        """The limit, when there is memory for it."""
        while True:
            self._ended.clear()
            limit = await asyncio.to_thread(self._limit, tuple(self._grants))
            if limit is not None:
                return limit
            if not wait:
                raise MemoryTaken
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


class DraftMemory:
    """The grant of one draft of a plan: it is taken when the first process needs it, and kept for the others.

    ``namespace``: of the resource that is planned.
    """

    def __init__(self, memory: PlanMemory, namespace: str) -> None:
        self.namespace = namespace
        self._memory = memory
        self._grant: PlanGrant | None = None
        self._held = ExitStack()
        self._end_turn: Callable[[], Awaitable[None]] = _nothing

    def ends_with_it(self, end: Callable[[], Awaitable[None]]) -> None:
        """The draft has a turn, for which others wait: it ends when a process is about to begin."""
        self._end_turn = end

    async def take(self) -> PlanGrant:
        """The grant. Waits for no other plan: MemoryTaken instead."""
        grant = self._grant or await self._take(wait=False)
        await self._end_turn()
        return grant

    async def wait(self) -> None:
        """Take the grant when it is free."""
        if self._grant is None:
            await self._take(wait=True)

    def release(self) -> None:
        """End the grant, if there is one."""
        self._held.close()

    async def _take(self, *, wait: bool) -> PlanGrant:
        self._grant, self._held = await self._memory.take(self.namespace, wait=wait)
        return self._grant


async def _nothing() -> None:
    """The draft has no turn."""


@contextmanager
def _counted(counter: Counter[str], key: str) -> Iterator[None]:
    counter[key] += 1
    try:
        yield
    finally:
        counter[key] -= 1
        if not counter[key]:
            del counter[key]
