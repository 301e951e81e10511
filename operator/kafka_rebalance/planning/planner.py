"""The planner: the objectives of a plan, in order of priority. The same request always gives the same plan.

1. Hard rules and the rack rule, 2. fair replica counts: ``fair_counts``.
3. Fewest moves at these counts: ``fewest_moves``. When the replication factor shrinks ``shrink`` comes first. When
   topics are balanced ``balanced_by_topic`` does 2 and 3. ``best_within_budget`` applies a movement budget,
   ``relieved`` load goals. Where counts are free ``repair`` takes the place of 2 and 3: load goals decide the rest.
4. Leaders, 5. follower order, 6. fewest leader changes: ``arrange``, exact for given replica sets; in small clusters
   ``better_replica_sets`` also chooses among equally good sets. In large clusters ``spread``: exact for 4, then 6.

This is the strategy MinimalMovement; each other strategy is a module in ``strategies``.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain, islice

import numpy as np

from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.model.goals import Balance, Strategy
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition, SkippedPartition
from kafka_rebalance.planning.budget.movement_budget import best_within_budget, exceeds, trimmed
from kafka_rebalance.planning.gain import gains_too_little
from kafka_rebalance.planning.ordering.arranging import EXACT_ORDER, arranged
from kafka_rebalance.planning.ordering.cp_sat_tiebreak import better_replica_sets
from kafka_rebalance.planning.ordering.replica_order import arrange
from kafka_rebalance.planning.ordering.spread import spread
from kafka_rebalance.planning.ordering.stranded_replicas import order_around_stranded
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.crowded_racks import crowded_racks
from kafka_rebalance.planning.problem.encoding import Encoded, build
from kafka_rebalance.planning.problem.instance import Indices, Instance
from kafka_rebalance.planning.problem.request import Goals, PlanRequest
from kafka_rebalance.planning.problem.solution import Solution, new_copies, spread_of
from kafka_rebalance.planning.replicas.replica_sets import ReplicaSets, fewest_moves
from kafka_rebalance.planning.replicas.shrink_replication_factor import shrink, shrink_to
from kafka_rebalance.planning.strategies.assignment import check_assignment
from kafka_rebalance.planning.strategies.forced import repair
from kafka_rebalance.planning.strategies.generate import generate
from kafka_rebalance.planning.strategies.preferred import elect
from kafka_rebalance.planning.topics.topic_balance import balanced_by_topic, uneven_topics
from kafka_rebalance.reasons import Reason


@without_collector()
def plan(request: PlanRequest) -> Plan:
    """The plan of the requested strategy, with its certificate. Raises Refused when the request contradicts itself."""
    return replace(_solved(request), decommission=tuple(sorted(request.decommission)))


def _solved(request: PlanRequest) -> Plan:
    if request.strategy is Strategy.ASSIGNMENT:
        check_assignment(request)
    leaderless = sorted(p.tp for p in request.partitions if not p.has_leader)
    skipped = tuple(SkippedPartition(tp, Reason.NO_LEADER) for tp in leaderless)
    if request.strategy is Strategy.LOG_DIRS:
        return Plan((), Certificate.of(0, 0), skipped=skipped)  # lists stay, whatever the brokers
    encoded = build(request)
    instance = encoded.instance
    before = spread_of(instance, instance.broker_of_slot)
    if not encoded.partitions:
        return Plan((), Certificate.of(0, 0), skipped=skipped, before=before, after=before)
    solution = _STRATEGIES[request.strategy](request, encoded)
    if request.strategy is Strategy.MINIMAL_MOVEMENT and gains_too_little(instance, solution, request.goals):
        violations = instance.violations(instance.broker_of_slot)
        return Plan(
            (), Certificate.of(0, 0), violations, skipped, before=before, after=before, reason=Reason.GAIN_TOO_SMALL
        )
    return Plan(
        _changed(encoded, solution.lists),
        solution.certificate,
        rack_violations=replace(instance, list_length=instance.rf).violations(solution.lists),
        skipped=skipped,
        before=before,
        after=spread_of(instance, solution.lists),
        imbalance=solution.imbalance,
        uneven_topics=_uneven(instance, solution, request.goals),
        load=solution.load,
        rate_room=solution.rate_room,
        crowded=crowded_racks(request, encoded, solution.lists),
    )


def _fewest_moves(request: PlanRequest, encoded: Encoded) -> Solution:
    """MinimalMovement, and then the load goals at its counts or, where counts are free, after the forced moves."""
    solve = solve_instance if request.goals.counts else _forced_moves
    solution = solve(encoded.instance, request.goals)
    if not request.goals.load:
        return solution
    from kafka_rebalance.planning.load.load_plan import relieved  # imports numba

    found = relieved(request, encoded, solution.lists, budget_reached=solution.imbalance is not None)
    lists = found.lists
    if not found.leaders_matter:
        lists = _ordered(encoded.instance, lists, request.goals)
    proof = solution.certificate
    known = proof.optimal and found.fair and new_copies(encoded.instance, lists) == proof.lower_bound
    proof = Certificate(proof.lower_bound if found.fair else 0, optimal=known and found.outcome.within_bands)
    return replace(solution, lists=lists, certificate=proof, load=found.outcome, rate_room=found.rate_room)


def _forced_moves(instance: Instance, goals: Goals) -> Solution:
    """Only what the hard rules require, as far as the movement budget goes."""
    whole = repair(instance)
    if instance.shrinks or not goals.limited:
        return whole
    copies = Copies.of_lists(instance, whole.lists)
    copies.tidy()
    if not exceeds(copies, goals):
        return whole
    result = trimmed(copies, goals, copies.moves() if goals.max_replica_moves is None else goals.max_replica_moves)
    return Solution(order_around_stranded(result.copies, goals), result.certificate, result.imbalance)


def _ordered(present: Instance, lists: Indices, goals: Goals) -> Indices:
    """The same replica sets, ordered by the goals."""
    partition_of = np.repeat(np.arange(len(present.rf)), present.rf)
    order = np.lexsort((lists, partition_of))
    placed = partition_of[order], lists[order].astype(np.int64)
    copies = Copies.placed(shrink_to(present, placed), placed)
    return arranged(present, copies, goals) if present.shrinks else order_around_stranded(copies, goals)


def solve_instance(instance: Instance, goals: Goals) -> Solution:
    """MinimalMovement on arrays. The instance has at least one partition; one that shrinks has no budget."""
    if instance.shrinks:
        shrunk = shrink(instance)
        lists = _best_order(instance, fewest_moves(shrunk.instance).copies, goals)
        return Solution(lists, Certificate.of(new_copies(instance, lists), shrunk.lower_bound))
    chosen = choose_replica_sets(instance, goals)
    whole = Solution(_best_order(instance, chosen.copies, goals), chosen.certificate)
    if not goals.limited or not exceeds(Copies.of_lists(instance, whole.lists), goals):
        return whole
    result = best_within_budget(instance, chosen.copies, goals)
    return Solution(order_around_stranded(result.copies, goals), result.certificate, result.imbalance)


def choose_replica_sets(instance: Instance, goals: Goals) -> ReplicaSets:
    """Which brokers hold each partition, ignoring the movement budget. Load goals have their own bound of bytes."""
    if goals.balance is not Balance.TOTAL:
        return balanced_by_topic(instance, goals.balance)
    return fewest_moves(instance, bound_data=not goals.load)


def _best_order(present: Instance, copies: Copies, goals: Goals) -> Indices:
    """The ordered lists of these copies or, in small clusters, of equally good ones. ``present`` may shrink."""
    instance = copies.instance
    if len(instance.broker_of_slot) > EXACT_ORDER:
        return spread(copies, goals)
    placed = copies.replica_sets()
    lists = arrange(present, placed, goals)
    better = better_replica_sets(instance, placed, lists, goals) if goals.balance is Balance.TOTAL else None
    if better is not None:
        lists = arrange(present, better, goals)
    return np.fromiter(chain.from_iterable(lists), dtype=np.int32, count=len(instance.broker_of_slot))


def _uneven(instance: Instance, solution: Solution, goals: Goals) -> int:
    """Number of topics that are less even than they could be because totals come first."""
    both = goals.balance is Balance.BOTH and solution.imbalance is None
    return len(uneven_topics(Copies.of_lists(instance, solution.lists))) if both else 0


def _given(encoded: Encoded, lists: Indices) -> Solution:
    """A solution of lists that were not chosen for their moves."""
    moves = new_copies(encoded.instance, lists)
    return Solution(lists, Certificate(moves, optimal=not moves))


def _generated(request: PlanRequest, encoded: Encoded) -> Solution:
    factors = dict(zip((p.tp for p in encoded.partitions), encoded.instance.rf.tolist(), strict=True))
    return _given(encoded, encoded.flat(generate(request, factors)))


_STRATEGIES: Mapping[Strategy, Callable[[PlanRequest, Encoded], Solution]] = {
    Strategy.MINIMAL_MOVEMENT: _fewest_moves,
    Strategy.FORCED_MOVES_ONLY: lambda _, encoded: repair(encoded.instance),
    Strategy.GENERATE: _generated,
    Strategy.ASSIGNMENT: lambda request, encoded: _given(encoded, encoded.flat(request.assignment)),
    Strategy.PREFERRED_LEADERS: lambda request, encoded: elect(encoded.instance, request.goals),
}


def _changed(encoded: Encoded, lists: Indices) -> tuple[PlannedPartition, ...]:
    """The partitions whose list changes."""
    instance = encoded.instance
    if instance.shrinks:
        kept = instance.rf == instance.list_length
        same = lists[np.repeat(kept, instance.rf)] == instance.broker_of_slot[kept[instance.partition_of_slot]]
        differs = ~kept
        differs[np.repeat(np.flatnonzero(kept), instance.rf[kept])[~same]] = True
    else:
        differs = np.zeros(len(instance.rf), dtype=np.bool_)
        differs[instance.partition_of_slot[lists != instance.broker_of_slot]] = True
    changed = np.flatnonzero(differs)
    ids = iter(encoded.ids(lists[np.repeat(differs, instance.rf)]))
    partitions = map(encoded.partitions.__getitem__, changed.tolist())
    return tuple(
        PlannedPartition(p.tp, p.replicas, tuple(islice(ids, length)), p.topic_id, p.size_bytes)
        for p, length in zip(partitions, instance.rf[changed].tolist(), strict=True)
    )
