"""Planning by load, with examples small enough to check by hand."""

from dataclasses import replace
from typing import Any

import pytest

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import Balance, LoadGoal, LoadResource, Strategy
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.load_outcome import OutsideReason
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, plan
from kafka_rebalance.planning.problem.goal_loads import with_loads
from kafka_rebalance.reasons import Reason

DISK = (LoadGoal(LoadResource.DISK, band=10),)


def cluster(
    sizes: list[tuple[int, int]],
    goals: tuple[LoadGoal, ...] = DISK,
    capacity: int = 0,
    strategy: Strategy = Strategy.MINIMAL_MOVEMENT,
) -> PlanRequest:
    """Partition i is on the first number's broker and has the second number's bytes."""
    brokers = sorted({b for b, _ in sizes})
    return PlanRequest(
        tuple(Broker(BrokerId(b)) for b in brokers),
        tuple(PartitionInput(TopicPartition("t", i), replicas_of(b), size_bytes=s) for i, (b, s) in enumerate(sizes)),
        frozenset(map(BrokerId, brokers)),
        Goals(load=goals),
        strategy,
        capacities={BrokerId(b): {LoadResource.DISK: capacity} for b in brokers} if capacity else {},
    )


def freely(request: PlanRequest, **goals: Any) -> PlanRequest:
    """The same request with counts free."""
    return replace(request, goals=replace(request.goals, counts=False, **goals))


def test_a_large_partition_is_exchanged_for_a_small_one() -> None:
    """Counts are even, 300 bytes against 100: 110 for 10 makes both 200. The bound is what has to leave: 80."""
    made = plan(cluster([(0, 110), (0, 190), (1, 10), (1, 90)]))
    assert made.load is not None
    assert sorted(p.size_bytes for p in made.partitions) == [10, 110]
    (disk,) = made.load.resources
    assert (disk.before, disk.after, disk.outside_before, disk.outside_after) == ((300, 100), (200, 200), 1, 0)
    assert (made.load.data, made.load.data_lower_bound) == (120, 80)


def test_hot_partitions_are_given_away_although_small_ones_relieve_more_per_byte() -> None:
    """Twelve hot partitions are on broker 1. Exchanging cold ones for one another relieves it of next to nothing."""
    hot, cold = ((1, 2), (1, 3)) * 6, ((2, 1), (2, 3), (3, 1), (3, 2)) * 6
    rates = [60_000 + 40 * n for n in range(len(hot))] + [6_000 + 10 * n for n in range(len(cold))]
    partitions = [
        PartitionInput(TopicPartition("t", n), replicas_of(*replicas), size_bytes=40 * rate, loads=(rate, rate))
        for n, (replicas, rate) in enumerate(zip((*hot, *cold), rates, strict=True))
    ]
    goals = (LoadGoal(LoadResource.LEADER_BYTES_IN, band=15), LoadGoal(LoadResource.BYTES_IN, band=15))
    brokers = tuple(Broker(BrokerId(b), f"r{b}") for b in (1, 2, 3))
    made = plan(PlanRequest(brokers, tuple(partitions), frozenset(b.id for b in brokers), Goals(load=goals)))
    assert made.load is not None
    assert [(row.outside_before, row.outside_after) for row in made.load.resources] == [(1, 0), (1, 0)]


