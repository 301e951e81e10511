"""When to ask each broker again, so that a broker that does not answer rarely costs its time-out."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from kafka_rebalance.model.topology import BrokerId

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0


@dataclass
class Backoff:
    """Doubles a broker's pause with each failure in a row, up to ``LONGEST_SECONDS``."""

    monotonic: Callable[[], float]
    _until: dict[BrokerId, float] = field(default_factory=dict)
    _pause: dict[BrokerId, float] = field(default_factory=dict)

    def due(self, brokers: Iterable[BrokerId]) -> list[BrokerId]:
        """The brokers that may be asked now, sorted."""
        now = self.monotonic()
        return sorted(broker for broker in brokers if self._until.get(broker, now) <= now)

    def failed(self, broker: BrokerId) -> None:
        """The broker did not answer, or refused."""
        pause = min(2 * self._pause.get(broker, FIRST_SECONDS / 2), LONGEST_SECONDS)
        self._pause[broker] = pause
        self._until[broker] = self.monotonic() + pause

    def succeeded(self, broker: BrokerId) -> None:
        """The broker answered."""
        self._until.pop(broker, None)
        self._pause.pop(broker, None)

    def forget_all_but(self, brokers: Collection[BrokerId]) -> None:
        """The others are not asked any more."""
        self._until = {broker: at for broker, at in self._until.items() if broker in brokers}
        self._pause = {broker: pause for broker, pause in self._pause.items() if broker in brokers}
