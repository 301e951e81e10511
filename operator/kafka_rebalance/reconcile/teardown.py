"""How a deletion ends: who takes over from it, and what keeps it from moving everything back. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from kafka_rebalance.api.v1alpha1 import DeletionPolicy
from kafka_rebalance.execution.decide import bytes_to_move_back
from kafka_rebalance.model.topology import ClusterState, PartitionState, TopicPartition
from kafka_rebalance.reconcile.work import Barrier, Work


def name_heirs(works: Collection[Work], everything: Mapping[TopicPartition, PartitionState]) -> None:
    """Set ``heir`` of every run that is being rolled back: a new resource that wants all of its partitions.

    A resource that was renamed in Git must not move everything back first, only to move it forth again.
    """
    newcomers = [work for work in works if work.wants_plan and work.run is None]
    for work in works:
        if work.open is None or not work.rebalance.metadata.deleting:
            continue
        moved = {errand.tp for errand in work.errands} - set(work.skipped)
        heirs = (new for new in newcomers if moved <= new.wanted(everything))
        heir = min(heirs, key=lambda new: new.age_key, default=None) if moved else None
        work.heir, work.heir_name = (heir.uid, heir.name) if heir else ("", "")


def barrier_to_rollback(work: Work, cluster: ClusterState, now: datetime) -> Barrier | None:
    """What keeps the deletion from moving things back; None: nothing, or it is not asked to."""
    if not work.rebalance.metadata.deleting or work.rebalance.spec.deletion_policy is not DeletionPolicy.ROLLBACK:
        return None
    work.bytes_to_move_back = bytes_to_move_back(work.errands, cluster)
    most = work.rebalance.spec.rollback.max_data
    if work.heir:
        return Barrier.HEIR
    if work.terminating:
        return Barrier.TERMINATING
    if work.timed_out(now):
        return Barrier.TIMED_OUT
    if most is not None and work.bytes_to_move_back > most:
        return Barrier.TOO_LARGE
    return None
