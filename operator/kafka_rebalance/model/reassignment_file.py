"""Kafka's reassignment file, as its tool, `kafka-rebalance plan` and KIP-236 write it. Opens nothing.

    {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [0, 1], "original_replicas": [0, 2]}]}

``original_replicas`` is KIP-236's, and optional: what the partition has before, and what it is rolled back to.
``log_dirs``, which Kafka's tool writes, is not read: in which of its directories a broker puts a copy is its choice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.json_shapes import decode_object, integer, known_keys, listed, member, text
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

_DOCUMENT_KEYS = frozenset(("version", "partitions", "summary"))
_ROW_KEYS = frozenset(("topic", "partition", "replicas", "log_dirs", "original_replicas"))
_ANY = "any"


@dataclass(frozen=True, slots=True)
class Reassigned:
    """One row: the list that a partition shall have; ``original`` is None where the file does not say."""

    tp: TopicPartition
    replicas: Replicas
    original: Replicas | None = None


def read_reassignment(data: bytes) -> tuple[Reassigned, ...]:
    """The rows of the file, sorted by partition.

    Raises ValueError with the JSON path where the shape is wrong, Refused (DuplicatePartition, DuplicateReplica) where
    a partition or a broker is named twice.
    """
    document = decode_object(data)
    known_keys(document, _DOCUMENT_KEYS, "$")
    version = document.get("version", 1)
    if version != 1:
        raise ValueError(f"version: {version!r} is not 1")
    rows = listed(member(document, "partitions", "$"), "partitions")
    found: dict[TopicPartition, Reassigned] = {}
    for i, row in enumerate(rows):
        read = _row(row, f"partitions[{i}]")
        if read.tp in found:
            raise Refused(Reason.DUPLICATE_PARTITION, f"partitions[{i}]: topic-partition {read.tp} is listed twice")
        found[read.tp] = read
    return tuple(row for _, row in sorted(found.items()))


def parse_reassignment(data: bytes) -> dict[TopicPartition, Replicas]:
    """The list of each partition in the file; raises as ``read_reassignment``."""
    return {row.tp: row.replicas for row in read_reassignment(data)}


def render_reassignment(rows: Iterable[Reassigned]) -> str:
    """One line, in the order given, with ``original_replicas`` where they are known."""
    return _compact({"version": 1, "partitions": [_plain(row) | _original(row) for row in rows]})


def render_assignment(
    lists: Iterable[tuple[TopicPartition, Replicas]], log_dirs: Mapping[tuple[TopicPartition, BrokerId], str]
) -> str:
    """One line, sorted, just as Kafka's tool prints an assignment: with the directories that are known."""
    rows = [
        _plain(Reassigned(tp, replicas)) | {"log_dirs": [log_dirs.get((tp, b), _ANY) for b in replicas]}
        for tp, replicas in sorted(lists)
    ]
    return _compact({"version": 1, "partitions": rows})


def _row(row: Any, path: str) -> Reassigned:
    known_keys(row, _ROW_KEYS, path)
    topic = text(member(row, "topic", path), f"{path}.topic")
    tp = TopicPartition(topic, integer(member(row, "partition", path), f"{path}.partition of topic {topic}"))
    replicas = _replicas(member(row, "replicas", path), f"{path}.replicas of topic-partition {tp}")
    original = row.get("original_replicas")
    if original is not None:
        original = _replicas(original, f"{path}.original_replicas of topic-partition {tp}")
    return Reassigned(tp, replicas, original)


def _replicas(value: Any, path: str) -> Replicas:
    replicas = tuple(BrokerId(integer(b, path)) for b in listed(value, path))
    if not replicas:
        raise ValueError(f"{path}: expected at least one broker id")
    if len(set(replicas)) != len(replicas):
        raise Refused(Reason.DUPLICATE_REPLICA, f"{path} names a broker twice: {list(replicas)}")
    return replicas


def _plain(row: Reassigned) -> dict[str, Any]:
    return {"topic": row.tp.topic, "partition": row.tp.partition, "replicas": list(row.replicas)}


def _original(row: Reassigned) -> dict[str, Any]:
    return {} if row.original is None else {"original_replicas": list(row.original)}


def _compact(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"))
