"""Negative cycles between brokers: they name the exchanges that improve a plan; without any the plan is optimal.

The nodes are brokers. An arc (a, d) says that one copy (or leadership) can go from a to d, and how that changes the
plan's cost. A path from a broker to one with a lower count makes the plan fairer, which outranks every cost. A plan
is optimal when no closed walk has a negative cost.
"""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.planning.problem.copies import scramble
from kafka_rebalance.planning.problem.instance import Ints

Costs = NDArray[np.int32]

NEVER = 2**20
"""The cost of an exchange that does not exist."""

MOST_BROKERS = 3_000
"""Number of nodes up to which the tables of arcs fit into memory: 24 bytes per pair of brokers."""

_NO_ARC = 2**60

_NOISE = 16

_ENOUGH = 12
"""Steps after which a search that has found cycles stops looking for more."""

Cycle = list[tuple[int, int]]
"""The exchanges along a cycle, as (from, to); steps that only change counts are left out."""


def negative_cycles(cost: Costs, counts: Ints, turn: int = 0) -> list[Cycle]:
    """Cycles that improve fairness or, at equal fairness, cost. Empty: the plan is optimal.

    ``cost`` [B, B] is -1, 0, 1 or ``NEVER``; fairness is that of ``counts`` [B]. The cycles share no broker. Noise, too
    small to hide a cycle, spreads the search over equally good arcs, so that it finds many cycles at once.
    """
    brokers = len(counts)
    unit = 2 * _NOISE * brokers  # more than the noise along a simple cycle
    fairer = 4 * (brokers + 1) * unit  # more than any cost along a simple cycle
    noise = scramble(np.arange(brokers * brokers), turn).reshape(brokers, brokers) % _NOISE
    arc = np.where(cost == NEVER, _NO_ARC, cost.astype(np.int64) * unit)
    lower = counts[:, None] - counts[None, :]  # is one more at d and one less at e fairer, or equally fair?
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
    """Cycles through these nodes, in the direction of the arcs; every node has at most one parent."""
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
    """Copies or leaderships that brokers have counts of and can exchange, for a cost of -1, 0 or 1.

    ``cost`` [B, B] is a lower bound on the cost of an exchange. It rises when ``cheapest`` finds the actual cost, and
    falls when partitions change (``reprice``). As it always is a bound, "no cycle" is a proof.
    """

    cost: Costs

    def improve(self, effort: int) -> bool:
        """Carry out negative cycles until none is left (True: proved optimal), in at most ``effort`` searches."""
        for turn in range(effort):
            cycles = negative_cycles(self.cost, self.counts(), turn)
            if not cycles:
                return True
            changed = [slot for cycle in cycles for slot in self._carry_out(cycle, turn)]
            if changed:
                self.reprice(np.unique(np.array(changed, dtype=np.int64)))
        return False

    def _carry_out(self, cycle: Cycle, turn: int) -> list[int]:
        """Carry out the whole cycle and return its slots; or nothing, and correct the cost that was too low."""
        done: list[tuple[int, int]] = []
        for a, d in cycle:
            slot, price = self.cheapest(a, d, turn)
            if price > self.cost[a, d]:
                for undone, back in reversed(done):
                    self.exchange(undone, back)
                # Exchanges of one partition can block each other: price this one again without the others.
                self.raise_cost(a, d, self.cheapest(a, d, turn)[1] if done else price)
                return []
            done.append((slot, a))
            self.exchange(slot, d)
        return [slot for slot, _ in done]

    def raise_cost(self, a: int, d: int, price: int) -> None:
        """Correct the cost of an exchange from a to d."""
        self.cost[a, d] = price

    @abstractmethod
    def counts(self) -> Ints:
        """Count of each broker [B]."""

    @abstractmethod
    def cheapest(self, a: int, d: int, turn: int) -> tuple[int, int]:
        """The slot that can go from a to d at the least cost, and that cost; ``NEVER`` if there is none.

        ``turn`` decides between equal costs.
        """

    @abstractmethod
    def exchange(self, slot: int, d: int) -> None:
        """Move the slot to d; undone by moving it back to its former broker."""

    @abstractmethod
    def reprice(self, slots: Ints) -> None:
        """Lower the costs to those of the partitions of these slots."""
