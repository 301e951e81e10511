"""Negative cycles between brokers: what proves a plan optimal, or names the exchanges that improve it.

The nodes are brokers. An arc (a, d) with a cost says that one copy (or one leadership) can go from a to d for that
change of the plan's cost. Counts are changed by paths; a path that ends where the count is lower than where it began
makes the plan fairer, which outranks every cost. A plan is optimal when no closed walk pays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.planning.problem.copies import scramble
from kafka_rebalance.planning.problem.instance import Ints

Costs = NDArray[np.int32]

NEVER = 2**20
"""The cost of an exchange that does not exist."""

MOST_BROKERS = 3_000
"""Up to so many nodes the tables of arcs fit into memory: 24 bytes for each two brokers."""

_NO_ARC = 2**60

_NOISE = 16

_ENOUGH = 12
"""After so many steps a search that has found cycles gives them and does not look for more."""

Cycle = list[tuple[int, int]]
"""The exchanges along a cycle, as (from, to); where it jumps between counts nothing is exchanged."""


def negative_cycles(cost: Costs, counts: Ints, turn: int = 0) -> list[Cycle]:
    """Some cycles that improve fairness or, at equal fairness, cost; none: there are none, so the plan is optimal.

    ``cost`` [B, B] is -1, 0, 1 or ``NEVER``; ``counts`` [B] are what fairness is about. No two of the cycles share a
    broker. A little noise, too little to hide a cycle, lets equally good arcs be used evenly, so that there are many.
    """
    brokers = len(counts)
    unit = 2 * _NOISE * brokers  # more than the noise along a simple cycle
    fairer = 4 * (brokers + 1) * unit  # more than any cost along a simple cycle
    noise = scramble(np.arange(brokers * brokers), turn).reshape(brokers, brokers) % _NOISE
    arc = np.where(cost == NEVER, _NO_ARC, cost.astype(np.int64) * unit)
    lower = counts[:, None] - counts[None, :]  # a unit more at d and one less at e: is it fairer, or equally fair?
    arc[lower < -1] = -fairer
    arc[lower == -1] = np.minimum(arc[lower == -1], 0)
    arc += noise
    price = np.zeros(brokers, dtype=np.int64)
    parent = np.full(brokers, -1, dtype=np.int64)
    fallen = np.arange(brokers)
    free = np.ones(brokers, dtype=np.bool_)  # not on a cycle that was found
    found: list[Cycle] = []
    steps = 0
    while len(fallen) and not (found and steps > _ENOUGH):
        steps += 1
        reached = arc[fallen] + price[fallen, None]
        best = reached.argmin(axis=0)
        value = reached[best, np.arange(brokers)]
        better = (value < price) & free
        price[better], parent[better] = value[better], fallen[best[better]]
        for cycle in _cycles(parent, np.flatnonzero(better)):
            free[cycle] = False
            parent[cycle] = -1
            found.append(_exchanges(cycle, cost, lower))
        fallen = np.flatnonzero(better & free)
    return found


def _cycles(parent: Ints, begins: Ints) -> list[list[int]]:
    """The cycles through some of these nodes where every node has at most one parent, in the direction of the arcs."""
    seen: dict[int, int] = {}
    found = []
    for begin in begins.tolist():
        node, path = begin, []
        while node >= 0 and node not in seen:
            seen[node] = begin
            path.append(node)
            node = int(parent[node])
        if node >= 0 and seen[node] == begin:
            found.append(path[path.index(node) :][::-1])
    return found


def _exchanges(cycle: list[int], cost: Costs, lower: Ints) -> Cycle:
    steps = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    return [(a, d) for a, d in steps if lower[a, d] >= 0 or (lower[a, d] == -1 and cost[a, d] < 0)]


class Exchanges(ABC):
    """Something that brokers have counts of and that can go from one to another, for a cost of -1, 0 or 1.

    ``cost`` [B, B] is the least cost of an exchange, or less. It rises only by looking at who could carry the exchange
    out (``cheapest``), and falls when partitions change (``reprice``): always a bound, so "no cycle" is a proof.
    """

    cost: Costs

    def improve(self, effort: int) -> bool:
        """Carry out paying cycles until none is left (True: proved optimal) or ``effort`` looks were taken."""
        for turn in range(effort):
            cycles = negative_cycles(self.cost, self.counts(), turn)
            if not cycles:
                return True
            changed = [slot for cycle in cycles for slot in self._carry_out(cycle, turn)]
            if changed:
                self.reprice(np.unique(np.array(changed, dtype=np.int64)))
        return False

    def _carry_out(self, cycle: Cycle, turn: int) -> list[int]:
        """Every exchange of the cycle, whose slots are given, or none: then the one that is not to be had is priced."""
        done: list[tuple[int, int]] = []
        for a, d in cycle:
            slot, price = self.cheapest(a, d, turn)
            if price > self.cost[a, d]:
                for undone, back in reversed(done):
                    self.exchange(undone, back)
                # Two exchanges of one partition can be in each other's way: without the others it is asked again.
                self.raise_cost(a, d, self.cheapest(a, d, turn)[1] if done else price)
                return []
            done.append((slot, a))
            self.exchange(slot, d)
        return [slot for slot, _ in done]

    def raise_cost(self, a: int, d: int, price: int) -> None:
        """What an exchange from a to d turned out to cost."""
        self.cost[a, d] = price

    @abstractmethod
    def counts(self) -> Ints:
        """How many each broker has [B]."""

    @abstractmethod
    def cheapest(self, a: int, d: int, turn: int) -> tuple[int, int]:
        """What can go from a to d at the least cost, and that cost; ``NEVER`` if nothing can.

        Equally cheap ones take turns.
        """

    @abstractmethod
    def exchange(self, slot: int, d: int) -> None:
        """Carry out what ``cheapest`` named, or take it back by naming the broker where it was."""

    @abstractmethod
    def reprice(self, slots: Ints) -> None:
        """Lower the costs to what the partitions of these slots now offer."""
