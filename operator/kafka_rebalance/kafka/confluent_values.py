"""Values and codes of confluent-kafka as ours, and ours as those of confluent-kafka. No requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartitionInfo
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ListOffsetsResultInfo,
    ResourceType,
)
from confluent_kafka.admin import ConfigSource as ClientSource

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kafka.ports import (
    AlterCode,
    Answers,
    ConfigChange,
    ConfigOp,
    ConfigSource,
    ConfigValue,
    OffsetRange,
)
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition

K = TypeVar("K")
V = TypeVar("V")

NO_TOPIC = {KafkaError.UNKNOWN_TOPIC_OR_PART}
NO_ANSWER = {
    KafkaError._TIMED_OUT,  # noqa: SLF001 - librdkafka's own codes are spelled so
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
}
AUTHENTICATION = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}  # noqa: SLF001
AUTHORIZATION = {
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}
ELECTION_CODES = {
    KafkaError.NO_ERROR: AlterCode.OK,
    KafkaError.ELECTION_NOT_NEEDED: AlterCode.ELECTION_NOT_NEEDED,
    KafkaError.PREFERRED_LEADER_NOT_AVAILABLE: AlterCode.PREFERRED_LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART: AlterCode.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: AlterCode.NOT_AUTHORIZED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: AlterCode.NOT_AUTHORIZED,
}
_SOURCES = {
    ClientSource.DYNAMIC_TOPIC_CONFIG.value: ConfigSource.DYNAMIC_TOPIC,
    ClientSource.DYNAMIC_BROKER_CONFIG.value: ConfigSource.DYNAMIC_BROKER,
    ClientSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value: ConfigSource.DYNAMIC_DEFAULT_BROKER,
    ClientSource.STATIC_BROKER_CONFIG.value: ConfigSource.STATIC_BROKER,
    ClientSource.DEFAULT_CONFIG.value: ConfigSource.DEFAULT,
}
_OPERATIONS = {
    ConfigOp.SET: AlterConfigOpType.SET,
    ConfigOp.DELETE: AlterConfigOpType.DELETE,
    ConfigOp.APPEND: AlterConfigOpType.APPEND,
    ConfigOp.SUBTRACT: AlterConfigOpType.SUBTRACT,
}


def canonical_id(topic_id: str) -> str:
    """Kafka writes topic ids in URL-safe base64, librdkafka in standard base64."""
    return topic_id.rstrip("=").replace("+", "-").replace("/", "_")


def operation_name(operation: AclOperation) -> str:
    """As in Kafka's documentation: "AlterConfigs"."""
    return "".join(word.title() for word in operation.name.split("_"))


def leader_of(info: TopicPartitionInfo) -> BrokerId | None:
    """The leader of a partition in metadata."""
    # Typed as a Node, but None where there is no leader.
    leader: int = getattr(info.leader, "id", -1)
    return BrokerId(leader) if leader >= 0 else None


def partition_states(
    answers: Mapping[str, Any], before: Mapping[TopicPartition, PartitionState] = MappingProxyType({})
) -> Answers[TopicPartition, PartitionState, str]:
    """The partitions of the topics that were described, without reassignments; an answer may be an error instead.

    A partition that equals its state in ``before`` is the same object, so that two readings need little more memory
    than one.
    """
    states = Answers[TopicPartition, PartitionState, str]()
    share = dict[Any, Any]().setdefault  # equal lists are one object, which halves the memory of a large cluster
    with without_collector():
        for name, answer in answers.items():
            if isinstance(answer, KafkaError):
                continue
            topic_id = canonical_id(str(answer.topic_id))
            for info in answer.partitions:
                tp, leader = TopicPartition(name, info.id), leader_of(info)
                replicas = tuple([BrokerId(node.id) for node in info.replicas])
                isr = frozenset([BrokerId(node.id) for node in info.isr])
                state = PartitionState(tp, topic_id, share(replicas, replicas), share(isr, isr), leader)
                if (old := before.get(tp)) is not None and old == state:
                    state = old
                states[state.tp] = state
    return states


