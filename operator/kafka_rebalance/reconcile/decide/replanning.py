"""Whether a plan is to be made, put aside, or undone. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.execution.partition_status import Direction, MovePhase
from kafka_rebalance.execution.progress import lost_moves
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import copies_to_keep
from kafka_rebalance.reconcile.decide.leaving_brokers import not_named, to_avoid
from kafka_rebalance.reconcile.state.assessment import Replanning
from kafka_rebalance.reconcile.state.rebalance import RebalanceView

_ENDED_WELL = {RunOutcome.SUCCEEDED, RunOutcome.UNDONE}


def replanning_for_spec(rebalance: RebalanceView) -> Replanning | None:
    """Why the plan of an open run must be put aside for what the spec asks for; None: it stands.

    A plan that was put aside stands again if the spec is edited back. Not while a new plan is being made: that plan is
    finished first, and then put aside. A deletion ends all replanning. The plan also stands while the spec was never
    readable, because it is not known whether it asks for something else.
    """
    before, run = rebalance.assessment.replanning, rebalance.record.open_run
    if run is None or rebalance.desired.deleting:
        return None
    if rebalance.desired.never_read:
        return before
    if run.planning_hash != rebalance.desired.planning_hash:
        return replace(before, reason=Reason.SUPERSEDED) if before is not None else Replanning(Reason.SUPERSEDED)
    if before is not None and before.reason is Reason.SUPERSEDED and rebalance.memory.planning is None:
        return None
    return before


def replanning_for_drift(rebalance: RebalanceView) -> Replanning | None:
    """Why the plan must be put aside; None: it stands.

    Other tools may make moves void up to spec.approval.driftBudget, in percent of all moves.
    """
    before, judgement = rebalance.assessment.replanning, rebalance.assessment.judgement
    if judgement.direction is not Direction.FORWARD:
        return before
    lost, total = lost_and_all(rebalance)
    if not total or 100 * lost <= rebalance.desired.spec.approval.drift_budget * total:
        return before
    return Replanning(Reason.DRIFTED)


def replanning_for_drains(
    rebalance: RebalanceView, partitions: Mapping[TopicPartition, PartitionState]
) -> Replanning | None:
    """Why the plan must be put aside; None: it stands.

    A plan that was made before another rebalance began to empty a broker must not fill that broker. The new plan leaves
    out the same brokers (``to_avoid``), so it is not put aside for them.
    """
    before, run = rebalance.assessment.replanning, rebalance.record.loaded_run
    if before is not None or run is None:
        return before
    if rebalance.assessment.judgement.direction is not Direction.FORWARD:
        return before
    skipped = rebalance.assessment.statuses.within(MovePhase.SKIPPED)

    def filled(broker: BrokerId) -> bool:
        copied = (tp for tp in run.led_to(broker) if tp in partitions and tp not in skipped)
        return any(broker not in partitions[tp].replicas or broker in partitions[tp].adding for tp in copied)

    concerned = {broker: row for broker, row in not_named(rebalance, run.known).items() if filled(broker)}
    return Replanning(Reason.DRAINED) if to_avoid(concerned, partitions) else before


def lost_and_all(rebalance: RebalanceView) -> tuple[int, int]:
    """How many replica moves of the plan other tools have voided, and how many there are."""
    run = rebalance.record.loaded_run
    if run is None:
        return 0, 0
    return lost_moves(run.move_of, rebalance.assessment.statuses.notable), run.replica_moves


def wants_plan(rebalance: RebalanceView) -> bool:
    """Whether a plan is to be made: none was made for this spec, or the present one has been put aside.

    Not before a rest has ended: the plan would have origins that are struck off the record then.
    """
    desired, record = rebalance.desired, rebalance.record
    if not rebalance.may_begin or rebalance.rest_ends:
        return False
    if not desired.has_finalizer or not record.was_read or desired.deleting or rebalance.memory.planning is not None:
        return False
    if record.loaded_run is not None:
        replanning = rebalance.assessment.replanning
        return replanning is not None and replanning.ready
    return not already_done(rebalance)


def already_done(rebalance: RebalanceView) -> bool:
    """Whether a run for this spec has ended well. One-shot: drift after that moves nothing, and an undo stays."""
    run = rebalance.record.run
    if run is None or run.planning_hash != rebalance.desired.planning_hash:
        return False
    return run.outcome in _ENDED_WELL or (run.undo and not run.open)


def ended_unedited(rebalance: RebalanceView) -> bool:
    """Whether its run has ended, for the spec that it has: what happens to the cluster now does not concern it."""
    run, desired = rebalance.record.run, rebalance.desired
    if run is None or run.open or desired.deleting:
        return False
    return run.planning_hash == desired.planning_hash


def undo_ordered(rebalance: RebalanceView) -> bool:
    """Whether the run that has succeeded is to be moved back: the annotation names its plan."""
    run, desired = rebalance.record.run, rebalance.desired
    if run is None or run.outcome is not RunOutcome.SUCCEEDED or rebalance.memory.planning is not None:
        return False
    ordered = desired.metadata.annotations.get(UNDO_ANNOTATION)
    return ordered == run.plan_hash and run.planning_hash == desired.planning_hash


def only_kept_copies_in_flight(rebalance: RebalanceView) -> bool:
    """Whether everything is at rest but for copies in flight that stay until the new plan is made."""
    statuses, keep, run = rebalance.assessment.statuses, copies_to_keep(rebalance), rebalance.record.loaded_run
    if run is not None and not rebalance.assessment.log_dirs.finished(Direction.REVERT, run.log_dirs):
        return False
    if statuses.count(MovePhase.WAITING, MovePhase.READY) or not statuses.copying:
        return False
    return all(tp in keep for tp in statuses.within(MovePhase.IN_FLIGHT))
