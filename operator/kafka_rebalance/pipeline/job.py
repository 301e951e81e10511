"""Runs the load model job: reads the files that the manifests name, stores the model.

The window ends at the newest sample that is not from the future; the reader of the model decides whether that is fresh
enough. Rows do not pass through this process.
"""

import hashlib
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import metadata
from typing import TYPE_CHECKING

from kafka_rebalance.errors import Refused
from kafka_rebalance.pipeline import broker_loads, model_file
from kafka_rebalance.pipeline.commits_schema import COMMITS_SPARK_SCHEMA
from kafka_rebalance.pipeline.coverage import Coverage, coverage, files_with
from kafka_rebalance.pipeline.lake import Lake, model_path
from kafka_rebalance.pipeline.lake_leftovers import UNFINISHED
from kafka_rebalance.pipeline.lake_tables import METRICS, OFFSETS
from kafka_rebalance.pipeline.metrics_schema import METRICS_SPARK_SCHEMA
from kafka_rebalance.pipeline.run_chain import Chain
from kafka_rebalance.pipeline.sample_manifests import Inventory, Manifest, Skipped, StoredBatch, inventory, verified
from kafka_rebalance.reasons import Reason
from kafka_rebalance.storage.locations import hadoop_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    stored_hours: int


def build(
    spark: "SparkSession",
    lake_uri: str,
    cluster_id: str,
    window: timedelta,
    now: datetime,
    *,
    use_stored: bool = True,
    by_broker: bool = False,
) -> JobOutcome:
    """Compute and store the model of one cluster. Raises Refused (NoSamples) if the lake has none that can be used.

    Hours whose windows are stored and still hold are not computed from samples again, unless ``use_stored`` is False.
    ``by_broker``: also store what each broker carries.
    """
    from pyspark import StorageLevel

    from kafka_rebalance.pipeline.broker_windows import broker_windows
    from kafka_rebalance.pipeline.forecast_step import with_forecasts
    from kafka_rebalance.pipeline.partition_listing import listing
    from kafka_rebalance.pipeline.partition_loads import estimates, loads
    from kafka_rebalance.pipeline.rate_windows import STORED_COLUMNS, windows, windows_between
    from kafka_rebalance.pipeline.sample_rows import open_samples, rows_of, stored_windows

    for name, value in hadoop_settings(lake_uri).items():
        spark.conf.set(name, value)
    lake = Lake.open(lake_uri)
    cover = coverage(lake, cluster_id, window, now, tuple(STORED_COLUMNS), use_stored=use_stored)
    linked = cover.linked
    if not linked.batches:
        raise Refused(Reason.NO_SAMPLES, no_samples(cluster_id, cover))
    used = cover.files(cover.open_batches())
    unfinished = f"{UNFINISHED}/{uuid.uuid4().hex}"
    groups = _committed(inventory(lake, cluster_id, window, now, OFFSETS), linked)
    reported = _reported(inventory(lake, cluster_id, window, now, METRICS), linked)
    newest = _newest(spark, lake, cover)
    last = linked.batches[-1]
    listed, forecast_lineage = with_forecasts(
        listing(newest, last.sampled_at, last.missing_brokers, lists_silent=bool(last.run_id)),
        lake,
        cluster_id,
        last,
        lambda files: rows_of(spark, lake, files),
        lambda hours: stored_windows(spark, lake, hours),
    )
    estimated = estimates(
        listed,
        windows(open_samples(spark, lake, cover, used), linked.breaks, stored_windows(spark, lake, cover.stored)),
        _consumed(spark, lake, groups, linked) if groups.batches else None,
        _sent(spark, lake, reported, linked) if reported.batches else None,
    )
    start, end = linked.batches[0].sampled_at, last.sampled_at
    beside = (*groups.files, *reported.files)
    hashes = {manifest.sha256 for manifest in (*used, *beside)}.union(*(hour.files for hour in cover.stored))
    skipped = (*cover.found.skipped, *groups.skipped, *reported.skipped)
    lineage = {
        "program": metadata.version("kafka-rebalance-operator"),
        "spark": spark.version,
        "files": len(hashes),
        "sha256": hashlib.sha256("".join(sorted(hashes)).encode()).hexdigest(),
        "skippedFiles": len(skipped),
        "runs": len({batch.run_id for batch in linked.batches}),
        "leftOutSamples": len(linked.dropped),
        "samplesOfGroups": len(groups.batches),
        "readsOfMetrics": len(reported.batches),
        "storedHours": len(cover.stored),
        **forecast_lineage,
    }
    if by_broker:
        estimated.persist(StorageLevel.DISK_ONLY)  # for both results: the samples are read and shuffled once
    try:
        loads(estimated).write.parquet(f"{lake.spark_root}/{unfinished}")
        described = model_file.header(cluster_id, start, end, len(linked.batches), lineage)
        data = model_file.packed(lake, unfinished, described)
        if by_broker:
            number = windows_between(start, end)
            summed = broker_windows(estimated, newest.select("broker").distinct(), number).collect()
            rows = [row.asDict(recursive=True) for row in summed]
            broker_loads.store(lake, cluster_id, broker_loads.broker_loads(rows, number, data), described)
        lake.write(model_path(cluster_id), data)
    finally:
        if by_broker:
            estimated.unpersist()
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
        stored_hours=len(cover.stored),
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
    return _Beside(tuple(batches), tuple(files_with(found.manifests, batches)), found.skipped)


