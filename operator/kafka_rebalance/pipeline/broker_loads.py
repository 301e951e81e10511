"""What each broker carries of each resource: a table of few rows beside the load model, in a Parquet file of its own.

It is written before the model and has the same header, so that a reader sees whether it belongs to the model.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.pipeline.hot_partitions import HotPartition, hot_partitions
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.storage.locations import path_segment

METADATA_KEY = b"kafka_rebalance.broker_loads"
_HOT = pa.struct([("topic", pa.string()), ("partition", pa.int32()), ("share", pa.float64())])
_SCHEMA = pa.schema(
    [
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("resource", pa.string(), nullable=False),
        *(pa.field(name, pa.float64()) for name in ("mean", "p95", "max")),
        *(
            pa.field(name, pa.int32(), nullable=False)
            for name in ("windows", "of_windows", "partitions", "known_partitions")
        ),
        pa.field("hot_partitions", pa.list_(pa.field("element", _HOT))),
    ]
)


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What the partitions of a broker carry together: bytes (Disk) or bytes per second, None where not known.

    ``mean``, ``p95`` and ``max`` are of those ``windows`` of all ``of_windows`` that are known of each of its
    ``partitions``; ``known_partitions``: the most that are known in one window. ``hot_partitions`` is None if a mean of
    a partition is not known.
    """

    broker: int
    resource: LoadResource
    mean: float | None
    p95: float | None
    max: float | None
    windows: int
    of_windows: int
    partitions: int
    known_partitions: int
    hot_partitions: tuple[HotPartition, ...] | None

    def to_json(self) -> dict[str, Any]:
        """For ``quality --output json``; the names are those of the columns, in camel case."""
        hot = self.hot_partitions
        return {
            "broker": self.broker,
            "resource": self.resource.value,
            "mean": self.mean,
            "p95": self.p95,
            "max": self.max,
            "windows": self.windows,
            "ofWindows": self.of_windows,
            "partitions": self.partitions,
            "knownPartitions": self.known_partitions,
            "hotPartitions": None if hot is None else [each._asdict() for each in hot],
        }


@dataclass(frozen=True, slots=True)
class LoadImbalance:
    """The broker that carries most of a resource, at the 95th percentile, and an equal share of what all carry."""

    broker: int
    p95: float
    equal_share: float

    @property
    def ratio(self) -> float:
        """1: no broker carries more than another."""
        return self.p95 / self.equal_share if self.equal_share else 1.0


def imbalance(loads: Iterable[BrokerLoad], resource: LoadResource) -> LoadImbalance | None:
    """None if the load of a broker is not known."""
    found = [(load.p95, load.broker) for load in loads if load.resource is resource]
    known = [(p95, -broker) for p95, broker in found if p95 is not None]
    if not known or len(known) < len(found):
        return None
    most, broker = max(known)
    return LoadImbalance(-broker, most, fmean(p95 for p95, _ in known))


def broker_loads(rows: Iterable[Mapping[str, Any]], windows: int, model: bytes) -> tuple[BrokerLoad, ...]:
    """By broker and resource. ``rows`` are those of `broker_windows`, of ``windows``; ``model`` is the stored file."""
    by_place = {(row["broker"], resource): row[resource] for row in rows for resource in LoadResource}
    hot = hot_partitions(model, {place: figures["partitions"] for place, figures in by_place.items()})
    return tuple(
        BrokerLoad(
            broker=place[0],
            resource=place[1],
            mean=figures["mean"],
            p95=figures["p95"],
            max=figures["max"],
            windows=figures["windows"],
            of_windows=windows,
            partitions=figures["partitions"],
            known_partitions=figures["known"],
            hot_partitions=hot.get(place),
        )
        for place, figures in sorted(
            by_place.items(), key=lambda item: (item[0][0], list(LoadResource).index(item[0][1]))
        )
    )


def store(lake: Lake, cluster_id: str, loads: Sequence[BrokerLoad], described: Mapping[str, object]) -> None:
    """Write the table with the header of the model."""
    rows = [
        asdict(load)
        | {"hot_partitions": None if load.hot_partitions is None else [hot._asdict() for hot in load.hot_partitions]}
        for load in loads
    ]
    table = pa.Table.from_pylist(rows, _SCHEMA.with_metadata({METADATA_KEY: json.dumps(described)}))
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    lake.write(loads_path(cluster_id), sink.getvalue().to_pybytes())


def read(lake: Lake, cluster_id: str, described: Mapping[str, object]) -> tuple[BrokerLoad, ...]:
    """The rows, if they were stored with this header: not those of an older model, nor of one that was not finished."""
    try:
        data = lake.read(loads_path(cluster_id))
    except FileNotFoundError:
        return ()
    table = pyarrow.parquet.read_table(pa.BufferReader(data))
    if json.loads(table.schema.metadata[METADATA_KEY]) != described:
        return ()
    return tuple(_load(row) for row in table.to_pylist())


def _load(row: Mapping[str, Any]) -> BrokerLoad:
    hot = row["hot_partitions"]
    own = {
        "resource": LoadResource(row["resource"]),
        "hot_partitions": None if hot is None else tuple(HotPartition(**each) for each in hot),
    }
    return BrokerLoad(**{**row, **own})


def loads_path(cluster_id: str) -> str:
    """The path of a cluster's table in the lake."""
    return f"models/{path_segment(cluster_id)}/broker-loads.parquet"
