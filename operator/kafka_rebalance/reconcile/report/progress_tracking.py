"""How far a rebalance is: progress, pace, the time left, and what keeps it from finishing. Pure."""

from collections.abc import Iterable, Mapping

from kafka_rebalance.execution.bottleneck import Copying, never_finishes
from kafka_rebalance.execution.expected_duration import shape_of_plan
from kafka_rebalance.execution.limits import Limits
from kafka_rebalance.execution.log_dir_moves import measure_log_dirs
from kafka_rebalance.execution.log_dir_progress import seconds_at_rate
from kafka_rebalance.execution.partition_status import Direction, MovePhase
from kafka_rebalance.execution.progress import (
    Pace,
    ReplicaBytes,
    seconds_at_throttle,
    seconds_left_range,
    start_pace,
)
from kafka_rebalance.execution.reassignment_throttle import ClusterRates
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.execution.tally import Tally
from kafka_rebalance.model.duration_model import DurationModel
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.topology import ClusterState, TopicPartition
from kafka_rebalance.reconcile.decide.throttle_claims import log_dir_rate_of
from kafka_rebalance.reconcile.report.ready_state import throttle_trouble, waiting_summary
from kafka_rebalance.reconcile.state.assessment import Advance, ExpectedDuration
from kafka_rebalance.reconcile.state.judgement import Statuses
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import LoadedRun
from kafka_rebalance.units import format_duration, format_rate


def advance_of(
    rebalance: RebalanceView,
    cluster: ClusterState,
    replica_bytes: ReplicaBytes,
    produce_rates: Mapping[TopicPartition, float],
    now: float,
    durations: DurationModel | None = None,
) -> Advance:
    """How far the run is by this round's statuses. ``now``: seconds of a monotonic clock."""
    assessment, limits = rebalance.assessment, rebalance.desired.limits
    before, rates = assessment.advance, assessment.throttle.rates
    direction = assessment.judgement.direction or Direction.FORWARD
    opened = rebalance.record.loaded_run
    log_dirs = measure_log_dirs(opened.log_dirs if opened is not None else (), assessment.log_dirs, direction)
    tally = _tally_of(rebalance, cluster, direction)
    progress, steps = tally.progress(assessment.statuses.phases, replica_bytes)
    progress = progress.with_log_dirs(log_dirs)
    dir_rate, _ = log_dir_rate_of(rebalance)
    pace, eta = None, None
    # While a step block holds it at rest, standing still is intended: the stall timeout starts again.
    if assessment.step_block is None or progress.partitions_in_flight or log_dirs.in_flight:
        same = before.pace if before.direction is direction else None
        pace = same.follow(progress, now) if same else start_pace(progress, now)
        into, out_of = tally.bytes_left(replica_bytes)
        at_throttle = _longer(seconds_at_throttle(into, out_of, rates), seconds_at_rate(log_dirs.bytes_left, dir_rate))
        eta = seconds_left_range(progress, pace, at_throttle)
    return Advance(
        direction=direction,
        progress=progress,
        steps_completed=steps,
        pace=pace,
        eta=eta,
        plan_seconds=expected_seconds(opened.plan, rates, dir_rate) if opened is not None else None,
        expected=_expected(before.expected, opened.plan, rates, limits, durations) if opened and durations else None,
        stalled=_stalled(rebalance, pace, now),
        too_slow=_too_slow(rebalance, cluster, produce_rates),
    )


def _tally_of(rebalance: RebalanceView, cluster: ClusterState, direction: Direction) -> Tally:
    """What the statuses add up to; counted again if the tally of the judgement is about others."""
    judgement = rebalance.assessment.judgement
    kept, judged, inputs = judgement.tally, judgement.statuses.judged, judgement.inputs
    r = inputs.parallel_replicas if inputs is not None else rebalance.desired.limits.parallel_replicas
    if kept is not None and (kept.direction, kept.parallel_replicas) == (direction, r) and kept.judged is judged:
        return kept
    return Tally.of(rebalance.record.moves, judged, cluster.partitions, direction, r)


