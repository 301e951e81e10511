"""The strategy Generate: the from-scratch rule of ``kafka-reassign-partitions.sh --generate``, kept for comparison.

Kafka 4 places each topic anew with the controller's StripedReplicaPlacer: partitions begin at the next rack each time,
replicas go round the racks from there, and within a rack round its brokers; after as many partitions as there are
brokers all orders are shuffled. Kafka draws the first broker and the shuffles at random. Here every draw below a bound
is the CRC-32 of the topic's name modulo the bound: the plan is always the same, and is the one that Kafka's class makes
from the same numbers.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.planning.problem.request import PlanRequest
from kafka_rebalance.reasons import Reason

_Any = TypeVar("_Any")

Draw = Callable[[int], int]
"""A number from 0 to below the bound."""


def generate(request: PlanRequest, factors: Mapping[TopicPartition, int]) -> dict[TopicPartition, Replicas]:
    """A list for every partition given, skipped and pinned ones too: each topic is placed as a whole.

    ``factors`` are the replication factors of those that change. If they differ within a topic the lists are made for
    the largest and cut for the others: Kafka's rule has one per topic. Raises Refused(RackUnknown) if only some brokers
    have a rack, as Kafka's tool does.
    """
    racks = _racks(request)
    lists: dict[TopicPartition, Replicas] = {}
    partitions = sorted(request.partitions, key=lambda p: p.tp)
    for topic, members in groupby(partitions, key=lambda p: p.tp.topic):
        rows = list(members)
        wanted = [min(factors.get(p.tp, len(p.replicas)), len(racks)) for p in rows]
        found = striped(racks, max(wanted), len(rows), drawn_for(topic))
        lists |= {p.tp: row[:count] for p, row, count in zip(rows, found, wanted, strict=True)}
    return lists


def drawn_for(topic: str) -> Draw:
    """Replaces random draws: the topic's number modulo the bound."""
    number = zlib.crc32(topic.encode())
    return lambda bound: number % bound


def striped(racks: Mapping[BrokerId, str | None], factor: int, partitions: int, draw: Draw) -> list[Replicas]:
    """One topic's lists, partition by partition, as Kafka's StripedReplicaPlacer makes them from these numbers."""
    stripes = _Stripes(racks, draw)
    return [stripes.place(factor) for _ in range(partitions)]


def _racks(request: PlanRequest) -> dict[BrokerId, str | None]:
    aware = request.goals.rack_awareness is not RackAwareness.DISABLED
    racks = {b.id: b.rack if aware else None for b in request.brokers if b.id in request.targets}
    no_rack = sorted(b for b, rack in racks.items() if rack is None)
    if 0 < len(no_rack) < len(racks):
        told = f"broker {no_rack[0]} has no rack and others have: Kafka's rule needs all or none of them"
        raise Refused(Reason.RACK_UNKNOWN, f"{told}; goals.rackAwareness: Disabled leaves racks out")
    return racks


@dataclass
class _Rack:
    """The brokers of a rack, and where its round begins and stands in this epoch."""

    brokers: list[BrokerId]
    offset: int
    index: int = 0
    epoch: int = 0

    def next(self, epoch: int) -> BrokerId | None:
        """The next broker of the round; None when all have had their turn in this epoch, which is a partition's."""
        if self.epoch != epoch:
            self.epoch, self.index = epoch, 0
            self.offset = (self.offset + 1) % len(self.brokers)
        if self.index >= len(self.brokers):
            return None
        broker = self.brokers[(self.index + self.offset) % len(self.brokers)]
        self.index += 1
        return broker


class _Stripes:
    """The racks in their order, and the one at which the next partition begins."""

    def __init__(self, racks: Mapping[BrokerId, str | None], draw: Draw) -> None:
        self._draw = draw
        names = {name: [b for b in sorted(racks) if racks[b] == name] for name in set(racks.values())}
        # As Java orders strings; the brokers without a rack come first.
        ordered = sorted(names, key=lambda name: (name is not None, (name or "").encode("utf-16-be")))
        self._racks = [_Rack(names[name], draw(len(names[name]))) for name in ordered]
        self._brokers = len(racks)
        self._offset = draw(len(self._racks))
        self._epoch = 0

    def place(self, factor: int) -> Replicas:
        """The next partition's list; not more replicas than brokers."""
        if self._epoch == self._brokers > 1:
            self._shuffle()
            self._epoch = 0
        self._offset %= len(self._racks)
        leads = self._offset
        while (broker := self._racks[leads].next(self._epoch)) is None:
            leads = (leads + 1) % len(self._racks)
        replicas = [broker]
        at: int = self._offset
        passed = False  # the rack of the leader has been passed by once
        while len(replicas) < factor:
            if at == leads and not passed:
                passed = True
            elif (follower := self._racks[at].next(self._epoch)) is not None:
                replicas.append(follower)
            at = (at + 1) % len(self._racks)
        self._epoch += 1
        self._offset += 1
        return tuple(replicas)

    def _shuffle(self) -> None:
        _shuffle(self._racks, self._draw)
        for rack in self._racks:
            _shuffle(rack.brokers, self._draw)


def _shuffle(order: list[_Any], draw: Draw) -> None:
    """Java's Collections.shuffle with these numbers."""
    for size in range(len(order), 1, -1):
        other = draw(size)
        order[size - 1], order[other] = order[other], order[size - 1]
