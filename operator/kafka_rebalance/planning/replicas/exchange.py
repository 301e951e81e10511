"""Exact improvement and proof of replica sets: chains of exchanges, found as negative cycles between brokers.

An exchange moves one copy of a partition from one broker to another. It costs 1 if a kept copy now moves, -1 if a
copy returns to a broker that held it, else 0. A placement without a negative chain is optimal: this is the residual
network of the whole flow, reduced to brokers. The arcs here are a superset of the real ones, and an arc that turns out
to be impossible is repriced; so "no cycle" is a proof.
"""

import numpy as np

from kafka_rebalance.planning.problem.copies import Copies, in_order, scramble
from kafka_rebalance.planning.problem.cycles import NEVER, Exchanges
from kafka_rebalance.planning.problem.instance import Bools, Ints

_FEW_GROUPS = 24
"""Above this number of groups every copy is assumed to fit into every other group until it is checked."""


class CopyExchanges(Exchanges):
    """Exchanges of copies; every step keeps the rack rule."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._instance = copies.instance
        self._brokers = np.flatnonzero(copies.instance.eligible)
        self._number = np.full(copies.instance.brokers, -1, dtype=np.int64)
        self._number[self._brokers] = np.arange(len(self._brokers))
        broker_of = copies.broker_of_slot
        self._by_broker = in_order(broker_of)
        self._begin = np.searchsorted(broker_of[self._by_broker], np.arange(copies.instance.brokers + 1))
        self._came: dict[int, list[int]] = {}
        self.cost = np.full((len(self._brokers), len(self._brokers)), NEVER, dtype=np.int32)
        self._price(np.arange(len(broker_of)))

    def counts(self) -> Ints:
        """Copies per eligible broker, fixed replicas included."""
        return (self._instance.fixed_replicas + self._copies.counts())[self._brokers]

    def reprice(self, slots: Ints) -> None:
        """Price all copies of the slots' partitions again."""
        instance = self._instance
        rows = [instance.start[p] + np.arange(instance.rf[p]) for p in np.unique(instance.partition_of_slot[slots])]
        self._price(np.concatenate(rows))

    def exchange(self, slot: int, d: int) -> None:
        """Move the slot's copy to d."""
        self._copies.broker_of_slot[slot] = self._brokers[d]
        self._came.setdefault(d, []).append(slot)

    def _price(self, slots: Ints) -> None:
        """Lower the costs to a bound for these slots' copies, which are those of whole partitions."""
        copies = self._copies
        changed = copies.broker_of_slot[slots] != self._instance.broker_of_slot[slots]
        new = np.zeros(len(slots), dtype=np.bool_)
        new[changed] = ~copies.held_before(slots[changed], copies.broker_of_slot[slots[changed]])
        group = self._instance.group[self._brokers]
        for price, part in ((1, slots[~new]), (0, slots[new])):
            cost = np.where(self._leaves(part), np.int32(price), np.int32(NEVER))[:, group]
            np.minimum(self.cost, cost, out=self.cost)
        self._price_returns(slots[new])
        np.fill_diagonal(self.cost, NEVER)

    def _leaves(self, slots: Ints) -> Bools:
        """Into which groups some of these slots' copies can move from each broker [brokers, G]; a superset."""
        groups = len(self._instance.group_size)
        found = np.zeros((len(self._brokers), groups), dtype=np.bool_)
        holders = self._number[self._copies.broker_of_slot[slots]]
        if groups > _FEW_GROUPS:
            found[holders] = True
            return found
        # A sample usually finds all; the rest is checked only for brokers with something missing.
        lucky = scramble(slots, 0) < 2**32 * min(1.0, 64 * len(self._brokers) / max(1, len(slots)))
        for sample in (lucky, ~lucky):
            part = np.flatnonzero(sample)
            complete: Bools = np.asarray(found.all(axis=1))
            part = part[~complete[holders[part]]]
            capacity = self._copies.open_groups(slots[part])
            for g in range(groups):
                found[holders[part[capacity[:, g]]], g] = True
            found[:, self._instance.group_size == 0] = True
        return found

    def _price_returns(self, moved: Ints) -> None:
        """Price exchanges to a broker that originally held the partition: they cost one less."""
        instance, copies = self._instance, self._copies
        is_new = np.zeros(len(copies.broker_of_slot), dtype=np.int32)
        is_new[moved] = 1
        partitions = np.unique(instance.partition_of_slot[moved])
        for piece in instance.chunks(partitions):
            p = partitions[piece]
            now, homes = instance.rows(copies.broker_of_slot, p), instance.rows(instance.broker_of_slot, p)
            fresh = instance.rows(is_new, p) == 1
            left = (homes >= 0) & instance.eligible[homes]
            for column in now.T:
                left &= homes != column[:, None]
            row, home = np.nonzero(left)
            target = homes[row, home].astype(np.int64)
            for place in range(now.shape[1] if len(row) else 0):
                here = now[row, place] >= 0
                fit = copies.fits(instance.start[p[row[here]]] + place, target[here])
                price = np.where(fresh[row[here], place][fit], -1, 0)
                a, d = self._number[now[row[here], place][fit]], self._number[target[here][fit]]
                for value in (0, -1):
                    at = price == value
                    self.cost[a[at], d[at]] = np.minimum(self.cost[a[at], d[at]], value)

    def raise_cost(self, a: int, d: int, price: int) -> None:
        """If no copy can move from a into the group of d, none can move to any broker of that group."""
        super().raise_cost(a, d, price)
        group = self._instance.group[self._brokers]
        if price == NEVER and not self._copies.open_groups(self._on(a))[:, group[d]].any():
            self.cost[a, group == group[d]] = NEVER

    def _on(self, a: int) -> Ints:
        """The slots whose copies are on a now."""
        here = int(self._brokers[a])
        slots = self._by_broker[self._begin[here] : self._begin[here + 1]]
        slots = np.unique(np.concatenate([slots, np.array(self._came.get(a, []), dtype=np.int64)]))
        return np.asarray(slots[self._copies.broker_of_slot[slots] == here])

    def cheapest(self, a: int, d: int, turn: int) -> tuple[int, int]:
        """The slot that can move from a to d at the least cost, followers first, and the cost."""
        copies, here, there = self._copies, int(self._brokers[a]), int(self._brokers[d])
        slots = self._on(a)
        slots = slots[copies.fits(slots, np.full(len(slots), there))]
        if not len(slots):
            return -1, NEVER
        leaves = copies.held_before(slots, np.full(len(slots), here))
        arrives = copies.held_before(slots, np.full(len(slots), there))
        price = leaves.astype(np.int64) - arrives
        best = np.lexsort((scramble(slots, turn), self._instance.position[slots] == 0, price))[0]
        return int(slots[best]), int(price[best])


class GivenCounts(CopyExchanges):
    """The fewest moves for given counts [B]: fairness is the distance from them."""

    def __init__(self, copies: Copies, target: Ints) -> None:
        super().__init__(copies)
        self._target = (copies.instance.fixed_replicas + target)[self._brokers]

    def counts(self) -> Ints:
        """Copies of each broker above the given counts."""
        return super().counts() - self._target
