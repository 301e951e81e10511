"""What the partitions of a run add up to: kept between rounds, and updated for the partitions that have changed.

Pure: ``updated`` returns a new value. The steps are those of ``step_count.steps_completed``. Partitions with a copy
that is not in sync are listed as ``open``: the bytes on its disk change without a change of the partition, so they are
in no sum, and looked up each time.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Self

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.progress import Progress, ReplicaBytes
from kafka_rebalance.execution.step_count import steps_of
from kafka_rebalance.model.amended import amended
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

BytesAt = Mapping[BrokerId, int]
_AHEAD = {MovePhase.READY, MovePhase.WAITING}


_NO_LEADER = BrokerId(-1)


class _Share(NamedTuple):
    """What one partition adds, in copies: sizes are those of its move.

    ``copying``: the brokers whose copy is in the list, and not in sync; without them the partition is not open.
    ``lacking``: those that still wait for their copy. ``leader`` sends both; None if nothing more is copied.
    ``coming``: all brokers of the list that it goes to and that do not hold it.
    """

    copies: int
    in_sync: int
    left_alone: bool
    ended: bool
    above: bool
    steps: int
    copying: Replicas
    lacking: Replicas
    coming: Replicas
    leader: BrokerId | None


@dataclass(frozen=True, slots=True)
class Tally:
    """Of the partitions of one run, on its way in one direction with this R."""

    direction: Direction = Direction.FORWARD
    parallel_replicas: int = 1
    judged: Mapping[TopicPartition, PartitionStatus] = field(default_factory=dict)
    """The statuses that it is about."""
    open: Mapping[TopicPartition, PartitionMove] = field(default_factory=dict)
    _shares: Mapping[TopicPartition, _Share | BrokerId] = field(default_factory=dict)
    """Of a partition that still has its list from before the run, as most have: only its leader, see ``_untouched``."""
    _sums: Mapping[str, int] = field(default_factory=dict)
    _into: BytesAt = field(default_factory=dict)
    _out_of: BytesAt = field(default_factory=dict)
    coming: BytesAt = field(default_factory=dict)
    """Upper bound of the bytes still to be copied to brokers that do not hold the partition yet."""

    @classmethod
    def of(
        cls,
        moves: Collection[PartitionMove],
        judged: Mapping[TopicPartition, PartitionStatus],
        partitions: Mapping[TopicPartition, PartitionState],
        direction: Direction,
        parallel_replicas: int,
    ) -> Self:
        """Of all moves of the run, each of which has been judged."""
        empty = cls(direction, parallel_replicas)
        return empty.updated(moves, judged, partitions)

    def updated(
        self,
        moves: Iterable[PartitionMove],
        judged: Mapping[TopicPartition, PartitionStatus],
        partitions: Mapping[TopicPartition, PartitionState],
    ) -> Self:
        """After these partitions have changed, or their statuses, which are among ``judged``."""
        sums, into = Counter(self._sums), Counter(self._into)
        out_of, coming = Counter(self._out_of), Counter(self.coming)
        opened, shares, untouched = dict(self.open), dict[TopicPartition, _Share | BrokerId](), _Untouched()
        for move in moves:
            before, status, state = self._shares.get(move.tp), judged.get(move.tp), partitions.get(move.tp)
            leader = _untouched(move, status, state, self.direction)
            now = _share_of(move, status, state, self.direction, self.parallel_replicas) if leader is None else leader
            if now == before:
                continue
            shares[move.tp] = now
            if before is None and leader is not None:
                untouched.add(move, leader, self.direction)
                continue
            if before is not None:
                _add(_in_full(before, move, self.direction), move, -1, sums, into, out_of, coming)
            share = _in_full(now, move, self.direction)
            _add(share, move, 1, sums, into, out_of, coming)
            if share.copying:
                opened[move.tp] = move
            else:
                opened.pop(move.tp, None)
        sums.update({"replicas": untouched.replicas, "bytes": untouched.bytes})
        for of_brokers, found in ((into, untouched.into), (coming, untouched.into), (out_of, untouched.out_of)):
            of_brokers.update(found)
        kept = amended(self._shares, shares, share=40)
        return type(self)(self.direction, self.parallel_replicas, judged, opened, kept, sums, into, out_of, coming)

    def progress(self, phases: Mapping[MovePhase, int], replica_bytes: ReplicaBytes) -> tuple[Progress, int]:
        """The progress of the run, and the steps completed. ``phases``: how many partitions are in each.

        ``replica_bytes``: sizes on disk, read from time to time. For a skipped partition, only the bytes copied so far
        count, also in the total, because the rest is never copied.
        """
        sums, arrived, of_left_alone = self._sums, 0, 0
        for move, share in self._open():
            on_disk = sum(_on_disk(move, broker, replica_bytes) for broker in share.copying)
            arrived += on_disk
            of_left_alone += on_disk if share.left_alone else 0
        found = Progress(
            partitions_total=len(self._shares),
            partitions_completed=phases.get(MovePhase.DONE, 0),
            partitions_in_flight=phases.get(MovePhase.IN_FLIGHT, 0),
            partitions_waiting=phases.get(MovePhase.WAITING, 0) + phases.get(MovePhase.READY, 0),
            partitions_skipped=phases.get(MovePhase.SKIPPED, 0),
            replicas_total=sums.get("replicas", 0),
            replicas_completed=sums.get("in sync", 0),
            bytes_total=sums.get("bytes", 0) + of_left_alone,
            bytes_moved=sums.get("moved", 0) + arrived,
            above_replication_factor=sums.get("above", 0),
        )
        return found, sums.get("steps", 0)

    @property
    def waiting(self) -> tuple[BytesAt, BytesAt]:
        """Bytes into and out of each broker of which no copy is in flight."""
        return self._into, self._out_of

    def bytes_left(self, replica_bytes: ReplicaBytes) -> tuple[BytesAt, BytesAt]:
        """Bytes still to be copied into each destination and out of each leader, for ``seconds_at_throttle``.

        Without skipped partitions. A partition without a leader counts only at its destinations.
        """
        into, out_of = Counter(self._into), Counter(self._out_of)
        for move, share in self._open():
            if share.ended:
                continue
            size, sent = max(move.size_bytes, 0), 0
            for broker in share.copying:
                left = size - _on_disk(move, broker, replica_bytes)
                into[broker] += left
                sent += left
            for broker in share.lacking:
                into[broker] += size
                sent += size
            if share.leader is not None:
                out_of[share.leader] += sent
        return +into, +out_of

    def _open(self) -> Iterator[tuple[PartitionMove, _Share]]:
        """The open partitions, each with what it adds."""
        for tp, move in self.open.items():
            yield move, _in_full(self._shares[tp], move, self.direction)


def _untouched(
    move: PartitionMove, status: PartitionStatus | None, state: PartitionState | None, direction: Direction
) -> BrokerId | None:
    """The leader of a partition that has not moved yet, which determines its share; None: the share is stored."""
    if state is None or status is None or state.adding or state.removing or status.phase not in _AHEAD:
        return None
    start = move.origin if direction is Direction.FORWARD else move.target
    if state.replicas != start or status.reason == Reason.FOREIGN_REASSIGNMENT:
        return None
    return state.leader if state.leader is not None else _NO_LEADER


def _in_full(kept: _Share | BrokerId, move: PartitionMove, direction: Direction) -> _Share:
    """The stored share, or the one of an untouched partition, computed from its leader."""
    if isinstance(kept, _Share):
        return kept
    forward = direction is Direction.FORWARD
    start, goal = (move.origin, move.target) if forward else (move.target, move.origin)
    new = tuple([b for b in goal if b not in start])
    leader = kept if new and kept != _NO_LEADER else None
    return _Share(len(new), 0, False, False, False, 0, (), new, new, leader)


class _Untouched:
    """What untouched partitions add, see ``_in_full``: of a new run nearly all are, so no share is made for each."""

    def __init__(self) -> None:
        self.replicas = self.bytes = 0
        self.into: defaultdict[BrokerId, int] = defaultdict(int)
        self.out_of: defaultdict[BrokerId, int] = defaultdict(int)

    def add(self, move: PartitionMove, leader: BrokerId, direction: Direction) -> None:
        """One more."""
        forward = direction is Direction.FORWARD
        start, goal = (move.origin, move.target) if forward else (move.target, move.origin)
        size, into, new = max(move.size_bytes, 0), self.into, 0
        for broker in goal:
            if broker not in start:
                new += 1
                into[broker] += size
        if new:
            self.replicas += new
            self.bytes += new * size
            if leader != _NO_LEADER:
                self.out_of[leader] += new * size


def _share_of(
    move: PartitionMove,
    status: PartitionStatus | None,
    state: PartitionState | None,
    direction: Direction,
    parallel_replicas: int,
) -> _Share:
    forward = direction is Direction.FORWARD
    start, goal = (move.origin, move.target) if forward else (move.target, move.origin)
    new = [b for b in goal if b not in start]
    phase = status.phase if status is not None else None
    left_alone = phase is MovePhase.SKIPPED
    steps = steps_of(move, status, state, forward=forward, parallel_replicas=parallel_replicas)
    if state is None:
        held: Replicas = ()
        in_sync, above, leader = 0, False, None
    else:
        held, leader = state.replicas, state.leader
        in_sync = sum(b in held and b in state.isr for b in new)
        foreign = status is not None and (status.by_others or status.reason == Reason.FOREIGN_REASSIGNMENT)
        others = left_alone or foreign
        above = not others and not state.in_flight and len(held) > max(len(start), len(goal))
    copying = tuple(b for b in new if state is not None and b in held and b not in state.isr)
    ended = left_alone or phase is MovePhase.DONE
    lacking = () if ended else tuple(b for b in new if b not in held)
    coming = () if ended else tuple(b for b in goal if b not in held)
    sender = leader if not ended and (copying or lacking) else None
    return _interned(_Share(len(new), in_sync, left_alone, ended, above, steps, copying, lacking, coming, sender))


def _on_disk(move: PartitionMove, broker: BrokerId, replica_bytes: ReplicaBytes) -> int:
    """The bytes of a copy that is not in sync yet."""
    return min(max(move.size_bytes, 0), replica_bytes.get((move.tp, broker), 0))


@lru_cache(maxsize=65536)
def _interned(share: _Share) -> _Share:
    """Most partitions share theirs with others."""
    return share


def _add(
    share: _Share,
    move: PartitionMove,
    sign: int,
    sums: Counter[str],
    into: Counter[BrokerId],
    out: Counter[BrokerId],
    coming: Counter[BrokerId],
) -> None:
    size = max(move.size_bytes, 0)
    sums["steps"] += sign * share.steps
    for broker in share.coming:
        coming[broker] += sign * size
    sums["above"] += sign * share.above
    sums["replicas"] += sign * share.copies
    sums["in sync"] += sign * share.in_sync
    sums["moved"] += sign * share.in_sync * size
    sums["bytes"] += sign * (share.in_sync if share.left_alone else share.copies) * size
    for broker in () if share.copying else share.lacking:
        into[broker] += sign * size
        if share.leader is not None:
            out[share.leader] += sign * size
