"""In which order moves fit at every moment, not only at the end, where room is limited. Pure.

A partition needs room at all its new places before it frees any at the old ones. A plan whose end fits may be
impossible to carry out in a wrong order, or in any order. ``room_order`` looks for an order in which each partition
fits once those before it have moved. ``reservations`` makes a parallel execution as safe as that order: a move leaves
free what the moves before it in the order still need. So the first partition that has not begun can always begin once
reassignments in flight have completed, and there is no deadlock.

A place is whatever has limited room: a broker's disks, one log dir, one rate of a broker. It is tight if more comes to
it than is free there now. Only tight places need an order: in all others everything fits in any order. Finding an order
is NP-hard in general. Here, partitions that go to no tight place move first: they take no room that is needed, and may
free some. When none is left, a cycle is broken at the place with the most room, by the smallest partition that frees
room at a tight place. If that gets stuck with few partitions, all orders are tried, up to a fixed effort: what is left
then has no order, or one that is hard to find. The search for a place where a cycle can be broken has a fixed effort
too: what is left when that is spent is ``stuck``, although it may fit.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from kafka_rebalance.model.topology import TopicPartition

Place = TypeVar("Place", bound=Hashable)
"""Places of one kind; they can be sorted."""


@dataclass(frozen=True, slots=True)
class Shift(Generic[Place]):
    """The rest of a partition's move: what it takes at new places, and then frees at old ones."""

    tp: TopicPartition
    takes: Mapping[Place, int]
    frees: Mapping[Place, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoomOrder(Generic[Place]):
    """``first``: the shifts to tight places, in an order that fits; ``stuck``: those for which none was found.

    ``room``: what is free at the tight places when all but ``stuck`` have moved. ``all_moves``: ``first`` with those
    that only free room at tight places, each where it has to move.
    """

    first: tuple[Shift[Place], ...] = ()
    stuck: tuple[Shift[Place], ...] = ()
    room: Mapping[Place, int] = field(default_factory=dict)
    all_moves: tuple[Shift[Place], ...] = ()


_MOST_TRIED = 40
"""Partitions that touch tight places, up to which all orders are tried."""
_EFFORT = 1_000
"""Beginnings of orders that are tried: a fifth of a second."""
_FEWEST, _EACH, _MOST = 500_000, 100, 3_000_000
"""How many new places of partitions are compared with the room there to break cycles: this number for each partition,
within two bounds. Crowded clusters need up to about 100. Without a limit, a server that claims full disks could make
that many for each pair of partitions: hours. A million takes about a second."""


def room_order(shifts: Collection[Shift[Place]], room: Mapping[Place, int]) -> RoomOrder[Place]:
    """An order of the shifts to tight places."""
    search = _OrderSearch(shifts, room)
    tight = frozenset(search.tight)
    moves = tuple(search.moves())
    if search.left:
        touching = [s for s in shifts if not (tight.isdisjoint(s.takes) and tight.isdisjoint(s.frees))]
        tried = _AllOrders(touching, {at: room[at] for at in tight})
        if len(touching) <= _MOST_TRIED and tried.ends_within_room and (order := tried.found()) is not None:
            return RoomOrder(_to(tight, order), (), tried.room, order)
    return RoomOrder(_to(tight, moves), search.left, {place: search.room[place] for place in tight}, moves)


def _to(tight: Collection[Place], moves: Iterable[Shift[Place]]) -> tuple[Shift[Place], ...]:
    return tuple(shift for shift in moves if any(place in tight for place in shift.takes))


def reservations(shifts: Collection[Shift[Place]], room: Mapping[Place, int]) -> dict[TopicPartition, dict[Place, int]]:
    """What a move must leave free at tight places for the partitions before it.

    Partitions without an order are last.
    """
    order = room_order(shifts, room)
    claimed: dict[Place, int] = dict.fromkeys(order.room, 0)
    held = {}
    for shift in order.first:
        held[shift.tp] = {place: claimed[place] for place in shift.takes if place in claimed}
        for place in held[shift.tp]:
            claimed[place] += shift.takes[place]
    return held | {s.tp: {place: claimed[place] for place in s.takes if place in claimed} for s in order.stuck}


class _OrderSearch(Generic[Place]):
    """Moves the shifts on paper. ``room`` and ``tight`` are of the present moment; ``left`` have not moved."""

    def __init__(self, shifts: Collection[Shift[Place]], room: Mapping[Place, int]) -> None:
        self.room = dict(room)
        self._coming: Counter[Place] = Counter()
        for shift in shifts:
            self._coming.update(shift.takes)
        self.tight = {place for place, size in self._coming.items() if size > room.get(place, size)}
        self._waiting: dict[TopicPartition, Shift[Place]] = {}
        self._blocks: dict[TopicPartition, int] = {}
        """On how many tight places a waiting shift needs room."""
        self._into: defaultdict[Place, list[Shift[Place]]] = defaultdict(list)
        self._ready: deque[Shift[Place]] = deque()
        for shift in sorted(shifts, key=lambda shift: shift.tp):
            blocks = self.tight.intersection(shift.takes)
            if not blocks:
                self._ready.append(shift)
                continue
            self._waiting[shift.tp], self._blocks[shift.tp] = shift, len(blocks)
            for place in blocks:
                self._into[place].append(shift)
        self._smallest = {at: deque(sorted(into, key=lambda s: s.takes[at])) for at, into in self._into.items()}
        """The partitions that wait for room at a place and free room at a tight place, the smallest first."""
        self._roomiest = [(-room[place], place) for place in self.tight]
        """A heap of the tight places, with entries from before their room changed."""
        heapify(self._roomiest)
        self._effort = min(max(_FEWEST, _EACH * len(shifts)), _MOST)

    @property
    def left(self) -> tuple[Shift[Place], ...]:
        return tuple(self._waiting.values())

    def moves(self) -> Iterator[Shift[Place]]:
        """Each shift as it moves, until none is left that fits."""
        while (shift := self._ready.popleft() if self._ready else self._break_cycle()) is not None:
            for place, size in shift.takes.items():
                self._coming[place] -= size
                self._free(place, -size)
            yield shift
            for place, size in shift.frees.items():
                self._free(place, size)
                self._loosen(place)

    def _free(self, place: Place, size: int) -> None:
        if place in self.room:
            self.room[place] += size
            if place in self.tight:
                heappush(self._roomiest, (-self.room[place], place))

    def _loosen(self, place: Place) -> None:
        """If all that comes to the place fits now, it is not tight any more, and blocks nothing."""
        if place not in self.tight or self._coming[place] > self.room[place]:
            return
        self.tight.remove(place)
        for shift in self._into.pop(place):
            if shift.tp in self._waiting:
                self._blocks[shift.tp] -= 1
                if not self._blocks[shift.tp]:
                    self._ready.append(self._waiting.pop(shift.tp))

    def _break_cycle(self) -> Shift[Place] | None:
        """A shift to tight places that fits now, and frees room at one; None: there is none."""
        tried = []
        shift = None
        while self._roomiest and shift is None and self._effort > 0:
            room, place = heappop(self._roomiest)
            if place in self.tight and self.room[place] == -room:
                tried.append((room, place))
                shift = self._fitting(place)
        for entry in tried:
            heappush(self._roomiest, entry)
        return self._waiting.pop(shift.tp) if shift is not None else None

    def _fitting(self, place: Place) -> Shift[Place] | None:
        smallest, room = self._smallest[place], self.room
        # A partition that frees no needed room now never will later, because places only cease to be tight.
        while smallest and (smallest[0].tp not in self._waiting or self.tight.isdisjoint(smallest[0].frees)):
            smallest.popleft()
        self._effort -= 1
        for shift in smallest:
            self._effort -= len(shift.takes)
            if shift.takes[place] > room[place] or self._effort <= 0:
                return None
            needed = shift.tp in self._waiting and not self.tight.isdisjoint(shift.frees)
            if needed and all(size <= room[at] for at, size in shift.takes.items() if at in self.tight):
                return shift
        return None


class _AllOrders(Generic[Place]):
    """Tries orders of few shifts, one shift after the other, and never the same set of moved ones twice.

    ``room``: of the tight places; at the end of ``found``, when all have moved.
    """

    def __init__(self, shifts: Collection[Shift[Place]], room: Mapping[Place, int]) -> None:
        self.room = dict(room)
        self._waiting = {shift.tp: shift for shift in sorted(shifts, key=lambda shift: shift.tp)}
        self._coming: Counter[Place] = Counter()
        for shift in shifts:
            self._coming.update(shift.takes)
        self._order: list[Shift[Place]] = []
        self._seen: set[frozenset[TopicPartition]] = set()

    @property
    def ends_within_room(self) -> bool:
        """Whether all fits in the end. Ask before ``found``."""
        left = Counter(self.room)
        for shift in self._waiting.values():
            left.update(shift.frees)
            left.subtract(shift.takes)
        return all(left[place] >= 0 for place in self.room)

    def found(self) -> tuple[Shift[Place], ...] | None:
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

    def _takes_nothing_needed(self, shift: Shift[Place]) -> bool:
        return all(self._coming[at] <= self.room[at] for at in shift.takes if at in self.room)

    def _may_move(self, shift: Shift[Place]) -> bool:
        """Whether it fits, and frees room that is needed."""
        fits = all(size <= self.room[at] for at, size in shift.takes.items() if at in self.room)
        return fits and any(self._coming[at] > self.room[at] for at in shift.frees if at in self.room)

    def _net(self, shift: Shift[Place]) -> tuple[int, TopicPartition]:
        """Partitions that take little room and free much at tight places come first."""
        takes = sum(size for at, size in shift.takes.items() if at in self.room)
        return takes - sum(size for at, size in shift.frees.items() if at in self.room), shift.tp

    def _move(self, shift: Shift[Place]) -> None:
        self._order.append(self._waiting.pop(shift.tp))
        self._apply(shift, 1)

    def _move_back(self) -> None:
        shift = self._order.pop()
        self._waiting[shift.tp] = shift
        self._apply(shift, -1)

    def _apply(self, shift: Shift[Place], sign: int) -> None:
        for place, size in shift.takes.items():
            self._coming[place] -= sign * size
            if place in self.room:
                self.room[place] -= sign * size
        for place, size in shift.frees.items():
            if place in self.room:
                self.room[place] += sign * size
