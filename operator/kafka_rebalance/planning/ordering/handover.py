"""The fewest leader changes by maximum flows: leaderships go from brokers that lead too many to others with too few.

A leader stays where its broker leads no more than its share, so only what is above the shares has to change hands, and
the partitions whose leader's copy has gone need one. If all of that finds a taker at one step, no arrangement that is
as even changes fewer. What finds none goes over a third broker, which hands on another leadership in its turn: one more
change each, which is the least that it can cost, as the flow of single steps was a maximum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ortools.graph.python import max_flow

from kafka_rebalance.planning.problem.instance import Bools, Ints

NOBODY = -1
"""Leads where the leader's copy has gone."""


@dataclass(frozen=True)
class LeaderShares:
    """How many each broker shall lead: ``least`` [B], and one more on ``spare`` of those that ``may`` [B] have it."""

    least: Ints
    may: Bools
    spare: int


@dataclass(frozen=True)
class Needs:
    """Who leads too many and too few: ``gives`` and ``takes`` [B] for sure.

    Of those that ``may_give`` or ``may_take`` [B] one more each, ``give`` and ``take`` do altogether.
    """

    gives: Ints
    may_give: Bools
    give: int
    takes: Ints
    may_take: Bools
    take: int

    @property
    def givers(self) -> Bools:
        """Who may hand on a leadership [B]."""
        return (self.gives > 0) | self.may_give

    @property
    def takers(self) -> Bools:
        """Who may come to lead [B]."""
        return (self.takes > 0) | self.may_take

    @property
    def total(self) -> int:
        """How many leaderships are to be taken."""
        return int(self.takes.sum()) + self.take


def needs(led: Ints, shares: LeaderShares) -> Needs:
    """What lies between the leaders per broker [B] and the shares; who leads more than the least keeps a spare one."""
    above = shares.may & (led > shares.least)
    free = shares.spare - int(above.sum())
    return Needs(
        gives=np.maximum(led - shares.least - above, 0),
        may_give=above if free < 0 else np.zeros_like(above),
        give=max(-free, 0),
        takes=np.maximum(shares.least - led, 0),
        may_take=shares.may & ~above if free > 0 else np.zeros_like(above),
        take=max(free, 0),
    )


def one_step(need: Needs, partition: Ints, giver: Ints, taker: Ints) -> Ints:
    """Which of these handovers [E] to carry out, as many as can be: ``partition`` from ``giver`` to ``taker``.

    They come in the order of partitions. A giver is NOBODY where the partition needs a leader. Those that do not
    concern the needs must have been left out.
    """
    net = _HandoverNetwork(need)
    of, which = _numbered(partition)
    node = net.nodes(len(of))
    net.give(giver[_first(which, len(of))], node)
    arcs = net.arcs(node[which], net.taking[taker])
    return np.flatnonzero(net.solve()[arcs])


def two_steps(need: Needs, one: tuple[Ints, Ints, Ints], two: tuple[Ints, Ints, Ints]) -> tuple[Ints, Ints]:
    """Which of the handovers ``one``, to brokers between, and ``two``, from these on, to carry out: as many as can be.

    Both are (partition, giver, taker). No partition is in both; a broker between gets as many as it hands on.
    """
    net = _HandoverNetwork(need)
    between = net.nodes(len(need.gives))
    of, which = _numbered(one[0])
    node = net.nodes(len(of))
    net.give(one[1][_first(which, len(of))], node)
    first = net.arcs(node[which], between[one[2]])
    of, which = _numbered(two[0])
    node = net.nodes(len(of))
    net.arcs(between[two[1][_first(which, len(of))]], node)
    second = net.arcs(node[which], net.taking[two[2]])
    used = net.solve()
    return np.flatnonzero(used[first]), np.flatnonzero(used[second])


class _HandoverNetwork:
    """Givers on one side and takers on the other; what lies between is added."""

    def __init__(self, need: Needs) -> None:
        self._solver = max_flow.SimpleMaxFlow()
        self._count = 4
        self._source, self._sink, may_give, may_take = range(4)
        self._giving = self.nodes(len(need.gives))
        self.taking = self.nodes(len(need.takes))
        everyone = np.ones(len(need.gives), dtype=np.int64)
        self.arcs(self._source * everyone, self._giving, need.gives)
        self.arcs(may_give * everyone, self._giving, need.may_give.astype(np.int64))
        self.arcs(self.taking, self._sink * everyone, need.takes)
        self.arcs(self.taking, may_take * everyone, need.may_take.astype(np.int64))
        one = everyone[:1]
        self.arcs(self._source * one, may_give * one, need.give * one)
        self.arcs(may_take * one, self._sink * one, need.take * one)

    def nodes(self, count: int) -> Ints:
        """New nodes."""
        self._count += count
        return np.arange(self._count - count, self._count, dtype=np.int64)

    def arcs(self, tail: Ints, head: Ints, capacity: Ints | None = None) -> Ints:
        """New arcs, of capacity 1 unless it is given."""
        capacity = np.ones(len(tail), dtype=np.int64) if capacity is None else capacity
        return np.asarray(self._solver.add_arcs_with_capacity(tail, head, capacity))

    def give(self, giver: Ints, partition: Ints) -> None:
        """Arcs from the givers to the nodes of the partitions that they lead."""
        self.arcs(np.where(giver == NOBODY, self._source, self._giving[giver]), partition)

    def solve(self) -> Ints:
        """The flow of every arc."""
        if self._solver.solve(self._source, self._sink) != self._solver.OPTIMAL:
            raise AssertionError("the maximum flow of leaders was not found")
        return np.asarray(self._solver.flows(np.arange(self._solver.num_arcs())), dtype=np.int64)


def _numbered(partition: Ints) -> tuple[Ints, Ints]:
    """The partitions, each once, and which of them each handover is of. They must come in order."""
    begins = np.ones(len(partition), dtype=np.bool_)
    begins[1:] = partition[1:] != partition[:-1]
    return partition[begins], np.cumsum(begins) - 1


def _first(which: Ints, count: int) -> Ints:
    """The first of the handovers of each partition."""
    return np.searchsorted(which, np.arange(count))
