"""The strategy ForcedMovesOnly: repair what violates a rule, move nothing else.

Forced moves are those of replicas on brokers that are not eligible, of avoidable rack violations, and of replicas that
a larger replication factor adds. Their number follows from each partition alone, so it is proved. A flow over these
partitions chooses the brokers: fewest moves, then leaders that stay, then counts as even as possible with all other
replicas. Very many partitions are placed in portions, each exact given the ones before.
"""

import numpy as np

from kafka_rebalance.model.plan import Certificate
from kafka_rebalance.planning.ordering.arranging import arranged
from kafka_rebalance.planning.problem.balance import spare_ranks
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.flow import Network, convex_segments, level_weights, square_sum
from kafka_rebalance.planning.problem.instance import Bools, Instance, Ints
from kafka_rebalance.planning.problem.request import Goals
from kafka_rebalance.planning.problem.solution import Solution
from kafka_rebalance.planning.replicas.placement import Placed
from kafka_rebalance.planning.replicas.shrink_replication_factor import shrink_to

_PORTION = 300_000
"""Partitions times brokers that are placed together: about a second."""

_AS_IT_IS = Goals(leaders=False, follower_order=False)


def repair(instance: Instance) -> Solution:
    """The fewest moves that repair every avoidable violation. The instance may shrink."""
    needs = forced_moves(instance)
    broken = (needs > 0) | (instance.list_length != instance.rf)
    lists = np.empty(int(instance.rf.sum()), dtype=np.int32)
    target = np.repeat(broken, instance.rf)
    lists[~target] = instance.broker_of_slot[~broken[instance.partition_of_slot]]
    if not broken.any():
        return Solution(lists, Certificate.of(0, 0))
    part = instance.part(broken)
    placed = _place(part)
    copies = Copies.placed(shrink_to(part, placed), placed)
    lists[target] = arranged(part, copies, _AS_IT_IS)
    return Solution(lists, Certificate.of(copies.moves(), int(needs.sum())))


def forced_moves(instance: Instance) -> Ints:
    """Number of forced moves of each partition [P]."""
    slots = np.flatnonzero(instance.eligible[instance.broker_of_slot])
    groups = len(instance.group_size)
    partition_of, broker_of = instance.replicas(slots)
    cell, held = np.unique(partition_of * groups + instance.group[broker_of], return_counts=True)
    of, group = cell // groups, cell % groups
    within = np.minimum(held, instance.rack_capacity[instance.kind[of], group])
    partitions = len(instance.rf)
    kept = np.bincount(of, weights=within, minlength=partitions).astype(np.int64)
    beyond = np.bincount(of, weights=held - within, minlength=partitions).astype(np.int64)
    needs: Ints = np.maximum(instance.rf - kept - np.minimum(beyond, instance.partition_excess), 0)
    return needs


def _place(instance: Instance) -> Placed:
    """Sets with the fewest moves, portion by portion."""
    size = max(1, _PORTION // int(instance.eligible.sum()))
    owners: list[Ints] = []
    holders: list[Ints] = []
    counts = np.bincount(instance.broker_of_slot, minlength=instance.brokers)
    for begin in range(0, len(instance.rf), size):
        portion = np.zeros(len(instance.rf), dtype=np.bool_)
        portion[begin : begin + size] = True
        slots = portion[instance.partition_of_slot]
        counts -= np.bincount(instance.broker_of_slot[slots], minlength=instance.brokers)
        partition_of, broker_of = _place_portion(instance, portion, instance.fixed_replicas + counts)
        counts += np.bincount(broker_of, minlength=instance.brokers)
        owners.append(partition_of + begin)
        holders.append(broker_of)
    return np.concatenate(owners), np.concatenate(holders)


def _place_portion(instance: Instance, portion: Bools, fixed: Ints) -> Placed:
    """The same for a portion, in addition to ``fixed`` [B] replicas; partitions numbered from 0 and sorted."""
    part = instance.part(portion)
    eligible = np.flatnonzero(part.eligible)
    limit = np.full(len(eligible), len(part.rf), dtype=np.int64)
    level = int(fixed[eligible].sum() + part.rf.sum()) // len(eligible)
    centre = np.clip(level - fixed[eligible], 0, limit)
    best: int | None = None
    while True:
        partition_of, broker_of = _flow(part, fixed[eligible], centre, limit)
        found = np.bincount(broker_of, minlength=part.brokers)[eligible]
        value = square_sum(fixed[eligible] + found)
        if (np.abs(found - centre) <= 1).all() or value == best:
            order = np.lexsort((broker_of, partition_of))
            return partition_of[order], broker_of[order]
        centre, best = found, value


def _flow(instance: Instance, fixed: Ints, centre: Ints, limit: Ints) -> Placed:
    """Partition -> group, within or if necessary above its capacity -> broker -> sink, with square costs."""
    partitions, groups = len(instance.rf), len(instance.group_size)
    eligible = np.flatnonzero(instance.eligible)
    net = Network()
    partition = net.add_nodes(partitions, instance.rf)
    inner = net.add_nodes(partitions * groups).reshape(partitions, groups)
    beyond = net.add_nodes(partitions)
    broker = net.add_nodes(len(eligible))
    sink = net.add_nodes(1, -int(instance.rf.sum()))
    highest = int((fixed + limit).max()) + 1
    gains = [1, 2 * (len(eligible) + 1), 4 * highest, 2 * len(eligible)]
    w_move, w_leader, w_balance, w_tie = level_weights(gains, net.nodes, soft=1)
    net.add_arcs(partition[:, None], inner, instance.partition_capacity)
    net.add_arcs(partition, beyond, instance.partition_excess)
    net.add_arcs(beyond[:, None], inner, instance.group_size[None, :] - instance.partition_capacity)
    cost = np.full((partitions, instance.brokers), w_move, dtype=np.int64)
    cost[instance.partition_of_slot, instance.broker_of_slot] = 0
    first = instance.start
    cost[np.arange(partitions), instance.broker_of_slot[first]] = -w_leader
    arcs = net.add_arcs(inner[:, instance.group[eligible]], broker[None, :], 1, cost[:, eligible])
    which, width, slope = convex_segments(centre, limit)
    tie = spare_ranks(instance)[eligible] * w_tie
    net.add_arcs(broker[which], sink, width, (slope + 2 * fixed[which]) * w_balance + tie[which])
    used = net.solve()[arcs].reshape(partitions, len(eligible)) > 0
    partition_of, column = np.nonzero(used)
    return partition_of.astype(np.int64), eligible[column]
