"""How fast brokers send and fetch reassigning replicas, from two readings of the sizes of the new replicas.

Pure. Kafka has no rate per partition, so growth on disk stands for it. A lower bound: the last bytes of a copy that
completes between two readings are not seen.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.execution.reassignment_throttle import Side
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition

Held = Mapping[TopicPartition, Mapping[BrokerId, int]]


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes of the replicas being added at one moment, by partition and broker.

    ``at``: seconds of a monotonic clock; ``answered``: brokers that reported their sizes, where an absent replica does
    not exist yet.
    """

    at: float
    held: Held = field(default_factory=dict)
    answered: frozenset[BrokerId] = frozenset()


def read(
    at: float, partitions: Iterable[PartitionState], replica_bytes: ReplicaBytes, answered: frozenset[BrokerId]
) -> Reading:
    """The reading of these partitions. ``replica_bytes``: of all replicas, from the brokers that ``answered``."""
    held: dict[TopicPartition, dict[BrokerId, int]] = {}
    for state in partitions:
        sizes = {broker: replica_bytes.get((state.tp, broker)) for broker in state.adding}
        if found := {broker: size for broker, size in sizes.items() if size is not None}:
            held[state.tp] = found
    return Reading(at, held, answered)


def traffic(
    before: Reading, after: Reading, leaders: Mapping[TopicPartition, BrokerId | None]
) -> dict[tuple[BrokerId, Side], int]:
    """Bytes per second that each broker sent (leader side) and fetched (follower side) between the readings.

    ``leaders``: the current leaders; a partition without one counts only on the fetching side. A copy in the later
    reading alone started from nothing in between, if its broker had answered before. A side of a broker is absent if
    nothing is known; 0 means that its copies stood still.
    """
    seconds = after.at - before.at
    if seconds <= 0:
        return {}
    grown: Counter[tuple[BrokerId, Side]] = Counter()
    for tp, now in after.held.items():
        leader = leaders.get(tp)
        for broker, size in now.items():
            known = before.held.get(tp, {}).get(broker, 0 if broker in before.answered else None)
            if known is None or broker == leader:
                continue  # a leader does not fetch: it grows by what is produced to it
            more = max(0, size - known)
            grown[broker, Side.FOLLOWER] += more
            if leader is not None:
                grown[leader, Side.LEADER] += more
    return {side: round(more / seconds) for side, more in grown.items()}
