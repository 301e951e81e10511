"""What one tick reads from Kafka, and how long things have been as they are."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.execution.decide import Errand, Observation
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, TopicPartition
from kafka_rebalance.reconcile.lifecycle import Clock

log = logging.getLogger(__name__)

LOG_DIR_SECONDS = 2.0
MIN_INSYNC_SECONDS = 60.0
BROKER_GONE_SECONDS = 60.0
"""A broker that is away for less may just be restarting."""
_GONE_AFTER_READINGS = 5
"""One "unknown topic" is no proof of deletion: a broker may lag."""


class Observer:
    """Reads one cluster. What it remembers are times and counts; after a restart they begin anew."""

    def __init__(self, admin: KafkaAdmin, clock: Clock) -> None:
        self._admin = admin
        self._clock = clock
        self.replica_bytes: dict[tuple[TopicPartition, BrokerId], int] = {}
        self._log_dirs_read_at = float("-inf")
        self._min_insync: dict[str, int] = {}
        self._min_insync_read_at: dict[str, float] = {}
        self._absent: Counter[TopicPartition] = Counter()
        self._away_since: dict[BrokerId, float] = {}

    async def look(self, errands: Collection[Errand], info: ClusterInfo) -> Observation:
        """The partitions of the errands as they are now."""
        topics = {errand.tp.topic for errand in errands}
        partitions = await self._admin.describe_partitions(topics)
        await self._read_min_insync(topics)
        # Without min.insync.replicas no drop can be judged: such a topic counts as not told about.
        known = {tp: state for tp, state in partitions.items() if tp.topic in self._min_insync}
        self._absent = Counter({e.tp: self._absent[e.tp] + 1 for e in errands if e.tp not in partitions})
        await self._read_sizes(partitions, info)
        return Observation(
            ClusterState(info.cluster_id, info.brokers, known),
            self._min_insync,
            frozenset(tp for tp, count in self._absent.items() if count >= _GONE_AFTER_READINGS),
            self._restarting(errands, info),
        )

    def _restarting(self, errands: Iterable[Errand], info: ClusterInfo) -> frozenset[BrokerId]:
        now = self._clock.monotonic()
        away = {broker for errand in errands for broker in errand.known} - set(info.brokers)
        self._away_since = {broker: self._away_since.get(broker, now) for broker in away}
        return frozenset(b for b, since in self._away_since.items() if now - since < BROKER_GONE_SECONDS)

    async def _read_sizes(self, partitions: dict[TopicPartition, PartitionState], info: ClusterInfo) -> None:
        """Every few seconds while something is copied. Only for progress: without sizes the work goes on."""
        now = self._clock.monotonic()
        if now - self._log_dirs_read_at < LOG_DIR_SECONDS or not any(s.adding for s in partitions.values()):
            return
        self._log_dirs_read_at = now
        try:
            told = await self._admin.log_dirs(tuple(info.brokers))
        except RebalanceError as error:
            log.warning("sizes on disk are not known: %s", error.message)
            return
        self.replica_bytes = {
            (tp, broker): size
            for broker, dirs in told.items()
            for log_dir in dirs
            for tp, size in log_dir.replica_bytes.items()
        }

    async def _read_min_insync(self, topics: Iterable[str]) -> None:
        """The effective value per topic, read again once a minute: it seldom changes, and each read costs a call."""
        now = self._clock.monotonic()
        due = [t for t in topics if now - self._min_insync_read_at.get(t, float("-inf")) > MIN_INSYNC_SECONDS]
        if not due:
            return
        for topic, values in (await self._admin.topic_configs(due, ["min.insync.replicas"])).items():
            value = values["min.insync.replicas"].value
            self._min_insync[topic] = int(value) if value else 1
            self._min_insync_read_at[topic] = now
