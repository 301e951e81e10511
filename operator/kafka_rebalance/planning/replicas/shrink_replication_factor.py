"""Which replicas to drop when the replication factor shrinks: those that leave the fewest moves for the rest.

Dropping a replica moves nothing, so only the choice of what stays matters. Up to ``EXACT`` replicas the flow over all
partitions decides what stays together with where the rest moves: the fewest moves. Larger clusters keep as many
replicas as fair counts and the rack rule allow; the replicas still missing are a lower bound on the moves, and the
certificate shows the gap.
"""

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
    """The instance after dropping replicas, and a lower bound on the moves of the instance before."""

    instance: Instance
    lower_bound: int


def shrink(instance: Instance) -> Shrunk:
    """Drop replicas from the lists that are too long."""
    fair = fair_counts(instance)
    exact = len(instance.broker_of_slot) <= EXACT
    stays = _among(instance, place(instance, fair)[0]) if exact else _most_kept(instance, fair)
    return Shrunk(keep_only(instance, stays), int(instance.rf.sum() - stays.sum()))


def shrink_to(instance: Instance, placed: Placed) -> Instance:
    """The instance without the replicas that are not in these sets: it reaches them with equally many moves."""
    return keep_only(instance, _among(instance, placed)) if instance.shrinks else instance


def keep_only(instance: Instance, stays: Bools) -> Instance:
    """Keep of each list the replicas that stay [N], then the first of the rest, up to the replication factor."""
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
    """A largest set of listed replicas [N] that fair counts and the rack rule allow: a maximum flow."""
    groups = len(instance.group_size)
    slots = np.flatnonzero(instance.eligible[instance.broker_of_slot])
    partition_of, broker_of = instance.replicas(slots)
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
    """Add arcs to the sink with the capacity of any fair vector.

    Fair vectors are permutations of one vector in which a broker's count differs by at most 1. So all copies of a
    broker but the last are certain, and each level is reached by a fixed number of brokers.
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
