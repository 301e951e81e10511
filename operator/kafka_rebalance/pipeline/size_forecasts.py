"""Forecasts of sizes from one size a day, with an interval for nine in ten, as Spark column expressions.

The trend of a partition is Theil's incomplete method: the median of the slopes between each point and the one half the
fitted time later. It is robust to single days, and two weeks of points cancel the effect of the weekday. If retention
deletes from a partition, its trend uses only the points since then: the growth before says nothing about it. The same
samples measure the error: the forecasts are also made for days in the past. Their errors, in units of how much the
partition varies, are pooled over the partitions of a kind, and their quantiles are the interval. The only assumption
about the errors is that they continue as before. A horizon is forecast only if it has been tried on the past; otherwise
it is null. Nothing here opens files or runs Python per row.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from kafka_rebalance.pipeline.size_history import HORIZONS

COLUMNS = tuple(f"forecast_{days}d{part}" for days in HORIZONS for part in ("", "_low", "_high"))
_QUANTILES = (0.05, 0.5, 0.95)
_WEEKS = 5
"""The maximum number of past weeks to try, each from the weekday of the newest sample, because weekdays differ."""
_TRIED = 20_000
"""The approximate maximum number of partitions to try: more would not improve the quantiles."""
_FEWEST = 20
"""Of fewer errors a quantile of a twentieth says nothing."""
_ENOUGH = 4
"""If fewer points follow the first deletion by retention, all points measure how much a partition varies.
"""
_SLACK = 0.1  # days between two samples of one time of day may be a little less


class SizeKind(StrEnum):
    """What the errors of a partition have in common with those of others."""

    IDLE = "Idle"
    GROWING = "Growing"
    BOUND = "Bound"  # retention deletes from it


@dataclass(frozen=True, slots=True)
class ErrorQuantiles:
    """Of one kind at one horizon: how many errors, and their quantiles in units of how much a partition varies."""

    errors: int
    low: float
    middle: float
    high: float


Calibration = Mapping[tuple[int, SizeKind], ErrorQuantiles]
"""By horizon in days and kind."""


def points_of(sizes: DataFrame) -> DataFrame:
    """By ``k``: ``points``, the sizes of a partition in order of time.

    ``sizes`` has a row per partition and day: ``k``, ``day`` (0 at the newest sample, less before), ``size`` and
    ``start``, the log's start offset.
    """
    point = F.struct("day", F.col("size").cast("double").alias("size"), F.coalesce("start", F.lit(0)).alias("start"))
    return sizes.groupBy("k").agg(F.array_sort(F.collect_list(point)).alias("points"))


def calibrate(points: DataFrame, partitions: int) -> Calibration:
    """The quantiles of the errors of forecasts for the past. One small Spark job."""
    some = points.where(F.pmod("k", F.lit(max(1, partitions // _TRIED))) == 0)
    tries = [
        F.struct(F.lit(days).alias("horizon"), F.lit(-7 * (math.ceil(days / 7) + week)).alias("origin"))
        for days in HORIZONS
        for week in range(_WEEKS)
    ]
    tried = some.withColumn("try", F.explode(F.array(*tries))).select("points", "try.horizon", "try.origin")
    target = F.col("origin") + F.col("horizon")
    then = F.filter("points", lambda p: F.abs(p["day"] - target) < 0.5)  # none on a day without a sample
    tried = tried.withColumn("truth", F.try_element_at(then, F.lit(1))["size"])
    fitted = _fit(tried, F.col("origin").cast("double"), F.col("horizon"))
    made = F.col("last") + F.col("slope") * F.col("horizon")
    errors = fitted.where("kind is not null and truth is not null").withColumn(
        "error", (F.col("truth") - made) / F.col("scale")
    )
    found = errors.groupBy("horizon", "kind").agg(
        F.count("error").alias("errors"), F.percentile("error", list(_QUANTILES)).alias("quantiles")
    )
    return {
        (row["horizon"], SizeKind(row["kind"])): ErrorQuantiles(row["errors"], *row["quantiles"])
        for row in found.collect()
        if row["errors"] >= _FEWEST
    }


def forecasts(points: DataFrame, calibration: Calibration) -> DataFrame:
    """By ``k``: ``COLUMNS``, in bytes. Null: the history is too short, or there is no measure of the error."""
    found = points
    for horizon in HORIZONS:
        known = [(kind, q) for (days, kind), q in calibration.items() if days == horizon]
        fitted = _fit(found, F.lit(0.0), F.lit(horizon))
        for part, name in (("", "middle"), ("_low", "low"), ("_high", "high")):
            error = F.lit(None).cast("double")
            for kind, quantiles in known:
                error = F.when(F.col("kind") == kind.value, F.lit(getattr(quantiles, name))).otherwise(error)
            value = F.col("last") + F.col("slope") * horizon + error * F.col("scale")
            size = F.round(F.greatest(value, F.lit(0.0))).cast("bigint")  # greatest takes 0 for null
            fitted = fitted.withColumn(f"forecast_{horizon}d{part}", F.when(error.isNotNull(), size))
        found = fitted.drop("last", "slope", "scale", "kind")
    return found.select("k", *COLUMNS)


def _fit(rows: DataFrame, origin: Column, horizon: Column) -> DataFrame:
    """Adds ``last``, ``slope`` (bytes per day), ``scale`` and ``kind`` of ``points`` up to the day ``origin``.

    ``kind`` is null if there are fewer than three points, or they span less than half the horizon.
    """
    days = F.greatest(F.lit(7), horizon * 2) + _SLACK
    seen = F.filter("points", lambda p: (p["day"] <= origin + _SLACK) & (p["day"] >= origin - days))
    first, latest = F.try_element_at("seen", F.lit(1)), F.try_element_at("seen", F.lit(-1))
    rows = rows.withColumn("seen", seen).withColumns({"first": first, "latest": latest})
    bound = F.col("latest.start") > F.col("first.start")
    since = F.filter("seen", lambda p: ~bound | (p["start"] > F.col("first.start")))
    rows = rows.withColumn("since", since).withColumn("half", F.greatest(F.lit(1), (F.size("since") / 2).cast("int")))
    rows = rows.withColumn("slope", F.coalesce(_median(_pairs("since", F.col("half"), _slope)), F.lit(0.0)))
    rows = rows.withColumn("varied", F.when(F.size("since") >= _ENOUGH, F.col("since")).otherwise(F.col("seen")))
    rows = rows.withColumn("moves", _pairs("varied", F.lit(1), _beside_the_trend))
    moved = F.aggregate("moves", F.lit(0.0), lambda total, move: total + move)
    rows = rows.withColumn("jitter", moved / F.greatest(F.size("moves"), F.lit(1)))
    size, slope, jitter = F.col("latest.size"), F.col("slope"), F.col("jitter")
    # A step of one segment in either direction is always possible, so the interval includes a small part of the size.
    scale = jitter * F.sqrt(horizon) + 0.02 * (F.abs(slope) * horizon + size) + 1
    kind = F.when(bound, SizeKind.BOUND.value).when((slope == 0) & (jitter == 0), SizeKind.IDLE.value)
    enough = (F.size("seen") >= 3) & (F.col("latest.day") >= origin - 0.5)
    spans = F.col("latest.day") - F.col("first.day") >= F.greatest(F.lit(2.0), horizon / 2) - _SLACK
    found = {"last": size, "scale": scale, "kind": F.when(enough & spans, kind.otherwise(SizeKind.GROWING.value))}
    return rows.withColumns(found).drop("seen", "first", "latest", "since", "half", "varied", "moves", "jitter")


def _pairs(points: str, apart: Column, of: Callable[[Column, Column], Column]) -> Column:
    """``of`` applied to each point and the point ``places`` later, if that is known."""
    count = F.greatest(F.size(points) - apart, F.lit(0))
    found = F.zip_with(F.slice(points, F.lit(1), count), F.slice(points, apart + 1, count), of)
    return F.filter(found, lambda value: value.isNotNull())


def _slope(before: Column, after: Column) -> Column:
    return F.try_divide(after["size"] - before["size"], after["day"] - before["day"])


def _beside_the_trend(before: Column, after: Column) -> Column:
    return F.abs(after["size"] - before["size"] - F.col("slope") * (after["day"] - before["day"]))


def _median(values: Column) -> Column:
    ordered, size = F.array_sort(values), F.size(values)
    low = F.try_element_at(ordered, F.greatest(F.lit(1), ((size + 1) / 2).cast("int")))
    return (low + F.try_element_at(ordered, (size / 2).cast("int") + 1)) / 2
