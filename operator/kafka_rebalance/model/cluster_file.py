"""The offline cluster file as values. Parses bytes and opens no files.

    {"brokers": [{"id": 0, "rack": "a"}, {"id": 1, "rack": null}],
     "partitions": [{"topic": "t", "partition": 0, "replicas": [0, 1], "size": 1048576}]}

``size`` and ``rack`` are optional; gzip is recognised by its first bytes. Other keys that Kafka or ``kafka-rebalance
plan`` write are ignored; any other key is refused, because a misspelt ``rack`` would disable the rack rule.
"""

from dataclasses import dataclass
from typing import Any

from kafka_rebalance.errors import Refused
from kafka_rebalance.model import json_shapes as shapes
from kafka_rebalance.model.partition_rows import check_integers, partition_rows
from kafka_rebalance.model.topology import Broker, BrokerId, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

_DOCUMENT_KEYS = frozenset(("brokers", "partitions", "version", "summary"))
_BROKER_KEYS = frozenset(("id", "rack"))
# log_dirs is in what kafka-reassign-partitions.sh prints, original_replicas in KIP-236's reassignments.
_PARTITION_KEYS = frozenset(("topic", "partition", "replicas", "size", "log_dirs", "original_replicas"))


@dataclass(frozen=True, slots=True)
class ClusterPartition:
    """One partition of the file; ``size_bytes`` is None if the file has no size."""

    tp: TopicPartition
    replicas: Replicas
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """The brokers and partitions; replicas may be on brokers that are gone."""

    brokers: tuple[Broker, ...]
    partitions: tuple[ClusterPartition, ...]


def parse_cluster(data: bytes, limit: int = shapes.MAX_BYTES) -> ClusterFile:
    """The cluster in the file, at most ``limit`` bytes unpacked.

    Raises ValueError with the JSON path if the shape is wrong, Refused (DuplicateBroker, DuplicatePartition,
    DuplicateReplica) if a broker or partition occurs twice.
    """
    document = shapes.decode_object(data, limit)
    shapes.known_keys(document, _DOCUMENT_KEYS, "$")
    rows = shapes.listed(shapes.member(document, "brokers", "$"), "brokers")
    brokers = tuple(_broker(row, f"brokers[{i}]") for i, row in enumerate(rows))
    _refuse_double_brokers(brokers)
    rows = shapes.listed(shapes.member(document, "partitions", "$"), "partitions")
    partitions, replicas = partition_rows(rows, _PARTITION_KEYS)
    sizes = [row.get("size") for row in rows]
    given = [i for i, size in enumerate(sizes) if size is not None]
    path = lambda k: f"partitions[{given[k]}].size of topic-partition {partitions[given[k]]}"  # noqa: E731
    check_integers([sizes[i] for i in given], path, shapes.MAX_INT64)
    document.clear()  # the rows and the values made of them need not be in memory together
    del rows
    return ClusterFile(brokers, tuple(map(ClusterPartition, partitions, replicas, sizes)))


def parse_topics_to_move(data: bytes) -> frozenset[str]:
    """Kafka's topics-to-move file, ``{"topics": [{"topic": "x"}], "version": 1}``. Raises ValueError with the path."""
    document = shapes.decode_object(data)
    version = document.get("version", 1)
    if version != 1:
        raise ValueError(f"version: {version!r} is not 1")
    rows = shapes.listed(shapes.member(document, "topics", "$"), "topics")
    return frozenset(
        shapes.text(shapes.member(row, "topic", f"topics[{i}]"), f"topics[{i}].topic") for i, row in enumerate(rows)
    )


def _broker(row: Any, path: str) -> Broker:
    shapes.known_keys(row, _BROKER_KEYS, path)
    number = shapes.integer(shapes.member(row, "id", path), f"{path}.id")
    rack = row.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise ValueError(f"{path}.rack of broker {number}: expected a string or null, found {rack!r}")
    return Broker(BrokerId(number), rack)


def _refuse_double_brokers(brokers: tuple[Broker, ...]) -> None:
    ids: set[int] = set()
    for i, broker in enumerate(brokers):
        if broker.id in ids:
            raise Refused(Reason.DUPLICATE_BROKER, f"brokers[{i}].id: broker {broker.id} is listed twice")
        ids.add(broker.id)
