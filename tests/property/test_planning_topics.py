"""Balance per topic, and of topics and totals together, against an exact constraint solver."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations
from random import Random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.planning_judge import check, check_budget, result, value_by_topic
from tests.property.planning_optima import best_by_topic, best_within_budget
from tests.property.recorded_optima import known, seeded
from tests.property.test_planning_budgets import pinning, random_request
from tests.property.test_planning_properties import requests

from kafka_rebalance.model.goals import Balance, RackAwareness, Strategy
from kafka_rebalance.model.plan import Plan, Spread
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, plan
from kafka_rebalance.planning.topics import topic_balance as topics

BY_TOPIC = [Balance.PER_TOPIC, Balance.BOTH]


def balanced(request: PlanRequest, balance: Balance) -> PlanRequest:
    return replace(request, goals=replace(request.goals, balance=balance))


def check_least(asked: PlanRequest, made: Plan) -> None:
    """No plan within the budget that is as good on the earlier levels is below the claimed minimum imbalance."""
    if made.imbalance is not None:
        squares = 1 if asked.goals.rack_awareness is RackAwareness.PREFERRED else 2
        assert made.imbalance.least <= best_within_budget(asked)[squares]


def against_the_oracle(balance: Balance, seed: int, clusters: int, *, pinned: bool = False) -> Counter[str]:
    """Count the plans that are exact on all levels, or on all but the last; assert the claimed proofs."""
    random, seen = Random(seed), Counter[str]()
    for _ in range(seeded(clusters)):
        request = balanced(random_request(random, random.choice(list(RackAwareness))), balance)
        request = pinning(request, random) if pinned else request
        made = plan(request)
        check(request, made)
        value, best = value_by_topic(request, made), known(best_by_topic, request)
        assert value >= best
        seen += Counter(asked=1, exact=value == best, nearly=value[:-1] == best[:-1], proved=made.certificate.optimal)
    return seen


class TestAgainstTheOracle:
    @pytest.mark.parametrize("balance", BY_TOPIC)
    def test_every_level_is_the_exact_optimum(self, balance: Balance) -> None:
        """Racks, squares of topics and totals in their order, moves."""
        seen = against_the_oracle(balance, 21, 60)
        assert seen["exact"] == seen["proved"] == seen["asked"]

    @pytest.mark.parametrize(("balance", "exact"), [(Balance.PER_TOPIC, 0.9), (Balance.BOTH, 1)])
    def test_the_outline_of_large_clusters(self, balance: Balance, exact: float) -> None:
        """All but the last level (of PerTopic: the totals) are exact, and that one nearly always."""
        with mock.patch.object(topics, "SMALL", 0):
            seen = against_the_oracle(balance, 22, 60)
        assert seen["nearly"] == seen["proved"] == seen["asked"]
        assert seen["exact"] >= exact * seen["asked"], seen

    @pytest.mark.parametrize("balance", BY_TOPIC)
    def test_counts_that_are_not_reached_prove_nothing(self, balance: Balance) -> None:
        """Without chains of moves some topics miss the outline's counts; then other parts decide and prove."""
        with mock.patch.multiple(topics, SMALL=0, _EFFORT=0):
            seen = against_the_oracle(balance, 24, 60)
        assert seen["nearly"] == seen["proved"] == seen["asked"]

    def test_topics_alone(self) -> None:
        """With very many topics each one is planned separately: as good, except for the totals."""
        with mock.patch.object(topics, "SMALL", 0), mock.patch.object(topics, "MOST_CELLS", 0):
            seen = against_the_oracle(Balance.PER_TOPIC, 23, 40)
        assert seen["nearly"] == seen["proved"] == seen["asked"]

    def test_spare_copies_of_topics_alone_even_the_totals(self) -> None:
        """Twelve topics of one partition leave broker 9; each goes to the broker with the fewest replicas so far."""
        request = PlanRequest(
            tuple(Broker(BrokerId(b)) for b in (0, 1, 2, 9)),
            tuple(PartitionInput(TopicPartition(f"t{i}", 0), replicas_of(9)) for i in range(12)),
            frozenset(BrokerId(b) for b in (0, 1, 2)),
            Goals(balance=Balance.PER_TOPIC),
        )
        with mock.patch.object(topics, "SMALL", 0), mock.patch.object(topics, "MOST_CELLS", 0):
            assert plan(request).after == Spread(4, 4)


