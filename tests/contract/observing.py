"""Polls the cluster until it shows a state: there are two sources, no snapshot, and reads may be stale."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kafka_rebalance.kafka.ports import CALL_SECONDS, KafkaAdmin
from kafka_rebalance.model.topology import PartitionState, TopicPartition

T = TypeVar("T")

LATEST_SECONDS = 12 * CALL_SECONDS
"""When a call of our client must have ended: within ``CALL_SECONDS``, and with it a machine that is busy."""


async def until(what: str, ask: Callable[[], Awaitable[T]], holds: Callable[[T], bool], seconds: float = 240) -> T:
    time = asyncio.get_running_loop().time
    deadline = time() + seconds
    while not holds(seen := await ask()):
        assert time() < deadline, f"{what}: still {seen}"
        await asyncio.sleep(0.05)
    return seen


async def partition(
    admin: KafkaAdmin, tp: TopicPartition, what: str, holds: Callable[[PartitionState], bool]
) -> PartitionState:
    async def ask() -> PartitionState | None:
        return (await admin.describe_partitions([tp.topic])).get(tp)

    seen = await until(f"{tp} {what}", ask, lambda state: state is not None and holds(state))
    assert seen is not None
    return seen
