"""The ports to a Kafka cluster: a reader and a writer.

Every method is one request; none retries, waits or keeps state. Every call ends within ``CALL_SECONDS``. It raises
Transient if there was no answer (an order may have been carried out all the same: read the cluster to find out), and
Permanent if credentials or permissions are wrong. Errors of single partitions, topics or brokers are returned, never
raised: one of them must not hide the answers for the others (`Answers`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, Self, TypeVar

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.execution.disk_space import DiskSpace
from kafka_rebalance.model.kafka_version import KafkaVersion
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, ReplicaKey, Replicas, TopicPartition

CALL_SECONDS = 10.0

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")


class Answers(dict[K, V], Generic[K, V, W]):
    """The answers found; ``errors``: by topic or broker (``W``), why there is no answer.

    A key in neither was not found, or did not answer.
    """

    def __init__(self, found: Mapping[K, V] | None = None, errors: Mapping[W, RebalanceError] | None = None) -> None:
        super().__init__(found or {})
        self.errors: Mapping[W, RebalanceError] = errors or {}

    def or_raise(self) -> Self:
        """These answers, if none is an error; raises the first error, for callers that need all."""
        for error in self.errors.values():
            raise error
        return self


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The cluster now. ``brokers`` are the registered, unfenced ones; ``version`` None: not asked for."""

    cluster_id: str
    brokers: Mapping[BrokerId, Broker]
    version: KafkaVersion | None = None


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

    UNKNOWN: read the cluster to find out. The controller answered with an unknown error (beyond its batch limit it
    does, with partial success) or the partition was missing from the response. IN_FLIGHT is our own: the order was not
    sent, since a partition in flight is sent nothing but a cancellation.
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


class LogDirCode(StrEnum):
    """Kafka's answer to one replica of AlterReplicaLogDirs.

    NOT_THERE: the broker does not hold the replica; it keeps the log dir in mind until it restarts, and creates the
    replica there if it is assigned to the broker. UNKNOWN: read the log dirs to find out.
    """

    OK = "Ok"
    NOT_THERE = "NotThere"
    LOG_DIR_NOT_FOUND = "LogDirNotFound"
    LOG_DIR_OFFLINE = "LogDirOffline"
    UNKNOWN_TOPIC_OR_PARTITION = "UnknownTopicOrPartition"
    NOT_AUTHORIZED = "NotAuthorized"
    UNKNOWN = "Unknown"


class ConfigSource(StrEnum):
    """Where a config value comes from; it decides how the value is restored."""

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
    """IncrementalAlterConfigs operations; APPEND and SUBTRACT are for lists and keep the other entries."""

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
    """One log directory: bytes of each replica in it; totals are -1 where the broker does not report them.

    ``future_bytes``: of the copies that come from other log dirs of the broker (KIP-113's future replicas).
    """

    path: str
    replica_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    future_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    total_bytes: int = -1
    usable_bytes: int = -1


def is_silent(problem: str) -> bool:
    """Whether this answer to a change of configs does not say whether it was made: librdkafka's codes begin with _."""
    return problem.startswith(("_", "REQUEST_TIMED_OUT"))


def is_denied(problem: str) -> bool:
    """Whether this answer to a change of configs says that it is not permitted: nothing was changed."""
    return any(code in problem for code in ("AUTHORIZATION_FAILED", "POLICY_VIOLATION"))


def disk_space(dirs: Collection[LogDir]) -> DiskSpace | None:
    """That of all log dirs of a broker; None if one of them does not report what is usable."""
    if not dirs or any(log_dir.usable_bytes < 0 for log_dir in dirs):
        return None
    usable = [log_dir.usable_bytes for log_dir in dirs]
    total = sum(log_dir.total_bytes for log_dir in dirs) if all(log_dir.total_bytes > 0 for log_dir in dirs) else 0
    return DiskSpace(min(usable), sum(usable), total)


@dataclass(frozen=True, slots=True)
class AuthorizedOperations:
    """The permissions of our user (KIP-430), in Kafka's names of operations: "Describe", "AlterConfigs".

    ``cluster`` is empty without Describe on the cluster, even if other operations are permitted. ``topics`` has the
    requested topics; we may not even describe ``hidden_topics``.
    """

    cluster: frozenset[str] = frozenset()
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    hidden_topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """First and next offset of a partition, in records.

    ``leader_epoch`` is that of the leader that answered, None where brokers do not report it. ``read_at`` is the
    monotonic time at which the next offset arrived: other leaders may answer seconds later.
    """

    start: int
    end: int
    leader_epoch: int | None = field(default=None, compare=False)
    read_at: float | None = field(default=None, compare=False)


