"""What a strategy answers, how even that is, and the order within lists whose brokers are decided."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from kafka_rebalance.model.plan import Imbalance, Spread
from kafka_rebalance.planning.copies import Copies
from kafka_rebalance.planning.instance import Indices, Instance
from kafka_rebalance.planning.order import arrange
from kafka_rebalance.planning.request import Goals
from kafka_rebalance.planning.spread import spread

EXACT_ORDER = 9_000
"""Up to so many replicas leaders and pairs are decided together, by a flow: some tenths of a second."""


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


def arranged(present: Instance, copies: Copies, goals: Goals) -> Indices:
    """The lists of these copies in the order that the goals ask for. ``present`` is their instance, wide or not."""
    if len(copies.instance.holder) > EXACT_ORDER:
        return spread(copies, goals)
    lists = arrange(present, copies.sets(), goals)
    return np.fromiter(chain.from_iterable(lists), dtype=np.int32, count=len(copies.instance.holder))


def new_copies(present: Instance, lists: Indices) -> int:
    """How many replicas of these lists are on brokers that do not hold the partition."""
    owner = np.repeat(np.arange(len(present.rf)), present.rf)
    held = present.owner.astype(np.int64) * present.brokers + present.holder
    return int((~np.isin(owner * present.brokers + lists, held)).sum())


def spread_of(instance: Instance, holder: Indices) -> Spread:
    """The fewest and the most copies of a broker that may hold some, in these lists and what stays as it is."""
    counts = (instance.base + np.bincount(holder, minlength=instance.brokers))[instance.eligible]
    return Spread(int(counts.min()), int(counts.max())) if len(counts) else Spread(0, 0)
