"""The offline cluster file as values. Parses bytes and opens no files.

    {"brokers": [{"id": 0, "rack": "a", "capacity": {"disk": "2Ti", "networkIn": "300Mi", "networkOut": "600Mi"}},
                 {"id": 1, "rack": null}],
     "partitions": [{"topic": "t", "partition": 0, "replicas": [0, 1], "size": 1048576}]}

``size``, ``rack`` and ``capacity`` are optional; a capacity is an integer or a quantity, of bytes or bytes per second.
A broker may have ``"logDirs": [{"path": "/data/1", "size": "1Ti"}]``, and a partition Kafka's ``log_dirs``, the path of
each of its replicas, or ``any``.
Gzip is recognised by its first bytes. Other keys that Kafka or ``kafka-rebalance
plan`` write are ignored; any other key is refused, because a misspelt ``rack`` would disable the rack rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from kafka_rebalance.errors import Refused
from kafka_rebalance.model import json_shapes as shapes
from kafka_rebalance.model.broker_capacity import BrokerCapacity
from kafka_rebalance.model.partition_rows import check_integers, partition_rows
from kafka_rebalance.model.reassignment_file import ANY_DIR
from kafka_rebalance.model.topology import Broker, BrokerId, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import parse_quantity

_DOCUMENT_KEYS = frozenset(("brokers", "partitions", "version", "summary"))
_BROKER_KEYS = frozenset(("id", "rack", "capacity", "logDirs"))
_LOG_DIR_KEYS = frozenset(("path", "size"))
_CAPACITY_KEYS = {"disk": "disk", "networkIn": "network_in", "networkOut": "network_out"}
# log_dirs is in what kafka-reassign-partitions.sh prints, original_replicas in KIP-236's reassignments.
_PARTITION_KEYS = frozenset(("topic", "partition", "replicas", "size", "log_dirs", "original_replicas"))


@dataclass(frozen=True, slots=True)
class ClusterPartition:
    """One partition of the file; ``size_bytes`` is None if the file has no size. ``log_dirs``: of each of the replicas,
    or none."""

    tp: TopicPartition
    replicas: Replicas
    size_bytes: int | None = None
    log_dirs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """The brokers and partitions; replicas may be on brokers that are gone. ``capacities``: where given; ``log_dirs``:
    by path the bytes of each, None where not given."""

    brokers: tuple[Broker, ...]
    partitions: tuple[ClusterPartition, ...]
    capacities: Mapping[BrokerId, BrokerCapacity] = field(default_factory=dict)
    log_dirs: Mapping[BrokerId, Mapping[str, int | None]] = field(default_factory=dict)


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
    given_capacities = [(i, row["capacity"]) for i, row in enumerate(rows) if row.get("capacity") is not None]
    capacities = {brokers[i].id: _capacity(value, f"brokers[{i}].capacity") for i, value in given_capacities}
    given_dirs = [(i, row["logDirs"]) for i, row in enumerate(rows) if row.get("logDirs")]
    log_dirs = {brokers[i].id: _log_dirs(value, f"brokers[{i}].logDirs") for i, value in given_dirs}
    rows = shapes.listed(shapes.member(document, "partitions", "$"), "partitions")
    partitions, replicas = partition_rows(rows, _PARTITION_KEYS)
    sizes = [row.get("size") for row in rows]
    given = [i for i, size in enumerate(sizes) if size is not None]
    path = lambda k: f"partitions[{given[k]}].size of topic-partition {partitions[given[k]]}"  # noqa: E731
    check_integers([sizes[i] for i in given], path, shapes.MAX_INT64)
    places = [_places(row, i) for i, row in enumerate(rows)] if log_dirs else repeat((), len(rows))
    document.clear()  # the rows and the values made of them need not be in memory together
    del rows
    return ClusterFile(brokers, tuple(map(ClusterPartition, partitions, replicas, sizes, places)), capacities, log_dirs)


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


def _log_dirs(value: Any, path: str) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for i, row in enumerate(shapes.listed(value, path)):
        at = f"{path}[{i}]"
        name = shapes.text(shapes.member(row, "path", at), f"{at}.path")
        shapes.known_keys(row, _LOG_DIR_KEYS, at)
        if name in found:
            raise ValueError(f"{at}.path: {name} is listed twice")
        size = row.get("size")
        found[name] = None if size is None else _quantity(size, f"{at}.size")
    return found


def _places(row: Mapping[str, Any], i: int) -> tuple[str, ...]:
    """The log dirs of a partition's replicas."""
    given = row.get("log_dirs")
    if given is None:
        return ()
    at = f"partitions[{i}].log_dirs"
    found = tuple(shapes.text(path, at) for path in shapes.listed(given, at))
    if len(found) != len(row["replicas"]):
        raise ValueError(
            f"{at}: {len(found)} log dirs of {len(row['replicas'])} replicas; write {ANY_DIR!r} for unknown"
        )
    return found


def _capacity(value: Any, path: str) -> BrokerCapacity:
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected an object with {', '.join(_CAPACITY_KEYS)}, found {value!r:.60}")
    shapes.known_keys(value, _CAPACITY_KEYS.keys(), path)
    return BrokerCapacity(**{_CAPACITY_KEYS[key]: _quantity(part, f"{path}.{key}") for key, part in value.items()})


def _quantity(value: Any, path: str) -> int:
    if not isinstance(value, int | str):
        raise ValueError(f"{path}: {value!r:.60} is not a quantity like 2Ti or 1048576")
    try:
        found = parse_quantity(value)
    except ValueError as wrong:
        raise ValueError(f"{path}: {wrong}") from wrong
    if not found:
        raise ValueError(f"{path}: 0 is no capacity: leave out what is not known")
    return shapes.integer(found, path, shapes.MAX_INT64)


def _refuse_double_brokers(brokers: tuple[Broker, ...]) -> None:
    ids: set[int] = set()
    for i, broker in enumerate(brokers):
        if broker.id in ids:
            raise Refused(Reason.DUPLICATE_BROKER, f"brokers[{i}].id: broker {broker.id} is listed twice")
        ids.add(broker.id)
