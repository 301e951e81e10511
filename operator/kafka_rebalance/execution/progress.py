"""How far a run is: counts, bytes, rate and ETA, and whether it still moves. Pure; times are arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kafka_rebalance.execution.decide import Direction, Errand, Kind, Verdict
from kafka_rebalance.model.topology import BrokerId, ClusterState, TopicPartition

_LONGEST_ETA_SECONDS = 365 * 86400.0
ReplicaBytes = Mapping[tuple[TopicPartition, BrokerId], int]
_SMOOTHING = 0.4
_RATE_SECONDS = 3.0
"""Sizes are read every two seconds or so: a shorter interval would see jumps and standstills."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of partitions and replicas; bytes of new copies, all and those that have arrived."""

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

    @property
    def percent(self) -> int:
        """By bytes where bytes move, else by partitions; 100 only when every partition is done or skipped."""
        settled = self.partitions_completed + self.partitions_skipped
        if settled >= self.partitions_total:
            return 100
        share = self.bytes_moved / self.bytes_total if self.bytes_total else settled / self.partitions_total
        return min(99, int(100 * share))


def measure(
    errands: Iterable[Errand],
    verdicts: Mapping[TopicPartition, Verdict],
    cluster: ClusterState,
    replica_bytes: ReplicaBytes,
    direction: Direction,
) -> Progress:
    """Where the run stands. ``replica_bytes``: what lies on disk, read now and then."""
    kinds = Counter(v.kind for v in verdicts.values())
    total = replicas = replicas_done = moved = in_total = above = 0
    for errand in errands:
        total += 1
        start, goal = errand.origin, errand.target
        if direction is not Direction.FORWARD:
            start, goal = goal, start
        state = cluster.partitions.get(errand.tp)
        if state is not None and not state.in_flight:
            above += len(state.replicas) > max(len(start), len(goal))
        for broker in goal:
            if broker in start:
                continue
            replicas += 1
            size = max(errand.size_bytes, 0)
            in_total += size
            if state is None or broker not in state.replicas:
                continue
            if broker in state.isr:
                replicas_done += 1
                moved += size
            else:
                moved += min(size, replica_bytes.get((errand.tp, broker), 0))
    return Progress(
        partitions_total=total,
        partitions_completed=kinds[Kind.DONE],
        partitions_in_flight=kinds[Kind.IN_FLIGHT],
        partitions_waiting=kinds[Kind.WAITING] + kinds[Kind.READY],
        partitions_skipped=kinds[Kind.SKIPPED],
        replicas_total=replicas,
        replicas_completed=replicas_done,
        bytes_total=in_total,
        bytes_moved=moved,
        above_replication_factor=above,
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """Smoothed rate (bytes per second) and when the run last got anywhere, in seconds of a monotonic clock."""

    at: float
    bytes_moved: int
    mark: tuple[int, ...]
    advanced_at: float
    rate: float = 0.0

    def follow(self, progress: Progress, now: float) -> Pace:
        """The pace after another reading.

        Bytes on disk, copies in sync or partitions done beyond what there ever was count as advance: a copy that is
        wiped and begins again does not.
        """
        mark = tuple(max(pair) for pair in zip(self.mark, _mark(progress), strict=True))
        advanced_at = now if mark != self.mark else self.advanced_at
        elapsed = now - self.at
        if elapsed < _RATE_SECONDS:
            return replace(self, mark=mark, advanced_at=advanced_at)
        latest = max(0.0, (progress.bytes_moved - self.bytes_moved) / elapsed)
        rate = latest if self.rate == 0.0 else self.rate + _SMOOTHING * (latest - self.rate)
        return Pace(now, progress.bytes_moved, mark, advanced_at, rate)


def _mark(progress: Progress) -> tuple[int, ...]:
    return progress.bytes_moved, progress.replicas_completed, progress.partitions_completed


def start_pace(progress: Progress, now: float) -> Pace:
    """The pace at the first reading."""
    return Pace(now, progress.bytes_moved, _mark(progress), now)


def seconds_left(progress: Progress, rate: float) -> float | None:
    """Time to the end at this rate; None while next to nothing moves (a year is no estimate)."""
    left = progress.bytes_total - progress.bytes_moved
    if left <= 0:
        return 0.0
    return left / rate if rate > 0 and left / rate < _LONGEST_ETA_SECONDS else None


def seconds_at_throttle(
    bytes_into: Mapping[BrokerId, int], bytes_out_of: Mapping[BrokerId, int], leader: int | None, follower: int | None
) -> float | None:
    """A lower bound of the duration: the fullest pipe at the configured rates. None when nothing is throttled."""
    bounds = [
        max(amounts.values(), default=0) / rate
        for amounts, rate in ((bytes_into, follower), (bytes_out_of, leader))
        if rate
    ]
    return max(bounds) if bounds else None


def produce_rates(
    before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int], seconds: float
) -> dict[TopicPartition, float]:
    """Bytes per second by which each partition grew between two readings of its leader's size."""
    return {tp: max(0, size - before[tp]) / seconds for tp, size in after.items() if tp in before}
