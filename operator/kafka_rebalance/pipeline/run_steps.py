"""From the steps of ended runs to one shape per run, as Spark column expressions.

A run counts if the operator has seen all of it, and if neither its limits nor a rate changed while it ran: only then is
it known what limited it. Spark returns only the busiest pipes of each run, not its steps.
"""

import re
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from kafka_rebalance.model.run_shape import Flow, RunShape
from kafka_rebalance.pipeline.duration_fit import FEWEST_RUNS, PastRun
from kafka_rebalance.pipeline.lake import Lake, named_in
from kafka_rebalance.storage.locations import path_segment
from kafka_rebalance.storage.run_history import MOST_RUNS, VERSION

_BUSIEST = 16
_RUN = ("run_id", "ended_micros", "active_seconds", "parallel_partitions")


def clusters_with_runs(lake: Lake) -> list[str]:
    """The ids of the clusters that have a history."""
    return named_in(lake, "steps")


def enough_since(lake: Lake, cluster_id: str) -> datetime:
    """When the run was stored with which the cluster had enough runs; now if that is not known."""
    try:
        files = run_files(lake, cluster_id)
        at = lake.written_at(files[FEWEST_RUNS - 1]) if len(files) >= FEWEST_RUNS else None
    except OSError:  # what fails for one cluster does not stop the others: the Job finds out when it begins with it
        at = None
    return at or datetime.now(UTC)


def run_files(lake: Lake, cluster_id: str) -> list[str]:
    """The files of the runs that are learnt from, oldest first."""
    place = f"steps/cluster={path_segment(cluster_id)}"
    files = [f"{place}/{day}/{name}" for day in lake.names(place) for name in lake.names(f"{place}/{day}")]
    return [file for file in files if file.endswith(".parquet")][-MOST_RUNS:]


def past_runs(spark: SparkSession, lake: Lake, cluster_id: str) -> tuple[list[PastRun], int]:
    """The runs that can be learnt from, oldest first; and how many were looked at."""
    newest = run_files(lake, cluster_id)
    if not newest:
        return [], 0
    # Spark takes paths for patterns; a directory may be called [1].
    paths = [re.sub(r"([\[\]{}*?\\])", r"\\\1", f"{lake.spark_root}/{file}") for file in newest]
    steps = spark.read.parquet(*paths).where(F.col("version") == VERSION)
    steps = steps.withColumn("ended_micros", F.unix_micros("run_ended_at"))  # Spark's own datetimes have no zone
    found = _runs(steps).join(_pipes(steps), "run_id").orderBy("ended_micros")
    return [_past_run(row.asDict(recursive=True)) for row in found.collect()], len(newest)


def _runs(steps: DataFrame) -> DataFrame:
    """Each step by its slowest side: the leader sends every copy, each destination fetches one."""
    one = F.col("bytes_copied") / F.size("destinations")
    out, into = F.col("bytes_copied") / F.col("leader_rate"), one / F.col("follower_rate")
    by_leader = F.coalesce(out, F.lit(0.0)) >= F.coalesce(into, F.lit(0.0))
    sides = steps.select(
        *_RUN,
        F.when(by_leader, F.col("leader_rate")).otherwise(F.col("follower_rate")).alias("rate"),
        F.when(by_leader, F.col("bytes_copied").cast("double")).otherwise(one).alias("amount"),
        (F.col("complete") & ~F.col("limits_changed") & ~F.col("rate_changed")).alias("usable"),
    )
    by_rate = sides.groupBy(*_RUN, "rate").agg(
        F.sum("amount").alias("amount"), F.count("*").alias("steps"), F.min("usable").alias("usable")
    )
    runs = by_rate.groupBy(*_RUN).agg(
        F.collect_list(F.struct("amount", "rate")).alias("alone"),
        F.sum("steps").alias("steps"),
        F.min("usable").alias("usable"),
    )
    return runs.where("usable and active_seconds > 0")


def _pipes(steps: DataFrame) -> DataFrame:
    columns = ("run_id", "side", "broker", "rate", "amount")
    each = F.col("bytes_copied") / F.size("destinations")
    out = steps.where("source is not null").select(
        "run_id", F.lit("out"), "source", "leader_rate", F.col("bytes_copied").cast("double")
    )
    into = steps.select("run_id", F.lit("in"), F.explode("destinations"), "follower_rate", each)
    summed = out.toDF(*columns).unionByName(into.toDF(*columns)).groupBy(*columns[:-1])
    # Without a throttle, the one with the most bytes is the busiest.
    seconds = F.coalesce(F.col("amount") / F.col("rate"), F.col("amount"))
    rows = F.array_sort(F.collect_list(F.struct((-seconds).alias("order"), "amount", "rate")))
    return summed.agg(F.sum("amount").alias("amount")).groupBy("run_id").agg(F.slice(rows, 1, _BUSIEST).alias("pipes"))


def _past_run(row: dict[str, Any]) -> PastRun:
    pipes, alone = (tuple(Flow(flow["amount"], flow["rate"]) for flow in row[name]) for name in ("pipes", "alone"))
    parallel = max(1, min(row["parallel_partitions"], row["steps"]))
    ended_at = datetime.fromtimestamp(row["ended_micros"] / 1e6, UTC)
    return PastRun(RunShape(pipes, alone, row["steps"], parallel), row["active_seconds"], ended_at)
