"""The offline cluster file as values. Parses bytes and opens no files.

    {"brokers": [{"id": 0, "rack": "a", "capacity": {"disk": "2Ti", "networkIn": "300Mi", "networkOut": "600Mi"}},
                 {"id": 1, "rack": null}],
     "partitions": [{"topic": "t", "partition": 0, "replicas": [0, 1], "size": 1048576}]}

``size``, ``rack`` and ``capacity`` are optional; a capacity is an integer or a quantity, of bytes or bytes per second.
Gzip is recognised by its first bytes. Other keys that Kafka or ``kafka-rebalance
plan`` write are ignored; any other key is refused, because a misspelt ``rack`` would disable the rack rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_rebalance.errors import Refused
from kafka_rebalance.model import json_shapes as shapes
from kafka_rebalance.model.broker_capacity import BrokerCapacity
from kafka_rebalance.model.partition_rows import check_integers, partition_rows
from kafka_rebalance.model.topology import Broker, BrokerId, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import parse_quantity

_DOCUMENT_KEYS = frozenset(("brokers", "partitions", "version", "summary"))
_BROKER_KEYS = frozenset(("id", "rack", "capacity"))
_CAPACITY_KEYS = {"disk": "disk", "networkIn": "network_in", "networkOut": "network_out"}
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
    """The brokers and partitions; replicas may be on brokers that are gone. ``capacities``: where given."""

    brokers: tuple[Broker, ...]
    partitions: tuple[ClusterPartition, ...]
    capacities: Mapping[BrokerId, BrokerCapacity] = field(default_factory=dict)


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
    rows = shapes.listed(shapes.member(document, "partitions", "$"), "partitions")
    partitions, replicas = partition_rows(rows, _PARTITION_KEYS)
    sizes = [row.get("size") for row in rows]
    given = [i for i, size in enumerate(sizes) if size is not None]
    path = lambda k: f"partitions[{given[k]}].size of topic-partition {partitions[given[k]]}"  # noqa: E731
    check_integers([sizes[i] for i in given], path, shapes.MAX_INT64)
    document.clear()  # the rows and the values made of them need not be in memory together
    del rows
    return ClusterFile(brokers, tuple(map(ClusterPartition, partitions, replicas, sizes)), capacities)


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
