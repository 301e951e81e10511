"""A movement budget is that of a run: a plan that is made within one gets what the plans before it have left. Pure.

Counted is what has arrived, from what the partitions have now: a copy that was cancelled on its way, or taken back with
a step half done, is none of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafka_rebalance.execution.partition_status import PartitionMove
from kafka_rebalance.model.run import Run, Spent
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.planning.problem.request import Goals


def spent_by(
    run: Run | None, errands: Iterable[PartitionMove], partitions: Mapping[TopicPartition, PartitionState]
) -> Spent:
    """What the plans of the run have moved, the present one (``errands``) included; nothing without a run.

    Of a topic that was deleted or created anew meanwhile nothing is known: it does not count. A run that was being
    undone has spent what is not back yet.
    """
    if run is None:
        return Spent()
    moves = data = 0
    for errand in errands:
        state = partitions.get(errand.tp)
        if state is None or (errand.topic_id and state.topic_id != errand.topic_id):
            continue
        start = errand.origin if run.undo else errand.planned_from
        there = set(state.replicas) - set(state.adding)
        arrived = len(there.intersection(errand.target).difference(start))
        moves += arrived
        data += arrived * errand.size_bytes
    before = Spent() if run.undo else run.spent
    return Spent(before.replica_moves + moves, before.data_bytes + data)


def what_is_left(goals: Goals, spent: Spent) -> Goals:
    """The goals with the rest of their budget, never less than nothing."""
    return replace(
        goals,
        max_replica_moves=_rest(goals.max_replica_moves, spent.replica_moves),
        max_data_to_move=_rest(goals.max_data_to_move, spent.data_bytes),
    )


def _rest(budget: int | None, used: int) -> int | None:
    return None if budget is None else max(0, budget - used)
