"""What our Kafka user may not do, asked for now and then; and topics that are hidden from it.

Kafka leaves topics that we may not describe out of "all topics", without an error. The log dirs of the brokers show
them: reading those takes a permission on the cluster only.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from heapq import nsmallest
from operator import attrgetter

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.kafka.least_permissions import MissingPermission, missing_permissions
from kafka_rebalance.kafka.ports import KafkaReader, LogDir
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reconcile.state.round_thread import computed

log = logging.getLogger(__name__)

ASK_AGAIN_SECONDS = 60.0
_SOONEST_SECONDS = 5.0
_topic_of = attrgetter("topic")
_MANY = 10_000
"""The number of replicas from which they are looked through in a thread: some 10 ms."""
MAX_TOPICS = 1_000
"""Of how many topics of the rebalances a probe asks at most, and of how many hidden ones: the first by name."""


class PermissionProbe:
    """Of one cluster. ``missing``: as of the last answer."""

    def __init__(self, admin: KafkaReader, clock: Clock) -> None:
        self._admin = admin
        self._clock = clock
        self._asked_at = float("-inf")
        self._asked: frozenset[str] = frozenset()
        self._hidden: frozenset[str] = frozenset()
        self.missing: tuple[MissingPermission, ...] = ()

    async def look(self, topics: Collection[str]) -> None:
        """Ask, if it is time to: soon for topics that were not asked for yet. No answer: what was known stays."""
        age, wanted = self._clock.monotonic() - self._asked_at, frozenset(sorted(topics)[:MAX_TOPICS])
        if age < (ASK_AGAIN_SECONDS if wanted <= self._asked else _SOONEST_SECONDS):
            return
        self._asked_at, self._asked = self._clock.monotonic(), wanted
        try:
            found = await self._admin.authorized_operations(wanted | self._hidden)
        except RebalanceError as error:
            log.info("what is permitted is not known: %s", error.message)
            return
        self.missing = missing_permissions(found)

    async def compare(
        self, log_dirs: Mapping[BrokerId, Iterable[LogDir]], known: Mapping[TopicPartition, object]
    ) -> None:
        """Look for topics that brokers hold and that are not among ``known``, the partitions of all topics."""
        try:
            hidden = await hidden_topics(self._admin, log_dirs, known)
        except RebalanceError as error:
            log.info("whether topics are hidden from us is not known: %s", error.message)
            return
        hidden = frozenset(nsmallest(MAX_TOPICS, hidden))  # a server may show any number of them
        if hidden != self._hidden:
            self._hidden, self._asked_at = hidden, float("-inf")


async def hidden_topics(
    admin: KafkaReader, log_dirs: Mapping[BrokerId, Iterable[LogDir]], known: Mapping[TopicPartition, object]
) -> frozenset[str]:
    """Topics on the disks of brokers that we may not describe. One that was just deleted is none."""

    def unknown() -> set[str]:
        held = set[str]()
        for dirs in log_dirs.values():
            for log_dir in dirs:
                held.update(map(_topic_of, log_dir.replica_bytes))
        return held.difference(map(_topic_of, known))

    held = sum(len(log_dir.replica_bytes) for dirs in log_dirs.values() for log_dir in dirs)
    unseen = await computed(unknown, many=held + len(known) >= _MANY)
    if not unseen:
        return frozenset()
    errors = (await admin.describe_partitions(unseen)).errors
    return frozenset(topic for topic, error in errors.items() if isinstance(error, Permanent))
