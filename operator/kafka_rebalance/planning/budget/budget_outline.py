"""The outline of a plan with a limited number of moves: the counts that can be reached, and bounds on any counts.

The network is that of ``outline`` with a price per move. As the price falls to zero its optimum goes from "only forced
moves" to "fully balanced". Each price gives counts that no plan with as few moves improves and, by duality, a lower
bound on the imbalance for any number of moves. The imbalance is the sum of the squared counts.

Forced moves come first and have no price: copies on brokers that are not eligible, then rack violations. Each takes
exactly one move; if the budget does not cover them all nothing else moves.
"""

from dataclasses import dataclass

import numpy as np

from kafka_rebalance.planning.problem.balance import spare_ranks
from kafka_rebalance.planning.problem.flow import Network, convex_segments, level_weights, square_sum
from kafka_rebalance.planning.problem.instance import Bools, Instance, Ints
from kafka_rebalance.planning.replicas.outline import Outline, corners, crowds_of, deal_crowds


@dataclass(frozen=True)
class Point:
    """Counts ``target`` [B] that the outline reaches by ``moves``; ``kept`` of the crowded copies [corners].

    ``squares`` is the imbalance: of these counts, fixed replicas included.
    """

    target: Ints
    moves: int
    kept: Ints
    squares: int


