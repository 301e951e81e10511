"""What replicas use of each resource, and what brokers carry now. Needs no compiled code."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.planning.load.array_types import Floats, Ints
from kafka_rebalance.planning.problem.request import PartitionInput


def uses(
    partitions: Sequence[PartitionInput], resources: tuple[LoadResource, ...], size: Floats, rf: Ints
) -> tuple[Floats, Floats]:
    """What each replica uses, and what the leader uses besides [P, R]."""
    none = (0.0,) * len(resources)
    rows = chain.from_iterable(p.loads or none for p in partitions)
    loads = np.fromiter(rows, dtype=np.float64).reshape(len(partitions), len(none))
    follows, leads = np.zeros_like(loads), np.zeros_like(loads)
    written = np.array([p.written for p in partitions], dtype=np.float64)
    for resource in (LoadResource.LEADER_BYTES_IN, LoadResource.BYTES_IN):
        if resource in resources:
            written = loads[:, resources.index(resource)]
    for r, resource in enumerate(resources):
        if resource is LoadResource.DISK:
            follows[:, r] = size
        elif resource is LoadResource.BYTES_IN:
            follows[:, r] = loads[:, r]
        elif resource is LoadResource.LEADER_BYTES_IN:
            leads[:, r] = loads[:, r]
        else:
            leads[:, r] = loads[:, r] + (rf - 1) * written  # consumers and followers fetch from the leader
    return follows, leads


def use_in_place(
    partitions: Sequence[PartitionInput], resources: tuple[LoadResource, ...], brokers: tuple[BrokerId, ...]
) -> Floats:
    """The use [B, R] of partitions on the brokers that hold them now: of those that do not move, for example."""
    fixed = np.zeros((len(brokers), len(resources)))
    number = {b: i for i, b in enumerate(brokers)}
    if not partitions:
        return fixed
    size = np.array([p.size_bytes for p in partitions], dtype=np.float64)
    follows, leads = uses(partitions, resources, size, np.array([len(p.replicas) for p in partitions]))
    for i, p in enumerate(partitions):
        for place, b in enumerate(p.replicas):
            if b not in number:
                continue
            used = follows[i] + (leads[i] if place == 0 else 0)
            if p.replica_bytes and LoadResource.DISK in resources:
                used[resources.index(LoadResource.DISK)] = p.replica_bytes[place]
            fixed[number[b]] += used
    return fixed
