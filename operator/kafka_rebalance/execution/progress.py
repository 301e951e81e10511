"""The progress of a run: counts, bytes, rate and ETA, and whether it still advances. Pure; times are arguments."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kafka_rebalance.execution.log_dir_progress import LogDirProgress
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.reassignment_throttle import ClusterRates
from kafka_rebalance.model.topology import BrokerId, ClusterState, TopicPartition
from kafka_rebalance.reasons import Reason

_LONGEST_ETA_SECONDS = 365 * 86400.0
ReplicaBytes = Mapping[tuple[TopicPartition, BrokerId], int]
_SMOOTHING = 0.4
_RATE_SECONDS = 3.0
"""Sizes are read about every two seconds: a shorter interval would show jumps and standstills."""
_STEADY_SECONDS = 300.0
"""The window of the ETA: longer than a batch, short enough that a changed throttle shows within minutes."""
_FASTEST_SECONDS = 60.0
"""A rate held for less time says nothing about the highest rate possible."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of partitions and replicas; bytes of new copies, in total and copied so far."""

    partitions_total: int
    partitions_completed: int
    partitions_in_flight: int
    partitions_waiting: int
    partitions_skipped: int
    replicas_total: int
    replicas_completed: int
    bytes_total: int
    bytes_moved: int
    above_replication_factor: int
    log_dirs: LogDirProgress = field(default_factory=LogDirProgress)

    def with_log_dirs(self, found: LogDirProgress) -> "Progress":
        """The same with what moves between log dirs."""
        total, moved = self.bytes_total + found.bytes_total, self.bytes_moved + found.bytes_moved
        return replace(self, log_dirs=found, bytes_total=total, bytes_moved=moved)

    @property
    def percent(self) -> int:
        """By bytes if any are copied, else by partitions; 100 only when all that moves is done or skipped."""
        ended = self.partitions_completed + self.partitions_skipped
        if ended >= self.partitions_total and self.log_dirs.completed >= self.log_dirs.total:
            return 100
        share = self.bytes_moved / self.bytes_total if self.bytes_total else ended / self.partitions_total
        return min(99, int(100 * share))


def bytes_to_move_back(
    moves: Iterable[PartitionMove], cluster: ClusterState, replica_bytes: ReplicaBytes
) -> tuple[int, list[TopicPartition]]:
    """Bytes that a rollback copies after everything in flight is cancelled: to originals without a replica now.

    And the partitions of unknown size: planned without one, and no broker reports it. Without a leader nothing is
    copied.
    """
    back, unknown = 0, []
    for move in moves:
        state = cluster.partitions.get(move.tp)
        if state is not None and set(state.replicas) <= move.known:
            held = set(state.replicas) - set(state.adding)
            copies = sum(broker not in held for broker in move.origin)
            sizes = [replica_bytes[move.tp, b] for b in held if copies and (move.tp, b) in replica_bytes]
            back += copies * (move.size_bytes or max(sizes, default=0))
            if copies and not move.size_bytes and not sizes and state.leader is not None:
                unknown.append(move.tp)
    return back, unknown


def lost_moves(
    move_of: Mapping[TopicPartition, PartitionMove], statuses: Mapping[TopicPartition, PartitionStatus]
) -> int:
    """How many replica moves of the plan other tools have voided by changing the partition."""
    lost = (tp for tp, s in statuses.items() if s.phase is MovePhase.SKIPPED and s.reason == Reason.DRIFTED)
    return sum(moves_to_lose(move_of[tp]) for tp in lost)


def moves_to_lose(move: PartitionMove) -> int:
    """How many replica moves other tools void by changing the partition.

    A new order and an election count as one. Partitions that the plan does not change count as none.
    """
    if move.planned_from == move.target and not move.elects:
        return 0
    return len([broker for broker in move.target if broker not in move.planned_from]) or 1


