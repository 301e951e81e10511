"""The planner: the order of objectives of the design, one line each. Everything is decided by what it is given.

1. hard rules and the rack rule, 2. fair replica counts  -> balance.fair_counts
3. fewest moves among all placements with such counts    -> placement.place
4. leaders, 5. follower order, 6. fewest leader changes  -> order.arrange, exact for the replica sets of 3;
                                                            joint.better_sets chooses among those in small clusters
"""

from __future__ import annotations

from kafka_rebalance.model.plan import Plan, PlannedPartition, SkippedPartition
from kafka_rebalance.planning.balance import fair_counts
from kafka_rebalance.planning.instance import build
from kafka_rebalance.planning.joint import better_sets
from kafka_rebalance.planning.order import arrange
from kafka_rebalance.planning.placement import place
from kafka_rebalance.planning.request import PlanRequest


def plan(request: PlanRequest) -> Plan:
    """The balanced plan with the fewest moves, proved. Raises Refused where the request contradicts itself."""
    instance = build(request)
    skipped = tuple(
        sorted((SkippedPartition(p.tp, "NoLeader") for p in request.partitions if not p.has_leader), key=_tp)
    )
    if not instance.partitions:
        return Plan(partitions=(), lower_bound=0, optimal=True, skipped=skipped)
    placed = place(instance, fair_counts(instance))
    lists = arrange(instance, placed, request.goals)
    better = better_sets(instance, placed, lists, request.goals)
    if better is not None:
        placed, lists = better, arrange(instance, better, request.goals)
    planned = tuple(
        PlannedPartition(p.tp, p.replicas, target, p.topic_id, p.size_bytes)
        for p, target in ((p, instance.ids(row)) for p, row in zip(instance.partitions, lists, strict=True))
        if target != p.replicas
    )
    moves = sum(len(p.added) for p in planned)
    # The flow is exact, so it is its own bound.
    return Plan(planned, moves, optimal=True, rack_violations=instance.violations(*placed), skipped=skipped)


def _tp(skipped: SkippedPartition) -> tuple[str, int]:
    return skipped.tp
