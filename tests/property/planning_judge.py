"""Judges plans by counting, without any of the planner's code. ``planning_optima`` computes the optima."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Any

from kafka_rebalance.model.goals import Balance, RackAwareness, Strategy
from kafka_rebalance.model.plan import Plan, Spread
from kafka_rebalance.model.topology import Replicas, TopicPartition
from kafka_rebalance.planning import PartitionInput, PlanRequest


@dataclass(frozen=True)
class Metrics:
    """The levels of the objective, most important first (Preferred swaps racks and counts)."""

    rack_violations: int
    count_sumsq: int
    moves: int
    leader_sumsq: int
    pair_sumsq: int
    leader_changes: int


def present(request: PlanRequest) -> dict[TopicPartition, Replicas]:
    """The lists that count: those without a leader count only if they are pinned."""
    return {p.tp: p.replicas for p in request.partitions if p.counts}


def staying(request: PlanRequest) -> list[Replicas]:
    """The lists of pinned partitions."""
    return [p.replicas for p in request.partitions if p.pinned]


def result(request: PlanRequest, made: Plan) -> dict[TopicPartition, Replicas]:
    """Every partition's list after the plan, except those that do not count."""
    after = present(request)
    for p in made.partitions:
        assert after[p.tp] == p.current, f"{p.tp} was planned from another list"
        assert p.target != p.current, f"{p.tp} is unchanged"
        after[p.tp] = p.target
    return after


def check(request: PlanRequest, made: Plan) -> Metrics:
    """Assert every hard rule and that the plan's own figures are correct; return its metrics."""
    before = present(request)
    pinned = {p.tp for p in request.partitions if p.pinned}
    after = result(request, made)
    for tp, replicas in after.items():
        assert tp not in pinned or replicas == before[tp], f"{tp} is pinned"
        if tp in pinned:
            continue
        assert len(replicas) == (request.replication_factor or len(before[tp])), f"{tp} has another replication factor"
        assert len(set(replicas)) == len(replicas), f"{tp} is on one broker twice"
        assert set(replicas) <= request.targets, f"{tp} is on a broker that may hold nothing"
    assert list(made.partitions) == sorted(made.partitions)
    assert {s.tp for s in made.skipped} == {p.tp for p in request.partitions if not p.has_leader}
    metrics = measure(request, before, after)
    assert made.replica_moves == metrics.moves
    assert made.leader_moves == metrics.leader_changes
    assert made.rack_violations == metrics.rack_violations
    assert made.certificate.lower_bound <= metrics.moves
    if request.strategy in {Strategy.GENERATE, Strategy.ASSIGNMENT}:  # not optimised for moves: nothing is proved
        assert (made.certificate.lower_bound, made.certificate.optimal) == (metrics.moves, metrics.moves == 0)
    elif request.goals.load or made.load is not None:  # few moves alone do not prove that load is balanced
        assert not made.certificate.optimal or made.certificate.lower_bound == metrics.moves
    else:
        assert made.certificate.optimal == (made.certificate.lower_bound == metrics.moves)
    assert (made.before, made.after) == (_spread(request, before.values()), _spread(request, after.values()))
    return metrics


def _spread(request: PlanRequest, lists: Iterable[Replicas]) -> Spread:
    lists = list(lists)
    counts = [sum(b in replicas for replicas in lists) for b in request.targets]
    return Spread(min(counts), max(counts)) if lists else Spread(0, 0)


def measure(
    request: PlanRequest, before: Mapping[TopicPartition, Replicas], after: Mapping[TopicPartition, Replicas]
) -> Metrics:
    movable = [p.tp for p in request.partitions if p.has_leader and not p.pinned]
    return Metrics(
        rack_violations=sum(list_violations(request, after[tp]) for tp in movable),
        count_sumsq=_sumsq(b for replicas in after.values() for b in replicas if b in request.targets),
        moves=sum(len(set(after[tp]) - set(before[tp])) for tp in after),
        leader_sumsq=_sumsq(replicas[0] for replicas in after.values() if replicas[0] in request.targets),
        pair_sumsq=_sumsq(after[tp][:2] for tp in movable if len(after[tp]) > 1),
        leader_changes=sum(after[tp][0] != before[tp][0] for tp in after),
    )


def _sumsq(things: Iterable[object]) -> int:
    return sum(n * n for n in Counter(things).values())


