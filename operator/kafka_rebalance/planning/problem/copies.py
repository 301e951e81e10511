"""The working state of the fast planner: the broker of each slot now, compared with the instance's.

A slot is an index into the flat array of all lists. A slot whose copy must leave its broker and has no new one yet is
``UNASSIGNED``. One rule checks every placement: ``fits``.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.planning.problem.instance import Bools, Indices, Instance, Ints

UNASSIGNED = -1

_NO_GROUP = -9


def scramble(numbers: NDArray[np.integer], salt: int) -> NDArray[np.uint32]:
    """Evenly spread 32-bit values, the same on every machine; used in place of random numbers."""
    mixed = numbers.astype(np.uint32)
    mixed = mixed + np.uint32((salt * 0x9E3779B9 + 0x7F4A7C15) & 0xFFFFFFFF)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        mixed ^= mixed >> np.uint32(shift)
        mixed *= np.uint32(factor)
    return np.asarray(mixed ^ (mixed >> np.uint32(16)))


def in_order(keys: NDArray[np.integer]) -> Ints:
    """The indices that sort the keys, stable. The keys span 32 bits at most.

    NumPy sorts 16-bit integers by counting: sorting two halves is still several times as fast as comparing.
    """
    above = keys - keys.min(initial=0)
    halves = [above.astype(np.uint16)]
    if above.max(initial=0) >= 2**16:
        halves.append((above >> 16).astype(np.uint16))
    return np.lexsort(halves)


def first_of_each(keys: NDArray[np.integer], numbers: int) -> Ints:
    """The indices, in order, of the first occurrence of each key. Keys are below ``numbers``."""
    first = np.empty(numbers, dtype=np.int64)
    first[keys[::-1]] = np.arange(len(keys))[::-1]  # the last write wins
    return np.flatnonzero(first[keys] == np.arange(len(keys)))


def rank_within(keys: NDArray[np.integer]) -> Ints:
    """For each element the number of equal elements before it."""
    order = in_order(keys)
    sorted_keys = keys[order]
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = sorted_keys[1:] != sorted_keys[:-1]
    begin = np.maximum.accumulate(np.where(first, np.arange(len(keys)), 0))
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[order] = np.arange(len(keys)) - begin
    return ranks


class Copies:
    """Only ``broker_of_slot`` [N] changes."""

    def __init__(self, instance: Instance, unassigned: Ints) -> None:
        self.instance = instance
        self.broker_of_slot: Indices = instance.broker_of_slot.copy()
        self.broker_of_slot[unassigned] = UNASSIGNED
        # The two values below 0 (unassigned, no slot) index the last two.
        self._group = np.concatenate([instance.group, [_NO_GROUP, _NO_GROUP]])

    @classmethod
    def placed(cls, instance: Instance, replica_sets: tuple[Ints, Ints]) -> Self:
        """The copies of these sets, (partition, broker) sorted by partition; kept copies stay in their slots."""
        partition_of, broker_of = (column.astype(np.int64) for column in replica_sets)
        now = partition_of * instance.brokers + broker_of
        before = instance.partition_of_slot.astype(np.int64) * instance.brokers + instance.broker_of_slot
        gone = np.flatnonzero(~np.isin(before, now))
        copies = cls(instance, gone)
        copies.broker_of_slot[gone] = broker_of[~np.isin(now, before)]
        return copies

    @classmethod
    def of_lists(cls, instance: Instance, lists: Indices) -> Self:
        """The copies of these lists [N], in the slots of the lists."""
        copies = cls(instance, np.zeros(0, dtype=np.int64))
        copies.broker_of_slot = lists.copy()
        return copies

    def tidy(self) -> None:
        """Put every copy that stays, or has returned, into its original slot."""
        changed = np.flatnonzero(self.broker_of_slot != self.instance.broker_of_slot)
        astray = changed[self.held_before(changed, self.broker_of_slot[changed])]
        for p in np.unique(self.instance.partition_of_slot[astray]).tolist():
            slots = slice(int(self.instance.start[p]), int(self.instance.start[p] + self.instance.rf[p]))
            homes, now = self.instance.broker_of_slot[slots].tolist(), self.broker_of_slot[slots].tolist()
            new = iter([b for b in now if b not in homes])
            self.broker_of_slot[slots] = [b if b in now else next(new) for b in homes]

    def replica_sets(self) -> tuple[Ints, Ints]:
        """(partition, broker) of every copy, sorted."""
        partition_of, broker_of = self.instance.partition_of_slot.astype(np.int64), self.broker_of_slot.astype(np.int64)
        order = np.lexsort((broker_of, partition_of))
        return partition_of[order], broker_of[order]

    def counts(self) -> Ints:
        """Copies per broker [B]."""
        return np.bincount(self.broker_of_slot + 1, minlength=self.instance.brokers + 1)[1:]

    def moved(self) -> Ints:
        """The slots, in order, whose copy is on a broker that did not hold the partition."""
        changed = np.flatnonzero(self.broker_of_slot != self.instance.broker_of_slot)
        return changed[~self.held_before(changed, self.broker_of_slot[changed])]

    def moves(self) -> int:
        """The number of replica moves."""
        return len(self.moved())

    def data(self, unit: int = 1) -> int:
        """The bytes that the moves copy, with every size rounded down to a multiple of ``unit``."""
        sizes: list[int] = self.instance.size[self.instance.partition_of_slot[self.moved()]].tolist()
        return sum(size // unit for size in sizes) * unit

    def held_before(self, slots: Ints, brokers: NDArray[np.integer]) -> Bools:
        """Whether the broker originally held the slot's partition."""
        partitions = self.instance.partition_of_slot[slots]
        found = np.zeros(len(slots), dtype=np.bool_)
        for piece in self.instance.chunks(partitions):
            homes = self.instance.rows(self.instance.broker_of_slot, partitions[piece])
            found[piece] = (homes == brokers[piece, None]).any(axis=1)
        return found

    def fits(self, slots: Ints, brokers: Ints) -> Bools:
        """Whether the slot's copy may be on that broker: it holds no other copy, and its group has capacity."""
        instance = self.instance
        partitions = instance.partition_of_slot[slots]
        found = np.zeros(len(slots), dtype=np.bool_)
        for piece in instance.chunks(partitions):
            p, d = partitions[piece], brokers[piece]
            others = instance.rows(self.broker_of_slot, p).copy()
            others[np.arange(len(p)), slots[piece] - instance.start[p]] = UNASSIGNED
            group = instance.group[d]
            held = (self._group[others] == group[:, None]).sum(axis=1)
            free = ~(others == d[:, None]).any(axis=1)
            found[piece] = free & (held < instance.rack_capacity[instance.kind[p], group])
        return found

    def open_groups(self, slots: Ints) -> Bools:
        """Which groups have capacity for the slots' copies [slots, G], not counting the slot itself."""
        instance = self.instance
        partitions = instance.partition_of_slot[slots]
        groups = np.arange(len(instance.group_size))
        found = np.zeros((len(slots), len(groups)), dtype=np.bool_)
        for piece in instance.chunks(partitions):
            p = partitions[piece]
            others = instance.rows(self.broker_of_slot, p).copy()
            others[np.arange(len(p)), slots[piece] - instance.start[p]] = UNASSIGNED
            held = np.zeros((len(p), len(groups)), dtype=np.int64)
            of = self._group[others]
            for column in of.T:
                inside = np.flatnonzero(column >= 0)
                held[inside, column[inside]] += 1
            found[piece] = held < instance.rack_capacity[instance.kind[p]]
        return found
