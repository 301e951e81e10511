"""The fairest replica counts per broker that the rack rule allows: water-filling over racks, exactly, as a flow.

Partitions of one replication factor are alike here, so the network has a node per replication factor and group and
not per partition: what it finds can always be dealt out to single partitions, since dealing each count out evenly is
feasible in fractions and the constraints are laminar.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.planning.flow import Network, convex_segments, square_sum
from kafka_rebalance.planning.instance import Instance
from kafka_rebalance.planning.request import RackAwareness

Ints = NDArray[np.int64]


def fair_counts(instance: Instance) -> Ints:
    """One vector [B] of counts with the least sum of squares (0 for brokers that may hold nothing).

    All such vectors are max-min fair, and differ from each other by at most 1 per broker.
    """
    brokers = np.flatnonzero(instance.eligible)
    total = int(instance.rf.sum())
    limit = np.full(len(brokers), len(instance.rf), dtype=np.int64)
    counts = np.minimum(np.full(len(brokers), total // len(brokers), dtype=np.int64), limit)
    best: int | None = None
    while True:
        found = _solve(instance, brokers, counts, limit)
        near = bool((np.abs(found - counts) <= 1).all())
        # The pieces never undercut k*k and meet it at the centre, so equal value means the centre was optimal.
        if near or square_sum(found) == best:
            break
        counts, best = found, square_sum(found)
    fair = np.zeros(len(instance.brokers), dtype=np.int64)
    fair[brokers] = found
    return fair


def _solve(instance: Instance, brokers: Ints, centre: Ints, limit: Ints) -> Ints:
    net = Network()
    sink = net.add_nodes(1, -int(instance.rf.sum()))
    broker_node = net.add_nodes(len(brokers))
    which, width, slope = convex_segments(centre, limit)
    out = net.add_arcs(broker_node[which], sink, width, slope)
    group = instance.group[brokers]
    for rf, first, count in zip(*np.unique(instance.rf, return_index=True, return_counts=True), strict=True):
        source = net.add_nodes(1, rf * count)
        group_node = net.add_nodes(len(instance.group_size))
        if instance.rack_awareness is RackAwareness.PREFERRED:
            net.add_arcs(source, group_node, instance.group_size * count)  # balance ranks above racks
        else:
            room = instance.room[first]
            net.add_arcs(source, group_node, room * count)
            beyond = net.add_nodes(1)
            net.add_arcs(source, beyond, instance.excess[first] * count)
            net.add_arcs(beyond, group_node, (instance.group_size - room) * count)
        net.add_arcs(group_node[group], broker_node, count)
    flow = net.solve()
    counts = np.zeros(len(brokers), dtype=np.int64)
    np.add.at(counts, which, flow[out])
    return counts
