"""The trade-off curve: the balance that each number of moves achieves."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.planning_judge import check_budget
from tests.property.planning_optima import best_within_budget
from tests.property.recorded_optima import known, seeded
from tests.property.test_planning_budgets import pinning, random_request
from tests.property.test_planning_properties import requests

from kafka_rebalance.model.goals import Balance, RackAwareness
from kafka_rebalance.model.plan import Spread
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import PartitionInput, PlanRequest, plan
from kafka_rebalance.planning.explain.curve import CurvePoint, curve


def on_two(rows: list[int], targets: set[int]) -> PlanRequest:
    return PlanRequest(
        tuple(Broker(BrokerId(b)) for b in range(3)),
        tuple(PartitionInput(TopicPartition("t", i), replicas_of(b), size_bytes=5) for i, b in enumerate(rows)),
        frozenset(map(BrokerId, targets)),
    )


class TestCurve:
    def test_an_example_by_hand(self) -> None:
        """Broker 2 departs with one partition, broker 0 has five and broker 1 none: the first move is forced."""
        found = curve(on_two([0, 0, 0, 0, 0, 2], {0, 1}))
        assert found == (
            CurvePoint(1, Spread(1, 5), 26, 5, optimal=True),
            CurvePoint(2, Spread(2, 4), 20, 10, optimal=True),
            CurvePoint(3, Spread(3, 3), 18, 15, optimal=True),
        )

    def test_what_is_balanced_is_one_point(self) -> None:
        """No gain and no cost; the same for an empty cluster."""
        assert curve(on_two([0, 1], {0, 1})) == (CurvePoint(0, Spread(1, 1), 2, 0, optimal=True),)
        assert curve(on_two([], {0, 1})) == (CurvePoint(0, Spread(0, 0), 0, 0, optimal=True),)

    @given(requests(most_partitions=15), st.sampled_from(Balance), st.integers(-1, 6))
    def test_from_what_has_to_move_to_the_whole_plan(
        self, request_: PlanRequest, balance: Balance, points: int
    ) -> None:
        """More moves never give less balance, and the last point is the plan."""
        asked = replace(request_, goals=replace(request_.goals, balance=balance))
        found = curve(asked, points)
        assert len(found) <= max(2, points)
        whole = plan(asked)
        assert found[-1].moves == whole.replica_moves
        assert (found[-1].spread, found[-1].optimal) == (whole.after, whole.certificate.optimal)
        for before, after in pairwise(found):
            assert before.moves < after.moves
            assert before.squares >= after.squares

    @given(requests(most_partitions=15), st.sampled_from(Balance), st.integers(0, 2**32))
    def test_around_pinned_topics(self, request_: PlanRequest, balance: Balance, seed: int) -> None:
        """The same, with pinned replicas in every count."""
        asked = pinning(replace(request_, goals=replace(request_.goals, balance=balance)), Random(seed), most=30)
        found, whole = curve(asked, 5), plan(asked)
        assert (found[-1].moves, found[-1].spread, found[-1].optimal) == (
            whole.replica_moves,
            whole.after,
            whole.certificate.optimal,
        )
        for before, after in pairwise(found):
            assert before.moves < after.moves
            assert before.squares >= after.squares

    @pytest.mark.parametrize("awareness", RackAwareness)
    def test_what_is_proved_is_exact(self, awareness: RackAwareness) -> None:
        """With a pinned topic, a point called optimal equals the oracle."""
        random, seen = Random(61), 0
        squares = 1 if awareness is RackAwareness.PREFERRED else 2
        while seen < seeded(60):
            request = pinning(random_request(random, awareness), random, most=30)
            for point in curve(request, 4):
                goals = replace(request.goals, max_replica_moves=point.moves)
                best = known(best_within_budget, replace(request, goals=goals))[squares]
                assert not point.optimal or point.squares == best
                seen += point.optimal

    def test_pinned_topics_alone_are_one_point(self) -> None:
        """The pinned counts are the only ones."""
        request = on_two([0, 0, 1], {0, 1})
        pinned = tuple(replace(p, pinned=True) for p in request.partitions)
        assert curve(replace(request, partitions=pinned)) == (CurvePoint(0, Spread(1, 2), 5, 0, optimal=True),)

    @pytest.mark.parametrize("k", [1, 2])
    def test_a_point_is_a_plan_with_that_budget(self, k: int) -> None:
        """The point of the curve for k moves matches a plan with the budget k."""
        request = on_two([0, 0, 0, 0, 0, 2], {0, 1})
        asked = replace(request, goals=replace(request.goals, max_replica_moves=k))
        assert check_budget(asked, plan(asked))[2] == curve(request)[k - 1].squares
