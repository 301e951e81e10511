"""The most even pairs (leader, broker at a position) for given leaders, by chains of swaps.

Partitions with different leaders are independent. When no single swap of two followers makes pairs more even a chain
may: one pair gives a partition to a second, which gives another one to a third, and so on; the last pair had at least
two fewer than the first. A leader's pairs are optimal when no chain is left. All leaders are searched at once.
"""

import numpy as np

from kafka_rebalance.planning.ordering.pairs import Nodes, Pairs
from kafka_rebalance.planning.problem.instance import Indices, Ints

NONE = -1


class PairChains:
    """The chains of ``pairs`` [K nodes]."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs, self._counts = pairs, pairs.counts
        self._of = np.zeros(len(pairs.counts), dtype=np.int32)  # the leader of each node
        self._of[pairs.here] = pairs.leader
        self._of[pairs.other] = pairs.leader[:, None]
        self._real = np.zeros(len(pairs.counts), dtype=np.bool_)  # nodes that partitions can join or leave
        self._real[pairs.here] = self._real[pairs.other] = True

    def run(self, lists: Indices) -> None:
        """Carry out chains until none is left. Changes ``lists``."""
        leaders = int(self._pairs.leader.max(initial=-1)) + 1
        real = np.flatnonzero(self._real)
        fewest = np.full(leaders, np.iinfo(np.int32).max // 2, dtype=np.int32)
        np.minimum.at(fewest, self._of[real], self._counts[real])
        level = np.zeros(leaders, dtype=np.int32)
        np.maximum.at(level, self._of[real], self._counts[real])
        while (active := level >= fewest + 2).any():
            real = real[active[self._of[real]]]
            ends, via = self._search(np.flatnonzero(active[self._pairs.leader]), real, level)
            self._carry_out(ends, via, lists)
            active[self._of[ends]] = False
            # Leaders without a chain at this count continue with the next lower count.
            below = real[self._counts[real] < level[self._of[real]]]
            below = below[active[self._of[below]]]
            level[active] = 0
            np.maximum.at(level, self._of[below], self._counts[below])

    def _search(self, partitions: Ints, real: Ints, level: Nodes) -> tuple[Ints, Nodes]:
        """Nodes at the level from which a chain leads to a node with two fewer, and the swap to make at each node.

        A swap is partition * A + the index of the other. Chains share no node.
        """
        via = np.full(len(self._counts), NONE, dtype=np.int32)
        low = real[self._counts[real] <= level[self._of[real]] - 2]
        root = np.zeros(len(self._counts), dtype=np.int32)
        root[low] = low
        reached = np.zeros(len(self._counts), dtype=np.bool_)
        reached[low] = True
        ends, roots = [low[:0]], [root[:0]]
        partitions = partitions[~reached[self._pairs.here[partitions]]]
        width = self._pairs.other.shape[1]
        swap = (partitions[:, None] * width + np.arange(width)).ravel().astype(np.int32)
        begin, to = np.repeat(self._pairs.here[partitions], width), self._pairs.other[partitions].ravel()
        while len(use := np.flatnonzero(reached[to])):
            via[begin[use]] = swap[use]
            use = use[via[begin[use]] == swap[use]]  # one for each node
            new = begin[use]
            root[new], reached[new] = root[to[use]], True
            end = new[self._counts[new] >= level[self._of[new]]]
            ends.append(end)
            roots.append(root[end])
            left = np.flatnonzero(~reached[begin])
            swap, begin, to = swap[left], begin[left], to[left]
        first = np.unique(np.concatenate(roots), return_index=True)[1]  # the shortest chain to each
        return np.concatenate(ends)[first].astype(np.int64), via

    def _carry_out(self, ends: Ints, via: Nodes, lists: Indices) -> None:
        width = self._pairs.other.shape[1]
        np.subtract.at(self._counts, ends, 1)
        node = ends
        while len(node):
            row, column = np.divmod(via[node], width)
            to = self._pairs.other[row, column].astype(np.int64)
            self._pairs.swap(row, column, lists)
            last = via[to] == NONE
            self._counts[to[last]] += 1
            node = to[~last]
