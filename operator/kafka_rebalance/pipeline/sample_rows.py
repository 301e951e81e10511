"""Opens files of the lake with Spark: rows of samples that count, and stored windows. Only the DataFrame API."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kafka_rebalance.pipeline.coverage import Coverage
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.rate_windows import STORED_COLUMNS
from kafka_rebalance.pipeline.sample_manifests import Manifest, StoredBatch
from kafka_rebalance.pipeline.schema import SPARK_SCHEMA
from kafka_rebalance.pipeline.stored_hours import HOUR, PLACES, StoredHour

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WINDOWS_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in STORED_COLUMNS.items())


def literal(path: str) -> str:
    """A path for Spark, which takes paths for patterns; a directory may be called [1]."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def rows_of(spark: "SparkSession", lake: Lake, files: Iterable[Manifest], schema: str = SPARK_SCHEMA) -> "DataFrame":
    """All rows of the files."""
    paths = [literal(f"{lake.spark_root}/{manifest.path}") for manifest in files]
    return spark.read.schema(schema).parquet(*paths)


def open_samples(spark: "SparkSession", lake: Lake, cover: Coverage, files: Sequence[Manifest]) -> "DataFrame":
    """The rows of samples that count and are in no stored hour."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = rows_of(spark, lake, files)
    stored = {batch for manifest in files for batch in manifest.batches}
    start = cover.found.start
    if any(batch.sampled_at < start for batch in stored):
        rows = rows.where(F.col("sampled_at") >= F.lit(start))
    for begin, end in _spans(sorted(cover.hours)):
        if any(begin <= batch.sampled_at < end for batch in stored):
            rows = rows.where((F.col("sampled_at") < F.lit(begin)) | (F.col("sampled_at") >= F.lit(end)))
    return without(rows, stored.intersection(cover.linked.dropped))


def without(rows: "DataFrame", batches: Iterable[StoredBatch]) -> "DataFrame":
    """The rows that are not of these batches."""
    from pyspark.sql import functions as F  # noqa: N812

    for batch in sorted(batches, key=lambda batch: batch.sampled_at):
        rows = rows.where(
            ~((F.col("sampled_at") == F.lit(batch.sampled_at)) & (F.col("run_id") == F.lit(batch.run_id)))
        )
    return rows


def stored_windows(spark: "SparkSession", lake: Lake, stored: Sequence[StoredHour]) -> "DataFrame | None":
    """The rows of stored hours; None if there are none."""
    if not stored:
        return None
    paths = [literal(f"{lake.spark_root}/{hour.inputs.path(PLACES[1])}") for hour in stored]
    return spark.read.schema(_WINDOWS_SCHEMA).parquet(*paths)


def _spans(hours: Iterable[datetime]) -> list[tuple[datetime, datetime]]:
    """Hours that follow each other as one span."""
    spans: list[tuple[datetime, datetime]] = []
    for hour in hours:
        if spans and spans[-1][1] == hour:
            spans[-1] = (spans[-1][0], hour + HOUR)
        else:
            spans.append((hour, hour + HOUR))
    return spans
