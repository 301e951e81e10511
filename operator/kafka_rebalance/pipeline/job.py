"""Runs the load model job: starts Spark, reads the files that the manifests name, stores the model.

The window ends at the newest sample that is not from the future; the reader of the model decides whether that is fresh
enough. Rows do not pass through this process.
"""

import hashlib
import os
import re
import sys
import uuid
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import metadata, resources
from typing import TYPE_CHECKING

from kafka_rebalance.errors import Refused
from kafka_rebalance.pipeline import model_file
from kafka_rebalance.pipeline.commits_schema import COMMITS_SPARK_SCHEMA
from kafka_rebalance.pipeline.lake import Lake, model_path
from kafka_rebalance.pipeline.lake_tables import METRICS, OFFSETS
from kafka_rebalance.pipeline.metrics_schema import METRICS_SPARK_SCHEMA
from kafka_rebalance.pipeline.run_chain import Chain, chain
from kafka_rebalance.pipeline.sample_manifests import Inventory, Manifest, Skipped, StoredBatch, inventory
from kafka_rebalance.pipeline.schema import SPARK_SCHEMA
from kafka_rebalance.reasons import Reason
from kafka_rebalance.storage.locations import hadoop_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCAL_MASTER = "local[*]"
_UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The result of one run for one cluster, and what it could not use."""

    cluster_id: str
    start: datetime
    end: datetime
    samples: int
    model: model_file.ModelSummary
    artefact: str
    skipped: tuple[Skipped, ...]
    partial_batches: int
    dropped_batches: int


@contextmanager
def spark_session(master: str | None = None) -> "Iterator[SparkSession]":
    """A session that logs little, stopped at the end; an active session is used and left running.

    Without ``master`` it is the one of spark-submit if that started this process, else ``local[*]``.
    """
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")  # not used here
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    chosen = master or (None if submitted else LOCAL_MASTER)
    builder = SparkSession.builder.appName("kafka-rebalance load-model")
    settings = _SETTINGS | (_local_settings() if chosen and chosen.startswith("local") else {})
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = (builder.master(chosen) if chosen else builder).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def build(spark: "SparkSession", lake_uri: str, cluster_id: str, window: timedelta, now: datetime) -> JobOutcome:
    """Compute and store the model of one cluster. Raises Refused (NoSamples) if the lake has none that can be used."""
    from kafka_rebalance.pipeline.partition_loads import loads
    from kafka_rebalance.pipeline.rate_windows import windows

    for name, value in hadoop_settings(lake_uri).items():
        spark.conf.set(name, value)
    lake = Lake.open(lake_uri)
    found = inventory(lake, cluster_id, window, now)
    linked = chain(batch for batch in found.batches() if batch.rows)
    if not linked.batches:
        raise Refused(Reason.NO_SAMPLES, _nothing(cluster_id, found))
    used = _files(found, linked.batches)
    unfinished = f"{_UNFINISHED}/{uuid.uuid4().hex}"
    groups = _committed(inventory(lake, cluster_id, window, now, OFFSETS), linked)
    reported = _reported(inventory(lake, cluster_id, window, now, METRICS), linked)
    rows = loads(
        _listing(spark, lake, found, linked),
        windows(_rows(spark, lake, found, used, linked.dropped), linked.breaks),
        _consumed(spark, lake, groups, linked) if groups.batches else None,
        _sent(spark, lake, reported, linked) if reported.batches else None,
    )
    start, end = linked.batches[0].sampled_at, linked.batches[-1].sampled_at
    files = (*used, *groups.files, *reported.files)
    skipped = (*found.skipped, *groups.skipped, *reported.skipped)
    lineage = {
        "program": metadata.version("kafka-rebalance-operator"),
        "spark": spark.version,
        "files": len(files),
        "sha256": hashlib.sha256("".join(sorted(file.sha256 for file in files)).encode()).hexdigest(),
        "skippedFiles": len(skipped),
        "runs": len({batch.run_id for batch in linked.batches}),
        "leftOutSamples": len(linked.dropped),
        "samplesOfGroups": len(groups.batches),
        "readsOfMetrics": len(reported.batches),
    }
    try:
        rows.write.parquet(f"{lake.spark_root}/{unfinished}")
        described = model_file.header(cluster_id, start, end, len(linked.batches), lineage)
        model_file.store(lake, cluster_id, unfinished, described)
    finally:
        lake.delete_directory(unfinished)
    model = model_file.summary(lake, cluster_id)
    assert model is not None  # noqa: S101 - it was just stored
    return JobOutcome(
        cluster_id=cluster_id,
        start=start,
        end=end,
        samples=len(linked.batches),
        model=model,
        artefact=model_path(cluster_id),
        skipped=skipped,
        partial_batches=sum(bool(batch.missing_brokers) for batch in linked.batches),
        dropped_batches=len(linked.dropped),
    )


@dataclass(frozen=True, slots=True)
class _Beside:
    """Batches of another table that belong to the samples of the model, and the files that have them."""

    batches: tuple[StoredBatch, ...]
    files: tuple[Manifest, ...]
    skipped: tuple[Skipped, ...]


def _committed(found: Inventory, linked: Chain) -> _Beside:
    samples = {(batch.run_id, batch.sequence) for batch in linked.batches}
    batches = [batch for batch in found.batches() if (batch.run_id, batch.sequence) in samples]
    return _Beside(tuple(batches), tuple(_files(found, batches)), found.skipped)


def _reported(found: Inventory, linked: Chain) -> _Beside:
    start = linked.batches[0].sampled_at
    batches = [batch for batch in found.batches() if batch.rows and batch.sampled_at > start]
    return _Beside(tuple(batches), tuple(_files(found, batches)), found.skipped)


def _sent(spark: "SparkSession", lake: Lake, reported: _Beside, linked: Chain) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    from kafka_rebalance.pipeline.metric_windows import metric_windows

    start, end = (F.lit(batch.sampled_at) for batch in (linked.batches[0], linked.batches[-1]))
    rows = _read(spark, lake, reported.files, METRICS_SPARK_SCHEMA)
    return metric_windows(rows.where(F.col("window_start").between(start - F.expr("interval 5 minutes"), end)))


def _consumed(spark: "SparkSession", lake: Lake, groups: _Beside, linked: Chain) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    from kafka_rebalance.pipeline.consumed_windows import consumed_windows

    start = linked.batches[0].sampled_at
    rows = _read(spark, lake, groups.files, COMMITS_SPARK_SCHEMA).where(F.col("sampled_at") >= F.lit(start))
    stored = {batch for manifest in groups.files for batch in manifest.batches if batch.sampled_at >= start}
    return consumed_windows(_without(rows, stored.difference(groups.batches)), linked.breaks)


def _files(found: Inventory, batches: Iterable[StoredBatch]) -> list[Manifest]:
    """The files with the batches, each batch from one file only."""
    wanted = set(batches)
    files: list[Manifest] = []
    for manifest in found.manifests:
        if not wanted.isdisjoint(manifest.batches):
            files.append(manifest)
            wanted.difference_update(manifest.batches)
    return files


def _read(spark: "SparkSession", lake: Lake, files: Iterable[Manifest], schema: str = SPARK_SCHEMA) -> "DataFrame":
    # Spark takes paths for patterns; a directory may be called [1].
    paths = [re.sub(r"([\[\]{}*?\\])", r"\\\1", f"{lake.spark_root}/{manifest.path}") for manifest in files]
    return spark.read.schema(schema).parquet(*paths)


def _rows(
    spark: "SparkSession", lake: Lake, found: Inventory, files: Sequence[Manifest], dropped: Iterable[StoredBatch]
) -> "DataFrame":
    """The rows of the window, without those of batches that were left out."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = _read(spark, lake, files)
    stored = {batch for manifest in files for batch in manifest.batches}
    if any(batch.sampled_at < found.start for batch in stored):
        rows = rows.where(F.col("sampled_at") >= F.lit(found.start))
    return _without(rows, stored.intersection(dropped))


