"""The statuses of the partitions of a run, and everything that they depend on beside the partitions."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition
from kafka_rebalance.reconcile.state.record import LoadedRun


@dataclass(frozen=True, slots=True)
class Statuses:
    """The status of each partition of a run, and how many there are in each phase. ``updated`` returns a new value."""

    by_partition: Mapping[TopicPartition, PartitionStatus] = field(default_factory=dict)
    counts: Mapping[MovePhase, int] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, by_partition: Mapping[TopicPartition, PartitionStatus]) -> Self:
        """All of them."""
        return cls(by_partition, Counter(status.phase for status in by_partition.values()))

    def updated(self, changed: Mapping[TopicPartition, PartitionStatus]) -> "Statuses":
        """With the new statuses of these partitions. The counts are brought up to date, not counted again."""
        if not changed:
            return self
        counts = Counter(self.counts)
        counts.subtract(old.phase for tp in changed if (old := self.by_partition.get(tp)) is not None)
        counts.update(status.phase for status in changed.values())
        return Statuses({**self.by_partition, **changed}, counts)

    def count(self, *phases: MovePhase) -> int:
        """How many partitions are in one of these phases."""
        return sum(self.counts.get(phase, 0) for phase in phases)

    def within(self, *phases: MovePhase) -> dict[TopicPartition, PartitionStatus]:
        """The partitions in one of these phases."""
        return {tp: status for tp, status in self.by_partition.items() if status.phase in phases}

    @property
    def finished(self) -> bool:
        """Whether every partition has arrived or is skipped."""
        return self.count(MovePhase.DONE, MovePhase.SKIPPED) == len(self.by_partition)

    @property
    def copying(self) -> bool:
        """Whether a copy is in flight that is not to be cancelled."""
        return self.count(MovePhase.IN_FLIGHT) > 0

    @property
    def moving(self) -> bool:
        """Whether a call is in flight or could be sent."""
        return self.count(MovePhase.IN_FLIGHT, MovePhase.READY) > 0


@dataclass(frozen=True, slots=True)
class CopiesToKeep:
    """The copies in flight that stay although the plan is superseded: ``every`` one until a new plan is known."""

    every: bool = False
    partitions: frozenset[TopicPartition] = frozenset()

    def __contains__(self, tp: TopicPartition) -> bool:
        """Whether a copy of this partition stays."""
        return self.every or tp in self.partitions


@dataclass(frozen=True, slots=True)
class JudgeInputs:
    """Everything that the status of a partition depends on, but for what was read of the partition itself.

    It is the argument of the judging function and the key under which its results are kept, so no input can be left
    out of the key. ``ahead``: names and runs of the rebalances whose turn it is; what they move is theirs.
    """

    run: LoadedRun
    direction: Direction
    paused: bool
    parallel_replicas: int
    brokers: Mapping[BrokerId, Broker]
    restarting: frozenset[BrokerId]
    min_insync: Mapping[str, int]
    forbidden: Mapping[str, str]
    unread: frozenset[str] = frozenset()
    keep: CopiesToKeep = CopiesToKeep()
    ahead: tuple[tuple[str, LoadedRun], ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """Where a run is going, and the statuses of its partitions. ``since``: when each copy was first seen in flight.

    ``inputs``: what the statuses were judged by; None: nothing was judged yet. ``reading`` is the number of the reading
    that they are up to date with (``observer.Changes``).
    """

    direction: Direction | None = None
    statuses: Statuses = Statuses()
    since: Mapping[TopicPartition, datetime] = field(default_factory=dict)
    inputs: JudgeInputs | None = None
    reading: int = 0
