"""The effective min.insync.replicas of topics, read from time to time."""

from collections.abc import Collection, Iterable, Mapping

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.kafka.ports import KafkaReader

MIN_INSYNC_SECONDS = 60.0
_ASK_AGAIN_SECONDS = 2.0
_NAME = "min.insync.replicas"


class MinInsyncReader:
    """Of one cluster; knows only the topics that it was asked for last: a server may show others in each reading.

    ``denied``: those whose configs we may not describe, and how Kafka said so.
    """

    def __init__(self, admin: KafkaReader, clock: Clock) -> None:
        self._admin = admin
        self._clock = clock
        self._known: dict[str, int] = {}
        self._read_at: dict[str, float] = {}
        self.denied: dict[str, str] = {}

    async def read(self, topics: Iterable[str]) -> dict[str, int]:
        """The value per topic, read once a minute: it rarely changes, and each read costs a call."""
        now = self._clock.monotonic()
        wanted = set(topics)
        self._forget_others(wanted)
        due = [t for t in wanted if now - self._read_at.get(t, float("-inf")) > MIN_INSYNC_SECONDS]
        if due:
            self._read_at |= dict.fromkeys(due, now - MIN_INSYNC_SECONDS + _ASK_AGAIN_SECONDS)
            found = await self._admin.topic_configs(due, [_NAME])
            self.denied = denied_now(self.denied, due, found.errors)
            for topic in found.errors:
                self._known.pop(topic, None)  # it may have been raised since we could read it
            for topic, values in found.items():
                value = values[_NAME].value
                self._known[topic] = int(value) if value else 1
                self._read_at[topic] = now
        return {topic: self._known[topic] for topic in wanted if topic in self._known}

    async def read_again(self, topics: Collection[str]) -> dict[str, int]:
        """As ``read`` for the topics it was asked for last, but these are read now."""
        wanted = self._read_at.keys() | topics
        for topic in topics:
            self._read_at.pop(topic, None)
        return await self.read(wanted)

    def _forget_others(self, wanted: Collection[str]) -> None:
        for topic in self._read_at.keys() - wanted:
            del self._read_at[topic]
            self._known.pop(topic, None)
            self.denied.pop(topic, None)


def denied_now(
    before: Mapping[str, str], asked: Collection[str], errors: Mapping[str, RebalanceError]
) -> dict[str, str]:
    """The topics that we may not read, after these were asked for. An answer that is merely missing denies nothing."""
    now = {topic: error.message for topic, error in errors.items() if isinstance(error, Permanent)}
    return {topic: why for topic, why in before.items() if topic not in asked} | now