class TestBytesOut:
    """A leader sends to consumers and to each follower: rate out + (replicas - 1) x rate in. Worked out by hand."""

    rates = (((1, 2, 3), 10.0, 5.0), ((2, 3), 30.0, 0.0), ((3,), 100.0, 25.0))  # replicas, in, out

    def request(self, *resources: LoadResource) -> PlanRequest:
        rows = {
            PartitionInput(TopicPartition("t", n), replicas_of(*lists)): PartitionLoad(
                1, bytes_in_p95=in_, covered_seconds=3600, bytes_out_p95=out, bytes_out_covered_seconds=3600
            )
            for n, (lists, in_, out) in enumerate(self.rates)
        }
        goals = tuple(LoadGoal(resource, band=15) for resource in resources)
        model = LoadModel("LoadModel", None, {p.tp: load for p, load in rows.items()})
        brokers = tuple(Broker(BrokerId(b)) for b in (1, 2, 3))
        inputs = with_loads(rows, goals, model)
        return PlanRequest(brokers, inputs, frozenset(b.id for b in brokers), Goals(load=goals))

    @pytest.mark.parametrize(
        "resources",
        [
            (LoadResource.BYTES_OUT,),
            (LoadResource.BYTES_OUT, LoadResource.DISK),
            (LoadResource.BYTES_OUT, LoadResource.BYTES_IN),
            (LoadResource.LEADER_BYTES_IN, LoadResource.BYTES_OUT),
        ],
    )
    def test_followers_count_whatever_the_other_goals_are(self, resources: tuple[LoadResource, ...]) -> None:
        """5 + 2 x 10, 0 + 30 and 25 without a follower."""
        made = plan(self.request(*resources))
        assert made.load is not None
        (out,) = [row for row in made.load.resources if row.resource is LoadResource.BYTES_OUT]
        assert out.before == (25, 30, 25)

    def test_alone_nothing_moves_where_what_leaders_send_is_even(self) -> None:
        """30 is within 15 % of a third of 80. By consumers alone, broker 3 would send nearly everything."""
        made = plan(freely(self.request(LoadResource.BYTES_OUT)))
        assert made.load is not None
        assert (made.load.resources[0].outside_before, made.replica_moves, made.leader_moves) == (0, 0, 0)

    def test_what_followers_fetch_has_to_be_known(self) -> None:
        """Otherwise a plan would balance consumers alone, and call that bytes out."""
        self.rates = (*self.rates[:2], ((3,), None, 25.0))
        with pytest.raises(Refused, match=r"BytesOut \(what followers fetch, by bytes in\): 1 of 3 partitions"):
            self.request(LoadResource.BYTES_OUT)


def test_nothing_moves_within_the_band() -> None:
    made = plan(cluster([(0, 105), (1, 100)]))
    assert (made.replica_moves, made.certificate.optimal) == (0, True)


def test_a_partition_that_is_too_large_is_named() -> None:
    made = plan(cluster([(0, 900), (1, 100)]))
    assert made.load is not None
    assert [(row.broker, row.reason) for row in made.load.outside] == [(0, OutsideReason.PARTITION_TOO_LARGE)]
    assert (made.replica_moves, made.certificate.optimal) == (0, False)


class TestWhyOutside:
    """What alone stands in the way is named. Broker 0 has 300 of 500 bytes, and 50 of them could move."""

    request = cluster([(0, 250), (0, 50), (1, 100), (1, 100)])

    def reasons(self, request: PlanRequest) -> set[OutsideReason]:
        made = plan(request)
        assert made.load is not None
        return {row.reason for row in made.load.outside if row.broker == 0}

    def test_even_counts(self) -> None:
        assert self.reasons(self.request) == {OutsideReason.EVEN_COUNTS}

    def test_the_budget(self) -> None:
        assert self.reasons(freely(self.request, max_data_to_move=49)) == {OutsideReason.MOVEMENT_BUDGET}

    def test_the_rack_rule(self) -> None:
        """Broker 1 has a copy of a partition whose other copy is in rack a, too: none of 0's may come to it."""
        brokers = tuple(Broker(BrokerId(b), rack) for b, rack in enumerate("aab"))
        lists = [(0, 2), (0, 2), (1, 2), (1, 2)]
        sizes = [50, 250, 100, 100]
        partitions = tuple(
            PartitionInput(TopicPartition("t", i), replicas_of(*row), size_bytes=size)
            for i, (row, size) in enumerate(zip(lists, sizes, strict=True))
        )
        request = PlanRequest(brokers, partitions, frozenset(b.id for b in brokers), Goals(load=DISK))
        made = plan(freely(request))
        assert made.load is not None
        assert {row.broker: row.reason for row in made.load.outside} == {2: OutsideReason.RACK_RULE}

    def test_the_limit_of_another_broker(self) -> None:
        """The other broker may use 200 of its 250 bytes, and does."""
        capacities = {BrokerId(0): {LoadResource.DISK: 250}, BrokerId(1): {LoadResource.DISK: 250}}
        request = replace(freely(self.request), capacities=capacities)
        assert self.reasons(request) == {OutsideReason.CAPACITY_LIMIT}


