"""Whether a plan that nothing forces is worth its moves.

Judged is the plan that would be made: with a movement budget what the budget buys, however much more would gain.
"""

from __future__ import annotations

import numpy as np

from kafka_rebalance.planning.forced import forced_moves
from kafka_rebalance.planning.instance import Indices, Instance
from kafka_rebalance.planning.request import Balance, Goals
from kafka_rebalance.planning.solution import Solution, spread_of

GAIN_TOO_SMALL = "GainTooSmall"
"""Why a plan is empty though moving would even out the counts."""


def gains_too_little(instance: Instance, solution: Solution, goals: Goals) -> bool:
    """Whether nothing is forced and all that is balanced gains less than ``minimum_gain`` percent.

    A replication factor that changes is forced, too: somebody asked for it.
    """
    if not goals.minimum_gain or instance.wide or forced_moves(instance).any():
        return False
    if np.array_equal(solution.lists, instance.holder):
        return False  # there is nothing to gain, and nothing to be told about it
    before, after = (_fullest(instance, lists, goals.balance) for lists in (instance.holder, solution.lists))
    return all((had - has) * 100 < goals.minimum_gain * had for had, has in zip(before, after, strict=True))


def _fullest(instance: Instance, lists: Indices, balance: Balance) -> list[int]:
    """What the fullest broker holds of what is balanced: in total, of each topic (added up), or both of these."""
    total, topics = spread_of(instance, lists).most, _fullest_of_topics(instance, lists)
    return {Balance.TOTAL: [total], Balance.PER_TOPIC: [topics], Balance.BOTH: [total, topics]}[balance]


def _fullest_of_topics(instance: Instance, lists: Indices) -> int:
    """The sum over the topics that may move of what the fullest broker of each holds of it."""
    here = instance.eligible[lists]
    cell = instance.topic[instance.owner[here]] * instance.brokers + lists[here]
    cells, held = np.unique(cell, return_counts=True)
    most = np.zeros(int(instance.topic[-1]) + 1, dtype=np.int64)
    np.maximum.at(most, cells // instance.brokers, held)
    return int(most.sum())
