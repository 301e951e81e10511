"""A movement budget belongs to a run: a plan made within one gets what the earlier plans have left of it. Pure.

Only what has arrived counts, judged by what the partitions have now: a copy that was cancelled, or that a half-done
step took back, uses nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.model.run import Run, Spent
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.planning.problem.request import Goals


def spent_by(
    run: Run | None, moves: Iterable[PartitionMove], partitions: Mapping[TopicPartition, PartitionState]
) -> Spent:
    """What the plans of the run have moved, including the present one (``moves``); nothing without a run.

    A topic that was deleted or created anew meanwhile does not count: nothing is known of it. A run that was being
    undone has spent what is not back yet.
    """
    if run is None:
        return Spent()
    replica_moves = data = 0
    for move in moves:
        state = partitions.get(move.tp)
        if state is None or (move.topic_id and state.topic_id != move.topic_id):
            continue
        start = move.origin if run.undo else move.planned_from
        there = set(state.replicas) - set(state.adding)
        arrived = len(there.intersection(move.target).difference(start))
        replica_moves += arrived
        data += arrived * move.size_bytes
    before = Spent() if run.undo else run.spent
    return Spent(before.replica_moves + replica_moves, before.data_bytes + data)


def what_is_left(goals: Goals, spent: Spent) -> Goals:
    """The goals with the rest of their budget, never less than nothing."""
    return replace(
        goals,
        max_replica_moves=_rest(goals.max_replica_moves, spent.replica_moves),
        max_data_to_move=_rest(goals.max_data_to_move, spent.data_bytes),
    )


def _rest(budget: int | None, used: int) -> int | None:
    return None if budget is None else max(0, budget - used)
