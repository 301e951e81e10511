"""What partitions weigh for goals by load, and when too little is known to plan by it."""

import pytest

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import LoadGoal, LoadResource, LoadStatistic
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.planning.problem.goal_loads import with_loads
from kafka_rebalance.planning.problem.request import PartitionInput

DISK = LoadGoal(LoadResource.DISK)
HOUR = 3600.0
RATES = PartitionLoad(
    *(9, 1.0, 3.0, 5.0, HOUR, "t-id", {}, 2.0, 4.0),
    bytes_out_per_second=10.0,
    bytes_out_p50=20.0,
    bytes_out_p95=30.0,
    bytes_out_p99=40.0,
    bytes_out_max=50.0,
    bytes_out_covered_seconds=HOUR,
)


def inputs(number=1, topic="t", **more):
    return [
        PartitionInput(TopicPartition(topic, n), replicas_of(1, 2), f"{topic}-id", 700 + n, **more)
        for n in range(number)
    ]


def model(loads):
    return LoadModel("LoadModel", None, {TopicPartition(*tp): load for tp, load in loads.items()}, "c")


def weights(partitions, goals, loads=None):
    return [p.loads for p in with_loads(partitions, goals, model(loads) if loads is not None else None)]


class TestWeights:
    def test_without_goals_there_are_none(self):
        """The partitions are as they were."""
        partitions = tuple(inputs(2))
        assert with_loads(partitions, (), None) == partitions

    def test_disk_needs_no_model(self):
        """It is the size of a new copy, read live."""
        assert weights(inputs(2), (DISK,)) == [(700.0,), (701.0,)]

    @pytest.mark.parametrize(
        ("resource", "values"),
        [
            (LoadResource.BYTES_IN, [1.0, 2.0, 3.0, 4.0, 5.0]),
            (LoadResource.LEADER_BYTES_IN, [1.0, 2.0, 3.0, 4.0, 5.0]),
            (LoadResource.BYTES_OUT, [10.0, 20.0, 30.0, 40.0, 50.0]),
        ],
    )
    def test_rates_are_those_of_the_partition(self, resource, values):
        """By the statistic of the goal; what replication adds is up to the planner."""
        goals = tuple(LoadGoal(resource, statistic=statistic) for statistic in LoadStatistic)
        assert weights(inputs(), goals, {("t", 0): RATES}) == [tuple(values)]

    def test_are_in_the_order_of_the_goals(self):
        """The first goal has priority."""
        goals = (LoadGoal(LoadResource.BYTES_OUT), DISK, LoadGoal(LoadResource.BYTES_IN))
        assert weights(inputs(), goals, {("t", 0): RATES}) == [(30.0, 700.0, 3.0)]

    def test_a_few_unknown_rates_are_estimated(self):
        """As the mean of the topic: it is what a new partition of a topic takes. 0 if nothing is known of the topic."""
        loads = {("t", n): RATES._replace(bytes_in_p95=float(n)) for n in range(39)}
        found = weights([*inputs(40), *inputs(topic="new")], (LoadGoal(LoadResource.BYTES_IN),), loads)
        assert found[38:] == [(38.0,), (19.0,), (0.0,)]


class TestTooLittleIsKnown:
    def test_no_model(self):
        """The message says what to run, and what works without a model."""
        with pytest.raises(Refused, match=r"BytesIn, BytesOut needs a load model.* or use Disk alone") as refused:
            weights(inputs(), (LoadGoal(LoadResource.BYTES_IN), DISK, LoadGoal(LoadResource.BYTES_OUT)))
        assert refused.value.reason == "RatesUnknown"

    @pytest.mark.parametrize(
        "missing",
        [
            None,
            PartitionLoad(9, topic_id="t-id"),
            RATES._replace(topic_id="old"),
            RATES._replace(covered_seconds=899.0),
        ],
        ids=["absent", "no-rate", "of-an-earlier-topic", "too-thin"],
    )
    def test_the_rates_of_too_many_partitions_are_unknown(self, missing):
        """Five percent may be; the refusal has the share, the coverage and the limit."""
        goals = (LoadGoal(LoadResource.BYTES_IN),)
        loads = {("t", n): RATES for n in range(19)} | ({("t", 19): missing} if missing else {})
        assert weights(inputs(20), goals, loads)[19] == (3.0,)
        if missing:
            loads[("t", 18)] = missing
        else:
            del loads["t", 18]
        with pytest.raises(
            Refused, match=r"BytesIn: 2 of 20 partitions \(10 %\), for example t-18.*15m.*1h.*at most 5 %"
        ):
            weights(inputs(20), goals, loads)

    def test_a_goal_may_ask_for_less(self):
        """Each of two goals has its own minimum."""
        thin = {("t", 0): RATES._replace(covered_seconds=20.0)}
        short = LoadGoal(LoadResource.BYTES_IN, minimum_coverage_seconds=20)
        assert weights(inputs(), (short,), thin) == [(3.0,)]
        with pytest.raises(
            Refused, match=r"LeaderBytesIn: .*less than 21s \(median of all: 20s\).*lower minimumCoverage"
        ):
            weights(inputs(), (short, LoadGoal(LoadResource.LEADER_BYTES_IN, minimum_coverage_seconds=21)), thin)

    def test_bytes_out_have_a_coverage_of_their_own(self):
        """They come from another source than bytes in, and may be known for another time, or not at all."""
        loads = {("t", 0): RATES._replace(bytes_out_covered_seconds=899.0)}
        assert weights(inputs(), (LoadGoal(LoadResource.BYTES_IN),), loads) == [(3.0,)]
        with pytest.raises(Refused, match=r"BytesOut: 1 of 1 .*median of all: 14m.*Describe on groups"):
            weights(inputs(), (LoadGoal(LoadResource.BYTES_OUT),), loads)

    def test_what_is_not_planned_does_not_count(self):
        """A partition without a leader is skipped."""
        partitions = [*inputs(), *inputs(topic="dead", has_leader=False)]
        assert weights(partitions, (LoadGoal(LoadResource.BYTES_IN),), {("t", 0): RATES}) == [(3.0,), (0.0,)]
