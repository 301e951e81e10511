"""The rack rule for explanations: how many copies of a partition a broker's rack has, and may have."""

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.model.plan import PlannedPartition
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.planning.problem.instance import encode
from kafka_rebalance.planning.problem.request import PlanRequest


class RackRule:
    """The rule for partitions of these replication factors (``kinds``)."""

    def __init__(self, request: PlanRequest, kinds: Iterable[int]) -> None:
        self._targets = request.targets
        self._awareness = request.goals.rack_awareness
        self._rack = {b.id: b.rack for b in request.brokers}
        self._kinds = kinds

    def rack(self, broker: BrokerId) -> str | None:
        """The broker's rack; None if racks are disabled."""
        return None if self._awareness is RackAwareness.DISABLED else self._rack.get(broker)

    def beside(self, brokers: Iterable[BrokerId], broker: BrokerId) -> int:
        """How many of these brokers are in the rack of ``broker``: target brokers only, itself included.

        A broker without a rack is its own rack.
        """
        rack = self.rack(broker)
        if rack is None:
            return sum(b == broker for b in brokers)
        return sum(b in self._targets and self._rack.get(b) == rack for b in brokers)

    def capacity(self, replicas: int, broker: BrokerId) -> int:
        """The most copies of a partition with this many replicas in a target broker's rack; 0 for other brokers."""
        return self._capacity.get((replicas, broker), 0)

    def has_capacity(self, p: PlannedPartition, broker: BrokerId) -> bool:
        """Whether the rule allows this broker to get a new copy instead of one that gets it."""
        capacity = self.capacity(len(p.target), broker)
        return any(self.beside([b for b in p.target if b != chosen], broker) < capacity for chosen in p.added)

    @cached_property
    def _capacity(self) -> Mapping[tuple[int, BrokerId], int]:
        kinds, brokers = sorted(set(self._kinds)), sorted(self._rack)
        eligible = np.array([b in self._targets for b in brokers], dtype=np.bool_)
        rf = np.array(kinds, dtype=np.int64)
        # An instance with one partition for each replication factor: the rule depends on nothing else.
        nowhere = np.zeros(int(rf.sum()), dtype=np.int64)
        rule = encode([self._rack[b] for b in brokers], eligible, rf, nowhere, self._awareness)
        return {
            (kind, b): int(rule.rack_capacity[k, rule.group[i]])
            for k, kind in enumerate(kinds)
            for i, b in enumerate(brokers)
            if b in self._targets
        }
