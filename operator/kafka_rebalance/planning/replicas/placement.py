"""The fewest moves: which brokers hold each partition, exactly, by one min-cost flow.

Constraints are laminar (a broker in a group in a partition; a broker in the total), so the integer optimum is that
of the flow. A kept copy costs nothing, a new copy costs a move. To keep the network small a new copy first goes to its
group's *pool* and from there to any broker of the group. The pool does not know the partitions of its copies, so this
network is a relaxation: assigning the pool's copies to brokers that do not hold the partition either succeeds, which
proves the optimum, or names partitions that the next network expands, with an arc to every broker. It ends at the
latest when every partition is expanded.
"""

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import max_flow

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.planning.problem.balance import add_fair_counts, fair_steps, spare_ranks
from kafka_rebalance.planning.problem.flow import Network, level_weights, steps_of
from kafka_rebalance.planning.problem.instance import Instance, Ints

Placed = tuple[Ints, Ints]
"""Partition and broker of every replica, kept or new, as two columns."""

_PATIENT_ROUNDS = 6
"""After this many rounds all partitions are expanded at once."""


def place(instance: Instance, fair: Ints) -> tuple[Placed, int]:
    """Replica sets with the counts of ``fair`` (or an equally fair vector) and the fewest moves, sorted by partition.

    Among those they copy the fewest bytes, with every size rounded down to a multiple of the returned unit.

    The instance may shrink: the replicas that stay are those that leave the fewest moves.
    """
    spelled = np.zeros(len(instance.rf), dtype=np.bool_)
    rounds = 0
    while True:
        network = _PlacementNetwork(instance, fair, spelled)
        stuck, placed = network.deal()
        if not len(stuck):
            partition_of, broker_of = placed
            order = np.lexsort((broker_of, partition_of))
            return (partition_of[order], broker_of[order]), network.unit
        rounds += 1
        spelled[stuck if rounds < _PATIENT_ROUNDS else slice(None)] = True


