"""The progress of a run, counted from scratch: what the sums that are kept between rounds are compared with."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.progress import Progress, ReplicaBytes
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason


def measure(
    moves: Iterable[PartitionMove],
    statuses: Mapping[TopicPartition, PartitionStatus],
    cluster: ClusterState,
    replica_bytes: ReplicaBytes,
    direction: Direction,
) -> Progress:
    """The progress of the run. ``replica_bytes``: sizes on disk, read from time to time.

    For a skipped partition, only the bytes copied so far count, also in the total, because the rest is never copied.
    """
    phases = Counter(v.phase for v in statuses.values())
    total = replicas = replicas_done = moved = in_total = above = 0
    for move in moves:
        total += 1
        start, goal = _way(move, direction)
        state = cluster.partitions.get(move.tp)
        status = statuses.get(move.tp)
        left_alone = status is not None and status.phase is MovePhase.SKIPPED
        others = left_alone or (status is not None and status.reason == Reason.FOREIGN_REASSIGNMENT)
        if state is not None and not state.in_flight and not others:
            above += len(state.replicas) > max(len(start), len(goal))
        for broker in goal:
            if broker in start:
                continue
            replicas += 1
            replicas_done += state is not None and broker in state.replicas and broker in state.isr
            arrived = _arrived(move, broker, state, replica_bytes)
            moved += arrived
            in_total += arrived if left_alone else max(move.size_bytes, 0)
    return Progress(
        partitions_total=total,
        partitions_completed=phases[MovePhase.DONE],
        partitions_in_flight=phases[MovePhase.IN_FLIGHT],
        partitions_waiting=phases[MovePhase.WAITING] + phases[MovePhase.READY],
        partitions_skipped=phases[MovePhase.SKIPPED],
        replicas_total=replicas,
        replicas_completed=replicas_done,
        bytes_total=in_total,
        bytes_moved=moved,
        above_replication_factor=above,
    )


def bytes_left(
    moves: Iterable[PartitionMove],
    statuses: Mapping[TopicPartition, PartitionStatus],
    cluster: ClusterState,
    replica_bytes: ReplicaBytes,
    direction: Direction,
) -> tuple[dict[BrokerId, int], dict[BrokerId, int]]:
    """Bytes still to be copied into each destination and out of each leader, for ``seconds_at_throttle``.

    Without skipped partitions. A partition without a leader counts only at its destinations.
    """
    into: defaultdict[BrokerId, int] = defaultdict(int)
    out_of: defaultdict[BrokerId, int] = defaultdict(int)
    for move in moves:
        status = statuses.get(move.tp)
        if status is not None and status.phase in {MovePhase.DONE, MovePhase.SKIPPED}:
            continue
        start, goal = _way(move, direction)
        state = cluster.partitions.get(move.tp)
        for broker in goal:
            if broker in start:
                continue
            left = max(move.size_bytes, 0) - _arrived(move, broker, state, replica_bytes)
            into[broker] += left
            if state is not None and state.leader is not None:
                out_of[state.leader] += left
    return dict(into), dict(out_of)


def _way(move: PartitionMove, direction: Direction) -> tuple[Replicas, Replicas]:
    """The list that the move starts from and the list that it leads to."""
    if direction is Direction.FORWARD:
        return move.origin, move.target
    return move.target, move.origin


def _arrived(move: PartitionMove, broker: BrokerId, state: PartitionState | None, replica_bytes: ReplicaBytes) -> int:
    """Bytes of the copy on the broker: all if it is in sync, else the size on disk."""
    size = max(move.size_bytes, 0)
    if state is None or broker not in state.replicas:
        return 0
    return size if broker in state.isr else min(size, replica_bytes.get((move.tp, broker), 0))
