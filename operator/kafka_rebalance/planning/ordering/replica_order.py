"""The order within each replica list: leaders, then (leader, second), (leader, third) … spread evenly.

One flow decides leader and second together, since with two replicas the leader is the only freedom that the pair has:
a partition picks one ordered pair of its brokers, pairs flow into their leader, leaders into the sink; square costs at
both. For given replica sets that is the exact optimum of leader balance, then pair balance, then leader changes.
"""

from dataclasses import dataclass

import numpy as np

from kafka_rebalance.planning.problem.balance import add_fair_counts, fair_steps
from kafka_rebalance.planning.problem.flow import Network, convex_segments, level_weights, square_sum
from kafka_rebalance.planning.problem.instance import Instance, Ints
from kafka_rebalance.planning.problem.request import Goals
from kafka_rebalance.planning.replicas.placement import Placed


@dataclass(frozen=True)
class _SetTable:
    """Replica sets as a padded table [P, widest]: brokers in preferred order of staying, -1 where there is none.

    Retained replicas come first, in their present order, then new ones by id. ``retained`` [P] counts the former;
    ``first`` and ``second`` [P] are the brokers now in these places (-1 where there is no second).
    """

    brokers: Ints
    retained: Ints
    first: Ints
    second: Ints


def arrange(instance: Instance, placed: Placed, goals: Goals) -> list[list[int]]:
    """An ordered list of broker indices per partition. The instance may shrink; the sets have target sizes."""
    table = _set_table(instance, placed)
    leaders, counts = _leaders(instance, table, goals)
    if not goals.follower_order:
        return [
            _with_front(row, (leader,)) for row, leader in zip(table.brokers.tolist(), leaders.tolist(), strict=True)
        ]
    leaders, seconds = _pairs(instance, table, goals, counts)
    front = [leaders, seconds]
    for place in range(2, int(instance.rf.max(initial=0)) - 1):  # the last position has no choice left
        front.append(_place(instance, table, front, place))
    fronts = np.stack(front, axis=1).tolist()
    return [_with_front(row, chosen) for row, chosen in zip(table.brokers.tolist(), fronts, strict=True)]


def _with_front(row: list[int], front: tuple[int, ...] | list[int]) -> list[int]:
    chosen = [b for b in front if b >= 0]
    return chosen + [b for b in row if b >= 0 and b not in chosen]


def _set_table(instance: Instance, placed: Placed) -> _SetTable:
    partition_of, broker_of = placed
    partitions, brokers = len(instance.rf), instance.brokers
    cells = instance.partition_of_slot.astype(np.int64) * brokers + instance.broker_of_slot
    present = dict(zip(cells.tolist(), instance.position.tolist(), strict=True))
    widest = int(instance.rf.max(initial=0))
    new = int(instance.list_length.max(initial=0))
    cells = partition_of.astype(np.int64) * brokers + broker_of
    rank = np.array([present.get(cell, new) for cell in cells.tolist()], dtype=np.int64)
    order = np.lexsort((broker_of, rank, partition_of))
    partition_of, broker_of, rank = partition_of[order], broker_of[order], rank[order]
    start = np.cumsum(instance.rf) - instance.rf
    table = np.full((partitions, widest), -1, dtype=np.int64)
    table[partition_of, np.arange(len(partition_of)) - start[partition_of]] = broker_of
    now = np.full((partitions, 2), -1, dtype=np.int64)
    top = instance.position < 2
    now[instance.partition_of_slot[top], instance.position[top]] = instance.broker_of_slot[top]
    retained = np.bincount(partition_of[rank < new], minlength=partitions).astype(np.int64)
    return _SetTable(table, retained, now[:, 0], now[:, 1])


def _candidates(table: _SetTable, goals: Goals) -> tuple[Ints, Ints, Ints]:
    """Every (partition, broker) that may lead, and its cost: 0 leads now, 1 retained (already in sync), 2 new."""
    p, k = np.nonzero(table.brokers >= 0)
    b = table.brokers[p, k]
    stays = b == table.first[p]
    cost = np.where(stays, 0, np.where(k < table.retained[p], 1, 2))
    if not goals.leaders:
        keeps = np.zeros(len(table.first), dtype=np.bool_)
        keeps[p[stays]] = True
        allowed = stays | ~keeps[p]
        p, b, cost = p[allowed], b[allowed], cost[allowed]
    return p, b, cost


def _leaders(instance: Instance, table: _SetTable, goals: Goals) -> tuple[Ints, Ints]:
    """Leaders [P] with the least sum of squares, fewest changes among those, and leaders per broker [B]."""
    p, b, cost = _candidates(table, goals)
    partitions, brokers = len(instance.rf), instance.brokers
    limit = np.bincount(b, minlength=brokers).astype(np.int64)
    level = (partitions + int(instance.fixed_leaders.sum())) // max(1, int(instance.eligible.sum()))
    centre = np.clip(level - instance.fixed_leaders, 0, limit)
    best: int | None = None
    while True:
        net = Network()
        partition = net.add_nodes(partitions, 1)
        broker = net.add_nodes(brokers)
        sink = net.add_nodes(1, -partitions)
        changes = 2 * (brokers + 1)
        steepest = 2 * (partitions + int(instance.fixed_leaders.max(initial=0)))
        w_leader, w_change, w_new = level_weights([steepest, changes, changes], net.nodes)
        price = np.where(cost > 0, w_change, 0) + np.where(cost > 1, w_new, 0)
        arcs = net.add_arcs(partition[p], broker[b], 1, price)
        which, width, slope = convex_segments(centre, limit)
        net.add_arcs(broker[which], sink, width, (slope + 2 * instance.fixed_leaders[which]) * w_leader)
        used = net.solve()[arcs] > 0
        counts = np.bincount(b[used], minlength=brokers).astype(np.int64)
        if (np.abs(counts - centre) <= 1).all() or square_sum(instance.fixed_leaders + counts) == best:
            leaders = np.full(partitions, -1, dtype=np.int64)
            leaders[p[used]] = b[used]
            return leaders, counts
        centre, best = counts, square_sum(instance.fixed_leaders + counts)


