"""From samples to the bytes written in windows of five minutes, as Spark column expressions.

A pair is two consecutive samples of a partition at the same leader. Its bytes are spread over the windows between them
by time, so that rates do not depend on how often was sampled. Nothing here starts Spark, opens files or runs Python per
row: one scan of the leaders' rows, one shuffle by a hash of the partition.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

if TYPE_CHECKING:
    from collections.abc import Iterable

WINDOW_SECONDS = 300
LONGEST_GAP_SECONDS = 600
"""A longer time between two samples tells the mean in it, but not how the bytes were spread."""
_MICROS = 1_000_000
_WINDOW = WINDOW_SECONDS * _MICROS
_NEXT_EPOCH = 1 << 32


def partition_key() -> Column:
    """64 bits that stand for a partition of one incarnation of a topic; strings are not shuffled."""
    return F.xxhash64("topic_id", "topic", "partition")


def leads() -> Column:
    """Whether the row is the leader's, in samples of any version."""
    return F.coalesce("is_leader", F.col("broker") == F.col("leader"))


def windows(samples: DataFrame, breaks: Sequence[datetime] = ()) -> DataFrame:
    """One row per partition (``k``) and window (``w``, in windows since 1970) with known pairs. See `_pairs`."""
    part = spread(_pairs(_leaders(samples), breaks))
    return part.groupBy("k", "w").agg(
        F.sum("micros").alias("micros"),
        F.sum("dense").alias("dense"),
        F.sum(F.col("grown") * F.col("share")).alias("grown"),
        F.sum(F.when(F.col("kind") == _GROWN, F.col("records") * F.col("share")).otherwise(0.0)).alias("grown_records"),
        F.sum(F.when(F.col("kind") != _GROWN, F.col("records") * F.col("share")).otherwise(0.0)).alias("other_records"),
        F.max(F.when((F.col("kind") == _GROWN) & (F.col("records") > 0), F.col("grown") / F.col("records"))).alias(
            "largest_record"
        ),
        F.sum(F.when(F.col("kind") == _GROWN, F.col("share")).otherwise(0.0)).alias("grown_pairs"),
        F.sum(F.when(F.col("kind") == _SHRUNK, F.col("share")).otherwise(0.0)).alias("shrunk_pairs"),
        F.max("partial_log").alias("partial_log"),
        F.sum(F.col("size_change") * F.col("share")).alias("size_change"),
        F.sum(F.col("deleted") * F.col("share")).alias("deleted"),
        F.min_by("held_before", "from").alias("first_held"),
        F.min_by("held_mean_before", "from").alias("first_held_mean"),
        F.max_by("held_mean", "from").alias("last_held_mean"),
        F.max_by("size", "from").alias("size"),
        F.min("broker").alias("lowest_leader"),
        F.max("broker").alias("highest_leader"),
    )


def spread(pairs: DataFrame) -> DataFrame:
    """One row per pair (``from``, ``to``) and window ``w`` that it reaches into, with its ``share`` of the pair.

    ``micros`` of the window are covered, ``dense`` of them by a pair that is no gap.
    """
    first, last = F.expr(f"`from` div {_WINDOW}"), F.expr(f"(`to` - 1) div {_WINDOW}")
    parts = pairs.withColumn("w", F.explode(F.sequence(first, last)))
    overlap = F.least("to", (F.col("w") + 1) * _WINDOW) - F.greatest("from", F.col("w") * _WINDOW)
    share = overlap / (F.col("to") - F.col("from"))
    dense = F.when(F.col("to") - F.col("from") <= LONGEST_GAP_SECONDS * _MICROS, overlap).otherwise(0)
    return parts.withColumns({"micros": overlap, "dense": dense, "share": share})


def crosses(breaks: "Iterable[datetime]") -> Column:
    """Whether one of these times is between ``at_0`` and ``at``."""
    cut = F.lit(False)
    for moment in breaks:
        micros = round(moment.astimezone(UTC).timestamp() * _MICROS)
        cut = cut | ((F.col("at_0") < micros) & (F.col("at") >= micros))
    return cut


