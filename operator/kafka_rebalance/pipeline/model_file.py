"""The load model as one Parquet file: what Spark computed, with what the reader has to know in the file's metadata.

Written last and in one piece: a reader sees the old model or the new one. Row groups are copied as columns, never as
Python objects.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from kafka_rebalance.pipeline import broker_loads
from kafka_rebalance.pipeline.broker_loads import BrokerLoad
from kafka_rebalance.pipeline.lake import Lake, model_path
from kafka_rebalance.storage.load_model_parquet import METADATA_KEY, VERSION

_DICTIONARIES = ("topic", "method", "bytes_out_method")
_NAMED = pa.dictionary(pa.int32(), pa.string())
_OPTIONAL = ("leader", "bytes_", "growth_", "forecast_")
_FORECAST = re.compile(r"forecast_(\d+)d")
_ROW_GROUP = 131_072


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """What a model says, in a few numbers.

    ``methods``: partitions by method; ``methods_out``: of bytes out; ``forecasts``: by days ahead.
    ``brokers``: nothing for a model of a version without.
    """

    partitions: int
    size_bytes: int
    bytes_in_per_second: float
    methods: Mapping[str, int]
    methods_out: Mapping[str, int]
    header: Mapping[str, Any]
    forecasts: Mapping[int, "ForecastSummary"] = field(default_factory=dict)
    brokers: tuple[BrokerLoad, ...] = ()


@dataclass(frozen=True, slots=True)
class ForecastSummary:
    """How many partitions have a forecast, the sum of these, and of the same partitions the bytes now."""

    partitions: int
    size_bytes: int
    now_bytes: int


def header(
    cluster_id: str, start: datetime, end: datetime, samples: int, lineage: Mapping[str, object]
) -> dict[str, object]:
    """The metadata under ``METADATA_KEY``, as JSON."""
    return {
        "version": VERSION,
        "clusterId": cluster_id,
        "windowStart": start.isoformat().replace("+00:00", "Z"),
        "windowEnd": end.isoformat().replace("+00:00", "Z"),
        "samples": samples,
        "lineage": lineage,
    }


def packed(lake: Lake, table: str, described: Mapping[str, object]) -> bytes:
    """Spark's output, the sorted files in the directory ``table``, as one file."""
    sink = pa.BufferOutputStream()
    writer = None
    metadata = {METADATA_KEY: json.dumps(described, separators=(",", ":"))}
    for name in lake.names(table):
        if not name.endswith(".parquet"):
            continue
        with lake.filesystem.open_input_file(f"{lake.root}/{table}/{name}") as source:
            for batch in pyarrow.parquet.ParquetFile(source).iter_batches(_ROW_GROUP):
                rows = pa.Table.from_batches([batch])
                schema = _schema(rows.schema, metadata)
                writer = writer or pyarrow.parquet.ParquetWriter(sink, schema, compression="zstd")
                writer.write_table(rows.cast(schema))
    if writer is None:
        raise ValueError(f"Spark wrote nothing to {table}")
    writer.close()
    data: bytes = sink.getvalue().to_pybytes()
    return data


def summary(lake: Lake, cluster_id: str) -> ModelSummary | None:
    """The summary of the stored model; None if there is none."""
    try:
        data = lake.read(model_path(cluster_id))
    except FileNotFoundError:
        return None
    file = pyarrow.parquet.ParquetFile(pa.BufferReader(data))
    days = [int(match[1]) for match in map(_FORECAST.fullmatch, file.schema_arrow.names) if match]
    wanted = ["size_bytes", "bytes_in_mean", "method", "bytes_out_method", *(f"forecast_{day}d" for day in days)]
    rows = file.read(columns=wanted)
    described = json.loads(file.schema_arrow.metadata[METADATA_KEY])
    return ModelSummary(
        partitions=rows.num_rows,
        size_bytes=pc.sum(rows["size_bytes"]).as_py() or 0,
        bytes_in_per_second=pc.sum(rows["bytes_in_mean"]).as_py() or 0.0,
        methods=_counts(rows, "method"),
        methods_out=_counts(rows, "bytes_out_method"),
        header=described,
        forecasts={day: _forecast(rows, f"forecast_{day}d") for day in days},
        brokers=broker_loads.read(lake, cluster_id, described),
    )


def _counts(rows: pa.Table, name: str) -> dict[str, int]:
    """Nothing in a model of before the column."""
    if name not in rows.column_names:
        return {}
    return {entry["values"]: entry["counts"] for entry in pc.value_counts(rows[name].cast(pa.string())).to_pylist()}


def _forecast(rows: pa.Table, name: str) -> ForecastSummary:
    known = rows.filter(pc.is_valid(rows[name]))
    sums = (pc.sum(known[column]).as_py() or 0 for column in (name, "size_bytes"))
    return ForecastSummary(known.num_rows, *sums)


def _schema(found: pa.Schema, metadata: Mapping[bytes, str]) -> pa.Schema:
    """Names as dictionaries; lists of plain numbers; nullable only what may be unknown."""

    def typed(name: str, kind: pa.DataType) -> pa.DataType:
        if name in _DICTIONARIES:
            return _NAMED
        return pa.list_(pa.field("element", kind.value_type)) if pa.types.is_list(kind) else kind

    return pa.schema(
        [pa.field(f.name, typed(f.name, f.type), nullable=f.name.startswith(_OPTIONAL)) for f in found],
        metadata=dict(metadata),
    )
