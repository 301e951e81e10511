"""The fewest leader changes, by maximum flows from brokers that lead too many partitions to brokers that lead too few.

A leader stays if its broker leads no more than its share, so only the leaderships above the shares move, and those of
partitions whose leader's copy leaves. If one step can hand over all of them, no equally even arrangement has fewer
changes. The others go by way of a third broker, which hands on another leadership: one more change each, which is the
minimum, as the flow of single steps was a maximum.
"""

from dataclasses import dataclass

import numpy as np
from ortools.graph.python import max_flow

from kafka_rebalance.planning.problem.instance import Bools, Ints

NOBODY = -1
"""The leader of a partition whose leader's copy leaves."""


@dataclass(frozen=True)
class LeaderShares:
    """Leaderships per broker: ``least`` [B], plus one on ``spare`` of the brokers that ``may`` [B] have it."""

    least: Ints
    may: Bools
    spare: int


@dataclass(frozen=True)
class Needs:
    """Leaderships that brokers must give and take: ``gives`` and ``takes`` [B].

    In addition ``give`` of the brokers that ``may_give`` [B] give one, and ``take`` of those that ``may_take`` get one.
    """

    gives: Ints
    may_give: Bools
    give: int
    takes: Ints
    may_take: Bools
    take: int

    @property
    def givers(self) -> Bools:
        """Brokers that may give a leadership [B]."""
        return (self.gives > 0) | self.may_give

    @property
    def takers(self) -> Bools:
        """Brokers that may take a leadership [B]."""
        return (self.takes > 0) | self.may_take

    @property
    def total(self) -> int:
        """Number of leaderships to be taken."""
        return int(self.takes.sum()) + self.take


def needs(led: Ints, shares: LeaderShares) -> Needs:
    """The difference between leaders per broker [B] and shares; brokers above the least keep the spare ones first."""
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
    """A largest choice of these handovers [E] of ``partition`` from ``giver`` to ``taker``.

    They are sorted by partition. The giver is NOBODY if the partition needs a leader. Only handovers between givers and
    takers of ``need`` are allowed.
    """
    net = _HandoverNetwork(need)
    of, which = _numbered(partition)
    node = net.nodes(len(of))
    net.give(giver[_first(which, len(of))], node)
    arcs = net.arcs(node[which], net.taking[taker])
    return np.flatnonzero(net.solve()[arcs])


def two_steps(need: Needs, one: tuple[Ints, Ints, Ints], two: tuple[Ints, Ints, Ints]) -> tuple[Ints, Ints]:
    """A largest choice of the handovers ``one``, to intermediate brokers, and ``two``, from these to takers.

    Both are (partition, giver, taker). No partition is in both; an intermediate broker gets as many as it hands on.
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
    """Givers on one side and takers on the other; callers add the nodes and arcs between them."""

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
        """Add arcs from the givers to the partitions that they lead."""
        self.arcs(np.where(giver == NOBODY, self._source, self._giving[giver]), partition)

    def solve(self) -> Ints:
        """The flow of every arc."""
        if self._solver.solve(self._source, self._sink) != self._solver.OPTIMAL:
            raise AssertionError("the maximum flow of leaders was not found")
        return np.asarray(self._solver.flows(np.arange(self._solver.num_arcs())), dtype=np.int64)


def _numbered(partition: Ints) -> tuple[Ints, Ints]:
    """The distinct partitions, and the index of each handover's partition. The input is sorted."""
    begins = np.ones(len(partition), dtype=np.bool_)
    begins[1:] = partition[1:] != partition[:-1]
    return partition[begins], np.cumsum(begins) - 1


def _first(which: Ints, count: int) -> Ints:
    """The first handover of each partition."""
    return np.searchsorted(which, np.arange(count))
