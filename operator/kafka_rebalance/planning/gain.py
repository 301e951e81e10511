"""Whether a plan that nothing forces is worth its moves."""

from __future__ import annotations

import numpy as np

from kafka_rebalance.planning.forced import forced_moves
from kafka_rebalance.planning.instance import Instance
from kafka_rebalance.planning.solution import Solution, spread_of

GAIN_TOO_SMALL = "GainTooSmall"
"""Why a plan is empty though moving would even out the counts."""


def gains_too_little(instance: Instance, solution: Solution, minimum_gain: int) -> bool:
    """Whether nothing is forced and the fullest broker gives away less than ``minimum_gain`` percent of what it holds.

    A replication factor that changes is forced, too: somebody asked for it.
    """
    if not minimum_gain or instance.wide or forced_moves(instance).any():
        return False
    if np.array_equal(solution.lists, instance.holder):
        return False  # there is nothing to gain, and nothing to be told about it
    before, after = (spread_of(instance, lists).most for lists in (instance.holder, solution.lists))
    return (before - after) * 100 < minimum_gain * before
