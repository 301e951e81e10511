"""The answers of a server that claims a cluster id: read on demand, and never while the claim is judged.

The server may hang, and the cluster's owner must not wait for a server that only claims the id.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeVar

from kafka_rebalance.kafka.ports import Answers, ClusterInfo, KafkaReader

T = TypeVar("T")


class _NotRead(Exception):
    """Topics of a server are needed that were not read; None: all."""

    def __init__(self, topics: Collection[str] | None) -> None:
        super().__init__(topics)
        self.topics = topics


class Claimed:
    """The answers of a server that claims a cluster id.

    ``servers``: the addresses that led there, host:port; ``connection`` and ``secrets``: as in a ``Binding``.
    """

    def __init__(
        self,
        info: ClusterInfo,
        reader: KafkaReader,
        servers: frozenset[str] = frozenset(),
        connection: str = "",
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self.info = info
        self.brokers = frozenset(info.brokers)
        self.servers = servers
        self.connection = connection
        self.secrets = secrets or {}
        self._reader = reader
        self._read: dict[frozenset[str] | None, Answers[str, str, str]] = {frozenset(): Answers()}

    def ids_of(self, topics: Collection[str] | None) -> Answers[str, str, str]:
        """The ids of these topics, or of all. Only inside of ``judged``."""
        key = None if topics is None else frozenset(topics)
        if key not in self._read:
            raise _NotRead(topics)
        return self._read[key]

    async def judged(self, judge: Callable[[], Awaitable[T]]) -> T:
        """The result of ``judge``, which is called again after each reading that it needed."""
        while True:
            try:
                return await judge()
            except _NotRead as missing:
                topics = missing.topics
            key = None if topics is None else frozenset(topics)
            self._read[key] = await self._reader.topic_ids(topics)
