"""Replicas between the log dirs of a broker (KIP-113): the status of each, and which to ask for now.

Pure, and like ``partition_status`` it looks only at what was observed, so a restart changes no answer. The broker is
the only one that knows of such a move: DescribeLogDirs shows the copy as future replica, in its new log dir. Asking for
the log dir that the replica is in cancels the copy. A replica that a reassignment brings is placed beforehand; if that
was forgotten (the broker restarted), it is moved like any other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from kafka_rebalance.execution.log_dir_progress import LogDirProgress
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.room_order import Shift, reservations, room_order
from kafka_rebalance.model.plan import LogDirMove
from kafka_rebalance.model.run import Origin
from kafka_rebalance.model.topology import BrokerId, ReplicaKey, TopicPartition
from kafka_rebalance.reasons import Reason

DirKey = tuple[BrokerId, str]


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """The log dirs of a replica and of its future replica, and the bytes of each. None: there is none."""

    at: str | None = None
    future: str | None = None
    size_bytes: int = 0
    copied_bytes: int = 0


_NOWHERE = ReplicaPlace()


@dataclass(frozen=True, slots=True)
class LogDirReading:
    """What the ``brokers`` that answered say of their log dirs.

    ``places``: of the replicas that were ``asked`` for; absent: not in any log dir that is online. ``flying``: the
    future replicas of each broker, those of other tools included. ``room``: bytes usable in each log dir, without what
    is still to be copied there; absent: not known.
    """

    brokers: frozenset[BrokerId] = frozenset()
    places: Mapping[ReplicaKey, ReplicaPlace] = field(default_factory=dict)
    flying: Mapping[BrokerId, int] = field(default_factory=dict)
    room: Mapping[DirKey, int] = field(default_factory=dict)
    asked: frozenset[ReplicaKey] = frozenset()

    def log_dirs_of(self, key: ReplicaKey) -> tuple[str | None, str | None]:
        """The log dirs of the replica and of its future replica; None: there is none."""
        place = self.places.get(key, _NOWHERE)
        return place.at, place.future


@dataclass(frozen=True, slots=True)
class LogDirStatus:
    """The status of one replica. ``ask``: the log dir to ask for now; with ``cancel`` the one that it is in.

    ``away_bytes``: what a rollback copies, because the replica is in another log dir than before the run.
    """

    phase: MovePhase
    reason: str = ""
    message: str = ""
    ask: str | None = None
    cancel: bool = False
    copied_bytes: int = 0
    away_bytes: int = 0


_UNSETTLED = {MovePhase.IN_FLIGHT, MovePhase.READY, MovePhase.WAITING}


@dataclass(frozen=True)
class LogDirStatuses:
    """The statuses of the replicas of a run, judged for this direction; None: not judged yet.

    What a round asks several times is computed once: there may be more than 100,000 replicas.
    """

    direction: Direction | None = None
    by_replica: Mapping[ReplicaKey, LogDirStatus] = field(default_factory=dict)

    def within(self, *phases: MovePhase) -> dict[ReplicaKey, LogDirStatus]:
        """The replicas in one of these phases."""
        return {key: status for key, status in self.by_replica.items() if status.phase in phases}

    @cached_property
    def unsettled(self) -> frozenset[BrokerId]:
        """The brokers with a replica that moves or is to move."""
        return frozenset([key[1] for key, status in self.by_replica.items() if status.phase in _UNSETTLED])

    @cached_property
    def to_throttle(self) -> frozenset[BrokerId]:
        """Those on which the run copies or may copy as soon as nothing holds it back; others' copies do not count."""
        rows, theirs = self.by_replica.items(), Reason.FOREIGN_REASSIGNMENT
        return frozenset([key[1] for key, status in rows if status.phase in _UNSETTLED and status.reason != theirs])

    @cached_property
    def copying(self) -> bool:
        """Whether a copy is in flight, one to be cancelled included."""
        return any(s.phase is MovePhase.IN_FLIGHT or s.cancel for s in self.by_replica.values())

    @cached_property
    def moving(self) -> bool:
        """Whether a copy is in flight or may be ordered."""
        return any(s.phase is MovePhase.IN_FLIGHT or s.phase is MovePhase.READY for s in self.by_replica.values())

    @cached_property
    def away_bytes(self) -> int:
        """What a rollback copies between log dirs."""
        return sum(status.away_bytes for status in self.by_replica.values())

    def finished(self, direction: Direction | None, moves: Sequence[LogDirMove]) -> bool:
        """Whether all replicas of these moves have arrived or are skipped on this way."""
        if not moves:
            return True
        return self.direction is direction and not self.unsettled and len(self.by_replica) == len(moves)


