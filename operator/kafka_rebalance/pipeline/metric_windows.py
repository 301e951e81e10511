"""From the metrics of topics and brokers to the bytes out of partitions, as Spark column expressions.

Brokers report what they send of a topic, not of its partitions. In each window of five minutes it is divided among the
partitions that the broker leads, in proportion to their bytes in. A window of a topic counts only if nothing is left to
guess: see `shared`.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from kafka_rebalance.pipeline.rate_windows import WINDOW_SECONDS

_MICROS = 1_000_000
_PLACED = 0.99
"""Part of a topic's bytes out that brokers report that lead partitions of it; the rest is an error of measurement."""


def metric_windows(metrics: DataFrame) -> DataFrame:
    """Bytes out per second by ``topic``, ``broker`` and window ``w``, and of the ``whole`` topic."""
    window = F.expr(f"unix_micros(window_start) div {WINDOW_SECONDS * _MICROS}")
    out = F.coalesce("bytes_out", F.when(F.col("bytes_in").isNotNull(), 0.0))
    # If a window was read twice, the later value counts.
    once = metrics.groupBy(window.alias("w"), "topic", "broker").agg(F.max_by(out, "read_at").alias("sent"))
    return once.withColumn("whole", F.sum("sent").over(Window.partitionBy("w", "topic")))


def shared(known: DataFrame, metrics: DataFrame) -> DataFrame:
    """``known``: one row per partition ``k`` of a ``topic`` with ``partitions``, and window ``w`` with its ``leader``
    (null: it changed) and bytes in per second ``rate``. One row per ``k`` and ``w`` with its ``sent`` per second.

    A window counts only if all partitions of the topic are known in it, each under one leader, and their leaders report
    all that is sent: otherwise the share of a partition is not known. It is also not known if nothing came in to any of
    several partitions, but something was read.
    """
    of_topic, of_leader = Window.partitionBy("w", "topic"), Window.partitionBy("w", "topic", "leader")
    whole = known.withColumn("here", F.count("leader").over(of_topic)).where(F.col("here") == F.col("partitions"))
    led = whole.withColumns({"total": F.sum("rate").over(of_leader), "led": F.count("k").over(of_leader)})
    found = led.join(metrics.withColumnRenamed("broker", "leader"), on=["w", "topic", "leader"])
    placed = F.sum("sent_here").over(of_topic)
    parts = found.withColumn("sent_here", F.col("sent") / F.col("led")).withColumn("placed", placed)
    return parts.where(F.col("placed") >= _PLACED * F.col("whole")).select("k", "w", _share().alias("sent"))


def _share() -> Column:
    return (
        F.when((F.col("sent") == 0) | (F.col("led") == 1), F.col("sent"))
        .when(F.col("total") > 0, F.col("sent") * F.col("rate") / F.col("total"))
        .otherwise(F.lit(None))
    )
