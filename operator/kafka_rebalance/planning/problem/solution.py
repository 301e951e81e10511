"""The solution that a strategy returns, and how even its replica counts are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_rebalance.model.plan import Imbalance, Spread
from kafka_rebalance.planning.problem.instance import Indices, Instance


@dataclass(frozen=True)
class Solution:
    """``lists``: all lists one behind the other, each of its replication factor; moves, and what they cannot be below.

    ``proved`` False: the lists were not chosen for their moves, and ``lower_bound`` is what these very lists need; or
    evener counts, or a better use of the budget, may exist. ``imbalance``: what a budget left.
    """

    lists: Indices
    moves: int
    lower_bound: int
    proved: bool = True
    imbalance: Imbalance | None = None

    @property
    def optimal(self) -> bool:
        """Whether nothing better is proved to exist."""
        return self.proved and (self.imbalance is not None or self.moves == self.lower_bound)


def new_copies(present: Instance, lists: Indices) -> int:
    """How many replicas of these lists are on brokers that do not hold the partition."""
    owner = np.repeat(np.arange(len(present.rf)), present.rf)
    held = present.owner.astype(np.int64) * present.brokers + present.holder
    return int((~np.isin(owner * present.brokers + lists, held)).sum())


def spread_of(instance: Instance, holder: Indices) -> Spread:
    """The fewest and the most copies of a broker that may hold some, in these lists and what stays as it is."""
    counts = (instance.base + np.bincount(holder, minlength=instance.brokers))[instance.eligible]
    return Spread(int(counts.min()), int(counts.max())) if len(counts) else Spread(0, 0)
