"""The fast planner of large clusters on small ones, against oracles that share none of its code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.planning_judge import check, result
from tests.property.planning_optima import fewest_moves, fewest_pair_squares, optimum
from tests.property.test_planning_properties import requests

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, plan, planner
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.instance import encode
from kafka_rebalance.planning.replicas import replica_sets as sets


@contextmanager
def only_fast() -> Iterator[mock.Mock]:
    """Plan clusters of any size as large ones; yields the mock of the flow over all partitions."""
    with (
        mock.patch.object(sets, "SMALL", 0),
        mock.patch.object(planner, "EXACT_ORDER", 0),
        mock.patch.object(sets, "place", wraps=sets.place) as flow,
    ):
        yield flow


def fast(request: PlanRequest) -> Plan:
    with only_fast():
        return plan(request)


class TestFewestMoves:
    @given(requests(most_partitions=40, most_brokers=9))
    def test_equals_the_flow_over_every_partition(self, request_: PlanRequest) -> None:
        """Violations, balance and moves are the exact optimum, and the certificate says so."""
        made = fast(request_)
        metrics = check(request_, made)
        preferred = request_.goals.rack_awareness is RackAwareness.PREFERRED
        assert made.certificate.optimal
        assert (metrics.rack_violations, metrics.count_sumsq, metrics.moves) == fewest_moves(request_, preferred)

    @given(requests(most_partitions=7, most_brokers=6))
    def test_equals_the_constraint_solver(self, request_: PlanRequest) -> None:
        """The same with a solver that does not use flows; leaders are at best as even as in its optimum."""
        metrics, best = check(request_, fast(request_)), optimum(request_)
        assert metrics.moves == best.moves
        assert metrics.count_sumsq == best.count_sumsq
        assert metrics.leader_sumsq >= best.leader_sumsq

    def test_a_search_that_is_cut_short_tells_the_gap(self) -> None:
        """Without chains, and too large for the flow, the plan is balanced and states the gap to the bound."""
        random = Random(6)
        lists = [replicas_of(*random.sample(range(12), 3)) for _ in range(60)]
        request = PlanRequest(
            tuple(Broker(BrokerId(b)) for b in range(12)),
            tuple(PartitionInput(TopicPartition("t", i), row) for i, row in enumerate(lists)),
            frozenset(BrokerId(b) for b in range(3, 12)),
        )
        with only_fast() as flow, mock.patch.object(sets, "_EFFORT", 0), mock.patch.object(sets, "EXACT", 0):
            made = plan(request)
        assert not flow.called
        assert (made.replica_moves, made.certificate.lower_bound, made.certificate.optimal) == (37, 35, False)
        assert check(request, made).count_sumsq == 20 * 20 * 9
        with only_fast() as flow, mock.patch.object(sets, "_EFFORT", 0):
            assert plan(request).certificate.optimal  # small enough for the flow
        assert flow.called


class TestOrder:
    @given(requests(most_partitions=40, most_brokers=9), st.booleans(), st.booleans())
    def test_leaders_are_as_even_as_the_sets_allow(self, request_: PlanRequest, leaders: bool, order: bool) -> None:
        """For the same sets, ordering by the flow finds no more even leaders and, if equal, no fewer changes."""
        asked = replace(request_, goals=replace(request_.goals, leaders=leaders, follower_order=order))
        made = fast(asked)
        metrics = check(asked, made)
        with mock.patch.object(sets, "SMALL", 0), mock.patch.object(planner, "better_replica_sets", return_value=None):
            exact = check(asked, plan(replace(asked, goals=replace(asked.goals, follower_order=False))))
        assert metrics.leader_sumsq == exact.leader_sumsq
        assert metrics.leader_changes == exact.leader_changes
        if not leaders:
            assert all(p.current[0] not in p.target for p in made.partitions if p.leader_moves)

    @given(requests(most_partitions=60, most_brokers=7))
    def test_pairs_are_as_even_as_the_leaders_allow(self, request_: PlanRequest) -> None:
        """No choice of seconds for these leaders has a smaller sum of squares."""
        made = fast(request_)
        lists = result(request_, made).values()
        squares = check(request_, made).pair_sumsq
        assert squares == fewest_pair_squares(lists)

    def test_a_copy_that_comes_home_by_a_detour_is_in_its_place(self) -> None:
        """Chains may return a replica in another one's slot; whether a leader stayed is determined by its slot."""
        lists = np.array([0, 1, 2, 3, 4, 5])
        racks, targets = [None] * 7, np.ones(7, dtype=np.bool_)
        copies = Copies(encode(racks, targets, np.array([3, 3]), lists, RackAwareness.ENFORCED), np.zeros(0, np.int64))
        copies.broker_of_slot[:] = [2, 1, 6, 3, 4, 5]
        copies.tidy()
        assert copies.broker_of_slot.tolist() == [6, 1, 2, 3, 4, 5]
        assert copies.moved().tolist() == [0]

    def test_followers_stay_in_order_where_order_does_not_matter(self) -> None:
        """After a new leader the others keep their order."""
        request = PlanRequest(
            tuple(Broker(BrokerId(b)) for b in range(4)),
            tuple(PartitionInput(TopicPartition("t", i), replicas_of(0, 1, 2, 3)) for i in range(4)),
            frozenset(BrokerId(b) for b in range(4)),
            Goals(follower_order=False),
        )
        targets = sorted(p.target for p in fast(request).partitions)
        assert targets == [replicas_of(1, 0, 2, 3), replicas_of(2, 0, 1, 3), replicas_of(3, 0, 1, 2)]


