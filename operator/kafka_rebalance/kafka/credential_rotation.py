"""The client of one Kafka cluster, made anew once brokers no longer accept what its Secrets said when it was made.

What works stays in memory: Secrets go with their namespace, and what is under way outlives them. They are read again
only after a call that nobody answered or that was not let in. While nobody answers, others who name the cluster may
have other rights: only what its own Secrets say now is tried, where that has changed. Whoever is not let in tries the
others' too. A client replaces ours if it reaches the cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeVar

from kafka_rebalance.api.conditions import NO_CONNECTION_REASONS
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
from kafka_rebalance.reasons import Reason

log = logging.getLogger(__name__)

T = TypeVar("T")
Connect = Callable[[ConnectionSettings], KafkaAdmin]
Source = tuple[str, str]
"""Who names the cluster, and in which words: whose Secrets they are."""
SettingsNow = Callable[[], Awaitable[Mapping[Source, ConnectionSettings]]]
"""What the Secrets of everybody who names the cluster say now; without those whose Secrets are gone."""


def renewed(
    admin: KafkaAdmin, used: tuple[Source, ConnectionSettings], cluster_id: str, connect: Connect, now: SettingsNow
) -> KafkaAdmin:
    """The same cluster. ``describe_cluster``, the first call of a round, has the client made anew where that helps."""
    return _Renewed(admin, used, cluster_id, connect, now)


class _Renewed:
    """`KafkaAdmin` over whichever client works."""

    def __init__(
        self,
        admin: KafkaAdmin,
        used: tuple[Source, ConnectionSettings],
        cluster_id: str,
        connect: Connect,
        now: SettingsNow,
    ) -> None:
        self._admin = admin
        self._used = used
        self._cluster_id = cluster_id
        self._connect = connect
        self._settings_now = now
        self._failures: set[str] = set()

    async def describe_cluster(self) -> ClusterInfo:
        failures, self._failures = self._failures & NO_CONNECTION_REASONS, set()
        if failures:
            await self._renew(let_in=Reason.KAFKA_AUTHENTICATION_FAILED not in failures)
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
            self._failures.add(error.reason)
            raise

    async def _renew(self, *, let_in: bool) -> None:
        for used in self._to_try(await self._settings_now(), let_in=let_in):
            admin = await self._reached_by(used[1])
            if admin is not None:
                before, self._admin, self._used = self._admin, admin, used
                log.info("cluster %s: connected anew, by what Secrets say now", self._cluster_id)
                await before.close()
                return

    def _to_try(
        self, now: Mapping[Source, ConnectionSettings], *, let_in: bool
    ) -> list[tuple[Source, ConnectionSettings]]:
        mine, settings = self._used
        first = [(mine, now[mine])] if mine in now and (now[mine] != settings or not let_in) else []
        return first if let_in else first + [row for row in now.items() if row[0] != mine]

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
