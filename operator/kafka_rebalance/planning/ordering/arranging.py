"""The order within replica lists for given replica sets: exact for small clusters, a fast search for large ones."""

from itertools import chain

import numpy as np

from kafka_rebalance.planning.ordering.replica_order import arrange
from kafka_rebalance.planning.ordering.spread import spread
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.instance import Indices, Instance
from kafka_rebalance.planning.problem.request import Goals

EXACT_ORDER = 9_000
"""Number of replicas up to which a flow decides leaders and pairs together: some tenths of a second."""


def arranged(present: Instance, copies: Copies, goals: Goals) -> Indices:
    """The lists of these copies, ordered by the goals. ``present`` is their instance and may shrink."""
    if len(copies.instance.broker_of_slot) > EXACT_ORDER:
        return spread(copies, goals)
    lists = arrange(present, copies.replica_sets(), goals)
    return np.fromiter(chain.from_iterable(lists), dtype=np.int32, count=len(copies.instance.broker_of_slot))
