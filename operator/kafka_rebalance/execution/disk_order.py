"""In which order copies fit on the disks at every moment, not only at the end. Pure.

Old and new copies coexist: a partition needs room on all its new brokers before it frees any on the old ones. A plan
whose end fits may be impossible to carry out in a wrong order, or in any order. ``disk_order`` looks for an order in
which each partition fits once those before it have moved. ``reservations`` makes a parallel execution as safe as that
order: a copy leaves free what the copies before it in the order still need. So the first partition that has not begun
can always begin once reassignments in flight have completed, and there is no deadlock.

A broker is tight if more comes to it than is free there now. Only tight brokers need an order: on all others everything
fits in any order. Finding an order is NP-hard in general. Here, partitions that go to no tight broker move first: they
take no room that is needed, and may free some. When none is left, a cycle is broken on the broker with the most room,
by the smallest partition that frees room on a tight broker. If that gets stuck with few partitions, all orders are
tried, up to a fixed effort: what is left then has no order, or one that is hard to find.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.model.topology import BrokerId, ClusterState, Replicas, TopicPartition

Room = Mapping[BrokerId, int]
"""Free bytes by broker; absent: not limited."""


@dataclass(frozen=True, slots=True)
class Shift:
    """The rest of a partition's move: the bytes that it takes on new brokers, and then frees on old ones."""

    tp: TopicPartition
    takes: Mapping[BrokerId, int]
    frees: Mapping[BrokerId, int] = field(default_factory=dict)


class PendingMove(NamedTuple):
    """A partition that can go on now: its replicas, the list that it goes to, and bytes of a new replica."""

    tp: TopicPartition
    replicas: Replicas
    goal: Replicas
    size: int


def moving(
    statuses: Mapping[TopicPartition, PartitionStatus],
    goals: Mapping[TopicPartition, Replicas],
    sizes: Mapping[TopicPartition, int],
    cluster: ClusterState,
) -> Iterator[PendingMove]:
    """The partitions that can go on now. One that waits takes no room, and frees none."""
    partitions = cluster.partitions
    for tp, status in statuses.items():
        if (status.phase is MovePhase.READY or status.phase is MovePhase.IN_FLIGHT) and tp in goals:
            state = partitions.get(tp)
            if state is not None and state.replicas != goals[tp]:
                yield PendingMove(tp, state.replicas, goals[tp], sizes.get(tp, 0))


def may_be_tight(coming: Iterable[Room | None], room: Room) -> bool:
    """Whether more may come to a broker than is free there. ``coming``: at most that much; None: not known."""
    most: Counter[BrokerId] = Counter()
    for share in coming:
        if share is None:
            return True
        most.update(share)
    return any(size > room[broker] for broker, size in most.items() if broker in room)


def shifts_at_tight(rows: Collection[PendingMove], replica_bytes: ReplicaBytes, room: Room) -> list[Shift]:
    """The partitions that take or free room on a tight broker; the order of the others makes no difference.

    In most rounds no broker is tight, so this function must then be fast, even with many partitions.
    """
    coming: defaultdict[BrokerId, int] = defaultdict(int)
    for _, replicas, goal, size in rows:
        for broker in goal:
            if broker not in replicas:
                coming[broker] += size
    tight = {broker for broker, size in coming.items() if size > room.get(broker, size)}
    if not tight:
        return []
    return [
        Shift(
            tp,
            {b: size for b in goal if b not in replicas},
            {b: replica_bytes.get((tp, b), size) for b in replicas if b not in goal},
        )
        for tp, replicas, goal, size in rows
        if any((b in goal) != (b in replicas) for b in tight.intersection((*goal, *replicas)))
    ]


@dataclass(frozen=True, slots=True)
class DiskOrder:
    """``first``: the shifts to tight brokers, in an order that fits; ``stuck``: those for which none was found.

    ``room``: what is free on the tight brokers when all but ``stuck`` have moved. ``all_moves``: ``first`` with those
    that only free room on tight brokers, each where it has to move.
    """

    first: tuple[Shift, ...] = ()
    stuck: tuple[Shift, ...] = ()
    room: Room = field(default_factory=dict)
    all_moves: tuple[Shift, ...] = ()


