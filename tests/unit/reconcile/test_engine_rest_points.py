"""A run that may start no new step goes to a rest point: no partition stays above its replication factor."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.unit.reconcile.renamed_resources import FAST, Renamed

from kafka_rebalance.model.topology import TopicPartition, replicas_of


@pytest.mark.parametrize("r", [1, 2, 3])
async def test_another_one_with_a_higher_priority_goes_first(r):
    """With R = 2 the next step would copy before it drops (overlapping seed 478)."""
    kafka = KafkaInMemory(range(1, 7), t=[[1, 2, 3]] * 4)
    kafka.slow = {4}
    operator = Renamed(kafka)
    execution = {"parallelReplicaCount": r, "parallelPartitionCount": 1}
    operator.apply(throttle=FAST, brokers={"include": [4, 5, 6]}, execution=execution)
    await operator.until_true(lambda: bool(kafka.flying))
    operator.apply_another(throttle=FAST, brokers={"include": [1, 2, 4]}, priority=5)
    await operator.until("Yielding")
    kafka.slow = set()
    kafka.arrive()
    await operator.until_true(lambda: operator.state_of() == "Succeeded")
    await operator.until("Succeeded")
    assert [sorted(held) for held in kafka.lists("t")] == [[4, 5, 6]] * 4


@pytest.mark.parametrize("suspended", [False, True])
async def test_replicas_that_others_add_hold_up_no_other_rebalance(suspended):
    """The run is at rest: these are not its own."""
    kafka = KafkaInMemory(range(1, 7), t=[[1, 2, 3]] * 4)
    kafka.slow = {4}
    operator = Renamed(kafka)
    execution = {"parallelPartitionCount": 1}
    operator.apply(throttle=FAST, brokers={"include": [4, 5, 6]}, execution=execution)
    await operator.until_true(lambda: bool(kafka.flying))
    if suspended:
        operator.edit(execution={**execution, "suspend": True})
        await operator.until("Suspended")
    await kafka.alter_reassignments({TopicPartition("t", 3): replicas_of(3, 1, 2, 5)})
    operator.apply_another(throttle=FAST, brokers={"include": [1, 2, 5, 6]}, priority=5)
    for _ in range(5):
        await operator.round()
    kafka.slow = set()
    kafka.arrive()
    await operator.until_true(lambda: operator.state_of() == "Succeeded")


async def test_replicas_that_others_add_stay_where_the_run_has_sent_nothing():
    """Also if they are brokers of its plan. It would drop them with the credentials of the cluster's owner."""
    kafka = KafkaInMemory(range(1, 7), t=[[1, 2, 3]] * 4)
    kafka.slow = {4}
    operator = Renamed(kafka)
    execution = {"parallelReplicaCount": 1, "parallelPartitionCount": 1}
    operator.apply(throttle=FAST, brokers={"include": [4, 5, 6]}, execution=execution, approval={"driftBudget": 100})
    await operator.until_true(lambda: bool(kafka.flying))
    operator.edit(execution={**execution, "suspend": True})
    await operator.until("Suspended")
    assert kafka.flying == {"t-0"}
    theirs = TopicPartition("t", 3)
    await kafka.alter_reassignments({theirs: replicas_of(3, 1, 2, 5)})
    kafka.slow = set()
    kafka.arrive()
    for _ in range(30):
        await operator.round()
    assert kafka.lists("t") == [[4, 2, 3], [1, 2, 3], [1, 2, 3], [3, 1, 2, 5]]
