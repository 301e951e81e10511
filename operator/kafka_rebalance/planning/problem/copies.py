"""The working state of the fast planner: who holds each slot now, against who held it at first.

A slot is a place in the flat array of all lists. Homeless slots (their copy has to leave where it was and has no new
broker yet) hold ``HOMELESS``. Every placement is checked here, by one rule: ``fits``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.planning.problem.instance import Bools, Indices, Instance, Ints

HOMELESS = -1

_NO_GROUP = -9


def scramble(numbers: NDArray[np.integer], salt: int) -> NDArray[np.uint32]:
    """Evenly spread 32-bit values, the same on every machine: what stands in for chance here."""
    mixed = numbers.astype(np.uint32)
    mixed = mixed + np.uint32((salt * 0x9E3779B9 + 0x7F4A7C15) & 0xFFFFFFFF)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        mixed ^= mixed >> np.uint32(shift)
        mixed *= np.uint32(factor)
    return np.asarray(mixed ^ (mixed >> np.uint32(16)))


def in_order(keys: NDArray[np.integer]) -> Ints:
    """The places of the keys from the least to the greatest, equal ones as they stand; they span 32 bits at most.

    Numbers of 16 bits are sorted by counting, which is several times as fast as comparing, twice as well.
    """
    above = keys - keys.min(initial=0)
    halves = [above.astype(np.uint16)]
    if above.max(initial=0) >= 2**16:
        halves.append((above >> 16).astype(np.uint16))
    return np.lexsort(halves)


def first_of_each(keys: NDArray[np.integer], numbers: int) -> Ints:
    """The places, in order, where each of the keys stands first; they are below ``numbers``."""
    first = np.empty(numbers, dtype=np.int64)
    first[keys[::-1]] = np.arange(len(keys))[::-1]  # what is written last stays
    return np.flatnonzero(first[keys] == np.arange(len(keys)))


def rank_within(keys: NDArray[np.integer]) -> Ints:
    """For each element how many equal ones stand before it."""
    order = in_order(keys)
    sorted_keys = keys[order]
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = sorted_keys[1:] != sorted_keys[:-1]
    begin = np.maximum.accumulate(np.where(first, np.arange(len(keys)), 0))
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[order] = np.arange(len(keys)) - begin
    return ranks


class Copies:
    """``holder`` [N] is the only thing that changes."""

    def __init__(self, instance: Instance, homeless: Ints) -> None:
        self.instance = instance
        self.holder: Indices = instance.holder.copy()
        self.holder[homeless] = HOMELESS
        # The two values below 0 (homeless, no slot) index these from the end.
        self._group = np.concatenate([instance.group, [_NO_GROUP, _NO_GROUP]])

    @classmethod
    def placed(cls, instance: Instance, sets: tuple[Ints, Ints]) -> Copies:
        """The copies of these sets, (partition, broker) sorted by partition: what was kept in its slot."""
        owner, holder = (column.astype(np.int64) for column in sets)
        now = owner * instance.brokers + holder
        before = instance.owner.astype(np.int64) * instance.brokers + instance.holder
        gone = np.flatnonzero(~np.isin(before, now))
        copies = cls(instance, gone)
        copies.holder[gone] = holder[~np.isin(now, before)]
        return copies

    @classmethod
    def of_lists(cls, instance: Instance, lists: Indices) -> Copies:
        """The copies in these lists, one behind the other, in whatever slots."""
        copies = cls(instance, np.zeros(0, dtype=np.int64))
        copies.holder = lists.copy()
        return copies

    def tidy(self) -> None:
        """Put every copy that stays, or came home by a detour, into the slot that it had."""
        changed = np.flatnonzero(self.holder != self.instance.holder)
        astray = changed[self.at_home(changed, self.holder[changed])]
        for p in np.unique(self.instance.owner[astray]).tolist():
            slots = slice(int(self.instance.start[p]), int(self.instance.start[p] + self.instance.rf[p]))
            homes, now = self.instance.holder[slots].tolist(), self.holder[slots].tolist()
            new = iter([b for b in now if b not in homes])
            self.holder[slots] = [b if b in now else next(new) for b in homes]

    def sets(self) -> tuple[Ints, Ints]:
        """(partition, broker) of every copy, sorted."""
        owner, holder = self.instance.owner.astype(np.int64), self.holder.astype(np.int64)
        order = np.lexsort((holder, owner))
        return owner[order], holder[order]

    def counts(self) -> Ints:
        """Copies per broker [B]."""
        return np.bincount(self.holder + 1, minlength=self.instance.brokers + 1)[1:]

    def moved(self) -> Ints:
        """The slots whose copy is on a broker that did not hold the partition, in order."""
        changed = np.flatnonzero(self.holder != self.instance.holder)
        return changed[~self.at_home(changed, self.holder[changed])]

    def moves(self) -> int:
        """How many replicas are on brokers that did not hold the partition."""
        return len(self.moved())

    def at_home(self, slots: Ints, brokers: NDArray[np.integer]) -> Bools:
        """Whether the broker held the slot's partition at first."""
        partitions = self.instance.owner[slots]
        found = np.zeros(len(slots), dtype=np.bool_)
        for piece in self.instance.chunks(partitions):
            homes = self.instance.rows(self.instance.holder, partitions[piece])
            found[piece] = (homes == brokers[piece, None]).any(axis=1)
        return found

    def fits(self, slots: Ints, brokers: Ints) -> Bools:
        """Whether the slot's copy may be on that broker: no copy there yet, and room in its group."""
        instance = self.instance
        partitions = instance.owner[slots]
        found = np.zeros(len(slots), dtype=np.bool_)
        for piece in instance.chunks(partitions):
            p, d = partitions[piece], brokers[piece]
            others = instance.rows(self.holder, p).copy()
            others[np.arange(len(p)), slots[piece] - instance.start[p]] = HOMELESS
            group = instance.group[d]
            held = (self._group[others] == group[:, None]).sum(axis=1)
            free = ~(others == d[:, None]).any(axis=1)
            found[piece] = free & (held < instance.room_of[instance.kind[p], group])
        return found

    def open_groups(self, slots: Ints) -> Bools:
        """Which groups have room for the slots' copies [slots, G], the slot itself not counted."""
        instance = self.instance
        partitions = instance.owner[slots]
        groups = np.arange(len(instance.group_size))
        found = np.zeros((len(slots), len(groups)), dtype=np.bool_)
        for piece in instance.chunks(partitions):
            p = partitions[piece]
            others = instance.rows(self.holder, p).copy()
            others[np.arange(len(p)), slots[piece] - instance.start[p]] = HOMELESS
            held = np.zeros((len(p), len(groups)), dtype=np.int64)
            of = self._group[others]
            for column in of.T:
                inside = np.flatnonzero(column >= 0)
                held[inside, column[inside]] += 1
            found[piece] = held < instance.room_of[instance.kind[p]]
        return found
