"""From windows and the newest listing to one row per partition, as Spark column expressions.

The columns are those of the artefact. Nothing here starts Spark, opens files or runs Python per row.
"""

from datetime import datetime
from enum import StrEnum

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from kafka_rebalance.pipeline.metric_windows import shared
from kafka_rebalance.pipeline.rate_windows import WINDOW_SECONDS, leads, partition_key
from kafka_rebalance.pipeline.size_forecasts import COLUMNS as FORECASTS

_MICROS = 1e6
_DECIMALS = 3  # finer than offsets can show; makes the model independent of the order in which Spark sums
_VALID_MICROS = WINDOW_SECONDS * 1_000_000 // 2
_MOST_DELETED = 5.0
"""If more was deleted than this times what came in, an error in what was deleted hides what came in."""
_FEW_OLD = 0.01
"""Up to this share of what groups read, records of before the first sample matter no more than other errors do."""
_WAYS = ("in", "out")
_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
_STATISTICS = ("mean", *_SHARES)
_CONSUMED = {"out_micros": "bigint", "out_dense": "bigint", "old_records": "double", "new_records": "double"}


class Method(StrEnum):
    """How the bytes of a partition came about; from the most to the least certain."""

    EXACT = "Exact"
    MARGINAL = "Marginal"
    HELD_MEAN = "HeldMean"
    METRIC = "Metric"
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


def loads(
    listed: DataFrame, windows: DataFrame, consumed: DataFrame | None = None, metrics: DataFrame | None = None
) -> DataFrame:
    """One row per listed partition, sorted by topic and partition, in one part. Rates that are not known are null.

    ``listed`` may have forecasts of the sizes. ``consumed``: windows of what consumer groups read (`consumed_windows`).
    ``metrics``: of what brokers sent (`metric_windows`).
    """
    estimated = _estimated(windows, consumed)
    if metrics is not None:
        estimated = _with_metrics(estimated, listed, metrics)
    joined = listed.join(_rates(estimated), on="k", how="left")
    return (
        joined.select(
            "topic",
            "partition",
            "topic_id",
            "size_bytes",
            F.col("replicas.broker").alias("replica_brokers"),
            F.col("replicas.bytes").alias("replica_bytes"),
            *(
                F.round(f"{way}_{name}", _DECIMALS).alias(f"bytes_{way}_{name}")
                for way in _WAYS
                for name in _STATISTICS
            ),
            _seconds("in_micros").alias("covered_seconds"),
            F.coalesce("in_windows", F.lit(0)).cast("int").alias("windows"),
            F.coalesce("in_method", F.lit(Method.UNKNOWN.value)).alias("method"),
            F.round("growth", _DECIMALS).alias("growth_bytes_per_second"),
            _seconds("out_micros").alias("bytes_out_covered_seconds"),
            F.coalesce("out_method", F.lit(Method.UNKNOWN.value)).alias("bytes_out_method"),
            *(name for name in FORECASTS if name in listed.columns),
        )
        .repartition(1)
        .sortWithinPartitions("topic", "partition")
    )


def _seconds(micros: str) -> Column:
    return F.coalesce(F.round(F.col(micros) / _MICROS, _DECIMALS), F.lit(0.0))


def _estimated(windows: DataFrame, consumed: DataFrame | None) -> DataFrame:
    """Per partition ``k``: its windows with their bytes, in and out."""
    if consumed is None:
        both = windows.withColumns({name: F.lit(None).cast(kind) for name, kind in _CONSUMED.items()})
    else:
        both = windows.join(consumed, on=["k", "w"], how="full")
    grown_record = F.when(F.col("grown_records") > 0, F.col("grown") / F.col("grown_records"))
    return (
        _partitions(both)
        .withColumn("grown_record", F.when(~F.col("hidden"), grown_record))
        .withColumn(
            "record", F.when(F.col("hidden"), _largest_records()).otherwise(F.coalesce(grown_record, _balance()))
        )
        .withColumn("reads_old", F.col("old_records") > _FEW_OLD * (F.col("old_records") + F.col("new_records")))
        .withColumn("known_in", F.transform("found", _with_rate))
        .withColumn("known_out", F.transform("found_out", _with_rate_out))
        .select("k", "growth", *(_with_bytes(f"known_{way}").alias(f"known_{way}") for way in _WAYS))
    )


