"""Stores the windows of whole hours in the lake: one function for the batch job and for each batch of the stream.

An hour is stored when a sample of a later hour is there. It is computed again only if its samples are other ones: a
sample came late, or a file was damaged when it was computed. Rows do not pass through this process.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet

from kafka_rebalance.pipeline.coverage import coverage
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_leftovers import UNFINISHED
from kafka_rebalance.pipeline.sample_manifests import Skipped
from kafka_rebalance.pipeline.stored_hours import HOUR, HourInputs, hour_of, publish_hour
from kafka_rebalance.pipeline.windows_room import WindowsRoom
from kafka_rebalance.storage.locations import hadoop_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROW_GROUP = 131_072


@dataclass(frozen=True, slots=True)
class WindowsOutcome:
    """The result of one run for one cluster: hours that were stored now, and those that were stored already."""

    cluster_id: str
    written: tuple[datetime, ...]
    unchanged: int
    samples: int
    skipped: tuple[Skipped, ...]


def store_windows(
    spark: "SparkSession",
    lake_uri: str,
    cluster_id: str,
    window: timedelta,
    now: datetime,
    room: WindowsRoom | None = None,
) -> WindowsOutcome:
    """Store the windows of those hours of the last ``window`` that have ended and are not stored yet.

    Raises Permanent (LakeUnusable) if the lake has not enough room for all. ``room``: what several clusters share.
    """
    from kafka_rebalance.pipeline.rate_windows import STORED_COLUMNS, hours
    from kafka_rebalance.pipeline.sample_rows import open_samples

    for name, value in hadoop_settings(lake_uri).items():
        spark.conf.set(name, value)
    lake = Lake.open(lake_uri)
    cover = coverage(lake, cluster_id, window, now, tuple(STORED_COLUMNS))
    batches = cover.open_batches()
    ended = {hour_of(batch.sampled_at) for batch in batches if batch.sampled_at < hour_of(batches[-1].sampled_at)}
    wanted = sorted(hour for hour in ended if hour >= cover.found.start)  # that of the start may have more samples
    chosen = [batch for batch in batches if hour_of(batch.sampled_at) in wanted]
    outcome = WindowsOutcome(cluster_id, tuple(wanted), len(cover.stored), len(chosen), cover.found.skipped)
    if not wanted:
        return outcome
    room = room or WindowsRoom(lake)
    room.take(0)
    files = cover.files(chosen)
    unfinished = f"{UNFINISHED}/{uuid.uuid4().hex}"
    rows = hours(open_samples(spark, lake, cover, files), cover.linked.breaks)
    numbers = {round(hour.timestamp()) // round(HOUR.total_seconds()): hour for hour in wanted}
    try:
        chosen_rows = rows.where(rows["hour"].isin(*numbers)).sortWithinPartitions("hour", "k", "w", "at")
        chosen_rows.write.partitionBy("hour").parquet(f"{lake.spark_root}/{unfinished}")
        for number, hour in numbers.items():
            inputs = HourInputs.of(cluster_id, hour, cover.linked, cover.found.skipped, STORED_COLUMNS)
            used = cover.files(inputs.batches)
            data = _one_file(lake, f"{unfinished}/hour={number}", tuple(STORED_COLUMNS))
            room.take(len(data))
            publish_hour(lake, inputs, data, (manifest.sha256 for manifest in used))
    finally:
        lake.delete_directory(unfinished)
    return outcome


def _one_file(lake: Lake, directory: str, columns: tuple[str, ...]) -> bytes:
    """The files that Spark wrote as one; row groups are copied as columns. Without leaders there are none."""
    sink = pa.BufferOutputStream()
    writer = None
    for group in _groups(lake, directory):
        rows = group.select(columns)
        writer = writer or pyarrow.parquet.ParquetWriter(sink, rows.schema, compression="zstd")
        writer.write_table(rows)
    if writer is None:
        pyarrow.parquet.write_table(pa.table({name: pa.nulls(0, pa.int64()) for name in columns[:1]}), sink)
    else:
        writer.close()
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _groups(lake: Lake, directory: str) -> Iterator[pa.Table]:
    for name in lake.names(directory):
        if name.endswith(".parquet"):
            with lake.filesystem.open_input_file(f"{lake.root}/{directory}/{name}") as source:
                for batch in pyarrow.parquet.ParquetFile(source).iter_batches(_ROW_GROUP):
                    yield pa.Table.from_batches([batch])
