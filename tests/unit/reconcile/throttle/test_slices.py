"""What is done off the event loop, and when."""

import asyncio
from types import SimpleNamespace

import pytest
from tests.fakes.throttled_cluster import claim

from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, Claim, Rates
from kafka_rebalance.reconcile.throttle.slices import MANY, Slices, are_many, many_move


@pytest.mark.parametrize(
    ("flying", "ordered", "foreign", "many"),
    [(0, 0, MANY, False), (0, 0, MANY + 1, True), (MANY, 1, 0, True), (1, MANY, 0, True), (100, 100, 100, False)],
)
def test_all_partitions_that_move_count(flying, ordered, foreign, many):
    """A tenant may ask for any number of partitions at once, and its servers may show all of them in flight."""
    assessment = SimpleNamespace(judgement=SimpleNamespace(since=dict.fromkeys(range(flying))))
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
