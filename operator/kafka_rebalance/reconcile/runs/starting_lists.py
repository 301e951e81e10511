"""The replica lists that a plan starts from, which are not always those of the cluster. Pure."""

from collections.abc import Collection, Mapping

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reconcile.decide.superseding import as_if_cancelled
from kafka_rebalance.reconcile.decide.teardown import as_rolled_back, moved_back
from kafka_rebalance.reconcile.state.assessment import Assessment
from kafka_rebalance.reconcile.state.record import Record

States = Mapping[TopicPartition, PartitionState]
Moves = Mapping[TopicPartition, PartitionMove]
Rollbacks = Collection[tuple[Record, Assessment]]
"""Of the resources that are being deleted, as they were when the plan was begun."""


def moved_back_by(rollbacks: Rollbacks) -> Moves:
    """The moves that these rollbacks undo."""
    found: dict[TopicPartition, PartitionMove] = {}
    for record, assessment in rollbacks:
        found |= moved_back(record, assessment)
    return found


def planned_from(read: States, flying: States, back: Moves, let_go: States) -> States:
    """The partitions that the plan starts from: without copies of earlier plans, and after the rollback ``back``.

    ``flying``: partitions with copies of the run in flight; ``let_go``: of runs that are taken over.
    """
    partitions = {**read, **_all_cancelled(flying)} if flying else read
    partitions = {**partitions, **as_rolled_back(back.values(), partitions)} if back else partitions
    return {**partitions, **_all_cancelled(let_go)} if let_go else partitions


def _all_cancelled(states: States) -> States:
    return {tp: as_if_cancelled(state) for tp, state in states.items()}
