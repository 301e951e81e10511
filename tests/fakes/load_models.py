"""Load models as the pipeline stores them, one Parquet file of version 2, and as it stored version 1."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_rebalance.storage.load_model_parquet import COVERED_OUT, METADATA_KEY, RATE_COLUMNS

NAMES = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("topic", NAMES, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("topic_id", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("replica_brokers", pa.list_(pa.field("element", pa.int32())), nullable=False),
        pa.field("replica_bytes", pa.list_(pa.field("element", pa.int64())), nullable=False),
        *(pa.field(name, pa.float64()) for name in RATE_COLUMNS),
        pa.field("covered_seconds", pa.float64(), nullable=False),
        pa.field("windows", pa.int32(), nullable=False),
        pa.field("method", NAMES, nullable=False),
        pa.field("growth_bytes_per_second", pa.float64()),
        pa.field(COVERED_OUT, pa.float64()),
        pa.field("bytes_out_method", NAMES),
    ]
)


def parquet_of(model):
    """The columns of a model, in its order."""
    rows = list(model.partitions.items())
    columns = {
        "topic": [tp.topic for tp, _ in rows],
        "partition": [tp.partition for tp, _ in rows],
        "topic_id": [load.topic_id for _, load in rows],
        "size_bytes": [load.size_bytes for _, load in rows],
        "replica_brokers": [list(load.replica_bytes) for _, load in rows],
        "replica_bytes": [list(load.replica_bytes.values()) for _, load in rows],
        "covered_seconds": [load.covered_seconds for _, load in rows],
        "windows": [int(load.covered_seconds // 300) for _, load in rows],
        "method": ["Exact"] * len(rows),
        "growth_bytes_per_second": [None] * len(rows),
        COVERED_OUT: [load.bytes_out_covered_seconds for _, load in rows],
        "bytes_out_method": ["Marginal" if load.bytes_out_covered_seconds else "Unknown" for _, load in rows],
    }
    for name in RATE_COLUMNS:
        columns[name] = [getattr(load, name.replace("_mean", "_per_second")) for _, load in rows]
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in SCHEMA}, SCHEMA)


def stored(table, model, group=None, **changes):
    """The bytes of the file; ``changes`` of its description, None: without any."""
    described = {
        "version": 2,
        "clusterId": model.cluster_id,
        "windowStart": (model.window_start or model.measured_at).isoformat(),
        "windowEnd": model.measured_at.isoformat(),
        "samples": model.samples,
        "lineage": {},
    }
    described = {name: value for name, value in (described | changes).items() if value is not None}
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.replace_schema_metadata({METADATA_KEY: json.dumps(described)}), sink, group, compression="zstd"
    )
    return sink.getvalue().to_pybytes()


def render_parquet(model):
    return stored(parquet_of(model), model)


def render_version_1(model):
    """A gzip'd JSON object."""
    columns = "topic partition topicId sizeBytes bytesInPerSecond bytesInP95 bytesInMax coveredSeconds"
    document = {
        "version": 1,
        "clusterId": model.cluster_id,
        "windowStart": (model.window_start or model.measured_at).isoformat(),
        "windowEnd": model.measured_at.isoformat(),
        "samples": model.samples,
        "columns": columns.split(),
        "partitions": [
            [
                *(*tp, load.topic_id, load.size_bytes),
                *(load.bytes_in_per_second, load.bytes_in_p95, load.bytes_in_max, load.covered_seconds),
            ]
            for tp, load in sorted(model.partitions.items())
        ],
    }
    return gzip.compress(json.dumps(document).encode(), mtime=0)
