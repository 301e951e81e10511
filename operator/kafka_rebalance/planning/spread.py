"""The order within the lists of large clusters: leaders first, then each later place, exactly where that is cheap.

Leaders: rounds of many exchanges at a time bring the counts to their targets, then chains of single exchanges improve
and prove them (``cycles``): evenest first, fewest changes among those. Later places: partitions of one leader swap two
of their followers as long as that makes the pairs (leader, place) evener. What is fair already is left as it is.
"""

from __future__ import annotations

from itertools import count

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import max_flow

from kafka_rebalance.planning.copies import Copies, rank_within, scramble
from kafka_rebalance.planning.cycles import MOST_BROKERS, NEVER, Exchanges
from kafka_rebalance.planning.instance import Bools, Indices, Instance, Ints
from kafka_rebalance.planning.request import Goals

_ROUNDS = 40
_STALLED = 2
"""So many rounds in a row that hand over less than one leadership in fifty, and the rest is left to chains."""

_EFFORT = 10_000_000
"""Looks for fewer changes of leaders, in pairs of brokers: 1,000 looks for 100 brokers, 10 for 1,000."""

_PATIENCE = 20
"""How many times that effort is spent while leaders could still be more even."""

_TABLE = 2**25
"""Up to so many possible pairs are counted in a table: 5,800 brokers."""


def spread(copies: Copies, goals: Goals) -> Indices:
    """The lists of all partitions, one behind the other [N]: the same copies, ordered by the goals."""
    leaders = _Leaders(copies, goals)
    leaders.balance()
    if not goals.follower_order:
        return _in_present_order(copies, leaders.lists)
    for place in range(1, int(copies.instance.rf.max(initial=0)) - 1):
        _even_place(copies.instance, leaders.lists, place)
    return leaders.lists


