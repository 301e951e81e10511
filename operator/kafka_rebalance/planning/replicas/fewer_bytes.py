"""The same counts for fewer bytes: between two brokers smaller partitions move instead of larger ones."""

import numpy as np

from kafka_rebalance.planning.problem.copies import Copies, in_order
from kafka_rebalance.planning.problem.instance import Ints

_TURNS = 8
"""Rounds of swaps before the greedy fallback."""


def fewer_bytes(copies: Copies) -> Copies:
    """The copies with as many moves between any two brokers, of smaller partitions if they fit as well.

    Forced moves are not changed: copies on departing brokers, and partitions with rack violations. Copies that stay
    are in their slots (``Copies.tidy``), before and after.
    """
    instance = copies.instance
    moved = copies.moved()
    partition_of, home = instance.replicas(moved)
    forced = np.zeros(len(instance.rf), dtype=np.bool_)
    forced[instance.partition_of_slot[instance.overfull(instance.broker_of_slot)[0]]] = True
    forced[partition_of[~instance.eligible[home]]] = True
    free = ~forced[partition_of]
    moved, home = moved[free], home[free]
    # Take back what moves for balance, and move the smallest partitions instead.
    found = Copies.of_lists(instance, copies.broker_of_slot)
    found.broker_of_slot[moved] = instance.broker_of_slot[moved]
    by_broker = in_order(instance.broker_of_slot)
    begin = np.searchsorted(instance.broker_of_slot[by_broker], np.arange(instance.brokers + 1))
    for a in np.unique(home).tolist():
        slots = by_broker[begin[a] : begin[a + 1]]
        slots = slots[~forced[instance.partition_of_slot[slots]]]
        slots = slots[np.lexsort((slots, instance.size[instance.partition_of_slot[slots]]))]
        if not _swap_in(found, slots, copies.broker_of_slot[moved[home == a]].astype(np.int64)):
            return copies
    found.tidy()
    return found if found.data() < copies.data() else copies


def _swap_in(copies: Copies, slots: Ints, brokers: Ints) -> bool:
    """Move to each broker the first of these slots' copies that fits; False if some broker gets none."""
    for turn in range(_TURNS):
        first, brokers = slots[: len(brokers)], np.roll(brokers, turn)
        if len(first) < len(brokers):
            return False
        fits = copies.fits(first, brokers)
        copies.broker_of_slot[first[fits]] = brokers[fits]
        slots, brokers = np.concatenate([first[~fits], slots[len(first) :]]), brokers[~fits]
    for broker, wanted in zip(*np.unique(brokers, return_counts=True), strict=True):
        fitting = np.flatnonzero(copies.fits(slots, np.full(len(slots), broker)))[:wanted]
        if len(fitting) < wanted:
            return False
        copies.broker_of_slot[slots[fitting]] = broker
        slots = np.delete(slots, fitting)
    return True
