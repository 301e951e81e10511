"""From committed offsets to the records that consumer groups read in windows of five minutes, as Spark expressions.

A pair is two consecutive samples of a partition. The records that a group read in a pair are the growth of its
committed offset, if the growth is certain (`_pairs`). `partition_loads` converts records to bytes, by the sizes of
records.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from kafka_rebalance.pipeline.rate_windows import crosses, partition_key, spread

_MOST_AHEAD = 10**9
"""Records between the end of a log and a commit that was read a moment later. A client may commit any number: those
further ahead are left out, as if the group had not committed."""


def consumed_windows(commits: DataFrame, breaks: Sequence[datetime] = ()) -> DataFrame:
    """One row per partition (``k``) and window (``w``) with known pairs: records that all groups together read.

    ``old_records`` were written before the first sample, ``new_records`` since: they may differ in size.
    """
    part = spread(_pairs(commits, breaks))
    return part.groupBy("k", "w").agg(
        F.sum("micros").alias("out_micros"),
        F.sum("dense").alias("out_dense"),
        *(F.sum(F.col(f"{age}_records") * F.col("share")).alias(f"{age}_records") for age in ("old", "new")),
    )


def _pairs(commits: DataFrame, breaks: Sequence[datetime]) -> DataFrame:
    """Pairs in which it is certain what each group read.

    It is not if a group has its first commit in the pair (where it began to read is not known), if its offset was set
    back, or if it went on from records that were deleted meanwhile: it may have skipped some.
    """
    known = commits.select(
        partition_key().alias("k"),
        F.unix_micros("sampled_at").alias("at"),
        F.unix_micros("committed_at").alias("t"),
        F.col("log_start_offset").alias("start"),
        F.col("log_end_offset").alias("end"),
        F.map_filter(
            F.map_from_arrays("groups", "committed"),
            lambda _, offset: (offset >= 0) & (offset - _MOST_AHEAD <= F.col("log_end_offset")),
        ).alias("commits"),
    )
    in_order = Window.partitionBy("k").orderBy("at")
    both = known.withColumns(
        {f"{name}_0": F.lag(name).over(in_order) for name in ("at", "t", "commits")}
        | {"first_end": F.first("end").over(in_order)}
    )
    # By hash: an element_at for each group would go through the list of all groups.
    zipped = F.map_zip_with(
        "commits_0", "commits", lambda _, before, after: F.struct(before.alias("from"), after.alias("to"))
    )
    groups = F.filter(F.map_values(zipped), lambda group: group["to"].isNotNull())
    usable = both.where((F.col("t") > F.col("t_0")) & ~crosses(breaks)).withColumn("read", groups)
    certain = usable.where(~F.exists("read", _uncertain))
    old = _sum("read", lambda group: F.least(group["to"], "first_end") - F.least(group["from"], "first_end"))
    return certain.select(
        "k",
        F.col("t_0").alias("from"),
        F.col("t").alias("to"),
        old.alias("old_records"),
        (_sum("read", lambda group: group["to"] - group["from"]) - old).alias("new_records"),
    )


def _uncertain(group: Column) -> Column:
    moved = group["to"] > group["from"]
    return group["from"].isNull() | (group["to"] < group["from"]) | (moved & (group["from"] < F.col("start")))


def _sum(groups: str, of: Callable[[Column], Column]) -> Column:
    return F.aggregate(groups, F.lit(0).cast("bigint"), lambda total, group: total + of(group))
