"""Which replicas of a list go where the replication factor shrinks: those without which the rest moves the least.

Dropping a replica moves nothing, so the choice is only about what stays. Up to ``EXACT`` replicas the flow over all
partitions chooses what stays together with where the rest goes: the fewest moves there are. Larger clusters keep the
largest choice of replicas that fair counts and the rack rule have room for; what that leaves to move is a bound that
no plan goes below, and where the plan moves more the gap is told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from ortools.graph.python import max_flow

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.planning.problem.balance import fair_counts
from kafka_rebalance.planning.problem.instance import Bools, Instance, Ints
from kafka_rebalance.planning.replicas.placement import Placed, place
from kafka_rebalance.planning.replicas.replica_sets import EXACT

_SOURCE, _SINK = 0, 1


@dataclass(frozen=True)
class Shrunk:
    """An instance whose lists have their replication factors; no plan of the wide one moves less than the bound."""

    instance: Instance
    lower_bound: int


def shrink(instance: Instance) -> Shrunk:
    """Decide which replicas go from lists that are too long."""
    fair = fair_counts(instance)
    exact = len(instance.broker_of_slot) <= EXACT
    stays = _among(instance, place(instance, fair)) if exact else _most_kept(instance, fair)
    return Shrunk(keep_only(instance, stays), int(instance.rf.sum() - stays.sum()))


def shrink_to(instance: Instance, placed: Placed) -> Instance:
    """The instance in which these sets are reached with as many moves as in the wide one."""
    return keep_only(instance, _among(instance, placed)) if instance.shrinks else instance


def keep_only(instance: Instance, stays: Bools) -> Instance:
    """Lists of the replication factors: of each partition what ``stays`` [N], filled up with the first of the rest."""
    order = np.lexsort((instance.position, ~stays, instance.partition_of_slot))
    rank = np.empty(len(stays), dtype=np.int64)
    rank[order] = np.arange(len(stays))
    kept = rank - instance.start[instance.partition_of_slot] < instance.rf[instance.partition_of_slot]
    return replace(instance, broker_of_slot=instance.broker_of_slot[kept], list_length=instance.rf)


def _among(instance: Instance, placed: Placed) -> Bools:
    """Which of the listed replicas are in these sets [N]."""
    partition_of, broker_of = (column.astype(np.int64) for column in placed)
    listed = instance.partition_of_slot.astype(np.int64) * instance.brokers + instance.broker_of_slot
    found: Bools = np.isin(listed, partition_of * instance.brokers + broker_of)
    return found


def _most_kept(instance: Instance, fair: Ints) -> Bools:
    """A largest choice of listed replicas [N] that fair counts and the rack rule have room for: a maximum flow."""
    groups = len(instance.group_size)
    slots = np.flatnonzero(instance.eligible[instance.broker_of_slot])
    partition_of, broker_of = (
        instance.partition_of_slot[slots].astype(np.int64),
        instance.broker_of_slot[slots].astype(np.int64),
    )
    cell, which = np.unique(partition_of * groups + instance.group[broker_of], return_inverse=True)
    capacity = instance.rack_capacity + instance.rack_excess[:, None]
    if instance.rack_awareness is RackAwareness.PREFERRED:
        capacity = np.broadcast_to(instance.group_size, capacity.shape)
    partition = 2 + np.arange(len(instance.rf))
    inner = 2 + len(instance.rf) + np.arange(len(cell))
    broker = 2 + len(instance.rf) + len(cell) + np.arange(instance.brokers)
    solver = max_flow.SimpleMaxFlow()
    add = solver.add_arcs_with_capacity
    add(np.full(len(partition), _SOURCE), partition, instance.rf)
    add(partition[cell // groups], inner, capacity[instance.kind[cell // groups], cell % groups])
    kept = add(inner[which], broker[broker_of], np.ones(len(slots), dtype=np.int64))
    _add_fair_capacity(solver, instance, fair, broker)
    if solver.solve(_SOURCE, _SINK) != solver.OPTIMAL:
        raise AssertionError("the maximum flow of what stays was not found")
    stays = np.zeros(len(instance.broker_of_slot), dtype=np.bool_)
    stays[slots] = np.asarray(solver.flows(kept)) > 0
    return stays


def _add_fair_capacity(solver: max_flow.SimpleMaxFlow, instance: Instance, fair: Ints, broker: Ints) -> None:
    """Arcs to the sink with room for what any fair vector gives.

    Fair vectors are one vector in different orders, a broker's count differing by at most 1. So all but its last copy
    is sure; of the brokers that have room for a copy more at some level only as many get one as have that level.
    """
    eligible = np.flatnonzero(instance.eligible)
    fixed, fair = instance.fixed_replicas[eligible], fair[eligible]
    sure = np.maximum(fair - 1, 0)
    levels = np.unique(np.concatenate([fixed + fair, fixed + fair + 1]))
    reach = np.array([(fixed + fair >= level).sum() - (fixed + sure >= level).sum() for level in levels.tolist()])
    level_node = int(broker[-1]) + 1 + np.arange(len(levels))
    add = solver.add_arcs_with_capacity
    add(broker[eligible], np.full(len(eligible), _SINK), sure)
    for count in (fair, fair + 1):
        add(broker[eligible], level_node[np.searchsorted(levels, fixed + count)], (count >= 1).astype(np.int64))
    add(level_node, np.full(len(levels), _SINK), np.maximum(reach, 0))
