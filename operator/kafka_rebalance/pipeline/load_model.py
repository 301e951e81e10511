"""From samples to loads, as Spark column expressions: the size of each partition and its write rate.

The rate between two samples of a partition is the growth of its log end offset times the bytes per record at its
leader, divided by the seconds between them. Unlike sizes, offsets only grow, whatever retention deletes and whichever
broker leads. Nothing here starts Spark, opens files or runs Python per row.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

_INCARNATION = ("topic", "topic_id", "partition")
_P95 = 0.95
_DECIMALS = 3  # finer than offsets can tell; makes the artefact independent of the order in which Spark sums


def load_model(samples: DataFrame) -> DataFrame:
    """One row per partition of one cluster's samples.

    Columns: topic, partition, topic_id, size_bytes, bytes_in_per_second, bytes_in_p95, bytes_in_max (null: unknown),
    intervals and covered_seconds behind the rates, samples, last_seen. Of a topic that was deleted and created again,
    only the newest.
    """
    return (
        _newest_incarnation(sizes(samples))
        .join(rates(intervals(samples)), on=list(_INCARNATION), how="left")
        .select(
            "topic",
            "partition",
            "topic_id",
            "size_bytes",
            "bytes_in_per_second",
            "bytes_in_p95",
            "bytes_in_max",
            F.coalesce("intervals", F.lit(0)).alias("intervals"),
            F.coalesce("covered_seconds", F.lit(0.0)).alias("covered_seconds"),
            "samples",
            "last_seen",
        )
    )


def sizes(samples: DataFrame) -> DataFrame:
    """Per partition the size in its latest sample: the leader's, else the largest replica's.

    A replica that is being added is still small, so the leader's size is better than a maximum or a mean.
    """
    newest = F.max(F.struct("sampled_at", "is_leader", "size_bytes"))
    return (
        samples.groupBy(*_INCARNATION)
        .agg(newest.alias("newest"), F.count_distinct("sampled_at").alias("samples"))
        .select(
            *_INCARNATION,
            F.col("newest.size_bytes").alias("size_bytes"),
            F.col("newest.sampled_at").alias("last_seen"),
            "samples",
        )
    )


def intervals(samples: DataFrame) -> DataFrame:
    """Per partition and pair of consecutive samples: the time between them and the bytes written (null: unknown).

    Duplicate and late rows are harmless: rows are reduced to one per partition and time, then ordered by time.
    """
    leaders = (
        samples.where("is_leader and log_start_offset is not null and log_end_offset is not null")
        .groupBy(*_INCARNATION, "sampled_at")
        .agg(F.max(F.struct("log_end_offset", "log_start_offset", "size_bytes", "broker")).alias("now"))
    )
    # By topic id: a topic is never compared with an earlier one of the same name.
    in_time = Window.partitionBy(*_INCARNATION).orderBy("sampled_at")
    pairs = leaders.withColumns(
        {"before": F.lag("now").over(in_time), "before_at": F.lag("sampled_at").over(in_time)},
    ).where("before is not null")
    return pairs.select(
        *_INCARNATION,
        "sampled_at",
        (F.unix_micros("sampled_at") - F.unix_micros("before_at")).alias("micros"),
        _bytes_in().alias("bytes_in"),
    )


def rates(pairs: DataFrame) -> DataFrame:
    """Per partition: time-weighted mean and 95th percentile, maximum, and the time that they cover.

    A long gap is one interval of its full length: its bytes are known, their distribution in it is not.
    """
    seconds = F.col("micros") / F.lit(1e6)
    known = pairs.where("bytes_in is not null").withColumns(
        {"seconds": seconds, "rate": F.col("bytes_in") / seconds, "weight": F.expr("greatest(micros div 1000, 1)")},
    )
    return known.groupBy(*_INCARNATION).agg(
        F.round(F.sum("bytes_in") / F.sum("seconds"), _DECIMALS).alias("bytes_in_per_second"),
        F.round(F.percentile("rate", _P95, F.col("weight")), _DECIMALS).alias("bytes_in_p95"),
        F.round(F.max("rate"), _DECIMALS).alias("bytes_in_max"),
        F.count("*").alias("intervals"),
        F.round(F.sum("seconds"), _DECIMALS).alias("covered_seconds"),
    )


def _bytes_in() -> Column:
    """The growth of the log, if nothing was deleted and the leader is the same; else records times bytes per record.

    Null if the end went back (an unclean election, or another topic on brokers that report no topic ids) or no record
    is left to measure. The growth is exact; the product assumes that new records are as large as those in the log.
    """
    grown = F.col("now.size_bytes") - F.col("before.size_bytes")
    same_log = (F.col("now.broker") == F.col("before.broker")) & (
        F.col("now.log_start_offset") == F.col("before.log_start_offset")
    )
    records = F.col("now.log_end_offset") - F.col("before.log_end_offset")
    weight = F.coalesce(_bytes_per_record("now"), _bytes_per_record("before"))
    return (
        F.when(records == 0, F.lit(0.0))
        .when((records > 0) & same_log & (grown > 0), grown.cast("double"))
        .when(records > 0, records * weight)
    )


def _bytes_per_record(sample: str) -> Column:
    held = F.col(f"{sample}.log_end_offset") - F.col(f"{sample}.log_start_offset")
    size = F.col(f"{sample}.size_bytes")
    return F.when((held > 0) & (size > 0), size / held)


def _newest_incarnation(partitions: DataFrame) -> DataFrame:
    latest = Window.partitionBy("topic", "partition").orderBy(F.desc("last_seen"), "topic_id")
    return partitions.withColumn("rank", F.row_number().over(latest)).where("rank = 1").drop("rank")