class _PlacementNetwork:
    """One relaxation: partition -> (partition, group) -> kept broker or pool -> broker -> sink."""

    def __init__(self, instance: Instance, fair: Ints, spelled: NDArray[np.bool_]) -> None:
        self._instance = instance
        self._brokers = np.flatnonzero(instance.eligible)
        self._net = Network()
        partitions, groups = len(instance.rf), len(instance.group_size)
        self._partition = self._net.add_nodes(partitions, instance.rf)
        self._pool = self._net.add_nodes(groups)
        self._broker = self._net.add_nodes(instance.brokers)
        self._sink = self._net.add_nodes(1, -int(instance.rf.sum()))
        self._spelled = spelled
        held = np.zeros((partitions, groups), dtype=np.bool_)
        self._kept = instance.eligible[instance.broker_of_slot]
        held[instance.partition_of_slot[self._kept], instance.group[instance.broker_of_slot[self._kept]]] = True
        wanted = (instance.group_size > 0)[None, :] & np.ones((partitions, 1), dtype=np.bool_)
        # A node for each group that already holds a copy; otherwise the partition has an arc straight to the pool.
        inner = wanted & (held | spelled[:, None] | (instance.partition_excess > 0)[:, None])
        self._inner = np.full((partitions, groups), -1, dtype=np.int64)
        self._inner[inner] = self._net.add_nodes(int(inner.sum()))
        self._set_weights(fair)
        self._add_group_arcs(wanted)
        self._add_broker_arcs()
        tie = self._tie[self._brokers] * self._w_tie
        fixed, nodes = instance.fixed_replicas[self._brokers], self._broker[self._brokers]
        add_fair_counts(self._net, nodes, self._sink, fair[self._brokers], fixed, self._w_balance, tie)
        self._flow = self._net.solve()

    def _set_weights(self, fair: Ints) -> None:
        instance = self._instance
        self._tie = spare_ranks(instance)
        # A simple cycle passes every broker, every pool and the sink once: at most this many arcs with a cost.
        arcs = 2 * (len(self._brokers) + len(instance.group_size) + 1)
        upper = [len(fair_steps((instance.fixed_replicas + fair)[self._brokers])), arcs, arcs]
        lower = [arcs, 2 * len(self._brokers)]
        steps, self.unit = np.zeros(len(instance.rf), dtype=np.int64), 1
        if instance.sizes_differ:
            if instance.rack_awareness is not RackAwareness.PREFERRED:
                upper[1] = 0  # no arc has this cost: more room for bytes
            steps, self.unit = steps_of(instance.size, [*upper, 1, 1], arcs, self._net.nodes)
        data = [arcs * int(steps.max(initial=0))] if instance.sizes_differ else []
        weights = level_weights([*upper, *data, *lower], self._net.nodes, soft=2)
        self._w_balance, self._w_rack, w_move = weights[:3]
        self._w_leader, self._w_tie = weights[-2:]
        self._new = w_move + steps * weights[3]
        """The price of a new copy of each partition [P]: a move, then its bytes."""

    def _add_group_arcs(self, wanted: NDArray[np.bool_]) -> None:
        instance, net = self._instance, self._net
        preferred = instance.rack_awareness is RackAwareness.PREFERRED
        p, g = np.nonzero(wanted)
        inner = self._inner[p, g]
        direct = inner < 0
        head = np.where(direct, self._pool[g], inner)
        cost = np.where(direct, self._new[p], 0)
        parts = [(p, g, net.add_arcs(self._partition[p], head, instance.partition_capacity[p, g], cost))]
        beyond_room = instance.group_size[g] - instance.partition_capacity[p, g]
        if preferred:
            arcs = net.add_arcs(self._partition[p], head, beyond_room, cost + self._w_rack)
            parts.append((p, g, arcs))
        else:
            forced = np.flatnonzero(instance.partition_excess > 0)
            beyond = np.full(len(instance.rf), -1, dtype=np.int64)
            beyond[forced] = net.add_nodes(len(forced))
            net.add_arcs(self._partition[forced], beyond[forced], instance.partition_excess[forced])
            over = beyond[p] >= 0
            net.add_arcs(beyond[p[over]], inner[over], beyond_room[over])
        # The arcs into a pool, and the partitions of their copies.
        pooled = [(p[direct], g[direct], arcs[direct]) for p, g, arcs in parts]
        has_pool = ~direct & ~self._spelled[p]
        size = instance.group_size[g[has_pool]]
        arcs = net.add_arcs(inner[has_pool], self._pool[g[has_pool]], size, self._new[p[has_pool]])
        pooled.append((p[has_pool], g[has_pool], arcs))
        self._pooled = [np.concatenate(column) for column in zip(*pooled, strict=True)]

    def _add_broker_arcs(self) -> None:
        instance, net = self._instance, self._net
        partition_of, broker_of = instance.replicas(np.flatnonzero(self._kept))
        leads = instance.position[self._kept] == 0
        tail = self._inner[partition_of, instance.group[broker_of]]
        arcs = [net.add_arcs(tail, self._broker[broker_of], 1, np.where(leads, -self._w_leader, 0))]
        new = [(partition_of, broker_of)]
        p = np.flatnonzero(self._spelled)
        if len(p):
            absent = np.ones((len(p), instance.brokers), dtype=np.bool_)
            absent[:, ~instance.eligible] = False
            row = np.full(len(instance.rf), -1, dtype=np.int64)
            row[p] = np.arange(len(p))
            ours = row[partition_of] >= 0
            absent[row[partition_of[ours]], broker_of[ours]] = False
            i, b = np.nonzero(absent)
            arcs.append(net.add_arcs(self._inner[p[i], instance.group[b]], self._broker[b], 1, self._new[p[i]]))
            new.append((p[i], b))
        self._single = [np.concatenate(column) for column in zip(*new, strict=True)] + [np.concatenate(arcs)]
        eligible = self._brokers
        limit = len(instance.rf)
        self._given = net.add_arcs(self._pool[instance.group[eligible]], self._broker[eligible], limit)

    def deal(self) -> tuple[Ints, Placed]:
        """Partitions whose pooled copies found no broker (empty: done), and every replica."""
        instance, flow = self._instance, self._flow
        partition_of, broker_of, arcs = self._single
        used = flow[arcs] > 0
        owners, holders = [partition_of[used]], [broker_of[used]]
        stuck: list[Ints] = []
        p, g, arcs = self._pooled
        given = flow[self._given]
        for group in range(len(instance.group_size)):
            here = (g == group) & (flow[arcs] > 0)
            brokers = np.flatnonzero(instance.group[self._brokers] == group)
            needs = np.bincount(p[here], weights=flow[arcs][here], minlength=len(instance.rf)).astype(np.int64)
            takers = brokers[given[brokers] > 0]
            left, who, where = _deal_group(instance, needs, self._brokers[takers], given[takers])
            stuck.append(left)
            owners.append(who)
            holders.append(where)
        return np.unique(np.concatenate(stuck)), (np.concatenate(owners), np.concatenate(holders))


def _deal_group(instance: Instance, needs: Ints, brokers: Ints, takes: Ints) -> tuple[Ints, Ints, Ints]:
    """Assign pooled copies to brokers that do not hold the partition: (stuck partitions, partitions, brokers)."""
    nobody = np.zeros(0, dtype=np.int64)
    wanting = np.flatnonzero(needs)
    if not len(wanting):
        return nobody, nobody, nobody
    row = np.full(len(needs), -1, dtype=np.int64)
    row[wanting] = np.arange(len(wanting))
    column = np.full(instance.brokers, -1, dtype=np.int64)
    column[brokers] = np.arange(len(brokers))
    free = np.ones((len(wanting), len(brokers)), dtype=np.bool_)
    clash = (row[instance.partition_of_slot] >= 0) & (column[instance.broker_of_slot] >= 0)
    free[row[instance.partition_of_slot[clash]], column[instance.broker_of_slot[clash]]] = False
    solver = max_flow.SimpleMaxFlow()
    source, sink = 0, 1
    i, j = np.nonzero(free)
    partition_node, broker_node = 2 + np.arange(len(wanting)), 2 + len(wanting) + np.arange(len(brokers))
    filled = solver.add_arcs_with_capacity(np.zeros(len(wanting), np.int64), partition_node, needs[wanting])
    dealt = solver.add_arcs_with_capacity(partition_node[i], broker_node[j], np.ones(len(i), np.int64))
    solver.add_arcs_with_capacity(broker_node, np.full(len(brokers), sink, np.int64), takes)
    if solver.solve(source, sink) != solver.OPTIMAL:
        raise AssertionError("the maximum flow of a group's pool was not found")
    used = np.asarray(solver.flows(dealt)) > 0
    stuck = wanting[np.asarray(solver.flows(filled)) < needs[wanting]]
    return stuck, wanting[i[used]], brokers[j[used]]