class TestPinned:
    """A pinned topic stays and counts in the totals; it has no share of its own."""

    def test_three_replicas_are_not_on_two_brokers(self) -> None:
        """Brokers 2 and 3 have five pinned replicas each, but one of the three replicas of a-0 has to stay there."""
        request = PlanRequest(
            tuple(Broker(BrokerId(b)) for b in range(4)),
            (
                PartitionInput(TopicPartition("a", 0), replicas_of(0, 2, 3)),
                PartitionInput(TopicPartition("a", 1), replicas_of(2)),
                *(PartitionInput(TopicPartition("z", i), replicas_of(2, 3), pinned=True) for i in range(5)),
            ),
            frozenset(BrokerId(b) for b in range(4)),
        )
        with mock.patch.multiple(topics, SMALL=0, MOST_CHOICES=0):
            made = plan(balanced(request, Balance.BOTH))
        assert (made.replica_moves, made.certificate.lower_bound, made.certificate.optimal) == (2, 2, True)

    @pytest.mark.parametrize("balance", BY_TOPIC)
    def test_every_level_is_the_exact_optimum(self, balance: Balance) -> None:
        """Equal to the oracle with the same fixed counts."""
        seen = against_the_oracle(balance, 41, 100, pinned=True)
        assert seen["exact"] == seen["proved"] == seen["asked"]

    @pytest.mark.parametrize(("balance", "exact"), [(Balance.PER_TOPIC, 0.85), (Balance.BOTH, 1)])
    def test_the_outline_of_large_clusters(self, balance: Balance, exact: float) -> None:
        """All but the last level (of PerTopic: the totals) are exact, and that one nearly always."""
        with mock.patch.object(topics, "SMALL", 0):
            seen = against_the_oracle(balance, 42, 100, pinned=True)
        assert seen["nearly"] == seen["proved"] == seen["asked"]
        assert seen["exact"] >= exact * seen["asked"], seen

    def test_topics_alone(self) -> None:
        """With very many topics each one is planned separately: as good, except for the totals."""
        with mock.patch.object(topics, "SMALL", 0), mock.patch.object(topics, "MOST_CELLS", 0):
            seen = against_the_oracle(Balance.PER_TOPIC, 43, 100, pinned=True)
        assert seen["nearly"] == seen["proved"] == seen["asked"]

    def test_spare_copies_of_topics_alone_go_where_the_pinned_topic_is_not(self) -> None:
        """Six topics of one partition leave broker 9; broker 0 has three pinned replicas, so 1 and 2 get them."""
        request = PlanRequest(
            tuple(Broker(BrokerId(b)) for b in (0, 1, 2, 9)),
            (
                *(PartitionInput(TopicPartition(f"t{i}", 0), replicas_of(9)) for i in range(6)),
                *(PartitionInput(TopicPartition("z", i), replicas_of(0), pinned=True) for i in range(3)),
            ),
            frozenset(BrokerId(b) for b in (0, 1, 2)),
            Goals(balance=Balance.PER_TOPIC),
        )
        with mock.patch.object(topics, "SMALL", 0), mock.patch.object(topics, "MOST_CELLS", 0):
            assert plan(request).after == Spread(3, 3)

    def test_per_topic_evens_the_topic_and_both_the_totals(self) -> None:
        """Broker 0 has two pinned replicas and each broker one of topic a: only totals require both of a on 1."""
        request = PlanRequest(
            (Broker(BrokerId(0)), Broker(BrokerId(1))),
            (
                *(PartitionInput(TopicPartition("a", i), replicas_of(i)) for i in range(2)),
                *(PartitionInput(TopicPartition("z", i), replicas_of(0), pinned=True) for i in range(2)),
            ),
            frozenset({BrokerId(0), BrokerId(1)}),
        )
        alone, both = (plan(balanced(request, balance)) for balance in BY_TOPIC)
        assert (alone.replica_moves, alone.uneven_topics, alone.after) == (0, 0, Spread(1, 3))
        assert (both.replica_moves, both.uneven_topics, both.after) == (1, 1, Spread(2, 2))

    @given(requests(most_partitions=15), st.sampled_from(BY_TOPIC), st.integers(0, 5), st.integers(0, 2**32))
    def test_within_a_budget(self, request_: PlanRequest, balance: Balance, k: int, seed: int) -> None:
        """As many forced moves as possible within the limit; no pinned replica moves; the claimed minimum is valid."""
        pinned = balanced(pinning(request_, Random(seed)), balance)
        asked = replace(pinned, goals=replace(pinned.goals, max_replica_moves=k))
        made = plan(asked)
        stuck = check_budget(asked, made)[0]
        check_least(asked, made)
        forced = sum(b not in request_.targets for p in request_.partitions if p.has_leader for b in p.replicas)
        assert stuck == max(0, forced - k)
        whole = plan(pinned)
        if whole.replica_moves <= k:
            assert made == whole


