"""What the status says: a pure function of the rebalance and the cluster as just seen."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import islice

from kafka_rebalance.api import resource_status as shown
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.execution.partition_status import Direction, MovePhase
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load_outcome import LoadOutcome
from kafka_rebalance.model.plan import Spread
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import ClusterState, TopicPartition
from kafka_rebalance.reconcile.decide.judging import skipped_partitions
from kafka_rebalance.reconcile.decide.throttle_claims import log_dir_rate_of
from kafka_rebalance.reconcile.report.override_report import override_rows
from kafka_rebalance.reconcile.report.rebalance_conditions import conditions_of, rates_text
from kafka_rebalance.reconcile.state.assessment import Advance, ThrottleFindings
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import LoadedRun
from kafka_rebalance.units import format_bytes, format_duration, format_duration_range


def build_status(
    rebalance: RebalanceView,
    cluster: ClusterState,
    replica_bytes: ReplicaBytes,
    *,
    now: datetime,
    problem: RebalanceError | None = None,
) -> shown.KafkaRebalanceStatus:
    """The whole status. ``problem``: what went wrong, where the rebalance has no problem of its own."""
    desired, opened, assessment = rebalance.desired, rebalance.record.loaded_run, rebalance.assessment
    before, run = rebalance.memory.built or desired.status, rebalance.record.run
    rows, size = _batch(rebalance, cluster, replica_bytes)
    if opened is not None and not cluster.partitions and assessment.statuses.copying:
        # Nothing was read in this round, and reassignments that were in flight most likely still are.
        rows, size = before.current_batch, before.current_batch_size
    status = before.model_copy(
        update={
            "observed_generation": desired.metadata.generation,
            "cluster_id": cluster.cluster_id or before.cluster_id,
            "current_batch": tuple(rows),
            "current_batch_size": size,
            "overrides": override_rows(desired.overrides),
            "completed_at": run.closed_at if run is not None else before.completed_at,
            "conditions": conditions_of(rebalance, before.conditions, rebalance.memory.error or problem, cluster, now),
        }
    )
    if opened is None:
        return _with_disk_peak(status, rebalance.record.run)
    skipped = _skipped(rebalance)
    return status.model_copy(
        update={
            "plan": _plan(opened, assessment.advance),
            "progress": _progress(rebalance, opened, now),
            "throttle": _throttle(rebalance, opened),
            "skipped": tuple(
                shown.SkippedRow(topic=tp.topic, partition=tp.partition, reason=reason)
                for tp, reason in islice(skipped.items(), shown.MAX_SKIPPED_ROWS)
            ),
            "skipped_count": len(skipped),
            "display": _display(assessment.advance, assessment.throttle),
        }
    )


def _throttle(rebalance: RebalanceView, opened: LoadedRun) -> shown.ThrottleStatus:
    throttle = rebalance.assessment.throttle
    return shown.ThrottleStatus(
        leader_rate=throttle.rates.general.leader,
        follower_rate=throttle.rates.general.follower,
        log_dir_rate=log_dir_rate_of(rebalance)[0] if opened.plan.log_dir_moves else None,
        source=throttle.source,
        bound_by=throttle.bound_by or None,
        brokers=throttle.brokers,
    )


def _skipped(rebalance: RebalanceView) -> dict[TopicPartition, str]:
    """The reason of each partition that is left alone, also for its log dirs only."""
    skipped = {tp: row.reason for tp, row in skipped_partitions(rebalance).items()}
    for (tp, _), row in rebalance.assessment.log_dirs.within(MovePhase.SKIPPED).items():
        skipped.setdefault(tp, row.reason)
    return skipped


def _with_disk_peak(status: shown.KafkaRebalanceStatus, run: Run | None) -> shown.KafkaRebalanceStatus:
    """Adds the value measured at the success of the run to the row of Disk in the plan that is still shown."""
    plan = status.plan
    if run is None or run.disk_peak is None or plan is None or plan.load is None or plan.hash != run.plan_hash:
        return status
    load = plan.load.with_measured({LoadResource.DISK.value: run.disk_peak})
    return status.model_copy(update={"plan": plan.model_copy(update={"load": load})})


def _plan(opened: LoadedRun, advance: Advance) -> shown.PlanStatus:
    plan = opened.plan
    return shown.PlanStatus(
        hash=plan.hash,
        ref=opened.ref,
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
        log_dir_moves=plan.log_dir_moves or None,
        data_between_log_dirs=plan.log_dir_bytes or None,
        load=_load(plan.load) if plan.load is not None else None,
        data_source=plan.data_source or None,
        per_broker=tuple(shown.BrokerPlanRow(**asdict(row)) for row in plan.broker_changes[: shown.MAX_PLAN_BROKERS]),
        per_broker_count=len(plan.broker_changes),
        **_eta(advance),
    )


def _eta(advance: Advance) -> dict[str, str | None]:
    """By the runs before it; else the lower bound of the throttle."""
    if advance.expected is not None and advance.expected.seconds is not None:
        return {"eta": format_duration_range(*advance.expected.seconds), "eta_source": "History"}
    if advance.plan_seconds is not None:
        return {"eta": format_duration(advance.plan_seconds), "eta_source": "Throttle"}
    return {}


def _load(found: LoadOutcome) -> shown.LoadStatus:
    return shown.LoadStatus(
        resources=tuple(
            shown.ResourceLoadRow(
                resource=row.resource.value,
                peak_before=round(row.peak_before),
                peak_after=round(row.peak_after),
                outside_before=row.outside_before,
                outside_after=row.outside_after,
            )
            for row in found.resources
        ),
        data_lower_bound=found.data_lower_bound,
        gap=f"{found.gap:.2f}",
        outside=tuple(shown.OutsideRow(**asdict(row)) for row in found.outside[: shown.MAX_OUTSIDE_ROWS]),
    )


def _spread(found: Spread | None) -> shown.SpreadStatus | None:
    return shown.SpreadStatus(fewest=found.fewest, most=found.most) if found is not None else None


def _progress(rebalance: RebalanceView, opened: LoadedRun, now: datetime) -> shown.ProgressStatus | None:
    advance = rebalance.assessment.advance
    found, eta = advance.progress, advance.eta
    if found is None:
        return None
    run = rebalance.record.run or opened.run  # the record: it is written again when the first step is sent
    rate = advance.pace.rate if advance.pace else 0.0
    return shown.ProgressStatus(
        percent=found.percent,
        partitions=shown.PartitionProgress(
            total=found.partitions_total,
            completed=found.partitions_completed,
            in_flight=found.partitions_in_flight,
            waiting=found.partitions_waiting,
            skipped=found.partitions_skipped,
        ),
        replica_moves=shown.ReplicaProgress(total=found.replicas_total, completed=found.replicas_completed),
        log_dir_moves=shown.LogDirMoveProgress(
            total=found.log_dirs.total, completed=found.log_dirs.completed, in_flight=found.log_dirs.in_flight
        )
        if found.log_dirs.total
        else None,
        steps=shown.StepProgress(completed=advance.steps_completed, in_flight=found.partitions_in_flight),
        bytes=shown.ByteProgress(total=found.bytes_total, moved=found.bytes_moved),
        rate=round(rate),
        estimated_completion=now + timedelta(seconds=eta[1]) if eta else None,
        started_at=run.started_at,
        above_replication_factor=found.above_replication_factor,
    )


def _batch(
    rebalance: RebalanceView, cluster: ClusterState, replica_bytes: ReplicaBytes
) -> tuple[Sequence[shown.BatchRow], int]:
    """The first rows of the current batch, and how many there are."""
    judgement, run = rebalance.assessment.judgement, rebalance.record.loaded_run
    if run is None:
        return (), 0
    flying = judgement.statuses.within(MovePhase.IN_FLIGHT)
    known = sorted(tp for tp in flying if tp in cluster.partitions)
    rows = []
    for tp in known[: shown.MAX_BATCH_ROWS]:
        move, status, state = run.move_of[tp], flying[tp], cluster.partitions[tp]
        on_disk = sum(replica_bytes.get((move.tp, b), 0) for b in state.adding)
        rows.append(
            shown.BatchRow(
                topic=move.tp.topic,
                partition=move.tp.partition,
                current=tuple(b for b in state.replicas if b not in state.adding),
                step=status.step,
                target=move.target if judgement.direction is Direction.FORWARD else move.origin,
                adding=state.adding,
                removing=state.removing,
                since=judgement.since.get(move.tp),
                bytes_remaining=max(0, move.size_bytes * len(state.adding) - on_disk),
            )
        )
    return rows, len(known)


def _display(advance: Advance, throttle: ThrottleFindings) -> shown.Display:
    found = advance.progress
    if found is None:
        return shown.Display(throttle=rates_text(throttle))
    return shown.Display(
        progress=f"{found.percent}%",
        moved=f"{format_bytes(found.bytes_moved)}/{format_bytes(found.bytes_total)}",
        eta="-" if advance.eta is None else format_duration_range(*advance.eta),
        throttle=rates_text(throttle),
    )