def by_leader(topics: Mapping[str, Any], partitions: Iterable[TopicPartition]) -> list[list[ClientPartition]]:
    """The partitions that have a leader, grouped by leader. ``topics`` comes from the metadata."""
    groups: defaultdict[int, list[ClientPartition]] = defaultdict(list)
    for tp in sorted(set(partitions)):
        described = topics[tp.topic].partitions.get(tp.partition) if tp.topic in topics else None
        if described is not None and described.leader >= 0:
            groups[described.leader].append(ClientPartition(tp.topic, tp.partition))
    return list(groups.values())


def offset_ranges(
    starts: Mapping[TopicPartition, ListOffsetsResultInfo],
    ends: Mapping[TopicPartition, ListOffsetsResultInfo],
    read: Mapping[TopicPartition, float],
) -> dict[TopicPartition, OffsetRange]:
    """The partitions whose two offsets are known. ``read``: when the end was."""
    return {
        tp: OffsetRange(start.offset, ends[tp].offset, _leader_epoch(ends[tp]), read.get(tp))
        for tp, start in starts.items()
        if tp in ends
    }


def _leader_epoch(answer: ListOffsetsResultInfo) -> int | None:
    """The epoch of the leader that answered; -1 stands for none."""
    epoch = answer.leader_epoch
    return epoch if epoch is not None and epoch >= 0 else None


def config_values(entries: Mapping[str, ConfigEntry], names: Collection[str]) -> dict[str, ConfigValue]:
    """Brokers do not list dynamic configs that are not set; their value is None."""
    return {
        name: _value(entries[name]) if name in entries else ConfigValue(None, ConfigSource.DEFAULT) for name in names
    }


def _value(entry: ConfigEntry) -> ConfigValue:
    # Typed as the enum, but a plain integer when it comes from a broker.
    source: Any = entry.source
    return ConfigValue(entry.value, _SOURCES.get(getattr(source, "value", source), ConfigSource.DEFAULT))


def changed_resource(kind: ResourceType, name: str, changes: Collection[ConfigChange]) -> ConfigResource:
    """The resource with its incremental changes."""
    entries = [
        ConfigEntry(change.name, change.value, incremental_operation=_OPERATIONS[change.op]) for change in changes
    ]
    return ConfigResource(kind, name, incremental_configs=entries)


def separated(
    answers: Mapping[K, V | KafkaError], left_out: Collection[int], failure: Callable[[K, KafkaError], RebalanceError]
) -> tuple[dict[K, V], dict[K, RebalanceError]]:
    """The answers, and the failures of the others, without those of the codes to leave out.

    Not for the event loop: secrets are masked in each error, of which there may be one for each topic.
    """
    found: dict[K, V] = {}
    failures: dict[K, RebalanceError] = {}
    for key, answer in answers.items():
        if not isinstance(answer, KafkaError):
            found[key] = answer
        elif answer.code() not in left_out:
            failures[key] = failure(key, answer)
    return found, failures


def outcome(future: Future[Any]) -> Any:
    """The answer, or the error of Kafka; a future that is not done has timed out."""
    if not future.done():
        return KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001
    # Not raised here: the error would refer to the frames of the call, and so to the AdminClient.
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, KafkaException):
        return error.args[0]
    raise error


def merged(calls: Iterable[Mapping[ConfigResource, Future[Any]]]) -> dict[ConfigResource, Future[Any]]:
    """The futures of several calls together."""
    return {resource: future for futures in calls for resource, future in futures.items()}


def checked(check: Callable[[], None], ask: Callable[[AdminClient], V]) -> Callable[[AdminClient], V]:
    """A call that is checked right before, in its thread."""

    def send(admin: AdminClient) -> V:
        check()
        return ask(admin)

    return send


def within(seconds: float) -> dict[str, float]:
    """The time-out of a call."""
    return {"request_timeout": seconds}
