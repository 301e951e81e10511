"""A rollback is cut short long after it has begun. What is in flight is cancelled before the finalizer is removed."""

from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Transient

R = (REBALANCES, "kafka", "r")
MANY = 20
"""Rounds of a second: less than the time for cancelling."""


@pytest.fixture
async def going_back():
    """Two partitions are being copied back, for an hour already. Their copies do not arrive."""
    kafka = KafkaInMemory(range(1, 7), t=[[1, 2, 3]] * 4)
    operator = OperatorInMemory(kafka)
    spec = {
        "brokers": {"include": [4, 5, 6]},
        "execution": {"parallelPartitionCount": 2},
        "rollback": {"timeout": "5h"},
    }
    operator.apply(throttle={"unlimited": True}, **spec)
    await operator.until_true(lambda: sum(set(held) == {4, 5, 6} for held in kafka.lists("t")) >= 2)
    kafka.slow = set(range(1, 7))
    operator.delete()
    await operator.until_true(lambda: len(_back(kafka)) == 2 and not _forth(kafka))
    for _ in range(MANY):
        await operator.round()
    operator.clock.at += timedelta(hours=1)
    await operator.round()
    assert len(kafka.flying) == 2
    return operator


def _back(kafka):
    return {f"{tp.topic}-{tp.partition}" for tp, state in kafka.states.items() if set(state.adding) & {1, 2, 3}}


def _forth(kafka):
    return [state for state in kafka.states.values() if set(state.adding) & {4, 5, 6}]


async def cancelled(operator):
    """In time, by this operator."""
    kafka, copies = operator.kafka, set(operator.kafka.flying)
    kafka.altered.clear()
    for _ in range(MANY):
        await operator.round()
    assert kafka.altered == [(copy, None) for copy in sorted(copies)]
    assert not kafka.flying
    await operator.until_true(lambda: R not in operator.kube.resources)


async def test_its_namespace_is_deleted_too(going_back):
    """The time for cancelling begins then."""
    going_back.kube.terminating_namespaces.add("kafka")
    await cancelled(going_back)


async def test_the_operator_was_down_at_the_timeout(going_back):
    """It starts long after that."""
    going_back.clock.at += timedelta(hours=10)
    going_back.restart()
    await cancelled(going_back)
    assert "RolledBackPartially" in [reason for reason, _ in going_back.kube.events]


async def test_the_timeout_is_edited(going_back):
    """By the new one it is over since almost an hour."""
    going_back.edit(rollback={"timeout": "5m"})
    await cancelled(going_back)


async def test_kafka_cannot_be_reached_after_the_timeout(going_back):
    """The operator starts then. It does not wait for Kafka."""
    going_back.clock.at += timedelta(hours=10)
    going_back.restart()

    async def away():
        raise Transient("KafkaUnreachable", "no broker answers")

    going_back.kafka.describe_cluster = away
    for _ in range(5):
        await going_back.round()
    assert R not in going_back.kube.resources