class TestMinimumGain:
    @given(requests(), st.sampled_from(BY_TOPIC), st.integers(1, 100), st.none() | st.integers(0, 4), st.booleans())
    def test_too_little_of_all_that_is_balanced(
        self, request_: PlanRequest, balance: Balance, gain: int, budget: int | None, pins: bool
    ) -> None:
        """PerTopic: the sum of each topic's fullest broker falls too little. Both: that sum and the total do."""
        request = balanced(pinning(request_, Random(gain)) if pins else request_, balance)
        request = replace(request, goals=replace(request.goals, max_replica_moves=budget))
        plain = plan(request)
        made = plan(replace(request, goals=replace(request.goals, minimum_gain=gain)))
        unlimited = Goals(request.goals.rack_awareness)
        forced = plan(replace(request, strategy=Strategy.FORCED_MOVES_ONLY, goals=unlimited)).partitions != ()
        movable = {p.tp for p in request.partitions if not p.pinned}
        held = []
        for found in ({p.tp: p.replicas for p in request.partitions if p.has_leader}, result(request, plain)):
            cells = Counter((tp.topic, b) for tp, row in found.items() if tp in movable for b in row)
            totals = Counter(b for row in found.values() for b in row)
            fullest = [max((cells[t, b] for b in request.targets), default=0) for t in {tp.topic for tp in movable}]
            held.append((sum(fullest), max(totals[b] for b in request.targets)))
        (topics_had, total_had), (topics_has, total_has) = held
        too_little = (topics_had - topics_has) * 100 < gain * topics_had
        if balance is Balance.BOTH:
            too_little &= (total_had - total_has) * 100 < gain * total_had
        if too_little and not forced and plain.partitions:
            assert (made.partitions, made.reason, made.certificate.optimal) == ((), "GainTooSmall", True)
        else:
            assert made == plain

    @pytest.mark.parametrize(("balance", "gain", "moves"), [("PerTopic", 50, 2), ("PerTopic", 51, 0), ("Both", 50, 2)])
    def test_topics_that_get_even_are_a_gain(self, balance: str, gain: int, moves: int) -> None:
        """Two topics, each with two partitions on its own broker: the totals are balanced all the time."""
        rows = [("a", 0, 0), ("a", 1, 0), ("b", 0, 1), ("b", 1, 1)]
        request = PlanRequest(
            (Broker(BrokerId(0)), Broker(BrokerId(1))),
            tuple(PartitionInput(TopicPartition(t, i), replicas_of(b)) for t, i, b in rows),
            frozenset({BrokerId(0), BrokerId(1)}),
            Goals(balance=Balance(balance), minimum_gain=gain),
        )
        assert plan(request).replica_moves == moves


