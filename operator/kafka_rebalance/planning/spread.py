"""The order within the lists of large clusters: leaders first, then each later place.

Partitions of one leader swap two of their followers as long as that makes the pairs (leader, place) evener. What is
fair already is left as it is.
"""

from __future__ import annotations

from itertools import count

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.planning.chains import PairChains
from kafka_rebalance.planning.copies import Copies, rank_within, scramble
from kafka_rebalance.planning.instance import Indices, Instance, Ints
from kafka_rebalance.planning.leaders import Leaders
from kafka_rebalance.planning.request import Goals

_TABLE = 2**25
"""Up to so many possible pairs are counted in a table: 5,800 brokers."""


def spread(copies: Copies, goals: Goals) -> Indices:
    """The lists of all partitions, one behind the other [N]: the same copies, ordered by the goals."""
    leaders = Leaders(copies, goals)
    leaders.balance()
    if not goals.follower_order:
        return _in_present_order(copies, leaders.lists)
    for place in range(1, int(copies.instance.rf.max(initial=0)) - 1):
        _even_place(copies.instance, leaders.lists, place)
        _chain_place(copies.instance, leaders.lists, place)
    return leaders.lists


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


def _chain_place(instance: Instance, lists: Indices, place: int) -> None:
    """The evenest pairs for these leaders, once no single swap helps any more. Changes ``lists``."""
    chosen = np.flatnonzero(instance.rf > place + 1)
    counted = np.flatnonzero(instance.rf > place)
    number = np.cumsum(instance.eligible) - 1
    brokers = int(instance.eligible.sum())
    behind = np.arange(place + 1, int(instance.rf[chosen].max(initial=0)))
    slots = instance.start[chosen] + place
    others = np.where(behind < instance.rf[chosen][:, None], instance.start[chosen][:, None] + behind, slots[:, None])
    leader = number[lists[instance.start]]
    here = leader[counted] * brokers + number[lists[instance.start[counted] + place]]
    other = leader[chosen][:, None] * brokers + number[lists[others]]
    if brokers * brokers <= _TABLE:
        possible, counts = brokers * brokers, np.bincount(here, minlength=brokers * brokers)
    else:
        known = np.unique(np.concatenate([here, other.ravel()]))
        here, other, possible = np.searchsorted(known, here), np.searchsorted(known, other), len(known)
        counts = np.bincount(here, minlength=possible)
    here = here[instance.rf[counted] > place + 1].astype(np.int32)
    PairChains(leader[chosen], here, other.astype(np.int32), counts).run(lists, slots, others)


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
