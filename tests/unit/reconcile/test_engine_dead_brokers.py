"""Brokers die in the middle of a run: reassignments in flight continue, nothing new is started."""

from dataclasses import replace
from datetime import timedelta

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory


def die(kafka, *brokers):
    """They leave the cluster and every ISR."""
    for broker in brokers:
        del kafka.brokers[broker]
    for tp, state in kafka.states.items():
        kafka.states[tp] = replace(state, isr=state.isr - set(brokers))


async def test_what_the_plan_has_not_touched_closes_the_gate():
    """A plan over all partitions is no reason to look away: most of them are below min.insync.replicas now."""
    kafka = KafkaInMemory(range(1, 8), t=[[1, 2, 3]] * 12)
    kafka.values |= {("t", "min.insync.replicas"): "2"}
    operator = OperatorInMemory(kafka)
    operator.apply(
        throttle={"unlimited": True}, brokers={"include": [4, 5, 6]}, execution={"parallelPartitionCount": 2}
    )
    kafka.slow = {4, 5, 6}
    await operator.until_true(lambda: len(kafka.flying) == 2)
    die(kafka, 2, 3)
    operator.clock.at += timedelta(seconds=120)
    await operator.until("ClusterUnhealthy")
    begun = len(kafka.altered)
    for _ in range(10):
        kafka.arrive()
        kafka.slow = {4, 5, 6}
        await operator.round()
    assert operator.state == "ClusterUnhealthy"
    assert "BelowMinIsr" in operator.message
    assert {tp for tp, _ in kafka.altered[begun:]} <= {tp for tp, _ in kafka.altered[:begun]}


async def test_a_deletion_ends_where_all_replicas_are_lost():
    """All are on brokers that the run had added. It waits as long as a broker may restart, and names the partition."""
    kafka = KafkaInMemory(range(1, 5), t=[[1], [2]])
    operator = OperatorInMemory(kafka)
    execution = {"maxUnhealthy": 100, "parallelPartitionCount": 1}
    operator.apply(throttle={"unlimited": True}, brokers={"include": [4]}, execution=execution)
    kafka.slow = {4}
    await operator.until_true(lambda: bool(kafka.flying))
    kafka.arrive()
    await operator.until_true(lambda: [4] in kafka.lists("t"))
    del kafka.brokers[4]
    for tp, state in kafka.states.items():
        if state.replicas == (4,):
            kafka.states[tp] = replace(state, leader=None)
    operator.delete()
    for _ in range(30):
        await operator.round()
    assert "NoLeader" in operator.message
    await operator.until_true(lambda: not operator.kube.resources)
    reason, message, *_ = operator.kube.events[-1]
    assert reason == "RolledBackPartially"
    assert "(OriginalBrokerGone" in message
    assert "brokers [4] are gone" in message
