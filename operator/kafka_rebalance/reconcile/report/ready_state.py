"""The state of a rebalance: one word, which is the reason of Ready, and a sentence for people. Pure."""

from collections import Counter
from collections.abc import Mapping
from itertools import islice

from kafka_rebalance.api.conditions import ConditionType, ReadySummary
from kafka_rebalance.api.rebalance_states import summary_of
from kafka_rebalance.api.resource_status import ResourceStatus
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.execution.list_budget import MOST_BYTES
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.model.rate_room import RateKey
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import at_rest, going_back
from kafka_rebalance.reconcile.decide.judging import skipped_partitions
from kafka_rebalance.reconcile.decide.replanning import already_done, wants_plan
from kafka_rebalance.reconcile.decide.teardown import MOST_TAKEN_OVER
from kafka_rebalance.reconcile.report.throttle_report import NOT_ALLOWED_ADVICE, REFUSED_ADVICE
from kafka_rebalance.reconcile.state.assessment import Assessment, Replanning, RollbackBarrier, ThrottleFindings
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.units import format_bytes

_LIST_FULL = (
    f"the lists of throttled replicas of its topic hold at most {MOST_BYTES} bytes; it starts when listed ones arrive"
)
_HELD_UP, _UNSAID = (MovePhase.WAITING, MovePhase.IN_FLIGHT), {"", Reason.PAUSED}
_LAST_CALL = (
    "metadata does not show its last call yet; it is called again when it does, or after ten seconds, "
    "or within a minute if a broker that may have the call is not live"
)


def ready_of(rebalance: RebalanceView, problem: RebalanceError | None) -> tuple[ReadySummary, str, str]:
    """Ready's reason is the STATE column; what a person must act on comes first."""
    desired, opened, assessment = rebalance.desired, rebalance.record.loaded_run, rebalance.assessment
    if problem is not None:
        retried = "; trying again" if isinstance(problem, Transient) else ""
        return _problem(problem.reason, problem.message + retried)
    if desired.spec_problem is not None and not desired.deleting:
        return _problem(desired.spec_problem.reason, _until_the_spec_is_valid(rebalance, desired.spec_problem))
    refusal = rebalance.refusal or (rebalance.unverified if _begins(rebalance) else None)
    if refusal is not None and not desired.deleting and (opened is not None or not already_done(rebalance)):
        return _problem(refusal.reason, refusal.message + (f"; {_draining(rebalance)}" if opened is not None else ""))
    if opened is None:
        return _state_without_open_run(rebalance)
    throttle, advance, block = assessment.throttle, assessment.advance, assessment.step_block
    if throttle.problem is not None:
        return _problem(throttle.problem.reason, throttle.problem.message)
    if throttle.refused and not desired.deleting:
        return _problem(Reason.REPLICATION_THROTTLE_LOWER, f"{throttle.refused}; {REFUSED_ADVICE}")
    if throttle.not_allowed and not desired.deleting:
        return _problem(Reason.THROTTLE_NOT_ALLOWED, f"{throttle.not_allowed}; {NOT_ALLOWED_ADVICE}")
    if advance.stalled:
        return _problem(Reason.STALLED, advance.stalled)
    # Trouble with the throttle stays visible beside partitions that wait for something else.
    waits = "; ".join(filter(None, (waiting_summary(assessment), throttle_trouble(throttle))))
    if desired.deleting:
        return _state_of_teardown(rebalance, waits)
    if assessment.replanning is not None:
        return _state_of_replanning(assessment, assessment.replanning, waits)
    if block is not None:
        return _in(block.reason, f"{block.message}; {_draining(rebalance)}")
    if assessment.finished and not waits:
        waits = "everything has arrived; the throttle is being removed"
    if going_back(rebalance):
        return _in(Reason.UNDOING, waits or _moving_back(assessment))
    if advance.too_slow:
        return _in(Reason.THROTTLE_TOO_LOW, advance.too_slow)
    elects_only = opened.plan.elections and not opened.plan.changed
    doing = "having preferred leaders elected" if elects_only else "moving replicas in small steps"
    if opened.plan.log_dir_moves and assessment.statuses.finished:
        doing = "moving replicas between log dirs"
    return _in(Reason.REBALANCING, waits or doing)


