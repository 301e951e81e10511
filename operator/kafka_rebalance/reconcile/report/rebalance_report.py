"""What the status says: a pure function of the work, its plan and the cluster as just seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta

from kafka_rebalance.api.conditions import ConditionType, ReadySummary, remove_condition, set_condition, summarise
from kafka_rebalance.api.fields import format_time
from kafka_rebalance.api.v1alpha1 import (
    MAX_BATCH_ROWS,
    MAX_PLAN_BROKERS,
    MAX_SKIPPED_ROWS,
    ApprovalPolicy,
    BatchRow,
    BrokerPlanRow,
    ByteProgress,
    Condition,
    Display,
    KafkaRebalanceStatus,
    PartitionProgress,
    PlanStatus,
    ProgressStatus,
    ReplicaProgress,
    SkippedRow,
    SpreadStatus,
    StepProgress,
    ThrottleStatus,
)
from kafka_rebalance.execution.partition_status import Direction, MovePhase
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.model.plan import Spread
from kafka_rebalance.model.topology import ClusterState
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.report.ready_state import state_of
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState
from kafka_rebalance.units import format_bytes, format_duration, format_duration_range, format_rate


def build_status(
    work: RebalanceState,
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
            "plan": _plan(work),
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


def _conditions(
    work: RebalanceState, before: Iterable[Condition], stalled: str | None, now: datetime
) -> tuple[Condition, ...]:
    verdict, reason, message = state_of(work, stalled)
    generation = work.rebalance.metadata.generation
    conditions = summarise(before, verdict, reason, message, generation=generation, now=now)

    def put(kind: ConditionType, status: bool | None, why: str, text: str) -> None:
        nonlocal conditions
        conditions = set_condition(conditions, kind, status, why, text, generation=generation, now=now)

    moving = work.open is not None and not work.finished
    put(ConditionType.REBALANCING, moving, reason, message)
    succeeded = verdict is ReadySummary.DONE and reason != Reason.UNDONE
    put(ConditionType.SUCCEEDED, succeeded, reason, message)
    if work.open is not None:
        plan = work.open.plan
        elections = f", {plan.elections} leader elections" if plan.elections else ""
        told = f"{plan.changed} partitions, {plan.replica_moves} replica moves{elections}"
        put(ConditionType.PLANNED, True, Reason.PLANNED, told)
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


def _throttle_condition(work: RebalanceState, put: Callable[[ConditionType, bool, str, str], None]) -> None:
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


def _plan(work: RebalanceState) -> PlanStatus:
    if work.open is None:
        raise RuntimeError("no run is open")
    plan = work.open.plan
    return PlanStatus(
        hash=plan.hash,
        ref=work.open.ref,
        partitions=plan.changed,
        replica_moves=plan.replica_moves,
        lower_bound=plan.certificate.lower_bound,
        optimal=plan.certificate.optimal,
        before=_spread(plan.before),
        after=_spread(plan.after),
        budget_reached=True if plan.imbalance is not None else None,
        reason=plan.reason or None,
        leader_moves=plan.leader_moves,
        elections=plan.elections,
        data_to_move=plan.data_to_move_bytes,
        data_source=plan.data_source or None,
        per_broker=tuple(BrokerPlanRow(**asdict(row)) for row in plan.broker_changes[:MAX_PLAN_BROKERS]),
        per_broker_count=len(plan.broker_changes),
        eta=format_duration(work.eta_seconds) if work.eta_seconds is not None else None,
    )


def _spread(found: Spread | None) -> SpreadStatus | None:
    return SpreadStatus(fewest=found.fewest, most=found.most) if found is not None else None


def _progress(work: RebalanceState, now: datetime) -> ProgressStatus | None:
    found = work.progress
    if found is None or work.open is None:
        return None
    run = work.run or work.open.run  # the record: it is written anew when the first step goes out
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
        steps=StepProgress(completed=work.steps_completed, in_flight=found.partitions_in_flight),
        bytes=ByteProgress(total=found.bytes_total, moved=found.bytes_moved),
        rate=round(rate),
        estimated_completion=format_time(now + timedelta(seconds=work.eta[1])) if work.eta else None,
        started_at=run.started_at,
        above_replication_factor=found.above_replication_factor,
    )


def _batch(work: RebalanceState, cluster: ClusterState, replica_bytes: ReplicaBytes) -> list[BatchRow]:
    rows = []
    for errand in work.errands:
        verdict = work.verdicts.get(errand.tp)
        state = cluster.partitions.get(errand.tp)
        if verdict is None or verdict.phase is not MovePhase.IN_FLIGHT or state is None:
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


def _display(work: RebalanceState) -> Display:
    found = work.progress
    if found is None:
        return Display(throttle=_rates(work))
    return Display(
        progress=f"{found.percent}%",
        moved=f"{format_bytes(found.bytes_moved)}/{format_bytes(found.bytes_total)}",
        eta="-" if work.eta is None else format_duration_range(*work.eta),
        throttle=_rates(work),
    )


def _rates(work: RebalanceState) -> str:
    leader, follower = work.rates.general.leader, work.rates.general.follower
    if leader is None and follower is None:
        return "unlimited"
    if leader == follower and leader is not None:
        return format_rate(leader)
    sides: Mapping[str, int | None] = {"leader": leader, "follower": follower}
    return ", ".join(f"{side} {format_rate(rate)}" for side, rate in sides.items() if rate is not None)
