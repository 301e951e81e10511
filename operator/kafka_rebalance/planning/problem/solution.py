"""The solution that a strategy returns, and how even its replica counts are."""

from dataclasses import dataclass

import numpy as np

from kafka_rebalance.model.load_outcome import LoadOutcome
from kafka_rebalance.model.plan import Certificate, Imbalance, Spread
from kafka_rebalance.model.rate_room import RateRoom
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.instance import Indices, Instance


@dataclass(frozen=True)
class Solution:
    """The flat lists [N] with their target lengths. ``imbalance``: what a movement budget left;
    ``load``: what load goals reached; ``rate_room``: what their limits require of the order of the steps.

    The certificate of lists that were not chosen for their moves has the moves of these very lists as lower bound.
    """

    lists: Indices
    certificate: Certificate
    imbalance: Imbalance | None = None
    load: LoadOutcome | None = None
    rate_room: RateRoom | None = None


def new_copies(present: Instance, lists: Indices) -> int:
    """Number of replicas in these lists on brokers that do not hold the partition now."""
    if not present.shrinks:
        return Copies.of_lists(present, lists).moves()
    partition_of = np.repeat(np.arange(len(present.rf)), present.rf)
    held = present.partition_of_slot.astype(np.int64) * present.brokers + present.broker_of_slot
    return int((~np.isin(partition_of * present.brokers + lists, held)).sum())


def spread_of(instance: Instance, broker_of: Indices) -> Spread:
    """The fewest and the most replicas of an eligible broker, fixed replicas included."""
    counts = (instance.fixed_replicas + np.bincount(broker_of, minlength=instance.brokers))[instance.eligible]
    return Spread(int(counts.min()), int(counts.max())) if len(counts) else Spread(0, 0)