class TestRules:
    def test_per_topic_evens_what_total_does_not(self) -> None:
        """Two topics, each on one broker: the total is balanced already, the topics are not."""
        request = PlanRequest(
            (Broker(BrokerId(0)), Broker(BrokerId(1))),
            tuple(
                PartitionInput(TopicPartition(t, i), replicas_of(b)) for t, b in (("a", 0), ("b", 1)) for i in (0, 1)
            ),
            frozenset({BrokerId(0), BrokerId(1)}),
        )
        assert plan(request).replica_moves == 0
        for balance in BY_TOPIC:
            made = plan(balanced(request, balance))
            assert made.replica_moves == 2
            after = result(request, made)
            assert Counter((tp.topic, r[0]) for tp, r in after.items()) == Counter(
                {(t, b): 1 for t in "ab" for b in (BrokerId(0), BrokerId(1))}
            )

    def test_topics_give_way_to_totals(self) -> None:
        """The lone broker of rack b holds every partition of a, more than a share: with Both it holds less of b."""
        racks = {0: "a", 1: "a", 2: "b"}
        rows = [("a", i, (i % 2, 2)) for i in range(4)] + [("b", i, (i % 3,)) for i in range(3)]
        request = PlanRequest(
            tuple(Broker(BrokerId(b), rack) for b, rack in racks.items()),
            tuple(PartitionInput(TopicPartition(t, i), replicas_of(*row)) for t, i, row in rows),
            frozenset(map(BrokerId, racks)),
        )
        alone, both = (plan(balanced(request, balance)) for balance in BY_TOPIC)
        assert (alone.replica_moves, alone.uneven_topics) == (0, 0)
        assert (both.replica_moves, both.uneven_topics) == (1, 1)
        assert both.after == Spread(3, 4)

    @given(requests(most_partitions=15))
    def test_a_single_topic_is_its_own_total(self, request_: PlanRequest) -> None:
        """All three balances give the same result, up to ties."""
        one = tuple(replace(p, tp=TopicPartition("t", p.tp.partition)) for p in request_.partitions)
        metrics = {
            (m.rack_violations, m.count_sumsq, m.moves)
            for m in (
                check(asked, plan(asked)) for asked in (balanced(replace(request_, partitions=one), b) for b in Balance)
            )
        }
        assert len(metrics) == 1

    @given(requests(most_partitions=15), st.sampled_from(BY_TOPIC), st.randoms(use_true_random=False))
    def test_order_does_not_matter_and_a_planned_state_is_empty(
        self, request_: PlanRequest, balance: Balance, random: st.DataObject
    ) -> None:
        """The same cluster gives the same hash; planning again changes nothing."""
        asked = balanced(request_, balance)
        made = plan(asked)
        partitions = list(asked.partitions)
        random.shuffle(partitions)
        assert plan(replace(asked, partitions=tuple(partitions))).hash == made.hash
        after = result(asked, made)
        again = tuple(replace(p, replicas=after.get(p.tp, p.replicas)) for p in asked.partitions)
        assert plan(replace(asked, partitions=again)).replica_moves == 0

    @given(requests(most_partitions=12))
    def test_another_topic_changes_nothing_elsewhere(self, request_: PlanRequest) -> None:
        """PerTopic: one more topic changes neither the moves nor the balance of the others."""
        asked = balanced(replace(request_, goals=Goals(RackAwareness.DISABLED)), Balance.PER_TOPIC)
        first = min(asked.targets)
        more = tuple(PartitionInput(TopicPartition("z", i), (first,)) for i in range(3))
        larger = replace(asked, partitions=asked.partitions + more)
        others = plan(larger)
        moves = sum(len(p.added) for p in others.partitions if p.tp.topic != "z")
        assert moves == plan(asked).replica_moves
        counts = Counter((tp.topic, b) for tp, r in result(larger, others).items() for b in r if tp.topic != "z")
        before = Counter((tp.topic, b) for tp, r in result(asked, plan(asked)).items() for b in r)
        assert sorted(counts.values()) == sorted(before.values())


class TestWithABudget:
    @given(requests(most_partitions=15), st.sampled_from(BY_TOPIC), st.integers(0, 5))
    def test_within_it(self, request_: PlanRequest, balance: Balance, k: int) -> None:
        """As many forced moves as possible within the limit; a budget not reached changes nothing; the claimed minimum
        imbalance is not above the real one.
        """
        whole = plan(balanced(request_, balance))
        asked = replace(request_, goals=replace(request_.goals, balance=balance, max_replica_moves=k))
        made = plan(asked)
        stuck = check_budget(asked, made)[0]
        check_least(asked, made)
        forced = sum(b not in request_.targets for p in request_.partitions if p.has_leader for b in p.replicas)
        assert stuck == max(0, forced - k)
        if whole.replica_moves <= k:
            assert made == whole

    @pytest.mark.parametrize("balance", BY_TOPIC)
    def test_the_least_where_not_all_racks_are_mended(self, balance: Balance) -> None:
        """Broker 2 is alone in its rack and has to take four replicas, (2, 2, 4); half way (3, 3, 2) is more balanced,
        and the two smallest partitions may both leave the same broker.
        """
        for sizes in permutations(range(1, 5)):
            request = PlanRequest(
                tuple(Broker(BrokerId(b), rack) for b, rack in enumerate("aab")),
                tuple(
                    PartitionInput(TopicPartition("t", i), replicas_of(0, 1), size_bytes=size)
                    for i, size in enumerate(sizes)
                ),
                frozenset(BrokerId(b) for b in range(3)),
                Goals(balance=balance, max_replica_moves=2),
            )
            made = plan(request)
            assert made.imbalance is not None
            assert made.imbalance.least <= 22