def goal_of(move: LogDirMove, direction: Direction) -> str | None:
    """The log dir that the replica goes to; None: the broker does not keep it, or Kafka chooses."""
    return move.after if direction is Direction.FORWARD else move.origin


def judge_replica(
    move: LogDirMove,
    seen: LogDirReading,
    partition: PartitionStatus | None,
    direction: Direction,
    origin: Origin | None,
    *,
    paused: bool = False,
    gone: bool = False,
) -> LogDirStatus:
    """The status of the replica. ``partition``: that of its partition, whose own move comes first.

    ``origin``: of its partition, as the run has recorded it; None: the run has sent nothing for the partition.
    ``gone``: its broker is not live, and not just restarting. A deletion must not wait for it.
    """
    if gone and direction is not Direction.FORWARD and goal_of(move, direction) is not None:
        message = f"broker {move.broker} is gone; the replica stays in the log dir that it is in"
        return LogDirStatus(MovePhase.SKIPPED, Reason.ORIGINAL_BROKER_GONE, message)
    place = seen.places.get(move.key, _NOWHERE)
    if place.at is not None and place.future is not None and not _is_ours(move, place.future, direction, origin):
        text = f"another tool moves it to {place.future} of broker {move.broker}"
        return _wait(Reason.FOREIGN_REASSIGNMENT, text)
    status = _judge_as_placed(move, seen, partition, direction, paused=paused)
    away = None not in {place.at, move.origin} and place.at != move.origin and place.at in {move.before, move.after}
    return replace(status, away_bytes=place.size_bytes) if away else status


def _is_ours(move: LogDirMove, future: str, direction: Direction, origin: Origin | None) -> bool:
    """Whether the run has asked for the copy in flight: before that, it has recorded the log dir of the replica."""
    if origin is None:
        return False
    if origin.log_dirs is None:
        return future in {move.before, move.after, move.origin}
    if (left := dict(origin.log_dirs).get(move.broker)) is not None:
        return future in {move.after, left}
    # It came back with a reassignment of the run, to another log dir than the one that the broker was told.
    return None in {move.before, move.after} and direction is not Direction.FORWARD and future == move.origin


def _judge_as_placed(
    move: LogDirMove, seen: LogDirReading, partition: PartitionStatus | None, direction: Direction, *, paused: bool
) -> LogDirStatus:
    if move.broker not in seen.brokers:
        if direction is Direction.ROLLBACK and goal_of(move, direction) is None:
            return _DONE  # the rollback of its partition removes the replica
        return _wait(Reason.LOG_DIRS_UNKNOWN, f"broker {move.broker} does not describe its log dirs; retrying")
    place, goal = seen.places.get(move.key, _NOWHERE), goal_of(move, direction)
    known = {move.before, move.after, move.origin}
    if place.future is not None and place.at is not None:
        if direction is Direction.REVERT or place.at == goal or goal is None:
            return LogDirStatus(MovePhase.READY, Reason.CANCELLING, ask=place.at, cancel=True)
        if place.future == goal:
            return LogDirStatus(MovePhase.IN_FLIGHT, copied_bytes=place.copied_bytes)
    if direction is Direction.REVERT or goal is None:
        return _DONE
    if partition is None or partition.phase is MovePhase.SKIPPED:
        reason = partition.reason if partition is not None else Reason.DRIFTED
        return LogDirStatus(MovePhase.SKIPPED, reason, partition.message if partition is not None else "")
    if place.at == goal:
        return _DONE
    if partition.phase is not MovePhase.DONE:
        return LogDirStatus(MovePhase.WAITING)
    if place.at is None:
        return LogDirStatus(
            MovePhase.SKIPPED, Reason.LOG_DIR_OFFLINE, f"the replica is in no online log dir of broker {move.broker}"
        )
    comes = move.before is None if direction is Direction.FORWARD else move.after is None
    if place.at not in known and not comes:
        return LogDirStatus(MovePhase.SKIPPED, Reason.DRIFTED, f"another tool moved the replica to {place.at}")
    if paused:
        return _wait(Reason.PAUSED, "no new step is started now")
    return LogDirStatus(MovePhase.READY, ask=goal)


_DONE = LogDirStatus(MovePhase.DONE)


def _wait(reason: str, message: str) -> LogDirStatus:
    return LogDirStatus(MovePhase.WAITING, reason, message)


@dataclass(frozen=True, slots=True)
class LogDirShare:
    """One rebalance: its statuses, and how many copies it tolerates on a broker, those of others included."""

    statuses: LogDirStatuses
    per_broker: int


@dataclass(frozen=True, slots=True)
class LogDirOrders:
    """The log dirs to ask for. ``no_room``: replicas that only their new log dir holds back, which is full."""

    asks: Mapping[ReplicaKey, str] = field(default_factory=dict)
    no_room: frozenset[ReplicaKey] = frozenset()


