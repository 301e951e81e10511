"""The fairest replica counts per broker that the rack rule allows: exact water-filling over racks, as a flow.

Partitions with the same replication factor are interchangeable here, so the network has a node per replication factor
and group, not per partition. The counts can always be assigned to single partitions: spreading each count evenly is a
fractional solution, and the constraints are laminar, so an integer solution exists.
"""

import numpy as np

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.planning.problem.flow import Network, convex_segments, square_sum
from kafka_rebalance.planning.problem.instance import Instance, Ints


def fair_counts(instance: Instance) -> Ints:
    """Counts [B] that, with the fixed replicas, have the least sum of squares (0 for brokers that are not eligible).

    All such vectors are max-min fair, and differ from each other by at most 1 per broker. The instance may shrink.
    """
    brokers = np.flatnonzero(instance.eligible)
    fixed = instance.fixed_replicas[brokers]
    total = int(instance.rf.sum() + fixed.sum())
    limit = np.full(len(brokers), len(instance.rf), dtype=np.int64)
    counts = np.clip(total // len(brokers) - fixed, 0, limit)
    best: int | None = None
    while True:
        found = _solve(instance, brokers, counts, limit)
        near = bool((np.abs(found - counts) <= 1).all())
        # The pieces are never below k*k and equal it at the centre: an equal value means that the centre was optimal.
        if near or square_sum(fixed + found) == best:
            break
        counts, best = found, square_sum(fixed + found)
    fair = np.zeros(instance.brokers, dtype=np.int64)
    fair[brokers] = found
    return fair


def _solve(instance: Instance, brokers: Ints, centre: Ints, limit: Ints) -> Ints:
    net = Network()
    sink = net.add_nodes(1, -int(instance.rf.sum()))
    broker_node = net.add_nodes(len(brokers))
    which, width, slope = convex_segments(centre, limit)
    out = net.add_arcs(broker_node[which], sink, width, slope + 2 * instance.fixed_replicas[brokers][which])
    group = instance.group[brokers]
    members = np.bincount(instance.kind)
    rules = instance.rack_capacity, instance.rack_excess
    for rf, count, capacity, excess in zip(instance.kinds, members, *rules, strict=True):
        source = net.add_nodes(1, rf * count)
        group_node = net.add_nodes(len(instance.group_size))
        if instance.rack_awareness is RackAwareness.PREFERRED:
            net.add_arcs(source, group_node, instance.group_size * count)  # balance ranks above racks
        else:
            net.add_arcs(source, group_node, capacity * count)
            beyond = net.add_nodes(1)
            net.add_arcs(source, beyond, excess * count)
            net.add_arcs(beyond, group_node, (instance.group_size - capacity) * count)
        net.add_arcs(group_node[group], broker_node, count)
    flow = net.solve()
    counts = np.zeros(len(brokers), dtype=np.int64)
    np.add.at(counts, which, flow[out])
    return counts


def add_fair_counts(net: Network, nodes: Ints, sink: Ints, fair: Ints, fixed: Ints, weight: int, tie: Ints) -> None:
    """Add arcs from the brokers' nodes to the sink that are cheapest for counts as fair as ``fair``, above ``fixed``.

    Fair vectors differ by at most 1 per broker, and any increasing step cost leads to the same vectors. ``tie`` [B] is
    added to the steps and decides between equally fair vectors: the least sum wins.
    """
    steps = fair_steps(fixed + fair)
    net.add_arcs(nodes, sink, np.maximum(fair - 1, 0), 0)
    for step in (0, 1):
        k = fair + step
        rank = np.searchsorted(steps, fixed + k) + 1
        net.add_arcs(nodes, sink, (k >= 1).astype(np.int64), rank * weight + tie)


def fair_steps(fair: Ints) -> Ints:
    """The counts that some broker can have in a fair vector, and their neighbours."""
    return np.unique(np.concatenate([fair + d for d in (-1, 0, 1)]))


def spare_ranks(instance: Instance) -> Ints:
    """The order [B] in which brokers get a spare copy: highest ``tie_break`` or current count first, then lowest id."""
    brokers = np.flatnonzero(instance.eligible)
    current = instance.fixed_replicas + np.bincount(instance.broker_of_slot, minlength=instance.brokers)
    current = current if instance.tie_break is None else instance.tie_break
    ranked = brokers[np.argsort(-current[brokers], kind="stable")]
    ranks = np.zeros(instance.brokers, dtype=np.int64)
    ranks[ranked] = np.arange(len(ranked))
    return ranks