_MOST_TRIED = 40
"""Partitions that touch tight brokers, up to which all orders are tried."""
_EFFORT = 1_000
"""Beginnings of orders that are tried: a fifth of a second."""


def disk_order(shifts: Collection[Shift], room: Room) -> DiskOrder:
    """An order of the shifts to tight brokers."""
    search = _OrderSearch(shifts, room)
    tight = frozenset(search.tight)
    moves = tuple(search.moves())
    if search.left:
        touching = [s for s in shifts if not (tight.isdisjoint(s.takes) and tight.isdisjoint(s.frees))]
        tried = _AllOrders(touching, {b: room[b] for b in tight})
        if len(touching) <= _MOST_TRIED and tried.ends_within_room and (order := tried.found()) is not None:
            return DiskOrder(_to(tight, order), (), tried.room, order)
    return DiskOrder(_to(tight, moves), search.left, {broker: search.room[broker] for broker in tight}, moves)


def _to(tight: Collection[BrokerId], moves: Iterable[Shift]) -> tuple[Shift, ...]:
    return tuple(shift for shift in moves if any(broker in tight for broker in shift.takes))


def reservations(shifts: Collection[Shift], room: Room) -> dict[TopicPartition, dict[BrokerId, int]]:
    """The bytes that a copy must leave free on tight brokers for the partitions before it.

    Partitions without an order are last.
    """
    order = disk_order(shifts, room)
    claimed: dict[BrokerId, int] = dict.fromkeys(order.room, 0)
    held = {}
    for shift in order.first:
        held[shift.tp] = {broker: claimed[broker] for broker in shift.takes if broker in claimed}
        for broker in held[shift.tp]:
            claimed[broker] += shift.takes[broker]
    return held | {s.tp: {broker: claimed[broker] for broker in s.takes if broker in claimed} for s in order.stuck}


class _OrderSearch:
    """Moves the shifts on paper. ``room`` and ``tight`` are of the present moment; ``left`` have not moved."""

    def __init__(self, shifts: Collection[Shift], room: Room) -> None:
        self.room = dict(room)
        self._coming: Counter[BrokerId] = Counter()
        for shift in shifts:
            self._coming.update(shift.takes)
        self.tight = {broker for broker, size in self._coming.items() if size > room.get(broker, size)}
        self._waiting: dict[TopicPartition, Shift] = {}
        self._blocks: dict[TopicPartition, int] = {}
        """On how many tight brokers a waiting shift needs room."""
        self._into: defaultdict[BrokerId, list[Shift]] = defaultdict(list)
        self._ready: deque[Shift] = deque()
        for shift in sorted(shifts, key=lambda shift: shift.tp):
            blocks = self.tight.intersection(shift.takes)
            if not blocks:
                self._ready.append(shift)
                continue
            self._waiting[shift.tp], self._blocks[shift.tp] = shift, len(blocks)
            for broker in blocks:
                self._into[broker].append(shift)
        self._smallest = {b: deque(sorted(into, key=lambda s: s.takes[b])) for b, into in self._into.items()}
        """The partitions that wait for room on a broker and free room on a tight broker, the smallest first."""
        self._roomiest = [(-room[broker], broker) for broker in self.tight]
        """A heap of the tight brokers, with entries from before their room changed."""
        heapify(self._roomiest)

    @property
    def left(self) -> tuple[Shift, ...]:
        return tuple(self._waiting.values())

    def moves(self) -> Iterator[Shift]:
        """Each shift as it moves, until none is left that fits."""
        while (shift := self._ready.popleft() if self._ready else self._break_cycle()) is not None:
            for broker, size in shift.takes.items():
                self._coming[broker] -= size
                self._free(broker, -size)
            yield shift
            for broker, size in shift.frees.items():
                self._free(broker, size)
                self._loosen(broker)

    def _free(self, broker: BrokerId, size: int) -> None:
        if broker in self.room:
            self.room[broker] += size
            if broker in self.tight:
                heappush(self._roomiest, (-self.room[broker], broker))

    def _loosen(self, broker: BrokerId) -> None:
        """If all that comes to the broker fits now, it is not tight any more, and blocks nothing."""
        if broker not in self.tight or self._coming[broker] > self.room[broker]:
            return
        self.tight.remove(broker)
        for shift in self._into.pop(broker):
            if shift.tp in self._waiting:
                self._blocks[shift.tp] -= 1
                if not self._blocks[shift.tp]:
                    self._ready.append(self._waiting.pop(shift.tp))

    def _break_cycle(self) -> Shift | None:
        """A shift to tight brokers that fits now, and frees room on one; None: there is none."""
        tried = []
        shift = None
        while self._roomiest and shift is None:
            room, broker = heappop(self._roomiest)
            if broker in self.tight and self.room[broker] == -room:
                tried.append((room, broker))
                shift = self._fitting(broker)
        for entry in tried:
            heappush(self._roomiest, entry)
        return self._waiting.pop(shift.tp) if shift is not None else None

    def _fitting(self, broker: BrokerId) -> Shift | None:
        smallest, room = self._smallest[broker], self.room
        # A partition that frees no needed room now never will later, because brokers only cease to be tight.
        while smallest and (smallest[0].tp not in self._waiting or self.tight.isdisjoint(smallest[0].frees)):
            smallest.popleft()
        for shift in smallest:
            if shift.takes[broker] > room[broker]:
                return None
            needed = shift.tp in self._waiting and not self.tight.isdisjoint(shift.frees)
            if needed and all(size <= room[b] for b, size in shift.takes.items() if b in self.tight):
                return shift
        return None


