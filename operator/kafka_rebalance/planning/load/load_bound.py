"""A lower bound on the bytes that bring every broker into its bands: a fractional knapsack for each broker.

A broker above a band must give away replicas until it is within. The replicas that relieve it most per byte go first,
the last one in part. Leaders hand over without copying, so only the use of every replica counts, not the additional use
of leaders.
"""

import math

import numpy as np

from kafka_rebalance.planning.load.array_types import Floats, Ints
from kafka_rebalance.planning.load.load_problem import LoadProblem
from kafka_rebalance.planning.problem.copies import in_order


def bytes_bound(problem: LoadProblem, before: Floats, excess: Floats, leaves: Ints) -> int:
    """A lower bound on the bytes of plans with no more use above the bands in total than ``excess`` [R], normalised.

    ``before`` [B, R] is the present use in the unit of the resource. At least ``leaves`` [B] replicas leave each
    broker. Replicas on brokers that are not eligible all leave.
    """
    a = problem.arrays
    partition = np.repeat(np.arange(len(a.size)), np.diff(a.home_start))
    shrinks = np.diff(a.home_start) > np.diff(a.start)
    cost = np.where(shrinks, 0.0, a.size)[partition]  # dropping a replica copies nothing
    eligible = a.eligible[a.homes]
    certain = float(cost[~eligible].sum())
    order = in_order(a.homes)
    begin = np.searchsorted(a.homes[order], np.arange(len(before) + 1))
    per_broker = np.zeros((len(before), len(excess) + 1))
    pieces: list[list[tuple[Floats, Floats]]] = [[] for _ in excess]
    for b in np.flatnonzero(a.eligible).tolist():
        slots = order[begin[b] : begin[b + 1]]
        if leaves[b] > 0:
            per_broker[b, -1] = np.sort(cost[slots])[: leaves[b]].sum()
        for r in range(len(excess)):
            over = before[b, r] * a.inverse[b, r] - a.band[r]
            used = a.home_bytes[slots] if r == a.disk else a.follows[partition[slots], r]
            if over <= 0 or not used.any():
                continue
            amount, price = _cheapest(used * a.inverse[b, r], cost[slots], over)
            per_broker[b, r] = (amount * price).sum()
            pieces[r].append((amount, price))
    alone = [
        _without_dearest(found, left) + certain if found else certain
        for found, left in zip(pieces, excess, strict=True)
    ]
    together = per_broker if not (excess > 0).any() else per_broker[:, -1:]
    least = max(certain + float(together.max(axis=1).sum()), *alone)
    return math.ceil(least * (1 - 1e-9))  # bytes are whole numbers, and the sums are rounded


def _cheapest(used: Floats, cost: Floats, over: float) -> tuple[Floats, Floats]:
    """How much of ``over`` each replica takes, cheapest first, and the bytes for each unit of it."""
    useful = used > 0
    used, cost = used[useful], cost[useful]
    price = cost / used
    order = np.argsort(price, kind="stable")
    used, price = used[order], price[order]
    last = int(np.searchsorted(np.cumsum(used), over)) + 1
    amount = used[:last].copy()
    if amount.sum() > over:
        amount[-1] -= amount.sum() - over
    return amount, price[:last]


def _without_dearest(pieces: list[tuple[Floats, Floats]], left: float) -> float:
    """The bytes of these pieces without the dearest ones, of the amount that may be left."""
    amount = np.concatenate([amount for amount, _ in pieces])
    price = np.concatenate([price for _, price in pieces])
    order = np.argsort(-price, kind="stable")
    amount, price = amount[order], price[order]
    dropped = np.clip(left - (np.cumsum(amount) - amount), 0, amount)
    return float(((amount - dropped) * price).sum())
