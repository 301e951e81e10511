"""From the newest samples to the partitions that a load model is of, as Spark column expressions."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from kafka_rebalance.pipeline.rate_windows import leads, partition_key


def listing(rows: DataFrame, newest: datetime, missing: tuple[int, ...], *, lists_silent: bool) -> DataFrame:
    """The partitions of the newest sample with their leader, brokers, and the sizes of their replicas, by ``k``.

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
            F.max_by("log_dir", F.when(F.col("size_bytes").isNotNull(), F.col("sampled_at"))).alias("log_dir"),
            F.max_by("leads", "sampled_at").alias("leads"),
        )
    )
    listed = F.col("present") if lists_silent else F.lit(True)
    known = listed & F.col("bytes").isNotNull()
    of_leader, largest = F.max(F.when(known & F.col("leads"), F.col("bytes"))), F.max(F.when(known, F.col("bytes")))
    by_broker = F.array_sort(F.collect_list(F.when(known, F.struct("broker", "bytes", "log_dir"))))
    return (
        replicas.groupBy("k", "topic", "topic_id", "partition")
        .agg(
            F.max("present").alias("present"),
            F.max(F.when(listed & F.col("leads"), F.col("broker"))).alias("leader"),
            F.collect_list(F.when(listed, F.col("broker"))).alias("brokers"),
            by_broker.alias("replicas"),
            F.coalesce(of_leader, largest).alias("size_bytes"),
        )
        .where("present and size_bytes is not null")
    )
