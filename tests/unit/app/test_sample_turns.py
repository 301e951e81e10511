"""Which namespace gets the next turn."""

import asyncio

import pytest

from kafka_rebalance.app import sample_turns
from kafka_rebalance.app.sample_turns import SampleTurns


async def test_of_namespaces_with_as_many_turns_the_one_whose_last_is_the_longest_ago_is_next() -> None:
    """The connections of two namespaces always wait. A third gets a turn before one of them gets another."""
    turns, given = SampleTurns(2), list[str]()

    async def waits(namespace: str) -> None:
        await turns.take(namespace)
        given.append(namespace)

    async with asyncio.TaskGroup() as waiting:
        for namespace in ("a", "b", "a", "b", "c"):
            waiting.create_task(waits(namespace))
        await asyncio.sleep(0)
        for namespace in ("a", "b", "c"):
            turns.release(namespace)  # it has none then, as another one, whose connection has waited for longer
    assert given == ["a", "b", "c", "a", "b"]


async def test_the_last_turns_of_few_namespaces_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Namespaces come and go."""
    monkeypatch.setattr(sample_turns, "_MOST_REMEMBERED", 2)
    turns = SampleTurns(1)
    for namespace in ("a", "b", "a", "c"):
        await turns.take(namespace)
        turns.release(namespace)
    assert list(turns._given) == ["a", "c"]