def _with_bytes(windows: str) -> Column:
    return F.filter(windows, lambda window: window["bytes"].isNotNull())


def _with_metrics(estimated: DataFrame, listed: DataFrame, metrics: DataFrame) -> DataFrame:
    """With the bytes out that brokers reported, where they cover at least half of what the offsets of groups cover."""
    partitions = Window.partitionBy("topic")
    known = (
        listed.select("k", "topic", F.count("k").over(partitions).alias("partitions"))
        .join(estimated, on="k")
        .select("k", "topic", "partitions", F.explode("known_in").alias("in"))
        .where(F.col("in.micros") >= _VALID_MICROS)
        .select("k", "topic", "partitions", "in.w", "in.leader", _rate(F.col("in")).alias("rate"))
    )
    window = F.struct(
        F.lit(WINDOW_SECONDS * int(_MICROS)).cast("bigint").alias("micros"),
        F.lit(WINDOW_SECONDS * int(_MICROS)).cast("bigint").alias("dense"),
        (F.col("sent") * WINDOW_SECONDS).alias("bytes"),
        F.lit(list(Method).index(Method.METRIC) + 1).alias("rank"),
    )
    sent = shared(known, metrics).where("sent is not null").groupBy("k").agg(F.collect_list(window).alias("metric"))
    better = F.size("metric") * WINDOW_SECONDS * _MICROS >= _micros("known_out") / 2
    return estimated.join(sent, on="k", how="left").withColumn(
        "known_out", F.when(F.col("metric").isNotNull() & better, F.col("metric")).otherwise(F.col("known_out"))
    )


def _micros(windows: str) -> Column:
    return F.aggregate(windows, F.lit(0).cast("bigint"), lambda sum_, window: sum_ + window["micros"])


def _rate(window: Column) -> Column:
    return window["bytes"] / (window["micros"] / _MICROS)


def _rates(estimated: DataFrame) -> DataFrame:
    """Per partition: the statistics of its windows, and how they came about."""
    for way in _WAYS:
        estimated = _summed(estimated, way)
    return estimated.select(
        "k",
        F.when(F.col("in_micros") > 0, F.col("growth")).alias("growth"),
        *(f"{way}_{name}" for way in _WAYS for name in ("micros", "windows", "method", *_STATISTICS)),
    )


def _partitions(windows: DataFrame) -> DataFrame:
    """What the estimates need of all windows of a partition. ``hidden``: its growth does not show what came in."""
    sampled = F.col("micros").isNotNull()
    in_order = F.when(sampled, F.col("w"))
    leader = F.when(F.col("lowest_leader") == F.col("highest_leader"), F.col("lowest_leader")).alias("leader")
    found = F.struct("w", leader, "micros", "dense", "grown", "grown_records", "other_records", "largest_record")
    sums = ("grown", "grown_records", "other_records", "size_change", "deleted", "grown_pairs", "shrunk_pairs")
    partitions = windows.groupBy("k").agg(
        F.collect_list(F.when(sampled, found)).alias("found"),
        F.collect_list(F.when(F.col("out_micros").isNotNull(), F.struct(*_CONSUMED, "grown", "grown_records"))).alias(
            "found_out"
        ),
        *(F.sum(name).alias(name) for name in (*sums, "old_records", "new_records")),
        F.max("partial_log").alias("partial_log"),
        F.min_by("first_held", in_order).alias("first_held"),
        F.min_by("first_held_mean", in_order).alias("first_held_mean"),
        F.max_by("last_held_mean", in_order).alias("last_held_mean"),
        F.regr_slope("size", F.col("w") * WINDOW_SECONDS).alias("growth"),
    )
    return partitions.withColumn("hidden", F.coalesce(F.col("partial_log") | (F.col("shrunk_pairs") > 0), F.lit(True)))