class _AllOrders:
    """Tries orders of few shifts, one shift after the other, and never the same set of moved ones twice.

    ``room``: of the tight brokers; at the end of ``found``, when all have moved.
    """

    def __init__(self, shifts: Collection[Shift], room: Room) -> None:
        self.room = dict(room)
        self._waiting = {shift.tp: shift for shift in sorted(shifts, key=lambda shift: shift.tp)}
        self._coming: Counter[BrokerId] = Counter()
        for shift in shifts:
            self._coming.update(shift.takes)
        self._order: list[Shift] = []
        self._seen: set[frozenset[TopicPartition]] = set()

    @property
    def ends_within_room(self) -> bool:
        """Whether all fits in the end. Ask before ``found``."""
        left = Counter(self.room)
        for shift in self._waiting.values():
            left.update(shift.frees)
            left.subtract(shift.takes)
        return all(left[broker] >= 0 for broker in self.room)

    def found(self) -> tuple[Shift, ...] | None:
        """An order of all; None: there is none, or the effort is spent."""
        return tuple(self._order) if self._complete() else None

    def _complete(self) -> bool:
        begun = len(self._order)
        while (free := next(filter(self._takes_nothing_needed, self._waiting.values()), None)) is not None:
            self._move(free)
        if not self._waiting:
            return True
        state = frozenset(self._waiting)
        if state not in self._seen and len(self._seen) < _EFFORT:
            self._seen.add(state)
            for shift in sorted(filter(self._may_move, self._waiting.values()), key=self._net):
                self._move(shift)
                if self._complete():
                    return True
                self._move_back()
        while len(self._order) > begun:
            self._move_back()
        return False

    def _takes_nothing_needed(self, shift: Shift) -> bool:
        return all(self._coming[b] <= self.room[b] for b in shift.takes if b in self.room)

    def _may_move(self, shift: Shift) -> bool:
        """Whether it fits, and frees room that is needed."""
        fits = all(size <= self.room[b] for b, size in shift.takes.items() if b in self.room)
        return fits and any(self._coming[b] > self.room[b] for b in shift.frees if b in self.room)

    def _net(self, shift: Shift) -> tuple[int, TopicPartition]:
        """Partitions that take little room and free much on tight brokers come first."""
        takes = sum(size for b, size in shift.takes.items() if b in self.room)
        return takes - sum(size for b, size in shift.frees.items() if b in self.room), shift.tp

    def _move(self, shift: Shift) -> None:
        self._order.append(self._waiting.pop(shift.tp))
        self._apply(shift, 1)

    def _move_back(self) -> None:
        shift = self._order.pop()
        self._waiting[shift.tp] = shift
        self._apply(shift, -1)

    def _apply(self, shift: Shift, sign: int) -> None:
        for broker, size in shift.takes.items():
            self._coming[broker] -= sign * size
            if broker in self.room:
                self.room[broker] -= sign * size
        for broker, size in shift.frees.items():
            if broker in self.room:
                self.room[broker] += sign * size
