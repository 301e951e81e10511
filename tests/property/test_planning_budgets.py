"""Movement budgets: the best plan within a number of moves or bytes, against an exact constraint solver."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.planning_judge import check_budget, result
from tests.property.planning_optima import best_within_budget
from tests.property.recorded_optima import known, seeded
from tests.property.test_planning_properties import requests

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.model.plan import Imbalance, Spread
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, plan
from kafka_rebalance.planning.budget import cp_sat_budget as budget_model


def within(request: PlanRequest, moves: int | None = None, data: int | None = None) -> PlanRequest:
    return replace(request, goals=replace(request.goals, max_replica_moves=moves, max_data_to_move=data))


def cluster(lists: list[list[int]], brokers: int, targets: set[int] | None = None, sizes: int = 0) -> PlanRequest:
    """Partition i is on lists[i] and has i * sizes bytes."""
    return PlanRequest(
        tuple(Broker(BrokerId(b)) for b in range(brokers)),
        tuple(
            PartitionInput(TopicPartition("t", i), replicas_of(*row), size_bytes=i * sizes)
            for i, row in enumerate(lists)
        ),
        frozenset(BrokerId(b) for b in (range(brokers) if targets is None else targets)),
    )


def random_request(random: Random, awareness: RackAwareness) -> PlanRequest:
    """A small skewed cluster: mixed RF, racks, brokers without a rack, departing brokers, sizes."""
    brokers = random.randint(2, 7)
    names = [None, "a", "b", "c", "d"][: random.randint(1, 5)]
    known = tuple(Broker(BrokerId(b), random.choice(names)) for b in range(brokers))
    targets = [b for b in range(brokers) if random.random() < 0.8] or [0]
    weight = [random.random() ** 2 + 0.02 for _ in range(brokers)]
    partitions = []
    for number in range(random.randint(1, 12)):
        left, row = list(range(brokers)), []
        for _ in range(random.randint(1, min(len(targets), 4))):
            row.append(random.choices(left, [weight[b] for b in left])[0])
            left.remove(row[-1])
        tp = TopicPartition(random.choice("ab"), number * 3)
        partitions.append(PartitionInput(tp, replicas_of(*row), size_bytes=random.randint(1, 9)))
    return PlanRequest(known, tuple(partitions), frozenset(map(BrokerId, targets)), Goals(awareness))


def pinning(request: PlanRequest, random: Random, most: int = 10) -> PlanRequest:
    """The same cluster with a pinned topic of up to ``most`` partitions on few brokers, even departing or dead ones."""
    weight = {b.id: random.random() ** 3 + 0.01 for b in request.brokers} | {BrokerId(9): 0.05}
    longest = min(len(weight), 3)
    more = []
    for number in range(random.randint(1, most)):
        row = sorted(weight, key=lambda b: random.random() ** (1 / weight[b]), reverse=True)
        pinned = replicas_of(*row[: random.randint(1, longest)])
        more.append(PartitionInput(TopicPartition("__pinned", number), pinned, size_bytes=99, pinned=True))
    return replace(request, partitions=(*more, *request.partitions))


def against_the_oracle(
    random: Random, awareness: RackAwareness, *, data: bool, clusters: int, pinned: bool = False
) -> Counter[str]:
    """Count the plans that claim a proof (and assert it), and those exact on all levels or on all but the moves."""
    seen = Counter[str]()
    while seen["asked"] < seeded(clusters):
        request = random_request(random, awareness)
        request = pinning(request, random) if pinned else request
        whole = plan(request)
        if not (whole.data_to_move_bytes if data else whole.replica_moves):
            continue
        asked = within(request, data=random.randrange(whole.data_to_move_bytes))
        asked = asked if data else within(request, random.randrange(whole.replica_moves))
        made = plan(asked)
        value, best = check_budget(asked, made), known(best_within_budget, asked)
        assert value[0] == best[0], "as many forced moves as possible"
        assert value >= best
        squares = 1 if awareness is RackAwareness.PREFERRED else 2
        if best[squares] <= value[squares]:
            assert made.certificate.lower_bound <= best[3]
        if made.imbalance is not None:
            assert made.imbalance.least <= best[squares]
        if made.certificate.optimal:
            assert value == best
            assert made.certificate.lower_bound == made.replica_moves
            assert made.imbalance is not None
            assert made.imbalance.squares == made.imbalance.least
        seen += Counter(asked=1, proved=made.certificate.optimal, exact=value == best, even=value[:3] == best[:3])
    return seen


class TestMoves:
    @pytest.mark.parametrize("awareness", RackAwareness)
    def test_small_clusters_are_exact(self, awareness: RackAwareness) -> None:
        """Whether the outline or the model decided: proved, and equal to the oracle."""
        seen = against_the_oracle(Random(11), awareness, data=False, clusters=60)
        assert seen["proved"] == seen["exact"] == seen["asked"]

    @pytest.mark.parametrize(("awareness", "proved", "exact"), [("Enforced", 0.9, 0.95), ("Preferred", 0.75, 0.9)])
    def test_the_outline_alone_is_hardly_ever_off(self, awareness: str, proved: float, exact: float) -> None:
        """As in large clusters: a claimed proof is exact, and most of the other plans are, too."""
        with mock.patch.object(budget_model, "SMALL", 0):
            seen = against_the_oracle(Random(13), RackAwareness(awareness), data=False, clusters=60)
        assert seen["proved"] >= proved * seen["asked"], seen
        assert seen["exact"] >= exact * seen["asked"], seen

    @given(requests(most_partitions=20))
    def test_a_budget_that_is_not_reached_changes_nothing(self, request_: PlanRequest) -> None:
        """Exactly as many moves as the plan needs: the same plan with the same certificate."""
        made = plan(request_)
        asked = within(request_, made.replica_moves, made.data_to_move_bytes)
        assert plan(asked) == made
        assert made.imbalance is None

    @given(requests(most_partitions=20), st.integers(0, 6), st.booleans(), st.booleans())
    def test_rules_hold_whatever_the_goals(self, request_: PlanRequest, k: int, leaders: bool, order: bool) -> None:
        """Within the budget, and no departing broker leads a partition that has another replica."""
        goals = replace(request_.goals, leaders=leaders, follower_order=order, max_replica_moves=k)
        asked = replace(request_, goals=goals)
        made = plan(asked)
        check_budget(asked, made)
        if not leaders:
            assert all(p.current[0] not in p.target for p in made.partitions if p.leader_moves)

    def test_more_moves_are_never_worse(self) -> None:
        """From no moves to the whole plan the imbalance only falls; the ends are the present state and the plan."""
        random = Random(5)
        request = cluster([random.sample(range(9), 3) for _ in range(60)], 12)
        whole = plan(request)
        squares = []
        for k in range(whole.replica_moves):
            made = plan(within(request, k))
            assert made.certificate.optimal
            assert made.imbalance is not None
            squares.append(made.imbalance.squares)
            assert made.replica_moves == k
        assert squares == sorted(squares, reverse=True)
        assert len(set(squares)) == len(squares)
        assert plan(within(request, whole.replica_moves - 1)).after != whole.before

    def test_no_moves_still_evens_leaders(self) -> None:
        """k = 0: no data moves, and every broker leads one partition, where one broker led four."""
        request = cluster([[0, 1], [0, 2], [0, 3], [0, 1]], 4)
        made = plan(within(request, 0))
        assert made.replica_moves == 0
        assert {r[0] for r in result(request, made).values()} == {BrokerId(b) for b in range(4)}
        assert made.imbalance == Imbalance(16 + 4 + 1 + 1, 16 + 4 + 1 + 1)
        assert (made.before, made.after) == (Spread(1, 4), Spread(1, 4))

    def test_forced_moves_come_first(self) -> None:
        """Broker 3 departs with two replicas and broker 0 has too many: two moves drain broker 3."""
        request = cluster([[0], [0], [0], [0], [3], [3]], 4, targets={0, 1, 2})
        made = plan(within(request, 2))
        assert sorted(p.current for p in made.partitions) == [replicas_of(3), replicas_of(3)]
        assert (made.certificate.optimal, made.imbalance) == (True, Imbalance(16 + 1 + 1, 16 + 1 + 1))

    @given(requests(most_partitions=20), st.integers(0, 6), st.randoms(use_true_random=False))
    def test_the_order_of_listing_does_not_matter(self, request_: PlanRequest, k: int, random: st.DataObject) -> None:
        """The same cluster listed in another order gives the same hash."""
        brokers, partitions = list(request_.brokers), list(request_.partitions)
        random.shuffle(brokers)
        random.shuffle(partitions)
        shuffled = replace(request_, brokers=tuple(brokers), partitions=tuple(partitions))
        for moves, data in ((k, None), (None, 5 * k)):
            assert plan(within(shuffled, moves, data)).hash == plan(within(request_, moves, data)).hash

    @given(requests(most_partitions=12), st.integers(0, 6), st.randoms(use_true_random=False))
    def test_no_broker_is_preferred_for_its_id(self, request_: PlanRequest, k: int, random: st.DataObject) -> None:
        """The result of a number of moves does not depend on the ids."""
        ids = sorted({b.id for b in request_.brokers} | {b for p in request_.partitions for b in p.replicas})
        names = list(ids)
        random.shuffle(names)
        name = dict(zip(ids, names, strict=True))
        other = replace(
            request_,
            brokers=tuple(replace(b, id=name[b.id]) for b in request_.brokers),
            partitions=tuple(replace(p, replicas=tuple(name[b] for b in p.replicas)) for p in request_.partitions),
            targets=frozenset(name[b] for b in request_.targets),
        )
        one, two = within(request_, k), within(other, k)
        assert check_budget(one, plan(one)) == check_budget(two, plan(two))

    @pytest.mark.parametrize(
        ("moves", "data"), [(-1, None), (None, -1), (0, 0), (2**70, 0), (3, 2**70), (2**70, 2**70)]
    )
    def test_hostile_budgets(self, moves: int | None, data: int | None) -> None:
        """A negative budget counts as zero; one above all that could move is no limit."""
        request = cluster([[0], [0], [0], [9], [9]], 3, sizes=2**40)
        made = plan(within(request, moves, data))
        bought = max(0, min(3 if moves is None else moves, 4))
        if data is not None and data <= 0:
            assert made.data_to_move_bytes == 0
        else:
            assert made.replica_moves == min(bought, plan(request).replica_moves)


class TestPinned:
    """A pinned topic stays, and its replicas count in the imbalance that a budget reduces."""

    @pytest.mark.parametrize("awareness", RackAwareness)
    @pytest.mark.parametrize("data", [False, True])
    def test_small_clusters_are_exact(self, awareness: RackAwareness, data: bool) -> None:
        """Proved, and equal to the oracle with the same fixed counts."""
        seen = against_the_oracle(Random(31), awareness, data=data, clusters=60, pinned=True)
        assert seen["proved"] == seen["exact"] == seen["asked"]

    @pytest.mark.parametrize(
        ("awareness", "data", "proved", "exact", "even"),
        [
            ("Enforced", False, 0.85, 0.95, 0.95),
            ("Preferred", False, 0.65, 0.9, 0.9),
            ("Disabled", False, 0.9, 0.95, 0.95),
            ("Enforced", True, 0, 0, 0.66),
        ],
    )
    def test_the_outline_of_large_clusters(
        self, awareness: str, data: bool, proved: float, exact: float, even: float
    ) -> None:
        """A claimed proof is exact, and as many plans are proved as without pinned topics."""
        with mock.patch.object(budget_model, "SMALL", 0):
            seen = against_the_oracle(Random(32), RackAwareness(awareness), data=data, clusters=60, pinned=True)
        assert seen["proved"] >= proved * seen["asked"], seen
        assert seen["exact"] >= exact * seen["asked"], seen
        assert seen["even"] >= even * seen["asked"], seen

    def test_moves_go_where_the_pinned_topic_is_not(self) -> None:
        """Broker 1 has three pinned replicas: with one move of four, a replica goes from 0 to 2, which is empty."""
        request = cluster([[0], [0], [0], [0]], 3)
        pinned = tuple(PartitionInput(TopicPartition("__pinned", i), replicas_of(1, 9), pinned=True) for i in range(3))
        made = plan(within(replace(request, partitions=request.partitions + pinned), 1))
        assert [p.target for p in made.partitions] == [replicas_of(2)]
        assert made.imbalance == Imbalance(9 + 9 + 1, 9 + 9 + 1)
        assert (made.before, made.after, made.certificate.optimal) == (Spread(0, 4), Spread(1, 3), True)

    def test_every_budget_of_a_larger_cluster_is_proved(self) -> None:
        """60 partitions with 40 pinned ones on a third of the brokers: imbalance falls with every move."""
        random = Random(6)
        request = cluster([random.sample(range(9), 3) for _ in range(60)], 12)
        pinned = tuple(
            PartitionInput(TopicPartition("__pinned", i), replicas_of(*random.sample(range(4), 2)), pinned=True)
            for i in range(40)
        )
        request = replace(request, partitions=request.partitions + pinned)
        whole = plan(request)
        squares = []
        for k in range(0, whole.replica_moves, 5):
            made = plan(within(request, k))
            check_budget(within(request, k), made)
            assert made.certificate.optimal
            assert made.imbalance is not None
            squares.append(made.imbalance.squares)
        assert squares == sorted(set(squares), reverse=True)


class TestData:
    def test_small_clusters_are_exact(self) -> None:
        """Never above the budget, and as good as the oracle."""
        seen = against_the_oracle(Random(12), RackAwareness.ENFORCED, data=True, clusters=60)
        assert seen["proved"] == seen["exact"] == seen["asked"]

    def test_the_heuristic_of_large_clusters_is_mostly_as_even(self) -> None:
        """Without the exact model: as many forced moves as possible, and two of three plans are as even as possible."""
        with mock.patch.object(budget_model, "SMALL", 0):
            seen = against_the_oracle(Random(14), RackAwareness.ENFORCED, data=True, clusters=60)
        assert seen["even"] >= 0.66 * seen["asked"], seen

    def test_small_partitions_move_rather_than_large_ones(self) -> None:
        """Broker 0 has partitions of 0, 10, ..., 70 bytes and 60 bytes may move: 0, 10, 20 and 30 balance the two."""
        made = plan(within(cluster([[0]] * 8, 2, sizes=10), data=60))
        assert sorted(p.size_bytes for p in made.partitions) == [0, 10, 20, 30]
        assert made.after == Spread(4, 4)

    def test_two_small_moves_rather_than_the_large_one_of_the_whole_plan(self) -> None:
        """Broker 0 has two large partitions and a small one that 2 has, too: it moves to 1, and one of 1's to 2."""
        rows = {"large": ([0], [0]), "both": ([0, 2],), "small": ([1], [1])}
        request = PlanRequest(
            tuple(Broker(BrokerId(b)) for b in range(3)),
            tuple(
                PartitionInput(TopicPartition(topic, at), replicas_of(*row), size_bytes=100 if topic == "large" else 1)
                for topic, lists in rows.items()
                for at, row in enumerate(lists)
            ),
            frozenset(BrokerId(b) for b in range(3)),
        )
        assert plan(request).replica_moves == 1
        made = plan(within(request, data=10))
        assert (made.replica_moves, made.after, made.certificate.optimal) == (2, Spread(2, 2), True)


class TestManyRepairs:
    """A budget between the forced moves and those that also satisfy the rack rule."""

    @pytest.fixture
    def racked(self) -> PlanRequest:
        """Lists that ignore racks, on all but the two new brokers of each rack."""
        random = Random(2)
        brokers = tuple(Broker(BrokerId(b), "abc"[b % 3]) for b in range(18))
        rows = [random.sample(range(12), 3) for _ in range(600)]
        partitions = tuple(PartitionInput(TopicPartition("t", at), replicas_of(*row)) for at, row in enumerate(rows))
        return PlanRequest(brokers, partitions, frozenset(BrokerId(b) for b in range(1, 18)))

    def test_more_moves_are_never_worse(self, racked: PlanRequest) -> None:
        """More repairs, more balance, and within one percent of the proven minimum."""
        bought = [plan(within(racked, moves)) for moves in (160, 200, 300, 400)]
        for made in bought:
            assert made.imbalance is not None
            assert made.imbalance.squares <= 1.01 * made.imbalance.least
        assert [made.replica_moves for made in bought] == [160, 200, 300, 400]
        for less, more in pairwise(bought):
            assert more.rack_violations < less.rack_violations
            assert more.imbalance.squares < less.imbalance.squares
