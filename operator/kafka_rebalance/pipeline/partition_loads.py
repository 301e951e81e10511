"""From windows and the newest listing to one row per partition, as Spark column expressions.

The columns are those of the artefact. Nothing here starts Spark, opens files or runs Python per row.
"""

from datetime import datetime
from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from kafka_rebalance.pipeline.rate_windows import WINDOW_SECONDS, leads, partition_key

_MICROS = 1e6
_DECIMALS = 3  # finer than offsets can tell; makes the model independent of the order in which Spark sums
_VALID_MICROS = WINDOW_SECONDS * 1_000_000 // 2
_MOST_DELETED = 5.0
"""If more was deleted than this times what came in, an error in what was deleted hides what came in."""
_DIRECTIONS = ("in", "out")
_STATISTICS = ("mean", "p50", "p95", "p99", "max")


class Method(StrEnum):
    """How the bytes of a partition came about; from the most to the least certain."""

    EXACT = "Exact"
    MARGINAL = "Marginal"
    HELD_MEAN = "HeldMean"
    UNKNOWN = "Unknown"


def listing(rows: DataFrame, newest: datetime, missing: tuple[int, ...], *, lists_silent: bool) -> DataFrame:
    """The partitions of the newest sample with the sizes of their replicas, by ``k``.

    ``rows`` are those of the newest sample, and older ones of the brokers ``missing`` in it, whose last known sizes
    count. ``lists_silent``: the newest sample has rows of replicas on brokers that did not answer.
    """
    present = F.col("sampled_at") == F.lit(newest)
    silent = F.col("broker").isin(*missing) if missing else F.lit(False)
    replicas = (
        rows.where(F.col("topic").isNotNull() & (present | silent))
        .select(partition_key().alias("k"), "*", present.alias("present"), leads().alias("leads"))
        .groupBy("k", "topic", "topic_id", "partition", "broker")
        .agg(
            F.max("present").alias("present"),
            F.max_by("size_bytes", F.when(F.col("size_bytes").isNotNull(), F.col("sampled_at"))).alias("bytes"),
            F.max_by("leads", "sampled_at").alias("leads"),
        )
    )
    listed = F.col("present") if lists_silent else F.lit(True)
    known = listed & F.col("bytes").isNotNull()
    of_leader, largest = F.max(F.when(known & F.col("leads"), F.col("bytes"))), F.max(F.when(known, F.col("bytes")))
    by_broker = F.array_sort(F.collect_list(F.when(known, F.struct("broker", "bytes"))))
    return (
        replicas.groupBy("k", "topic", "topic_id", "partition")
        .agg(
            F.max("present").alias("present"),
            by_broker.alias("replicas"),
            F.coalesce(of_leader, largest).alias("size_bytes"),
        )
        .where("present and size_bytes is not null")
    )


def loads(listed: DataFrame, windows: DataFrame) -> DataFrame:
    """One row per listed partition, sorted by topic and partition, in one part. Rates that are not known are null."""
    joined = listed.join(_rates(windows), on="k", how="left")
    unknown = F.lit(None).cast("double")
    return (
        joined.select(
            "topic",
            "partition",
            "topic_id",
            "size_bytes",
            F.col("replicas.broker").alias("replica_brokers"),
            F.col("replicas.bytes").alias("replica_bytes"),
            *(F.round(name, _DECIMALS).alias(f"bytes_in_{name}") for name in _STATISTICS),
            *(unknown.alias(f"bytes_out_{name}") for name in _STATISTICS),
            F.coalesce(F.round(F.col("micros") / _MICROS, _DECIMALS), F.lit(0.0)).alias("covered_seconds"),
            F.coalesce("windows", F.lit(0)).cast("int").alias("windows"),
            F.coalesce("method", F.lit(Method.UNKNOWN.value)).alias("method"),
            F.round("growth", _DECIMALS).alias("growth_bytes_per_second"),
        )
        .repartition(1)
        .sortWithinPartitions("topic", "partition")
    )


