"""The same counts for fewer bytes: between two brokers smaller partitions move instead of larger ones."""

from __future__ import annotations

import numpy as np

from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.instance import Ints

_TURNS = 8
"""So often the brokers change places before those that are left over are served one by one."""


def lighter(copies: Copies) -> Copies:
    """The copies with as many moves between any two brokers, of smaller partitions where they fit as well.

    What moves because it has to is left alone: copies on departing brokers, and partitions that the rack rule changes.
    """
    instance = copies.instance
    moved = copies.moved()
    touched = np.bincount(instance.owner[moved], minlength=len(instance.rf))
    crowded = np.zeros(len(instance.rf), dtype=np.bool_)
    room = instance.room_of[instance.kind[instance.owner], instance.group[instance.holder]]
    crowded[instance.owner[instance.crowd(instance.holder) > room]] = True
    home = instance.holder[moved]
    free = instance.eligible[home] & (touched[instance.owner[moved]] == 1) & ~crowded[instance.owner[moved]]
    moved = moved[free]
    # Whatever moves for balance stays for now, and the smallest go instead.
    found = Copies(instance, np.zeros(0, dtype=np.int64))
    found.holder = copies.holder.copy()
    found.holder[moved] = instance.holder[moved]
    idle = np.ones(len(instance.rf), dtype=np.bool_)
    idle[instance.owner[found.moved()]] = False
    idle &= ~crowded
    by_holder = np.argsort(instance.holder, kind="stable")
    begin = np.searchsorted(instance.holder[by_holder], np.arange(instance.brokers + 1))
    home = home[free]
    for a in np.unique(home).tolist():
        slots = by_holder[begin[a] : begin[a + 1]]
        slots = slots[idle[instance.owner[slots]]]
        slots = slots[np.lexsort((slots, instance.size[instance.owner[slots]]))]
        if not _swap_in(found, slots, copies.holder[moved[home == a]].astype(np.int64)):
            return copies
        idle[instance.owner[slots[found.holder[slots] != a]]] = False
    return found


def _swap_in(copies: Copies, slots: Ints, brokers: Ints) -> bool:
    """Put one of these slots' copies, the first that fits, on each of the brokers; False if some broker gets none."""
    for turn in range(_TURNS):
        first, brokers = slots[: len(brokers)], np.roll(brokers, turn)
        if len(first) < len(brokers):
            return False
        fits = copies.fits(first, brokers)
        copies.holder[first[fits]] = brokers[fits]
        slots, brokers = np.concatenate([first[~fits], slots[len(first) :]]), brokers[~fits]
    for broker in brokers.tolist():
        fitting = np.flatnonzero(copies.fits(slots, np.full(len(slots), broker)))
        if not len(fitting):
            return False
        copies.holder[slots[fitting[0]]] = broker
        slots = np.delete(slots, fitting[0])
    return True
