"""Matches of topics that no round waits for until they end: a later round takes the result.

The thread may be busy with the slow expressions of other namespaces and clusters (`inline_thread`).
"""

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any, NamedTuple

from kafka_rebalance.reconcile.state.inline_thread import in_thread
from kafka_rebalance.reconcile.state.namespace_turns import Turn

_ROUND_SECONDS = 2.0
"""How long a round waits, for all of its matches together."""


class Match(NamedTuple):
    """``key``: what is matched. A result is of use only for the same key."""

    key: Hashable
    task: asyncio.Task[Any]


class LateMatches:
    """One match at a time for each name. ``turn``: as for ``in_thread``."""

    def __init__(self, turn: Turn | None) -> None:
        self._turn = turn
        self._matches: dict[Hashable, Match] = {}
        self._ends = 0.0

    def begin_round(self) -> None:
        """From now on, ``wait`` waits for a few seconds in all."""
        self._ends = asyncio.get_running_loop().time() + _ROUND_SECONDS

    def begin(self, name: Hashable, key: Hashable, work: Callable[[], object], namespace: str) -> None:
        """Match off the event loop, unless something of this name is being matched. One that has ended is replaced."""
        if name not in self._matches or self._matches[name].task.done():
            task = asyncio.create_task(in_thread(work, self._turn, namespace))
            self._matches[name] = Match(key, task)

    async def wait(self) -> bool:
        """Until a match ends. False: the round must not wait any longer."""
        seconds = self._ends - asyncio.get_running_loop().time()
        if seconds <= 0:
            return False
        tasks = {match.task for match in self._matches.values() if not match.task.done()}
        if tasks:
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return True

    def key(self, name: Hashable) -> Any:
        """What is being matched under this name, or has been; None: nothing."""
        return self._matches[name].key if name in self._matches else None

    async def ended(self, name: Hashable) -> bool:
        """Whether this match has ended, or ends before the round must go on."""
        task = self._matches[name].task
        while not task.done() and await self.wait():
            pass
        return task.done()

    def result(self, name: Hashable) -> Any:
        """What a match that has ended found. Raises its error, which is not kept."""
        task = self._matches[name].task
        if task.cancelled() or task.exception() is not None:
            del self._matches[name]
        return task.result()

    def take_ended(self) -> Iterator[Match]:
        """The matches that have ended. They are not kept."""
        for name, match in list(self._matches.items()):
            if match.task.done():
                yield self._matches.pop(name)

    def keep(self, names: Collection[Hashable]) -> None:
        """Forget all but these. What is being matched is not awaited any more."""
        for name in self._matches.keys() - set(names):
            task = self._matches.pop(name).task
            if not task.cancel() and not task.cancelled():
                task.exception()  # nobody asks for it any more
