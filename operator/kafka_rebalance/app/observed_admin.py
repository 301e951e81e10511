"""A Kafka client that counts its calls and audits its changes. Arguments, answers and errors pass unchanged."""

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.kafka import ports
from kafka_rebalance.kafka.ports import AlterCode, KafkaAdmin, LogDirCode
from kafka_rebalance.model.topology import BrokerId, PartitionState, ReplicaKey, Replicas, TopicPartition
from kafka_rebalance.telemetry.audit_log import audited
from kafka_rebalance.telemetry.kafka_call_metrics import KafkaCallMetrics

K = TypeVar("K")
V = TypeVar("V", AlterCode, LogDirCode, str | None)
T = TypeVar("T")
_MANY = 200
"""The number of changes from which their audit lines are written in a thread: some 10 ms."""
_MOST_NOT_MADE = 100
"""Changes of one call that have a line each although they were refused, or although it is not known whether they were
made: a server may answer 100,000 in this way in each round."""
_MADE = {AlterCode.OK, LogDirCode.OK}
_REFUSALS = {*AlterCode, *LogDirCode} - {*_MADE, AlterCode.UNKNOWN, LogDirCode.UNKNOWN}
_OK = "Ok"
_FAILED = "Failed"


def observed(admin: KafkaAdmin, metrics: KafkaCallMetrics) -> KafkaAdmin:
    """The same client, whose calls are counted and audited."""
    return _ObservedAdmin(admin, metrics)


class _ObservedAdmin:
    """The id of the cluster is the answer to the first ``describe_cluster``."""

    def __init__(self, admin: KafkaAdmin, metrics: KafkaCallMetrics) -> None:
        self._admin = admin
        self._metrics = metrics
        self._cluster_id = ""

    async def describe_cluster(self) -> ports.ClusterInfo:
        info = await self._called("describe_cluster", self._admin.describe_cluster())
        if not self._cluster_id:
            self._cluster_id = info.cluster_id
            self._metrics.connected(self._cluster_id)
        return info

    async def describe_partitions(
        self, topics: Collection[str] | None = None, listed: Mapping[TopicPartition, ports.Reassignment] | None = None
    ) -> ports.Answers[TopicPartition, PartitionState, str]:
        return await self._called("describe_partitions", self._admin.describe_partitions(topics, listed))

    async def topic_ids(self, topics: Collection[str] | None = None) -> ports.Answers[str, str, str]:
        return await self._called("topic_ids", self._admin.topic_ids(topics))

    async def list_reassignments(self) -> dict[TopicPartition, ports.Reassignment]:
        return await self._called("list_reassignments", self._admin.list_reassignments())

    async def topic_configs(
        self, topics: Collection[str], names: Collection[str]
    ) -> ports.Answers[str, dict[str, ports.ConfigValue], str]:
        return await self._called("topic_configs", self._admin.topic_configs(topics, names))

    async def broker_configs(
        self, brokers: Collection[BrokerId], names: Collection[str]
    ) -> ports.Answers[BrokerId, dict[str, ports.ConfigValue], BrokerId]:
        return await self._called("broker_configs", self._admin.broker_configs(brokers, names))

    async def log_dirs(
        self, brokers: Collection[BrokerId]
    ) -> ports.Answers[BrokerId, tuple[ports.LogDir, ...], BrokerId]:
        return await self._called("log_dirs", self._admin.log_dirs(brokers))

    async def offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, ports.OffsetRange]:
        return await self._called("offsets", self._admin.offsets(partitions))

    async def committed_offsets(self, most: int) -> ports.Answers[str, dict[TopicPartition, int], str]:
        return await self._called("committed_offsets", self._admin.committed_offsets(most))

    async def authorized_operations(self, topics: Collection[str]) -> ports.AuthorizedOperations:
        return await self._called("authorized_operations", self._admin.authorized_operations(topics))

    async def alter_reassignments(
        self, orders: Mapping[TopicPartition, Replicas | None]
    ) -> dict[TopicPartition, AlterCode]:
        about = {tp: {**_partition(tp), "step": "cancel" if to is None else list(to)} for tp, to in orders.items()}
        return await self._changed("alter_reassignments", about, self._admin.alter_reassignments(orders))

    async def elect_preferred(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, AlterCode]:
        about = {tp: _partition(tp) for tp in partitions}
        return await self._changed("elect_preferred", about, self._admin.elect_preferred(partitions))

    async def alter_log_dirs(self, orders: Mapping[ReplicaKey, str]) -> dict[ReplicaKey, LogDirCode]:
        about = {(tp, b): {**_partition(tp), "broker": b, "log_dir": to} for (tp, b), to in orders.items()}
        return await self._changed("alter_log_dirs", about, self._admin.alter_log_dirs(orders))

    async def alter_topic_configs(self, changes: Mapping[str, Collection[ports.ConfigChange]]) -> dict[str, str | None]:
        about = {topic: {"topic": topic, "configs": _configs(of)} for topic, of in changes.items()}
        return await self._changed("alter_topic_configs", about, self._admin.alter_topic_configs(changes))

    async def alter_broker_configs(
        self, changes: Mapping[BrokerId, Collection[ports.ConfigChange]]
    ) -> dict[BrokerId, str | None]:
        about = {broker: {"broker": broker, "configs": _configs(of)} for broker, of in changes.items()}
        return await self._changed("alter_broker_configs", about, self._admin.alter_broker_configs(changes))

    async def close(self) -> None:
        try:
            await self._admin.close()
        finally:
            cluster_id, self._cluster_id = self._cluster_id, ""
            if cluster_id:
                self._metrics.closed(cluster_id)

    async def _changed(
        self, call: str, about: Mapping[K, Mapping[str, object]], answer: Coroutine[Any, Any, dict[K, V]]
    ) -> dict[K, V]:
        """``about``: the fields of each change in the audit log. Without an answer Kafka may have made the change."""
        answers: Mapping[K, V] = {}
        lost = "cancelled"
        try:
            answers = found = await self._called(call, answer)
            self._metrics.answered(self._cluster_id, call, map(_kind, found.values()))
            lost = "no answer"
        except RebalanceError as error:
            lost = error.reason
            raise
        finally:
            write = partial(_audit, call, self._cluster_id, about, answers, lost)
            await asyncio.to_thread(write) if len(about) > _MANY else write()
        return found

    async def _called(self, call: str, answer: Coroutine[Any, Any, T]) -> T:
        began, outcome = time.monotonic(), "cancelled"
        try:
            found = await answer
            outcome = "ok"
        except RebalanceError as error:
            outcome = "no_answer" if isinstance(error, Transient) else "refused"
            raise
        finally:
            self._metrics.ended(self._cluster_id, call, outcome, time.monotonic() - began)
        return found


