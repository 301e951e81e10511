"""The leaders of large clusters: as even as possible, then with the fewest changes.

Flows hand leaderships over (``handover``), which nearly always is proved optimal. Otherwise chains of exchanges improve
and prove the result, within a counted effort (``cycles``).
"""

import numpy as np

from kafka_rebalance.planning.ordering.handover import NOBODY, LeaderShares, needs, one_step, two_steps
from kafka_rebalance.planning.problem.copies import Copies, first_of_each, rank_within, scramble
from kafka_rebalance.planning.problem.cycles import MOST_BROKERS, NEVER, Exchanges
from kafka_rebalance.planning.problem.instance import Bools, Indices, Ints
from kafka_rebalance.planning.problem.request import Goals

_ROUNDS = 40

_EFFORT = 10_000_000
"""Searches for fewer leader changes, times pairs of brokers: 1,000 searches for 100 brokers, 10 for 1,000."""

_PATIENCE = 20
"""Number of times that the effort is spent while leaders could be more even."""


class Leaders(Exchanges):
    """Exchanges of leaderships. Keeping the present leader costs nothing, any other leader costs a change."""

    def __init__(self, copies: Copies, goals: Goals) -> None:
        instance = self._instance = copies.instance
        self.lists: Indices = copies.broker_of_slot.copy()
        self._start, self._partition = instance.start, instance.partition_of_slot
        self._first = instance.broker_of_slot[self._start]
        self._fresh = np.zeros(len(self.lists), dtype=np.bool_)  # kept in step with the lists
        self._fresh[copies.moved()] = True
        self._brokers = np.flatnonzero(instance.eligible)
        self._number = np.full(instance.brokers, -1, dtype=np.int32)
        self._number[self._brokers] = np.arange(len(self._brokers))
        follower = instance.position > 0
        # Kept copies are in their slots, so a new copy in the leader's slot means that the leader's copy leaves.
        gone = self._fresh[self._start]
        if not goals.leaders:
            follower &= gone[instance.partition_of_slot]
        self._followers = np.flatnonzero(follower)
        self._free = np.zeros(len(self._start), dtype=np.bool_)
        self._free[instance.partition_of_slot[self._followers]] = True  # another broker may lead
        self._gone = gone
        self._candidates = np.flatnonzero(follower | (gone & self._free)[instance.partition_of_slot])
        self._came: dict[int, list[int]] = {}

    def _lead(self, slots: Ints) -> None:
        """Swap the brokers at these slots with the leaders of their partitions."""
        first = self._start[self._partition[slots]]
        for values in (self.lists, self._fresh):
            values[slots], values[first] = values[first], values[slots]

    def _led(self) -> Ints:
        """Leaders per broker, fixed ones included [B]."""
        return self._instance.fixed_leaders + np.bincount(self.lists[self._start], minlength=self._instance.brokers)

    def balance(self) -> None:
        """Even leaders, then the fewest changes."""
        if not len(self._followers):
            return
        fewest = self._hand_over()
        for turn in range(_ROUNDS):
            if not self._downhill(turn):
                break
        if len(self._brokers) <= MOST_BROKERS and not (self._even() and self._changes() == fewest):
            self._price_all()
            effort = max(1, _EFFORT // len(self._brokers) ** 2)
            for _ in range(_PATIENCE):  # even leaders are worth more effort than fewer changes
                if self.improve(effort) or self._even():
                    break

    def _hand_over(self) -> int | None:
        """Hand over leaderships to brokers that lead too few; returns a lower bound on the changes of even leaders.

        None: not known, because of fixed leaders.
        """
        leader = np.where(self._gone & self._free, NOBODY, self.lists[self._start]).astype(np.int64)
        stays = self._counted(leader)
        shares = self._shares()
        wanted = needs(stays, shares).total
        before = self.lists.copy(), self._fresh.copy(), leader.copy()
        done = self._one_step(leader, shares, retained=True)
        done += self._one_step(leader, shares, retained=False)
        if done < wanted:  # handovers to retained copies may block others
            self.lists, self._fresh, leader = before
            done = self._one_step(leader, shares, retained=False)
        if done < wanted:
            self._two_steps(leader, shares)
        self._appoint(np.flatnonzero(leader == NOBODY))
        if self._instance.fixed_leaders.any():
            return None
        low, spare = divmod(len(leader), len(self._brokers))
        kept = np.minimum(stays, low).sum() + min(spare, int((stays > low).sum()))
        return len(leader) - int(kept) + wanted - done

    def _one_step(self, leader: Ints, shares: LeaderShares, *, retained: bool) -> int:
        """Hand over in one step, to retained copies only or to any; returns how many. Changes ``leader``."""
        need = needs(self._counted(leader), shares)
        if not need.total:
            return 0
        slots = self._candidates[need.takers[self.lists[self._candidates]]]
        if retained:
            slots = slots[~self._fresh[slots]]
        partition_of = self._partition[slots]
        slots = slots[
            np.append(need.givers, True)[leader[partition_of]] & self._may_lead(slots, leader)
        ]  # NOBODY is the last
        return self._take(slots[one_step(need, *self._handovers(slots, leader))], leader)

    def _two_steps(self, leader: Ints, shares: LeaderShares) -> None:
        """Hand over by way of a third broker. Changes ``leader``."""
        need = needs(self._counted(leader), shares)
        givers = np.append(need.givers, True)
        slots = self._candidates[self._may_lead(self._candidates, leader)]
        gives = givers[leader[self._partition[slots]]]
        last = slots[~gives & need.takers[self.lists[slots]]]
        between = np.zeros(self._instance.brokers, dtype=np.bool_)
        between[leader[self._partition[last]]] = True
        first = slots[gives]
        first = first[between[self.lists[first]]]
        one, two = two_steps(need, self._handovers(first, leader), self._handovers(last, leader))
        self._take(np.concatenate([first[one], last[two]]), leader)

    def _counted(self, leader: Ints) -> Ints:
        return self._instance.fixed_leaders + np.bincount(leader[leader >= 0], minlength=self._instance.brokers)

    def _may_lead(self, slots: Ints, leader: Ints) -> Bools:
        """All slots except the leaders' own."""
        return np.asarray((self._instance.position[slots] > 0) | (leader[self._partition[slots]] == NOBODY))

    def _handovers(self, slots: Ints, leader: Ints) -> tuple[Ints, Ints, Ints]:
        partition_of = self._partition[slots].astype(np.int64)
        return partition_of, leader[partition_of], self.lists[slots].astype(np.int64)

    def _take(self, slots: Ints, leader: Ints) -> int:
        leader[self._partition[slots]] = self.lists[slots]
        self._lead(slots)
        return len(slots)

    def _appoint(self, partitions: Ints) -> None:
        """Give these partitions a leader, a retained copy if there is one."""
        slots = self._candidates[np.isin(self._partition[self._candidates], partitions)]
        partition_of = self._partition[slots]
        order = np.lexsort((scramble(slots, 0), self._fresh[slots], partition_of))
        self._lead(slots[order[first_of_each(partition_of[order], len(self._start))]])

    def _changes(self) -> int:
        return int((self.lists[self._start] != self._first).sum())

    def _even(self) -> bool:
        led = self._led()[self._brokers]
        return bool(led.max() - led.min() <= 1)

    def _shares(self) -> LeaderShares:
        """The most even counts between what each broker must lead and what it can lead."""
        brokers, led, free = self._instance.brokers, self._instance.fixed_leaders, self._free
        partitions = len(self._start) + int(led.sum())
        least = led + np.bincount(self.lists[self._start[~free]], minlength=brokers)
        copies = np.bincount(self.lists[self._followers], minlength=brokers)
        most = least + copies + np.bincount(self.lists[self._start[free]], minlength=brokers)
        low, high = 0, partitions
        while low < high:  # the highest level that needs no more leaders than there are
            level = (low + high + 1) // 2
            low, high = (level, high) if np.clip(level, least, most).sum() <= partitions else (low, level - 1)
        even = np.clip(low, least, most)
        return LeaderShares(even, np.clip(low + 1, least, most) > even, partitions - int(even.sum()))

    def _downhill(self, turn: int) -> int:
        """Hand leaderships to brokers that lead at least two fewer, ignoring the shares; returns how many."""
        led = self._led()
        slots = self._followers
        if led.max() - led[self._brokers].min() < 2:
            return 0
        gain = (led[self.lists[self._start]])[self._partition[slots]] - led[self.lists[slots]]
        slots, gain = slots[gain >= 2], gain[gain >= 2]
        partition_of = self._partition[slots]
        order = np.lexsort((scramble(slots, turn), -gain))
        order = order[first_of_each(partition_of[order], len(self._start))]
        leader, target, gain = self.lists[self._start[partition_of[order]]], self.lists[slots[order]], gain[order]
        few = rank_within(leader) < np.maximum(1, gain // 4)
        few[few] = rank_within(target[few]) < np.maximum(1, gain[few] // 4)
        self._lead(slots[order[few]])
        return int(few.sum())

    def _price_all(self) -> None:
        brokers = len(self._brokers)
        self.cost = np.full((brokers, brokers), NEVER, dtype=np.int32)
        self._price(self._followers)
        leader = self.lists[self._start].astype(np.int64)
        leader[~self._free] = -1
        self._by_leader = np.argsort(leader, kind="stable")
        self._begin = np.searchsorted(leader[self._by_leader], np.arange(self._instance.brokers + 1))

    def _price(self, slots: Ints) -> None:
        partition_of = self._partition[slots]
        leader, target, first = self.lists[self._start[partition_of]], self.lists[slots], self._first[partition_of]
        price = (target != first).astype(np.int32) - (leader != first)
        a, d = self._number[leader], self._number[target]
        for value in (1, 0, -1):
            at = price == value
            table = self.cost[a[at], d[at]]
            self.cost[a[at], d[at]] = np.minimum(table, value)

    def counts(self) -> Ints:
        """Leaders per eligible broker."""
        return self._led()[self._brokers]

    def reprice(self, slots: Ints) -> None:
        """Price the partitions of these slots again."""
        rows = [self._start[p] + np.arange(1, self._instance.rf[p]) for p in np.unique(self._partition[slots])]
        self._price(np.concatenate(rows))

    def cheapest(self, a: int, d: int, turn: int) -> tuple[int, int]:
        """The cheapest follower slot on d of a partition led by a, retained copies first, and its cost."""
        here, there = int(self._brokers[a]), int(self._brokers[d])
        led = self._by_leader[self._begin[here] : self._begin[here + 1]]
        led = np.unique(np.concatenate([led, np.array(self._came.get(here, []), dtype=np.int64)]))
        led = led[self.lists[self._start[led]] == here]
        row, place = np.nonzero(self._instance.rows(self.lists, led) == there)
        slots = self._start[led[row]] + place
        if not len(slots):
            return -1, NEVER
        first = self._first[self._partition[slots]]
        price = (first != there).astype(np.int64) - (first != here)
        best = np.lexsort((scramble(slots, turn), self._fresh[slots], price))[0]
        return int(slots[best]), int(price[best])

    def exchange(self, slot: int, d: int) -> None:  # noqa: ARG002 - a swap undoes itself
        """Swap the slot's broker and the leader of its partition."""
        self._lead(np.array([slot]))
        partition = int(self._partition[slot])
        self._came.setdefault(int(self.lists[self._start[partition]]), []).append(partition)
