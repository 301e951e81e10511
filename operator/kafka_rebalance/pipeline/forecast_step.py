"""Adds forecasts of sizes to the partitions of a load model, from one size a day of the months before."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.rate_windows import leads, partition_key
from kafka_rebalance.pipeline.sample_manifests import Manifest, StoredBatch
from kafka_rebalance.pipeline.size_forecasts import calibrate, forecasts, points_of
from kafka_rebalance.pipeline.size_history import SizeHistory, size_history
from kafka_rebalance.pipeline.stored_hours import StoredHour

_FEWEST_DAYS = 4
"""With fewer points no forecast could be tried on the past."""
_DAY = 86_400_000_000


def with_forecasts(
    listed: DataFrame,
    lake: Lake,
    cluster_id: str,
    newest: StoredBatch,
    read: Callable[[Iterable[Manifest]], DataFrame],
    read_hours: Callable[[Sequence[StoredHour]], DataFrame | None],
) -> tuple[DataFrame, dict[str, Any]]:
    """``listed``, by ``k``, with the columns of the forecasts; and what they were made from, for the lineage.

    ``read`` opens files of samples, ``read_hours`` those of stored windows. No columns are added if the lake has too
    few days.
    """
    history = size_history(lake, cluster_id, newest.sampled_at)
    lineage = {
        "forecastDays": history.days,
        "forecastDaysFromWindows": len(history.hours),
        "forecastReachesBackDays": history.reaches_back(newest.sampled_at),
    }
    if history.days < _FEWEST_DAYS:
        return listed, lineage
    end = round(newest.sampled_at.astimezone(UTC).timestamp() * 1_000_000)
    sizes = [*_of_samples(history, read), *_of_hours(history, read_hours, end)]
    known = sizes[0] if len(sizes) == 1 else sizes[0].unionByName(sizes[1])
    points = points_of(known.where("size is not null").withColumn("day", (F.col("at") - F.lit(end)) / _DAY))
    calibration = calibrate(points, newest.rows // 3)
    tried = {f"{days}d{kind}": quantiles.errors for (days, kind), quantiles in sorted(calibration.items())}
    found = forecasts(points, calibration)
    return listed.join(found, on="k", how="left"), lineage | {"forecastsTried": tried}


def _of_samples(history: SizeHistory, read: Callable[[Iterable[Manifest]], DataFrame]) -> list[DataFrame]:
    """``k``, ``at`` in microseconds, ``size`` and ``start`` of the leaders in the chosen samples."""
    if not history.samples:
        return []
    rows = read({sample.manifest.path: sample.manifest for sample in history.samples}.values())
    times = (sample.batch.sampled_at for sample in history.samples)
    chosen = rows.where(F.col("sampled_at").isin(*times) & leads() & F.col("topic").isNotNull())
    return [
        chosen.select(
            partition_key().alias("k"),
            F.unix_micros("sampled_at").alias("at"),
            F.col("size_bytes").alias("size"),
            F.col("log_start_offset").alias("start"),
        )
    ]


def _of_hours(
    history: SizeHistory, read_hours: Callable[[Sequence[StoredHour]], DataFrame | None], end: int
) -> list[DataFrame]:
    """The same of stored hours: of each partition the sample nearest to the time of day of ``end``, of those stored."""
    rows = read_hours(history.hours)
    if rows is None:
        return []
    wanted = F.lit(end) - F.round((F.lit(end) - F.col("at")) / _DAY) * _DAY
    edges = rows.where("w is null and size is not null").select("k", "at", "size", "start", wanted.alias("wanted"))
    nearest = F.min_by(F.struct("at", "size", "start"), F.abs(F.col("at") - F.col("wanted")))
    return [edges.groupBy("k", "wanted").agg(nearest.alias("found")).select("k", "found.*")]
