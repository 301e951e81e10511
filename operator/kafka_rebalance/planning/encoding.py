"""Turns a request into an instance: checked, sorted, counted. Says which partition or broker is at fault."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.topology import BrokerId, Replicas
from kafka_rebalance.planning.instance import Indices, Instance, Ints, encode
from kafka_rebalance.planning.request import PartitionInput, PlanRequest

_INT32 = range(-(2**31), 2**31)
"""Broker ids are 32 bits wide in Kafka's protocol."""

_LARGEST = 2**50
"""A partition is taken to have no more bytes than a pebibyte."""


@dataclass(frozen=True)
class Encoded:
    """The instance, and what its indices stand for."""

    instance: Instance
    partitions: tuple[PartitionInput, ...]
    brokers: tuple[BrokerId, ...]

    def ids(self, indices: Indices) -> Replicas:
        """Broker indices as broker ids."""
        return tuple(map(self.brokers.__getitem__, indices.tolist()))


def build(request: PlanRequest) -> Encoded:
    """Check the request and encode it. Raises Refused naming the partition or broker at fault."""
    partitions = [p for p in request.partitions if p.has_leader]
    if any(before.tp > after.tp for before, after in pairwise(partitions)):
        partitions.sort(key=lambda p: p.tp)
    _check_brokers(request)
    _check_partitions(partitions, len(request.targets), request)
    rf = np.fromiter((len(p.replicas) for p in partitions), dtype=np.int64, count=len(partitions))
    flat = np.fromiter(chain.from_iterable(p.replicas for p in partitions), dtype=np.int64, count=int(rf.sum()))
    ids = np.union1d(np.array([b.id for b in request.brokers], dtype=np.int64), flat)
    brokers = tuple(BrokerId(b) for b in ids.tolist())
    rack_of = {b.id: b.rack for b in request.brokers}
    eligible = np.array([b in request.targets for b in brokers], dtype=np.bool_)
    racks = [rack_of.get(b) for b in brokers]
    holder = np.searchsorted(ids, flat)
    _check_lists(partitions, rf, holder)
    topic = _topics(partitions)
    size = np.fromiter((min(p.size_bytes, _LARGEST) for p in partitions), dtype=np.int64, count=len(partitions))
    instance = encode(racks, eligible, rf, holder, request.goals.rack_awareness, topic, size)
    return Encoded(instance, tuple(partitions), brokers)


def _topics(partitions: list[PartitionInput]) -> Ints:
    """The number of each partition's topic; they are sorted by topic."""
    begins = (before.tp.topic != after.tp.topic for before, after in pairwise(partitions))
    return np.cumsum(np.fromiter(chain((0,), begins), dtype=np.int64, count=max(1, len(partitions)))[: len(partitions)])


def _check_brokers(request: PlanRequest) -> None:
    known = Counter(b.id for b in request.brokers)
    doubled = sorted(b for b, n in known.items() if n > 1)
    if doubled:
        raise Refused("DuplicateBroker", f"broker {doubled[0]} is listed more than once")
    unknown = sorted(request.targets - known.keys())
    if unknown:
        raise Refused("UnknownBroker", f"broker {unknown[0]} is to hold replicas but is not in the cluster")
    impossible = sorted(b for b in known if b not in _INT32)
    if impossible:
        raise Refused("InvalidBroker", f"broker {impossible[0]} has an id of more than 32 bits")


def _check_partitions(partitions: list[PartitionInput], targets: int, request: PlanRequest) -> None:
    for before, after in pairwise(partitions):
        if before.tp == after.tp:
            raise Refused("DuplicatePartition", f"topic-partition {after.tp} is listed more than once")
    for p in partitions:
        if not p.replicas:
            raise Refused("NoReplicas", f"topic-partition {p.tp} has no replicas")
        if len(p.replicas) > targets:
            raise Refused(
                "InsufficientBrokers",
                f"topic-partition {p.tp} has {len(p.replicas)} replicas, only {targets} eligible brokers: "
                f"{sorted(request.targets)}",
            )
    for p in partitions:
        if min(p.replicas) not in _INT32 or max(p.replicas) not in _INT32:
            raise Refused("InvalidBroker", f"topic-partition {p.tp} lists a broker id of more than 32 bits")


def _check_lists(partitions: list[PartitionInput], rf: Ints, holder: NDArray[np.integer]) -> None:
    """No list names a broker twice."""
    owner = np.repeat(np.arange(len(rf)), rf)
    sign = np.sort(owner * (int(holder.max(initial=0)) + 1) + holder)
    same = np.flatnonzero(sign[1:] == sign[:-1])
    if len(same):
        p = partitions[int(sign[same[0]] // (int(holder.max()) + 1))]
        raise Refused("DuplicateReplica", f"topic-partition {p.tp} lists a broker twice: {list(p.replicas)}")
