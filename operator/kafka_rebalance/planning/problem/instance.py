"""The request as sorted integer arrays, independent of the order in which brokers and partitions were listed.

Brokers and partitions are indices in sorted order. The replica lists are concatenated into one flat array; a *slot* is
an index into it. The rack rule counts replicas per *group*: every rack is a group; brokers without a rack share one
more group, which has no cap (each is its own rack, exempt from anti-affinity). With racks disabled all brokers are in
that group. Partitions with the same replication factor have the same *kind*.

An instance *shrinks* when some list is longer than its target replication factor: ``shrink_replication_factor`` decides
which replicas to drop. A function takes such an instance only if its docstring says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.model.goals import RackAwareness

Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Bools = NDArray[np.bool_]

UNPLACED = -1
"""The group of a broker that is not eligible."""

_NOBODY = -2
"""Pads the rows of partitions with fewer replicas in ``rows``."""

_CHUNK = 2**16
"""Cells of ``rows`` that exist at a time: bounds the memory at any replication factor."""


@dataclass(frozen=True)
class Instance:
    """P partitions with N replicas on B brokers in G groups, K replication factors.

    ``rf`` [P] target replication factors; ``broker_of_slot`` [N] the flat lists; ``eligible`` [B]; ``group`` [B]
    (UNPLACED if not eligible); ``group_size`` [G]; ``kind`` [P] the index into ``kinds`` [K], the distinct replication
    factors; ``rack_capacity`` [K, G] the most replicas of a partition in a group by the rack rule; ``rack_excess`` [K]
    how many of a partition's replicas must violate it. ``topic`` [P] numbers the topics, whose partitions are adjacent;
    ``size`` [P] the bytes of one replica; ``list_length`` [P] equals ``rf`` unless the instance shrinks.
    ``fixed_replicas`` and ``fixed_leaders`` [B] are those of partitions that are not moved; counts include them.
    ``tie_break`` [B]: brokers with higher values get spare copies first (None: those with the most copies now).
    """

    brokers: int
    rf: Ints
    broker_of_slot: Indices
    eligible: Bools
    group: Ints
    group_size: Ints
    kind: Ints
    kinds: Ints
    rack_capacity: Ints
    rack_excess: Ints
    rack_awareness: RackAwareness
    topic: Ints
    size: Ints
    list_length: Ints
    fixed_replicas: Ints
    fixed_leaders: Ints
    tie_break: Ints | None = None

    @cached_property
    def start(self) -> Ints:
        """The first slot of each partition [P]."""
        return np.cumsum(self.list_length) - self.list_length

    @cached_property
    def partition_of_slot(self) -> Indices:
        """The partition of each slot [N]."""
        return np.repeat(np.arange(len(self.rf), dtype=np.int32), self.list_length)

    @cached_property
    def shrinks(self) -> bool:
        """Whether some list is longer than its target replication factor."""
        return bool((self.list_length != self.rf).any())

    @cached_property
    def position(self) -> Indices:
        """The position of each slot in its list [N]."""
        return np.arange(len(self.broker_of_slot), dtype=np.int32) - np.repeat(
            self.start.astype(np.int32), self.list_length
        )

    @cached_property
    def sizes_differ(self) -> bool:
        """Whether plans with the same number of moves can copy different amounts of data.

        Sizes within one percent of the largest count as equal: they change while partitions are written, and plans
        would change with them.
        """
        largest = int(self.size.max(initial=0))
        return bool(len(self.size)) and (largest - int(self.size.min())) * 100 > largest

    @property
    def highest(self) -> int:
        """The most replicas that an eligible broker can have, fixed ones included."""
        return len(self.rf) + int(self.fixed_replicas[self.eligible].max(initial=0))

    @property
    def partition_capacity(self) -> Ints:
        """``room_of`` for each partition [P, G]."""
        return self.rack_capacity[self.kind]

    @property
    def partition_excess(self) -> Ints:
        """``excess_of`` for each partition [P]."""
        return self.rack_excess[self.kind]

    def replicas(self, slots: Ints) -> tuple[Ints, Ints]:
        """Partition and broker of these slots, as 64-bit columns."""
        return self.partition_of_slot[slots].astype(np.int64), self.broker_of_slot[slots].astype(np.int64)

    def part(self, chosen: Bools) -> Self:
        """Only the chosen [P] partitions; the others become fixed replicas and leaders."""
        slots = chosen[self.partition_of_slot]
        others, leads = self.broker_of_slot[~slots], self.broker_of_slot[self.start[~chosen]]
        return replace(
            self,
            rf=self.rf[chosen],
            list_length=self.list_length[chosen],
            kind=self.kind[chosen],
            topic=self.topic[chosen],
            size=self.size[chosen],
            broker_of_slot=self.broker_of_slot[slots],
            fixed_replicas=self.fixed_replicas + np.bincount(others, minlength=self.brokers),
            fixed_leaders=self.fixed_leaders + np.bincount(leads, minlength=self.brokers),
        )

    def rows(self, values: Indices, partitions: NDArray[np.integer]) -> NDArray[np.int32]:
        """The slots' values of these partitions, a row each; short rows are padded with a negative number."""
        if len(self.kinds) == 1:
            found: Indices = values.reshape(len(self.rf), -1)[partitions]
            return found
        lengths = self.rf[partitions]
        places = np.arange(int(lengths.max(initial=0)))
        slots = np.minimum(self.start[partitions][:, None] + places, len(values) - 1)
        return np.where(places < lengths[:, None], values[slots], np.int32(_NOBODY))

    def put(self, values: Indices, partitions: NDArray[np.integer], rows: Indices) -> None:
        """The reverse of ``rows``: write the rows into ``values``."""
        if len(self.kinds) == 1:
            values.reshape(len(self.rf), -1)[partitions] = rows
            return
        places = np.arange(rows.shape[1])
        inside = places < self.rf[partitions][:, None]
        values[(self.start[partitions][:, None] + places)[inside]] = rows[inside]

    def chunks(self, partitions: NDArray[np.integer]) -> Iterator[Ints]:
        """Positions in ``partitions``, in pieces whose rows have similar widths and fit into memory."""
        one_kind = len(self.kinds) == 1
        order = np.arange(len(partitions)) if one_kind else np.argsort(self.kind[partitions], kind="stable")
        at = 0
        while at < len(order):
            size = max(1, _CHUNK // int(self.rf[partitions[order[at]]]))
            piece = order[at : at + size]
            widths = self.rf[partitions[piece]]
            # Kinds are sorted: the piece ends where rows are more than twice as wide as its first.
            piece = piece[: int(np.searchsorted(widths, 2 * widths[0], side="right"))]
            yield piece
            at += len(piece)

    def crowd(self, broker_of_slot: Indices) -> Indices:
        """For each slot [N] how many replicas of its partition its group holds, itself included; 0 if UNPLACED."""
        found = np.zeros(len(broker_of_slot), dtype=np.int32)
        group = self.group.astype(np.int32)[broker_of_slot]
        everyone = np.arange(len(self.rf))
        for piece in self.chunks(everyone):
            groups = np.ascontiguousarray(self.rows(group, piece).T)  # a row for each place: long rows are fast
            same = np.zeros(groups.shape, dtype=np.int32)
            for other in groups:
                same += groups == other
            same[groups < 0] = 0
            self.put(found, piece, same.T)
        return found

    def overfull(self, broker_of_slot: Indices) -> tuple[Ints, Ints]:
        """The slots whose group exceeds its capacity for their partition, and by how many replicas."""
        crowd = self.crowd(broker_of_slot)
        least = int(self.rack_capacity[:, self.group_size > 0].min(initial=crowd.max(initial=0)))
        slots = np.flatnonzero(crowd > least)  # few; only these need their own capacity
        kind, group = self.kind[self.partition_of_slot[slots]], self.group[broker_of_slot[slots]]
        over = crowd[slots] - self.rack_capacity[kind, group]
        return slots[over > 0], over[over > 0]

    def violations(self, broker_of_slot: Indices) -> int:
        """Number of replicas above the capacity of their groups in these flat lists."""
        slots, over = self.overfull(broker_of_slot)
        cell = self.partition_of_slot[slots] * np.int64(len(self.group_size)) + self.group[broker_of_slot[slots]]
        _, first = np.unique(cell, return_index=True)
        return int(over[first].sum())


def encode(
    racks: Sequence[str | None],
    eligible: Bools,
    rf: Ints,
    broker_of_slot: NDArray[np.integer],
    rack_awareness: RackAwareness,
    *,
    topic: Ints | None = None,
    size: Ints | None = None,
    list_length: Ints | None = None,
    fixed_replicas: Ints | None = None,
    fixed_leaders: Ints | None = None,
) -> Instance:
    """The instance of brokers 0..B-1 with these racks, eligibility and flat lists.

    None: one topic, no bytes, ``list_length`` as ``rf``, no fixed replicas or leaders.
    """
    nothing = np.zeros(len(racks), dtype=np.int64)
    group, group_size = _groups(racks, eligible, rack_awareness)
    kinds, kind = np.unique(rf, return_inverse=True)
    free_group = len(group_size) - 1
    rack_count = max(1, int((group_size[:free_group] > 0).sum()) + int(group_size[free_group]))
    cap = np.maximum(1, -(-kinds // rack_count))
    rack_capacity = np.minimum(cap[:, None], group_size[None, :])
    rack_capacity[:, free_group] = np.minimum(kinds, group_size[free_group])
    return Instance(
        brokers=len(racks),
        rf=rf,
        broker_of_slot=broker_of_slot.astype(np.int32),
        eligible=eligible,
        group=group,
        group_size=group_size,
        kind=kind.astype(np.int64),
        kinds=kinds,
        rack_capacity=rack_capacity,
        rack_excess=np.maximum(kinds - rack_capacity.sum(axis=1), 0),
        rack_awareness=rack_awareness,
        topic=np.zeros(len(rf), dtype=np.int64) if topic is None else topic,
        size=np.zeros(len(rf), dtype=np.int64) if size is None else size,
        list_length=rf if list_length is None else list_length,
        fixed_replicas=nothing if fixed_replicas is None else fixed_replicas,
        fixed_leaders=nothing if fixed_leaders is None else fixed_leaders,
    )


def without_racks(instance: Instance) -> Instance:
    """The same instance with racks disabled."""
    size = np.array([int(instance.eligible.sum())])
    return replace(
        instance,
        group=np.where(instance.eligible, 0, UNPLACED),
        group_size=size,
        rack_capacity=np.minimum(instance.kinds, size)[:, None],
        rack_excess=np.zeros(len(instance.kinds), dtype=np.int64),
        rack_awareness=RackAwareness.DISABLED,
    )


def _groups(racks: Sequence[str | None], eligible: Bools, rack_awareness: RackAwareness) -> tuple[Ints, Ints]:
    """The group of each broker, and the groups' sizes; only racks of eligible brokers count."""
    enforce = rack_awareness is not RackAwareness.DISABLED
    names = [rack if enforce else None for rack in racks]
    used = sorted({name for name, target in zip(names, eligible, strict=True) if target and name is not None})
    number: dict[str | None, int] = {name: i for i, name in enumerate(used)}
    number[None] = len(used)
    group = np.array(
        [number[name] if target else UNPLACED for name, target in zip(names, eligible, strict=True)], dtype=np.int64
    )
    return group, np.bincount(group[group >= 0], minlength=len(used) + 1).astype(np.int64)
