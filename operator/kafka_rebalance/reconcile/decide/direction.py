"""Where a rebalance is going, and which copies in flight stay on the way. Pure."""

from collections.abc import Iterable

from kafka_rebalance.api.execution_spec import DeletionPolicy
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.assessment import RollbackBarrier
from kafka_rebalance.reconcile.state.judgement import CopiesToKeep
from kafka_rebalance.reconcile.state.rebalance import Rebalance, RebalanceView

_KEEPS_COPIES = {Reason.SUPERSEDED, Reason.DRAINED}
"""Why a plan is put aside that Kafka could still be led to: its copies in flight are not in vain."""


def direction_of(rebalance: RebalanceView) -> Direction | None:
    """Where the rebalance goes now; None: nowhere, Kafka is left as it is (Abandon)."""
    desired, run = rebalance.desired, rebalance.record.run
    if desired.deleting:
        return {
            DeletionPolicy.ROLLBACK: Direction.REVERT if rebalance.assessment.teardown.barrier else Direction.ROLLBACK,
            DeletionPolicy.REVERT: Direction.REVERT,
            DeletionPolicy.ABANDON: None,
        }[desired.spec.deletion_policy]
    if rebalance.assessment.replanning:
        return Direction.REVERT
    return Direction.ROLLBACK if run is not None and run.undo else Direction.FORWARD


def going_back(rebalance: RebalanceView) -> bool:
    """Whether the rebalance is being deleted or undone."""
    run = rebalance.record.run
    undone = run is not None and run.undo and not rebalance.assessment.replanning
    return rebalance.desired.deleting or undone


def end_unknown(rebalance: RebalanceView) -> bool:
    """Whether it goes forward by a spec that was never readable: which brokers are to be empty then is not known."""
    return rebalance.desired.never_read and not going_back(rebalance)


def by_precedence(running: Iterable[RebalanceView]) -> list[RebalanceView]:
    """Rollbacks come first, then the higher priority, then the older resource."""
    return sorted(running, key=lambda r: (not going_back(r), -r.desired.spec.priority, r.desired.age_key))


def copies_to_keep(rebalance: RebalanceView) -> CopiesToKeep:
    """Which copies in flight stay while the plan is superseded: every one until a new plan is known."""
    run, replanning = rebalance.record.run, rebalance.assessment.replanning
    if replanning is None or replanning.reason not in _KEEPS_COPIES or run is None or run.undo:
        return CopiesToKeep()
    kept = replanning.kept
    if kept is None or kept.planning_hash != rebalance.desired.planning_hash:
        return CopiesToKeep(every=True)
    return CopiesToKeep(partitions=kept.partitions)


def at_rest(rebalance: RebalanceView) -> bool:
    """Whether nothing of ours was in flight or above its replication factor when the cluster was last read.

    If the run has given up its place in the queue, what moves since then is of others.
    """
    assessment, run = rebalance.assessment, rebalance.record.open_run
    settled = run is not None and (run.started_at is None or (run.place_given_up and not run.unsettled))
    if settled and rebalance.memory.planning is None:
        return True
    progress = assessment.advance.progress
    if rebalance.memory.planning is not None or progress is None:
        return False
    moving = assessment.statuses.moving or assessment.log_dirs.moving
    return not moving and not progress.above_replication_factor


def requires_decision(rebalance: RebalanceView) -> bool:
    """Whether a deletion stands still until its limit is raised or its policy changed."""
    return rebalance.assessment.teardown.barrier is RollbackBarrier.TOO_LARGE and at_rest(rebalance)


def may_end_later(rebalance: RebalanceView) -> bool:
    """Whether its deletion may be prepared in a later round, as if it came later.

    It has sent nothing to move back; or its run has ended, and only its records or our finalizer are left; or it leaves
    Kafka as it is, and sends nothing until it has ended (``deleted_meanwhile``).
    """
    desired, record = rebalance.desired, rebalance.record
    unprepared = desired.deleted_since(rebalance.memory.prepared)
    ended = desired.deleting and record.open_run is None and record.loaded_run is None
    sends_nothing = direction_of(rebalance) is None or (unprepared and not record.may_have_sent)
    return record.was_read and (ended or sends_nothing)


def deleted_meanwhile(running: list[Rebalance]) -> list[Rebalance]:
    """The rebalances that were deleted or abandoned during this round. They wait for the next, which begins at once.

    Only when a deletion is prepared is it known whether the namespace is deleted too. One that leaves Kafka as it is
    (Abandon) ends when it is prepared.
    """
    return [r for r in running if direction_of(r) is None or r.desired.deleted_since(r.memory.prepared)]
