"""Whether a plan that nothing forces gains enough to be worth its moves (``minimumGain``).

The plan that would be carried out is judged: with a movement budget, the plan within the budget.
"""

from dataclasses import dataclass

import numpy as np

from kafka_rebalance.model.goals import Balance
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.planning.problem.encoding import build
from kafka_rebalance.planning.problem.instance import Indices, Instance
from kafka_rebalance.planning.problem.request import Goals, PlanRequest
from kafka_rebalance.planning.problem.solution import Solution, spread_of
from kafka_rebalance.planning.strategies.forced import forced_moves


@dataclass(frozen=True, slots=True)
class Gain:
    """Replicas on the fullest target broker before and after: of all topics or, ``by_topic``, the sum over the topics
    that may move of the replicas on the fullest broker of each."""

    by_topic: bool
    before: int
    after: int

    def reaches(self, percent: int) -> bool:
        """Whether the fullest broker loses at least this share of its replicas."""
        return (self.before - self.after) * 100 >= percent * self.before


def gains_of(request: PlanRequest, made: Plan) -> tuple[Gain, ...]:
    """The gains that a MinimalMovement plan is judged by; one of them must be enough. Empty when a move is forced.
    ``made`` is a plan of ``request`` without a minimum gain."""
    encoded = build(request)
    if not encoded.partitions or _forced(encoded.instance):
        return ()
    lists = encoded.flat({p.tp: p.target for p in made.partitions})
    return _gains(encoded.instance, lists, request.goals.balance)


def gains_too_little(instance: Instance, solution: Solution, goals: Goals) -> bool:
    """Whether no move is forced and everything that is balanced gains less than ``minimum_gain`` percent.

    A change of the replication factor counts as forced: the user requested it.
    """
    if not goals.minimum_gain or _forced(instance):
        return False
    if solution.load is not None and solution.load.relieves:
        return False
    if np.array_equal(solution.lists, instance.broker_of_slot):
        return False  # the plan is empty anyway and needs no reason
    return not any(gain.reaches(goals.minimum_gain) for gain in _gains(instance, solution.lists, goals.balance))


def _forced(instance: Instance) -> bool:
    return instance.shrinks or bool(forced_moves(instance).any())


def _gains(instance: Instance, lists: Indices, balance: Balance) -> tuple[Gain, ...]:
    """The gains of what is balanced: totals, topics, or both."""
    total = Gain(False, *(spread_of(instance, at).most for at in (instance.broker_of_slot, lists)))
    topics = Gain(True, *(_fullest_of_topics(instance, at) for at in (instance.broker_of_slot, lists)))
    return {Balance.TOTAL: (total,), Balance.PER_TOPIC: (topics,), Balance.BOTH: (total, topics)}[balance]


def _fullest_of_topics(instance: Instance, lists: Indices) -> int:
    """The sum over the topics that may move of the replicas on the fullest broker of each."""
    here = instance.eligible[lists]
    cell = instance.topic[instance.partition_of_slot[here]] * instance.brokers + lists[here]
    cells, held = np.unique(cell, return_counts=True)
    most = np.zeros(int(instance.topic[-1]) + 1, dtype=np.int64)
    np.maximum.at(most, cells // instance.brokers, held)
    return int(most.sum())