@dataclass(frozen=True, slots=True)
class Pace:
    """Rates (bytes per second) and when the run last advanced, in seconds of a monotonic clock.

    ``rate``: smoothed over seconds, for display. ``steady``: the mean since the start, later over minutes, for the ETA;
    ``fastest``: its maximum; ``observed``: the seconds behind it.
    """

    at: float
    bytes_moved: int
    mark: tuple[int, ...]
    advanced_at: float
    rate: float = 0.0
    steady: float = 0.0
    fastest: float = 0.0
    observed: float = 0.0

    def follow(self, progress: Progress, now: float) -> "Pace":
        """The pace after another reading.

        The run advances when bytes on disk, copies in sync or partitions done exceed their maximum so far: a copy that
        is wiped and starts again does not count.
        """
        mark = tuple(max(pair) for pair in zip(self.mark, _mark(progress), strict=True))
        advanced_at = now if mark != self.mark else self.advanced_at
        elapsed = now - self.at
        if elapsed < _RATE_SECONDS:
            return replace(self, mark=mark, advanced_at=advanced_at)
        latest = max(0.0, (progress.bytes_moved - self.bytes_moved) / elapsed)
        rate = latest if self.rate == 0.0 else self.rate + _SMOOTHING * (latest - self.rate)
        observed = self.observed + elapsed
        steady = self.steady + (latest - self.steady) * min(1.0, elapsed / min(observed, _STEADY_SECONDS))
        fastest = max(self.fastest, steady) if self.observed >= _FASTEST_SECONDS else steady
        return Pace(now, progress.bytes_moved, mark, advanced_at, rate, steady, fastest, observed)


def _mark(progress: Progress) -> tuple[int, ...]:
    log_dirs = progress.log_dirs.completed
    return progress.bytes_moved, progress.replicas_completed, progress.partitions_completed, log_dirs


def start_pace(progress: Progress, now: float) -> Pace:
    """The pace at the first reading."""
    return Pace(now, progress.bytes_moved, _mark(progress), now)


def seconds_left(progress: Progress, rate: float) -> float | None:
    """Time to the end at this rate; None while almost nothing moves (a year is no estimate)."""
    left = progress.bytes_total - progress.bytes_moved
    if left <= 0:
        return 0.0
    return left / rate if rate > 0 and left / rate < _LONGEST_ETA_SECONDS else None


def seconds_at_throttle(
    bytes_into: Mapping[BrokerId, int], bytes_out_of: Mapping[BrokerId, int], rates: ClusterRates
) -> float | None:
    """A lower bound of the duration: the busiest broker at its configured rate. None when nothing is throttled."""
    if rates.unlimited:
        return None
    fetching = [(amount, rates.on(broker).follower) for broker, amount in bytes_into.items()]
    sending = [(amount, rates.on(broker).leader) for broker, amount in bytes_out_of.items()]
    return max((amount / rate for amount, rate in (*fetching, *sending) if rate), default=0.0)


def seconds_left_range(progress: Progress, pace: Pace | None, at_throttle: float | None) -> tuple[float, float] | None:
    """The shortest and the longest likely time to the end; None while nothing moves, or if it takes over a year.

    The shortest is ``at_throttle`` (``seconds_at_throttle`` of ``bytes_left``), so that a raised throttle shows at
    once, or follows from the fastest pace if unthrottled. The longest follows from the pace of the last minutes, which
    includes pauses between steps.
    """
    left = progress.bytes_total - progress.bytes_moved
    if left <= 0:
        return 0.0, 0.0
    longest = seconds_left(progress, pace.steady) if pace is not None else None
    if pace is None or longest is None:
        return None
    shortest = at_throttle if at_throttle is not None else left / pace.fastest
    if shortest >= _LONGEST_ETA_SECONDS:
        return None
    return shortest, max(shortest, longest)


def produce_rates(
    before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int], seconds: float
) -> dict[TopicPartition, float]:
    """Bytes per second by which each partition's leader replica grew between two readings.

    For partitions in both readings. A lower bound: 0 where retention deleted more than was produced.
    """
    if seconds <= 0:
        return {}
    return {tp: max(0, size - before[tp]) / seconds for tp, size in after.items() if tp in before}
