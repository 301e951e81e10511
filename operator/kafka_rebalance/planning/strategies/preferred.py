"""The strategy PreferredLeaders: only the order within lists changes, no data moves.

Leaders, and followers if the goals say so, become as even as the sets allow, with the fewest leader changes. Replicas
on brokers that are not eligible keep their positions, and lead only if no other replica can.
"""

from dataclasses import replace

import numpy as np

from kafka_rebalance.model.plan import Certificate
from kafka_rebalance.planning.ordering.arranging import arranged
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.instance import Bools, Indices, Instance
from kafka_rebalance.planning.problem.request import Goals
from kafka_rebalance.planning.problem.solution import Solution
from kafka_rebalance.planning.replicas.shrink_replication_factor import keep_only


def elect(instance: Instance, goals: Goals) -> Solution:
    """The present replicas in another order, without moves."""
    able = instance.eligible[instance.broker_of_slot]
    choice = np.bincount(instance.partition_of_slot[able], minlength=len(instance.rf)) > 0
    if not choice.any():
        return Solution(instance.broker_of_slot, Certificate.of(0, 0))
    part = _of_able(instance.part(choice))
    shrunk = keep_only(part, part.eligible[part.broker_of_slot])
    copies = Copies(shrunk, np.zeros(0, dtype=np.int64))
    ordered = arranged(part, copies, replace(goals, leaders=True))
    return Solution(_filled_in(instance, able & choice[instance.partition_of_slot], ordered), Certificate.of(0, 0))


def _of_able(instance: Instance) -> Instance:
    """The instance that shrinks to the replicas that may lead, ignoring racks."""
    able = instance.eligible[instance.broker_of_slot]
    rf = np.bincount(instance.partition_of_slot[able], minlength=len(instance.rf)).astype(np.int64)
    kinds, kind = np.unique(rf, return_inverse=True)
    capacity = np.broadcast_to(instance.group_size, (len(kinds), len(instance.group_size)))
    return replace(instance, rf=rf, kind=kind, kinds=kinds, rack_capacity=capacity, rack_excess=np.zeros_like(kinds))


def _filled_in(instance: Instance, able: Bools, ordered: Indices) -> Indices:
    """The lists with the replicas that may lead in their new order; the others keep their positions but the first."""
    partition_of = instance.partition_of_slot
    first_steps_back = ~able[instance.start] & (np.bincount(partition_of[able], minlength=len(instance.rf)) > 0)
    order = np.lexsort((instance.position, ~able & first_steps_back[partition_of], partition_of))
    lists = instance.broker_of_slot[order]
    lists[able[order]] = ordered
    return lists
