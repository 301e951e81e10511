"""The outline of a plan that balances each topic: how many copies of each topic every broker keeps and gets.

As in ``outline``, partitions of one topic and replication factor are aggregated. The network has a *cell* per topic and
broker, from which copies go to the broker's total. The moves of the cheapest outline are a lower bound, and its counts
can be reached: no cell has more copies of a replication factor than the topic has partitions of it.
"""

from dataclasses import dataclass, replace

import numpy as np

from kafka_rebalance.model.goals import Balance
from kafka_rebalance.planning.problem.balance import add_fair_counts, fair_counts, fair_steps, spare_ranks
from kafka_rebalance.planning.problem.flow import Network, all_strict, convex_segments, level_weights, square_sum
from kafka_rebalance.planning.problem.instance import Instance, Ints
from kafka_rebalance.planning.replicas.outline import corners, crowds_of, deal_crowds


@dataclass(frozen=True)
class TopicOutline:
    """``targets`` [topics, B]; ``leaving`` the slots that must leave; ``lower_bounds`` in moves [topics], 0 if the
    numbers are too large for a proof."""

    targets: Ints
    leaving: Ints
    lower_bounds: Ints


def outline_by_topic(instance: Instance, balance: Balance) -> TopicOutline:
    """Targets and lower bounds of an instance in which every partition can meet the rack rule."""
    network = _CellNetwork(instance, balance)
    brokers = np.flatnonzero(instance.eligible)
    copies = np.bincount(instance.topic, instance.rf).astype(np.int64)
    members = np.bincount(instance.topic)
    cells = np.minimum(copies[:, None] // len(brokers), members[:, None]).repeat(len(brokers), axis=1)
    best: tuple[int, int, int] | None = None
    while True:
        found, moves, leaving = network.solve(cells)
        totals = instance.fixed_replicas[brokers] + found.sum(axis=0)
        value = square_sum(found.ravel()), square_sum(totals), int(moves.sum())
        near = (np.abs(found - cells) <= 1).all() and (np.abs(found.sum(axis=0) - cells.sum(axis=0)) <= 1).all()
        if near or value == best:
            targets = np.zeros((len(found), instance.brokers), dtype=np.int64)
            targets[:, brokers] = found
            return TopicOutline(targets, leaving, moves)
        cells, best = found, value


def _by_topic(instance: Instance) -> tuple[Instance, Ints]:
    """Partitions of one topic and replication factor as one kind, and the topic of each kind."""
    topics = int(instance.topic[-1]) + 1
    cell, kind = np.unique(instance.rf * topics + instance.topic, return_inverse=True)
    rf, topic = cell // topics, cell % topics
    old = np.searchsorted(instance.kinds, rf)
    capacity, excess = instance.rack_capacity[old], instance.rack_excess[old]
    kind = kind.astype(np.int64)
    return replace(instance, kind=kind, kinds=rf, rack_capacity=capacity, rack_excess=excess), topic


class _CellNetwork:
    """(topic, replication factor) -> group -> kept copies or pool -> cell -> broker -> sink.

    A cell of a topic with several replication factors has an entry for each of them.
    """

    def __init__(self, instance: Instance, balance: Balance) -> None:
        self._both = balance is Balance.BOTH
        self._instance, self._topic = _by_topic(instance)
        self._brokers = np.flatnonzero(instance.eligible)
        self._number = np.full(instance.brokers, -1, dtype=np.int64)
        self._number[self._brokers] = np.arange(len(self._brokers))
        self._stays = instance.eligible[instance.broker_of_slot]
        crowded, _ = instance.overfull(instance.broker_of_slot)
        self._crowds = crowds_of(self._instance, crowded)
        ordinary = self._stays.copy()
        ordinary[crowded] = False
        partition_of, broker_of = instance.replicas(np.flatnonzero(ordinary))
        cell = self._instance.kind[partition_of] * instance.brokers + broker_of
        self._cells, self._keepable = np.unique(cell, return_counts=True)
        self._fair = fair_counts(instance)[self._brokers] if self._both else None

    def solve(self, cells: Ints) -> tuple[Ints, Ints, Ints]:
        """Copies per cell [topics, brokers], moves per topic, leaving slots; square costs are exact around ``cells``.

        Moves are 0 if the numbers are too large for a proof.
        """
        instance, crowds, brokers = self._instance, self._crowds, self._brokers
        groups = len(instance.group_size)
        members = np.bincount(instance.kind)
        net = Network()
        source = net.add_nodes(len(instance.kinds), instance.kinds * members)
        inner = net.add_nodes(len(instance.kinds) * groups).reshape(-1, groups)
        pool = net.add_nodes(len(instance.kinds) * groups).reshape(-1, groups)
        cell = net.add_nodes(cells.size).reshape(cells.shape)
        entry = self._add_entries(net, cell)
        broker = net.add_nodes(len(brokers))
        crowd_node = net.add_nodes(len(crowds.count))
        sink = net.add_nodes(1, -len(instance.broker_of_slot))
        w_topic, w_move, w_total, w_tie = self._weights(net.nodes)
        net.add_arcs(source[:, None], inner, instance.rack_capacity * members[:, None])
        kind, at = self._cells // instance.brokers, self._cells % instance.brokers
        net.add_arcs(inner[kind, instance.group[at]], entry[kind, self._number[at]], self._keepable)
        capacity = instance.rack_capacity[crowds.kind, crowds.group]
        net.add_arcs(inner[crowds.kind, crowds.group], crowd_node, capacity * crowds.count)
        corner, corner_broker = corners(instance, crowds)
        into = entry[crowds.kind[corner], self._number[corner_broker]]
        kept = net.add_arcs(crowd_node[corner], into, crowds.count[corner])
        everyone = len(instance.broker_of_slot)
        new = net.add_arcs(inner, pool, everyone, w_move)
        net.add_arcs(pool[:, instance.group[brokers]], entry, everyone)
        out, which = self._add_cells(net, cell, broker, cells, w_topic)
        tie = spare_ranks(instance)[brokers] * w_tie
        if self._fair is not None:
            add_fair_counts(net, broker, sink, self._fair, instance.fixed_replicas[brokers], w_total, tie)
        else:
            total = cells.sum(axis=0)
            of, widths, slope = convex_segments(total, np.full(len(total), len(instance.rf)))
            square = (slope + 2 * instance.fixed_replicas[brokers][of]) * w_total
            net.add_arcs(broker[of], sink, widths, square + tie[of])
        flow = net.solve()
        found = np.bincount(which, flow[out], minlength=cells.size).astype(np.int64).reshape(cells.shape)
        moves = np.bincount(self._topic, flow[new].reshape(inner.shape).sum(axis=1), minlength=len(cells))
        keeps = deal_crowds(crowds, corner, flow[kept])
        leaving = np.concatenate([np.flatnonzero(~self._stays), crowds.members[~keeps]])
        return found, moves.astype(np.int64) * self._strict, np.sort(leaving)

    def _weights(self, nodes: int) -> list[int]:
        """A simple cycle passes the sink and each broker once, and each pool.

        From broker to broker it goes through two cells of a topic, which differ by less than ``slope``, and between
        them through a group, a pool or a crowd.
        """
        brokers, largest = len(self._brokers), int(np.bincount(self._instance.topic).max())
        pools = len(self._instance.kinds) * len(self._instance.group_size)
        slope, moves = 2 * largest + 1, 2 * (pools + 1)
        if self._fair is None:
            total = 4 * self._instance.highest + 2
            bounds = [slope, moves, total, 2 * brokers]
            self._strict = all_strict(bounds, nodes, 2)
            return level_weights(bounds, nodes, soft=3)
        topic = min(brokers, 2 * pools + len(self._crowds.count)) * slope
        steps = fair_steps(self._instance.fixed_replicas[self._brokers] + self._fair)
        bounds = [len(steps), topic, moves, 2 * brokers]
        self._strict = all_strict(bounds, nodes, 3)
        w_total, w_topic, w_move, w_tie = level_weights(bounds, nodes, soft=2)
        return [w_topic, w_move, w_total, w_tie]

    def _add_entries(self, net: Network, cell: Ints) -> Ints:
        """The nodes through which copies of each kind enter the cells [kinds, brokers]: at most one per partition."""
        entry = cell[self._topic]
        several = np.bincount(self._topic)[self._topic] > 1
        entry[several] = net.add_nodes(entry[several].size).reshape(-1, cell.shape[1])
        members = np.bincount(self._instance.kind)[several]
        net.add_arcs(entry[several], cell[self._topic[several]], members[:, None])
        return entry

    def _add_cells(self, net: Network, cell: Ints, broker: Ints, centre: Ints, weight: int) -> tuple[Ints, Ints]:
        """Add square costs; returns the arcs and their cells."""
        limit = np.bincount(self._instance.topic)[:, None].repeat(centre.shape[1], axis=1)
        which, width, slope = convex_segments(centre.ravel(), limit.ravel())
        head = np.broadcast_to(broker, cell.shape).ravel()
        return net.add_arcs(cell.ravel()[which], head[which], width, slope * weight), which