def _pairs(instance: Instance, table: _SetTable, goals: Goals, leader_counts: Ints) -> tuple[Ints, Ints]:
    """Leaders and seconds [P] (-1 where there is none): leader balance, then pair balance, then fewest changes."""
    p, a, leader_cost = _candidates(table, goals)
    width = table.brokers.shape[1]
    rows = np.repeat(np.arange(len(p)), width)
    b = table.brokers[p].ravel()
    p, a, leader_cost = p[rows], a[rows], leader_cost[rows]
    real = (b >= 0) & (b != a)
    alone = (instance.rf[p] == 1) & (np.tile(np.arange(width), len(rows) // max(width, 1)) == 0)
    b = np.where(alone, -1, b)
    p, a, b, leader_cost = (column[real | alone] for column in (p, a, b, leader_cost))
    brokers = instance.brokers
    key, pair = np.unique(a * (brokers + 1) + b + 1, return_inverse=True)
    pair_leader, counted = key // (brokers + 1), key % (brokers + 1) > 0
    limit = np.bincount(pair, minlength=len(key)).astype(np.int64)
    per_leader = np.bincount(pair_leader[counted], minlength=brokers)
    centre = np.minimum(leader_counts[pair_leader] // np.maximum(per_leader[pair_leader], 1), limit)
    second_cost = (b != table.second[p]).astype(np.int64)
    best: int | None = None
    while True:
        net = Network()
        partition = net.add_nodes(len(instance.rf), 1)
        pair_node = net.add_nodes(len(key))
        leader = net.add_nodes(brokers)
        sink = net.add_nodes(1, -len(instance.rf))
        visits = 2 * min(len(instance.rf), len(key) + 1)
        # A simple cycle passes each leader once, so at most two pairs of it.
        steps = len(fair_steps(instance.fixed_leaders + leader_counts))
        gains = [steps, 4 * brokers * int(limit.max(initial=0)), visits, visits, visits]
        w_leader, w_pair, w_change, w_new, w_second = level_weights(gains, net.nodes, soft=2)
        price = np.where(leader_cost > 0, w_change, 0) + np.where(leader_cost > 1, w_new, 0) + second_cost * w_second
        arcs = net.add_arcs(partition[p], pair_node[pair], 1, price)
        which, widths, slope = convex_segments(centre, limit)
        slope = np.where(counted[which], slope * w_pair, 0)  # a single replica forms no pair
        net.add_arcs(pair_node[which], leader[pair_leader[which]], widths, slope)
        no_tie = np.zeros(brokers, dtype=np.int64)
        add_fair_counts(net, leader, sink, leader_counts, instance.fixed_leaders, w_leader, no_tie)
        used = net.solve()[arcs] > 0
        counts = np.bincount(pair[used], minlength=len(key)).astype(np.int64)
        value = square_sum(counts[counted])
        if (np.abs(counts - centre)[counted] <= 1).all() or value == best:
            leaders, seconds = (np.full(len(instance.rf), -1, dtype=np.int64) for _ in range(2))
            leaders[p[used]], seconds[p[used]] = a[used], b[used]
            return leaders, seconds
        centre, best = counts, value


def _place(instance: Instance, table: _SetTable, front: list[Ints], place: int) -> Ints:
    """The broker at ``place`` [P] (-1 if the list is shorter), with even pairs (leader, broker)."""
    p, k = np.nonzero((table.brokers >= 0) & (instance.rf > place)[:, None])
    b = table.brokers[p, k]
    taken = np.zeros(len(p), dtype=np.bool_)
    for chosen in front:
        taken |= chosen[p] == b
    p, b = p[~taken], b[~taken]
    brokers = instance.brokers
    key, pair = np.unique(front[0][p] * brokers + b, return_inverse=True)
    limit = np.bincount(pair, minlength=len(key)).astype(np.int64)
    now = np.full(len(instance.rf), -1, dtype=np.int64)
    here = instance.position == place
    now[instance.partition_of_slot[here]] = instance.broker_of_slot[here]
    places = np.unique(p)
    centre = np.minimum(len(places) // max(1, len(key)), limit)
    best: int | None = None
    while True:
        net = Network()
        partition = np.full(len(instance.rf), -1, dtype=np.int64)
        partition[places] = net.add_nodes(len(places), 1)
        pair_node = net.add_nodes(len(key))
        sink = net.add_nodes(1, -len(places))
        w_pair, w_change = level_weights([2 * len(places), 2 * (len(key) + 1)], net.nodes)
        arcs = net.add_arcs(partition[p], pair_node[pair], 1, (b != now[p]) * w_change)
        which, widths, slope = convex_segments(centre, limit)
        net.add_arcs(pair_node[which], sink, widths, slope * w_pair)
        used = net.solve()[arcs] > 0
        counts = np.bincount(pair[used], minlength=len(key)).astype(np.int64)
        if (np.abs(counts - centre) <= 1).all() or square_sum(counts) == best:
            chosen = np.full(len(instance.rf), -1, dtype=np.int64)
            chosen[p[used]] = b[used]
            return chosen
        centre, best = counts, square_sum(counts)
