"""What the status says: a pure function of the work, its plan and the cluster as just seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from kafka_rebalance.api.conditions import ConditionType, Reason, remove_condition, set_condition, summarise
from kafka_rebalance.api.conditions import Verdict as Summary
from kafka_rebalance.api.fields import format_time
from kafka_rebalance.api.v1alpha1 import (
    MAX_BATCH_ROWS,
    MAX_SKIPPED_ROWS,
    ApprovalPolicy,
    BatchRow,
    ByteProgress,
    Condition,
    Display,
    KafkaRebalanceStatus,
    PartitionProgress,
    PlanStatus,
    ReplicaProgress,
    ResourceStatus,
    SkippedRow,
    SpreadStatus,
    ThrottleStatus,
)
from kafka_rebalance.api.v1alpha1 import (
    Progress as ProgressStatus,
)
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.decide import Direction, Kind
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.model.plan import Spread
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.model.topology import ClusterState
from kafka_rebalance.planning.gain import GAIN_TOO_SMALL
from kafka_rebalance.reconcile.work import Barrier, Work
from kafka_rebalance.units import format_bytes, format_duration, format_duration_range, format_rate


def build_status(
    work: Work,
    cluster: ClusterState,
    replica_bytes: ReplicaBytes,
    *,
    stalled: str | None,
    now: datetime,
) -> KafkaRebalanceStatus:
    """The whole status. ``stalled``: what does not get on."""
    before = work.written or work.rebalance.status
    rows = _batch(work, cluster, replica_bytes)
    skipped = work.skipped
    status = before.model_copy(
        update={
            "observed_generation": work.rebalance.metadata.generation,
            "cluster_id": cluster.cluster_id or before.cluster_id,
            "current_batch": tuple(rows[:MAX_BATCH_ROWS]),
            "current_batch_size": len(rows),
            "conditions": _conditions(work, before.conditions, stalled, now),
        }
    )
    if work.open is None:
        return status
    return status.model_copy(
        update={
            "plan": _plan(work, before.plan.data_source if before.plan else None),
            "progress": _progress(work, now),
            "throttle": ThrottleStatus(
                leader_rate=work.rates.general.leader,
                follower_rate=work.rates.general.follower,
                source=work.rate_source,
                bound_by=work.bound_by or None,
                brokers=work.throttled_brokers,
            ),
            "skipped": tuple(
                SkippedRow(topic=tp.topic, partition=tp.partition, reason=v.reason)
                for tp, v in list(skipped.items())[:MAX_SKIPPED_ROWS]
            ),
            "skipped_count": len(skipped),
            "display": _display(work),
        }
    )


def ready_reason(status: ResourceStatus) -> tuple[str, str] | None:
    """Reason and message of Ready: the state."""
    return next(((c.reason, c.message) for c in status.conditions if c.type == ConditionType.READY), None)


def waiting_summary(work: Work) -> str:
    """Why partitions wait, copies in flight too: reasons with counts and one example each, the most frequent first."""
    waiting = [(tp, v) for tp, v in sorted(work.verdicts.items()) if v.kind in {Kind.WAITING, Kind.IN_FLIGHT}]
    reasons = [(v.reason, tp, v.message) for tp, v in waiting if v.reason not in {"", "Paused"}]
    reasons += [("DiskFull", tp, f"broker {broker} has no room for it") for tp, broker in sorted(work.no_room.items())]
    counts = Counter(reason for reason, _, _ in reasons)
    examples: dict[str, str] = {}
    for reason, tp, message in reasons:
        examples.setdefault(reason, f"{tp}: {message}")
    return "; ".join(f"{reason} ({count}, e.g. {examples[reason]})" for reason, count in counts.most_common(3))


def _conditions(work: Work, before: Iterable[Condition], stalled: str | None, now: datetime) -> tuple[Condition, ...]:
    verdict, reason, message = _state(work, stalled)
    generation = work.rebalance.metadata.generation
    conditions = summarise(before, verdict, reason, message, generation=generation, now=now)

    def put(kind: ConditionType, status: bool | None, why: str, text: str) -> None:
        nonlocal conditions
        conditions = set_condition(conditions, kind, status, why, text, generation=generation, now=now)

    moving = work.open is not None and not work.finished
    put(ConditionType.REBALANCING, moving, reason, message)
    succeeded = verdict is Summary.DONE and reason != Reason.UNDONE
    put(ConditionType.SUCCEEDED, succeeded, reason, message)
    if work.open is not None:
        plan = work.open.plan
        put(
            ConditionType.PLANNED,
            True,
            Reason.PLANNED,
            f"{plan.changed} partitions, {plan.replica_moves} replica moves",
        )
        _throttle_condition(work, put)
        if work.rebalance.spec.approval.policy is ApprovalPolicy.MANUAL:
            approved = work.rebalance.spec.approval.plan_hash == plan.hash
            told = f"plan {plan.hash}" + ("" if approved else " is not the one in spec.approval.planHash")
            put(ConditionType.APPROVED, approved, Reason.APPROVED if approved else Reason.AWAITING_APPROVAL, told)
        else:
            conditions = remove_condition(conditions, ConditionType.APPROVED)
    elif succeeded:
        put(ConditionType.THROTTLE_APPLIED, False, Reason.RESTORED, "what was there before is back")
    if work.drained is None:
        return remove_condition(conditions, ConditionType.DRAINED) if work.open is not None else conditions
    put(ConditionType.DRAINED, work.drained, Reason.DRAINED if work.drained else Reason.NOT_DRAINED, work.drain_message)
    return conditions


def _throttle_condition(work: Work, put: Callable[[ConditionType, bool, str, str], None]) -> None:
    if work.rates.unlimited and not work.throttled_brokers:
        put(ConditionType.THROTTLE_APPLIED, False, Reason.UNLIMITED, "the spec asks for full speed")
    elif work.throttle_refused:
        put(ConditionType.THROTTLE_APPLIED, False, Reason.REPLICATION_THROTTLE_LOWER, work.throttle_refused)
    elif work.throttled_brokers:
        bound = f"; on some brokers less, by {work.bound_by}" if work.bound_by else ""
        relieved = f"; {work.relieved} partitions only where they arrive: a replica is out of the ISR"
        relieved = relieved if work.relieved else ""
        told = f"{_rates(work)} from {work.rate_source}{bound}{relieved}"
        put(ConditionType.THROTTLE_APPLIED, True, Reason.APPLIED, told)
    else:
        put(ConditionType.THROTTLE_APPLIED, False, Reason.PENDING, "no replica is being copied yet")


def _state(work: Work, stalled: str | None) -> tuple[Summary, str, str]:
    """Ready's reason is the STATE column; what a person must act on comes first."""
    if work.problem is not None:
        retried = ""
        if isinstance(work.problem, Transient):
            retried = "; trying again"
        return Summary.STUCK, work.problem.reason, work.problem.message + retried
    if work.spec_problem is not None and not work.rebalance.metadata.deleting:
        unread = f"{work.spec_problem.message}; what was asked for before still holds"
        return Summary.STUCK, work.spec_problem.reason, unread
    if work.open is None:
        return _state_at_rest(work)
    if work.throttle_problem is not None:
        return Summary.STUCK, work.throttle_problem.reason, work.throttle_problem.message
    if work.throttle_refused and not work.rebalance.metadata.deleting:
        then = "; no new copy starts there: lower the rate, or raise that throttle"
        return Summary.STUCK, Reason.REPLICATION_THROTTLE_LOWER, work.throttle_refused + then
    if stalled is not None:
        return Summary.STUCK, Reason.STALLED, stalled
    waits = waiting_summary(work) or work.throttle_refused or work.throttle_trouble
    if work.rebalance.metadata.deleting:
        return _state_of_teardown(work, waits)
    if work.replanning is not None:
        return _state_of_replanning(work, work.replanning)
    if work.hold is not None:
        return Summary.IN_PROGRESS, work.hold.reason, f"{work.hold.message}; {_draining(work)}"
    if work.finished and not waits:
        waits = "everything has arrived; the throttle is being taken away"
    if work.going_back:
        return Summary.IN_PROGRESS, Reason.UNDOING, waits or _moving_back(work)
    if work.too_slow:
        return Summary.STUCK, Reason.THROTTLE_TOO_LOW, work.too_slow
    return Summary.IN_PROGRESS, Reason.REBALANCING, waits or "moving replicas in small steps"


