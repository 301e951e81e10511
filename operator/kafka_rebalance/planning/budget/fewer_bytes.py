"""The same counts for fewer bytes: between two brokers smaller partitions move instead of larger ones."""

import numpy as np

from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.instance import Ints

_TURNS = 8
"""Rounds of swaps before the greedy fallback."""


def fewer_bytes(copies: Copies) -> Copies:
    """The copies with as many moves between any two brokers, of smaller partitions if they fit as well.

    Forced moves are not changed: copies on departing brokers, and partitions with rack violations.
    """
    instance = copies.instance
    moved = copies.moved()
    partition_of, home = instance.replicas(moved)
    touched = np.bincount(partition_of, minlength=len(instance.rf))
    crowded = np.zeros(len(instance.rf), dtype=np.bool_)
    crowded[instance.partition_of_slot[instance.overfull(instance.broker_of_slot)[0]]] = True
    free = instance.eligible[home] & (touched[partition_of] == 1) & ~crowded[partition_of]
    moved = moved[free]
    # Take back what moves for balance, and move the smallest partitions instead.
    found = Copies(instance, np.zeros(0, dtype=np.int64))
    found.broker_of_slot = copies.broker_of_slot.copy()
    found.broker_of_slot[moved] = instance.broker_of_slot[moved]
    idle = np.ones(len(instance.rf), dtype=np.bool_)
    idle[instance.partition_of_slot[found.moved()]] = False
    idle &= ~crowded
    by_broker = np.argsort(instance.broker_of_slot, kind="stable")
    begin = np.searchsorted(instance.broker_of_slot[by_broker], np.arange(instance.brokers + 1))
    home = home[free]
    for a in np.unique(home).tolist():
        slots = by_broker[begin[a] : begin[a + 1]]
        slots = slots[idle[instance.partition_of_slot[slots]]]
        slots = slots[np.lexsort((slots, instance.size[instance.partition_of_slot[slots]]))]
        if not _swap_in(found, slots, copies.broker_of_slot[moved[home == a]].astype(np.int64)):
            return copies
        idle[instance.partition_of_slot[slots[found.broker_of_slot[slots] != a]]] = False
    return found


def _swap_in(copies: Copies, slots: Ints, brokers: Ints) -> bool:
    """Move to each broker the first of these slots' copies that fits; False if some broker gets none."""
    for turn in range(_TURNS):
        first, brokers = slots[: len(brokers)], np.roll(brokers, turn)
        if len(first) < len(brokers):
            return False
        fits = copies.fits(first, brokers)
        copies.broker_of_slot[first[fits]] = brokers[fits]
        slots, brokers = np.concatenate([first[~fits], slots[len(first) :]]), brokers[~fits]
    for broker in brokers.tolist():
        fitting = np.flatnonzero(copies.fits(slots, np.full(len(slots), broker)))
        if not len(fitting):
            return False
        copies.broker_of_slot[slots[fitting[0]]] = broker
        slots = np.delete(slots, fitting[0])
    return True
