"""The hard rules of plans with load goals, recounted from the request and the plan alone."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.property.planning_judge import result

from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.planning import PartitionInput, PlanRequest

Use = dict[tuple[BrokerId, LoadResource], float]


def use(request: PlanRequest, lists: dict[TopicPartition, Replicas]) -> Use:
    """What each broker uses of each resource of the goals."""
    found: Use = defaultdict(float)
    for p in request.partitions:
        replicas = lists.get(p.tp, p.replicas)
        for place, b in enumerate(replicas):
            for i, goal in enumerate(request.goals.load):
                found[b, goal.resource] += _replica(request, p, i, b, leads=place == 0, rf=len(replicas))
    return found


def _replica(request: PlanRequest, p: PartitionInput, i: int, b: BrokerId, *, leads: bool, rf: int) -> float:
    goals = request.goals.load
    resource = goals[i].resource
    if resource is LoadResource.DISK:
        held = dict(zip(p.replicas, p.replica_bytes, strict=True)) if p.replica_bytes else {}
        return held.get(b, p.size_bytes)
    rate = p.loads[i] if p.loads else 0.0
    if resource is LoadResource.BYTES_IN:
        return rate
    if not leads:
        return 0.0
    if resource is LoadResource.LEADER_BYTES_IN:
        return rate
    names = [goal.resource for goal in goals]
    known = [name for name in (LoadResource.BYTES_IN, LoadResource.LEADER_BYTES_IN) if name in names]
    written = p.loads[names.index(known[0])] if known and p.loads else p.written
    return rate + (rf - 1) * written


def check_load(request: PlanRequest, made: Plan, counts: Counter[BrokerId] | None) -> Use:
    """Eligibility, pinned partitions, counts (None: not kept) and limits hold; returns the use at the end."""
    after = result(request, made)
    for p in request.partitions:
        row = after.get(p.tp, p.replicas)
        if p.pinned or not p.has_leader:
            assert row == p.replicas
            continue
        assert len(set(row)) == len(row)
        assert set(row) <= request.targets
    if counts is not None:
        found = Counter(b for row in after.values() for b in row)
        assert sorted(found[b] for b in request.targets) == sorted(counts[b] for b in request.targets)
    return check_limits(request, after)


def check_limits(request: PlanRequest, after: dict[TopicPartition, Replicas]) -> Use:
    """No broker is above a limit, or further above it than before; returns the use at the end."""
    before, now = use(request, {}), use(request, after)
    for goal in request.goals.load:
        for b in request.targets:
            capacity = request.capacities.get(b, {}).get(goal.resource)
            if capacity is None or goal.capacity_limit is None:
                continue
            limit = max(capacity * goal.capacity_limit / 100, before[b, goal.resource])
            assert now[b, goal.resource] <= limit * (1 + 1e-6) + 1e-6
    return now
