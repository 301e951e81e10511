"""The strategy PreferredLeaders: only the order within lists changes, no data moves.

Leaders, and followers where the goals ask for it, get as even as the sets allow, with the fewest leader changes.
Replicas on brokers that may hold nothing stay where they are, and lead only where no other replica could.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kafka_rebalance.model.plan import Certificate
from kafka_rebalance.planning.ordering.arranging import arranged
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.instance import Bools, Indices, Instance
from kafka_rebalance.planning.problem.request import Goals
from kafka_rebalance.planning.problem.solution import Solution
from kafka_rebalance.planning.replicas.shrink_replication_factor import without


def elect(instance: Instance, goals: Goals) -> Solution:
    """The present replicas in another order; no moves."""
    able = instance.eligible[instance.holder]
    choice = np.bincount(instance.owner[able], minlength=len(instance.rf)) > 0
    if not choice.any():
        return Solution(instance.holder, Certificate.of(0, 0))
    part = _of_able(instance.part(choice))
    narrowed = without(part, part.eligible[part.holder])
    copies = Copies(narrowed, np.zeros(0, dtype=np.int64))
    ordered = arranged(part, copies, replace(goals, leaders=True))
    return Solution(_filled_in(instance, able & choice[instance.owner], ordered), Certificate.of(0, 0))


def _of_able(instance: Instance) -> Instance:
    """The wide instance that asks for the order among the replicas that may lead, whatever racks they are in."""
    able = instance.eligible[instance.holder]
    rf = np.bincount(instance.owner[able], minlength=len(instance.rf)).astype(np.int64)
    kinds, kind = np.unique(rf, return_inverse=True)
    room = np.broadcast_to(instance.group_size, (len(kinds), len(instance.group_size)))
    return replace(instance, rf=rf, kind=kind, kinds=kinds, room_of=room, excess_of=np.zeros_like(kinds))


def _filled_in(instance: Instance, able: Bools, ordered: Indices) -> Indices:
    """The lists with those that may lead in their new order; the others keep their places, but not the first."""
    first_steps_back = ~able[instance.start] & (np.bincount(instance.owner[able], minlength=len(instance.rf)) > 0)
    order = np.lexsort((instance.position, ~able & first_steps_back[instance.owner], instance.owner))
    lists = instance.holder[order]
    lists[able[order]] = ordered
    return lists
