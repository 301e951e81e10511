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
class Narrowed:
    """An instance whose lists have their replication factors; no plan of the wide one moves less than the bound."""

    instance: Instance
    lower_bound: int


def narrow(instance: Instance) -> Narrowed:
    """Decide which replicas go from lists that are too long."""
    fair = fair_counts(instance)
    exact = len(instance.holder) <= EXACT
    stays = _among(instance, place(instance, fair)) if exact else _most_kept(instance, fair)
    return Narrowed(without(instance, stays), int(instance.rf.sum() - stays.sum()))


def narrow_to(instance: Instance, placed: Placed) -> Instance:
    """The instance in which these sets are reached with as many moves as in the wide one."""
    return without(instance, _among(instance, placed)) if instance.wide else instance


def without(instance: Instance, stays: Bools) -> Instance:
    """Lists of the replication factors: of each partition what ``stays`` [N], filled up with the first of the rest."""
    order = np.lexsort((instance.position, ~stays, instance.owner))
    rank = np.empty(len(stays), dtype=np.int64)
    rank[order] = np.arange(len(stays))
    kept = rank - instance.start[instance.owner] < instance.rf[instance.owner]
    return replace(instance, holder=instance.holder[kept], listed=instance.rf)


def _among(instance: Instance, placed: Placed) -> Bools:
    """Which of the listed replicas are in these sets [N]."""
    owner, holder = (column.astype(np.int64) for column in placed)
    listed = instance.owner.astype(np.int64) * instance.brokers + instance.holder
    found: Bools = np.isin(listed, owner * instance.brokers + holder)
    return found


def _most_kept(instance: Instance, fair: Ints) -> Bools:
    """A largest choice of listed replicas [N] that fair counts and the rack rule have room for: a maximum flow."""
    groups = len(instance.group_size)
    slots = np.flatnonzero(instance.eligible[instance.holder])
    owner, holder = instance.owner[slots].astype(np.int64), instance.holder[slots].astype(np.int64)
    cell, which = np.unique(owner * groups + instance.group[holder], return_inverse=True)
    room = instance.room_of + instance.excess_of[:, None]
    if instance.rack_awareness is RackAwareness.PREFERRED:
        room = np.broadcast_to(instance.group_size, room.shape)
    partition = 2 + np.arange(len(instance.rf))
    inner = 2 + len(instance.rf) + np.arange(len(cell))
    broker = 2 + len(instance.rf) + len(cell) + np.arange(instance.brokers)
    solver = max_flow.SimpleMaxFlow()
    add = solver.add_arcs_with_capacity
    add(np.full(len(partition), _SOURCE), partition, instance.rf)
    add(partition[cell // groups], inner, room[instance.kind[cell // groups], cell % groups])
    kept = add(inner[which], broker[holder], np.ones(len(slots), dtype=np.int64))
    _add_fair_room(solver, instance, fair, broker)
    if solver.solve(_SOURCE, _SINK) != solver.OPTIMAL:
        raise AssertionError("the maximum flow of what stays was not found")
    stays = np.zeros(len(instance.holder), dtype=np.bool_)
    stays[slots] = np.asarray(solver.flows(kept)) > 0
    return stays


def _add_fair_room(solver: max_flow.SimpleMaxFlow, instance: Instance, fair: Ints, broker: Ints) -> None:
    """Arcs to the sink with room for what any fair vector gives.

    Fair vectors are one vector in different orders, a broker's count differing by at most 1. So all but its last copy
    is sure; of the brokers that have room for a copy more at some level only as many get one as have that level.
    """
    eligible = np.flatnonzero(instance.eligible)
    base, fair = instance.base[eligible], fair[eligible]
    sure = np.maximum(fair - 1, 0)
    levels = np.unique(np.concatenate([base + fair, base + fair + 1]))
    reach = np.array([(base + fair >= level).sum() - (base + sure >= level).sum() for level in levels.tolist()])
    level_node = int(broker[-1]) + 1 + np.arange(len(levels))
    add = solver.add_arcs_with_capacity
    add(broker[eligible], np.full(len(eligible), _SINK), sure)
    for count in (fair, fair + 1):
        add(broker[eligible], level_node[np.searchsorted(levels, base + count)], (count >= 1).astype(np.int64))
    add(level_node, np.full(len(levels), _SINK), np.maximum(reach, 0))