def test_a_capacity_limit_that_cannot_be_kept_is_refused() -> None:
    """Brokers 0 and 1 take over 900 bytes each from a broker that leaves: only 800 of 1000 are allowed."""
    request = cluster([(0, 10), (1, 10), (2, 900), (2, 900)], (LoadGoal(LoadResource.DISK, band=300),), capacity=1000)
    with pytest.raises(Refused) as refused:
        plan(replace(request, targets=frozenset(map(BrokerId, (0, 1)))))
    assert refused.value.reason == Reason.CAPACITY_LIMIT_EXCEEDED


def test_nothing_moves_within_limit_and_band() -> None:
    """795 of 1000 bytes are below the limit of 80 %."""
    request = cluster([(0, 790), (0, 5), (1, 300), (1, 10)], (LoadGoal(LoadResource.DISK, band=300),), capacity=1000)
    assert plan(request).replica_moves == 0


class TestFreeCounts:
    def test_uneven_counts_stay_where_the_load_is_even(self) -> None:
        """200 bytes in four partitions on one broker, in one on the other: with even counts, copies would move."""
        request = cluster([(0, 50), (0, 50), (0, 50), (0, 50), (1, 200)])
        assert plan(request).replica_moves > 0
        made = plan(freely(request))
        assert (made.replica_moves, made.certificate.optimal) == (0, True)

    def test_a_replica_moves_alone(self) -> None:
        """300 bytes against 200, both in two partitions: with even counts 50 for nothing cannot be exchanged."""
        made = plan(freely(cluster([(0, 250), (0, 50), (1, 100), (1, 100)])))
        assert made.load is not None
        assert [(p.tp.partition, p.target) for p in made.partitions] == [(1, (1,))]
        assert (made.load.within_bands, made.load.data, made.load.data_lower_bound) == (True, 50, 25)

    def test_forced_moves_are_made(self) -> None:
        """A broker that leaves is emptied, and its partitions go where the load allows it."""
        request = cluster([(0, 300), (1, 100), (2, 150), (2, 50)])
        made = plan(freely(replace(request, targets=frozenset(map(BrokerId, (0, 1))))))
        assert [(p.tp.partition, p.target) for p in made.partitions] == [(2, (1,)), (3, (1,))]
        assert made.certificate.optimal

    def test_a_budget_pays_for_forced_moves_first(self) -> None:
        """One move allowed, two forced: the smaller copy leaves, and nothing else moves."""
        request = cluster([(0, 300), (0, 250), (1, 100), (2, 150), (2, 50)])
        request = replace(request, targets=frozenset(map(BrokerId, (0, 1))))
        made = plan(freely(request, max_replica_moves=1))
        assert [(p.tp.partition, p.target) for p in made.partitions] == [(4, (1,))]
        assert made.imbalance is not None

    @pytest.mark.parametrize(
        "goals", [{"load": ()}, {"minimum_gain": 1}, {"balance": Balance.PER_TOPIC}, {"balance": Balance.BOTH}]
    )
    def test_goals_about_counts_are_refused(self, goals: dict[str, Any]) -> None:
        with pytest.raises(Refused) as refused:
            plan(freely(cluster([(0, 1), (1, 1)]), **goals))
        assert refused.value.reason == Reason.GOALS_NOT_COMBINED
        assert "goals.counts: false" in str(refused.value)


def test_another_strategy_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        plan(cluster([(0, 1), (1, 1)], strategy=Strategy.GENERATE))
    assert refused.value.reason == Reason.GOALS_NOT_COMBINED
