"""Kafka's reassignment file, as its tool, `kafka-rebalance plan` and KIP-236 write it. Opens no files.

    {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [0, 1], "original_replicas": [0, 2]}]}

``original_replicas`` is KIP-236's, and optional: the list before the reassignment, and the target of a rollback.
Of ``log_dirs``, Kafka's, only whether one is named is read: the operator leaves the log dir of a copy to the broker.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.model.json_shapes import decode_object, known_keys, listed, member
from kafka_rebalance.model.partition_rows import partition_rows, replica_lists
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition

_DOCUMENT_KEYS = frozenset(("version", "partitions", "summary"))
_ROW_KEYS = frozenset(("topic", "partition", "replicas", "log_dirs", "original_replicas"))
ANY_DIR = "any"
"""What Kafka's tools write for a replica whose log dir is not named."""


@dataclass(frozen=True, slots=True)
class Reassigned:
    """One row: the target list of a partition; ``original`` is None if the file has none. ``names_log_dir``: the file
    says in which log dir a replica belongs."""

    tp: TopicPartition
    replicas: Replicas
    original: Replicas | None = None
    names_log_dir: bool = False


def read_reassignment(data: bytes) -> tuple[Reassigned, ...]:
    """The rows of the file, sorted by partition.

    Raises ValueError with the JSON path if the shape is wrong, Refused (DuplicatePartition, DuplicateReplica) if a
    partition or a broker is named twice.
    """
    document = decode_object(data)
    known_keys(document, _DOCUMENT_KEYS, "$")
    version = document.get("version", 1)
    if version != 1:
        raise ValueError(f"version: {version!r:.60} is not 1")
    rows = listed(member(document, "partitions", "$"), "partitions")
    partitions, replicas = partition_rows(rows, _ROW_KEYS)
    given = [i for i, row in enumerate(rows) if row.get("original_replicas") is not None]
    path = lambda k: f"partitions[{given[k]}].original_replicas of topic-partition {partitions[given[k]]}"  # noqa: E731
    original = dict(zip(given, replica_lists([rows[i]["original_replicas"] for i in given], path), strict=True))
    named = [_names_log_dir(row, i) for i, row in enumerate(rows)]
    found = (
        Reassigned(tp, row, original.get(i), named[i])
        for i, (tp, row) in enumerate(zip(partitions, replicas, strict=True))
    )
    return tuple(sorted(found, key=lambda row: row.tp))


def parse_reassignment(data: bytes) -> dict[TopicPartition, Replicas]:
    """The list of each partition in the file; raises as ``read_reassignment``."""
    return {row.tp: row.replicas for row in read_reassignment(data)}


def render_reassignment(rows: Iterable[Reassigned]) -> str:
    """One line, in the order given, with ``original_replicas`` if known."""
    return _compact({"version": 1, "partitions": [_plain(row) | _original(row) for row in rows]})


def render_assignment(
    lists: Iterable[tuple[TopicPartition, Replicas]], log_dirs: Mapping[tuple[TopicPartition, BrokerId], str]
) -> str:
    """One line, sorted, as Kafka's tool prints an assignment: with the known log directories."""
    rows = [
        _plain(Reassigned(tp, replicas)) | {"log_dirs": [log_dirs.get((tp, b), ANY_DIR) for b in replicas]}
        for tp, replicas in sorted(lists)
    ]
    return _compact({"version": 1, "partitions": rows})


def _names_log_dir(row: Mapping[str, Any], i: int) -> bool:
    given = row.get("log_dirs")
    return given is not None and any(path != ANY_DIR for path in listed(given, f"partitions[{i}].log_dirs"))


def _plain(row: Reassigned) -> dict[str, Any]:
    return {"topic": row.tp.topic, "partition": row.tp.partition, "replicas": list(row.replicas)}


def _original(row: Reassigned) -> dict[str, Any]:
    return {} if row.original is None else {"original_replicas": list(row.original)}


def _compact(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"))