def _rates(windows: DataFrame) -> DataFrame:
    """Per partition: the statistics of its windows, and how they came about."""
    window = F.struct("micros", "dense", "grown", "grown_records", "other_records", "largest_record")
    partitions = windows.groupBy("k").agg(
        F.collect_list(window).alias("found"),
        *(F.sum(name).alias(name) for name in ("grown", "grown_records", "other_records", "size_change", "deleted")),
        *(F.sum(name).alias(name) for name in ("grown_pairs", "shrunk_pairs")),
        F.max("partial_log").alias("partial_log"),
        F.min_by("first_held", "w").alias("first_held"),
        F.min_by("first_held_mean", "w").alias("first_held_mean"),
        F.max_by("last_held_mean", "w").alias("last_held_mean"),
        F.regr_slope("size", F.col("w") * WINDOW_SECONDS).alias("growth"),
    )
    hidden = F.col("partial_log") | (F.col("shrunk_pairs") > 0)
    grown_record = F.when(F.col("grown_records") > 0, F.col("grown") / F.col("grown_records"))
    estimated = (
        partitions.withColumn("hidden", hidden)
        .withColumn("grown_record", F.when(~F.col("hidden"), grown_record))
        .withColumn(
            "record", F.when(F.col("hidden"), _largest_records()).otherwise(F.coalesce(grown_record, _balance()))
        )
        .withColumn("found", F.transform("found", _with_rate))
        .withColumn("known", F.filter("found", lambda window: window["bytes"].isNotNull()))
    )
    total = F.aggregate("known", F.lit(0.0), lambda sum_, window: sum_ + window["bytes"])
    micros = F.aggregate("known", F.lit(0).cast("bigint"), lambda sum_, window: sum_ + window["micros"])
    rates = F.array_sort(
        F.transform(
            F.filter("known", lambda window: window["dense"] >= _VALID_MICROS),
            lambda window: window["bytes"] / (window["micros"] / _MICROS),
        )
    )
    summed = (
        estimated.where(F.size("known") > 0)
        .withColumns({"micros": micros, "rates": rates})
        .withColumn("mean", total / (F.col("micros") / _MICROS))
    )
    worst = F.array_max(F.transform("known", lambda window: window["rank"]))
    return summed.select(
        "k",
        "micros",
        "mean",
        *(_quantile(share).alias(name) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))),
        F.size("rates").alias("windows"),
        F.element_at(F.array(*(F.lit(method.value) for method in Method)), worst).alias("method"),
        "growth",
    )


def _quantile(share: float) -> Column:
    """By nearest rank. Without a window of which half is known, the mean is all that can be said."""
    count = F.size("rates")
    return F.when(count > 0, F.element_at("rates", F.ceil(count * F.lit(share)).cast("int"))).otherwise(F.col("mean"))


def _with_rate(window: Column) -> Column:
    """Bytes of a window, and the rank of the method in `Method`.

    Records whose growth is not known have the size of those of the same window that is known, else of the partition's.
    """
    all_records = window["grown_records"] + window["other_records"]
    here = F.when(window["grown_records"] > 0, window["grown"] / window["grown_records"])
    record = F.coalesce(here, F.col("record"))
    plain = F.when(window["other_records"] > 0, window["grown"] + window["other_records"] * record).otherwise(
        window["grown"].cast("double")
    )
    by_hidden = F.when(all_records > 0, all_records * F.col("record")).otherwise(0.0)
    certain = F.when(F.col("hidden"), all_records == 0).otherwise(window["other_records"] == 0)
    marginal = F.col("hidden") | here.isNotNull() | F.col("grown_record").isNotNull()
    return F.struct(
        window["micros"].alias("micros"),
        window["dense"].alias("dense"),
        F.when(F.col("hidden"), by_hidden).otherwise(plain).alias("bytes"),
        F.when(certain, 1).when(marginal, 2).otherwise(3).alias("rank"),
    )


def _largest_records() -> Column:
    """Of a compacted or tiered log: bytes per record in the intervals in which nothing was taken away.

    Removal makes the growth of an interval too small, never too large: so the largest of each window, of these the
    median. Null if something was taken away in two of three intervals or more.
    """
    each = F.array_sort(
        F.filter(F.transform("found", lambda window: window["largest_record"]), lambda record: record.isNotNull())
    )
    middle = F.element_at(each, F.ceil(F.size(each) / 2).cast("int"))
    return F.when((2 * F.col("grown_pairs") > F.col("shrunk_pairs")) & (F.size(each) > 0), middle)


def _balance() -> Column:
    """Bytes per record where the start offset always moves: what came in is the change of the size plus what went.

    What went has the mean size of the records that were held at the first sample. If those are all gone, the records
    held at the end all came in.
    """
    deleted = F.col("deleted") * F.coalesce("first_held_mean", F.lit(0.0))
    came = F.col("size_change") + deleted
    records = F.col("grown_records") + F.col("other_records")
    trusted = (came > 0) & (deleted <= _MOST_DELETED * came)
    return F.when(F.col("deleted") <= F.col("first_held"), F.when((records > 0) & trusted, came / records)).otherwise(
        F.coalesce("last_held_mean", "first_held_mean")
    )
