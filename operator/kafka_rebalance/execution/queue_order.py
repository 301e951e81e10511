"""The queue of rebalances of one cluster that want the same partitions. Pure.

Rebalances with disjoint partitions run together; of those that overlap one runs and the others are queued:

1. The running one keeps its place. It is displaced only by a teardown, or by a rebalance whose priority is higher both
   in the spec and with the time that either has waited: age alone displaces nothing, and a rebalance that got in
   because of its age does not lose the place to the one it has just passed. A displaced one drains to rest points, and
   gives up the plan that is being made for it. One whose own plans have failed does not displace it while it is
   planned: tried again and again, it would let no plan be made that takes longer than its pause.
2. Waiting rebalances are ordered: teardowns, then priority plus one per full hour waited, then the one that has just
   had the place, then the older, then the key. None is passed by a later one that it overlaps, even if that one could
   run at once: many small rebalances would starve a large one. The exception follows from rule 1: one that displaces
   a running rebalance goes before those that wait for the displaced one.
3. None starts while an overlapping one is not at rest, or Kafka may still execute a call of it that got no answer.
4. A rebalance that asks for nothing and is at rest (suspended, outside its window, awaiting approval, refused) blocks
   none, and is queued again when it asks.

``Place`` carries what the next round needs: who runs, and how long each has waited. Without it (the operator has
started) those with an open run keep their places, and all waiting times start again.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations, islice

from kafka_rebalance.model.topology import TopicPartition

_HOUR = timedelta(hours=1)
_PROBES = 32
"""Partitions of the smaller of two sets that are looked up in the other."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """One rebalance that has an open run or wants one.

    ``name`` is for messages. It wants ``partitions``, for which its run may still submit steps, and ``selected``, those
    that its spec selects, if it may be planned. They are two sets because many claimants share the second one.
    ``since``: when it asked for what it asks now (not the age of the resource). ``tearing_down``: it is rolled back or
    reverted. ``holds``: it is being planned, or its open run can continue without a new plan. ``at_rest``: nothing is
    in flight and no partition is above its replication factor. ``asks``: it would plan or submit steps if allowed.
    ``holds`` and ``asks`` do not depend on the queue's last answer. ``unanswered``: Kafka may still execute a call that
    failed without an answer. ``planning``: its plan is being made. ``failed``: it wants a plan, and the last
    attempts to make one for the same spec have failed.
    """

    key: str
    name: str
    partitions: AbstractSet[TopicPartition]
    priority: int
    since: datetime
    tearing_down: bool
    holds: bool
    at_rest: bool
    asks: bool
    unanswered: bool = False
    planning: bool = False
    failed: bool = False
    selected: AbstractSet[TopicPartition] = frozenset()

    @property
    def wants(self) -> list[AbstractSet[TopicPartition]]:
        """The sets of partitions that it wants, none of them empty."""
        return [some for some in (self.partitions, self.selected) if some]


@dataclass(frozen=True, slots=True)
class Place:
    """What a rebalance may do in this round: at most one of ``runs`` and ``yields``.

    ``runs``: it may plan and submit new steps; no two that overlap run. ``yields``: it drains to rest points.
    ``behind``: the first one that it waits for, by name; ``position``: 0 while it runs, 1 if it is the next of those
    that it overlaps. ``waited``: as of ``at``, without the time in which it ran. ``no_room``: it is not in line, as too
    many others of its namespace are.
    """

    runs: bool
    behind: str | None = None
    position: int = 0
    yields: bool = False
    waited: timedelta = timedelta(0)
    at: datetime | None = None
    no_room: bool = False


def line_up(claimants: Iterable[Claimant], before: Mapping[str, Place], now: datetime) -> dict[str, Place]:
    """The place of each claimant, by key.

    ``before``: the places of the last round by key; none for a claimant that is new or asks for something new.
    """
    found = list(claimants)
    overlapping = _overlapping(found)
    everybody = [_contender(c, overlapping[c.key], before.get(c.key), now) for c in found]
    holders = sorted((c for c in everybody if c.holds), key=_Contender.order_of_holders)
    waiters = sorted((c for c in everybody if not c.holds and not c.idle), key=_Contender.order_of_waiters)
    holding: list[_Contender] = []
    for holder in holders:
        if not any(holder.overlaps(other) for other in holding):
            holding.append(holder)
    entering, displaced = _let_in(waiters, holding)
    holding = [holder for holder in holding if holder not in displaced]
    first = [*holding, *entering]
    others = sorted((c for c in everybody if c not in first), key=_Contender.order_of_waiters)
    return _places([*first, *others], holding, now)


@dataclass(frozen=True, slots=True, eq=False)
class _Contender:
    """A claimant together with the others and the last round.

    ``overlapping``: the keys of those that want some of the same partitions. ``holds``: it has the place. ``ran``: it
    ran in the last round.
    """

    claimant: Claimant
    overlapping: frozenset[str]
    holds: bool
    ran: bool
    waited: timedelta

    @property
    def idle(self) -> bool:
        """Whether it blocks none (rule 4)."""
        return self.claimant.at_rest and not self.claimant.asks

    @property
    def effective_priority(self) -> int:
        """Waiting adds one per full hour, and running takes nothing away."""
        return self.claimant.priority + self.waited // _HOUR

    def order_of_holders(self) -> tuple[bool, bool, bool, int, datetime, str]:
        """First the one that keeps the place if two that overlap have it, as after a start or an edited spec.

        One with copies in flight before one of higher priority, which displaces it and waits for that.
        """
        mine = self.claimant
        return (not mine.tearing_down, not self.ran, mine.at_rest, -mine.priority, mine.since, mine.key)

    def order_of_waiters(self) -> tuple[bool, bool, int, bool, datetime, str]:
        """Rule 2; those that ask for nothing come last."""
        mine = self.claimant
        return (self.idle, not mine.tearing_down, -self.effective_priority, not self.holds, mine.since, mine.key)

    def overlaps(self, other: "_Contender") -> bool:
        """Whether both want some of the same partitions."""
        return other.claimant.key in self.overlapping

    def displaces(self, holder: "_Contender") -> bool:
        """Rule 1."""
        mine, theirs = self.claimant, holder.claimant
        if mine.tearing_down != theirs.tearing_down:
            return mine.tearing_down
        if mine.failed and theirs.planning:
            return False
        return mine.priority > theirs.priority and self.effective_priority > holder.effective_priority


def _overlapping(claimants: list[Claimant]) -> dict[str, frozenset[str]]:
    """By key, the keys of those that want some of the same partitions."""
    sets = {id(some): some for claimant in claimants for some in claimant.wants}
    wanted_by: dict[int, list[str]] = {each: [] for each in sets}
    for claimant in claimants:
        for some in claimant.wants:
            wanted_by[id(some)].append(claimant.key)
    common = _with_common(sets)

    def others(claimant: Claimant) -> frozenset[str]:
        met = {each for some in claimant.wants for each in common[id(some)]}
        return frozenset([key for each in met for key in wanted_by[each] if key != claimant.key])

    return {claimant.key: others(claimant) for claimant in claimants}


def _with_common(sets: Mapping[int, AbstractSet[TopicPartition]]) -> dict[int, set[int]]:
    """By id of a set, the ids of those that have a partition of it, its own included.

    If two want most of the cluster, a few partitions show the overlap. The sets for which that says nothing are looked
    through once each, however many they are: a partition is looked up among those of all the sets before.
    """
    found = {each: {each} for each in sets}
    undecided: set[int] = set()

    def meet(one: int, other: int) -> None:
        found[one].add(other)
        found[other].add(one)

    for one, other in combinations(sorted(sets, key=lambda each: len(sets[each])), 2):
        if not sets[other].isdisjoint(islice(sets[one], _PROBES)):
            meet(one, other)
        elif len(sets[one]) > _PROBES:
            undecided |= {one, other}
    wanted: dict[TopicPartition, int] = {}  # bits of the sets that have it
    bits = {each: 1 << number for number, each in enumerate(undecided)}
    for each, bit in bits.items():
        met = 0
        for tp in sets[each]:
            before = wanted.get(tp, 0)
            met |= before
            wanted[tp] = before | bit
        for other, other_bit in bits.items():
            if met & other_bit:
                meet(each, other)
    return found


def _contender(claimant: Claimant, overlapping: frozenset[str], before: Place | None, now: datetime) -> _Contender:
    if before is None or before.at is None:
        holds = not claimant.at_rest or (claimant.asks and claimant.holds)
        fresh = claimant.asks and not holds
        waited = max(now - claimant.since, timedelta(0)) if fresh else timedelta(0)
        return _Contender(claimant, overlapping, holds, ran=False, waited=waited)
    # One that has drained keeps the place in the round that hands it over, so that the decision stays the same.
    has_place = (before.runs and claimant.holds) or before.yields
    aged = max(now - before.at, timedelta(0)) if claimant.asks and not before.runs else timedelta(0)
    return _Contender(
        claimant,
        overlapping,
        holds=not claimant.at_rest or (claimant.asks and has_place),
        ran=before.runs,
        waited=before.waited + aged,
    )


def _let_in(waiters: list[_Contender], holding: list[_Contender]) -> tuple[list[_Contender], list[_Contender]]:
    """Which of the waiters, in their order, may run, and which holders they displace."""
    entering: list[_Contender] = []
    displaced: list[_Contender] = []
    waits_for: dict[_Contender, set[_Contender]] = {}
    for waiter in waiters:
        faced = {holder for holder in holding if holder not in displaced and waiter.overlaps(holder)}
        beaten = {holder for holder in faced if waiter.displaces(holder)}
        earlier = [other for other in waits_for if waiter.overlaps(other)]
        if faced == beaten and all(waits_for[other] & beaten for other in earlier):
            entering.append(waiter)
            displaced += beaten
            waits_for[waiter] = set()
        else:
            waits_for[waiter] = (faced - beaten).union(*(waits_for[other] for other in earlier))
    return entering, displaced


def _places(line: list[_Contender], holding: list[_Contender], now: datetime) -> dict[str, Place]:
    """In queue order: one that overlaps none ahead of it runs, once those it overlaps are at rest."""
    places: dict[str, Place] = {}
    for index, contender in enumerate(line):
        mine = contender.claimant
        ahead = [other.claimant for other in line[:index] if contender.overlaps(other)]
        position = 1 + max((places[other.key].position for other in ahead), default=0)
        if not ahead and contender not in holding:
            later = (other for other in line[index + 1 :] if contender.overlaps(other))
            ahead = [o.claimant for o in later if not o.claimant.at_rest or o.claimant.unanswered]
        runs = not ahead
        places[mine.key] = Place(
            runs=runs,
            behind=None if runs else ahead[0].name,
            position=0 if runs else position,
            yields=not runs and not mine.at_rest,
            waited=contender.waited,
            at=now,
        )
    return places
