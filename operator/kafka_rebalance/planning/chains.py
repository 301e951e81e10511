"""The evenest pairs (leader, broker at a place) for given leaders, along chains of swaps.

Partitions with one leader are independent of all others. Where no single swap of two followers makes pairs evener, a
chain may: one pair loses a partition to a second, that one another to a third, and the last of them had at least two
fewer than the first. A leader's pairs are the evenest there are when no chain is left. Leaders go side by side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.planning.instance import Indices, Ints

Nodes = NDArray[np.int32]

NONE = -1


class PairChains:
    """A node is a pair; partition i of leader ``leader`` [C] is at node ``here`` [C] and could be at ``other`` [C, A].

    ``counts`` [K] is how many partitions are at each node, those included that cannot be anywhere else.
    """

    def __init__(self, leader: Ints, here: Nodes, other: Nodes, counts: Ints) -> None:
        self._leader, self._here, self._other, self._counts = leader, here, other, counts
        self._of = np.zeros(len(counts), dtype=np.int32)  # the leader of each node
        self._of[here] = leader
        self._of[other] = leader[:, None]
        self._real = np.zeros(len(counts), dtype=np.bool_)  # nodes that partitions can come to or leave
        self._real[here] = self._real[other] = True

    def run(self, lists: Indices, slots: Ints, others: Ints) -> None:
        """Carry out every chain: swaps what ``lists`` has at ``slots`` [C] and ``others`` [C, A]."""
        leaders = int(self._leader.max(initial=-1)) + 1
        real = np.flatnonzero(self._real)
        fewest = np.full(leaders, np.iinfo(np.int64).max // 2)
        np.minimum.at(fewest, self._of[real], self._counts[real])
        level = np.zeros(leaders, dtype=np.int64)
        np.maximum.at(level, self._of[real], self._counts[real])
        while (active := level >= fewest + 2).any():
            real = real[active[self._of[real]]]
            ends, via = self._search(np.flatnonzero(active[self._leader]), real, level)
            self._carry_out(ends, via, lists, slots, others)
            active[self._of[ends]] = False
            # Where no chain began at this count any more, those of the next lower one are asked.
            below = real[self._counts[real] < level[self._of[real]]]
            below = below[active[self._of[below]]]
            level[active] = 0
            np.maximum.at(level, self._of[below], self._counts[below])

    def _search(self, partitions: Ints, real: Ints, level: Ints) -> tuple[Ints, Nodes]:
        """Nodes at the level from which a chain leads to one with two fewer, and the swap to make at each node.

        A swap is partition * A + which of its others. No two of the chains share a node.
        """
        width = self._other.shape[1]
        swap = (partitions[:, None] * width + np.arange(width)).ravel().astype(np.int32)
        begin, to = np.repeat(self._here[partitions], width), self._other[partitions].ravel()
        via = np.full(len(self._counts), NONE, dtype=np.int32)
        low = real[self._counts[real] <= level[self._of[real]] - 2]
        root = np.zeros(len(self._counts), dtype=np.int32)
        root[low] = low
        reached = np.zeros(len(self._counts), dtype=np.bool_)
        reached[low] = True
        ends, roots = [low[:0]], [root[:0]]
        while True:
            arrives, open_ = reached[to], ~reached[begin]
            use = np.flatnonzero(arrives & open_)
            if not len(use):
                break
            via[begin[use]] = swap[use]
            use = use[via[begin[use]] == swap[use]]  # one for each node
            new = begin[use]
            root[new], reached[new] = root[to[use]], True
            end = new[self._counts[new] >= level[self._of[new]]]
            ends.append(end)
            roots.append(root[end])
            left = np.flatnonzero(open_ & ~arrives)
            swap, begin, to = swap[left], begin[left], to[left]
        first = np.unique(np.concatenate(roots), return_index=True)[1]  # the shortest chain to each
        return np.concatenate(ends)[first].astype(np.int64), via

    def _carry_out(self, ends: Ints, via: Nodes, lists: Indices, slots: Ints, others: Ints) -> None:
        width = self._other.shape[1]
        np.subtract.at(self._counts, ends, 1)
        node = ends
        while len(node):
            row, column = np.divmod(via[node], width)
            to = self._other[row, column].astype(np.int64)
            self._other[row, column], self._here[row] = node, to
            here, there = slots[row], others[row, column]
            lists[here], lists[there] = lists[there], lists[here]
            last = via[to] == NONE
            self._counts[to[last]] += 1
            node = to[~last]
