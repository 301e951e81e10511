"""How fast brokers send and fetch what is being reassigned, from two readings of what the new replicas hold.

Pure. Kafka tells no rate per partition, so growth on disk stands for it. It is an estimate from below: what a copy
fetched after the earlier reading and before its end is in no later one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.execution.reassignment_throttle import Side
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition

Held = Mapping[TopicPartition, Mapping[BrokerId, int]]


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes that the replicas being added held at one moment, by partition and broker.

    ``at``: seconds of a monotonic clock; ``told``: brokers that told what they hold, so that what is not there is not
    merely unknown.
    """

    at: float
    held: Held = field(default_factory=dict)
    told: frozenset[BrokerId] = frozenset()


def read(at: float, partitions: Iterable[PartitionState], replica_bytes: ReplicaBytes) -> Reading:
    """The reading of what these partitions add. ``replica_bytes``: of all replicas, from the brokers that told."""
    held: dict[TopicPartition, dict[BrokerId, int]] = {}
    for state in partitions:
        sizes = {broker: replica_bytes.get((state.tp, broker)) for broker in state.adding}
        if found := {broker: size for broker, size in sizes.items() if size is not None}:
            held[state.tp] = found
    return Reading(at, held, frozenset(broker for _, broker in replica_bytes))


def traffic(
    before: Reading, after: Reading, leaders: Mapping[TopicPartition, BrokerId | None]
) -> dict[tuple[BrokerId, Side], int]:
    """Bytes per second that each broker sent (leader side) and fetched (follower side) between the readings.

    ``leaders``: who leads each partition now; what has none, or is not in there, counts on the fetching side alone. A
    copy that only the later reading has began in between, and from nothing, if its broker told of others before. A
    side of a broker about which nothing is known is absent; 0 is a copy that stood still.
    """
    seconds = after.at - before.at
    if seconds <= 0:
        return {}
    grown: Counter[tuple[BrokerId, Side]] = Counter()
    for tp, now in after.held.items():
        leader = leaders.get(tp)
        for broker, size in now.items():
            known = before.held.get(tp, {}).get(broker, 0 if broker in before.told else None)
            if known is None or broker == leader:
                continue  # a leader fetches from nobody: what it grows by is produced to it
            more = max(0, size - known)
            grown[broker, Side.FOLLOWER] += more
            if leader is not None:
                grown[leader, Side.LEADER] += more
    return {side: round(more / seconds) for side, more in grown.items()}
