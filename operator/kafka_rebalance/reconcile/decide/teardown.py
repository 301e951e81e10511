"""How a deletion ends: who takes over from it, and what keeps it from moving everything back. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from kafka_rebalance.api.v1alpha1 import DeletionPolicy
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.execution.progress import bytes_to_move_back
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.model.topology import ClusterState, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState, RollbackBarrier

_RENAMED_WITHIN = timedelta(minutes=5)
"""Between the creation under the new name and the deletion under the old one, where the creation comes first."""


def name_heirs(works: Collection[RebalanceState], everything: Mapping[TopicPartition, PartitionState]) -> None:
    """Set ``heir`` of every run that is being rolled back: a new resource that wants all of its partitions.

    A resource that was renamed in Git must not move everything back first, only to move it forth again. New is one of
    the same namespace that was created about when the other was deleted, and that nothing keeps from being planned:
    what has been waiting for longer waits for the rollback too.
    """
    newcomers = [work for work in works if work.wants_plan and work.run is None and work.problem is None]
    for work in works:
        if work.open is None or not work.rebalance.metadata.deleting:
            continue
        moved = {errand.tp for errand in work.errands} - set(work.skipped)
        heirs = (new for new in newcomers if _replaces(new, work) and moved <= new.wanted(everything))
        heir = min(heirs, key=lambda new: new.age_key, default=None) if moved else None
        work.heir, work.heir_name = (heir.uid, heir.name) if heir else ("", "")


def _replaces(new: RebalanceState, old: RebalanceState) -> bool:
    """Whether one can be the other under a new name."""
    created, deleted = new.rebalance.metadata.creation_timestamp, old.rebalance.metadata.deletion_timestamp
    if created is None or deleted is None or new.rebalance.metadata.namespace != old.rebalance.metadata.namespace:
        return False
    return created >= deleted - _RENAMED_WITHIN


def barrier_to_rollback(work: RebalanceState, cluster: ClusterState, now: datetime) -> RollbackBarrier | None:
    """What keeps the deletion from moving things back; None: nothing, or it is not asked to."""
    if work.going_back:
        work.bytes_to_move_back = bytes_to_move_back(work.errands, cluster)
    if not work.rebalance.metadata.deleting or work.rebalance.spec.deletion_policy is not DeletionPolicy.ROLLBACK:
        return None
    most = work.rebalance.spec.rollback.max_data
    if work.heir:
        return RollbackBarrier.HEIR
    if work.terminating:
        return RollbackBarrier.TERMINATING
    if work.timed_out(now):
        return RollbackBarrier.TIMED_OUT
    if most is not None and work.bytes_to_move_back > most:
        return RollbackBarrier.TOO_LARGE
    return None


def outcome_of(work: RebalanceState) -> RunOutcome:
    """How a teardown that has come to its end ended."""
    if work.barrier is RollbackBarrier.HEIR:
        return RunOutcome.TAKEN_OVER
    if work.barrier is RollbackBarrier.TIMED_OUT:
        return RunOutcome.ROLLED_BACK_PARTIALLY
    if work.direction is Direction.REVERT:
        return RunOutcome.REVERTED
    unlike_before = {Reason.ORIGINAL_BROKER_GONE, Reason.PREFERRED_LEADER_GONE, Reason.BELOW_MIN_INSYNC_REPLICAS}
    partially = any(v.reason in unlike_before for v in work.verdicts.values())
    return RunOutcome.ROLLED_BACK_PARTIALLY if partially else RunOutcome.ROLLED_BACK
