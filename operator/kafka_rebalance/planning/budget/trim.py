"""Carries out part of a plan's moves: always within the budget, without a proof.

One move at a time: copies on brokers that are not eligible, smallest partitions first; then rack violations; then the
move that makes counts the most even. The gain of a move is the difference of two counts, so moves wait in one queue per
pair of brokers, smallest partition first, and the gain of a pair only falls.
"""

import heapq
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from kafka_rebalance.model.goals import Balance, RackAwareness
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.flow import square_sum

Gain = tuple[int, int]


@dataclass
class Budget:
    """The replicas and bytes that may still be moved."""

    moves: int
    data: int

    def takes(self, size: int) -> bool:
        """Whether one more copy of this size is within the budget."""
        return self.moves > 0 and size <= self.data

    def spend(self, size: int) -> None:
        """Subtract one copy of this size."""
        self.moves -= 1
        self.data -= size


class Trim:
    """The present state on its way to ``full``, the copies of a whole plan."""

    def __init__(self, full: Copies, balance: Balance, begin: Copies | None = None) -> None:
        instance = self._instance = full.instance
        self._balance = balance
        start = Copies(instance, np.zeros(0, dtype=np.int64)) if begin is None else begin
        self._now: list[int] = start.broker_of_slot.tolist()
        self._wanted: list[int] = full.broker_of_slot.tolist()
        self._owner: list[int] = instance.partition_of_slot.tolist()
        self._group: list[int] = instance.group.tolist()
        self._size: list[int] = instance.size.tolist()
        self._topic: list[int] = instance.topic.tolist()
        counts = instance.fixed_replicas + start.counts()
        self._count: list[int] = counts.tolist()
        self._of_topic = Counter((self._topic[p], b) for p, b in zip(self._owner, self._now, strict=True))
        self._eligible: list[int] = np.flatnonzero(instance.eligible).tolist()
        moved = full.moved()
        self._open = [slot for slot in moved.tolist() if self._now[slot] != self._wanted[slot]]
        self._open.sort(key=lambda slot: (self._size[self._owner[slot]], slot))

    def within(self, budget: Budget) -> Copies:
        """The copies after as many moves as the budget allows."""
        self._drain(budget)
        if self._instance.rack_awareness is not RackAwareness.PREFERRED:
            self._repair(budget)
        self._even(budget)
        self._repair(budget)
        copies = Copies.of_lists(self._instance, np.array(self._now, dtype=np.int32))
        copies.tidy()
        return copies

    def _drain(self, budget: Budget) -> None:
        departing = ~self._instance.eligible
        for slot in [s for s in self._open if departing[self._now[s]]]:
            if budget.takes(self._size[self._owner[slot]]):
                self._move(slot, self._least_harm(slot), budget)

    def _least_harm(self, slot: int) -> int:
        """The planned broker, unless it violates the rack rule now; then the one with the fewest violations."""
        wanted, here = self._wanted[slot], self._brokers(slot)
        if wanted not in here and not self._harm(slot, wanted):
            return wanted
        open_to = [b for b in self._eligible if b not in here]
        return min(open_to, key=lambda b: (self._harm(slot, b), self._count[b], b))

    def _repair(self, budget: Budget) -> None:
        for slot in self._open:
            here, size = self._now[slot], self._size[self._owner[slot]]
            if here == self._wanted[slot] or self._group[here] < 0 or not budget.takes(size):
                continue
            if self._fits(slot) and self._harm(slot, self._wanted[slot]) < 0:
                self._move(slot, self._wanted[slot], budget)

    def _even(self, budget: Budget) -> None:
        queues: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for slot in reversed(self._open):
            here, there = self._now[slot], self._wanted[slot]
            if here != there and self._group[here] >= 0:
                queues[here, there, self._topic_of(slot)].append(slot)
        heap = [(self._loss(*key), key) for key in queues]
        heapq.heapify(heap)
        while heap and budget.moves > 0:
            loss, key = heap[0]
            now = self._loss(*key)
            if now >= (0, 0) or not queues[key]:
                heapq.heappop(heap)
            elif now != loss:
                heapq.heapreplace(heap, (now, key))
            else:
                slot = queues[key].pop()
                if budget.takes(self._size[self._owner[slot]]) and self._fits(slot) and self._harm(slot, key[1]) <= 0:
                    self._move(slot, key[1], budget)

    def _topic_of(self, slot: int) -> int:
        return -1 if self._balance is Balance.TOTAL else self._topic[self._owner[slot]]

    def _loss(self, here: int, there: int, topic: int) -> Gain:
        """Half the change of the sums of squares by a move from here to there, the more important sum first."""
        total = self._count[there] - self._count[here] + 1
        own = self._of_topic[topic, there] - self._of_topic[topic, here] + 1 if topic >= 0 else 0
        return (own, total) if self._balance is Balance.PER_TOPIC else (total, own)

    def _brokers(self, slot: int) -> list[int]:
        p = self._owner[slot]
        first = int(self._instance.start[p])
        return self._now[first : first + int(self._instance.rf[p])]

    def _fits(self, slot: int) -> bool:
        return self._wanted[slot] not in self._brokers(slot)

    def _harm(self, slot: int, there: int) -> int:
        """The change in rack violations when this copy moves there."""
        group, here = self._group[there], self._group[self._now[slot]]
        if group == here:
            return 0
        capacity = self._instance.rack_capacity[self._instance.kind[self._owner[slot]]]
        held = Counter(self._group[b] for b in self._brokers(slot))
        leaves = here >= 0 and held[here] > capacity[here]
        return int(held[group] >= capacity[group]) - int(leaves)

    def _move(self, slot: int, there: int, budget: Budget) -> None:
        p, here = self._owner[slot], self._now[slot]
        topic = self._topic[p]
        self._count[here] -= 1
        self._count[there] += 1
        self._of_topic[topic, here] -= 1
        self._of_topic[topic, there] += 1
        self._now[slot] = there
        budget.spend(self._size[p])


def value_of(copies: Copies) -> tuple[int, int, int, int]:
    """The objectives within a budget, most important first: copies on departing brokers, rack violations, sum of
    squared counts, moves (Preferred: squares before racks). Less is better."""
    instance = copies.instance
    stuck = int(copies.counts()[~instance.eligible].sum())
    violations, squares = instance.violations(copies.broker_of_slot), squares_of(copies)
    if instance.rack_awareness is RackAwareness.PREFERRED:
        return stuck, squares, violations, copies.moves()
    return stuck, violations, squares, copies.moves()


def squares_of(copies: Copies) -> int:
    """The sum of the squared counts of the eligible brokers, fixed replicas included."""
    return square_sum((copies.instance.fixed_replicas + copies.counts())[copies.instance.eligible])


def topic_squares_of(copies: Copies) -> int:
    """The same with counts per topic; fixed topics would only add a constant."""
    instance = copies.instance
    here = instance.eligible[copies.broker_of_slot]
    cell = instance.topic[instance.partition_of_slot[here]] * instance.brokers + copies.broker_of_slot[here]
    return square_sum(np.unique(cell, return_counts=True)[1])