class _Leaders(Exchanges):
    """Leaderships going from broker to broker. A leader stays at no cost, any other costs a change."""

    def __init__(self, copies: Copies, goals: Goals) -> None:
        instance = self._instance = copies.instance
        self.lists: Indices = copies.holder.copy()
        self._start = instance.start
        self._first = instance.holder[self._start]
        self._fresh = np.zeros(len(self.lists), dtype=np.bool_)  # moves with the lists
        self._fresh[copies.moved()] = True
        self._brokers = np.flatnonzero(instance.eligible)
        self._number = np.full(instance.brokers, -1, dtype=np.int32)
        self._number[self._brokers] = np.arange(len(self._brokers))
        follower = instance.position > 0
        gone = self._fresh[self._start]  # kept copies are in their slots, so a new one means that the leader has gone
        if not goals.leaders:
            follower &= gone[instance.owner]
        self._followers = np.flatnonzero(follower)
        self._free = np.zeros(len(self._start), dtype=np.bool_)
        self._free[instance.owner[self._followers]] = True  # another broker may lead
        self._gone = gone
        self._came: dict[int, list[int]] = {}

    def _lead(self, slots: Ints) -> None:
        """The brokers at these slots change places with their partitions' leaders."""
        first = self._start[self._instance.owner[slots]]
        for values in (self.lists, self._fresh):
            values[slots], values[first] = values[first], values[slots]

    def _led(self) -> Ints:
        return np.bincount(self.lists[self._start], minlength=self._instance.brokers).astype(np.int64)

    def balance(self) -> None:
        """Even leaders, then the fewest changes."""
        if not len(self._followers):
            return
        target = self._targets()
        self._appoint(target)
        for cheap in (True, False):
            stalled = 0
            for turn in range(_ROUNDS):
                led = self._led()
                surplus, wanted = np.maximum(led - target, 0), np.maximum(target - led, 0)
                total = int(surplus.sum())
                if not total or stalled == _STALLED:
                    break
                done = self._round(surplus, wanted, turn, cheap=cheap)
                stalled = stalled + 1 if done * 50 < total else 0
        for turn in range(_ROUNDS):
            if not self._downhill(turn):
                break
        if len(self._brokers) <= MOST_BROKERS and not self._settled():
            self._price_all()
            effort = max(1, _EFFORT // len(self._brokers) ** 2)
            for _ in range(_PATIENCE):  # evenness is worth more effort than fewer changes
                if self.improve(effort) or self._even():
                    break

    def _appoint(self, target: Ints) -> None:
        """A new leader where the former one's copy has gone: a retained copy, and as many as fit on brokers in want."""
        owner, slots = self._instance.owner, np.flatnonzero(self._gone[self._instance.owner])
        retained = np.bincount(owner[slots], ~self._fresh[slots], minlength=len(self._start)) > 0
        slots = slots[~self._fresh[slots] | ~retained[owner[slots]]]
        slots = slots[np.lexsort((scramble(slots, 0), owner[slots]))]
        if not len(slots):
            return
        partition, which = np.unique(owner[slots], return_inverse=True)
        stays = np.bincount(self.lists[self._start[~self._gone]], minlength=self._instance.brokers)
        wanted = np.maximum(target - stays, 0)
        solver = max_flow.SimpleMaxFlow()
        source, sink = 0, 1
        first_partition, first_broker = 2, 2 + len(partition)
        ones = np.ones(len(slots), dtype=np.int64)
        nodes = first_partition + np.arange(len(partition))
        solver.add_arcs_with_capacity(np.full(len(partition), source), nodes, ones[: len(partition)])
        heads = first_broker + self.lists[slots].astype(np.int64)
        arcs = solver.add_arcs_with_capacity(first_partition + which.astype(np.int64), heads, ones)
        brokers = np.flatnonzero(wanted)
        solver.add_arcs_with_capacity(first_broker + brokers, np.full(len(brokers), sink), wanted[brokers])
        if solver.solve(source, sink) != solver.OPTIMAL:
            raise AssertionError("the maximum flow of leaders was not found")
        order = np.argsort(np.asarray(solver.flows(arcs)) == 0, kind="stable")
        slots = slots[order]
        self._lead(slots[np.unique(owner[slots], return_index=True)[1]])

    def _settled(self) -> bool:
        """Whether leaders are as even as numbers allow, and only those changed that had to."""
        changed = self.lists[self._start] != self._first
        return self._even() and int(changed.sum()) == int((changed & ~self._present()).sum())

    def _even(self) -> bool:
        led = self._led()[self._brokers]
        return bool(led.max() - led.min() <= 1)

    def _present(self) -> Bools:
        """Of which partitions the former leader still holds a copy [P]."""
        here = self.lists == self._first[self._instance.owner]
        found = np.zeros(len(self._start), dtype=np.bool_)
        found[self._instance.owner[here]] = True
        return found

    def _targets(self) -> Ints:
        """Even counts between what each broker has to lead and what it can; the spare go where most lead now."""
        partitions, free = len(self._start), self._free
        least = np.bincount(self.lists[self._start[~free]], minlength=self._instance.brokers)[self._brokers]
        copies = np.bincount(self.lists[self._followers], minlength=self._instance.brokers)[self._brokers]
        most = (
            least + copies + np.bincount(self.lists[self._start[free]], minlength=self._instance.brokers)[self._brokers]
        )
        low, high = 0, partitions
        while low < high:  # the highest level that does not need more leaders than there are
            level = (low + high + 1) // 2
            low, high = (level, high) if np.clip(level, least, most).sum() <= partitions else (low, level - 1)
        even = np.clip(low, least, most)
        raised = np.clip(low + 1, least, most) > even
        order = np.flatnonzero(raised)
        led = self._led()[self._brokers]
        order = order[np.argsort(-led[order], kind="stable")][: partitions - int(even.sum())]
        even[order] += 1
        target = np.zeros(self._instance.brokers, dtype=np.int64)
        target[self._brokers] = even
        return target

    def _round(self, surplus: Ints, wanted: Ints, turn: int, *, cheap: bool) -> int:
        """Hand leaderships from brokers with too many to those with too few; ``cheap``: none that costs a change."""
        slots = self._followers[(wanted > 0)[self.lists[self._followers]]]
        owner = self._instance.owner[slots]
        leader = self.lists[self._start[owner]]
        use = (surplus > 0)[leader]
        if cheap:
            use &= leader != self._first[owner]
        slots, owner, leader = slots[use], owner[use], leader[use]
        target = self.lists[slots]
        changed = leader != self._first[owner]
        rank = np.where(target == self._first[owner], 0, np.where(changed, 1, 2)) * 2 + self._fresh[slots]
        order = np.lexsort((scramble(slots, turn), rank))
        order = order[np.sort(np.unique(owner[order], return_index=True)[1])]
        order = order[rank_within(leader[order]) < surplus[leader[order]]]
        order = order[rank_within(target[order]) < wanted[target[order]]]
        self._lead(slots[order])
        return len(order)

    def _downhill(self, turn: int) -> int:
        """Hand leaderships to brokers that lead at least two fewer, wherever the targets are."""
        led = self._led()
        slots = self._followers
        gain = (led[self.lists[self._start]])[self._instance.owner[slots]] - led[self.lists[slots]]
        slots, gain = slots[gain >= 2], gain[gain >= 2]
        owner = self._instance.owner[slots]
        order = np.lexsort((scramble(slots, turn), -gain))
        order = order[np.sort(np.unique(owner[order], return_index=True)[1])]
        leader, target, gain = self.lists[self._start[owner[order]]], self.lists[slots[order]], gain[order]
        few = rank_within(leader) < np.maximum(1, gain // 4)
        few[few] = rank_within(target[few]) < np.maximum(1, gain[few] // 4)
        self._lead(slots[order[few]])
        return int(few.sum())

    def _price_all(self) -> None:
        brokers = len(self._brokers)
        self.cost = np.full((brokers, brokers), NEVER, dtype=np.int32)
        self._price(self._followers)
        leader = self.lists[self._start].astype(np.int64)
        leader[~self._free] = -1
        self._by_leader = np.argsort(leader, kind="stable")
        self._begin = np.searchsorted(leader[self._by_leader], np.arange(self._instance.brokers + 1))

    def _price(self, slots: Ints) -> None:
        owner = self._instance.owner[slots]
        leader, target, first = self.lists[self._start[owner]], self.lists[slots], self._first[owner]
        price = (target != first).astype(np.int32) - (leader != first)
        a, d = self._number[leader], self._number[target]
        for value in (1, 0, -1):
            at = price == value
            table = self.cost[a[at], d[at]]
            self.cost[a[at], d[at]] = np.minimum(table, value)

    def counts(self) -> Ints:
        """Leaders per broker that may hold copies."""
        return self._led()[self._brokers]

    def reprice(self, slots: Ints) -> None:
        """Price the partitions of these slots anew."""
        rows = [self._start[p] + np.arange(1, self._instance.rf[p]) for p in np.unique(self._instance.owner[slots])]
        self._price(np.concatenate(rows))

    def cheapest(self, a: int, d: int, turn: int) -> tuple[int, int]:
        """The follower slot on d of a partition led by a, retained ones first."""
        here, there = int(self._brokers[a]), int(self._brokers[d])
        led = self._by_leader[self._begin[here] : self._begin[here + 1]]
        led = np.unique(np.concatenate([led, np.array(self._came.get(here, []), dtype=np.int64)]))
        led = led[self.lists[self._start[led]] == here]
        row, place = np.nonzero(self._instance.rows(self.lists, led) == there)
        slots = self._start[led[row]] + place
        if not len(slots):
            return -1, NEVER
        first = self._first[self._instance.owner[slots]]
        price = (first != there).astype(np.int64) - (first != here)
        best = np.lexsort((scramble(slots, turn), self._fresh[slots], price))[0]
        return int(slots[best]), int(price[best])

    def exchange(self, slot: int, d: int) -> None:  # noqa: ARG002 - an exchange of two is its own way back
        """The slot's broker and the leader of its partition change places."""
        self._lead(np.array([slot]))
        partition = int(self._instance.owner[slot])
        self._came.setdefault(int(self.lists[self._start[partition]]), []).append(partition)


def _in_present_order(copies: Copies, lists: Indices) -> Indices:
    """Behind the leaders followers stay in their present order, then new ones by id."""
    instance = copies.instance
    lists = lists.copy()
    changed = np.unique(instance.owner[np.flatnonzero(lists != instance.holder)])
    for piece in instance.chunks(changed):
        p = changed[piece]
        now, homes = instance.rows(lists, p), instance.rows(instance.holder, p)
        place = np.where(now >= 0, now.astype(np.int64) + homes.shape[1] + 1, np.iinfo(np.int64).max)
        for column in range(homes.shape[1]):
            place = np.where((now == homes[:, column : column + 1]) & (now >= 0), column, place)
        place[:, 0] = -1
        ordered = np.take_along_axis(now, np.argsort(place, axis=1, kind="stable"), axis=1)
        inside = np.arange(now.shape[1]) < instance.rf[p][:, None]
        lists[(instance.start[p][:, None] + np.arange(now.shape[1]))[inside]] = ordered[inside]
    return lists


def _even_place(instance: Instance, lists: Indices, place: int) -> None:
    """Swap what is at ``place`` with what is behind it while pairs (leader, it) get evener. Changes ``lists``."""
    chosen = np.flatnonzero(instance.rf > place + 1)
    counted = np.flatnonzero(instance.rf > place)
    number = np.cumsum(instance.eligible) - 1
    brokers = int(instance.eligible.sum())
    leader = number[lists[instance.start]] * brokers
    here = instance.start + place
    for turn in count():  # ends: every round lowers the sum of squares
        pairs = _PairCounts(leader[counted] + number[lists[here[counted]]], brokers * brokers)
        now = pairs.of(leader[chosen] + number[lists[here[chosen]]])
        best, with_slot = now.copy(), here[chosen].copy()
        for behind in range(place + 1, int(instance.rf.max())):
            slot = np.where(instance.rf[chosen] > behind, instance.start[chosen] + behind, here[chosen])
            found = pairs.of(leader[chosen] + number[lists[slot]])
            better = found < best
            best[better], with_slot[better] = found[better], slot[better]
        gain = now - best
        swap = np.flatnonzero(gain >= 2)
        if not len(swap):
            return
        p, other = chosen[swap], with_slot[swap]
        order = np.argsort(scramble(p, turn), kind="stable")
        p, other, allowed = p[order], other[order], np.maximum(1, gain[swap][order] // 4)
        few = rank_within(leader[p] + number[lists[here[p]]]) < allowed
        few &= rank_within(leader[p] + number[lists[other]]) < allowed
        p, other = p[few], other[few]
        lists[here[p]], lists[other] = lists[other], lists[here[p]]


class _PairCounts:
    """How often each pair occurs: a table where that is small, else only the pairs that occur."""

    def __init__(self, pairs: Ints, possible: int) -> None:
        self._known: Ints | None = None
        if possible <= _TABLE:
            self._counts = np.bincount(pairs, minlength=possible).astype(np.int32)
        else:
            self._known, counts = np.unique(pairs, return_counts=True)
            self._counts = counts.astype(np.int32)

    def of(self, pairs: Ints) -> NDArray[np.int32]:
        if self._known is None:
            return self._counts[pairs]
        at = np.minimum(np.searchsorted(self._known, pairs), len(self._known) - 1)
        return np.where(self._known[at] == pairs, self._counts[at], np.int32(0))