def _expected(
    before: ExpectedDuration | None, plan: Plan, rates: ClusterRates, limits: Limits, durations: DurationModel
) -> ExpectedDuration:
    """By the runs before it. Not where sizes are unknown: those copies take time too."""
    replicas, partitions = limits.parallel_replicas, limits.parallel_partitions
    of = durations, plan.hash, plan.data_to_move_bytes, rates, replicas, partitions
    if before is not None and before.of == of:
        return before
    if any(p.added and not p.size_bytes for p in plan.partitions):
        return ExpectedDuration(of, None)
    shape = shape_of_plan(plan, rates, replicas, partitions)
    return ExpectedDuration(of, durations.interval(shape) if shape.steps else None)


def _stalled(rebalance: RebalanceView, pace: Pace | None, now: float) -> str:
    """Bytes on disk, copies in sync or partitions done must advance within ``stallTimeout``; clears by itself."""
    assessment, timeout = rebalance.assessment, rebalance.desired.spec.execution.stall_timeout_seconds
    if pace is None or assessment.finished or now - pace.advanced_at < timeout:
        return ""
    flying = ", ".join(str(tp) for tp in sorted(assessment.judgement.since)[:5])
    # Without its throttle nothing is sent, so Kafka is not the cause.
    causes = filter(None, (waiting_summary(assessment) or flying, throttle_trouble(assessment.throttle)))
    waits = "; ".join(causes) or _unanswered(assessment.statuses)
    return f"nothing has advanced for more than {format_duration(timeout)}: {waits}"


def _unanswered(statuses: Statuses) -> str:
    """What is sent to Kafka in each round and not carried out, for reasons that metadata does not show."""
    asked = [(tp, status.call) for tp, status in sorted(statuses.within(MovePhase.READY).items())]
    if not asked:
        return ""
    tp, call = asked[0]
    what = f"the election of broker {call.leader}" if isinstance(call, Elect) else "what is next"
    return f"Kafka does not carry out {what} for {tp}, one of {len(asked)}; see the log of the active controller"


def _too_slow(rebalance: RebalanceView, cluster: ClusterState, measured: Mapping[TopicPartition, float]) -> str:
    """A throttle below the produce rate of what moves: reported before, where the load model knows it, and during."""
    throttle, limits = rebalance.assessment.throttle.rates, rebalance.desired.limits
    rates = {**(rebalance.memory.expected_rates or {}), **measured}
    if rebalance.record.loaded_run is None or not rates or throttle.unlimited:
        return ""
    found = never_finishes(
        _copying(rebalance.assessment.statuses, cluster, rates),
        throttle,
        limits.parallel_partitions,
        limits.per_broker_in,
        limits.per_broker_out,
    )
    if found is None:
        return ""
    return (
        f"{found.side}Rate {format_rate(found.rate)} of broker {found.broker} can never be enough: {found.tp} alone "
        f"takes in {format_rate(found.produce_rate)}. It needs at least {format_rate(found.needed)}"
    )


def _copying(statuses: Statuses, cluster: ClusterState, rates: Mapping[TopicPartition, float]) -> Iterable[Copying]:
    by_partition = statuses.by_partition
    for tp, rate in rates.items():
        state, status = cluster.partitions.get(tp), by_partition.get(tp)
        if state is None or status is None or not rate:
            continue
        if status.phase is MovePhase.IN_FLIGHT:
            yield Copying(tp, state.leader, state.adding, rate, in_flight=True)
        elif isinstance(status.call, Alter) and status.call.until_in_sync:
            yield Copying(tp, state.leader, status.call.until_in_sync, rate, in_flight=False)


def expected_rates(opened: LoadedRun, model: LoadModel | None) -> dict[TopicPartition, float]:
    """Bytes per second that are produced to each partition of the run, as far as they are known."""
    if model is None:
        return {}
    known = ((m.tp, model.load_of(m.tp, m.topic_id)) for m in opened.moves)
    return {tp: load.bytes_in_per_second for tp, load in known if load is not None and load.bytes_in_per_second}


def expected_seconds(plan: Plan, rates: ClusterRates, dir_rate: int | None) -> float | None:
    """How long the copies take at least: the fullest pipe at the throttle. The old leaders are assumed as sources."""
    into, out_of, between = plan.bytes_copied
    return _longer(seconds_at_throttle(into, out_of, rates), seconds_at_rate(between, dir_rate))


def _longer(seconds: float | None, between_log_dirs: float) -> float | None:
    """Copies between brokers and those between log dirs go on beside each other. None: nothing is throttled."""
    return between_log_dirs or None if seconds is None else max(seconds, between_log_dirs)