def _begins(rebalance: RebalanceView) -> bool:
    """Whether a run is to begin next, unless there is nothing to do."""
    replanning = rebalance.assessment.replanning
    return rebalance.record.loaded_run is None or (replanning is not None and replanning.ready)


def _in(state: str, message: str) -> tuple[ReadySummary, str, str]:
    return summary_of(Reason(state)), state, message


def _problem(reason: str, message: str) -> tuple[ReadySummary, str, str]:
    """Stuck, also where the reason is the name of a state: ClusterUnhealthy may mean that no plan can be made."""
    return ReadySummary.STUCK, reason, message


def ready_reason(status: ResourceStatus) -> tuple[str, str] | None:
    """Reason and message of Ready: the state."""
    return next(((c.reason, c.message) for c in status.conditions if c.type == ConditionType.READY), None)


def throttle_trouble(throttle: ThrottleFindings) -> str:
    """Why the throttle is not in place; empty if it is, or nothing is throttled."""
    return throttle.refused or throttle.not_allowed or throttle.trouble


def waiting_summary(assessment: Assessment) -> str:
    """Why partitions wait, also those in flight: reasons with counts and one example, the most frequent first."""
    counts, examples = _waiting(assessment.statuses.notable)
    between = sorted(assessment.log_dirs.within(MovePhase.WAITING).items())
    others = [(s.reason, tp, s.message) for (tp, _), s in between if s.reason not in _UNSAID]
    others += [(Reason.DISK_FULL, tp, _dir_full(broker)) for tp, broker in sorted(assessment.dir_full)]
    full = sorted(assessment.no_room.items())
    others += [(Reason.DISK_FULL, tp, f"broker {broker} has no room for it") for tp, broker in full]
    others += [(Reason.THROTTLE_LIST_FULL, tp, _LIST_FULL) for tp in sorted(assessment.list_full)]
    at_limit = sorted(assessment.at_limit.items())
    others += [(Reason.CAPACITY_LIMIT_REACHED, tp, _at_limit(key)) for tp, key in at_limit]
    others += [(Reason.METADATA_STALE, tp, _LAST_CALL) for tp in sorted(assessment.doubted)]
    counts.update(reason for reason, _, _ in others)
    if (refused := assessment.refused) is not None:
        counts[Reason.ORDER_REFUSED] += refused.count
        examples.setdefault(Reason.ORDER_REFUSED, refused.example)
    for reason, tp, message in others:
        examples.setdefault(reason, f"{tp}: {message}")
    return "; ".join(f"{reason} ({count}, e.g. {examples[reason]})" for reason, count in counts.most_common(3))


def _waiting(statuses: Mapping[TopicPartition, PartitionStatus]) -> tuple[Counter[str], dict[str, str]]:
    """The reasons, counted, with the first partition of each as its example; in the order of these partitions.

    Nothing is sorted but the reasons: when a broker dies, thousands of partitions wait.
    """
    counts, first = Counter[str](), dict[str, tuple[TopicPartition, str]]()
    for tp, status in statuses.items():
        reason = status.reason
        if reason in _UNSAID or status.phase not in _HELD_UP:
            continue
        counts[reason] += 1
        if reason not in first or tp < first[reason][0]:
            first[reason] = tp, status.message
    order = sorted(first, key=first.__getitem__)
    return (
        Counter({reason: counts[reason] for reason in order}),
        {reason: f"{first[reason][0]}: {first[reason][1]}" for reason in order},
    )


def _at_limit(key: RateKey) -> str:
    return f"broker {key.broker} would be above the capacityLimit of {key.resource} until others have left it"


def _dir_full(broker: BrokerId) -> str:
    return f"its new log dir on broker {broker} has no room for it"