def _state_of_teardown(work: Work, waits: str) -> tuple[Summary, str, str]:
    if work.barrier is Barrier.TOO_LARGE:
        most = format_bytes(work.rebalance.spec.rollback.max_data or 0)
        asked = "raise spec.rollback.maxData to move it back, or set spec.deletionPolicy to Revert or Abandon"
        told = f"the rollback would move {format_bytes(work.bytes_to_move_back)}, more than maxData ({most}): {asked}"
        return Summary.STUCK, Reason.ROLLBACK_TOO_LARGE, told
    if work.barrier is Barrier.HEIR:
        told = f"{work.heir_name} covers the same partitions and goes on from here; cancelling what is in flight"
        return Summary.IN_PROGRESS, Reason.TAKEN_OVER, told
    if work.direction is Direction.REVERT:
        return Summary.IN_PROGRESS, Reason.REVERTING, waits or "cancelling what is in flight"
    if work.hold is not None:
        return Summary.IN_PROGRESS, Reason.ROLLING_BACK, f"{work.hold.reason}: {work.hold.message}; {_draining(work)}"
    if work.finished and not waits:
        waits = "everything is back; the throttle is being taken away"
    return Summary.IN_PROGRESS, Reason.ROLLING_BACK, waits or _moving_back(work)


def _state_of_replanning(work: Work, why: Reason) -> tuple[Summary, str, str]:
    if work.settled and work.queued:
        return Summary.IN_PROGRESS, Reason.QUEUED, work.queue_message
    said = {
        Reason.SUPERSEDED: "the spec changed",
        Reason.DRIFTED: "others have changed more of the plan than spec.approval.driftBudget",
        Reason.NOT_DRAINED: "a broker to be emptied has got new replicas",
    }
    then = "planning anew" if work.settled else "cancelling what is in flight, then planning anew"
    reason = Reason.DRIFTED if why is Reason.DRIFTED else Reason.SUPERSEDED
    return Summary.IN_PROGRESS, reason, f"{said[why]}: {then}"


