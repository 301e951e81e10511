"""How a rebalance gets on: progress, pace, the time left, and what keeps it from ever getting there. Sends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_rebalance.execution.bottleneck import Copying, never_finishes
from kafka_rebalance.execution.partition_status import Direction, MovePhase
from kafka_rebalance.execution.progress import (
    ReplicaBytes,
    bytes_left,
    measure,
    seconds_at_throttle,
    seconds_left_range,
    start_pace,
)
from kafka_rebalance.execution.reassignment_throttle import ClusterRates
from kafka_rebalance.execution.step_count import steps_completed
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.topology import BrokerId, ClusterState, TopicPartition
from kafka_rebalance.reconcile.report.ready_state import waiting_summary
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState
from kafka_rebalance.reconcile.state.records import OpenRun
from kafka_rebalance.units import format_duration, format_rate


def follow(
    work: RebalanceState,
    cluster: ClusterState,
    replica_bytes: ReplicaBytes,
    produce_rates: Mapping[TopicPartition, float],
    now: float,
) -> None:
    """Set progress, ``steps_completed``, pace, ``eta`` and ``too_slow``. ``now``: seconds of a monotonic clock."""
    direction = work.direction or Direction.FORWARD
    work.progress = measure(work.errands, work.verdicts, cluster, replica_bytes, direction)
    work.steps_completed = steps_completed(
        work.errands, work.verdicts, cluster, direction, work.limits.parallel_replicas
    )
    if work.hold is not None and not work.progress.partitions_in_flight:
        # Standing still is meant: the clock of the progress criterion begins anew.
        work.pace, work.eta = None, None
    else:
        work.pace = work.pace.follow(work.progress, now) if work.pace else start_pace(work.progress, now)
        into, out_of = bytes_left(work.errands, work.verdicts, cluster, replica_bytes, direction)
        at_throttle = seconds_at_throttle(into, out_of, work.rates)
        work.eta = seconds_left_range(work.progress, work.pace, at_throttle)
    work.too_slow = _too_slow(work, cluster, produce_rates)


def stalled(work: RebalanceState, now: float) -> str | None:
    """Bytes on disk, copies in sync or partitions done must advance within ``stallTimeout``; clears by itself."""
    timeout = work.rebalance.spec.execution.stall_timeout_seconds
    if work.pace is None or work.finished or now - work.pace.advanced_at < timeout:
        return None
    waits = waiting_summary(work) or ", ".join(str(tp) for tp in list(work.since)[:5]) or _unanswered(work)
    return f"nothing has advanced for more than {format_duration(timeout)}: {waits}"


def _unanswered(work: RebalanceState) -> str:
    """What is asked of Kafka in each round and not done, for reasons that metadata does not show."""
    asked = [(tp, v.call) for tp, v in sorted(work.verdicts.items()) if v.phase is MovePhase.READY]
    if not asked:
        return ""
    tp, call = asked[0]
    what = f"the election of broker {call.leader}" if isinstance(call, Elect) else "what is next"
    return f"Kafka does not carry out {what} for {tp}, one of {len(asked)}; see the log of the active controller"


def _too_slow(work: RebalanceState, cluster: ClusterState, measured: Mapping[TopicPartition, float]) -> str:
    """Said before, where the load model knows the rates, and during: a throttle below what is produced never ends."""
    rates = {**(work.expected_rates or {}), **measured}
    if work.open is None or not rates or work.rates.unlimited:
        return ""
    limits = work.limits
    found = never_finishes(
        _copying(work, cluster, rates),
        work.rates,
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


def _copying(work: RebalanceState, cluster: ClusterState, rates: Mapping[TopicPartition, float]) -> Iterable[Copying]:
    for tp, verdict in work.verdicts.items():
        state, rate = cluster.partitions.get(tp), rates.get(tp)
        if state is None or not rate:
            continue
        if verdict.phase is MovePhase.IN_FLIGHT:
            yield Copying(tp, state.leader, state.adding, rate, in_flight=True)
        elif isinstance(verdict.call, Alter) and verdict.call.until_in_sync:
            yield Copying(tp, state.leader, verdict.call.until_in_sync, rate, in_flight=False)


def expected_rates(opened: OpenRun, loads: LoadModel) -> dict[TopicPartition, float]:
    """Bytes per second that are produced to each partition of the run, as far as they are known."""
    known = ((e.tp, loads.bytes_in_per_second(e.tp)) for e in opened.errands if loads.knows(e.tp, e.topic_id))
    return {tp: rate for tp, rate in known if rate}


def expected_seconds(plan: Plan, rates: ClusterRates) -> float | None:
    """How long the copies take at least: the fullest pipe at the throttle. Sources are taken to be the old leaders."""
    into: dict[BrokerId, int] = {}
    out_of: dict[BrokerId, int] = {}
    for p in plan.partitions:
        for broker in p.added:
            into[broker] = into.get(broker, 0) + p.size_bytes
            out_of[p.current[0]] = out_of.get(p.current[0], 0) + p.size_bytes
    return seconds_at_throttle(into, out_of, rates)
