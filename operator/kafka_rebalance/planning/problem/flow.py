"""Integer min-cost flow: OR-tools' solver with arrays, and convex costs.

Costs are lexicographic. A flow is optimal when no *simple* cycle of the residual network has a negative cost, so the
weight of a level only has to exceed what the lower levels can gain along one simple cycle, not over the whole network
(``level_weights``). That keeps costs within 64 bits at any size that fits into memory.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from ortools.graph.python import min_cost_flow

Ints = NDArray[np.int64]

COST_LIMIT = 2**58
"""Largest (arc cost x nodes) that the solver's scaling is trusted with."""


class Network:
    """Nodes are added in blocks and arcs as arrays; ``solve`` returns the flow of every arc."""

    def __init__(self) -> None:
        self._solver = min_cost_flow.SimpleMinCostFlow()
        self._supply: list[tuple[Ints, Ints]] = []
        self.nodes = 0

    @property
    def arcs(self) -> int:
        """Number of arcs, which is the number of the next one."""
        return int(self._solver.num_arcs())

    def add_nodes(self, count: int, supply: ArrayLike = 0) -> Ints:
        """A block of new nodes with this supply (negative: demand)."""
        block = np.arange(self.nodes, self.nodes + count, dtype=np.int64)
        self.nodes += count
        self._supply.append((block, np.broadcast_to(np.asarray(supply, dtype=np.int64), block.shape)))
        return block

    def add_arcs(self, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, cost: ArrayLike = 0) -> Ints:
        """Arcs from arrays that broadcast to one shape; returns the numbers of the new arcs, flat."""
        columns = np.broadcast_arrays(*(np.asarray(c, dtype=np.int64) for c in (tail, head, capacity, cost)))
        flat = [np.ascontiguousarray(c).ravel() for c in columns]
        arcs = self._solver.add_arcs_with_capacity_and_unit_cost(*flat)
        return np.asarray(arcs, dtype=np.int64)

    def solve(self) -> Ints:
        """The flow of every arc, in the order of adding. The network must have room for the whole supply."""
        for block, supply in self._supply:
            self._solver.set_nodes_supplies(block, np.ascontiguousarray(supply))
        status = self._solver.solve()
        if status != self._solver.OPTIMAL:
            raise AssertionError(f"the planning network has no optimum: {status}")
        return np.asarray(self._solver.flows(np.arange(self._solver.num_arcs())), dtype=np.int64)


def level_weights(gains: Sequence[int], nodes: int, soft: int = 0) -> list[int]:
    """Weights, most important level first, so that gains in lower levels never outweigh a higher level.

    ``gains[0]`` bounds the cost of one arc at the top level, every other ``gains[i]`` the change of level i along a
    simple cycle, in the unit of its level. When the weights exceed 64 bits the bounds of the last ``soft`` levels are
    lowered, from the end: these levels then are preferences and no longer strict.
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


def steps_of(sizes: Ints, gains: Sequence[int], cycle: int, nodes: int) -> tuple[Ints, int]:
    """Sizes as numbers of a unit, rounded down, and the unit, so that a level of them fits between these ``gains``.

    At most ``cycle`` sizes are along a simple cycle. The unit is as small as 64 bits allow; it divides all sizes, if
    their greatest common divisor does.
    """
    room = COST_LIMIT // (nodes * math.prod(max(1, gain) + 1 for gain in gains) * cycle) - 1
    common, largest = max(1, int(np.gcd.reduce(sizes))), int(sizes.max(initial=0))
    unit = common if largest // common <= room else -(-largest // max(1, room))
    return sizes // unit, unit


def all_strict(gains: Sequence[int], nodes: int, levels: int) -> bool:
    """Whether the first ``levels`` levels can be strict, when all others are lowered as far as necessary."""
    bounds = [max(1, gain) for gain in gains[:levels]] + [1] * (len(gains) - levels)
    return math.prod(bound + 1 for bound in bounds) * nodes < COST_LIMIT


def convex_segments(centre: Ints, limit: Ints) -> tuple[Ints, Ints, Ints]:
    """The function k*k on 0..limit as linear pieces: unit steps around the centre, doubling away from it.

    Returns (which, width, slope), flat over all centres. The pieces next to the centre are exact, so a solution within
    1 of its centre is optimal for k*k itself.
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
    """Sum of squares, which max-min fair counts minimise."""
    return int((counts * counts).sum())


def even_square_sum(total: int, parts: int) -> int:
    """The least sum of squares of ``parts`` integers with this total."""
    low, more = divmod(total, parts)
    return (parts - more) * low * low + more * (low + 1) * (low + 1)
