"""Requests of every kind that can be explained, and counts of their plans made without the explanation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st
from tests.property.planning_judge import result, target_racks
from tests.property.planning_optima import fewest_moves
from tests.property.test_planning_properties import requests
from tests.property.test_strategies import with_pins

from kafka_rebalance.model.goals import Balance, RackAwareness
from kafka_rebalance.model.topology import Replicas, TopicPartition
from kafka_rebalance.planning import PlanRequest, plan
from kafka_rebalance.planning.explain.accounts import Share
from kafka_rebalance.planning.explain.explanation import Explanation

Lists = Mapping[TopicPartition, Replicas]


@st.composite
def budgeted(draw: st.DrawFn) -> PlanRequest:
    """A budget of moves, of bytes, or of both, reached or not."""
    request = draw(requests(most_partitions=25, most_brokers=8))
    moves, data = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    goals = replace(
        request.goals,
        balance=draw(st.sampled_from(Balance)),
        max_replica_moves=draw(st.integers(0, 12)) if moves else None,
        max_data_to_move=draw(st.integers(0, 300)) if data else None,
    )
    return replace(request, goals=goals)


@st.composite
def by_topic(draw: st.DrawFn) -> PlanRequest:
    """Balanced topics, before or after the totals."""
    request = draw(requests(most_partitions=25, most_brokers=8))
    balance = draw(st.sampled_from([Balance.PER_TOPIC, Balance.BOTH]))
    return replace(request, goals=replace(request.goals, balance=balance))


@st.composite
def with_gain(draw: st.DrawFn) -> PlanRequest:
    """Pinned partitions, a minimum gain, and sometimes another replication factor."""
    request = draw(with_pins(most_partitions=25))
    factor = draw(st.none() | st.integers(1, min(len(request.targets), 4)))
    gain = draw(st.sampled_from([0, 1, 10, 30, 60, 100]))
    return replace(request, replication_factor=factor, goals=replace(request.goals, minimum_gain=gain))


@st.composite
def judged_by_gain(draw: st.DrawFn) -> PlanRequest:
    """A minimum gain with any balance, sometimes with pinned partitions and with a budget."""
    request = draw(with_pins(most_partitions=15))
    goals = replace(
        request.goals,
        balance=draw(st.sampled_from(Balance)),
        max_replica_moves=draw(st.none() | st.integers(0, 6)),
        minimum_gain=draw(st.sampled_from([1, 10, 30, 60, 100])),
    )
    return replace(request, goals=goals)


def explainable() -> st.SearchStrategy[PlanRequest]:
    """Every kind of request that MinimalMovement plans."""
    return st.one_of(requests(most_partitions=25, most_brokers=8), budgeted(), by_topic(), with_gain())


class Told:
    """A request, its plan with an explanation, and counts that are made without the explanation."""

    def __init__(self, request: PlanRequest) -> None:
        self.request = request
        self.made = plan(request)
        self.explained = Explanation(request, self.made)
        goals = replace(request.goals, max_replica_moves=None, max_data_to_move=None, minimum_gain=0)
        self.unlimited = replace(request, goals=goals)
        self.full = plan(self.unlimited)
        self.before: Lists = {p.tp: p.replicas for p in request.partitions if p.counts}
        self.after: Lists = result(request, self.made)
        self.at_full: Lists = result(self.unlimited, self.full)
        self.held, self.holds, self.full_holds = map(count, (self.before, self.after, self.at_full))
        self.led, self.leads = (Counter(row[0] for row in rows.values()) for rows in (self.before, self.after))
        self.known = {b.id for b in request.brokers}
        self.racks = {b.id: b.rack for b in request.brokers}
        self.pinned = count({p.tp: p.replicas for p in request.partitions if p.pinned})

    def crowd(self, replicas, broker):
        """The number of replicas that the rack rule counts in the broker's rack."""
        racks = target_racks(self.request)
        if racks[broker] is None:
            return 1
        return sum(b in racks and racks[b] == racks[broker] for b in replicas)

    def alike(self, share: Share, broker: int) -> list[int]:
        """The brokers that a broker's share covers, except those with only pinned replicas."""
        found = [t for t in self.request.targets if share.everyone or self.racks[t] == share.rack == self.racks[broker]]
        full = [t for t in found if share.pinned_full and 0 < self.pinned[t] == self.full_holds[t]]
        assert len(full) == share.pinned_full
        assert all(self.full_holds[t] >= share.low for t in full)
        return [t for t in found if t not in full]

    def check_share(self, share: Share, broker: int, counts: Counter[int]) -> None:
        """Balanced counts: these brokers end with ``low`` or ``high``, and ``at_high`` of them with ``high``."""
        alike = self.alike(share, broker)
        assert broker in alike
        held = [counts[b] for b in alike]
        assert (share.replicas, share.brokers) == (sum(held), len(held))
        assert {share.low, share.high} >= set(held)
        assert share.low <= share.high <= share.low + 1
        assert held.count(share.high) == share.at_high

    def of_topic(self, lists: Lists, topic: str) -> Counter[int]:
        return count({tp: row for tp, row in lists.items() if tp.topic == topic})

    def fewest_squares(self, topic: str | None = None) -> int:
        """The minimum sum of squared counts on target brokers, for all partitions or for one topic."""
        chosen = tuple(p for p in self.request.partitions if topic in {None, p.tp.topic})
        only = replace(self.unlimited, partitions=chosen)
        return fewest_moves(only, only.goals.rack_awareness is RackAwareness.PREFERRED)[1]

    def squares(self, counts: Counter[int]) -> int:
        return sum(counts[b] ** 2 for b in self.request.targets)


def count(lists: Lists) -> Counter[int]:
    return Counter(b for row in lists.values() for b in row)
