"""The offline cluster file (design section 10) as values. Parses bytes; opening files is the command line's business.

    {"brokers": [{"id": 0, "rack": "a"}, {"id": 1, "rack": null}],
     "partitions": [{"topic": "t", "partition": 0, "replicas": [0, 1], "size": 1048576}]}

``size`` and ``rack`` are optional, gzip is recognised by its first bytes. Keys that Kafka or ``kafka-rebalance plan``
write beside these are ignored; any other is refused, because a misspelt ``rack`` would switch rack safety off.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.topology import Broker, BrokerId, Replicas, TopicPartition
from kafka_rebalance.units import format_bytes

_GZIP_MAGIC = b"\x1f\x8b"
_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1
_CHUNK_BYTES = 2**20
MAX_BYTES = 4 * 2**30
"""No cluster fills this much; what does is endless, or a gzip bomb."""

_DOCUMENT_KEYS = frozenset(("brokers", "partitions", "version", "summary"))
_BROKER_KEYS = frozenset(("id", "rack"))
# log_dirs is in what kafka-reassign-partitions.sh prints, original_replicas in KIP-236's reassignments.
_PARTITION_KEYS = frozenset(("topic", "partition", "replicas", "size", "log_dirs", "original_replicas"))


class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        ...


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


def read_limited(stream: Readable, limit: int = MAX_BYTES) -> bytes:
    """All bytes of the stream. Raises ValueError where there are more than ``limit``, without reading on."""
    read = io.BytesIO()
    while chunk := stream.read(_CHUNK_BYTES):
        if read.tell() + len(chunk) > limit:
            raise ValueError(f"larger than {format_bytes(limit)}, which is the most that is read")
        read.write(chunk)
    return read.getvalue()


def parse_cluster(data: bytes, limit: int = MAX_BYTES) -> ClusterFile:
    """The cluster in the file, which unpacked is not larger than ``limit`` bytes.

    Raises ValueError with the JSON path where the shape is wrong, Refused (DuplicateBroker, DuplicatePartition,
    DuplicateReplica) where the shape is right but no cluster can be like that.
    """
    document = _decode(data, limit)
    _known_keys(document, _DOCUMENT_KEYS, "$")
    rows = _list(_member(document, "brokers", "$"), "brokers")
    brokers = tuple(_broker(row, f"brokers[{i}]") for i, row in enumerate(rows))
    rows = _list(_member(document, "partitions", "$"), "partitions")
    partitions = tuple(_plain_partition(row) or _partition(row, f"partitions[{i}]") for i, row in enumerate(rows))
    _refuse_duplicates(brokers, partitions)
    return ClusterFile(brokers, partitions)


def parse_topics_to_move(data: bytes) -> frozenset[str]:
    """Kafka's topics-to-move file, ``{"topics": [{"topic": "x"}], "version": 1}``. Raises ValueError with the path."""
    document = _decode(data)
    version = document.get("version", 1)
    if version != 1:
        raise ValueError(f"version: {version!r} is not 1")
    rows = _list(_member(document, "topics", "$"), "topics")
    return frozenset(_text(_member(row, "topic", f"topics[{i}]"), f"topics[{i}].topic") for i, row in enumerate(rows))


def _decode(data: bytes, limit: int = MAX_BYTES) -> dict[str, Any]:
    try:
        if data.startswith(_GZIP_MAGIC):
            with gzip.open(io.BytesIO(data)) as unpacked:
                data = read_limited(unpacked, limit)
        document = json.loads(data)
    except (OSError, EOFError, zlib.error) as broken:
        raise ValueError(f"the gzip stream is broken: {broken}") from broken
    except (json.JSONDecodeError, UnicodeDecodeError) as broken:
        raise ValueError(f"not JSON: {broken}") from broken
    except RecursionError as deep:
        raise ValueError("not JSON: nested too deeply") from deep
    if not isinstance(document, dict):
        raise ValueError("$: expected an object")
    return document


def _broker(row: Any, path: str) -> Broker:
    _known_keys(row, _BROKER_KEYS, path)
    number = _integer(_member(row, "id", path), f"{path}.id")
    rack = row.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise ValueError(f"{path}.rack of broker {number}: expected a string or null, found {rack!r}")
    return Broker(BrokerId(number), rack)


def _plain_partition(row: Any) -> ClusterPartition | None:
    """The partition where nothing is wrong with the row, in a third of the time; ``_partition`` says what is wrong."""
    if type(row) is not dict or not row.keys() <= _PARTITION_KEYS:
        return None
    topic, number, listed, size = map(row.get, ("topic", "partition", "replicas", "size"))
    if type(topic) is not str or not topic or type(number) is not int or type(listed) is not list:
        return None
    if set(map(type, listed)) != {int} or not 0 <= number <= _MAX_INT32 or min(listed) < 0 or max(listed) > _MAX_INT32:
        return None
    if size is not None and (type(size) is not int or not 0 <= size <= _MAX_INT64):
        return None
    return ClusterPartition(TopicPartition(topic, number), tuple(listed), size)


def _partition(row: Any, path: str) -> ClusterPartition:
    _known_keys(row, _PARTITION_KEYS, path)
    topic = _text(_member(row, "topic", path), f"{path}.topic")
    number = _member(row, "partition", f"{path} of topic {topic}")
    tp = TopicPartition(topic, _integer(number, f"{path}.partition of topic {topic}"))
    where = f"{path}.replicas of topic-partition {tp}"
    listed = _list(_member(row, "replicas", f"{path} of topic-partition {tp}"), where)
    replicas = tuple(BrokerId(_integer(b, where)) for b in listed)
    if not replicas:
        raise ValueError(f"{where}: expected at least one broker id")
    size = row.get("size")
    if size is not None:
        size = _integer(size, f"{path}.size of topic-partition {tp}", _MAX_INT64)
    return ClusterPartition(tp, replicas, size)


def _known_keys(value: Any, known: AbstractSet[str], path: str) -> None:
    if isinstance(value, dict) and not value.keys() <= known:
        unknown = min(value.keys() - known)
        raise ValueError(f"{path}: unknown key {unknown!r:.60}; known are {', '.join(sorted(known))}")


def _member(value: Any, key: str, path: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected an object, found {value!r:.60}")
    if key not in value:
        raise ValueError(f"{path}: {key!r} is missing")
    return value[key]


def _list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{path}: expected a list, found {value!r:.60}")
    return value


def _integer(value: Any, path: str, highest: int = _MAX_INT32) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{path}: expected an integer, found {value!r:.60}")
    if not 0 <= value <= highest:
        raise ValueError(f"{path}: {value} is not between 0 and {highest}")
    return value


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{path}: expected a name, found {value!r:.60}")
    return value


def _refuse_duplicates(brokers: tuple[Broker, ...], partitions: tuple[ClusterPartition, ...]) -> None:
    ids: set[int] = set()
    for i, broker in enumerate(brokers):
        if broker.id in ids:
            raise Refused("DuplicateBroker", f"brokers[{i}].id: broker {broker.id} is listed twice")
        ids.add(broker.id)
    seen: set[TopicPartition] = set()
    for i, p in enumerate(partitions):
        if p.tp in seen:
            raise Refused("DuplicatePartition", f"partitions[{i}]: topic-partition {p.tp} is listed twice")
        seen.add(p.tp)
        if len(set(p.replicas)) != len(p.replicas):
            message = f"partitions[{i}].replicas of topic-partition {p.tp} names a broker twice: {list(p.replicas)}"
            raise Refused("DuplicateReplica", message)
