"""Reads the sizes of replicas and disks of one cluster, and derives from them how fast copies and leaders grow."""

import logging
from collections.abc import Collection, Mapping
from itertools import chain

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.execution.disk_space import DiskSpace
from kafka_rebalance.execution.progress import produce_rates
from kafka_rebalance.execution.reassignment_throttle import Side
from kafka_rebalance.execution.traffic import Reading, read, traffic
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaReader, LogDir, disk_space
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reconcile.observe import cluster_readings
from kafka_rebalance.reconcile.observe.cluster_readings import DiskReading, ReplicaSizes
from kafka_rebalance.reconcile.observe.permission_probe import PermissionProbe
from kafka_rebalance.reconcile.state.round_thread import computed

log = logging.getLogger(__name__)

LOG_DIR_SECONDS = 2.0
_LOG_DIR_SECONDS_AT_MOST = 10.0
_REPLICAS_PER_SECOND = 10_000
"""Between two readings: each answer names all replicas of its broker."""
IDLE_LOG_DIR_SECONDS = 30.0
_MANY = 10_000
"""The number of replicas from which they are looked through in a thread: some 10 ms."""
PRODUCE_SECONDS = 15.0
"""Between two readings from which growth is derived: over less time, the brokers' flushes would be noise."""


class SizeReader:
    """Reads the log dirs of one cluster. It remembers readings; a restart forgets them."""

    def __init__(self, admin: KafkaReader, clock: Clock, permissions: PermissionProbe) -> None:
        self._admin = admin
        self._clock = clock
        self._permissions = permissions
        self.replica_bytes = ReplicaSizes()
        self.produce_rates: Mapping[TopicPartition, float] = {}
        """Bytes per second by which the leaders of what is being copied grow."""
        self.traffic: Mapping[tuple[BrokerId, Side], int] = {}
        """Bytes per second that each broker sends and fetches for copies, as far as known."""
        self._incomplete: dict[BrokerId, frozenset[TopicPartition]] = {}
        """The copies in flight to each broker when its log dirs were read."""
        self._recent: set[TopicPartition] = set()
        """The partitions whose brokers have changed since the sizes on all brokers were read."""
        self._gone: frozenset[BrokerId] = frozenset()
        """Those with sizes that were not there when all brokers were last asked."""
        self._disks: dict[BrokerId, DiskSpace] = {}
        self._copies_before: Reading | None = None
        self._leaders_before: tuple[float, Mapping[TopicPartition, int]] | None = None
        self._read_at = float("-inf")
        self._all_read_at = float("-inf")

    @property
    def disks(self) -> Mapping[BrokerId, DiskSpace]:
        """What the brokers report of their disks; those that report no usable bytes are left out."""
        return self._disks

    def reading(self, in_flight: Collection[TopicPartition]) -> DiskReading:
        """The disks and replicas as last read. ``in_flight``: the partitions being reassigned."""
        recent = self._recent.union(*self._incomplete.values())
        return DiskReading(self._disks, self.replica_bytes, self.was_incomplete, recent, in_flight)

    def note_changed(self, tps: Collection[TopicPartition]) -> None:
        """Remember that the brokers of these partitions have changed."""
        self._recent.update(tps)

    def drop_unknown(self, known: Mapping[TopicPartition, PartitionState]) -> None:
        """Forget the changes of partitions that are gone: the log dirs may be unreadable for long."""
        if len(self._recent) > len(known):
            self._recent.intersection_update(known)

    def was_incomplete(self, tp: TopicPartition, broker: BrokerId) -> bool:
        """Whether the partition was still being copied to the broker when its disks were last read, or not yet."""
        return tp in self._incomplete.get(broker, ()) or (tp, broker) not in self.replica_bytes

    def forget(self) -> None:
        """Free what was read. Nothing is read any more after this."""
        self.replica_bytes = ReplicaSizes()
        self.produce_rates, self.traffic = {}, {}
        self._incomplete, self._recent, self._disks = {}, set(), {}
        self._gone = frozenset()
        self._copies_before, self._leaders_before = None, None

    async def read(
        self,
        partitions: Mapping[TopicPartition, PartitionState],
        info: ClusterInfo,
        known: Mapping[TopicPartition, PartitionState],
    ) -> None:
        """Every few seconds the sizes on brokers that copy, less often on all. Without sizes the rebalance goes on.

        ``partitions``: those being copied. ``known``: every partition, which a reading of all brokers is compared with.
        """
        now = self._clock.monotonic()
        copying = {broker for state in partitions.values() if state.adding for broker in state.replicas}
        all_brokers = now - self._all_read_at >= IDLE_LOG_DIR_SECONDS
        asked = set(info.brokers) if all_brokers else copying & set(info.brokers)
        pause = min(len(self.replica_bytes) / _REPLICAS_PER_SECOND, _LOG_DIR_SECONDS_AT_MOST)
        if not asked or now - self._read_at < max(LOG_DIR_SECONDS, pause):
            return
        self._read_at = now
        if all_brokers:
            self._all_read_at = now
            self._forget_gone(info.brokers)
        found = dict[BrokerId, tuple[LogDir, ...]]()
        try:
            for some in cluster_readings.asked_together(asked, len(self.replica_bytes)):
                found |= (dirs := await self._admin.log_dirs(some))
                many = sum(len(one.replica_bytes) for one in chain.from_iterable(dirs.values())) >= _MANY
                sizes = await computed(cluster_readings.sizes_of_each, dirs, many=many)
                self._take_in(dirs, sizes, some, partitions)
        except RebalanceError as error:
            log.warning("sizes on disk are not known: %s", error.message)
            return
        if all_brokers:
            self._recent = set()
            await self._permissions.compare(found, known)
        # In threads: servers of an inline connection may show 100,000 copies. Only this round writes to what they read.
        many = sum(1 + len(state.adding) for state in partitions.values()) >= _MANY
        await computed(self._read_produce_rates, partitions, now, many=many)
        await computed(self._read_traffic, partitions, now, many=many)

    def _forget_gone(self, there: Collection[BrokerId]) -> None:
        """Forget brokers that are not there at two readings of all brokers: a server may name others at each."""
        gone = self.replica_bytes.read_of.difference(there)
        for broker in gone & self._gone:
            self.replica_bytes.remove(broker)
            self._disks.pop(broker, None)
            self._incomplete.pop(broker, None)
        self._gone = gone

    def _take_in(
        self,
        found: Mapping[BrokerId, Collection[LogDir]],
        sizes: Mapping[BrokerId, Mapping[TopicPartition, int]],
        asked: Collection[BrokerId],
        partitions: Mapping[TopicPartition, PartitionState],
    ) -> None:
        """Replace what is known of these brokers; of one that gave no answer nothing is known."""
        copies: dict[BrokerId, list[TopicPartition]] = {}
        for tp, state in partitions.items():
            for broker in state.adding:
                copies.setdefault(broker, []).append(tp)
        for broker in asked:
            self._incomplete[broker] = frozenset(copies.get(broker, ()))
            self.replica_bytes.replace(broker, sizes.get(broker, {}))
            self._disks.pop(broker, None)
            if (space := disk_space(found.get(broker, ()))) is not None:
                self._disks[broker] = space

    def _read_traffic(self, partitions: Mapping[TopicPartition, PartitionState], now: float) -> None:
        reading = read(now, partitions.values(), self.replica_bytes, self.replica_bytes.brokers)
        leaders = {tp: state.leader for tp, state in partitions.items()}
        self.traffic = traffic(self._copies_before, reading, leaders) if self._copies_before is not None else {}
        self._copies_before = reading if reading.held else None

    def _read_produce_rates(self, partitions: Mapping[TopicPartition, PartitionState], now: float) -> None:
        leaders = {
            tp: self.replica_bytes[tp, state.leader]
            for tp, state in partitions.items()
            if state.adding and state.leader is not None and (tp, state.leader) in self.replica_bytes
        }
        before = self._leaders_before
        if before is None:
            self._leaders_before = (now, leaders)
        elif now - before[0] >= PRODUCE_SECONDS:
            self.produce_rates = produce_rates(before[1], leaders, now - before[0])
            self._leaders_before = (now, leaders)