def _state_of_teardown(rebalance: RebalanceView, waits: str) -> tuple[ReadySummary, str, str]:
    assessment = rebalance.assessment
    teardown, block = assessment.teardown, assessment.step_block
    if teardown.barrier is RollbackBarrier.TOO_LARGE:
        most = format_bytes(rebalance.desired.spec.rollback.max_data or 0)
        then = "raise spec.rollback.maxData to move it back, or set spec.deletionPolicy to Revert or Abandon"
        if unknown := teardown.unknown:
            why = f"{Reason.SIZES_UNKNOWN} ({len(unknown)} partitions, e.g. {unknown[0]}): the rollback may move more"
            then = "it goes on when brokers report them; to go on now, remove spec.rollback.maxData"
            return _in(Reason.ROLLBACK_TOO_LARGE, f"{why} than maxData ({most}); {then}, or set spec.deletionPolicy")
        back = format_bytes(teardown.bytes_to_move_back)
        message = f"the rollback would move {back}, more than maxData ({most}): {then}"
        return _in(Reason.ROLLBACK_TOO_LARGE, message)
    if teardown.barrier is RollbackBarrier.SUCCESSOR:
        name = assessment.successor.name if assessment.successor is not None else ""
        message = f"{name} covers the same partitions and continues from here; cancelling reassignments in flight"
        return _in(Reason.TAKEN_OVER, message)
    if assessment.judgement.direction is Direction.REVERT:
        return _in(Reason.REVERTING, waits or "cancelling reassignments in flight")
    if block is not None:
        message = f"{block.reason}: {block.message}; {_draining(rebalance)}"
        # A window that cannot be read never opens and requires an edit; every other block ends by itself.
        return summary_of(block.reason), Reason.ROLLING_BACK, message
    if assessment.finished and not waits:
        waits = "everything is back; the throttle is being removed"
    message = waits or _moving_back(assessment)
    if (full := assessment.full_successor) is not None:
        message += f"; {full.name} has taken over {MOST_TAKEN_OVER} runs and takes over no more until it begins"
    return _in(Reason.ROLLING_BACK, message)


def _state_of_replanning(assessment: Assessment, replanning: Replanning, waits: str) -> tuple[ReadySummary, str, str]:
    if replanning.ready and assessment.queue.waits:
        return _in(Reason.QUEUED, assessment.queue.message)
    why = {
        Reason.SUPERSEDED: "the spec changed",
        Reason.DRIFTED: "others have changed more of the plan than spec.approval.driftBudget",
        Reason.DRAINED: "another rebalance empties a broker of the plan",
        Reason.NOT_DRAINED: "a broker that is being drained has got new replicas",
    }
    cancelled = "reassignments in flight"
    if replanning.reason in {Reason.SUPERSEDED, Reason.DRAINED} and assessment.statuses.copying:
        cancelled += " that the new plan does not continue"
    then = "planning again" if replanning.ready else f"cancelling {cancelled}, then planning again"
    reason = Reason.DRIFTED if replanning.reason is Reason.DRIFTED else Reason.SUPERSEDED
    return _in(reason, f"{why[replanning.reason]}: {then}" + (f"; {waits}" if waits else ""))


def _until_the_spec_is_valid(rebalance: RebalanceView, problem: RebalanceError) -> str:
    if not rebalance.desired.never_read:
        return f"{problem.message}; what was asked for before still holds"
    return problem.message + (f"; {_draining(rebalance)}" if rebalance.record.loaded_run is not None else "")


def _draining(rebalance: RebalanceView) -> str:
    return "no new step is started" if at_rest(rebalance) else "no new step is started; reassignments in flight finish"


def _moving_back(assessment: Assessment) -> str:
    """How much the rollback copies, shown from its beginning."""
    back = format_bytes(assessment.teardown.bytes_to_move_back)
    return f"moving everything back to where it was before the run: {back} to copy"


