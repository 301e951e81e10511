"""Since when brokers are away, and when the set of live brokers last changed."""

from collections.abc import Iterable

from kafka_rebalance.clock import Clock
from kafka_rebalance.execution.health_gate import Change
from kafka_rebalance.kafka.ports import ClusterInfo
from kafka_rebalance.model.topology import BrokerId


class BrokerMembership:
    """The live brokers of one cluster over time. A restart forgets what it knows."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._members: frozenset[BrokerId] | None = None
        self._change: tuple[float, frozenset[BrokerId], frozenset[BrokerId]] | None = None
        self._away_since: dict[BrokerId, float] = {}

    def note(self, info: ClusterInfo) -> None:
        """Remember when the set of live brokers changed. Changes before the start of this process are not known."""
        members = frozenset(info.brokers)
        if self._members is not None and members != self._members:
            self._change = (self._clock.monotonic(), members - self._members, self._members - members)
        self._members = members

    def note_away(self, brokers: Iterable[BrokerId], info: ClusterInfo) -> None:
        """Remember since when the brokers that a run needs are not live."""
        now = self._clock.monotonic()
        away = set(brokers) - set(info.brokers)
        self._away_since = {broker: self._away_since.get(broker, now) for broker in away}

    def away(self, less_than_seconds: float) -> frozenset[BrokerId]:
        """Brokers that are not live, but have been away for less than this: they may be restarting."""
        now = self._clock.monotonic()
        return frozenset(b for b, since in self._away_since.items() if now - since < less_than_seconds)

    @property
    def change(self) -> Change | None:
        """The last change of the set of live brokers; None if there was none."""
        if self._change is None:
            return None
        at, joined, left = self._change
        return Change(self._clock.monotonic() - at, joined, left)
