"""Exact balance of each topic: which brokers hold each partition, by one min-cost flow over all partitions.

A topic's copies on a broker are a *cell*. Constraints are laminar (a broker in a group in a partition; a cell in the
broker's total), so the integer optimum is that of the flow: partition -> (partition, group) -> cell -> broker -> sink,
with square costs for cells and for brokers.

Order of costs, PerTopic: racks, squares of each topic, moves, squares of the totals, bytes. Both: racks, squares of the
totals, squares of each topic, moves, bytes. Preferred racks come right before moves.
"""

import numpy as np

from kafka_rebalance.model.goals import Balance, RackAwareness
from kafka_rebalance.planning.problem.balance import add_fair_counts, fair_counts, fair_steps, spare_ranks
from kafka_rebalance.planning.problem.flow import (
    Network,
    all_strict,
    convex_segments,
    level_weights,
    square_sum,
    steps_of,
)
from kafka_rebalance.planning.problem.instance import Instance, Ints
from kafka_rebalance.planning.replicas.placement import Placed


def place_by_topic(instance: Instance, balance: Balance) -> tuple[Placed, bool, int | None]:
    """The replica sets, sorted by partition, and whether they are proved: numbers can be too large for a proof.

    Last the unit of sizes, as in ``placement``; None if the bytes are not proved.
    """
    topics, brokers = int(instance.topic[-1]) + 1, np.flatnonzero(instance.eligible)
    copies = np.bincount(instance.topic, instance.rf).astype(np.int64)
    members = np.bincount(instance.topic)
    cells = np.minimum(copies[:, None] // len(brokers), members[:, None]).repeat(len(brokers), axis=1)
    fixed = instance.fixed_replicas[brokers]
    totals = np.clip(int(copies.sum() + fixed.sum()) // len(brokers) - fixed, 0, len(instance.rf))
    best: tuple[int, int] | None = None
    while True:
        network = _TopicNetwork(instance, balance, cells, totals)
        partition_of, number = network.solve()
        cell = instance.topic[partition_of] * len(brokers) + number
        found = np.bincount(cell, minlength=topics * len(brokers)).reshape(topics, -1)
        value = square_sum(found.ravel()), square_sum(fixed + found.sum(axis=0))
        near = (np.abs(found - cells) <= 1).all() and (np.abs(found.sum(axis=0) - totals) <= 1).all()
        if near or value == best:
            broker_of = brokers[number]
            order = np.lexsort((broker_of, partition_of))
            return (partition_of[order], broker_of[order]), network.strict, network.unit
        cells, totals, best = found, found.sum(axis=0), value


class _TopicNetwork:
    """Square costs are exact around ``cells`` [topics, brokers] and ``totals`` [brokers]."""

    def __init__(self, instance: Instance, balance: Balance, cells: Ints, totals: Ints) -> None:
        self._instance = instance
        self._brokers = np.flatnonzero(instance.eligible)
        self._both = balance is Balance.BOTH
        net = self._net = Network()
        partitions = len(instance.rf)
        self._partition = net.add_nodes(partitions, instance.rf)
        self._inner = net.add_nodes(partitions * len(instance.group_size)).reshape(partitions, -1)
        self._cell = net.add_nodes(cells.size).reshape(cells.shape)
        self._broker = net.add_nodes(len(self._brokers))
        self._sink = net.add_nodes(1, -len(instance.broker_of_slot))
        self._base = instance.fixed_replicas[self._brokers]
        self._fair = fair_counts(instance)[self._brokers] if self._both else totals
        self._set_weights(int(np.bincount(instance.topic).max()))
        self._add_groups()
        self._add_choices()
        self._add_cells(cells)
        self._add_totals(totals)

    def _set_weights(self, largest: int) -> None:
        """Weights of the levels in order; a simple cycle passes the sink and each broker once."""
        count = len(self._brokers)
        arcs = 2 * (self._cell.size + 1)
        gains = {
            "rack": arcs,
            "topic": 2 * count * (2 * largest + 1),
            "total": 2 * len(fair_steps(self._base + self._fair)) if self._both else 4 * self._instance.highest + 2,
            "move": arcs,
            "tie": 2 * count,
        }
        steps = np.zeros(len(self._instance.rf), dtype=np.int64)
        self.unit: int | None = 1
        """The unit of sizes; None if bytes were traded for a lower level."""
        order = ["total", "topic", "move"] if self._both else ["topic", "move", "total"]
        preferred = self._instance.rack_awareness is RackAwareness.PREFERRED
        order.insert(order.index("move") if preferred else 0, "rack")
        if order[0] == "rack":
            gains["rack"] = 1
        if self._instance.sizes_differ:
            upper = [gains[level] for level in order]
            steps, self.unit = steps_of(self._instance.size, [*upper, 1], arcs, self._net.nodes)
            gains["data"] = arcs * int(steps.max(initial=0))
            order.append("data")
        order.append("tie")
        bounds = [gains[level] for level in order]
        if self._instance.sizes_differ and not all_strict(bounds, self._net.nodes, len(order) - 1):
            self.unit = None
        strict = order.index("move") + 1
        self.strict = all_strict(bounds, self._net.nodes, strict)
        """Whether no level down to moves was traded for a lower one."""
        weights = level_weights(bounds, self._net.nodes, soft=len(bounds) - strict + 1)
        self._weight = dict(zip(order, weights, strict=True))
        self._new = self._weight["move"] + steps * self._weight.get("data", 0)
        """The price of a new copy of each partition [P]: a move, then its bytes."""

    def _add_groups(self) -> None:
        instance, net = self._instance, self._net
        rack = self._weight["rack"]
        net.add_arcs(self._partition[:, None], self._inner, instance.partition_capacity)
        above = instance.group_size - instance.partition_capacity
        if instance.rack_awareness is RackAwareness.PREFERRED:
            net.add_arcs(self._partition[:, None], self._inner, above, rack)
            return
        forced = np.flatnonzero(instance.partition_excess)
        beyond = net.add_nodes(len(forced))
        net.add_arcs(self._partition[forced], beyond, instance.partition_excess[forced])
        net.add_arcs(beyond[:, None], self._inner[forced], above[forced], rack)

    def _add_choices(self) -> None:
        """Every partition may be on every broker; one that did not hold it costs a move."""
        instance = self._instance
        price = np.repeat(self._new[:, None], instance.brokers, axis=1)
        price[instance.partition_of_slot, instance.broker_of_slot] = 0
        group = instance.group[self._brokers]
        cells = self._cell[instance.topic]
        self._chosen = self._net.add_arcs(self._inner[:, group], cells, 1, price[:, self._brokers])

    def _add_cells(self, cells: Ints) -> None:
        members = np.bincount(self._instance.topic)
        limit = np.broadcast_to(members[:, None], cells.shape)
        which, width, slope = convex_segments(cells.ravel(), limit.ravel())
        broker = np.broadcast_to(self._broker, cells.shape).ravel()
        self._net.add_arcs(self._cell.ravel()[which], broker[which], width, slope * self._weight["topic"])

    def _add_totals(self, totals: Ints) -> None:
        tie = spare_ranks(self._instance)[self._brokers] * self._weight["tie"]
        if self._both:
            add_fair_counts(self._net, self._broker, self._sink, self._fair, self._base, self._weight["total"], tie)
            return
        limit = np.full(len(totals), len(self._instance.rf), dtype=np.int64)
        which, width, slope = convex_segments(totals, limit)
        square = (slope + 2 * self._base[which]) * self._weight["total"]
        self._net.add_arcs(self._broker[which], self._sink, width, square + tie[which])

    def solve(self) -> tuple[Ints, Ints]:
        """Every copy as (partition, index of the broker among the eligible ones)."""
        flow = self._net.solve()[self._chosen]
        partition_of, number = np.nonzero(flow.reshape(len(self._instance.rf), -1))
        return partition_of.astype(np.int64), number.astype(np.int64)
