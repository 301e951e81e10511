"""The outline of a plan: how many copies each broker keeps and gets, and which copies of a crowded group leave.

Partitions with the same replication factor are aggregated: the network has a node per replication factor and group,
not per partition. Only where a group holds more copies of a partition than the rack rule allows (a *crowd*) are copies
distinguished, by broker. Aggregation is a relaxation, so the moves of the cheapest outline are a lower bound for every
placement: the *kept-in-place* bound. A placement with as many moves is optimal.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.planning.problem.balance import add_fair_counts, fair_steps, spare_ranks
from kafka_rebalance.planning.problem.copies import rank_within
from kafka_rebalance.planning.problem.flow import Network, level_weights
from kafka_rebalance.planning.problem.instance import Instance, Ints


@dataclass(frozen=True)
class Outline:
    """``target`` [B] are fair counts; ``leaving`` the slots that must leave; ``lower_bound`` in moves."""

    target: Ints
    leaving: Ints
    lower_bound: int


@dataclass(frozen=True)
class Crowds:
    """Groups with too many copies of a partition; crowds on the same brokers are one kind of crowd.

    ``members`` [C] are their slots, crowd by crowd, and ``which`` [C] their kinds of crowd. Per kind of crowd: ``kind``
    of partition, ``group`` and ``count`` of partitions.
    """

    members: Ints
    which: Ints
    kind: Ints
    group: Ints
    count: Ints

    @cached_property
    def size(self) -> Ints:
        """Copies in a crowd, per kind of crowd."""
        return np.bincount(self.which, minlength=len(self.count)) // np.maximum(self.count, 1)


def outline(instance: Instance, fair: Ints) -> Outline:
    """Targets and lower bound of an instance in which every partition can meet the rack rule."""
    brokers, groups = np.flatnonzero(instance.eligible), len(instance.group_size)
    kinds, members = len(instance.kinds), np.bincount(instance.kind)
    stays = instance.eligible[instance.broker_of_slot]
    crowded, _ = instance.overfull(instance.broker_of_slot)
    crowds = crowds_of(instance, crowded)
    # Copies that the rack rule allows to stay, per kind and broker.
    alone = stays.copy()
    alone[crowded] = False
    cell = instance.kind[instance.partition_of_slot[alone]] * instance.brokers + instance.broker_of_slot[alone]
    keepable = np.bincount(cell, minlength=kinds * instance.brokers).reshape(kinds, instance.brokers)

    net = Network()
    source = net.add_nodes(kinds, instance.kinds * members)
    inner = net.add_nodes(kinds * groups).reshape(kinds, groups)
    pool = net.add_nodes(groups)
    broker = net.add_nodes(instance.brokers)
    crowd_node = net.add_nodes(len(crowds.count))
    sink = net.add_nodes(1, -len(instance.broker_of_slot))
    # A simple cycle enters and leaves each pool at most once.
    gains = [len(fair_steps((instance.fixed_replicas + fair)[brokers])), 2 * (groups + 1), 2 * len(brokers)]
    w_balance, w_move, w_tie = level_weights(gains, net.nodes, soft=1)
    net.add_arcs(source[:, None], inner, instance.rack_capacity * members[:, None])
    k, b = np.nonzero(keepable)
    net.add_arcs(inner[k, instance.group[b]], broker[b], keepable[k, b])
    capacity = instance.rack_capacity[crowds.kind, crowds.group]
    net.add_arcs(inner[crowds.kind, crowds.group], crowd_node, capacity * crowds.count)
    corner, corner_broker = corners(instance, crowds)
    kept_in_crowd = net.add_arcs(crowd_node[corner], broker[corner_broker], crowds.count[corner])
    new = net.add_arcs(inner, pool[None, :], len(instance.broker_of_slot), w_move)
    net.add_arcs(pool[instance.group[brokers]], broker[brokers], len(instance.broker_of_slot))
    tie = spare_ranks(instance)[brokers] * w_tie
    into_broker = net.arcs
    add_fair_counts(net, broker[brokers], sink, fair[brokers], instance.fixed_replicas[brokers], w_balance, tie)
    flow = net.solve()

    target = np.zeros(instance.brokers, dtype=np.int64)
    target[brokers] = flow[into_broker:].reshape(3, len(brokers)).sum(axis=0)
    keeps = deal_crowds(crowds, corner, flow[kept_in_crowd])
    leaving = np.concatenate([np.flatnonzero(~stays), crowds.members[~keeps]])
    return Outline(target, np.sort(leaving), int(flow[new].sum()))


def crowds_of(instance: Instance, slots: Ints) -> Crowds:
    """The crowds of these slots."""
    partition_of, broker_of = instance.replicas(slots)
    group = instance.group[broker_of]
    order = np.lexsort((broker_of, group, partition_of))
    slots, partition_of, broker_of, group = slots[order], partition_of[order], broker_of[order], group[order]
    begins = np.ones(len(slots), dtype=np.bool_)
    begins[1:] = (partition_of[1:] != partition_of[:-1]) | (group[1:] != group[:-1])
    crowd = np.cumsum(begins) - 1
    begin = np.flatnonzero(begins)
    size = np.diff(np.append(begin, len(slots)))
    # Equal crowds have equal kinds and brokers: number the prefixes of their broker lists, position by position.
    name = instance.kind[partition_of[begin]]
    for place in range(int(size.max(initial=0))):
        reaches = size > place
        step = np.zeros(len(begin), dtype=np.int64)
        step[reaches] = broker_of[begin[reaches] + place] + 1
        name = np.unique(name * (instance.brokers + 1) + step, return_inverse=True)[1]
    count = np.bincount(name).astype(np.int64) if len(name) else np.zeros(0, dtype=np.int64)
    example = np.zeros(len(count), dtype=np.int64)
    example[name] = begin
    by_name = np.argsort(name[crowd], kind="stable")
    return Crowds(slots[by_name], name[crowd][by_name], instance.kind[partition_of[example]], group[example], count)


def corners(instance: Instance, crowds: Crowds) -> tuple[Ints, Ints]:
    """The brokers of each kind of crowd, as (kind of crowd, broker)."""
    first = rank_within(crowds.which) < crowds.size[crowds.which]
    return crowds.which[first], instance.broker_of_slot[crowds.members[first]].astype(np.int64)


def deal_crowds(crowds: Crowds, corner: Ints, kept: Ints) -> NDArray[np.bool_]:
    """Which members stay, so that each broker keeps ``kept`` copies and no crowd more than its capacity.

    The crowds of a kind form a circle: each broker keeps its copies of the next crowds on it.
    """
    before = np.cumsum(kept) - kept
    first_corner = np.flatnonzero(rank_within(corner) == 0)
    offset = before - before[first_corner][corner] if len(corner) else before
    place = rank_within(crowds.which)
    at, column = np.divmod(place, crowds.size[crowds.which])
    corner_of = first_corner[crowds.which] + column if len(corner) else place
    turn = (at - offset[corner_of]) % crowds.count[crowds.which]
    return np.asarray(turn < kept[corner_of])
