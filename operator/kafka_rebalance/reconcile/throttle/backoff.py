"""Which brokers are asked again when: one that does not answer costs its time-out seldom, and nobody else anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kafka_rebalance.model.topology import BrokerId

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0


@dataclass
class Backoff:
    """Doubles the pause with every silence in a row, up to ``LONGEST_SECONDS``."""

    monotonic: Callable[[], float]
    _until: dict[BrokerId, float] = field(default_factory=dict)
    _pause: dict[BrokerId, float] = field(default_factory=dict)

    def to_ask(self, brokers: Iterable[BrokerId]) -> list[BrokerId]:
        """Those of them that are to be asked now, in their order."""
        now = self.monotonic()
        return sorted(broker for broker in brokers if self._until.get(broker, now) <= now)

    def silent(self, broker: BrokerId) -> None:
        """It did not answer."""
        pause = min(2 * self._pause.get(broker, FIRST_SECONDS / 2), LONGEST_SECONDS)
        self._pause[broker] = pause
        self._until[broker] = self.monotonic() + pause

    def answered(self, broker: BrokerId) -> None:
        """It is there again."""
        self._until.pop(broker, None)
        self._pause.pop(broker, None)