def _audit(
    call: str, cluster_id: str, about: Mapping[K, Mapping[str, object]], answers: Mapping[K, V], lost: str
) -> None:
    others = Counter[str]()
    for key, fields in about.items():
        said = _text(answers[key]) if key in answers else lost
        if (group := _group(answers[key]) if key in answers else lost) != _OK:
            others[group] += 1
        if others[group] <= _MOST_NOT_MADE:
            audited(call, _named(key), said, {"cluster": cluster_id, **fields})
    for group, number in others.items():
        if number > _MOST_NOT_MADE:
            audited(call, f"{number - _MOST_NOT_MADE} more", group, {"cluster": cluster_id})


def _group(answer: object) -> str:
    """Ok if the change was made, Refused if it was not made for sure. The answers to changes of configs are texts."""
    if type(answer) is str:
        return "Unknown" if ports.is_silent(answer) else "Refused"
    if answer is None or answer in _MADE:
        return _OK
    return "Refused" if answer in _REFUSALS else "Unknown"


def _partition(tp: TopicPartition) -> dict[str, object]:
    return {"topic": tp.topic, "partition": tp.partition}


def _configs(changes: Iterable[ports.ConfigChange]) -> str:
    return "; ".join(f"{change.op} {change.name} {change.value}".strip() for change in changes)


def _named(key: object) -> str:
    if isinstance(key, tuple) and not isinstance(key, TopicPartition):
        return f"{key[0]} on broker {key[1]}"
    return f"broker {key}" if isinstance(key, int) else str(key)


def _kind(answer: str | None) -> str:
    """For the metrics: the answers to changes of configs are texts."""
    if answer is None:
        return _OK
    return answer.value if isinstance(answer, AlterCode | LogDirCode) else _FAILED


def _text(answer: str | None) -> str:
    return _OK if answer is None else str(answer)
