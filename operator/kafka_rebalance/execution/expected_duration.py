"""How long a plan takes by the runs before it, and the throttle with which it ends in time. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from kafka_rebalance.execution.reassignment_throttle import ClusterRates
from kafka_rebalance.model.duration_model import DurationModel
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.run_shape import CopyStep, Flow, RunShape, shape_of

_LOWEST_RATE, _HIGHEST_RATE = 1 << 10, 100 << 30
"""Bytes per second between which a throttle is looked for."""


def shape_of_plan(plan: Plan, rates: ClusterRates, parallel_replicas: int, parallel_partitions: int) -> RunShape:
    """The run that carries the plan out, at most R replicas in a step. The present leaders are assumed as sources."""
    return shape_of(_steps(plan, rates, parallel_replicas), parallel_partitions)


def rate_to_end_within(
    seconds: float, plan: Plan, model: DurationModel, parallel_replicas: int, parallel_partitions: int
) -> int | None:
    """The lowest rate on both sides of each broker with which nine of ten such runs end in time.

    None: no rate does, or the model knows no throttled runs.
    """

    free = shape_of_plan(plan, ClusterRates(), parallel_replicas, parallel_partitions)

    def late(rate: int) -> bool:
        pipes, alone = (tuple(Flow(flow.amount, rate) for flow in flows) for flows in (free.pipes, free.alone))
        found = model.interval(replace(free, pipes=pipes, alone=alone))
        return found is None or found[1] > seconds

    low, high = _LOWEST_RATE, _HIGHEST_RATE
    if late(high):
        return None
    while high - low > low // 100:
        middle = (low + high) // 2
        low, high = (middle, high) if late(middle) else (low, middle)
    return high


def _steps(plan: Plan, rates: ClusterRates, parallel_replicas: int) -> Iterator[CopyStep]:
    for p in plan.partitions:
        source = p.current[0] if p.current else None
        for start in range(0, len(p.added), parallel_replicas):
            into = p.added[start : start + parallel_replicas]
            leader_rate = rates.on(source).leader if source is not None else None
            yield CopyStep(p.size_bytes, source, into, leader_rate, tuple(rates.on(b).follower for b in into))
