"""Nothing is sent to Kafka by an operator that does not lead. Reading goes on: whoever leads again knows where it is.

The check is made as late as it can be, on this process's own clock: one that was stopped in the middle of a round, or
cut off, finds out when it is about to send, not when somebody tells it. Kafka itself knows no fencing, so what remains
is the moment between the check and the socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, TypeVar

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import (
    AlterCode,
    ClusterInfo,
    ConfigChange,
    ConfigValue,
    KafkaAdmin,
    LogDir,
    OffsetRange,
    Reassignment,
)
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

T = TypeVar("T")


class Fence:
    """Lets orders through while ``held`` says that this operator leads, and knows which are still under way."""

    def __init__(self, held: Callable[[], bool]) -> None:
        self._held = held
        self._under_way: set[asyncio.Task[Any]] = set()

    def check(self) -> None:
        """Transient("NotLeading") where nothing may be sent. May be called in any thread."""
        if not self._held():
            raise Transient(
                Reason.NOT_LEADING, "this operator does not hold the lease now: nothing is sent", retry_after=1.0
            )

    async def order(self, send: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Send if we lead. Whoever waits here may be cancelled; what was sent goes on, and `settled` waits for it."""
        self.check()
        task = asyncio.create_task(send())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def settled(self) -> None:
        """Return when no order is under way: each ends within ``kafka.ports.CALL_SECONDS``."""
        if self._under_way:
            await asyncio.wait(self._under_way)


def fenced(admin: KafkaAdmin, fence: Fence) -> KafkaAdmin:
    """The same cluster, of which the orders pass the fence."""
    return _Fenced(admin, fence)


class _Fenced:
    """`KafkaAdmin` over another one."""

    def __init__(self, admin: KafkaAdmin, fence: Fence) -> None:
        self._admin = admin
        self._fence = fence

    async def alter_reassignments(
        self, orders: Mapping[TopicPartition, Replicas | None]
    ) -> dict[TopicPartition, AlterCode]:
        return await self._fence.order(lambda: self._admin.alter_reassignments(orders))

    async def elect_preferred(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, AlterCode]:
        return await self._fence.order(lambda: self._admin.elect_preferred(partitions))

    async def alter_topic_configs(self, changes: Mapping[str, Collection[ConfigChange]]) -> dict[str, str | None]:
        return await self._fence.order(lambda: self._admin.alter_topic_configs(changes))

    async def alter_broker_configs(
        self, changes: Mapping[BrokerId, Collection[ConfigChange]]
    ) -> dict[BrokerId, str | None]:
        return await self._fence.order(lambda: self._admin.alter_broker_configs(changes))

    async def describe_cluster(self) -> ClusterInfo:
        return await self._admin.describe_cluster()

    async def describe_partitions(self, topics: Collection[str] | None = None) -> dict[TopicPartition, PartitionState]:
        return await self._admin.describe_partitions(topics)

    async def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        return await self._admin.list_reassignments()

    async def topic_configs(self, topics: Collection[str], names: Collection[str]) -> dict[str, dict[str, ConfigValue]]:
        return await self._admin.topic_configs(topics, names)

    async def broker_configs(
        self, brokers: Collection[BrokerId], names: Collection[str]
    ) -> dict[BrokerId, dict[str, ConfigValue]]:
        return await self._admin.broker_configs(brokers, names)

    async def log_dirs(self, brokers: Collection[BrokerId]) -> dict[BrokerId, tuple[LogDir, ...]]:
        return await self._admin.log_dirs(brokers)

    async def offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        return await self._admin.offsets(partitions)

    async def close(self) -> None:
        await self._admin.close()
