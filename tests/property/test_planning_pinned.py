"""The parts of the planner that use a budget, with a pinned topic far larger than everything that may move."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from unittest import mock

import numpy as np
import pytest
from tests.property.planning_judge import check_budget, result
from tests.property.planning_optima import best_within_budget
from tests.property.recorded_optima import known, seeded
from tests.property.test_planning_budgets import cluster, pinning, random_request, within

from kafka_rebalance.model.goals import Balance, RackAwareness
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, plan
from kafka_rebalance.planning.budget import cp_sat_budget as budget_model
from kafka_rebalance.planning.budget.drain import drain
from kafka_rebalance.planning.budget.rack_repair import RackRepair
from kafka_rebalance.planning.budget.trim import squares_of
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.encoding import build
from kafka_rebalance.planning.replicas import replica_sets as sets
from kafka_rebalance.planning.replicas.exchange import GivenCounts


def beside(request: PlanRequest, pinned: dict[int, int]) -> PlanRequest:
    """The request with a pinned topic that has this many partitions on each of these brokers."""
    brokers = [b for b, count in pinned.items() for _ in range(count)]
    more = (PartitionInput(TopicPartition("z", i), replicas_of(b), pinned=True) for i, b in enumerate(brokers))
    return replace(request, partitions=(*request.partitions, *more))


class TestHeavyPins:
    @pytest.mark.parametrize(("awareness", "proved"), [("Enforced", 0.83), ("Disabled", 0.83), ("Preferred", 0.7)])
    def test_the_outline_of_large_clusters(self, awareness: str, proved: float) -> None:
        """Up to ten times as many replicas are pinned as may move: a claimed proof is exact, nearly all have one."""
        random, seen, clusters = Random(51), 0, seeded(60)
        for _ in range(clusters):
            request = pinning(random_request(random, RackAwareness(awareness)), random, most=80)
            asked = within(request, random.randint(0, 5))
            with mock.patch.object(budget_model, "SMALL", 0):
                made = plan(asked)
            value, best = check_budget(asked, made), known(best_within_budget, asked)
            assert value >= best
            assert made.imbalance is None or made.imbalance.least <= best[1 + (awareness != "Preferred")]
            if made.certificate.optimal:
                assert value == best
            seen += made.certificate.optimal
        assert seen >= proved * clusters

    def test_nothing_moves_for_balance_before_all_has_left(self) -> None:
        """Broker 3 departs with two replicas; the fifty pinned ones on broker 0 do not make another move better."""
        request = beside(cluster([[0], [0], [3], [3]], 4, targets={0, 1, 2}), {0: 50})
        with mock.patch.object(budget_model, "SMALL", 0):
            made = plan(within(request, 1))
        assert [p.current for p in made.partitions] == [replicas_of(3)]
        assert made.certificate.optimal


class TestParts:
    @pytest.mark.parametrize("awareness", RackAwareness)
    def test_drained_is_the_best_where_nothing_else_can_move(self, awareness: RackAwareness) -> None:
        """Which departing replicas move and where: as the oracle, for every budget up to all of them."""
        random, drained = Random(52), 0
        while drained < seeded(60):
            request = pinning(random_request(random, awareness), random, most=20)
            instance = build(request).instance
            forced = int((~instance.eligible[instance.broker_of_slot]).sum())
            for moves in range(1, forced + 1):
                found = drain(instance, moves)
                assert found is not None
                best = known(best_within_budget, within(request, moves))
                assert squares_of(found) == best[1 if awareness is RackAwareness.PREFERRED else 2]
                drained += 1

    def test_a_repair_goes_where_the_pinned_topic_is_not(self) -> None:
        """Both replicas are in rack a: one moves to the rack whose broker has no pinned replicas."""
        request = beside(cluster([[0, 1]], 4), {0: 1, 2: 3})
        racked = tuple(replace(b, rack=rack) for b, rack in zip(request.brokers, "aabc", strict=True))
        instance = build(replace(request, brokers=racked)).instance
        after = RackRepair(Copies.of_lists(instance, instance.broker_of_slot)).after(1)
        assert sorted(after.broker_of_slot.tolist()) == [1, 3]

    def test_given_counts_are_reached_beside_what_is_pinned(self) -> None:
        """The target counts cover only movable replicas."""
        instance = build(beside(cluster([[0], [0], [0], [0]], 3), {1: 7})).instance
        copies = Copies.of_lists(instance, instance.broker_of_slot)
        target = np.array([1, 2, 1])
        assert GivenCounts(copies, target).improve(100)
        assert copies.counts().tolist() == target.tolist()

    def test_the_most_useful_move_is_to_where_nothing_is_pinned(self) -> None:
        """The topic needs one more replica on 1 and on 2; with a budget of one the totals decide."""
        request = beside(cluster([[0], [0], [0]], 3), {1: 2})
        made = plan(replace(request, goals=Goals(balance=Balance.PER_TOPIC, max_replica_moves=1)))
        assert [p.target for p in made.partitions] == [replicas_of(2)]


class TestLeaders:
    def test_leaders_within_a_budget_are_even_with_pinned_ones(self) -> None:
        """No moves at all: broker 0 leads two pinned partitions, so it leads none of the two that it shares with 1."""
        request = within(beside(cluster([[0, 1], [0, 1]], 2), {0: 2}), 0)
        made = plan(request)
        assert [row[0] for tp, row in sorted(result(request, made).items()) if tp.topic == "t"] == [BrokerId(1)] * 2
        assert made.replica_moves == 0

    def test_a_cluster_of_pinned_topics_only(self) -> None:
        """Nothing may move, with any budget."""
        request = within(beside(PlanRequest((Broker(BrokerId(0)),), (), frozenset({BrokerId(0)})), {0: 2}), 3)
        made = plan(request)
        assert (made.partitions, made.certificate.optimal, made.imbalance) == ((), True, None)


class TestWholePlan:
    def test_no_bound_is_claimed_of_counts_that_nobody_reaches(self) -> None:
        """When effort runs out, the bound of a large cluster is never above the minimum of moves."""
        random, unproved = Random(7), 0
        for _ in range(seeded(60)):
            request = pinning(random_request(random, random.choice(list(RackAwareness))), random, most=40)
            fewest = plan(request).replica_moves
            with mock.patch.multiple(sets, SMALL=0, EXACT=0, _EFFORT=0):
                made = plan(request)
            assert made.certificate.lower_bound <= fewest
            assert made.replica_moves == fewest or not made.certificate.optimal
            unproved += not made.certificate.optimal
        assert unproved
