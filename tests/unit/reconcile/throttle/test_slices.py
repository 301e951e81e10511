"""What is done off the event loop, and when."""

import asyncio
from types import SimpleNamespace

import pytest
from tests.fakes.throttled_cluster import claim

from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, Claim, Rates
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reconcile.state.assessment import Assessment
from kafka_rebalance.reconcile.state.judgement import Judgement, Statuses
from kafka_rebalance.reconcile.throttle.slices import MANY, Slices, are_many, many_move


@pytest.mark.parametrize(
    ("begun", "sent", "ordered", "foreign", "many"),
    [
        (0, 0, 0, MANY, False),
        (0, 0, 0, MANY + 1, True),
        (MANY, 0, 1, 0, True),
        (1, 0, MANY, 0, True),
        (1, MANY, 0, 0, True),
        (100, 0, 100, 100, False),
    ],
)
@pytest.mark.parametrize(
    "status", [PartitionStatus(MovePhase.IN_FLIGHT), PartitionStatus(MovePhase.READY, started=True, cancel=True)]
)
def test_all_partitions_that_move_count(status, begun, sent, ordered, foreign, many):
    """A tenant may ask for any number of partitions at once, and its servers may show all of them in flight.

    A deletion cancels them.
    """
    statuses = Statuses.of({TopicPartition("t", number): status for number in range(begun)})
    assessment = Assessment(judgement=Judgement(statuses=statuses), sent=frozenset(range(sent)))
    rebalance = SimpleNamespace(assessment=assessment, desired=SimpleNamespace(uid="u"))
    assert many_move([rebalance], {"u": range(ordered)}, range(foreign)) is many


def test_all_entries_count():
    """However few topics they are in."""
    entries = {"t": {FOLLOWER_LIST: frozenset(f"{number}:1" for number in range(MANY + 1))}}
    assert are_many({"a": Claim(Rates(1, 1), frozenset(), entries)})
    assert not are_many(claim())


@pytest.mark.parametrize("weight", [1, 50])
async def test_a_long_loop_lets_others_go_on(weight):
    """Other tasks run while it is in progress."""
    steps = []

    async def other():
        while len(steps) < 1000:
            steps.append("other")
            await asyncio.sleep(0)

    slices, task = Slices(), asyncio.create_task(other())
    for _ in range(1000):
        await slices.next(weight)
        steps.append("mine")
    assert "other" in steps[: 200 // weight]
    await task
