"""From windows and the newest listing to one row per partition, as Spark column expressions.

The columns are those of the artefact. Nothing here starts Spark, opens files or runs Python per row.
"""

from collections.abc import Callable
from enum import StrEnum

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from kafka_rebalance.pipeline.metric_windows import shared
from kafka_rebalance.pipeline.rate_windows import WINDOW_SECONDS
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
ADDENDS = {"rate": "double", "size": "double", "out": "double"}
"""Of a window of a partition: bytes in per second, the leader's size, bytes out per second."""
_CONSUMED = {"out_micros": "bigint", "out_dense": "bigint", "old_records": "double", "new_records": "double"}


class Method(StrEnum):
    """How the bytes of a partition came about; from the most to the least certain."""

    EXACT = "Exact"
    MARGINAL = "Marginal"
    HELD_MEAN = "HeldMean"
    METRIC = "Metric"
    UNKNOWN = "Unknown"


def estimates(
    listed: DataFrame, windows: DataFrame, consumed: DataFrame | None = None, metrics: DataFrame | None = None
) -> DataFrame:
    """The listed partitions with the statistics of their rates, and the windows that these are of.

    ``listed`` may have forecasts of the sizes. ``consumed``: windows of what consumer groups read (`consumed_windows`).
    ``metrics``: of what brokers sent (`metric_windows`).
    """
    estimated = _estimated(windows, consumed)
    if metrics is not None:
        estimated = _with_metrics(estimated, listed, metrics)
    return listed.join(_rates(estimated), on="k", how="left")


def loads(estimated: DataFrame) -> DataFrame:
    """One row per listed partition, sorted by topic and partition, in one part. Rates that are not known are null."""
    return (
        estimated.select(
            "topic",
            "partition",
            "topic_id",
            "size_bytes",
            F.col("replicas.broker").alias("replica_brokers"),
            F.col("replicas.bytes").alias("replica_bytes"),
            F.col("replicas.log_dir").alias("replica_log_dirs"),
            "leader",
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
            *(name for name in FORECASTS if name in estimated.columns),
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
        .select(
            "k",
            "growth",
            *(_with_bytes(f"known_{way}").alias(f"known_{way}") for way in _WAYS),
            _addends("known_in", rate=_rate, size=lambda window: window["size"]).alias("windows_in"),
        )
    )


def _with_bytes(windows: str) -> Column:
    return F.filter(windows, lambda window: window["bytes"].isNotNull())


def _dense(windows: str) -> Column:
    return F.filter(windows, lambda window: window["dense"] >= _VALID_MICROS)


def _addends(windows: str, **values: Callable[[Column], Column]) -> Column:
    """The windows of which at least half is covered, with what `broker_windows` adds up; without a value it is null."""

    def addend(window: Column) -> Column:
        found = (values[name](window) if name in values else F.lit(None) for name in ADDENDS)
        return F.struct(
            window["w"].alias("w"),
            *(value.cast(kind).alias(name) for value, (name, kind) in zip(found, ADDENDS.items(), strict=True)),
        )

    return F.transform(_dense(windows), addend)


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
        "w",
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
        "windows_in",
        _addends("known_out", out=_rate).alias("windows_out"),
    )


def _partitions(windows: DataFrame) -> DataFrame:
    """What the estimates need of all windows of a partition. ``hidden``: its growth does not show what came in."""
    sampled = F.col("micros").isNotNull()
    in_order = F.when(sampled, F.col("w"))
    leader = F.when(F.col("lowest_leader") == F.col("highest_leader"), F.col("lowest_leader")).alias("leader")
    found = F.struct(
        *("w", leader, "micros", "dense", "grown", "grown_records", "other_records", "largest_record", "size")
    )
    sums = ("grown", "grown_records", "other_records", "size_change", "deleted", "grown_pairs", "shrunk_pairs")
    partitions = windows.groupBy("k").agg(
        F.collect_list(F.when(sampled, found)).alias("found"),
        F.collect_list(
            F.when(F.col("out_micros").isNotNull(), F.struct("w", *_CONSUMED, "grown", "grown_records"))
        ).alias("found_out"),
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
    dense = F.array_sort(F.transform(_dense(known), _rate))
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
        window["size"].alias("size"),
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
        window["w"].alias("w"),
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
