"""Limits work for inline connections to one piece at a time: planner processes, and what each of their threads does.

The memory of planner processes counts for the container of the operator, and any number of servers may each claim a
cluster that is hard to plan, or whose topics are slow to match. At most one piece of work of each namespace is in the
queue, so a namespace with many connections delays the work of another namespace by only one piece.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from kafka_rebalance.reconcile.state.held_plans import MOST_ROWS, HeldPlans

Turn = Callable[[], AbstractAsyncContextManager[None]]
"""Returns a context manager that waits for the turn of one namespace, and holds it while it is open."""


class NamespaceTurns:
    """The queue of the namespaces: first come, first served."""

    def __init__(self) -> None:
        self._working = asyncio.Lock()
        self._of_namespace: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def of(self, namespace: str) -> AsyncIterator[None]:
        """Wait for the turn of this namespace, and hold it while the context is open."""
        async with self._of_namespace[namespace], self._working:
            yield


@dataclass(frozen=True, slots=True)
class InlineTurns:
    """The turns of one namespace for the work of its inline connections.

    ``process``: held while a process plans. ``thread``: held while topics are matched, or a small plan is made.
    ``round``: held while a round computes what takes long. ``plans``: what these connections keep in memory.
    """

    process: Turn
    thread: Turn
    round: Turn
    plans: HeldPlans


class AllInlineTurns:
    """The turns of all inline connections: the process and the threads do not wait for each other."""

    def __init__(self) -> None:
        self._process, self._thread, self._round = NamespaceTurns(), NamespaceTurns(), NamespaceTurns()
        self._plans = defaultdict[str, HeldPlans](lambda: HeldPlans(MOST_ROWS))

    def of(self, namespace: str) -> InlineTurns:
        """The turns of this namespace."""
        return InlineTurns(
            partial(self._process.of, namespace),
            partial(self._thread.of, namespace),
            partial(self._round.of, namespace),
            self._plans[namespace],
        )
