"""The client of one Kafka cluster, made anew once brokers no longer accept what its Secrets said when it was made.

What works stays in memory: Secrets go with their namespace, and what is under way outlives them. Only after a call for
which nobody answered, or was let in, are they read again; a client of theirs replaces ours if it reaches the cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TypeVar

from kafka_rebalance.errors import RebalanceError
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
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reconcile.lifecycle import WITHOUT_KAFKA

log = logging.getLogger(__name__)

T = TypeVar("T")
Connect = Callable[[ConnectionSettings], KafkaAdmin]
SettingsNow = Callable[[], Awaitable[Iterable[ConnectionSettings]]]
"""What the Secrets of everybody who names the cluster say now."""


def renewed(
    admin: KafkaAdmin, settings: ConnectionSettings, cluster_id: str, connect: Connect, now: SettingsNow
) -> KafkaAdmin:
    """The same cluster. ``describe_cluster``, the first call of a round, has the client made anew where that helps."""
    return _Renewed(admin, settings, cluster_id, connect, now)


class _Renewed:
    """`KafkaAdmin` over whichever client works."""

    def __init__(
        self, admin: KafkaAdmin, settings: ConnectionSettings, cluster_id: str, connect: Connect, now: SettingsNow
    ) -> None:
        self._admin = admin
        self._settings = settings
        self._cluster_id = cluster_id
        self._connect = connect
        self._settings_now = now
        self._doubted = False

    async def describe_cluster(self) -> ClusterInfo:
        if self._doubted:
            self._doubted = False
            await self._renew()
        return await self._ask(lambda admin: admin.describe_cluster())

    async def describe_partitions(self, topics: Collection[str] | None = None) -> dict[TopicPartition, PartitionState]:
        return await self._ask(lambda admin: admin.describe_partitions(topics))

    async def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        return await self._ask(lambda admin: admin.list_reassignments())

    async def alter_reassignments(
        self, orders: Mapping[TopicPartition, Replicas | None]
    ) -> dict[TopicPartition, AlterCode]:
        return await self._ask(lambda admin: admin.alter_reassignments(orders))

    async def elect_preferred(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, AlterCode]:
        return await self._ask(lambda admin: admin.elect_preferred(partitions))

    async def topic_configs(self, topics: Collection[str], names: Collection[str]) -> dict[str, dict[str, ConfigValue]]:
        return await self._ask(lambda admin: admin.topic_configs(topics, names))

    async def broker_configs(
        self, brokers: Collection[BrokerId], names: Collection[str]
    ) -> dict[BrokerId, dict[str, ConfigValue]]:
        return await self._ask(lambda admin: admin.broker_configs(brokers, names))

    async def alter_topic_configs(self, changes: Mapping[str, Collection[ConfigChange]]) -> dict[str, str | None]:
        return await self._ask(lambda admin: admin.alter_topic_configs(changes))

    async def alter_broker_configs(
        self, changes: Mapping[BrokerId, Collection[ConfigChange]]
    ) -> dict[BrokerId, str | None]:
        return await self._ask(lambda admin: admin.alter_broker_configs(changes))

    async def log_dirs(self, brokers: Collection[BrokerId]) -> dict[BrokerId, tuple[LogDir, ...]]:
        return await self._ask(lambda admin: admin.log_dirs(brokers))

    async def offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        return await self._ask(lambda admin: admin.offsets(partitions))

    async def close(self) -> None:
        await self._admin.close()

    async def _ask(self, call: Callable[[KafkaAdmin], Awaitable[T]]) -> T:
        """An order that failed is not sent again here: whether it was carried out is for the next round to see."""
        try:
            return await call(self._admin)
        except RebalanceError as error:
            self._doubted = self._doubted or error.reason in WITHOUT_KAFKA
            raise

    async def _renew(self) -> None:
        for settings in await self._settings_now():
            admin = await self._reached_by(settings) if settings != self._settings else None
            if admin is not None:
                before, self._admin, self._settings = self._admin, admin, settings
                log.info("cluster %s: connected anew, by what its Secrets say now", self._cluster_id)
                await before.close()
                return

    async def _reached_by(self, settings: ConnectionSettings) -> KafkaAdmin | None:
        """A client that reaches this very cluster with these settings; None: there is none."""
        try:
            admin = self._connect(settings)
        except RebalanceError as error:
            log.warning("cluster %s: %s: %s", self._cluster_id, error.reason, error.message)
            return None
        try:
            if (await admin.describe_cluster()).cluster_id == self._cluster_id:
                return admin
        except RebalanceError as error:
            log.warning("cluster %s: %s: %s", self._cluster_id, error.reason, error.message)
        await admin.close()
        return None