class KafkaReader(Protocol):
    """Reads from one Kafka cluster. They change nothing and are allowed at any time."""

    async def describe_cluster(self) -> ClusterInfo:
        """Cluster id and live brokers with racks."""

    async def describe_partitions(
        self, topics: Collection[str] | None = None, listed: Mapping[TopicPartition, Reassignment] | None = None
    ) -> Answers[TopicPartition, PartitionState, str]:
        """Partitions of the topics (None: of all topics, internal ones included), reassignments merged in.

        ``listed``: the reassignments, if the caller has listed them just now; they are listed otherwise.
        Topics that the broker does not know are absent, which does not prove that they were deleted. A topic that we
        may not describe is an error if it is named; of "all topics" it is absent.
        """

    async def topic_ids(self, topics: Collection[str] | None = None) -> Answers[str, str, str]:
        """The id of each topic (None: of all topics), if brokers report it; otherwise like ``describe_partitions``.

        Needs no permission on the cluster; listing reassignments needs one.
        """

    async def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        """Everything in flight in the cluster, reassignments of other tools included."""

    async def topic_configs(
        self, topics: Collection[str], names: Collection[str]
    ) -> Answers[str, dict[str, ConfigValue], str]:
        """The named configs of each topic; missing topics are absent."""

    async def broker_configs(
        self, brokers: Collection[BrokerId], names: Collection[str]
    ) -> Answers[BrokerId, dict[str, ConfigValue], BrokerId]:
        """The named configs of each broker; brokers that did not answer are absent."""

    async def log_dirs(self, brokers: Collection[BrokerId]) -> Answers[BrokerId, tuple[LogDir, ...], BrokerId]:
        """Replica sizes on each broker's disks; brokers that did not answer are absent."""

    async def offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        """First and next offsets; partitions whose leader does not exist or did not answer are absent."""

    async def committed_offsets(self, most: int) -> Answers[str, dict[TopicPartition, int], str]:
        """The next offset of each partition that a consumer group has committed, by group.

        ``errors`` are the groups whose offsets are not known. Takes Describe on the cluster, to see all groups, and on
        groups. Raises Transient if a broker does not list its groups, and Permanent (ConsumptionUnknown) if there are
        more than ``most`` offsets: anyone with a user of the cluster may commit them.
        """

    async def authorized_operations(self, topics: Collection[str]) -> AuthorizedOperations:
        """What our user may do on the cluster and on these topics. Everything, where Kafka has no authorizer."""


class KafkaWriter(Protocol):
    """Orders to one Kafka cluster. Only the operator that leads may send them (see `fencing`)."""

    async def alter_reassignments(
        self, orders: Mapping[TopicPartition, Replicas | None]
    ) -> dict[TopicPartition, AlterCode]:
        """Submit new assignments; None cancels. An answer for every partition, UNKNOWN where there was none.

        A new assignment for a partition in flight is not sent; its answer is IN_FLIGHT. Cancel first.
        """

    async def elect_preferred(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, AlterCode]:
        """Elect the first replica as leader where it is in sync."""

    async def alter_log_dirs(self, orders: Mapping[ReplicaKey, str]) -> dict[ReplicaKey, LogDirCode]:
        """Move replicas to these log dirs of their brokers (KIP-113). An answer for each, UNKNOWN where there was none.

        The log dir that a replica is in cancels its move. If a move is in flight, another log dir starts it again.
        """

    async def alter_topic_configs(self, changes: Mapping[str, Collection[ConfigChange]]) -> dict[str, str | None]:
        """Apply incrementally, many topics at once; per topic None or the error."""

    async def alter_broker_configs(
        self, changes: Mapping[BrokerId, Collection[ConfigChange]]
    ) -> dict[BrokerId, str | None]:
        """Apply incrementally, each broker by itself; per broker None or the error."""


class KafkaAdmin(KafkaReader, KafkaWriter, Protocol):
    """A reader and writer with its connections. Its owner closes it; all others take the half that they need."""

    async def close(self) -> None:
        """Close connections and stop threads."""
