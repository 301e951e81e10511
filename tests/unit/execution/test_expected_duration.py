from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kafka_rebalance.execution.expected_duration import rate_to_end_within, shape_of_plan
from kafka_rebalance.execution.reassignment_throttle import ClusterRates, Rates
from kafka_rebalance.model.duration_model import DurationModel
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run_shape import Flow
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

GIB = 2**30
MODEL = DurationModel("c1", 40, datetime(2026, 3, 4, tzinfo=UTC), 0.8, 100e6, 2.0, 0.0, 0.9, 1.0, 1.25)


def plan_of(*rows: tuple[tuple[int, ...], tuple[int, ...]]) -> Plan:
    """Of partitions of 1 GiB, from and to these replicas."""
    partitions = tuple(
        PlannedPartition(TopicPartition("t", i), replicas_of(*before), replicas_of(*after), size_bytes=GIB)
        for i, (before, after) in enumerate(rows)
    )
    return Plan(partitions, Certificate(0, optimal=False))


class TestShape:
    def test_each_side_of_each_broker_carries_its_bytes(self) -> None:
        """A leader sends every copy; R replicas are one step; brokers may have rates of their own."""
        rates = ClusterRates(Rates(10, 20), {BrokerId(5): Rates(10, 7)})
        shape = shape_of_plan(plan_of(((1, 2), (3, 4)), ((1, 2), (5, 2))), rates, 1, 2)
        assert sorted(shape.pipes) == sorted([Flow(3 * GIB, 10), Flow(GIB, 20), Flow(GIB, 20), Flow(GIB, 7)])
        assert (shape.steps, shape.parallel) == (3, 2)
        assert shape_of_plan(plan_of(((1, 2), (3, 4))), rates, 2, 100).steps == 1

    def test_alone_each_step_is_as_slow_as_its_slowest_side(self) -> None:
        """Two copies of one leader in a step share its rate."""
        rates = ClusterRates(Rates(10, 8))
        one_by_one = shape_of_plan(plan_of(((1, 2), (3, 4))), rates, 1, 1)
        together = shape_of_plan(plan_of(((1, 2), (3, 4))), rates, 2, 1)
        assert one_by_one.alone == (Flow(2 * GIB, 8),)
        assert together.alone == (Flow(2 * GIB, 10),)


class TestRateToEndWithin:
    def test_is_the_lowest_that_is_enough(self) -> None:
        """By the upper end of the interval; one percent less is too late."""
        made = plan_of(((1,), (2,)), ((1,), (2,)))
        rate = rate_to_end_within(3600, made, MODEL, 1, 10)
        assert rate is not None

        def longest(rate: int) -> float:
            interval = MODEL.interval(shape_of_plan(made, ClusterRates(Rates(rate, rate)), 1, 10))
            assert interval is not None
            return interval[1]

        assert longest(rate) <= 3600 < longest(int(rate * 0.98))

    @pytest.mark.parametrize("seconds", [1, 20])
    def test_more_than_the_network_carries_is_none(self, seconds: int) -> None:
        """Two GiB take longer with any throttle."""
        assert rate_to_end_within(seconds, plan_of(((1,), (2,)), ((1,), (2,))), MODEL, 1, 10) is None