def log_dir_orders(shares: Sequence[LogDirShare], seen: LogDirReading) -> list[LogDirOrders]:
    """What to ask for now, share by share in order of precedence. Cancellations are always among it.

    A copy starts if its new log dir has room beside the copies in flight, and for those that have to come first
    (``room_order.reservations``): the old log dir is free only when it has arrived.
    """
    flying, room = Counter(seen.flying), dict(seen.room)
    held = _held(shares, seen)
    chosen = []
    for share in shares:
        asks: dict[ReplicaKey, str] = {}
        full = set()
        for key, status in sorted(share.statuses.within(MovePhase.READY).items()):
            if status.ask is None:
                continue
            broker, target = key[1], (key[1], status.ask)
            size = seen.places.get(key, _NOWHERE).size_bytes
            if status.cancel:
                asks[key] = status.ask
            elif flying[broker] >= share.per_broker:
                continue
            elif target in room and size + held.get(key, 0) > room[target]:
                full.add(key)
            else:
                asks[key] = status.ask
                flying[broker] += 1
                if target in room:
                    room[target] -= size
        chosen.append(LogDirOrders(asks, frozenset(full)))
    return chosen


def _held(shares: Iterable[LogDirShare], seen: LogDirReading) -> dict[ReplicaKey, int]:
    """What each copy that is ready leaves usable in its new log dir for those that have to come before it."""
    # Grouped once: the servers of an inline connection may show 1,500 brokers and more than 100,000 replicas.
    rows, room = defaultdict[BrokerId, list[DirShift]](list), defaultdict[BrokerId, dict[str, int]](dict)
    for share in shares:
        for key, status in share.statuses.by_replica.items():
            if status.phase is MovePhase.READY and status.ask is not None and not status.cancel:
                rows[key[1]].append(_row(key, status, seen))
    for (broker, path), free in seen.room.items():
        room[broker][path] = free
    return {(tp, broker): size for broker, of in rows.items() for tp, size in kept_free(of, room[broker]).items()}


@dataclass(frozen=True, slots=True)
class DirShift:
    """A replica of one broker that goes from a log dir (None: it comes to the broker) to another one."""

    tp: TopicPartition
    before: str | None
    after: str
    size_bytes: int


def _row(key: ReplicaKey, status: LogDirStatus, seen: LogDirReading) -> DirShift:
    place = seen.places.get(key, _NOWHERE)
    return DirShift(key[0], place.at, status.ask or "", place.size_bytes)


def kept_free(rows: Sequence[DirShift], room: Mapping[str, int]) -> dict[TopicPartition, int]:
    """What each copy leaves usable in its new log dir for those that have to come before it; of one broker."""
    found = reservations(_shifts(rows), room)
    return {row.tp: found.get(row.tp, {}).get(row.after, 0) for row in rows}


def without_room(rows: Sequence[DirShift], room: Mapping[str, int]) -> list[str]:
    """The log dirs of one broker in which these copies do not fit in any order; absent room is not known."""
    tps = {shift.tp for shift in room_order(_shifts(rows), room).stuck}
    return sorted({row.after for row in rows if row.tp in tps})


def _shifts(rows: Iterable[DirShift]) -> list[Shift[str]]:
    return [
        Shift(row.tp, {row.after: row.size_bytes}, {row.before: row.size_bytes} if row.before is not None else {})
        for row in rows
    ]


def measure_log_dirs(moves: Iterable[LogDirMove], statuses: LogDirStatuses, direction: Direction) -> LogDirProgress:
    """The progress in this direction; in a rollback only of what the run has copied."""
    total = completed = in_flight = in_all = moved = 0
    left: Counter[BrokerId] = Counter()
    judged = statuses.by_replica if statuses.direction is direction else {}
    for move in moves:
        start, goal = (move.before, move.after) if direction is Direction.FORWARD else (move.after, move.origin)
        status = judged.get(move.key)
        skipped = status is not None and status.phase is MovePhase.SKIPPED
        if None in {start, goal} or start == goal or direction is Direction.REVERT or skipped:
            continue
        total, in_all = total + 1, in_all + move.size_bytes
        copied = 0
        if status is not None and status.phase is MovePhase.DONE:
            completed, copied = completed + 1, move.size_bytes
        elif status is not None and status.phase is MovePhase.IN_FLIGHT:
            in_flight, copied = in_flight + 1, min(status.copied_bytes, move.size_bytes)
        moved += copied
        left[move.broker] += move.size_bytes - copied
    return LogDirProgress(total, completed, in_flight, in_all, moved, +left)