class BudgetOutline:
    """The outlines of one instance in which every partition can meet the rack rule, for any budget."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._stays: Bools = instance.eligible[instance.broker_of_slot]
        crowded, _ = instance.overfull(instance.broker_of_slot)
        self._crowds = crowds_of(instance, crowded)
        self._corner, self._corner_broker = corners(instance, self._crowds)
        ordinary = self._stays.copy()
        ordinary[crowded] = False
        partition_of, broker_of = instance.replicas(np.flatnonzero(ordinary))
        kinds = len(instance.kinds)
        cell = instance.kind[partition_of] * instance.brokers + broker_of
        self._keepable = np.bincount(cell, minlength=kinds * instance.brokers).reshape(kinds, instance.brokers)
        self._capacity = instance.rack_capacity[self._crowds.kind, self._crowds.group]
        self._beyond = (self._crowds.size - self._capacity) * self._crowds.count
        self._departing = _by_size(instance, np.flatnonzero(~self._stays))
        self.forced = len(self._departing)
        """Number of copies on brokers that are not eligible."""
        self.repairs = int(self._beyond.sum())
        """Number of copies that violate the rack rule."""
        self._centre = self._counts_now()
        self._bounds: dict[int, int] = {}
        self._memory: dict[tuple[int, int], Point] = {}

    def _counts_now(self) -> Ints:
        counts = np.bincount(self._instance.broker_of_slot, minlength=self._instance.brokers)
        return np.where(self._instance.eligible, counts, 0).astype(np.int64)

    def point(self, moves: int) -> Point:
        """The most even counts, or nearly, that the outline reaches within ``moves``."""
        if moves < self.forced + self.repairs:
            stuck = max(0, self.forced - moves)
            return self._solve(self._dear(), 1, stuck=stuck, beyond=self.forced + self.repairs - moves - stuck)
        price = self._price(moves)
        low, high = self._at(price, 1), self._at(price, -1)
        return high if high.moves <= moves else self._between(price, low, high, moves)

    def least_squares(self, moves: int) -> int:
        """A lower bound on the imbalance of any plan within ``moves``."""
        if moves < self.forced + self.repairs:
            return self.point(moves).squares
        self._price(moves)
        return self._bound(moves)

    def lower_bound(self, squares: int, moves: int) -> int:
        """A lower bound, at most ``moves``, on the moves of any plan with at most this imbalance."""
        low, high = min(moves, self.forced + self.repairs), moves
        self._price(moves)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._bound(middle) > squares else (low, middle)
        return low

    def _bound(self, moves: int) -> int:
        bound = max(value - price * moves for price, value in self._bounds.items())
        counted = len(self._instance.broker_of_slot) + int(self._instance.fixed_replicas[self._instance.eligible].sum())
        return bound + (bound - counted) % 2  # a sum of squares is as odd as the sum

    def outline(self, point: Point, moves: int) -> Outline:
        """The same as single copies that leave, for at most ``moves`` moves, smallest partitions first."""
        stuck = self._departing[moves:]
        target = point.target + np.bincount(self._instance.broker_of_slot[stuck], minlength=self._instance.brokers)
        keeps = deal_crowds(self._crowds, self._corner, point.kept)
        leaving = np.concatenate([self._departing[:moves], self._crowds.members[~keeps]])
        return Outline(target, np.sort(leaving), point.moves)

    def _dear(self) -> int:
        """A price at which no copy moves for balance."""
        return 4 * self._instance.highest + 4

    def _price(self, moves: int) -> int:
        """The least price at which at most ``moves`` copies move."""
        low, high = 0, self._dear()
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._at(middle, 1).moves <= moves else (middle + 1, high)
        return low

    def _at(self, price: int, sign: int) -> Point:
        """An optimum at this price, with the fewest (sign 1) or the most moves (sign -1)."""
        key = (price, sign)
        if key not in self._memory:
            self._memory[key] = point = self._solve(price, sign)
            self._bounds[price] = point.squares + price * point.moves
        return self._memory[key]

    def _between(self, price: int, low: Point, high: Point, moves: int) -> Point:
        """A point between two optima at this price: only some of the brokers get more copies."""
        gains = np.maximum(high.target - low.target, 0)
        order = np.argsort(self._instance.fixed_replicas + low.target, kind="stable")
        least, most, best = 0, int(gains.sum()), low
        given = moves - low.moves
        while least < most:
            given = min(max(given, least + 1), most)
            before = np.cumsum(gains[order]) - gains[order]
            part = np.zeros_like(gains)
            part[order] = np.clip(given - before, 0, gains[order])
            found = self._solve(price, -1, limit=low.target + part)
            if found.moves == moves:
                return found
            if found.moves < moves:
                least, best = given, max(best, found, key=lambda point: point.moves)
            else:
                most = given - 1
            given = (least + most + 1) // 2
        return best

    def _solve(self, price: int, sign: int, limit: Ints | None = None, stuck: int = 0, beyond: int = 0) -> Point:
        """Minimise squares + price * moves. ``stuck`` departing copies and up to ``beyond`` crowded ones stay."""
        brokers = np.flatnonzero(self._instance.eligible)
        most = np.full(self._instance.brokers, len(self._instance.rf)) if limit is None else limit
        best: int | None = None
        while True:
            network = _BudgetNetwork(self._instance, self._keepable, stuck)
            network.add_crowds(self._crowds.kind, self._crowds.group, self._capacity, self._crowds.count)
            network.add_beyond(self._crowds.kind, self._beyond, beyond)
            network.add_corners(self._corner, self._corner_broker, self._crowds.count[self._corner])
            centre = np.minimum(self._centre, most)
            found = network.solve(price, sign, centre[brokers], most[brokers].astype(np.int64))
            value = found.squares + price * found.moves
            self._centre = found.target
            if value == best or (np.abs(found.target - centre) <= 1).all():
                return found
            best = value


class _BudgetNetwork:
    """One outline: replication factor -> group -> kept copies or pool -> broker -> sink."""

    def __init__(self, instance: Instance, keepable: Ints, stuck: int) -> None:
        self._instance = instance
        self._brokers = np.flatnonzero(instance.eligible)
        members = np.bincount(instance.kind)
        groups = len(instance.group_size)
        net = self._net = Network()
        self._source = net.add_nodes(len(instance.kinds), instance.kinds * members)
        self._inner = net.add_nodes(len(instance.kinds) * groups).reshape(-1, groups)
        self._pool = net.add_nodes(groups)
        self._broker = net.add_nodes(instance.brokers)
        self._sink = net.add_nodes(1, stuck - len(instance.broker_of_slot))
        if stuck:
            departing = instance.kind[instance.partition_of_slot[~instance.eligible[instance.broker_of_slot]]]
            stay = net.add_nodes(1, -stuck)
            net.add_arcs(self._source, stay, np.bincount(departing, minlength=len(instance.kinds)))
        net.add_arcs(self._source[:, None], self._inner, instance.rack_capacity * members[:, None])
        kind, broker = np.nonzero(keepable)
        net.add_arcs(self._inner[kind, instance.group[broker]], self._broker[broker], keepable[kind, broker])

    def add_crowds(self, kind: Ints, group: Ints, capacity: Ints, count: Ints) -> None:
        self._crowd = self._net.add_nodes(len(kind))
        self._net.add_arcs(self._inner[kind, group], self._crowd, capacity * count)

    def add_beyond(self, kind: Ints, beyond: Ints, allowed: int) -> None:
        """Up to ``allowed`` crowded copies may stay."""
        if not allowed:
            return
        entry, gate = self._net.add_nodes(2)
        self._net.add_arcs(self._source[np.unique(kind)], entry, allowed)
        self._net.add_arcs(entry, gate, allowed)
        self._net.add_arcs(gate, self._crowd, beyond)

    def add_corners(self, corner: Ints, broker: Ints, count: Ints) -> None:
        self._kept = self._net.add_arcs(self._crowd[corner], self._broker[broker], count)

    def solve(self, price: int, sign: int, centre: Ints, limit: Ints) -> Point:
        instance, net, brokers = self._instance, self._net, self._brokers
        which, width, slope = convex_segments(centre, limit)
        # A simple cycle enters and leaves each pool at most once.
        gains = [max(price, 2 * instance.highest + 1), 2 * (len(self._pool) + 1), 2 * len(brokers)]
        w_square, w_move, w_tie = level_weights(gains, net.nodes, soft=1)
        everyone = len(instance.broker_of_slot)
        new = net.add_arcs(self._inner, self._pool[None, :], everyone, price * w_square + sign * w_move)
        net.add_arcs(self._pool[instance.group[brokers]], self._broker[brokers], everyone)
        tie = spare_ranks(instance)[brokers] * w_tie
        fixed = instance.fixed_replicas[brokers]
        square = (slope + 2 * fixed[which]) * w_square
        out = net.add_arcs(self._broker[brokers][which], self._sink, width, square + tie[which])
        flow = net.solve()
        target = np.zeros(instance.brokers, dtype=np.int64)
        np.add.at(target, brokers[which], flow[out])
        return Point(target, int(flow[new].sum()), flow[self._kept], square_sum(fixed + target[brokers]))


def _by_size(instance: Instance, slots: Ints) -> Ints:
    """The slots, smallest partitions first, then broker by broker."""
    return slots[np.lexsort((slots, instance.broker_of_slot[slots], instance.size[instance.partition_of_slot[slots]]))]
