"""A call leaves as many replicas in sync as the topic requires at that moment."""

from dataclasses import replace

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.model.topology import BrokerId, TopicPartition

TP = TopicPartition("t", 0)


def nulls(kafka):
    return [tp for tp, to in kafka.altered if to is None]


async def test_min_insync_replicas_that_was_raised_just_before():
    """It is read once a minute, but again before a null drops a replica in sync."""
    kafka = KafkaInMemory(range(1, 6), t=[[1, 2]])
    operator = OperatorInMemory(kafka)
    kafka.values["t", "min.insync.replicas"] = "1"
    kafka.slow = set(range(1, 6))
    operator.apply(strategy="ForcedMovesOnly", brokers={"decommission": [2]}, throttle={"unlimited": True})
    await operator.until_true(lambda: kafka.flying)
    for _ in range(5):
        await operator.round()
    kafka.states[TP] = replace(kafka.states[TP], isr=frozenset({BrokerId(1), *kafka.states[TP].adding}))
    kafka.values["t", "min.insync.replicas"] = "2"
    operator.delete()
    for _ in range(10):
        await operator.round()
    assert not nulls(kafka)
    assert "CancelBelowMinInsyncReplicas" in operator.message
    kafka.states[TP] = replace(kafka.states[TP], isr=frozenset(kafka.states[TP].replicas))
    await operator.until_true(lambda: nulls(kafka))


async def test_a_list_that_leaves_out_replicas_in_sync():
    """It waits, too, if min.insync.replicas was raised just before."""
    kafka = KafkaInMemory(range(1, 4), t=[[1, 2, 3]])
    kafka.values["t", "min.insync.replicas"] = "2"
    operator = OperatorInMemory(kafka)
    operator.apply(strategy="ForcedMovesOnly", replicationFactor=2, suspend=True)
    await operator.until("Suspended")
    kafka.values["t", "min.insync.replicas"] = "3"
    operator.edit(suspend=False)
    for _ in range(10):
        await operator.round()
    assert not kafka.altered
    kafka.values["t", "min.insync.replicas"] = "2"
    await operator.until_true(lambda: kafka.altered)
