"""How many of KIP-435's steps a run has completed: derived from the lists alone, so that a restart loses none. Pure."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.steps import Present, StepRules, all_steps
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason


def steps_completed(
    moves: Iterable[PartitionMove],
    statuses: Mapping[TopicPartition, PartitionStatus],
    cluster: ClusterState,
    direction: Direction,
    parallel_replicas: int,
) -> int:
    """Steps from the start of each partition to its current list, over all partitions that are not skipped.

    For one partition: the steps of its whole move, less those left, both with R = ``parallel_replicas`` and as if
    everything were in sync. Sent calls are not counted, so after a change of R earlier steps count in the new size.
    """
    forward, found = direction is Direction.FORWARD, cluster.partitions
    return sum(
        steps_of(m, statuses.get(m.tp), found.get(m.tp), forward=forward, parallel_replicas=parallel_replicas)
        for m in moves
    )


def steps_of(
    move: PartitionMove,
    status: PartitionStatus | None,
    state: PartitionState | None,
    *,
    forward: bool,
    parallel_replicas: int,
) -> int:
    """Those of one partition."""
    if state is None or status is None:
        return 0
    if status.phase is MovePhase.SKIPPED or status.reason == Reason.FOREIGN_REASSIGNMENT:
        return 0
    start, goal = (move.origin, move.target) if forward else (move.target, move.origin)
    # The step that adds replicas is not complete.
    present = tuple(b for b in state.replicas if b not in state.adding) if state.adding else state.replicas
    if present == start:
        # An election changes no list.
        return int(move.elects and forward and status.phase is MovePhase.DONE)
    if present == goal:
        return _steps(start, goal, parallel_replicas)
    return max(0, _steps(start, goal, parallel_replicas) - _steps(present, goal, parallel_replicas))


def _steps(start: Replicas, goal: Replicas, parallel_replicas: int) -> int:
    """The ids of the brokers make no difference, so partitions that differ only in them share one cached result."""
    pattern = tuple([goal.index(b) if b in goal else ~at for at, b in enumerate(start)])
    return _steps_of(pattern, len(goal), parallel_replicas)


@lru_cache(maxsize=4096)
def _steps_of(pattern: tuple[int, ...], goal_length: int, parallel_replicas: int) -> int:
    start = tuple(BrokerId(b) for b in pattern)
    goal = tuple(BrokerId(b) for b in range(goal_length))
    return len(all_steps(Present(start, frozenset(start), start[0]), goal, StepRules(parallel_replicas)))
