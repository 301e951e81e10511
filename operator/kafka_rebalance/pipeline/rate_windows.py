"""From samples to the bytes written in windows of five minutes, as Spark column expressions.

A pair is two consecutive samples of a partition at the same leader. Its bytes are spread over the windows between them
by time, so that rates do not depend on how often was sampled. Nothing here starts Spark, opens files or runs Python per
row: one scan of the leaders' rows, one shuffle by a hash of the partition.

Windows can be stored by the hour: what an hour brings depends on its own samples only, so hours may be computed in any
order, alone, and again.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import WindowSpec

WINDOW_SECONDS = 300
HOUR_SECONDS = 3600
LONGEST_GAP_SECONDS = 600
"""Two samples further apart show the mean between them, but not how the bytes were spread."""
_MICROS = 1_000_000
_WINDOW = WINDOW_SECONDS * _MICROS
_NEXT_EPOCH = 1 << 32


def windows_between(start: datetime, end: datetime) -> int:
    """How many windows have a part in this time."""
    first, last = (round(moment.astimezone(UTC).timestamp() * _MICROS) for moment in (start, end))
    return max((last - 1) // _WINDOW - first // _WINDOW + 1, 1)


def partition_key() -> Column:
    """64 bits that stand for a partition of one incarnation of a topic; strings are not shuffled."""
    return F.xxhash64("topic_id", "topic", "partition")


def leads() -> Column:
    """Whether the row is the leader's, in samples of any version."""
    return F.coalesce("is_leader", F.col("broker") == F.col("leader"))


def windows(samples: DataFrame, breaks: Sequence[datetime] = (), stored: DataFrame | None = None) -> DataFrame:
    """One row per partition (``k``) and window (``w``, in windows since 1970) with known pairs. See `_pairs`.

    ``stored`` are rows of `hours`, whose samples are not in ``samples``: the result is that of the samples of both.
    """
    leaders = _leaders(samples).withColumn("opens", F.lit(True))
    if stored is None:
        return _combined(_parts(_pairs(_in_order(leaders), breaks)))
    edges = stored.where("w is null").select(*leaders.columns)
    between = _parts(_pairs(_in_order(leaders.unionByName(edges)).where("opens"), breaks))
    whole = stored.where("w is not null").select(*between.columns)
    return _combined(between.unionByName(whole).repartition("k"))  # the same order of rows as for the loads


def hours(samples: DataFrame, breaks: Sequence[datetime] = ()) -> DataFrame:
    """What is stored of each ``hour`` since 1970, from its samples alone: windows, and for each partition its edges.

    The windows are of the pairs within the hour. A pair across a full hour, and the first one in it, need samples of
    the hour before: so the first two and the last two samples are stored as they are (``w`` is null). ``opens``: one of
    the first two, whose pair is in no window yet.
    """
    leaders = _leaders(samples).withColumn("hour", F.expr(f"at div {HOUR_SECONDS * _MICROS}"))
    rows = _in_order(leaders, "hour").withColumn("opens", F.col("start_00").isNull())
    following = F.lead("at", 2).over(_order("hour"))
    edges = rows.withColumn("following", following).where("opens or following is null")
    within = _parts(_pairs(rows.where("not opens"), breaks, "hour"), "hour")
    return _combined(within, "hour").unionByName(edges.select(*leaders.columns, "opens"), allowMissingColumns=True)


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


def _parts(pairs: DataFrame, *by: str) -> DataFrame:
    """What each pair brings to each window, under the names of the windows' columns."""
    share, grew = F.col("share"), F.col("kind") == _GROWN
    return spread(pairs).select(
        *by,
        "k",
        "w",
        "micros",
        "dense",
        (F.col("grown") * share).alias("grown"),
        F.when(grew, F.col("records") * share).otherwise(0.0).alias("grown_records"),
        F.when(~grew, F.col("records") * share).otherwise(0.0).alias("other_records"),
        F.when(grew & (F.col("records") > 0), F.col("grown") / F.col("records")).alias("largest_record"),
        F.when(grew, share).otherwise(0.0).alias("grown_pairs"),
        F.when(F.col("kind") == _SHRUNK, share).otherwise(0.0).alias("shrunk_pairs"),
        "partial_log",
        (F.col("size_change") * share).alias("size_change"),
        (F.col("deleted") * share).alias("deleted"),
        F.col("held_before").alias("first_held"),
        F.col("held_mean_before").alias("first_held_mean"),
        F.col("held_mean").alias("last_held_mean"),
        "size",
        F.col("broker").alias("lowest_leader"),
        F.col("broker").alias("highest_leader"),
        F.col("from").alias("first_at"),
        F.col("from").alias("last_at"),
    )


_SUMS = {
    "micros": "bigint",
    "dense": "bigint",
    "grown": "double",
    "grown_records": "double",
    "other_records": "double",
    "grown_pairs": "double",
    "shrunk_pairs": "double",
    "size_change": "double",
    "deleted": "double",
}
_LARGEST = {"largest_record": "double", "partial_log": "boolean", "highest_leader": "int", "last_at": "bigint"}
_SMALLEST = {"lowest_leader": "int", "first_at": "bigint"}
_FIRST = {"first_held": "bigint", "first_held_mean": "double"}
_LAST = {"last_held_mean": "double", "size": "bigint"}
_EDGES = {
    "at": "bigint",
    "t": "bigint",
    "offsets_t": "bigint",
    "start": "bigint",
    "end": "bigint",
    "lead": "bigint",
    "whole": "boolean",
    "broker": "int",
    "opens": "boolean",
}
STORED_COLUMNS = {"k": "bigint", "w": "bigint"} | _SUMS | _LARGEST | _SMALLEST | _FIRST | _LAST | _EDGES
"""The columns of the stored hours, with their types; an edge has its size in ``size``."""


def _combined(parts: DataFrame, *by: str) -> DataFrame:
    """One row for each window, of its parts or of rows that are combined already."""
    return parts.groupBy(*by, "k", "w").agg(
        *(F.sum(name).alias(name) for name in _SUMS),
        *(F.max(name).alias(name) for name in _LARGEST),
        *(F.min(name).alias(name) for name in _SMALLEST),
        *(F.min_by(name, "first_at").alias(name) for name in _FIRST),
        *(F.max_by(name, "last_at").alias(name) for name in _LAST),
    )


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


def _order(*by: str) -> "WindowSpec":
    return Window.partitionBy("k", *by).orderBy("at")


def _in_order(leaders: DataFrame, *by: str) -> DataFrame:
    """Each row with the values of the one before it (``_0``), and the start offset of the one before that."""
    before = {
        f"{name}_0": F.lag(name).over(_order(*by)) for name in ("at", "t", "offsets_t", "start", "end", "size", "lead")
    }
    return leaders.withColumns(before | {"start_00": F.lag("start", 2).over(_order(*by))})


def _pairs(both: DataFrame, breaks: "Iterable[datetime]", *by: str) -> DataFrame:
    """Pairs whose records are known: the log was not cut in between.

    An end offset only grows while the leader is the same; after a change of leader (two epochs or another broker) it is
    not known what an unclean election cut and what was written again, so that pair is left out. ``kind``:

    - grown: nothing was deleted, so the growth of the size is exactly the bytes that were written. The offsets do not
      count, because they were read at another moment. The start offset must not have moved in the pair before either:
      sizes are read before offsets, so the size may show a deletion one sample later.
    - shrunk: records came, none was deleted, and yet the size did not grow: the log is compacted or tiered.
    - other: only the number of records is known.
    """
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
        *by,
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
