"""`KafkaAdmin` over the two client libraries.

Three rules hold for every caller. A partition in flight is sent nothing but a cancellation: redirecting it leaves stale
removals behind, or leaves it stuck permanently (`docs/kafka-behaviour.md`). Every order passes the fence. And an order
is sent only to brokers that belong to the cluster that was described (``answering_cluster``). kafka-python's orders are
checked over the connection that they use, those of librdkafka beside it, because it does not show its connections.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeVar

from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.kafka.client_access import ClientAccess
from kafka_rebalance.kafka.confluent import ConfluentClient
from kafka_rebalance.kafka.consumer_groups import committed_offsets
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.oauth_tokens import TokenSource
from kafka_rebalance.kafka.ports import (
    AlterCode,
    Answers,
    AuthorizedOperations,
    ClusterInfo,
    ConfigChange,
    ConfigValue,
    KafkaAdmin,
    LogDir,
    LogDirCode,
    OffsetRange,
    Reassignment,
)
from kafka_rebalance.kafka.reassignment import ReassignmentClient
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import BrokerId, PartitionState, ReplicaKey, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

T = TypeVar("T")


def connect(settings: ConnectionSettings, fence: Fence | None = None, cluster_id: str = "") -> KafkaAdmin:
    """A client of the cluster; without ``fence`` it may always send orders, as a command does, which has no lease.

    Connects on first use, which raises Permanent for settings that cannot work. ``cluster_id``: of the client that this
    one replaces. Without it, the id that is described first counts.
    """
    fence = fence or Fence(is_leader=lambda: True)
    tokens = TokenSource(settings.oauth) if settings.oauth else None
    access = ClientAccess(settings, tokens, fence.check, cluster_id)
    return _Admin(ConfluentClient(access), ReassignmentClient(access), fence)


class _Admin:
    """`KafkaAdmin`: reads always pass, orders pass the fence."""

    def __init__(self, confluent: ConfluentClient, reassignments: ReassignmentClient, fence: Fence) -> None:
        self._confluent = confluent
        self._reassignments = reassignments
        self._fence = fence
        self._reached = False

    async def describe_cluster(self) -> ClusterInfo:
        await self._reach()
        try:
            return await self._reassignments.describe_cluster()
        except Transient:
            self._reached = False  # next time librdkafka: it distinguishes wrong credentials from an outage
            raise

    async def describe_partitions(
        self, topics: Collection[str] | None = None, listed: Mapping[TopicPartition, Reassignment] | None = None
    ) -> Answers[TopicPartition, PartitionState, str]:
        # Two sources, no snapshot: of a partition in flight the controller's listing is right, while the broker that
        # answers with metadata may be some hundred milliseconds behind.
        listed = await self.list_reassignments() if listed is None else listed
        states = await self._confluent.describe_partitions(topics)
        for tp in listed.keys() & states.keys():
            row = listed[tp]
            states[tp] = dataclasses.replace(
                states[tp], replicas=row.replicas, adding=row.adding, removing=row.removing
            )
        return states

    async def topic_ids(self, topics: Collection[str] | None = None) -> Answers[str, str, str]:
        return await self._confluent.topic_ids(topics)

    async def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        await self._reach()
        return await self._reassignments.list_reassignments()

    async def alter_reassignments(
        self, orders: Mapping[TopicPartition, Replicas | None]
    ) -> dict[TopicPartition, AlterCode]:
        return await self._fence.order(lambda: self._alter_reassignments(orders))

    async def elect_preferred(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, AlterCode]:
        return await self._fence.order(lambda: self._checked(lambda: self._confluent.elect_preferred(partitions)))

    async def alter_log_dirs(self, orders: Mapping[ReplicaKey, str]) -> dict[ReplicaKey, LogDirCode]:
        return await self._fence.order(lambda: self._reassignments.alter_log_dirs(orders))

    async def topic_configs(
        self, topics: Collection[str], names: Collection[str]
    ) -> Answers[str, dict[str, ConfigValue], str]:
        return await self._confluent.topic_configs(topics, names)

    async def broker_configs(
        self, brokers: Collection[BrokerId], names: Collection[str]
    ) -> Answers[BrokerId, dict[str, ConfigValue], BrokerId]:
        return await self._confluent.broker_configs(brokers, names)

    async def alter_topic_configs(self, changes: Mapping[str, Collection[ConfigChange]]) -> dict[str, str | None]:
        return await self._fence.order(lambda: self._checked(lambda: self._confluent.alter_topic_configs(changes)))

    async def alter_broker_configs(
        self, changes: Mapping[BrokerId, Collection[ConfigChange]]
    ) -> dict[BrokerId, str | None]:
        return await self._fence.order(
            lambda: self._checked(lambda: self._confluent.alter_broker_configs(changes), changes)
        )

    async def log_dirs(self, brokers: Collection[BrokerId]) -> Answers[BrokerId, tuple[LogDir, ...], BrokerId]:
        await self._reach()
        return await self._reassignments.log_dirs(brokers)

    async def offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        return await self._confluent.offsets(partitions)

    async def committed_offsets(self, most: int) -> Answers[str, dict[TopicPartition, int], str]:
        await self._reach()
        listed = await self._reassignments.consumer_groups()
        sharing = {
            group: Permanent(Reason.CONSUMPTION_UNKNOWN, f"{group} is a share group: it commits no offsets")
            for group, shares in listed.items()
            if shares
        }
        found = await committed_offsets(self._confluent, listed.keys() - sharing, most)
        return Answers(found, {**found.errors, **sharing})

    async def authorized_operations(self, topics: Collection[str]) -> AuthorizedOperations:
        await self._reach()
        of_cluster = await self._reassignments.authorized_operations()
        of_topics = await self._confluent.authorized_operations(topics)
        hidden = {topic for topic, error in of_topics.errors.items() if isinstance(error, Permanent)}
        return AuthorizedOperations(of_cluster, of_topics, frozenset(hidden))

    async def close(self) -> None:
        await self._reassignments.close()
        await self._confluent.close()

    async def _alter_reassignments(
        self, orders: Mapping[TopicPartition, Replicas | None]
    ) -> dict[TopicPartition, AlterCode]:
        if not orders:
            return {}
        await self._reach()
        refused: dict[TopicPartition, AlterCode] = {}
        if any(replicas is not None for replicas in orders.values()):
            in_flight = await self._reassignments.list_reassignments()
            refused = {tp: AlterCode.IN_FLIGHT for tp, to in orders.items() if to is not None and tp in in_flight}
        sent = {tp: replicas for tp, replicas in orders.items() if tp not in refused}
        return refused | await self._reassignments.alter(sent)

    async def _checked(self, send: Callable[[], Awaitable[T]], concerned: Collection[BrokerId] = ()) -> T:
        """An order of librdkafka, unless a broker belongs to another cluster."""
        await self._reassignments.check_brokers(concerned)
        return await send()

    async def _reach(self) -> None:
        """Connect with librdkafka first: it reports at once why that fails, kafka-python only that it timed out."""
        if not self._reached:
            await self._confluent.reach()
            self._reached = True
