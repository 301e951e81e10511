"""Every fact that an explanation states holds, counted anew, on any small cluster."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given, settings
from tests.property.planning_judge import list_violations, rack_cap, result, target_racks
from tests.property.test_planning_properties import requests

from kafka_rebalance.cli import explain_words as words
from kafka_rebalance.planning import PlanRequest, plan
from kafka_rebalance.planning.explain import Explanation, Fit, Why, WhyLed


class Told:
    """A request, its plan explained, and what can be counted without the explanation."""

    def __init__(self, request: PlanRequest) -> None:
        self.request = request
        self.made = plan(request)
        self.explained = Explanation(request, self.made)
        self.before = {p.tp: p.replicas for p in request.partitions if p.has_leader}
        self.after = result(request, self.made)
        self.held, self.holds = (Counter(b for row in rows.values() for b in row) for rows in (self.before, self.after))
        self.led, self.leads = (Counter(row[0] for row in rows.values()) for rows in (self.before, self.after))
        self.known = {b.id for b in request.brokers}

    def crowd(self, replicas, broker):
        """How many of the replicas the rack rule counts in the broker's rack."""
        racks = target_racks(self.request)
        if racks[broker] is None:
            return 1
        return sum(b in racks and racks[b] == racks[broker] for b in replicas)


class TestBrokers:
    @settings(max_examples=300, deadline=None)
    @given(requests(most_partitions=25, most_brokers=8))
    def test_counts_and_shares(self, request_: PlanRequest) -> None:
        """Before, after, leaders, what leaves and what arrives add up; what is called even is even."""
        told = Told(request_)
        assert {a.broker for a in told.explained.brokers} == told.known | told.held.keys()
        for a in told.explained.brokers:
            b = a.broker
            assert (a.before, a.after) == (told.held[b], told.holds[b])
            assert (a.led_before, a.led_after) == (told.led[b], told.leads[b])
            assert a.before - sum(a.leaving.values()) + a.arriving == a.after
            assert a.arriving == sum(b in told.after[tp] and b not in told.before[tp] for tp in told.after)
            assert (a.known, a.target) == (b in told.known, b in request_.targets)
            if not a.target:
                assert a.share is None
                continue
            racks = {broker.id: broker.rack for broker in request_.brokers}
            alike = [t for t in request_.targets if a.share.everyone or racks[t] == a.share.rack == racks[b]]
            counts = [told.holds[t] for t in alike]
            assert (a.share.replicas, a.share.brokers) == (sum(counts), len(counts))
            assert {a.share.low, a.share.high} >= set(counts)
            assert a.share.low <= a.share.high <= a.share.low + 1

    @settings(max_examples=200, deadline=None)
    @given(requests(most_partitions=20))
    def test_numbers_in_sentences(self, request_: PlanRequest) -> None:
        """The words have the counts, and an answer for every broker and partition."""
        told = Told(request_)
        assert f"{told.made.replica_moves} replicas move." in " ".join(words.of_plan(told.explained))
        for a in told.explained.brokers:
            first, *rest = words.of_broker(told.explained, a)
            assert first.endswith(f"holds {told.held[a.broker]} replicas and ends with {told.holds[a.broker]}.")
            left = [int(n) for line in rest for n in re.findall(r"^(\d+) of \d+ that leave", line)]
            assert sum(left) == sum(a.leaving.values())
        for p in request_.partitions:
            lines = words.of_partition(told.explained, told.explained.partition(p.tp))
            assert lines[0].startswith(f"{p.tp} ")
            assert all(line.endswith(".") for line in lines)


class TestMoves:
    @settings(max_examples=300, deadline=None)
    @given(requests(most_partitions=25, most_brokers=8))
    def test_why_copies_leave(self, request_: PlanRequest) -> None:
        """Each reason's condition holds, no stronger one does, and every copy that leaves has one."""
        told = Told(request_)
        gone = {(tp, b) for tp in told.before for b in set(told.before[tp]) - set(told.after[tp])}
        assert {(d.tp, d.broker) for d in told.explained.departures} == gone
        assert len(told.explained.departures) == len(gone)
        for d in told.explained.departures:
            b = d.broker
            assert (d.why is Why.GONE) == (b not in told.known)
            assert (d.why is Why.NOT_TARGET) == (b in told.known - request_.targets)
            if d.why is Why.RACK_RULE:
                assert d.rack_held == told.crowd(told.before[d.tp], b) > d.rack_room
                assert told.crowd([x for x in told.after[d.tp] if x != b], b) < d.rack_held
                rack_size = told.crowd(sorted(request_.targets), b)
                assert d.rack_room == min(rack_cap(target_racks(request_), len(told.before[d.tp])), rack_size)
            assert d.why is not Why.SHARE or told.held[b] > told.holds[b]
            assert d.why is not Why.EXCHANGE or told.held[b] <= told.holds[b]

    @settings(max_examples=300, deadline=None)
    @given(requests(most_partitions=25, most_brokers=8))
    def test_where_copies_could_have_gone(self, request_: PlanRequest) -> None:
        """A broker that is called allowed can stand in for a new copy, no rule broken; one that is not cannot."""
        told = Told(request_)
        arrivals = Counter(b for tp in told.after for b in set(told.after[tp]) - set(told.before[tp]))
        for p in told.made.partitions:
            account = told.explained.partition(p.tp)
            assert set(account.fits) == (told.known if p.added else set())
            for b, fit in account.fits.items():
                assert (fit is Fit.NOT_TARGET) == (b not in request_.targets)
                assert (fit is Fit.CHOSEN) == (b in p.added)
                if fit in {Fit.NOT_TARGET, Fit.HELD, Fit.CHOSEN}:
                    continue
                assert b not in p.current
                instead = [tuple(b if x == new else x for x in p.target) for new in p.added]
                fine = [row for row in instead if told.crowd(row, b) <= max(1, _room(told, p, b))]
                assert bool(fine) == (fit is not Fit.RACK_FULL)
                if fine:
                    assert min(list_violations(request_, row) for row in instead) <= list_violations(request_, p.target)
                    assert (fit is Fit.GETS_OTHERS) == (arrivals[b] > 0)

    @settings(max_examples=200, deadline=None)
    @given(requests(most_partitions=25))
    def test_why_leaders_change(self, request_: PlanRequest) -> None:
        """The former leader is gone, leads too many, or is given another one."""
        told = Told(request_)
        for tp in told.before:
            former, new = told.before[tp][0], told.after[tp][0]
            why = told.explained.partition(tp).led
            assert (why is None) == (former == new)
            if why is not None:
                assert (why is WhyLed.COPY_LEAVES) == (former not in told.after[tp])
                assert why is not WhyLed.SHARE or told.led[former] > told.leads[former]


def _room(told: Told, p, broker):
    racks = target_racks(told.request)
    if racks[broker] is None:
        return len(p.target)
    return min(rack_cap(racks, len(p.target)), sum(rack == racks[broker] for rack in racks.values()))
