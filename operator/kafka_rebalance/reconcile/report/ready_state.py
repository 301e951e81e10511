"""What the state of a rebalance is: one word, which is the reason of Ready, and a sentence for people. Pure."""

from __future__ import annotations

from collections import Counter

from kafka_rebalance.api.conditions import ConditionType, ReadySummary
from kafka_rebalance.api.v1alpha1 import ResourceStatus
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.partition_status import Direction, MovePhase
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState, RollbackBarrier, StepBlock
from kafka_rebalance.units import format_bytes


def state_of(work: RebalanceState, stalled: str | None) -> tuple[ReadySummary, str, str]:
    """Ready's reason is the STATE column; what a person must act on comes first."""
    if work.problem is not None:
        retried = ""
        if isinstance(work.problem, Transient):
            retried = "; trying again"
        return ReadySummary.STUCK, work.problem.reason, work.problem.message + retried
    if work.spec_problem is not None and not work.rebalance.metadata.deleting:
        unread = f"{work.spec_problem.message}; what was asked for before still holds"
        return ReadySummary.STUCK, work.spec_problem.reason, unread
    if work.open is None:
        return _state_at_rest(work)
    if work.throttle_problem is not None:
        return ReadySummary.STUCK, work.throttle_problem.reason, work.throttle_problem.message
    if work.throttle_refused and not work.rebalance.metadata.deleting:
        then = "; no new copy starts there: lower the rate, or raise that throttle"
        return ReadySummary.STUCK, Reason.REPLICATION_THROTTLE_LOWER, work.throttle_refused + then
    if stalled is not None:
        return ReadySummary.STUCK, Reason.STALLED, stalled
    waits = waiting_summary(work) or work.throttle_refused or work.throttle_trouble
    if work.rebalance.metadata.deleting:
        return _state_of_teardown(work, waits)
    if work.replanning is not None:
        return _state_of_replanning(work, work.replanning)
    if work.hold is not None:
        return _held(work.hold), work.hold.reason, f"{work.hold.message}; {_draining(work)}"
    if work.finished and not waits:
        waits = "everything has arrived; the throttle is being taken away"
    if work.going_back:
        return ReadySummary.IN_PROGRESS, Reason.UNDOING, waits or _moving_back(work)
    if work.too_slow:
        return ReadySummary.STUCK, Reason.THROTTLE_TOO_LOW, work.too_slow
    elects_only = work.open.plan.elections and not work.open.plan.changed
    doing = "having preferred leaders elected" if elects_only else "moving replicas in small steps"
    return ReadySummary.IN_PROGRESS, Reason.REBALANCING, waits or doing


def ready_reason(status: ResourceStatus) -> tuple[str, str] | None:
    """Reason and message of Ready: the state."""
    return next(((c.reason, c.message) for c in status.conditions if c.type == ConditionType.READY), None)


def waiting_summary(work: RebalanceState) -> str:
    """Why partitions wait, copies in flight too: reasons with counts and one example each, the most frequent first."""
    waiting = [
        (tp, v) for tp, v in sorted(work.verdicts.items()) if v.phase in {MovePhase.WAITING, MovePhase.IN_FLIGHT}
    ]
    reasons = [(v.reason, tp, v.message) for tp, v in waiting if v.reason not in {"", Reason.PAUSED}]
    reasons += [
        (Reason.DISK_FULL, tp, f"broker {broker} has no room for it") for tp, broker in sorted(work.no_room.items())
    ]
    counts = Counter(reason for reason, _, _ in reasons)
    examples: dict[str, str] = {}
    for reason, tp, message in reasons:
        examples.setdefault(reason, f"{tp}: {message}")
    return "; ".join(f"{reason} ({count}, e.g. {examples[reason]})" for reason, count in counts.most_common(3))


def _state_of_teardown(work: RebalanceState, waits: str) -> tuple[ReadySummary, str, str]:
    if work.barrier is RollbackBarrier.TOO_LARGE:
        most = format_bytes(work.rebalance.spec.rollback.max_data or 0)
        asked = "raise spec.rollback.maxData to move it back, or set spec.deletionPolicy to Revert or Abandon"
        told = f"the rollback would move {format_bytes(work.bytes_to_move_back)}, more than maxData ({most}): {asked}"
        return ReadySummary.STUCK, Reason.ROLLBACK_TOO_LARGE, told
    if work.barrier is RollbackBarrier.HEIR:
        told = f"{work.heir_name} covers the same partitions and goes on from here; cancelling what is in flight"
        return ReadySummary.IN_PROGRESS, Reason.TAKEN_OVER, told
    if work.direction is Direction.REVERT:
        return ReadySummary.IN_PROGRESS, Reason.REVERTING, waits or "cancelling what is in flight"
    if work.hold is not None:
        told = f"{work.hold.reason}: {work.hold.message}; {_draining(work)}"
        return _held(work.hold), Reason.ROLLING_BACK, told
    if work.finished and not waits:
        waits = "everything is back; the throttle is being taken away"
    return ReadySummary.IN_PROGRESS, Reason.ROLLING_BACK, waits or _moving_back(work)