def _summed(partitions: DataFrame, way: str) -> DataFrame:
    """The statistics of the windows ``known_<way>`` whose bytes are known."""
    known, rates = f"known_{way}", f"rates_{way}"
    total = F.aggregate(known, F.lit(0.0), lambda sum_, window: sum_ + window["bytes"])
    dense = F.array_sort(F.transform(F.filter(known, lambda window: window["dense"] >= _VALID_MICROS), _rate))
    worst = F.array_max(F.transform(known, lambda window: window["rank"]))
    mean = F.col(f"{way}_mean")
    return (
        partitions.withColumns({f"{way}_micros": F.when(F.size(known) > 0, _micros(known)), rates: dense})
        .withColumn(f"{way}_mean", total / (F.col(f"{way}_micros") / _MICROS))
        .withColumns(
            {f"{way}_{name}": _quantile(rates, share, mean) for name, share in _SHARES.items()}
            | {
                f"{way}_windows": F.size(rates),
                f"{way}_method": F.element_at(F.array(*(F.lit(method.value) for method in Method)), worst),
            }
        )
    )


def _quantile(rates: str, share: float, mean: Column) -> Column:
    """By nearest rank. If no window is at least half covered, the mean stands for all statistics."""
    count = F.size(rates)
    return F.when(count > 0, F.element_at(rates, F.ceil(count * F.lit(share)).cast("int"))).otherwise(mean)


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
        window["w"].alias("w"),
        window["leader"].alias("leader"),
        window["micros"].alias("micros"),
        window["dense"].alias("dense"),
        F.when(F.col("hidden"), by_hidden).otherwise(plain).alias("bytes"),
        F.when(certain, 1).when(marginal, 2).otherwise(3).alias("rank"),
    )


def _with_rate_out(window: Column) -> Column:
    """Bytes that groups read in a window, and the rank of the method in `Method`.

    Records from before the first sample have the mean size of the records in the log at that time. Newer ones have the
    size of the records that came in, in the same window if it is known. If a log does not hold all its records, the
    size of old records is not known.
    """
    here = F.when(~F.col("hidden") & (window["grown_records"] > 0), window["grown"] / window["grown_records"])
    of_old = F.when(F.col("hidden"), F.when(~F.col("reads_old"), F.col("record"))).otherwise(F.col("first_held_mean"))
    marginal = F.col("hidden") | (~F.col("reads_old") & (here.isNotNull() | F.col("grown_record").isNotNull()))
    nothing = F.col("old_records") + F.col("new_records") == 0
    return F.struct(
        window["out_micros"].alias("micros"),
        window["out_dense"].alias("dense"),
        (
            F.when(window["new_records"] > 0, window["new_records"] * F.coalesce(here, F.col("record"))).otherwise(0.0)
            + F.when(window["old_records"] > 0, window["old_records"] * of_old).otherwise(0.0)
        ).alias("bytes"),
        F.when(nothing | marginal, 2).otherwise(3).alias("rank"),
    )


def _largest_records() -> Column:
    """Bytes per record of a compacted or tiered log, from the intervals in which nothing was removed.

    A removal makes the growth of an interval too small, never too large. The result is therefore the median of the
    largest value of each window. Null if something was removed in two of three intervals or more.
    """
    each = F.array_sort(
        F.filter(F.transform("found", lambda window: window["largest_record"]), lambda record: record.isNotNull())
    )
    middle = F.element_at(each, F.ceil(F.size(each) / 2).cast("int"))
    return F.when((2 * F.col("grown_pairs") > F.col("shrunk_pairs")) & (F.size(each) > 0), middle)


def _balance() -> Column:
    """Bytes per record if the start offset always moves: the change of the size plus the deleted bytes came in.

    Deleted records have the mean size of the records in the log at the first sample. If all of these are deleted, all
    records in the log at the end came in since.
    """
    deleted = F.col("deleted") * F.coalesce("first_held_mean", F.lit(0.0))
    came = F.col("size_change") + deleted
    records = F.col("grown_records") + F.col("other_records")
    trusted = (came > 0) & (deleted <= _MOST_DELETED * came)
    return F.when(F.col("deleted") <= F.col("first_held"), F.when((records > 0) & trusted, came / records)).otherwise(
        F.coalesce("last_held_mean", "first_held_mean")
    )
