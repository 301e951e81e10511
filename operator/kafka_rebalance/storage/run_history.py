"""The history of runs in a lake: one immutable Parquet file for each run that has ended, with a row per step.

    steps/cluster=<id>/date=YYYY-MM-DD/<end>-<run id>.parquet

A file appears as a whole or not at all, so a reader needs no manifest.
"""

from collections.abc import Sequence
from datetime import UTC
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from kafka_rebalance.model.run_record import RunRecord, StepRecord
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.storage.locations import Location, path_segment, store_failed, write_whole

VERSION = 1
MOST_RUNS = 500
"""How many runs of a cluster, the newest ones, durations are learnt from: a cluster changes."""
_PIECE = 20_000
"""Steps that are made rows at a time: rows need ten times the memory of the file."""
_TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        pa.field("version", pa.int32(), nullable=False),
        *(pa.field(name, pa.string(), nullable=False) for name in ("cluster_id", "namespace", "name", "run_id")),
        *(pa.field(name, pa.string(), nullable=False) for name in ("plan_hash", "outcome")),
        pa.field("complete", pa.bool_(), nullable=False),
        pa.field("run_started_at", _TIME, nullable=False),
        pa.field("run_ended_at", _TIME, nullable=False),
        pa.field("active_seconds", pa.float64(), nullable=False),
        *(pa.field(f"parallel_{what}", pa.int32(), nullable=False) for what in ("replicas", "partitions")),
        pa.field("parallel_leader_movements", pa.int32(), nullable=False),
        pa.field("limits_changed", pa.bool_(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("started_at", _TIME, nullable=False),
        pa.field("ended_at", _TIME, nullable=False),
        pa.field("bytes_copied", pa.int64(), nullable=False),
        pa.field("source", pa.int32()),
        pa.field("destinations", pa.list_(pa.int32()), nullable=False),
        pa.field("leader_rate", pa.int64()),
        pa.field("follower_rate", pa.int64()),
        pa.field("rate_changed", pa.bool_(), nullable=False),
        pa.field("copies_in", pa.int32(), nullable=False),
        pa.field("copies_out", pa.int32(), nullable=False),
    ]
)


def write_run(location: Location, record: RunRecord) -> str:
    """Store the run; the path of its file. OSError if the store does not take it."""
    return store_run(location, record, packed_run(record))


def packed_run(record: RunRecord) -> bytes:
    """The content of the run's file."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, SCHEMA, compression="zstd") as writer:
        for begin in range(0, len(record.steps), _PIECE):
            rows = _rows(record, record.steps[begin : begin + _PIECE])
            writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def store_run(location: Location, record: RunRecord, packed: bytes) -> str:
    """Store what `packed_run` has made of the run; the path of the file. OSError if the store does not take it."""
    end = record.ended_at.astimezone(UTC)
    name = f"{end.strftime('%Y%m%dT%H%M%SZ')}-{path_segment(record.run_id)}.parquet"
    path = f"steps/cluster={path_segment(record.cluster_id)}/date={end.date().isoformat()}/{name}"
    write_whole(location.filesystem, f"{location.root}/{path}", packed)
    return path


def _rows(record: RunRecord, steps: Sequence[StepRecord]) -> list[dict[str, Any]]:
    run = {
        "version": VERSION,
        "run_started_at": record.started_at,
        "run_ended_at": record.ended_at,
        **{name: getattr(record, name) for name in SCHEMA.names if name in RunRecord.__slots__},
    }
    del run["started_at"], run["ended_at"]
    return [
        run
        | {name: getattr(step, name) for name in step.__slots__ if name != "tp"}
        | {"topic": step.tp.topic, "partition": step.tp.partition}
        for step in steps
    ]


def read_run(location: Location, cluster_id: str, run_id: str) -> RunRecord | None:
    """The run, if its record is there. Transient (LakeUnusable) if the store does not answer."""
    place = f"{location.root}/steps/cluster={path_segment(cluster_id)}"
    end = f"-{path_segment(run_id)}.parquet"
    try:
        selector = pyarrow.fs.FileSelector(place, allow_not_found=True, recursive=True)
        found = [info.path for info in location.filesystem.get_file_info(selector) if info.path.endswith(end)]
        if not found:
            return None
        rows = pq.read_table(found[0], filesystem=location.filesystem, partitioning=None).to_pylist()
    except OSError as error:
        raise store_failed(f"{location.name} cannot be read", error) from error
    return _record_of(rows)


def _record_of(rows: list[dict[str, Any]]) -> RunRecord:
    about = {name: rows[0][name] for name in SCHEMA.names if name in RunRecord.__slots__}
    steps = tuple(
        StepRecord(
            tp=TopicPartition(row["topic"], row["partition"]),
            **{name: row[name] for name in StepRecord.__slots__ if name not in {"tp", "destinations"}},
            destinations=replicas_of(*row["destinations"]),
        )
        for row in rows
    )
    return RunRecord(
        **about | {"started_at": rows[0]["run_started_at"], "ended_at": rows[0]["run_ended_at"]}, steps=steps
    )
