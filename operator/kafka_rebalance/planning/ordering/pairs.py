"""The pairs (leader, broker at a later position) of large clusters, and swaps that make them more even.

Pairs that are even already are not changed.
"""

from itertools import count

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.planning.problem.copies import in_order, rank_within, scramble
from kafka_rebalance.planning.problem.instance import Indices, Instance, Ints

Nodes = NDArray[np.int32]

_TABLE = 2**25
"""Up to this number of possible pairs (5,800 brokers) each has a node; above, only those that can occur."""


class Pairs:
    """Every pair is a node; partition i of ``leader`` [C] is at node ``here`` [C] and could be at ``other`` [C, A].

    It would then swap what the lists have at ``slots`` [C] and ``others`` [C, A]; where a list is too short for that,
    both are the same. ``counts`` [K] is how many partitions are at each node, ``_fixed`` the nodes of those among them
    that cannot be anywhere else. Partitions of one leader are neighbours, so that their nodes lie close together: a
    million of them are looked up many times.
    """

    def __init__(self, instance: Instance, lists: Indices, place: int) -> None:
        number = (np.cumsum(instance.eligible) - 1).astype(np.int32)
        brokers = int(instance.eligible.sum())
        chosen = np.flatnonzero(instance.rf > place + 1)
        self._chosen = chosen[in_order(number[lists[instance.start[chosen]]])]
        start, rf = instance.start[self._chosen], instance.rf[self._chosen]
        behind = np.arange(place + 1, int(rf.max(initial=0)))
        self.slots = start + place
        self.others = np.where(behind < rf[:, None], start[:, None] + behind, self.slots[:, None])
        self._short = bool((rf <= behind.max(initial=0)).any())
        self.leader = number[lists[start]]
        last = instance.start[instance.rf == place + 1]
        pairs = [
            _paired(self.leader, number[lists[self.slots]], brokers),
            _paired(self.leader[:, None], number[lists[self.others]], brokers),
            _paired(number[lists[last]], number[lists[last + place]], brokers),
        ]
        possible = brokers * brokers
        if possible > _TABLE:
            known = np.unique(np.concatenate([found.ravel() for found in pairs]))
            pairs, possible = [np.searchsorted(known, found) for found in pairs], len(known)
        self.here, self.other, self._fixed = (found.astype(np.int32, copy=False) for found in pairs)
        self.counts = self._counted(possible)

    def _counted(self, possible: int) -> Nodes:
        counts = np.bincount(self.here, minlength=possible)
        return (counts + np.bincount(self._fixed, minlength=possible)).astype(np.int32)

    def even(self, lists: Indices) -> None:
        """Swap while a single swap makes pairs more even. Changes ``lists``."""
        for turn in count():  # ends: every round lowers the sum of squares
            rows = np.flatnonzero(self.counts[self.here] >= 2)  # below that no other can have two fewer
            now = self.counts[self.here[rows]]
            best, which = now, np.zeros(len(now), dtype=np.intp)
            for column in range(self.other.shape[1]):
                found = self.counts[self.other[rows, column]]
                better = found < best
                best, which = np.where(better, found, best), np.where(better, column, which)
            gains = np.flatnonzero(now - best >= 2)
            if not len(gains):
                return
            gains = gains[in_order(scramble(self._chosen[rows[gains]], turn))]
            rows, which, allowed = rows[gains], which[gains], np.maximum(1, (now - best)[gains] // 4)
            few = rank_within(self.here[rows]) < allowed
            few &= rank_within(self.other[rows, which]) < allowed
            self.swap(rows[few], which[few], lists)
            self.counts = self._counted(len(self.counts))

    def swap(self, rows: Ints, which: Ints, lists: Indices) -> None:
        """These partitions change to these of their other nodes; what ``counts`` is then is the caller's to say."""
        there = self.other[rows, which]
        self.other[rows, which], self.here[rows] = self.here[rows], there
        if self._short:
            itself = self.others[rows] == self.slots[rows][:, None]
            self.other[rows] = np.where(itself, there[:, None], self.other[rows])
        a, b = self.slots[rows], self.others[rows, which]
        lists[a], lists[b] = lists[b], lists[a]


def _paired(leader: Nodes, follower: Nodes, brokers: int) -> NDArray[np.integer]:
    if brokers * brokers <= _TABLE:
        return leader * np.int32(brokers) + follower
    return leader.astype(np.int64) * brokers + follower
