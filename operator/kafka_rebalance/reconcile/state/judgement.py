"""The statuses of the partitions of a run, and everything that they depend on beside the partitions."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Self

from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.ready_calls import ReadyCalls
from kafka_rebalance.execution.tally import Tally
from kafka_rebalance.model.amended import amended
from kafka_rebalance.model.run import Origin
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition
from kafka_rebalance.reconcile.state.record import LoadedRun


@dataclass(frozen=True)
class Statuses:
    """The status of each partition of a run, and how many there are in each phase. ``updated`` returns a new value.

    ``judged``: as if nothing was ``paused``, so that a pause changes no value. ``few``: those of them that are neither
    done nor merely ready for a first step: what moves, waits, was begun or is left alone. ``counts``: of phases, and of
    what a pause holds back.
    """

    judged: Mapping[TopicPartition, PartitionStatus] = field(default_factory=dict)
    paused: bool = False
    few: Mapping[TopicPartition, PartitionStatus] = field(default_factory=dict, compare=False)
    counts: Mapping[tuple[MovePhase, bool], int] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, judged: Mapping[TopicPartition, PartitionStatus], *, paused: bool = False) -> Self:
        """All of them."""
        few = {tp: status for tp, status in judged.items() if _is_of_few(status)}
        return cls(judged, paused, few, Counter(map(_counted, judged.values())))

    def updated(self, changed: Mapping[TopicPartition, PartitionStatus]) -> "Statuses":
        """With the new statuses of these partitions. What they add up to is brought up to date, not counted again."""
        if not changed:
            return self
        counts = Counter(self.counts)
        before = [old for tp in changed if (old := self.judged.get(tp)) is not None]
        counts.subtract(map(_counted, before))
        counts.update(map(_counted, changed.values()))
        few = {tp: status for tp, status in self.few.items() if tp not in changed}
        few |= {tp: status for tp, status in changed.items() if _is_of_few(status)}
        return Statuses(amended(self.judged, changed), self.paused, few, counts)

    def under(self, *, paused: bool) -> "Statuses":
        """The same with or without a pause."""
        return self if paused is self.paused else replace(self, paused=paused)

    @property
    def by_partition(self) -> Mapping[TopicPartition, PartitionStatus]:
        """All of them, as they are now."""
        return _UnderPause(self.judged) if self.paused else self.judged

    @cached_property
    def notable(self) -> Mapping[TopicPartition, PartitionStatus]:
        """What moves, was begun, is left alone, or waits for more than the end of a pause."""
        return {tp: status.under_pause() for tp, status in self.few.items()} if self.paused else self.few

    @cached_property
    def begun(self) -> frozenset[TopicPartition]:
        """The partitions that move or are between two steps."""
        between = {MovePhase.READY, MovePhase.WAITING}
        return frozenset(
            tp
            for tp, status in self.few.items()
            if status.phase is MovePhase.IN_FLIGHT or (status.started and status.phase in between)
        )

    def count(self, *phases: MovePhase) -> int:
        """How many partitions are in one of these phases."""
        return sum(count for key, count in self.counts.items() if self._phase(*key) in phases)

    @property
    def phases(self) -> Mapping[MovePhase, int]:
        """How many partitions are in each phase."""
        return {phase: self.count(phase) for phase in MovePhase}

    def within(self, *phases: MovePhase) -> dict[TopicPartition, PartitionStatus]:
        """The partitions in one of these phases."""
        most = MovePhase.DONE in phases or MovePhase.READY in phases or (self.paused and MovePhase.WAITING in phases)
        found = self.by_partition if most else self.notable
        return {tp: status for tp, status in found.items() if status.phase in phases}

    @property
    def finished(self) -> bool:
        """Whether every partition has arrived or is skipped."""
        return self.count(MovePhase.DONE, MovePhase.SKIPPED) == len(self.judged)

    @property
    def copying(self) -> bool:
        """Whether a copy is in flight that is not to be cancelled."""
        return self.count(MovePhase.IN_FLIGHT) > 0

    @property
    def moving(self) -> bool:
        """Whether a call is in flight or could be sent."""
        return self.count(MovePhase.IN_FLIGHT, MovePhase.READY) > 0

    def _phase(self, phase: MovePhase, waits: bool) -> MovePhase:
        return MovePhase.WAITING if self.paused and waits else phase


def _counted(status: PartitionStatus) -> tuple[MovePhase, bool]:
    """Its phase, and whether it waits during a pause."""
    return status.phase, status.pausable and status.to_rest is None


def _is_of_few(status: PartitionStatus) -> bool:
    if status.phase is MovePhase.READY:
        return status.started or status.cancel
    return status.phase is not MovePhase.DONE


class _UnderPause(Mapping[TopicPartition, PartitionStatus]):
    """These statuses during a pause."""

    def __init__(self, judged: Mapping[TopicPartition, PartitionStatus]) -> None:
        self._judged = judged

    def __getitem__(self, tp: TopicPartition) -> PartitionStatus:
        return self._judged[tp].under_pause()

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._judged)

    def __len__(self) -> int:
        return len(self._judged)


@dataclass(frozen=True, slots=True)
class CopiesToKeep:
    """The copies in flight that stay although the plan is superseded: ``every`` one until a new plan is known."""

    every: bool = False
    partitions: frozenset[TopicPartition] = frozenset()

    def __bool__(self) -> bool:
        return self.every or bool(self.partitions)

    def __contains__(self, tp: TopicPartition) -> bool:
        """Whether a copy of this partition stays."""
        return self.every or tp in self.partitions


@dataclass(frozen=True, slots=True)
class JudgeInputs:
    """Everything that the status of a partition depends on, but for what was read of the partition itself.

    It is the argument of the judging function and the key under which its results are kept, so no input can be left
    out of the key. ``ahead``: names and runs of the rebalances whose turn it is, with the partitions that they
    leave alone; the others of their plans are theirs.
    ``left_to_others``: the statuses of skipped partitions that other rebalances move now; these do not change.
    ``left_in_motion``: what others have begun to move, see ``decide.given_up_places``. ``place_given_up``: the run has
    sent nothing since others may move its partitions; what is in flight is theirs, and a pause holds the rest back. Not
    in the topics that are ``unsettled``.
    ``origins`` are not compared: a partition whose origin was recorded is read again after its call. ``rests``: there
    are none, because what moves is moved by others, and a pause holds everything back.
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
    ahead: tuple[tuple[str, LoadedRun, Collection[TopicPartition]], ...] = ()
    left_to_others: Mapping[TopicPartition, PartitionStatus] = field(default_factory=dict)
    left_in_motion: AbstractSet[TopicPartition] = frozenset()
    place_given_up: bool = False
    unsettled: frozenset[str] = frozenset()
    origins: Mapping[TopicPartition, Origin] = field(default_factory=dict, compare=False)
    rests: bool = False

    def lets_others_move(self, tp: TopicPartition) -> bool:
        """Whether nothing of the run is in flight there, because it has given up its place."""
        return self.place_given_up and tp.topic not in self.unsettled

    def concerned(self, before: Self) -> Collection[TopicPartition] | None:
        """The partitions whose status may be another one than by the inputs ``before``; None: any.

        A pause alone changes no judgement, except where others go first. A broker concerns the partitions that the run
        may have put there: what is elsewhere was put there by others, whichever brokers are live.
        """
        mine, theirs = self._of_all, before._of_all
        if mine != theirs or (self.ahead and self.paused is not before.paused):
            return None
        brokers = (self.brokers.keys() ^ before.brokers.keys()) | (self.restarting ^ before.restarting)
        topics = {topic for topic, _ in self.min_insync.items() ^ before.min_insync.items()}
        topics |= {topic for topic, _ in self.forbidden.items() ^ before.forbidden.items()}
        topics |= self.unread ^ before.unread
        found = self.run.concerned(brokers, topics) if brokers or topics else ()
        left = {tp for tp, _ in self.left_to_others.items() ^ before.left_to_others.items()}
        left |= self.left_in_motion ^ before.left_in_motion
        return left.union(found) if left else found

    @property
    def _of_all(self) -> tuple[object, ...]:
        """What may concern every partition."""
        theirs = self.keep, self.ahead, self.rests, self.place_given_up, self.unsettled
        return self.run, self.direction, self.parallel_replicas, *theirs


@dataclass(frozen=True, slots=True)
class Judgement:
    """Where a run is going, and the statuses of its partitions. ``since``: when each copy was first seen in flight.

    ``inputs``: what the statuses were judged by; None: nothing was judged yet. ``reading`` is the number of the reading
    that they are up to date with (``observer.Changes``). ``tally``: what the partitions add up to;
    ``ready``: the calls that are ready without a pause. None: to be found from the statuses.
    """

    direction: Direction | None = None
    statuses: Statuses = Statuses()
    since: Mapping[TopicPartition, datetime] = field(default_factory=dict)
    inputs: JudgeInputs | None = None
    reading: int = 0
    tally: Tally | None = None
    ready: ReadyCalls | None = None