def _without(rows: "DataFrame", batches: Iterable[StoredBatch]) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    for batch in sorted(batches, key=lambda batch: batch.sampled_at):
        rows = rows.where(
            ~((F.col("sampled_at") == F.lit(batch.sampled_at)) & (F.col("run_id") == F.lit(batch.run_id)))
        )
    return rows


def _listing(spark: "SparkSession", lake: Lake, found: Inventory, linked: Chain) -> "DataFrame":
    """From the newest batch, and for each broker that is missing in it the newest batch in which it answered."""
    from pyspark.sql import functions as F  # noqa: N812

    from kafka_rebalance.pipeline.partition_loads import listing

    newest = linked.batches[-1]
    silent = set(newest.missing_brokers)
    wanted = [newest]
    for batch in reversed(linked.batches):
        if not silent:
            break
        if not silent <= set(batch.missing_brokers):
            wanted.append(batch)
            silent &= set(batch.missing_brokers)
    files = _files(found, wanted)
    rows = _read(spark, lake, files).where(F.col("sampled_at").isin(*(batch.sampled_at for batch in wanted)))
    return listing(rows, newest.sampled_at, newest.missing_brokers, lists_silent=bool(newest.run_id))


def _nothing(cluster_id: str, found: Inventory) -> str:
    first = f"; {found.skipped[0].name}: {found.skipped[0].why}" if found.skipped else ""
    return (
        f"cluster {cluster_id}: none of {len(found.manifests) + len(found.skipped)} files has samples that can be used"
        f"{first}; run `kafka-rebalance pipeline sample`"
    )


_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
}


def _local_settings() -> dict[str, str]:
    """For one machine: this Python, few shuffle partitions, no web UI, loopback only, no separate job to list files."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's own default is another Python, without us
    quiet = resources.files("kafka_rebalance.pipeline") / "log4j2.properties"
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    }
