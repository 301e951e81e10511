"""The fewest bytes that a given number of moves can copy: a lower bound from counts alone."""

import numpy as np

from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.instance import Ints


def data_bound(copies: Copies, moves: int, *, fair_totals: bool = True) -> int:
    """A lower bound on the bytes of any placement that is as fair and makes at least ``moves`` moves.

    A move frees a place on a broker that held the partition. Copies on departing brokers and those beyond the rack rule
    are certain to leave. Where totals are fair, they differ by at most 1 from those of another placement that is as
    fair, so copies beyond that leave each broker. The bound takes the smallest of these copies, and the smallest for
    the remaining moves.
    """
    instance = copies.instance
    if not instance.sizes_differ:
        return 0
    size, home = instance.size[instance.partition_of_slot], instance.broker_of_slot
    departs = ~instance.eligible[home]
    slots, over = instance.overfull(home)
    partition_of, broker_of = instance.replicas(slots)
    cell = partition_of * len(instance.group_size) + instance.group[broker_of]
    _, first = np.unique(cell, return_index=True)
    certain = _total(size[departs]) + _total(size[slots[first]] * over[first])
    rest = moves - int(departs.sum()) - int(over[first].sum())
    if rest <= 0:
        return certain
    above = np.bincount(home, minlength=instance.brokers) - copies.counts() - 1
    leaves = np.maximum(above - np.bincount(broker_of, minlength=instance.brokers), 0) * fair_totals
    return certain + _cheapest(size[~departs], home[~departs].astype(np.int64), leaves, rest)


def _cheapest(size: Ints, broker: Ints, leaves: Ints, moves: int) -> int:
    """The least sum of ``moves`` of these sizes, with at least ``leaves`` [B] of each broker."""
    order = np.lexsort((size, broker))
    size, broker = size[order], broker[order]
    rank = np.arange(len(size)) - np.searchsorted(broker, broker)
    must = rank < leaves[broker]
    others = moves - int(must.sum())
    more = np.sort(size[~must])[: max(0, others)]
    return _total(size[must]) + _total(more)


def _total(sizes: Ints) -> int:
    """The sum, which can exceed 64 bits."""
    total: int = sum(sizes.tolist())
    return total