def target_racks(request: PlanRequest) -> dict[int, str | None]:
    seen = request.goals.rack_awareness is not RackAwareness.DISABLED
    return {b.id: b.rack if seen else None for b in request.brokers if b.id in request.targets}


def rack_cap(racks: Mapping[int, str | None], rf: int) -> int:
    count = len({r for r in racks.values() if r is not None}) + sum(r is None for r in racks.values())
    return max(1, -(-rf // count))


def list_violations(request: PlanRequest, replicas: Replicas) -> int:
    racks = target_racks(request)
    held = Counter(racks[b] for b in replicas if racks.get(b) is not None)
    return sum(max(0, n - rack_cap(racks, len(replicas))) for n in held.values())


Bought = tuple[int, int, int, int]
"""(replicas left on brokers that must not hold any, rack violations, sum of squared counts, moves), most important
first; Preferred ranks the violations below the squares. Pinned partitions count only in the squares. PerTopic: the
squared counts of each topic that is not pinned."""


def check_budget(request: PlanRequest, made: Plan) -> Bought:
    """Assert the rules that apply within a movement budget; return what the budget achieves."""
    before = present(request)
    size = {p.tp: p.size_bytes for p in request.partitions}
    after = result(request, made)
    pinned = pinned_inputs(request)
    assert all(after.pop(p.tp) == p.replicas for p in pinned), "a pinned partition stays"
    for tp, replicas in after.items():
        assert len(replicas) == len(set(replicas)) == len(before[tp])
        assert set(replicas) <= request.targets | set(before[tp])
        if request.goals.leaders and replicas[0] not in request.targets:
            assert not set(replicas) & request.targets, f"{tp} is led by a broker that its target does not contain"
    moves = sum(len(set(after[tp]) - set(before[tp])) for tp in after)
    data = sum(size[tp] * len(set(after[tp]) - set(before[tp])) for tp in after)
    assert request.goals.max_replica_moves is None or moves <= request.goals.max_replica_moves
    assert request.goals.max_data_to_move is None or data <= request.goals.max_data_to_move
    assert (moves, data) == (made.replica_moves, made.data_to_move_bytes)
    staying = [tuple(b for b in replicas if b in request.targets) for replicas in after.values()]
    stuck = sum(map(len, after.values())) - sum(map(len, staying))
    racks = target_racks(request)
    over = 0
    for replicas, kept in zip(after.values(), staying, strict=True):
        held = Counter(racks[b] for b in kept if racks[b] is not None)
        over += sum(max(0, n - rack_cap(racks, len(replicas))) for n in held.values())
    assert over == made.rack_violations
    if request.goals.balance is Balance.PER_TOPIC:
        squares = _sumsq((tp.topic, b) for tp, kept in zip(after, staying, strict=True) for b in kept)
    else:
        squares = _sumsq(b for kept in [*staying, *(p.replicas for p in pinned)] for b in kept if b in request.targets)
    assert made.certificate.lower_bound <= moves
    if made.imbalance is not None:
        assert made.imbalance.squares == squares >= made.imbalance.least
    preferred = request.goals.rack_awareness is RackAwareness.PREFERRED
    return (stuck, squares, over, moves) if preferred else (stuck, over, squares, moves)


def pinned_inputs(request: PlanRequest) -> list[PartitionInput]:
    return [p for p in request.partitions if p.pinned]


def value_by_topic(request: PlanRequest, made: Plan) -> tuple[int, ...]:
    """The value of a plan that balances topics, most important first; pinned partitions count in totals only."""
    before = present(request)
    after = result(request, made)
    totals = _sumsq(b for replicas in after.values() for b in replicas if b in request.targets)
    pinned = {p.tp for p in pinned_inputs(request)}
    topics = _sumsq((tp.topic, b) for tp, replicas in after.items() if tp not in pinned for b in replicas)
    moves = sum(len(set(after[tp]) - set(before[tp])) for tp in after)
    return topic_levels(request, made.rack_violations, topics, totals, moves)


def topic_levels(request: PlanRequest, racks: Any, topics: Any, totals: Any, moves: Any) -> tuple[Any, ...]:
    both = request.goals.balance is Balance.BOTH
    if request.goals.rack_awareness is RackAwareness.PREFERRED:
        return (totals, topics, racks, moves) if both else (topics, racks, moves, totals)
    return (racks, totals, topics, moves) if both else (racks, topics, moves, totals)


def levels(metrics: Metrics) -> tuple[int, ...]:
    return astuple(metrics)
