"""What brokers say of the log dirs of the replicas that move between them."""

import logging
from collections import Counter
from collections.abc import Collection, Mapping

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.execution.log_dir_moves import DirKey, LogDirReading, ReplicaPlace
from kafka_rebalance.kafka.ports import KafkaReader, LogDir
from kafka_rebalance.model.topology import BrokerId, ReplicaKey, TopicPartition
from kafka_rebalance.reconcile.state.round_thread import computed

log = logging.getLogger(__name__)

LOG_DIR_MOVE_SECONDS = 2.0
_MANY = 10_000
"""The number of replicas from which answers are looked through in a thread: some 10 ms."""


class LogDirReader:
    """Reads the log dirs of brokers, every few seconds: an answer names every replica of the broker."""

    def __init__(self, admin: KafkaReader, clock: Clock) -> None:
        self._admin = admin
        self._clock = clock
        self._read_at = float("-inf")

    async def read(self, keys: Collection[ReplicaKey]) -> LogDirReading | None:
        """Where these replicas are; None: not read in this round. Brokers that do not answer are left out."""
        now = self._clock.monotonic()
        if not keys or now - self._read_at < LOG_DIR_MOVE_SECONDS:
            return None
        self._read_at = now
        return await self._read(keys)

    async def unchanged(self, seen: LogDirReading, keys: Collection[ReplicaKey]) -> set[ReplicaKey]:
        """Those of the replicas that are still where this reading, the last one, shows them.

        They are read again if that reading began two seconds ago or earlier. A replica that cannot be read is left out.
        """
        if not keys or self._clock.monotonic() - self._read_at < LOG_DIR_MOVE_SECONDS:
            return set(keys)
        now = await self._read(keys)
        return {key for key in keys if key[1] in now.brokers and seen.log_dirs_of(key) == now.log_dirs_of(key)}

    async def _read(self, keys: Collection[ReplicaKey]) -> LogDirReading:
        try:
            found = await self._admin.log_dirs({broker for _, broker in keys})
        except RebalanceError as error:
            log.warning("log dirs are not known: %s", error.message)
            return LogDirReading(asked=frozenset(keys))
        named = sum(len(one.replica_bytes) + len(one.future_bytes) for dirs in found.values() for one in dirs)
        return await computed(reading_of, found, keys, many=named + len(keys) >= _MANY)


def reading_of(found: Mapping[BrokerId, Collection[LogDir]], keys: Collection[ReplicaKey]) -> LogDirReading:
    """These replicas, the copies in flight, and the room, in what the brokers have answered."""
    wanted: dict[BrokerId, set[TopicPartition]] = {}
    for tp, broker in keys:
        wanted.setdefault(broker, set()).add(tp)
    places: dict[ReplicaKey, ReplicaPlace] = {}
    flying: Counter[BrokerId] = Counter()
    room: dict[DirKey, int] = {}
    for broker, dirs in found.items():
        sizes = {tp: size for log_dir in dirs for tp, size in log_dir.replica_bytes.items()}
        at = {tp: log_dir.path for log_dir in dirs for tp in log_dir.replica_bytes.keys() & wanted.get(broker, set())}
        for log_dir in dirs:
            coming = sum(max(0, sizes.get(tp, 0) - copied) for tp, copied in log_dir.future_bytes.items())
            flying[broker] += len(log_dir.future_bytes)
            if log_dir.usable_bytes >= 0:
                room[broker, log_dir.path] = log_dir.usable_bytes - coming
        future = {tp: (log_dir.path, copied) for log_dir in dirs for tp, copied in log_dir.future_bytes.items()}
        for tp in wanted.get(broker, ()):
            if tp in at or tp in future:
                path, copied = future.get(tp, (None, 0))
                places[tp, broker] = ReplicaPlace(at.get(tp), path, sizes.get(tp, 0), copied)
    return LogDirReading(frozenset(found), places, flying, room, frozenset(keys))
