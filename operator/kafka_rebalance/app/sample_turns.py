"""Limits how many samples are taken at a time, and shares the turns between namespaces.

A namespace may have any number of KafkaConnections, and their brokers may answer as late as a turn lasts. So the next
turn is for the namespace that has the fewest, and not for the one that has waited longest. Among several it is for the
one that was given its last turn the longest ago: else two namespaces whose connections always wait would get all turns.
"""

import asyncio
from collections import Counter

_MOST_REMEMBERED = 1_000


class SampleTurns:
    """``free``: how many turns nobody has."""

    def __init__(self, at_once: int) -> None:
        self.free = at_once
        self._held = Counter[str]()
        self._waiting: dict[asyncio.Future[None], str] = {}
        self._given: dict[str, int] = {}
        """By namespace, the number of its last turn, in this order. Turns are numbered from 1."""
        self._count = 0

    async def take(self, namespace: str) -> None:
        """Wait for a turn."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = namespace
        self._give()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given just before
                self.release(namespace)
            raise
        finally:
            self._waiting.pop(turn, None)

    def release(self, namespace: str) -> None:
        """The namespace has one turn less."""
        self.free += 1
        self._held[namespace] -= 1
        if not self._held[namespace]:
            del self._held[namespace]
        self._give()

    def _give(self) -> None:
        while self.free and (waiting := [turn for turn in self._waiting if not turn.done()]):
            turn = min(waiting, key=self._rank)
            self._note(self._waiting[turn])
            turn.set_result(None)

    def _rank(self, turn: asyncio.Future[None]) -> tuple[int, int]:
        namespace = self._waiting[turn]
        return self._held[namespace], self._given.get(namespace, 0)

    def _note(self, namespace: str) -> None:
        self.free -= 1
        self._held[namespace] += 1
        self._count += 1
        self._given.pop(namespace, None)
        self._given[namespace] = self._count
        if len(self._given) > _MOST_REMEMBERED:
            del self._given[next(iter(self._given))]
