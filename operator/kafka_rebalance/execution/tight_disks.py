"""Which moves need an order, because they go to a broker whose disks have too little room for all of them. Pure.

Old and new copies coexist: a partition needs room on all its new brokers before it frees any on the old ones. The order
itself is found by ``execution.room_order``.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.execution.room_order import Shift
from kafka_rebalance.model.topology import BrokerId, ClusterState, Replicas, TopicPartition

Room = Mapping[BrokerId, int]
"""Free bytes by broker; absent: not limited."""


class PendingMove(NamedTuple):
    """A partition that can go on now: its replicas, the list that it goes to, and bytes of a new replica."""

    tp: TopicPartition
    replicas: Replicas
    goal: Replicas
    size: int


def moving(
    statuses: Mapping[TopicPartition, PartitionStatus],
    goals: Mapping[TopicPartition, Replicas],
    sizes: Mapping[TopicPartition, int],
    cluster: ClusterState,
) -> Iterator[PendingMove]:
    """The partitions that can go on now. One that waits takes no room, and frees none."""
    partitions = cluster.partitions
    for tp, status in statuses.items():
        if (status.phase is MovePhase.READY or status.phase is MovePhase.IN_FLIGHT) and tp in goals:
            state = partitions.get(tp)
            if state is not None and state.replicas != goals[tp]:
                yield PendingMove(tp, state.replicas, goals[tp], sizes.get(tp, 0))


def may_be_tight(coming: Iterable[Room | None], room: Room) -> bool:
    """Whether more may come to a broker than is free there. ``coming``: at most that much; None: not known."""
    most: Counter[BrokerId] = Counter()
    for share in coming:
        if share is None:
            return True
        most.update(share)
    return any(size > room[broker] for broker, size in most.items() if broker in room)


def shifts_at_tight(rows: Collection[PendingMove], replica_bytes: ReplicaBytes, room: Room) -> list[Shift[BrokerId]]:
    """The partitions that take or free room on a tight broker; the order of the others makes no difference.

    In most rounds no broker is tight, so this function must then be fast, even with many partitions.
    """
    coming: defaultdict[BrokerId, int] = defaultdict(int)
    for _, replicas, goal, size in rows:
        for broker in goal:
            if broker not in replicas:
                coming[broker] += size
    tight = {broker for broker, size in coming.items() if size > room.get(broker, size)}
    if not tight:
        return []
    return [
        Shift(
            tp,
            {b: size for b in goal if b not in replicas},
            {b: replica_bytes.get((tp, b), size) for b in replicas if b not in goal},
        )
        for tp, replicas, goal, size in rows
        if any((b in goal) != (b in replicas) for b in tight.intersection((*goal, *replicas)))
    ]