def _state_of_replanning(work: RebalanceState, why: Reason) -> tuple[ReadySummary, str, str]:
    if work.settled and work.queued:
        return ReadySummary.IN_PROGRESS, Reason.QUEUED, work.queue_message
    said = {
        Reason.SUPERSEDED: "the spec changed",
        Reason.DRIFTED: "others have changed more of the plan than spec.approval.driftBudget",
        Reason.NOT_DRAINED: "a broker to be emptied has got new replicas",
    }
    cancelled = "what is in flight"
    if why is Reason.SUPERSEDED and work.copying:
        cancelled += " and the new plan does not go on with"
    then = "planning anew" if work.settled else f"cancelling {cancelled}, then planning anew"
    reason = Reason.DRIFTED if why is Reason.DRIFTED else Reason.SUPERSEDED
    return ReadySummary.IN_PROGRESS, reason, f"{said[why]}: {then}"


def _held(hold: StepBlock) -> ReadySummary:
    """A window that cannot be read opens for nobody: that takes somebody, where everything else ends by itself."""
    return ReadySummary.STUCK if hold.reason is Reason.INVALID_SPEC else ReadySummary.IN_PROGRESS


def _draining(work: RebalanceState) -> str:
    return "no new step is started" if work.at_rest else "no new step is started; what is in flight finishes"


def _moving_back(work: RebalanceState) -> str:
    """Said first: how much the rollback copies, and how long that takes at least."""
    return f"moving everything back to where it was before the run: {format_bytes(work.bytes_to_move_back)} to copy"


def _state_at_rest(work: RebalanceState) -> tuple[ReadySummary, str, str]:
    if work.wants_plan and (work.queued or work.unseen):
        return ReadySummary.IN_PROGRESS, Reason.QUEUED, work.queue_message
    run = work.run
    ended_well = {RunOutcome.SUCCEEDED, RunOutcome.UNDONE}
    closed_well = run is not None and (run.outcome in ended_well or (run.undo and not run.open))
    if run is None or not closed_well or run.planning_hash != work.planning_hash:
        return ReadySummary.IN_PROGRESS, Reason.PLANNING, "reading the cluster and making a plan"
    if run.outcome is RunOutcome.ROLLED_BACK_PARTIALLY:
        return ReadySummary.STUCK, Reason.ROLLED_BACK_PARTIALLY, _not_back(work)
    if run.outcome is RunOutcome.UNDONE:
        return ReadySummary.DONE, Reason.UNDONE, "replicas and their order are as they were before the run"
    if work.progress is None:
        return ReadySummary.DONE, *_said_before(work, run)
    left = _left_alone(work.ended.left_alone if work.ended is not None else 0)
    total = work.progress.partitions_total
    if total == 0:
        why_empty = work.ended.why_empty if work.ended is not None else ""
        return ReadySummary.DONE, Reason.NOTHING_TO_DO, _nothing_to_do(work, why_empty) + left
    alone = sum(v.phase is MovePhase.SKIPPED for v in work.verdicts.values())
    return ReadySummary.DONE, Reason.SUCCEEDED, _at_targets(total, alone) + left


def _not_back(work: RebalanceState) -> str:
    """Which partitions a way back left where they are; in a later process what was said then."""
    said = ready_reason(work.rebalance.status)
    if work.progress is None and said is not None and said[0] == Reason.ROLLED_BACK_PARTIALLY:
        return said[1]
    rows = [f"{tp} ({v.reason})" for tp, v in list(work.skipped.items())[:10]]
    named = f": {', '.join(rows)}" if rows else ""
    return f"not everything could be moved back{named}; the origins are kept"


def _said_before(work: RebalanceState, run: Run) -> tuple[str, str]:
    """Of a run that ended before this process started: what was said; if it was not, what the plan's status tells."""
    status = work.rebalance.status
    said = ready_reason(status)
    if said is not None and said[0] in {Reason.SUCCEEDED, Reason.NOTHING_TO_DO}:
        return said
    plan, progress = status.plan, status.progress
    if plan is None or plan.hash != run.plan_hash or progress is None:
        return Reason.SUCCEEDED, "every partition is at its target or was left alone"
    left, partitions = _left_alone(status.skipped_count), progress.partitions
    if partitions.total:
        return Reason.SUCCEEDED, _at_targets(partitions.total, partitions.skipped) + left
    why_empty = plan.reason or (Reason.BUDGET_REACHED if plan.budget_reached else "")
    return Reason.NOTHING_TO_DO, _nothing_to_do(work, why_empty) + left


def _nothing_to_do(work: RebalanceState, why_empty: str) -> str:
    if why_empty == Reason.GAIN_TOO_SMALL:
        gain = work.rebalance.spec.goals.minimum_gain
        return f"{Reason.GAIN_TOO_SMALL}: what would be moved gains less than goals.minimumGain ({gain} %)"
    if why_empty == Reason.BUDGET_REACHED:
        return "goals.maxReplicaMoves or goals.maxDataToMove allow no move that would help"
    if why_empty == Reason.NOTHING_SELECTED:
        return f"{Reason.NOTHING_SELECTED}: spec.topics takes no topic that the cluster has, so nothing was looked at"
    return "the cluster is as asked for: no partition has to change"


def _at_targets(total: int, alone: int) -> str:
    return f"{total - alone} of {total} partitions are at their targets"


def _left_alone(count: int) -> str:
    return f"; {count} partitions were left alone, see status.skipped" if count else ""
