"""Limits how many samples are taken at a time, and shares the turns between namespaces.

A namespace may have any number of KafkaConnections, and their brokers may answer as late as a turn lasts. So the next
turn is for the namespace that has the fewest, and not for the one that has waited longest.
"""

import asyncio
from collections import Counter


class SampleTurns:
    """``free``: how many turns nobody has."""

    def __init__(self, at_once: int) -> None:
        self.free = at_once
        self._held = Counter[str]()
        self._waiting: dict[asyncio.Future[None], str] = {}

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
            turn = min(waiting, key=lambda turn: self._held[self._waiting[turn]])
            self.free -= 1
            self._held[self._waiting[turn]] += 1
            turn.set_result(None)