class TestStability:
    @given(requests(most_partitions=40, most_brokers=9))
    def test_a_plan_of_the_planned_state_is_empty(self, request_: PlanRequest) -> None:
        """Planning again after the plan was carried out changes nothing."""
        after = result(request_, fast(request_))
        again = tuple(replace(p, replicas=after.get(p.tp, p.replicas)) for p in request_.partitions)
        assert fast(replace(request_, partitions=again)).partitions == ()

    @given(requests(most_partitions=40, most_brokers=9), st.randoms(use_true_random=False))
    def test_the_order_of_listing_does_not_matter(self, request_: PlanRequest, random: st.DataObject) -> None:
        """The same cluster listed in another order gives the same hash."""
        brokers, partitions = list(request_.brokers), list(request_.partitions)
        random.shuffle(brokers)
        random.shuffle(partitions)
        shuffled = replace(request_, brokers=tuple(brokers), partitions=tuple(partitions))
        assert fast(shuffled).hash == fast(request_).hash

    @given(requests(most_partitions=30, most_brokers=9), st.booleans(), st.integers(1, 1000))
    def test_broker_ids_are_only_names(self, request_: PlanRequest, large: bool, step: int) -> None:
        """Other ids in the same order give the same plan with the other ids."""

        def renamed(replicas: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
            return tuple(BrokerId(b * step + 5) for b in replicas)

        other = PlanRequest(
            tuple(Broker(BrokerId(b.id * step + 5), b.rack) for b in request_.brokers),
            tuple(replace(p, replicas=renamed(p.replicas)) for p in request_.partitions),
            frozenset(renamed(tuple(request_.targets))),
            request_.goals,
        )
        make = fast if large else plan
        expected = [(p.tp, renamed(p.target)) for p in make(request_).partitions]
        assert [(p.tp, p.target) for p in make(other).partitions] == expected

    @given(requests(most_partitions=30, most_brokers=9), st.randoms(use_true_random=False))
    def test_no_broker_is_preferred_for_its_id(self, request_: PlanRequest, random: st.DataObject) -> None:
        """The value of the plan does not depend on the ids."""
        ids = sorted({b.id for b in request_.brokers} | {b for p in request_.partitions for b in p.replicas})
        names = list(ids)
        random.shuffle(names)
        name = dict(zip(ids, names, strict=True))
        other = PlanRequest(
            tuple(replace(b, id=name[b.id]) for b in request_.brokers),
            tuple(replace(p, replicas=tuple(name[b] for b in p.replicas)) for p in request_.partitions),
            frozenset(name[b] for b in request_.targets),
            request_.goals,
        )
        one, two = check(request_, fast(request_)), check(other, fast(other))
        assert (one.rack_violations, one.count_sumsq, one.moves) == (two.rack_violations, two.count_sumsq, two.moves)

    @given(requests(most_partitions=30, most_brokers=9))
    def test_a_topic_that_is_even_everywhere_costs_nothing(self, request_: PlanRequest) -> None:
        """One more single-replica partition on every broker: no further moves are needed, maybe fewer."""
        plain = replace(request_, goals=Goals(RackAwareness.DISABLED))
        more = tuple(PartitionInput(TopicPartition("z", b), (b,)) for b in plain.targets)
        with_topic = replace(plain, partitions=plain.partitions + more)
        assert fast(with_topic).replica_moves <= fast(plain).replica_moves


class TestHostileInput:
    @given(
        st.lists(st.tuples(st.integers(-(2**70), 2**70) | st.integers(0, 5), st.sampled_from([None, "", "a", "b"]))),
        st.lists(
            st.tuples(
                st.sampled_from("ab"), st.integers(-3, 2**33), st.lists(st.integers(-2, 2**65) | st.integers(0, 5))
            )
        ),
        st.sets(st.integers(0, 6)),
    )
    def test_a_plan_or_a_refusal(self, brokers, partitions, targets) -> None:
        """Any input that the types allow, possible or not."""
        request = PlanRequest(
            tuple(Broker(BrokerId(b), rack) for b, rack in brokers),
            tuple(PartitionInput(TopicPartition(t, n), replicas_of(*row)) for t, n, row in partitions),
            frozenset(BrokerId(b) for b in targets),
        )
        for make in (plan, fast):
            try:
                made = make(request)
            except Refused:
                continue
            check(request, made)

    @pytest.mark.parametrize("rf", [1, 2, 39, 40])
    def test_few_and_all_brokers(self, rf: int) -> None:
        """RF 1, and RF of nearly all and of all brokers, in a topic large enough for the fast planner."""
        lists = [replicas_of(*((i * i + k) % 40 for k in range(rf))) for i in range(3000 // rf + 30)]
        request = PlanRequest(
            tuple(Broker(BrokerId(b), f"r{b % 4}") for b in range(40)),
            tuple(PartitionInput(TopicPartition("t", i), row) for i, row in enumerate(lists)),
            frozenset(BrokerId(b) for b in range(40)),
        )
        made = fast(request)
        assert made.certificate.optimal
        check(request, made)

    def test_one_wide_partition_among_many_narrow_ones(self) -> None:
        """Memory grows with the number of replicas, not with the longest list times the partitions."""
        lists = [replicas_of(i % 60) for i in range(20_000)] + [replicas_of(*range(60))]
        request = PlanRequest(
            tuple(Broker(BrokerId(b)) for b in range(61)),
            tuple(PartitionInput(TopicPartition("t", i), row) for i, row in enumerate(lists)),
            frozenset(BrokerId(b) for b in range(61)),
        )
        made = plan(request)
        assert made.certificate.optimal
        check(request, made)