def _state_without_open_run(rebalance: RebalanceView) -> tuple[ReadySummary, str, str]:
    run, ended, progress = rebalance.record.run, rebalance.record.ended, rebalance.assessment.advance.progress
    queue, statuses = rebalance.assessment.queue, rebalance.assessment.statuses
    if wants_plan(rebalance) and (queue.waits or queue.unseen):
        return _in(Reason.QUEUED, queue.message)
    if run is None or not already_done(rebalance):
        return _in(Reason.PLANNING, "reading the cluster and making a plan")
    if run.outcome is RunOutcome.ROLLED_BACK_PARTIALLY:
        return _in(Reason.ROLLED_BACK_PARTIALLY, _not_back(rebalance))
    if run.outcome is RunOutcome.UNDONE:
        cordons = cordons_left(run, run.outcome)
        return _in(Reason.UNDONE, f"replicas and their order are as they were before the run{cordons}")
    if progress is None:
        return _in(*_said_before(rebalance.desired, run))
    left, total = _left_alone(ended.left_alone if ended is not None else 0), progress.partitions_total
    if total == 0:
        why_empty = ended.why_empty if ended is not None else ""
        return _in(Reason.NOTHING_TO_DO, _nothing_to_do(rebalance.desired, why_empty) + left)
    return _in(Reason.SUCCEEDED, _at_targets(total, statuses.count(MovePhase.SKIPPED)) + left)


def partitions_left(skipped: Mapping[TopicPartition, PartitionStatus]) -> str:
    """Names those that a run leaves as they are, and an example of the brokers that are gone, at the end of it."""
    if not skipped:
        return ""
    named = ", ".join(f"{tp} ({status.reason})" for tp, status in islice(skipped.items(), 10))
    gone = (f"; {tp}: {s.message}" for tp, s in skipped.items() if s.reason == Reason.ORIGINAL_BROKER_GONE)
    return f"; left as they are: {named}{next(gone, '')}"


def cordons_left(run: Run | None, outcome: RunOutcome) -> str:
    """Says which brokers stay cordoned after a run with this outcome, for example dead ones; empty: none."""
    if run is None or not run.cordoned:
        return ""
    brokers = ", ".join(map(str, run.cordoned))
    if outcome is RunOutcome.ABANDONED:
        return f"; brokers {brokers} stay cordoned: delete their cordoned.log.dirs to use them again"
    return f"; the cordons of brokers {brokers} are removed when these answer"


def _not_back(rebalance: RebalanceView) -> str:
    """Which partitions an undo left where they are; after a restart, what the status said then."""
    said = ready_reason(rebalance.desired.status)
    if rebalance.assessment.advance.progress is None and said is not None and said[0] == Reason.ROLLED_BACK_PARTIALLY:
        return said[1]
    rows = [f"{tp} ({status.reason})" for tp, status in list(skipped_partitions(rebalance).items())[:10]]
    named = f": {', '.join(rows)}" if rows else ""
    left = cordons_left(rebalance.record.run, RunOutcome.ROLLED_BACK_PARTIALLY)
    return f"not everything could be moved back{named}; the origins are kept{left}"


def _said_before(desired: Desired, run: Run) -> tuple[str, str]:
    """The state of a run that ended before this process started, from the status or else from its plan and progress."""
    status = desired.status
    said = ready_reason(status)
    if said is not None and said[0] in {Reason.SUCCEEDED, Reason.NOTHING_TO_DO}:
        return said
    if run.restored:
        again = "it is not carried out again; to run it again, delete it and create it anew"
        return Reason.SUCCEEDED, f"it was carried out before the resource was restored: {again}"
    plan, progress = status.plan, status.progress
    if plan is None or plan.hash != run.plan_hash or progress is None:
        return Reason.SUCCEEDED, "every partition is at its target or was left alone"
    left, partitions = _left_alone(status.skipped_count), progress.partitions
    if partitions.total:
        return Reason.SUCCEEDED, _at_targets(partitions.total, partitions.skipped) + left
    why_empty = plan.reason or (Reason.BUDGET_REACHED if plan.budget_reached else "")
    return Reason.NOTHING_TO_DO, _nothing_to_do(desired, why_empty) + left


def _nothing_to_do(desired: Desired, why_empty: str) -> str:
    if why_empty == Reason.GAIN_TOO_SMALL:
        gain = desired.spec.goals.minimum_gain
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
