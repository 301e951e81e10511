"""The offline cluster file (design section 10) as values. Parses bytes; opening files is the command line's business.

    {"brokers": [{"id": 0, "rack": "a"}, {"id": 1, "rack": null}],
     "partitions": [{"topic": "t", "partition": 0, "replicas": [0, 1], "size": 1048576}]}

``size`` and ``rack`` are optional, gzip is recognised by its first bytes. Keys that Kafka or ``kafka-rebalance plan``
write beside these are ignored; any other is refused, because a misspelt ``rack`` would switch rack safety off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.cluster_columns import plain_columns
from kafka_rebalance.model.json_shapes import (
    MAX_BYTES,
    MAX_INT64,
    decode_object,
    integer,
    known_keys,
    listed,
    member,
    text,
)
from kafka_rebalance.model.topology import Broker, BrokerId, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

_DOCUMENT_KEYS = frozenset(("brokers", "partitions", "version", "summary"))
_BROKER_KEYS = frozenset(("id", "rack"))
# log_dirs is in what kafka-reassign-partitions.sh prints, original_replicas in KIP-236's reassignments.
_PARTITION_KEYS = frozenset(("topic", "partition", "replicas", "size", "log_dirs", "original_replicas"))


@dataclass(frozen=True, slots=True)
class ClusterPartition:
    """One partition of the file; ``size_bytes`` is None where the file does not say."""

    tp: TopicPartition
    replicas: Replicas
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """Brokers that are there, and partitions; replicas may sit on brokers that are gone."""

    brokers: tuple[Broker, ...]
    partitions: tuple[ClusterPartition, ...]


def parse_cluster(data: bytes, limit: int = MAX_BYTES) -> ClusterFile:
    """The cluster in the file, which unpacked is not larger than ``limit`` bytes.

    Raises ValueError with the JSON path where the shape is wrong, Refused (DuplicateBroker, DuplicatePartition,
    DuplicateReplica) where the shape is right but no cluster can be like that.
    """
    document = decode_object(data, limit)
    known_keys(document, _DOCUMENT_KEYS, "$")
    rows = listed(member(document, "brokers", "$"), "brokers")
    brokers = tuple(_broker(row, f"brokers[{i}]") for i, row in enumerate(rows))
    _refuse_double_brokers(brokers)
    rows = listed(member(document, "partitions", "$"), "partitions")
    columns = plain_columns(rows, _PARTITION_KEYS)
    if columns is not None:
        document.clear()  # what is not held twice need not fit into the memory twice
        del rows
        return ClusterFile(brokers, tuple(map(ClusterPartition, *columns)))
    partitions = tuple(_partition(row, f"partitions[{i}]") for i, row in enumerate(rows))
    _refuse_double_partitions(partitions)
    return ClusterFile(brokers, partitions)


def parse_topics_to_move(data: bytes) -> frozenset[str]:
    """Kafka's topics-to-move file, ``{"topics": [{"topic": "x"}], "version": 1}``. Raises ValueError with the path."""
    document = decode_object(data)
    version = document.get("version", 1)
    if version != 1:
        raise ValueError(f"version: {version!r} is not 1")
    rows = listed(member(document, "topics", "$"), "topics")
    return frozenset(text(member(row, "topic", f"topics[{i}]"), f"topics[{i}].topic") for i, row in enumerate(rows))


def _broker(row: Any, path: str) -> Broker:
    known_keys(row, _BROKER_KEYS, path)
    number = integer(member(row, "id", path), f"{path}.id")
    rack = row.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise ValueError(f"{path}.rack of broker {number}: expected a string or null, found {rack!r}")
    return Broker(BrokerId(number), rack)


def _partition(row: Any, path: str) -> ClusterPartition:
    known_keys(row, _PARTITION_KEYS, path)
    topic = text(member(row, "topic", path), f"{path}.topic")
    number = member(row, "partition", f"{path} of topic {topic}")
    tp = TopicPartition(topic, integer(number, f"{path}.partition of topic {topic}"))
    where = f"{path}.replicas of topic-partition {tp}"
    ids = listed(member(row, "replicas", f"{path} of topic-partition {tp}"), where)
    replicas = tuple(BrokerId(integer(b, where)) for b in ids)
    if not replicas:
        raise ValueError(f"{where}: expected at least one broker id")
    size = row.get("size")
    if size is not None:
        size = integer(size, f"{path}.size of topic-partition {tp}", MAX_INT64)
    return ClusterPartition(tp, replicas, size)


def _refuse_double_brokers(brokers: tuple[Broker, ...]) -> None:
    ids: set[int] = set()
    for i, broker in enumerate(brokers):
        if broker.id in ids:
            raise Refused(Reason.DUPLICATE_BROKER, f"brokers[{i}].id: broker {broker.id} is listed twice")
        ids.add(broker.id)


def _refuse_double_partitions(partitions: tuple[ClusterPartition, ...]) -> None:
    seen: set[TopicPartition] = set()
    for i, p in enumerate(partitions):
        if p.tp in seen:
            raise Refused(Reason.DUPLICATE_PARTITION, f"partitions[{i}]: topic-partition {p.tp} is listed twice")
        seen.add(p.tp)
        if len(set(p.replicas)) != len(p.replicas):
            message = f"partitions[{i}].replicas of topic-partition {p.tp} names a broker twice: {list(p.replicas)}"
            raise Refused(Reason.DUPLICATE_REPLICA, message)
