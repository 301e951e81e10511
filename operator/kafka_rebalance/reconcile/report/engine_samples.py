"""The metrics of a cluster and its rebalances, from what the engine holds. Pure.

Long waits, failures and leftover configs have series of their own, so that alerts need not match texts. No label is a
topic, a partition or a broker. A reason that is not on the list of reasons is counted as `Other`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.execution.partition_status import Direction, MovePhase
from kafka_rebalance.execution.windows import Open, WindowClock
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.report.ready_state import ready_reason
from kafka_rebalance.reconcile.state.assessment import Assessment
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import LoadedRun
from kafka_rebalance.telemetry.metric_families import Sample, samples

_OTHER = "Other"
_REASONS = frozenset(Reason)
_HELD = (MovePhase.IN_FLIGHT, MovePhase.WAITING, MovePhase.SKIPPED)


@dataclass(frozen=True, slots=True)
class RoundTotals:
    """The rounds of an engine since it began."""

    succeeded: int = 0
    failed: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def plus(self, seconds: float, cpu_seconds: float, *, failed: bool) -> "RoundTotals":
        """With another round."""
        ended = replace(self, seconds=self.seconds + seconds, cpu_seconds=self.cpu_seconds + cpu_seconds)
        return replace(ended, failed=self.failed + 1) if failed else replace(ended, succeeded=self.succeeded + 1)


@dataclass(frozen=True, slots=True)
class ThrottleFigures:
    """The throttle of a cluster. ``ledger``: entries by kind; ``problem``: why nothing can be throttled, or empty."""

    ledger: Mapping[str, int] = field(default_factory=dict)
    reverts: int = 0
    contested: bool = False
    foreign: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """What the engine of a cluster holds. ``problem``: why its last round has failed, or empty."""

    cluster_id: str
    brokers: int
    rounds: RoundTotals
    throttle: ThrottleFigures
    problem: str = ""
    missing_permissions: int = 0


def cluster_samples(figures: ClusterFigures) -> Iterator[Sample]:
    """The metrics of one Kafka cluster."""
    cluster, rounds, throttle = (figures.cluster_id,), figures.rounds, figures.throttle
    yield Sample("brokers", cluster, figures.brokers)
    yield from samples("rounds_total", cluster, {"ok": rounds.succeeded, "failed": rounds.failed})
    yield Sample("round_duration_seconds", cluster, rounds.seconds, rounds.succeeded + rounds.failed)
    yield Sample("round_cpu_seconds_total", cluster, rounds.cpu_seconds)
    yield from samples("round_problem", cluster, {_known(p): 1 for p in (figures.problem, throttle.problem) if p})
    yield from samples("throttle_ledger_entries", cluster, throttle.ledger)
    yield Sample("throttle_reverts_total", cluster, throttle.reverts)
    yield Sample("throttle_contested", cluster, throttle.contested)
    yield Sample("foreign_reassignments", cluster, throttle.foreign)
    yield Sample("missing_permissions", cluster, figures.missing_permissions)


def rebalance_samples(
    cluster_id: str, rebalance: RebalanceView, now: datetime, monotonic: float, windows: WindowClock | None
) -> Iterator[Sample]:
    """The metrics of one KafkaRebalance; of the last run, while it is open. Times are those of the scrape.

    ``windows``: those that the rounds have looked at; None: no cluster is known.
    """
    metadata, memory = rebalance.desired.metadata, rebalance.memory
    labels = (cluster_id, metadata.namespace, metadata.name)
    status = memory.built or rebalance.desired.status
    state = ready_reason(status)
    if state is not None:
        yield Sample("state", (*labels, _known(state[0])), 1)
    stalled = find_condition(status.conditions, ConditionType.STALLED)
    yield Sample("stalled", labels, stalled is not None and stalled.status == "True")
    if memory.error is not None:
        yield Sample("problem", (*labels, _known(memory.error.reason)), 1)
    run = rebalance.record.run
    if run is not None and run.closed_at is not None:
        yield Sample("completed_timestamp_seconds", labels, run.closed_at.timestamp())
    opened = rebalance.record.loaded_run
    if opened is not None:
        started_at = (run or opened.run).started_at
        if started_at is not None:
            yield Sample("started_timestamp_seconds", labels, started_at.timestamp())
        yield from _of_assessment(labels, rebalance.assessment)
        yield from _of_advance(labels, rebalance.assessment, opened, now, monotonic)
        if windows is not None:
            yield from _of_windows(labels, rebalance, now, windows)


def _of_assessment(labels: tuple[str, ...], found: Assessment) -> Iterator[Sample]:
    direction = found.judgement.direction or Direction.FORWARD
    yield Sample("direction", (*labels, direction.value), 1)
    yield from samples("partitions", labels, {phase.value: count for phase, count in found.statuses.phases.items()})
    held = Counter(
        (status.phase, status.reason)
        for status in found.statuses.notable.values()
        if status.phase in _HELD and status.reason not in {"", Reason.PAUSED}
    )
    held[MovePhase.WAITING, Reason.DISK_FULL] += len(found.no_room) + len(found.dir_full)
    held[MovePhase.WAITING, Reason.THROTTLE_LIST_FULL] += len(found.list_full)
    held[MovePhase.WAITING, Reason.CAPACITY_LIMIT_REACHED] += len(found.at_limit)
    held[MovePhase.WAITING, Reason.METADATA_STALE] += len(found.doubted)
    held[MovePhase.WAITING, Reason.ORDER_REFUSED] += found.refused.count if found.refused is not None else 0
    for (phase, reason), count in held.items():
        if count:
            yield Sample("held_partitions", (*labels, phase.value, _known(reason)), count)
    if found.step_block is not None:
        yield Sample("step_block", (*labels, _known(found.step_block.reason)), 1)
    throttle = found.throttle
    if throttle.source:
        rates = {"leader": throttle.rates.general.leader, "follower": throttle.rates.general.follower}
        set_rates = {side: float(rate) for side, rate in rates.items() if rate is not None}
        yield from samples("throttle_bytes_per_second", labels, set_rates)
        yield Sample("throttled_brokers", labels, throttle.brokers)
        yield Sample("throttle_pending_brokers", labels, throttle.brokers_pending)


def _of_advance(
    labels: tuple[str, ...], found: Assessment, opened: LoadedRun, now: datetime, monotonic: float
) -> Iterator[Sample]:
    advance = found.advance
    progress, pace, eta = advance.progress, advance.pace, advance.eta
    if progress is None or found.run is not opened:
        return
    yield Sample("replica_moves", labels, progress.replicas_total)
    yield Sample("replica_moves_completed", labels, progress.replicas_completed)
    yield Sample("partitions_above_replication_factor", labels, progress.above_replication_factor)
    yield Sample("copy_bytes", labels, progress.bytes_total)
    yield Sample("copied_bytes", labels, progress.bytes_moved)
    yield Sample("remaining_bytes", labels, max(0, progress.bytes_total - progress.bytes_moved))
    yield Sample("copy_rate_bytes_per_second", labels, pace.rate if pace is not None else 0)
    if pace is not None:
        advanced = now - timedelta(seconds=monotonic - pace.advanced_at)
        yield Sample("last_progress_timestamp_seconds", labels, advanced.timestamp())
    if eta is not None:
        yield from samples("eta_seconds", labels, dict(zip(("least", "most"), eta, strict=True)))


def _of_windows(
    labels: tuple[str, ...], rebalance: RebalanceView, now: datetime, windows: WindowClock
) -> Iterator[Sample]:
    # Not computed here: that may take milliseconds for each of thousands of rebalances.
    found = windows.known([window.as_rule() for window in rebalance.desired.spec.execution.windows], now)
    if isinstance(found, Open) and found.until is not None:
        yield Sample("window_end_timestamp_seconds", labels, found.until.timestamp())


def _known(reason: str) -> str:
    return reason if reason in _REASONS else _OTHER
