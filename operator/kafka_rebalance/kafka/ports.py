"""What the rest of the product may ask of a Kafka cluster.

Every method is one question or one order; none retries, waits or remembers. Every call ends within ``CALL_SECONDS``:
Transient is raised where the reply may simply be lost (a time-out says nothing about whether the order was carried
out: read the cluster to find out), Permanent where credentials or rights are wrong. Answers per partition or topic
are returned, never raised: one bad partition must not hide the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, Replicas, TopicPartition

CALL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """Who is there now. ``brokers`` holds the registered, unfenced ones."""

    cluster_id: str
    brokers: Mapping[BrokerId, Broker]


@dataclass(frozen=True, slots=True)
class Reassignment:
    """One row of ListPartitionReassignments (KIP-455)."""

    replicas: Replicas
    adding: Replicas
    removing: Replicas

    @property
    def wedged(self) -> bool:
        """As `PartitionState.wedged`."""
        return bool(set(self.adding) & set(self.removing))


class AlterCode(StrEnum):
    """Kafka's answer to one partition of AlterPartitionReassignments or ElectLeaders.

    UNKNOWN stands for "look before you conclude": the controller's answer was an unknown error (its batch limit gives
    that, with partial success) or the partition was missing from the response. IN_FLIGHT is ours: a partition in
    flight is sent nothing but a cancellation, so this order was not sent.
    """

    OK = "OK"
    NO_REASSIGNMENT_IN_PROGRESS = "NoReassignmentInProgress"
    INVALID_REPLICA_ASSIGNMENT = "InvalidReplicaAssignment"
    UNKNOWN_TOPIC_OR_PARTITION = "UnknownTopicOrPartition"
    ELECTION_NOT_NEEDED = "ElectionNotNeeded"
    PREFERRED_LEADER_NOT_AVAILABLE = "PreferredLeaderNotAvailable"
    NOT_AUTHORIZED = "NotAuthorized"
    IN_FLIGHT = "InFlight"
    UNKNOWN = "Unknown"


class ConfigSource(StrEnum):
    """Where a config value comes from; decides how it is restored."""

    DYNAMIC_TOPIC = "DynamicTopic"
    DYNAMIC_BROKER = "DynamicBroker"
    DYNAMIC_DEFAULT_BROKER = "DynamicDefaultBroker"
    STATIC_BROKER = "StaticBroker"
    DEFAULT = "Default"


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A config as described. ``value`` None: not set anywhere."""

    value: str | None
    source: ConfigSource


class ConfigOp(StrEnum):
    """IncrementalAlterConfigs operations; APPEND and SUBTRACT are for lists and keep other entries."""

    SET = "Set"
    DELETE = "Delete"
    APPEND = "Append"
    SUBTRACT = "Subtract"


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One operation on one config of one resource."""

    name: str
    op: ConfigOp
    value: str = ""


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory: bytes of each replica in it; totals where the broker tells them (-1 where not)."""

    path: str
    replica_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    future_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    total_bytes: int = -1
    usable_bytes: int = -1


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """First and next offset of a partition, in records."""

    start: int
    end: int


class KafkaReader(Protocol):
    """Questions to one Kafka cluster. They change nothing and are allowed at any time."""

    async def describe_cluster(self) -> ClusterInfo:
        """Cluster id and live brokers with racks."""

    async def describe_partitions(self, topics: Collection[str] | None = None) -> dict[TopicPartition, PartitionState]:
        """Partitions of the topics (None: of all topics, internal ones included), reassignments merged in.

        Topics that one broker does not know are absent: one such answer is no proof of deletion.
        """

    async def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        """Everything in flight in the cluster, whoever started it."""

    async def topic_configs(self, topics: Collection[str], names: Collection[str]) -> dict[str, dict[str, ConfigValue]]:
        """The named configs of each topic; missing topics are absent."""

    async def broker_configs(
        self, brokers: Collection[BrokerId], names: Collection[str]
    ) -> dict[BrokerId, dict[str, ConfigValue]]:
        """The named configs of each broker; brokers that did not answer are absent."""

    async def log_dirs(self, brokers: Collection[BrokerId]) -> dict[BrokerId, tuple[LogDir, ...]]:
        """Replica sizes on each broker's disks; brokers that did not answer are absent."""

    async def offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        """First and next offsets; partitions without a leader are absent."""


class KafkaWriter(Protocol):
    """Orders to one Kafka cluster. Only the operator that leads may send them (see `fencing`)."""

    async def alter_reassignments(
        self, orders: Mapping[TopicPartition, Replicas | None]
    ) -> dict[TopicPartition, AlterCode]:
        """Submit new assignments; None cancels. An answer for every partition, UNKNOWN where there was none.

        A new assignment for a partition that is in flight is not sent, and answered IN_FLIGHT: cancel first.
        """

    async def elect_preferred(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, AlterCode]:
        """Make the first replica the leader, where it is in sync."""

    async def alter_topic_configs(self, changes: Mapping[str, Collection[ConfigChange]]) -> dict[str, str | None]:
        """Apply incrementally, many topics at once; per topic None or what went wrong."""

    async def alter_broker_configs(
        self, changes: Mapping[BrokerId, Collection[ConfigChange]]
    ) -> dict[BrokerId, str | None]:
        """Apply incrementally, each broker by itself; per broker None or what went wrong."""


class KafkaAdmin(KafkaReader, KafkaWriter, Protocol):
    """Both, with the connections behind them. Its owner closes it; everybody else takes the half that it needs."""

    async def close(self) -> None:
        """Let go of connections and threads."""