def _draining(work: Work) -> str:
    return "no new step is started" if work.at_rest else "no new step is started; what is in flight finishes"


def _moving_back(work: Work) -> str:
    """Said first: how much the rollback copies, and how long that takes at least."""
    return f"moving everything back to where it was before the run: {format_bytes(work.bytes_to_move_back)} to copy"


def _state_at_rest(work: Work) -> tuple[Summary, str, str]:
    if work.wants_plan and (work.queued or work.unseen):
        return Summary.IN_PROGRESS, Reason.QUEUED, work.queue_message
    run = work.run
    ended_well = {RunOutcome.SUCCEEDED, RunOutcome.UNDONE}
    closed_well = run is not None and (run.outcome in ended_well or (run.undo and not run.open))
    if run is None or not closed_well or run.planning_hash != work.planning_hash:
        return Summary.IN_PROGRESS, Reason.PLANNING, "reading the cluster and making a plan"
    if run.outcome is RunOutcome.ROLLED_BACK_PARTIALLY:
        rows = [f"{tp} ({v.reason})" for tp, v in list(work.skipped.items())[:10]]
        named = f": {', '.join(rows)}" if rows else ""
        message = f"not everything could be moved back{named}; the origins are kept"
        return Summary.STUCK, Reason.ROLLED_BACK_PARTIALLY, message
    if run.outcome is RunOutcome.UNDONE:
        return Summary.DONE, Reason.UNDONE, "replicas and their order are as they were before the run"
    count = len(work.skipped)
    left = f"; {count} partitions were left alone, see status.skipped" if count else ""
    if work.progress is None:  # finished before this process started: say what was said
        said = ready_reason(work.rebalance.status)
        known = said is not None and said[0] in {Reason.SUCCEEDED, Reason.NOTHING_TO_DO}
        reason, message = said if said and known else (Reason.SUCCEEDED, "every partition is at its target")
        return Summary.DONE, reason, message
    if work.progress.partitions_total == 0:
        why = "the cluster is as asked for: no partition has to change"
        if work.plan_reason == GAIN_TOO_SMALL:
            gain = work.rebalance.spec.goals.minimum_gain
            why = f"{GAIN_TOO_SMALL}: balance would take less than goals.minimumGain ({gain} %) off the fullest broker"
        elif work.open is not None and work.open.plan.imbalance is not None:
            why = "goals.maxReplicaMoves or goals.maxDataToMove allow no move that would help"
        return Summary.DONE, Reason.NOTHING_TO_DO, f"{why}{left}"
    total = work.progress.partitions_total
    alone = sum(v.kind is Kind.SKIPPED for v in work.verdicts.values())
    return Summary.DONE, Reason.SUCCEEDED, f"{total - alone} of {total} partitions are at their targets{left}"


