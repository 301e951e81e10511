"""Integer min-cost flow: a thin, array-minded face of OR-tools' solver, and convex costs on top of it.

Costs here are lexicographic. Every optimum is one where no *simple* cycle of the residual network pays, so a level's
weight only has to outweigh what the levels below it can gain along one simple cycle, not over the whole network
(``level_weights``). That keeps the numbers small enough for 64 bits at any size that fits into memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from ortools.graph.python import min_cost_flow

Ints = NDArray[np.int64]

COST_LIMIT = 2**58
"""Largest (arc cost x nodes) that the solver's scaling is trusted with."""


class Network:
    """Nodes are handed out in blocks, arcs are added as arrays; ``solve`` gives the flow of every arc."""

    def __init__(self) -> None:
        self._solver = min_cost_flow.SimpleMinCostFlow()
        self._supply: list[tuple[Ints, Ints]] = []
        self.nodes = 0

    @property
    def arcs(self) -> int:
        """How many arcs there are: the number that the next one gets."""
        return int(self._solver.num_arcs())

    def add_nodes(self, count: int, supply: ArrayLike = 0) -> Ints:
        """A block of new nodes, with what they supply (negative: demand)."""
        block = np.arange(self.nodes, self.nodes + count, dtype=np.int64)
        self.nodes += count
        self._supply.append((block, np.broadcast_to(np.asarray(supply, dtype=np.int64), block.shape)))
        return block

    def add_arcs(self, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, cost: ArrayLike = 0) -> Ints:
        """Arcs from arrays of one shape (scalars are repeated); the numbers of the new arcs in that shape, flat."""
        columns = np.broadcast_arrays(*(np.asarray(c, dtype=np.int64) for c in (tail, head, capacity, cost)))
        flat = [np.ascontiguousarray(c).ravel() for c in columns]
        arcs = self._solver.add_arcs_with_capacity_and_unit_cost(*flat)
        return np.asarray(arcs, dtype=np.int64)

    def solve(self) -> Ints:
        """Flow of every arc, in the order they were added. Everything supplied must be able to arrive."""
        for block, supply in self._supply:
            self._solver.set_nodes_supplies(block, np.ascontiguousarray(supply))
        status = self._solver.solve()
        if status != self._solver.OPTIMAL:
            raise AssertionError(f"the planning network has no optimum: {status}")
        return np.asarray(self._solver.flows(np.arange(self._solver.num_arcs())), dtype=np.int64)


def level_weights(gains: Sequence[int], nodes: int, soft: int = 0) -> list[int]:
    """Weights, most important level first, so that no level can be bought with lower ones.

    ``gains[0]`` bounds one arc's cost at the top level, every other ``gains[i]`` what level i can change along a
    simple cycle, each in its level's own unit. Where 64 bits do not hold that, the bounds of the last ``soft`` levels
    are lowered, from the end: these then are preferences and no longer strict.
    """
    bounds = [max(1, gain) for gain in gains]
    for i in reversed(range(len(bounds))):
        while math.prod(bound + 1 for bound in bounds) * nodes >= COST_LIMIT and i >= len(bounds) - soft:
            if bounds[i] == 1:
                break
            bounds[i] //= 2
    if math.prod(bound + 1 for bound in bounds) * nodes >= COST_LIMIT:
        raise AssertionError("the cost levels do not fit into 64 bits")
    return [math.prod(bound + 1 for bound in bounds[i + 1 :]) for i in range(len(bounds))]


def all_strict(gains: Sequence[int], nodes: int, levels: int) -> bool:
    """Whether the first so many levels outweigh all below them, the others being lowered as far as need be."""
    bounds = [max(1, gain) for gain in gains[:levels]] + [1] * (len(gains) - levels)
    return math.prod(bound + 1 for bound in bounds) * nodes < COST_LIMIT


def convex_segments(centre: Ints, limit: Ints) -> tuple[Ints, Ints, Ints]:
    """The function k*k on 0..limit as linear pieces: unit steps around the centre, doubling away from it.

    Gives (which, width, slope), flat over all centres. Where a solution ends within 1 of its centre the pieces on
    both its sides are exact, so it is optimal for k*k itself.
    """
    reach = [0, 1, 2]
    while reach[-1] < int(limit.max(initial=0)):
        reach.append(reach[-1] * 2)
    offsets = np.array(sorted({-r for r in reach} | set(reach)), dtype=np.int64)
    points = np.clip(centre[:, None] + offsets[None, :], 0, limit[:, None])
    points = np.concatenate([np.zeros((len(centre), 1), np.int64), points, limit[:, None]], axis=1)
    low, high = points[:, :-1], points[:, 1:]
    which = np.broadcast_to(np.arange(len(centre))[:, None], low.shape)
    real = high > low
    return which[real], (high - low)[real], (high + low)[real]


def square_sum(counts: Ints) -> int:
    """Sum of squares: what max-min fair counts minimise."""
    return int((counts * counts).sum())


def even_square_sum(total: int, parts: int) -> int:
    """The least sum of squares of so many parts with that total."""
    low, more = divmod(total, parts)
    return (parts - more) * low * low + more * (low + 1) * (low + 1)
