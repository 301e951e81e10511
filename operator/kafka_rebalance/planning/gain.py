"""Whether a plan that nothing forces is worth its moves.

Judged is the plan that would be made: with a movement budget what the budget buys, however much more would gain.
"""

from __future__ import annotations

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
    """What the fullest target broker holds before and after: in all or, ``by_topic``, of each topic that may move,
    added up over these."""

    by_topic: bool
    before: int
    after: int

    def reaches(self, percent: int) -> bool:
        """Whether at least so much is taken off it."""
        return (self.before - self.after) * 100 >= percent * self.before


def gains_of(request: PlanRequest, made: Plan) -> tuple[Gain, ...]:
    """The gains that a MinimalMovement plan is judged by, one of which has to be enough; none where something is
    forced. ``made`` is a plan of ``request`` that no minimum gain has emptied."""
    encoded = build(request)
    if not encoded.partitions or _forced(encoded.instance):
        return ()
    lists = encoded.flat({p.tp: p.target for p in made.partitions})
    return _gains(encoded.instance, lists, request.goals.balance)


def gains_too_little(instance: Instance, solution: Solution, goals: Goals) -> bool:
    """Whether nothing is forced and all that is balanced gains less than ``minimum_gain`` percent.

    A replication factor that changes is forced, too: somebody asked for it.
    """
    if not goals.minimum_gain or _forced(instance):
        return False
    if np.array_equal(solution.lists, instance.broker_of_slot):
        return False  # there is nothing to gain, and nothing to be told about it
    return not any(gain.reaches(goals.minimum_gain) for gain in _gains(instance, solution.lists, goals.balance))


def _forced(instance: Instance) -> bool:
    return instance.shrinks or bool(forced_moves(instance).any())


def _gains(instance: Instance, lists: Indices, balance: Balance) -> tuple[Gain, ...]:
    """Of what is balanced: of the totals, of the topics, or of both."""
    total = Gain(False, *(spread_of(instance, at).most for at in (instance.broker_of_slot, lists)))
    topics = Gain(True, *(_fullest_of_topics(instance, at) for at in (instance.broker_of_slot, lists)))
    return {Balance.TOTAL: (total,), Balance.PER_TOPIC: (topics,), Balance.BOTH: (total, topics)}[balance]


def _fullest_of_topics(instance: Instance, lists: Indices) -> int:
    """The sum over the topics that may move of what the fullest broker of each holds of it."""
    here = instance.eligible[lists]
    cell = instance.topic[instance.partition_of_slot[here]] * instance.brokers + lists[here]
    cells, held = np.unique(cell, return_counts=True)
    most = np.zeros(int(instance.topic[-1]) + 1, dtype=np.int64)
    np.maximum.at(most, cells // instance.brokers, held)
    return int(most.sum())
