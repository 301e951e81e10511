"""The cost of balance: how even a cluster is after each number of moves, from the forced moves to the whole plan.

Leaders and follower order cost no data and are left out. A budget in the goals is ignored.
"""

from dataclasses import dataclass

from kafka_rebalance.model.goals import Balance, RackAwareness
from kafka_rebalance.model.plan import Spread
from kafka_rebalance.planning.budget.movement_budget import BudgetSolver, trimmed
from kafka_rebalance.planning.budget.trim import squares_of, topic_squares_of
from kafka_rebalance.planning.planner import choose_replica_sets
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.encoding import build
from kafka_rebalance.planning.problem.instance import Instance
from kafka_rebalance.planning.problem.request import Goals, PlanRequest
from kafka_rebalance.planning.problem.solution import spread_of
from kafka_rebalance.planning.strategies.forced import forced_moves


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """After this number of replica ``moves``: the fewest and most replicas of a target broker, the sum of the target
    brokers' squared counts (PerTopic: of each topic's), the bytes fetched; ``optimal``: proved to be the best."""

    moves: int
    spread: Spread
    squares: int
    data_bytes: int
    optimal: bool


def curve(request: PlanRequest, points: int = 11) -> tuple[CurvePoint, ...]:
    """From the forced moves (copies on brokers that are not targets, avoidable rack violations) to the whole plan, in
    up to ``points`` (at least two) even steps. Raises Refused when the request contradicts itself."""
    encoded = build(request)
    instance, goals = encoded.instance, request.goals
    if not encoded.partitions:
        return (_point(Copies.of_lists(instance, instance.broker_of_slot), goals, optimal=True),)
    chosen = choose_replica_sets(instance, goals)
    full = Copies.of_lists(instance, chosen.copies.broker_of_slot)
    whole = full.moves()
    last = _point(full, goals, optimal=chosen.certificate.optimal)
    forced = min(_least_moves(instance), whole)
    parts = max(2, points) - 1
    steps = sorted({forced + (whole - forced) * i // parts for i in range(parts)} - {whole})
    solver = BudgetSolver(instance, full) if goals.balance is Balance.TOTAL and steps else None
    found = [solver.within(k) if solver else trimmed(full, Goals(balance=goals.balance), k) for k in steps]
    result = [*(_point(each.copies, goals, optimal=each.certificate.optimal) for each in found), last]
    return tuple(
        {point.moves: point for point in result}.values()
    )  # a larger budget may allow no more than a smaller one


def _least_moves(instance: Instance) -> int:
    """Number of forced moves (Preferred racks force none)."""
    if instance.rack_awareness is RackAwareness.PREFERRED:
        return int((~instance.eligible[instance.broker_of_slot]).sum())
    return int(forced_moves(instance).sum())


def _point(copies: Copies, goals: Goals, *, optimal: bool) -> CurvePoint:
    squares = topic_squares_of if goals.balance is Balance.PER_TOPIC else squares_of
    spread = spread_of(copies.instance, copies.broker_of_slot)
    return CurvePoint(copies.moves(), spread, squares(copies), copies.data(), optimal)
