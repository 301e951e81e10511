"""Runs the load model job: starts Spark, reads the files that the manifests name, stores the model.

The compact artefact is written last and atomically: a reader sees the old model or the new one. The window ends at the
newest sample, whatever the time is now; the reader of the model decides whether that is fresh enough.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import TYPE_CHECKING

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.load_artifact import SOURCE, render_load_model
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.pipeline import lake as lakes
from kafka_rebalance.pipeline.schema import SPARK_SCHEMA
from kafka_rebalance.reasons import Reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCAL_MASTER = "local[*]"


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The result of one run for one cluster, and what it could not use."""

    model: LoadModel
    artefact: str
    table: str
    missing_files: int
    partial_batches: int

    @property
    def unknown_rates(self) -> int:
        """Partitions without two samples that could be compared."""
        return sum(load.bytes_in_per_second is None for load in self.model.partitions.values())


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


def build(spark: "SparkSession", lake_uri: str, cluster_id: str, window: timedelta) -> JobOutcome:
    """Compute and store the model of one cluster. Raises Refused (NoSamples) if the lake has none."""
    lake = lakes.Lake.open(lake_uri)
    named = lakes.manifests(lake, cluster_id, window)
    usable = lakes.intact(lake, named)
    batches = [manifest for manifest in usable if manifest.rows]
    if not batches:
        raise Refused(
            Reason.NO_SAMPLES,
            f"cluster {cluster_id}: none of {len(named)} batches has rows and a file of the size that was written; run "
            "`kafka-rebalance pipeline sample`",
        )
    samples = spark.read.schema(SPARK_SCHEMA).parquet(*(f"{lake.spark_root}/{manifest.path}" for manifest in batches))
    start, end = batches[0].sampled_at, batches[-1].sampled_at
    table = f"load-model/cluster={lakes.safe(cluster_id)}/{lakes.stamp(start)}-{lakes.stamp(end)}"
    model = LoadModel(
        source=SOURCE,
        measured_at=end,
        partitions=_compute(samples, f"{lake.spark_root}/{table}"),
        cluster_id=cluster_id,
        window_start=start,
        samples=len({manifest.sampled_at for manifest in batches}),
    )
    artefact = lakes.model_path(cluster_id)
    lake.write(artefact, render_load_model(model))
    return JobOutcome(
        model=model,
        artefact=artefact,
        table=table,
        missing_files=len(named) - len(usable),
        partial_batches=sum(bool(manifest.missing_brokers) for manifest in batches),
    )


def chosen_clusters(lake_uri: str, wanted: Sequence[str]) -> list[str]:
    """``wanted``, or all clusters of the lake. Raises Refused (NoSamples) with the clusters that have samples."""
    found = lakes.clusters(lakes.Lake.open(lake_uri))
    unknown = sorted(set(wanted) - set(found))
    if unknown or not found:
        there = ", ".join(found) or "none"
        asked = ", ".join(unknown) or "any cluster"
        raise Refused(Reason.NO_SAMPLES, f"the lake has no samples of {asked}; clusters with samples: {there}")
    return list(wanted) or found


def _compute(samples: "DataFrame", table: str) -> dict[TopicPartition, PartitionLoad]:
    """Run the job once: its output is the Parquet table, from which the artefact is made."""
    from kafka_rebalance.pipeline.load_model import load_model

    result = load_model(samples).repartition(1).sortWithinPartitions("topic", "partition")
    result.write.mode("overwrite").parquet(table)
    rows = samples.sparkSession.read.parquet(table).toLocalIterator()
    return {
        TopicPartition(row.topic, row.partition): PartitionLoad(
            size_bytes=row.size_bytes,
            bytes_in_per_second=row.bytes_in_per_second,
            bytes_in_p95=row.bytes_in_p95,
            bytes_in_max=row.bytes_in_max,
            covered_seconds=row.covered_seconds,
            topic_id=row.topic_id,
        )
        for row in rows
    }


_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
}


def _local_settings() -> dict[str, str]:
    """For one machine: few shuffle partitions, no web UI, loopback only, no separate job to list files."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = resources.files("kafka_rebalance.pipeline") / "log4j2.properties"
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    }


def as_utc(moment: datetime | None) -> str:
    """A time for people; ``-`` if there is none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ") if moment else "-"
