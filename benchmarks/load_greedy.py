"""A greedy planner of Cruise Control's kind, to compare the search with: goals one after the other.

Its own simple implementation: racks and counts within 10 % of the mean are hard; then each resource in order. A broker
above its band hands over leaderships (where the resource depends on them), then moves its largest replicas to the
least used broker, then exchanges its largest for small ones of the least used broker. A step must leave the other
broker within the band of this resource, and of all earlier ones or no further above them.
"""

import numpy as np

from kafka_rebalance.planning.load.load_problem import LoadProblem, use_of
from kafka_rebalance.planning.problem.instance import Indices

COUNTS = 1.10
"""Most replicas of a broker, as a part of the mean."""
EXCHANGES = 50
"""Replicas of the other broker that are tried in exchange for one."""


class Greedy:
    def __init__(self, problem: LoadProblem, lists: Indices) -> None:
        self.a = problem.arrays
        self.lists = lists.copy()
        self.use = use_of(problem, self.a.start, lists) * self.a.inverse
        self.count = np.bincount(lists, minlength=len(self.use))
        self.most = COUNTS * self.count[self.a.eligible].mean()
        self.held = [set(np.flatnonzero(lists == b).tolist()) for b in range(len(self.use))]

    def run(self) -> Indices:
        for r in range(self.use.shape[1]):
            for b in np.argsort(-self.use[:, r]).tolist():
                if self.a.leads[:, r].any():
                    self._hand_over(b, r)
                if self.a.follows[:, r].any() or self._above(b, r):
                    self._move(b, r)
        return self.lists

    def _above(self, b: int, r: int) -> bool:
        return bool(self.use[b, r] > self.a.band[r])

    def _load(self, slot: int) -> np.ndarray:
        p = self.a.partition[slot]
        return self.a.follows[p] + self.a.leads[p] * (self.a.start[p] == slot)

    def _accepted(self, load: np.ndarray, r: int) -> np.ndarray:
        """Brokers [B] that may take this load."""
        after = self.use + load * self.a.inverse
        fine = (after <= self.a.band) | (load <= 0)
        return fine[:, : r + 1].all(axis=1) & self.a.eligible

    def _largest(self, b: int, r: int) -> list[int]:
        slots = np.fromiter(self.held[b], dtype=np.int64, count=len(self.held[b]))
        p = self.a.partition[slots]
        load = self.a.follows[p, r] + self.a.leads[p, r] * (self.a.start[p] == slots)
        order = np.argsort(-load, kind="stable")
        return [int(s) for s in slots[order] if load.size]

    def _hand_over(self, b: int, r: int) -> None:
        a = self.a
        for slot in self._largest(b, r):
            if not self._above(b, r):
                return
            p = a.partition[slot]
            if a.start[p] != slot:
                continue
            fine = self._accepted(a.leads[p], r)
            others = [x for x in range(slot + 1, a.start[p + 1]) if fine[self.lists[x]]]
            if not others:
                continue
            x = min(others, key=lambda x: self.use[self.lists[x], r])
            other = int(self.lists[x])
            self.use[b] -= a.leads[p] * a.inverse[b]
            self.use[other] += a.leads[p] * a.inverse[other]
            self.lists[slot], self.lists[x] = other, b
            self._swap_held(b, other, slot, x)

    def _swap_held(self, b: int, other: int, slot: int, x: int) -> None:
        self.held[b].remove(slot)
        self.held[other].remove(x)
        self.held[b].add(x)
        self.held[other].add(slot)

    def _free(self, slot: int) -> np.ndarray:
        """Brokers [B] in whose rack the partition has no other copy; the benchmark has more racks than copies."""
        a = self.a
        p = a.partition[slot]
        taken = [a.group[self.lists[x]] for x in range(a.start[p], a.start[p + 1]) if x != slot]
        return ~np.isin(a.group, taken)

    def _put(self, slot: int, b: int, other: int) -> None:
        load = self._load(slot)
        self.use[b] -= load * self.a.inverse[b]
        self.use[other] += load * self.a.inverse[other]
        self.lists[slot] = other
        self.held[b].remove(slot)
        self.held[other].add(slot)
        self.count[b] -= 1
        self.count[other] += 1

    def _move(self, b: int, r: int) -> None:
        for slot in self._largest(b, r):
            if not self._above(b, r):
                return
            load = self._load(slot)
            if load[r] <= 0:
                return
            fine = self._accepted(load, r) & self._free(slot) & (self.count < self.most)
            if fine.any():
                self._put(slot, b, int(np.where(fine, self.use[:, r], np.inf).argmin()))
        for slot in self._largest(b, r):
            if not self._above(b, r):
                return
            if self._load(slot)[r] <= 0:
                return
            self._exchange(slot, b, r)

    def _exchange(self, slot: int, b: int, r: int) -> None:
        other = int(np.where(self._free(slot) & self.a.eligible, self.use[:, r], np.inf).argmin())
        if other == b:
            return
        mine = self._load(slot)
        for x in self._largest(other, r)[-EXCHANGES:][::-1]:
            theirs = self._load(x)
            change = mine - theirs
            if change[r] <= 0:
                return
            if not self._free(x)[b] or self.a.partition[x] == self.a.partition[slot]:
                continue
            here = self.use[b] - change * self.a.inverse[b]
            fine = self._accepted(change, r)[other]
            if fine and ((here <= self.a.band) | (change >= 0))[:r].all():
                self._put(slot, b, other)
                self._put(x, other, b)
                return