def _plan(work: Work, source_said: str | None) -> PlanStatus:
    if work.open is None:
        raise RuntimeError("no run is open")
    plan = work.open.plan
    return PlanStatus(
        hash=plan.hash,
        ref=work.open.ref,
        partitions=plan.changed,
        replica_moves=plan.replica_moves,
        lower_bound=plan.lower_bound,
        optimal=plan.optimal,
        before=_spread(plan.before),
        after=_spread(plan.after),
        budget_reached=True if plan.imbalance is not None else None,
        reason=plan.reason or None,
        leader_moves=plan.leader_moves,
        data_to_move=plan.data_to_move_bytes,
        data_source=work.data_source or source_said,
        eta=format_duration(work.eta_seconds) if work.eta_seconds is not None else None,
    )


def _spread(found: Spread | None) -> SpreadStatus | None:
    return SpreadStatus(fewest=found.fewest, most=found.most) if found is not None else None


def _progress(work: Work, now: datetime) -> ProgressStatus | None:
    found = work.progress
    if found is None or work.open is None:
        return None
    rate = work.pace.rate if work.pace else 0.0
    return ProgressStatus(
        percent=found.percent,
        partitions=PartitionProgress(
            total=found.partitions_total,
            completed=found.partitions_completed,
            in_flight=found.partitions_in_flight,
            waiting=found.partitions_waiting,
            skipped=found.partitions_skipped,
        ),
        replica_moves=ReplicaProgress(total=found.replicas_total, completed=found.replicas_completed),
        bytes=ByteProgress(total=found.bytes_total, moved=found.bytes_moved),
        rate=round(rate),
        estimated_completion=format_time(now + timedelta(seconds=work.eta[1])) if work.eta else None,
        started_at=work.open.run.opened_at,
        above_replication_factor=found.above_replication_factor,
    )


def _batch(work: Work, cluster: ClusterState, replica_bytes: ReplicaBytes) -> list[BatchRow]:
    rows = []
    for errand in work.errands:
        verdict = work.verdicts.get(errand.tp)
        state = cluster.partitions.get(errand.tp)
        if verdict is None or verdict.kind is not Kind.IN_FLIGHT or state is None:
            continue
        held = sum(replica_bytes.get((errand.tp, b), 0) for b in state.adding)
        rows.append(
            BatchRow(
                topic=errand.tp.topic,
                partition=errand.tp.partition,
                current=tuple(b for b in state.replicas if b not in state.adding),
                step=verdict.step,
                target=errand.target if work.direction is Direction.FORWARD else errand.origin,
                adding=state.adding,
                removing=state.removing,
                since=work.since.get(errand.tp),
                bytes_remaining=max(0, errand.size_bytes * len(state.adding) - held),
            )
        )
    return rows


def _display(work: Work) -> Display:
    found = work.progress
    if found is None:
        return Display(throttle=_rates(work))
    return Display(
        progress=f"{found.percent}%",
        moved=f"{format_bytes(found.bytes_moved)}/{format_bytes(found.bytes_total)}",
        eta="-" if work.eta is None else format_duration_range(*work.eta),
        throttle=_rates(work),
    )


def _rates(work: Work) -> str:
    leader, follower = work.rates.general.leader, work.rates.general.follower
    if leader is None and follower is None:
        return "unlimited"
    if leader == follower and leader is not None:
        return format_rate(leader)
    sides: Mapping[str, int | None] = {"leader": leader, "follower": follower}
    return ", ".join(f"{side} {format_rate(rate)}" for side, rate in sides.items() if rate is not None)
