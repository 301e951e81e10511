"""Repairs rack violations one by one: from the fullest broker first, to the emptiest broker that may take the copy.

Used when a budget does not cover all violations: the whole plan's choice of brokers would be uneven half way.
"""

from bisect import insort
from collections import defaultdict
from heapq import heapify, heappop, heappush

import numpy as np

from kafka_rebalance.planning.problem.copies import Copies

_Cell = tuple[int, int]
"""A partition and a group."""


class RackRepair:
    """The copies, and the violations that are left."""

    def __init__(self, copies: Copies) -> None:
        instance = self._instance = copies.instance
        self._copies = Copies.of_lists(instance, copies.broker_of_slot)
        broker_of, group = copies.broker_of_slot, instance.group
        over, _ = instance.overfull(broker_of)
        self._partitions = set(instance.partition_of_slot[over].tolist())
        self._held: defaultdict[_Cell, int] = defaultdict(int)
        self._on: defaultdict[int, set[int]] = defaultdict(set)
        chosen = np.flatnonzero(np.isin(instance.partition_of_slot, list(self._partitions)))
        for p, b in zip(instance.partition_of_slot[chosen].tolist(), broker_of[chosen].tolist(), strict=True):
            self._on[p].add(b)
            self._held[p, int(group[b])] += 1
        counts = instance.fixed_replicas + np.bincount(broker_of, minlength=instance.brokers)
        self._counts: list[int] = counts.tolist()
        self._emptiest = sorted((self._counts[b], b) for b in np.flatnonzero(instance.eligible).tolist())
        self._slots: defaultdict[int, list[int]] = defaultdict(list)
        for slot in over[::-1].tolist():
            self._slots[int(broker_of[slot])].append(slot)

    def after(self, moves: int) -> Copies:
        """The copies after at most ``moves`` more moves; each move removes a rack violation."""
        fullest = [(-self._counts[b], b) for b in self._slots]
        heapify(fullest)
        while fullest and moves > 0:
            count, b = heappop(fullest)
            if not self._slots[b]:
                continue
            if -count != self._counts[b]:
                heappush(fullest, (-self._counts[b], b))
                continue
            moves -= self._repair(self._slots[b].pop(), b)
            heappush(fullest, (-self._counts[b], b))
        return self._copies

    def _repair(self, slot: int, b: int) -> bool:
        instance = self._instance
        p, group = int(instance.partition_of_slot[slot]), int(instance.group[b])
        if self._held[p, group] <= self._capacity(p, group):
            return False
        if b != int(instance.broker_of_slot[slot]):
            return False  # it has moved already: moving it again repairs nothing
        for _, d in self._emptiest:
            to = int(instance.group[d])
            if d not in self._on[p] and to != group and self._held[p, to] < self._capacity(p, to):
                self._move(slot, p, b, d)
                return True
        return False

    def _capacity(self, p: int, group: int) -> int:
        return int(self._instance.rack_capacity[self._instance.kind[p], group])

    def _move(self, slot: int, p: int, b: int, d: int) -> None:
        group = self._instance.group
        self._copies.broker_of_slot[slot] = d
        self._on[p] ^= {b, d}
        self._held[p, int(group[b])] -= 1
        self._held[p, int(group[d])] += 1
        for broker, more in ((b, -1), (d, 1)):
            self._emptiest.remove((self._counts[broker], broker))
            self._counts[broker] += more
            insort(self._emptiest, (self._counts[broker], broker))
