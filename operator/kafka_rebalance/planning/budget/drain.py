"""Moves a limited number of copies off brokers that are not eligible, exactly, when nothing else can be moved.

One flow decides which of the departing copies move first, and to which brokers: partition -> (partition, group) ->
broker -> sink, with square costs for counts and a cost for rack violations.
"""

import numpy as np

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.flow import Network, convex_segments, level_weights, square_sum
from kafka_rebalance.planning.problem.instance import Instance, Ints

MOST_CHOICES = 1_000_000
"""Number of (partition, broker) choices up to which it is used: some seconds."""


def drain(instance: Instance, moves: int) -> Copies | None:
    """The copies after ``moves`` moves, at most the number of departing copies; None if there are too many choices."""
    departing = np.flatnonzero(~instance.eligible[instance.broker_of_slot])
    partitions, number = np.unique(instance.partition_of_slot[departing].astype(np.int64), return_inverse=True)
    if len(partitions) * int(instance.eligible.sum()) > MOST_CHOICES:
        return None
    counts = np.bincount(instance.broker_of_slot, minlength=instance.brokers)
    centre = np.where(instance.eligible, counts, 0).astype(np.int64)
    best: int | None = None
    while True:
        row, broker = _goes(instance, partitions, np.bincount(number), moves, centre)
        found = np.where(instance.eligible, counts, 0) + np.bincount(broker, minlength=instance.brokers)
        squares = square_sum((instance.fixed_replicas + found)[instance.eligible])
        if squares == best or (np.abs(found - centre) <= 1).all():
            break
        centre, best = found, squares
    copies = Copies(instance, np.zeros(0, dtype=np.int64))
    slots_of = np.split(departing, np.flatnonzero(np.diff(number)) + 1)
    taken = [0] * len(partitions)
    for p, b in zip(row.tolist(), broker.tolist(), strict=True):
        copies.broker_of_slot[slots_of[p][taken[p]]] = b
        taken[p] += 1
    return copies


def _goes(instance: Instance, partitions: Ints, leaving: Ints, moves: int, centre: Ints) -> tuple[Ints, Ints]:
    """Which of these partitions gets a copy on which broker, as (row, broker)."""
    brokers = np.flatnonzero(instance.eligible)
    rows = instance.rows(instance.broker_of_slot, partitions)
    row, place = np.nonzero((rows >= 0) & instance.eligible[rows])
    lacks = np.ones((len(partitions), instance.brokers), dtype=np.bool_)
    lacks[:, ~instance.eligible] = False
    lacks[row, rows[row, place]] = False
    held = np.zeros((len(partitions), len(instance.group_size)), dtype=np.int64)
    np.add.at(held, (row, instance.group[rows[row, place]]), 1)
    free = np.maximum(instance.partition_capacity[partitions] - held, 0)

    net = Network()
    source = net.add_nodes(1, moves)
    partition = net.add_nodes(len(partitions))
    inner = net.add_nodes(held.size).reshape(held.shape)
    counts = np.bincount(instance.broker_of_slot, minlength=instance.brokers)[brokers]
    broker = net.add_nodes(len(brokers), counts)
    sink = net.add_nodes(1, -moves - int(counts.sum()))
    limit = np.full(len(brokers), len(instance.rf), dtype=np.int64)
    slopes, racks = 2 * instance.highest + 1, 2 * (len(brokers) + 1)
    if instance.rack_awareness is RackAwareness.PREFERRED:
        w_square, w_rack = level_weights([slopes, racks], net.nodes)
    else:
        w_rack, w_square = level_weights([1, 2 * slopes], net.nodes)
    net.add_arcs(source, partition, leaving)
    net.add_arcs(partition[:, None], inner, free)
    net.add_arcs(partition[:, None], inner, leaving[:, None], w_rack)
    p, b = np.nonzero(lacks[:, brokers])
    goes = net.add_arcs(inner[p, instance.group[brokers[b]]], broker[b], 1)
    which, width, slope = convex_segments(centre[brokers], limit)
    net.add_arcs(broker[which], sink, width, (slope + 2 * instance.fixed_replicas[brokers][which]) * w_square)
    used = net.solve()[goes] > 0
    return p[used], brokers[b[used]]
