"""Follows the manifests of the lake with Structured Streaming, and stores the windows of each hour once it is complete.

The stream sees names of manifests, never rows: their times move the watermark, and Spark emits an hour when the
watermark has passed its end. Then `store_windows` stores what is missing in the lake, which gives the same for the same
samples. So a batch that is repeated, because the stream was killed, changes nothing.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import unquote

from kafka_rebalance.model.load_artifact import CLOCK_SKEW
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.sample_rows import literal
from kafka_rebalance.pipeline.window_job import WindowsOutcome, store_windows
from kafka_rebalance.pipeline.windows_room import WindowsRoom
from kafka_rebalance.storage.locations import hadoop_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CONTEXT = timedelta(hours=24)
"""The time before an hour whose samples distinguish samplers that run at the same time, as for a load model."""


def follow(
    spark: "SparkSession",
    lake_uri: str,
    lateness: timedelta,
    every: timedelta | None,
    stored: Callable[[WindowsOutcome], None],
    for_each: Callable[[Sequence[str], Callable[[str], None]], object],
) -> "StreamingQuery":
    """Start the stream: a batch each ``every``, or (None) until all manifests that are there have been followed.

    ``for_each`` calls a function for each of some clusters. An error that it passes on ends the stream, and the next
    one begins with the same batch.

    ``lateness``: how much later than newer samples a sample may be found. A later sample is added with the next hour of
    its cluster, if that is within a day; a load model always sees it.
    """
    for name, value in hadoop_settings(lake_uri).items():
        spark.conf.set(name, value)
    lake = Lake.open(lake_uri)

    def store(batch: "DataFrame", number: int) -> None:  # noqa: ARG001 - Spark passes it
        rows = batch.groupBy("cluster").min("hour").collect()  # one for each cluster
        since = {unquote(unquote(row["cluster"])): datetime.fromtimestamp(row["min(hour)"], UTC) for row in rows}

        room = WindowsRoom(lake)

        def of_cluster(cluster_id: str) -> None:
            now = datetime.now(UTC)
            window = now - since[cluster_id] + CONTEXT
            stored(store_windows(batch.sparkSession, lake_uri, cluster_id, window, now, room))

        for_each(list(since), of_cluster)

    checkpoint = f"{lake.spark_root}/checkpoints/windows"
    writer = _hours(spark, lake, lateness).writeStream.outputMode("append").foreachBatch(store)
    writer = writer.option("checkpointLocation", checkpoint)
    if every is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{round(every.total_seconds())} seconds").start()


def _hours(spark: "SparkSession", lake: Lake, lateness: timedelta) -> "DataFrame":
    """Hours that the watermark has passed, by cluster. Manifests from the future do not move it."""
    from pyspark.sql import functions as F  # noqa: N812

    manifests = spark.readStream.schema("value string").option("wholetext", "true")
    path = F.col("_metadata.file_path")
    at = F.to_timestamp(F.regexp_extract(path, r"/(\d{8}T\d{6})\.[^/]*$", 1), "yyyyMMdd'T'HHmmss")
    return (
        manifests.text(f"{literal(lake.spark_root)}/manifests/cluster=*/date=*/*.json")
        .select(F.regexp_extract(path, r"/cluster=([^/]*)/date=", 1).alias("cluster"), at.alias("at"))
        .where(F.col("at") <= F.current_timestamp() + F.expr(f"INTERVAL {round(CLOCK_SKEW.total_seconds())} SECONDS"))
        .withWatermark("at", f"{round(lateness.total_seconds())} seconds")
        .groupBy("cluster", F.window("at", "1 hour").alias("hours"))
        .count()
        .select("cluster", F.unix_timestamp("hours.start").alias("hour"))
    )
