"""Reads the lists of throttled replicas of the topics, and keeps what was read lately."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from kafka_rebalance.execution.list_budget import ListKey, StoredList
from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES
from kafka_rebalance.kafka.ports import Answers, ConfigValue, KafkaReader
from kafka_rebalance.reconcile.state.round_thread import computed
from kafka_rebalance.reconcile.throttle.ledger_cache import LedgerCache
from kafka_rebalance.reconcile.throttle.slices import MANY, length_of

_FRESH_SECONDS = 1.0
"""How old the reading may be that an append is measured by; it is the pause between two readings of what is listed."""
_KNOWN_SECONDS = 5.0
"""How old the reading may be that new copies are chosen by. After that, a full list is tried again."""
_MANY_CHARACTERS = 20_000
"""Of all lists; one may have 32,767. To split them takes two milliseconds."""
_MOST_UNREADABLE = 10_000
"""Above this number, topics that are not read any more are forgotten: a server may refuse others in each round."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """The lists of one topic, and when they were read."""

    at: float
    values: Mapping[str, ConfigValue]
    stored: Mapping[str, StoredList]

    @classmethod
    def of(cls, at: float, values: Mapping[str, ConfigValue]) -> "_Reading":
        """This reading."""
        return cls(at, values, {name: StoredList.of(read.value) for name, read in values.items()})


def _readings_of(at: float, found: Mapping[str, Mapping[str, ConfigValue]]) -> dict[str, _Reading]:
    return {topic: _Reading.of(at, values) for topic, values in found.items()}


class ListReadings:
    """``unreadable``: topics of which the last reading failed."""

    def __init__(self, admin: KafkaReader, cache: LedgerCache, monotonic: Callable[[], float]) -> None:
        self._admin = admin
        self._cache = cache
        self._monotonic = monotonic
        self._readings: dict[str, _Reading] = {}
        self.unreadable: frozenset[str] = frozenset()

    async def read(self, topics: Collection[str]) -> Answers[str, dict[str, ConfigValue], str]:
        """Topics that we may not read wait; all others go on."""
        if not topics:
            return Answers()
        now = self._monotonic()
        found = await self._admin.topic_configs(topics, LIST_NAMES)
        for topic in topics:
            if (error := found.errors.get(topic)) is not None:
                self._cache.note(f"topic {topic} (reading)", error.message)
            else:
                self._cache.solved(f"topic {topic} (reading)")
        before = self.unreadable if len(self.unreadable) < _MOST_UNREADABLE else frozenset[str]()
        asked = set(topics)
        self.unreadable = (before - asked) | found.errors.keys()
        self._readings = {t: r for t, r in self._readings.items() if t not in asked and now - r.at <= _KNOWN_SECONDS}
        length = length_of(one.value for values in found.values() for one in values.values())
        many = len(found) > MANY or length > _MANY_CHARACTERS
        self._readings |= await computed(_readings_of, now, found, many=many)
        return found

    def values_of(self, topic: str) -> Mapping[str, ConfigValue] | None:
        """What the last reading showed; None if it failed."""
        reading = self._readings.get(topic)
        return None if reading is None else reading.values

    def entries_of(self, topic: str, name: str) -> frozenset[str]:
        """The entries of one list in the last reading; none if it failed."""
        reading = self._readings.get(topic)
        return reading.stored[name].entries if reading is not None and name in reading.stored else frozenset()

    def is_fresh(self, topic: str) -> bool:
        """Whether the lists were read a moment ago."""
        reading = self._readings.get(topic)
        return reading is not None and self._monotonic() - reading.at <= _FRESH_SECONDS

    @property
    def stored(self) -> dict[ListKey, StoredList]:
        """The lists that were read lately."""
        now = self._monotonic()
        return {
            (topic, name): found
            for topic, reading in self._readings.items()
            if now - reading.at <= _KNOWN_SECONDS
            for name, found in reading.stored.items()
        }