def _reported(found: Inventory, linked: Chain) -> _Beside:
    start = linked.batches[0].sampled_at
    batches = [batch for batch in found.batches() if batch.rows and batch.sampled_at > start]
    return _Beside(tuple(batches), tuple(files_with(found.manifests, batches)), found.skipped)


def _sent(spark: "SparkSession", lake: Lake, reported: _Beside, linked: Chain) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    from kafka_rebalance.pipeline.metric_windows import metric_windows
    from kafka_rebalance.pipeline.sample_rows import rows_of

    start, end = (F.lit(batch.sampled_at) for batch in (linked.batches[0], linked.batches[-1]))
    rows = rows_of(spark, lake, reported.files, METRICS_SPARK_SCHEMA)
    return metric_windows(rows.where(F.col("window_start").between(start - F.expr("interval 5 minutes"), end)))


def _consumed(spark: "SparkSession", lake: Lake, groups: _Beside, linked: Chain) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    from kafka_rebalance.pipeline.consumed_windows import consumed_windows
    from kafka_rebalance.pipeline.sample_rows import rows_of, without

    start = linked.batches[0].sampled_at
    rows = rows_of(spark, lake, groups.files, COMMITS_SPARK_SCHEMA).where(F.col("sampled_at") >= F.lit(start))
    stored = {batch for manifest in groups.files for batch in manifest.batches if batch.sampled_at >= start}
    return consumed_windows(without(rows, stored.difference(groups.batches)), linked.breaks)


def _newest(spark: "SparkSession", lake: Lake, cover: Coverage) -> "DataFrame":
    """The newest batch, and for each broker that is missing in it the newest batch in which it answered."""
    from pyspark.sql import functions as F  # noqa: N812

    from kafka_rebalance.pipeline.sample_rows import rows_of

    newest = cover.linked.batches[-1]
    silent = set(newest.missing_brokers)
    wanted, files = [newest], cover.files([newest])
    for batch in reversed(cover.linked.batches):
        if not silent:
            break
        if silent <= set(batch.missing_brokers):
            continue
        # A file of a stored hour has not been compared with its hash yet, or its samples have expired.
        found = cover.files([batch]) or verified(lake, files_with(cover.listed.manifests, [batch]))[0]
        if found:
            wanted.append(batch)
            files += [manifest for manifest in found if manifest not in files]
            silent &= set(batch.missing_brokers)
    return rows_of(spark, lake, files).where(F.col("sampled_at").isin(*(batch.sampled_at for batch in wanted)))


def no_samples(cluster_id: str, cover: Coverage) -> str:
    """Why there is nothing to compute."""
    found = cover.found
    first = f"; {found.skipped[0].name}: {found.skipped[0].why}" if found.skipped else ""
    return (
        f"cluster {cluster_id}: none of {len(found.manifests) + len(found.skipped)} files has samples that can be used"
        f"{first}; run `kafka-rebalance pipeline sample`"
    )
