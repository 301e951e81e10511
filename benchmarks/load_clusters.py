"""Clusters with skewed loads, for the benchmark of planning by load."""

import numpy as np

from kafka_rebalance.model.goals import LoadGoal, LoadResource
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest

RACKS = 5
FACTOR = 3
SIGMA = 1.5
"""The standard deviation of the logarithm of the sizes."""
GIB = 2**30


def load_request(
    partitions: int, brokers: int, *, band: int = 10, resources: int = 4, mixed: bool = False
) -> PlanRequest:
    """Counts are even and racks distinct; sizes and rates are skewed. ``mixed``: every other broker is twice as big."""
    rng = np.random.default_rng(7)
    size = rng.lognormal(0, SIGMA, partitions)
    written = size * rng.lognormal(0, 0.8, partitions)
    read = written * rng.integers(1, 7, partitions)
    rack = np.arange(brokers) % RACKS
    lists = np.empty((partitions, FACTOR), dtype=np.int64)
    racks = np.argsort(rng.random((partitions, RACKS)), axis=1)[:, :FACTOR]
    for r in range(RACKS):
        cells = np.argwhere(racks == r)
        rng.shuffle(cells)
        here = np.flatnonzero(rack == r)
        lists[cells[:, 0], cells[:, 1]] = here[np.arange(len(cells)) % len(here)]
    goals = tuple(LoadGoal(resource, band) for resource in list(LoadResource)[:resources])
    sizes = (size * GIB).astype(np.int64)
    loads = np.stack([sizes, written * 1e5, read * 1e5, written * 1e5], axis=1)[:, :resources]
    rows = zip(lists.tolist(), sizes.tolist(), loads.tolist(), strict=True)
    inputs = tuple(
        PartitionInput(TopicPartition("t", p), tuple(map(BrokerId, row)), size_bytes=bytes_, loads=tuple(each))
        for p, (row, bytes_, each) in enumerate(rows)
    )
    ids = [BrokerId(b) for b in range(brokers)]
    capacities = {}
    if mixed:
        rates = np.array([1, 1, 1 + 0, 1])[:resources]
        whole = np.array([FACTOR * sizes.sum(), FACTOR * loads[:, min(1, resources - 1)].sum()])
        used = [whole[0], whole[1], (read + (FACTOR - 1) * written).sum() * 1e5, written.sum() * 1e5][:resources]
        for b in ids:
            part = (1 + b % 2) / (1.5 * brokers)
            capacities[b] = {
                goal.resource: int(2 * part * total * rate)
                for goal, total, rate in zip(goals, used, rates, strict=True)
            }
    known = tuple(Broker(b, f"rack-{r}") for b, r in zip(ids, rack.tolist(), strict=True))
    return PlanRequest(known, inputs, frozenset(ids), Goals(load=goals), capacities=capacities)
