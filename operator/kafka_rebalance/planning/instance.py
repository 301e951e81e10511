"""The request as sorted integer arrays: validated once, the same whatever order things were listed in.

Brokers and partitions become indices in sorted order. A *group* is what the rack rule counts in: every rack is one
group; the brokers without a rack share one more group, which has no cap (each of them is its own rack, exempt from
anti-affinity). With racks disabled all brokers are in that group.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.topology import BrokerId, Replicas
from kafka_rebalance.planning.request import PartitionInput, PlanRequest, RackAwareness

Ints = NDArray[np.int64]

UNPLACED = -1
"""The group of a broker that may hold nothing."""


@dataclass(frozen=True)
class Instance:
    """P partitions on B brokers in G groups.

    ``rf`` [P]; ``owner``, ``holder``, ``position`` [sum of rf] list every present replica as (partition, broker, place
    in the list); ``eligible`` [B]; ``group`` [B] (UNPLACED where not eligible); ``group_size`` [G]; ``room`` [P, G] is
    how many replicas of a partition a group takes without violating the rack rule; ``excess`` [P] how many of a
    partition's replicas cannot be placed without.
    """

    partitions: tuple[PartitionInput, ...]
    brokers: tuple[BrokerId, ...]
    rf: Ints
    owner: Ints
    holder: Ints
    position: Ints
    eligible: NDArray[np.bool_]
    group: Ints
    group_size: Ints
    room: Ints
    excess: Ints
    rack_awareness: RackAwareness

    def ids(self, indices: Ints | list[int]) -> Replicas:
        """Broker indices as an assignment."""
        return tuple(self.brokers[i] for i in indices)

    def violations(self, owner: Ints, holder: Ints) -> int:
        """How many of the placed replicas are above their group's room."""
        held = np.zeros_like(self.room)
        np.add.at(held, (owner, self.group[holder]), 1)
        return int(np.maximum(held - self.room, 0).sum())


def build(request: PlanRequest) -> Instance:
    """Check the request and encode it. Raises Refused naming the partition or broker at fault."""
    partitions = tuple(sorted((p for p in request.partitions if p.has_leader), key=lambda p: p.tp))
    _check(request, partitions)
    brokers = tuple(sorted({b.id for b in request.brokers} | {b for p in partitions for b in p.replicas}))
    index = {b: i for i, b in enumerate(brokers)}
    rf = np.array([len(p.replicas) for p in partitions], dtype=np.int64)
    eligible = np.array([b in request.targets for b in brokers], dtype=np.bool_)
    group, group_size, room = _rack_rule(request, brokers, rf)
    return Instance(
        partitions=partitions,
        brokers=brokers,
        rf=rf,
        owner=np.repeat(np.arange(len(rf)), rf),
        holder=np.array([index[b] for p in partitions for b in p.replicas], dtype=np.int64),
        position=np.array([i for n in rf for i in range(n)], dtype=np.int64),
        eligible=eligible,
        group=group,
        group_size=group_size,
        room=room,
        excess=np.maximum(rf - room.sum(axis=1), 0),
        rack_awareness=request.goals.rack_awareness,
    )


def _rack_rule(request: PlanRequest, brokers: tuple[BrokerId, ...], rf: Ints) -> tuple[Ints, Ints, Ints]:
    """Groups and the cap max(1, ceil(RF / racks)), racks counted over the target brokers only."""
    enforce = request.goals.rack_awareness is not RackAwareness.DISABLED
    rack_of = {b.id: b.rack if enforce else None for b in request.brokers if b.id in request.targets}
    racks = sorted({r for r in rack_of.values() if r is not None})
    number: dict[str | None, int] = {r: i for i, r in enumerate(racks)}
    free_group = len(racks)
    number[None] = free_group
    group = np.array([number[rack_of[b]] if b in rack_of else UNPLACED for b in brokers], dtype=np.int64)
    group_size = np.bincount(group[group >= 0], minlength=free_group + 1).astype(np.int64)
    rack_count = max(1, len(racks) + int(group_size[free_group]))
    cap = np.maximum(1, -(-rf // rack_count))
    room = np.minimum(cap[:, None], group_size[None, :])
    room[:, free_group] = np.minimum(rf, group_size[free_group])
    return group, group_size, room


def _check(request: PlanRequest, partitions: tuple[PartitionInput, ...]) -> None:
    known = Counter(b.id for b in request.brokers)
    doubled = sorted(b for b, n in known.items() if n > 1)
    if doubled:
        raise Refused("DuplicateBroker", f"broker {doubled[0]} is listed more than once")
    unknown = sorted(request.targets - known.keys())
    if unknown:
        raise Refused("UnknownBroker", f"broker {unknown[0]} is to hold replicas but is not in the cluster")
    for before, after in pairwise(partitions):
        if before.tp == after.tp:
            raise Refused("DuplicatePartition", f"topic-partition {after.tp} is listed more than once")
    for p in partitions:
        if not p.replicas:
            raise Refused("NoReplicas", f"topic-partition {p.tp} has no replicas")
        if len(set(p.replicas)) != len(p.replicas):
            raise Refused("DuplicateReplica", f"topic-partition {p.tp} lists a broker twice: {list(p.replicas)}")
        if len(p.replicas) > len(request.targets):
            raise Refused(
                "InsufficientBrokers",
                f"topic-partition {p.tp} has {len(p.replicas)} replicas, only {len(request.targets)} eligible brokers: "
                f"{sorted(request.targets)}",
            )
