"""The planner chooses the plan that copies the fewest bytes among all plans with the fewest moves."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from tests.property.byte_optima import fewest_bytes
from tests.property.planning_judge import check
from tests.property.test_planning_properties import requests

from kafka_rebalance.model.goals import Balance
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, plan
from kafka_rebalance.planning.replicas import replica_sets as sets


class TestFewestBytes:
    @given(requests(most_partitions=12))
    def test_the_flow_finds_the_fewest_bytes(self, request_: PlanRequest) -> None:
        """As many violations, counts and moves as without sizes, and no such plan copies less. The bound says so."""
        made = plan(request_)
        found = check(request_, made)
        best = fewest_bytes(request_, found.rack_violations, found.count_sumsq, found.moves)
        assert made.data_to_move_bytes == best
        assert made.certificate.data_lower_bound in (None, best)
        without = plan(replace(request_, partitions=tuple(replace(p, size_bytes=0) for p in request_.partitions)))
        assert found.moves == without.replica_moves
        assert without.certificate.data_lower_bound is None

    @given(requests(most_partitions=12))
    def test_the_method_for_large_clusters_never_undercuts_its_bound(self, request_: PlanRequest) -> None:
        """The bound is at most what the solver finds, which is at most what the plan copies."""
        with mock.patch.object(sets, "SMALL", 0):
            made = plan(request_)
        found = check(request_, made)
        best = fewest_bytes(request_, found.rack_violations, found.count_sumsq, found.moves)
        assert (made.certificate.data_lower_bound or 0) <= best <= made.data_to_move_bytes

    @given(st.lists(st.integers(0, 1000), min_size=4, max_size=40), st.data())
    def test_a_budget_of_moves_is_spent_on_the_smallest_partitions(self, sizes: list[int], data: st.DataObject) -> None:
        """Between two brokers with one replica of each partition, every choice is as even: the bytes decide."""
        brokers = (Broker(BrokerId(1)), Broker(BrokerId(2)))
        rows = (PartitionInput(TopicPartition("t", n), (BrokerId(1),), size_bytes=size) for n, size in enumerate(sizes))
        most = data.draw(st.integers(1, len(sizes) // 2 - 1))
        goals = Goals(max_replica_moves=most)
        made = plan(PlanRequest(brokers, tuple(rows), frozenset(b.id for b in brokers), goals))
        assert made.replica_moves == most
        assert made.data_to_move_bytes == sum(sorted(sizes)[:most])

    @given(requests(most_partitions=12))
    def test_topics_keep_their_moves(self, request_: PlanRequest) -> None:
        """Bytes decide only between plans with the same moves, and are at least their bound."""
        for balance in (Balance.PER_TOPIC, Balance.BOTH):
            asked = replace(request_, goals=replace(request_.goals, balance=balance))
            plain = replace(asked, partitions=tuple(replace(p, size_bytes=0) for p in asked.partitions))
            made = plan(asked)
            assert made.replica_moves == plan(plain).replica_moves
            assert made.rack_violations == plan(plain).rack_violations
            assert (made.certificate.data_lower_bound or 0) <= made.data_to_move_bytes
