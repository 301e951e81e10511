"""The engine keeps the limits of rates on the way, forward and back."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.connection_resource import Capacity
from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import TopicPartition

RATES = [450, 450, 100, 200]
GOALS = {"load": {"resources": [{"name": "BytesIn"}]}}


@pytest.fixture
def kafka():
    """Broker 1 gets 900 bytes per second, and may have 80 % of 1000. An exchange with broker 2 brings it below."""
    return KafkaInMemory([1, 2], t=[[1], [1], [2], [2]])


@pytest.fixture
def operator(kafka):
    loads = {
        TopicPartition("t", n): PartitionLoad(100, bytes_in_p95=float(rate), covered_seconds=3600)
        for n, rate in enumerate(RATES)
    }
    operator = OperatorInMemory(kafka, LoadModel("LoadModel", NOON, loads))
    operator.capacity = Capacity.model_validate({"default": {"networkIn": "1000"}})
    return operator


def on_broker_1(kafka):
    """Bytes in, with those of copies in flight."""
    return sum(RATES[tp.partition] for tp, state in kafka.states.items() if 1 in state.replicas)


async def test_what_would_exceed_the_limit_waits(kafka, operator):
    """Until the copy from broker 1 has arrived, nothing goes there. The status names the broker and the resource."""
    kafka.slow = {2}
    operator.apply(goals=GOALS)
    await operator.until_true(lambda: kafka.flying)
    for _ in range(5):
        await operator.round()
        assert on_broker_1(kafka) == 900
    assert "CapacityLimitReached (1, e.g. t-" in operator.message
    assert "broker 1 would be above the capacityLimit of BytesIn" in operator.message
    kafka.arrive()
    kafka.slow = set()
    await operator.until("Succeeded")
    assert on_broker_1(kafka) in {550, 650}
    assert "CapacityLimitReached" not in operator.message


async def test_after_a_restart(kafka, operator):
    """What the order has to respect is stored with the plan."""
    kafka.slow = {2}
    operator.apply(goals=GOALS)
    await operator.until_true(lambda: kafka.flying)
    operator.restart()
    for _ in range(5):
        await operator.round()
        assert on_broker_1(kafka) == 900


async def test_back(kafka, operator):
    """What came last leaves first: broker 1 never has more than it started with."""
    operator.apply(goals=GOALS)
    await operator.until("Succeeded")
    kafka.slow = {1, 2}
    operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
    for _ in range(20):
        await operator.round()
        assert on_broker_1(kafka) <= 900
        kafka.arrive()
    assert kafka.lists("t") == [[1], [1], [2], [2]]
