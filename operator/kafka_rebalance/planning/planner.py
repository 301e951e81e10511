"""The planner: the order of objectives of the design, one line each. Everything is decided by what it is given.

1. hard rules and the rack rule, 2. fair replica counts  -> balance.fair_counts
3. fewest moves among all placements with such counts    -> sets.fewest_moves; where topics are balanced 2. and 3. are
                                                            topics.balanced_by_topic; what a movement budget leaves of
                                                            them: budget.buy
4. leaders, 5. follower order, 6. fewest leader changes  -> order.arrange, exact for the replica sets of 3;
                                                            joint.better_sets chooses among those in small clusters;
                                                            spread.spread in large ones, exact for 4 and then 6
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from kafka_rebalance.model.plan import Imbalance, Plan, PlannedPartition, SkippedPartition, Spread
from kafka_rebalance.planning.budget import buy, exceeds
from kafka_rebalance.planning.copies import Copies
from kafka_rebalance.planning.encoding import Encoded, build
from kafka_rebalance.planning.instance import Indices, Instance
from kafka_rebalance.planning.joint import better_sets
from kafka_rebalance.planning.leftover import around_leftovers
from kafka_rebalance.planning.order import arrange
from kafka_rebalance.planning.request import Balance, Goals, PlanRequest
from kafka_rebalance.planning.sets import Sets, fewest_moves
from kafka_rebalance.planning.spread import spread
from kafka_rebalance.planning.topics import balanced_by_topic, uneven_topics

EXACT_ORDER = 9_000
"""Up to so many replicas leaders and pairs are decided together, by a flow: some tenths of a second."""


@dataclass(frozen=True)
class Solution:
    """``lists`` [N]: all lists one behind the other, as in the instance; the moves, and what they cannot be below;
    whether nothing better is proved to exist; what a budget left."""

    lists: Indices
    moves: int
    lower_bound: int
    optimal: bool
    imbalance: Imbalance | None = None


def plan(request: PlanRequest) -> Plan:
    """The balanced plan with the fewest moves, proved. Raises Refused where the request contradicts itself."""
    encoded = build(request)
    skipped = tuple(
        sorted((SkippedPartition(p.tp, "NoLeader") for p in request.partitions if not p.has_leader), key=_tp)
    )
    if not encoded.partitions:
        nothing = Spread(0, 0)
        return Plan((), lower_bound=0, optimal=True, skipped=skipped, before=nothing, after=nothing)
    instance = encoded.instance
    solution = solve(instance, request.goals)
    return Plan(
        _changed(encoded, solution.lists),
        solution.lower_bound,
        optimal=solution.optimal,
        rack_violations=instance.violations(solution.lists),
        skipped=skipped,
        before=spread_of(instance, instance.holder),
        after=spread_of(instance, solution.lists),
        imbalance=solution.imbalance,
        uneven_topics=_uneven(instance, solution, request.goals),
    )


def solve(instance: Instance, goals: Goals) -> Solution:
    """The plan in arrays. The instance has at least one partition."""
    sets = replica_sets(instance, goals)
    whole = _whole(instance, sets, goals)
    if not exceeds(Copies.of_lists(instance, whole.lists), goals):
        return whole
    bought = buy(instance, sets.copies, goals)
    lists = around_leftovers(bought.copies, goals, _ordered)
    return Solution(lists, bought.copies.moves(), bought.fewest, bought.proved, bought.imbalance)


def replica_sets(instance: Instance, goals: Goals) -> Sets:
    """Which brokers hold each partition, without a budget."""
    total = goals.balance is Balance.TOTAL
    return fewest_moves(instance) if total else balanced_by_topic(instance, goals.balance)


def _whole(instance: Instance, sets: Sets, goals: Goals) -> Solution:
    """The plan without a budget."""
    copies = sets.copies
    moves = copies.moves()
    proved = moves == sets.lower_bound
    if len(instance.holder) > EXACT_ORDER:
        return Solution(spread(copies, goals), moves, sets.lower_bound, proved)
    lists = arrange(instance, copies.sets(), goals)
    total = goals.balance is Balance.TOTAL
    better = better_sets(instance, copies.sets(), lists, goals) if total else None
    if better is not None:
        lists = arrange(instance, Copies.placed(instance, better).sets(), goals)
    return Solution(_flat(lists), moves, sets.lower_bound, proved)


def _ordered(copies: Copies, goals: Goals) -> Indices:
    """All lists, leaders first."""
    instance = copies.instance
    if len(instance.holder) > EXACT_ORDER:
        return spread(copies, goals)
    return _flat(arrange(instance, copies.sets(), goals))


def _flat(lists: list[list[int]]) -> Indices:
    return np.fromiter(chain.from_iterable(lists), dtype=np.int32)


def _uneven(instance: Instance, solution: Solution, goals: Goals) -> int:
    """How many topics had to give way, where totals come first."""
    both = goals.balance is Balance.BOTH and solution.imbalance is None
    return uneven_topics(Copies.of_lists(instance, solution.lists)) if both else 0


def spread_of(instance: Instance, holder: Indices) -> Spread:
    """The fewest and the most copies of a broker that may hold some, in these lists."""
    counts = np.bincount(holder, minlength=instance.brokers)[instance.eligible]
    return Spread(int(counts.min()), int(counts.max()))


def _changed(encoded: Encoded, lists: Indices) -> tuple[PlannedPartition, ...]:
    """The partitions whose list is another one now."""
    instance = encoded.instance
    changed = np.unique(instance.owner[lists != instance.holder])
    begin, end = instance.start[changed].tolist(), (instance.start + instance.rf)[changed].tolist()
    flat = encoded.ids(lists)
    partitions = map(encoded.partitions.__getitem__, changed.tolist())
    return tuple(
        PlannedPartition(p.tp, p.replicas, flat[a:b], p.topic_id, p.size_bytes)
        for p, a, b in zip(partitions, begin, end, strict=True)
    )


def _tp(skipped: SkippedPartition) -> tuple[str, int]:
    return skipped.tp