_GROWN, _SHRUNK, _OTHER = 0, 1, 2


def _leaders(samples: DataFrame) -> DataFrame:
    """Rows with offsets, as numbers. ``lead``: the leader's epoch and broker."""
    known = samples.where(leads() & F.col("log_end_offset").isNotNull() & F.col("log_start_offset").isNotNull())
    at = F.unix_micros("sampled_at")
    return known.select(
        partition_key().alias("k"),
        at.alias("at"),
        F.coalesce(F.unix_micros("size_at"), F.unix_micros("offsets_at"), at).alias("t"),
        F.coalesce(F.unix_micros("offsets_at"), at).alias("offsets_t"),
        F.col("log_start_offset").alias("start"),
        F.col("log_end_offset").alias("end"),
        F.col("size_bytes").alias("size"),
        (F.coalesce("leader_epoch", F.lit(-1)).cast("bigint") * _NEXT_EPOCH + F.col("broker")).alias("lead"),
        F.col("whole_log").alias("whole"),
        "broker",
    )


def _pairs(leaders: DataFrame, breaks: "Iterable[datetime]") -> DataFrame:
    """Pairs whose records are known: the log was not cut in between.

    An end offset only grows while the leader is the same; after another leader (two epochs or another broker) nobody
    knows what an unclean election cut and what was written again, so that pair is left out. ``kind``:

    - grown: nothing was deleted, so the growth of the size is exactly what was written, whatever the offsets say, which
      are of another moment. The start offset must not have moved in the pair before either: sizes are read before
      offsets, so the size may show a deletion one sample later.
    - shrunk: records came, none was deleted, and yet the size did not grow: the log is compacted or tiered.
    - other: only the number of records is known.
    """
    in_order = Window.partitionBy("k").orderBy("at")
    before = {
        f"{name}_0": F.lag(name).over(in_order) for name in ("at", "t", "offsets_t", "start", "end", "size", "lead")
    }
    both = leaders.withColumns(before | {"start_00": F.lag("start", 2).over(in_order)})
    usable = both.where(
        (F.col("lead") - F.col("lead_0")).isin(0, _NEXT_EPOCH)  # one more epoch at the same broker: it led throughout
        & (F.col("end") >= F.col("end_0"))
        & (F.col("start") >= F.col("start_0"))
        & (F.col("t") > F.col("t_0"))
        & (F.col("offsets_t") > F.col("offsets_t_0"))
        & ~crosses(breaks)
    )
    records = (F.col("end") - F.col("end_0")) * (
        (F.col("t") - F.col("t_0")) / (F.col("offsets_t") - F.col("offsets_t_0"))
    )
    change = F.col("size") - F.col("size_0")
    still = (F.col("start") == F.col("start_0")) & (F.coalesce("start_00", "start_0") == F.col("start_0"))
    whole = F.coalesce("whole", F.lit(False))
    kind = (
        F.when(still & ((change > 0) | (whole & (change == 0))), _GROWN)
        .when(still & (records > 0) & ~whole, _SHRUNK)
        .otherwise(_OTHER)
    )
    return usable.select(
        "k",
        F.col("t_0").alias("from"),
        F.col("t").alias("to"),
        "size",
        "broker",
        records.alias("records"),
        kind.alias("kind"),
        F.when(kind == _GROWN, change).otherwise(0).alias("grown"),
        F.coalesce(~F.col("whole"), F.lit(False)).alias("partial_log"),
        change.alias("size_change"),
        (F.col("start") - F.col("start_0")).alias("deleted"),
        (F.col("end_0") - F.col("start_0")).alias("held_before"),
        _record_bytes("size_0", "start_0", "end_0").alias("held_mean_before"),
        _record_bytes("size", "start", "end").alias("held_mean"),
    )


def _record_bytes(size: str, start: str, end: str) -> Column:
    held = F.col(end) - F.col(start)
    return F.when((held > 0) & (F.col(size) > 0), F.col(size) / held)
