"""How a deletion ends: which resource takes over, and what prevents that everything is moved back. Pure."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from kafka_rebalance.api.execution_spec import DeletionPolicy
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.execution.progress import bytes_to_move_back
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.model.topology import ClusterState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import going_back
from kafka_rebalance.reconcile.decide.judging import skipped_partitions
from kafka_rebalance.reconcile.decide.replanning import wants_plan
from kafka_rebalance.reconcile.state.assessment import RollbackBarrier, Successor, Teardown
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.rebalance import RebalanceView

_RENAMED_WITHIN = timedelta(minutes=5)
"""Between the creation under the new name and the deletion under the old one, where the creation comes first."""


def successors_of(
    rebalances: Collection[RebalanceView], selected: Mapping[str, frozenset[TopicPartition]]
) -> dict[str, Successor]:
    """By uid of a rebalance that is being rolled back: the new resource that wants all of its partitions.

    A resource that was renamed in Git must not move everything back first, only to move it forth again. New is a
    resource of the same namespace that was created about when the other was deleted, and that can be planned: one that
    has waited for longer waits for the rollback too. ``selected``: as for ``places_of``.
    """
    newcomers = [r for r in rebalances if wants_plan(r) and r.record.run is None and r.memory.problem is None]
    found = {}
    for old in rebalances:
        if old.record.loaded_run is None or not old.desired.deleting:
            continue
        moved = {move.tp for move in old.record.moves} - skipped_partitions(old).keys()
        able = (n.desired for n in newcomers if _replaces(n.desired, old.desired) and moved <= selected[n.desired.uid])
        oldest = min(able, key=lambda new: new.age_key, default=None) if moved else None
        if oldest is not None:
            found[old.desired.uid] = Successor(oldest.uid, oldest.name)
    return found


def _replaces(new: Desired, old: Desired) -> bool:
    """Whether one can be the other under a new name."""
    created, deleted = new.metadata.creation_timestamp, old.metadata.deletion_timestamp
    if created is None or deleted is None or new.metadata.namespace != old.metadata.namespace:
        return False
    return created >= deleted - _RENAMED_WITHIN


def teardown_of(rebalance: RebalanceView, cluster: ClusterState, now: datetime) -> Teardown:
    """How much a way back has to copy, and what prevents it; no barrier also where it was not asked for."""
    desired = rebalance.desired
    back = bytes_to_move_back(rebalance.record.moves, cluster) if going_back(rebalance) else 0
    if not desired.deleting or desired.spec.deletion_policy is not DeletionPolicy.ROLLBACK:
        return Teardown(None, back)
    most = desired.spec.rollback.max_data
    if rebalance.assessment.successor is not None:
        return Teardown(RollbackBarrier.SUCCESSOR, back)
    if rebalance.refusal is not None:
        return Teardown(RollbackBarrier.REFUSED, back)
    if rebalance.memory.terminating:
        return Teardown(RollbackBarrier.TERMINATING, back)
    if desired.timed_out(now):
        return Teardown(RollbackBarrier.TIMED_OUT, back)
    return Teardown(RollbackBarrier.TOO_LARGE if most is not None and back > most else None, back)


def outcome_of(rebalance: RebalanceView) -> RunOutcome:
    """The outcome of a teardown that has come to its end."""
    assessment = rebalance.assessment
    if assessment.teardown.barrier is RollbackBarrier.SUCCESSOR:
        return RunOutcome.TAKEN_OVER
    if assessment.teardown.barrier is RollbackBarrier.TIMED_OUT:
        return RunOutcome.ROLLED_BACK_PARTIALLY
    if assessment.judgement.direction is Direction.REVERT:
        return RunOutcome.REVERTED
    unlike_before = {Reason.ORIGINAL_BROKER_GONE, Reason.PREFERRED_LEADER_GONE, Reason.BELOW_MIN_INSYNC_REPLICAS}
    partially = any(status.reason in unlike_before for status in assessment.statuses.by_partition.values())
    return RunOutcome.ROLLED_BACK_PARTIALLY if partially else RunOutcome.ROLLED_BACK
