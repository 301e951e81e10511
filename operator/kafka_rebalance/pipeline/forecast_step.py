"""Adds forecasts of sizes to the partitions of a load model, from one sample a day of the months before."""

from collections.abc import Callable, Iterable
from datetime import UTC
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.rate_windows import leads, partition_key
from kafka_rebalance.pipeline.sample_manifests import Manifest, StoredBatch
from kafka_rebalance.pipeline.size_forecasts import calibrate, forecasts, points_of
from kafka_rebalance.pipeline.size_history import daily_samples

_FEWEST_DAYS = 4
"""With fewer points no forecast could be tried on the past."""
_DAY = 86_400_000_000


def with_forecasts(
    listed: DataFrame,
    lake: Lake,
    cluster_id: str,
    newest: StoredBatch,
    read: Callable[[Iterable[Manifest]], DataFrame],
) -> tuple[DataFrame, dict[str, Any]]:
    """``listed``, by ``k``, with the columns of the forecasts; and what they were made from, for the lineage.

    Unchanged if the lake has too few days.
    """
    samples = daily_samples(lake, cluster_id, newest.sampled_at)
    if len(samples) < _FEWEST_DAYS:
        return listed, {}
    rows = read({sample.manifest.path: sample.manifest for sample in samples}.values())
    at = F.unix_micros("sampled_at")
    chosen = rows.where(
        F.col("sampled_at").isin(*(sample.batch.sampled_at for sample in samples))
        & leads()
        & F.col("size_bytes").isNotNull()
        & F.col("topic").isNotNull()
    )
    end = round(newest.sampled_at.astimezone(UTC).timestamp() * 1_000_000)
    points = points_of(
        chosen.select(
            partition_key().alias("k"),
            ((at - F.lit(end)) / _DAY).alias("day"),
            F.col("size_bytes").alias("size"),
            F.col("log_start_offset").alias("start"),
        )
    )
    calibration = calibrate(points, newest.rows // 3)
    tried = {f"{days}d{kind}": quantiles.errors for (days, kind), quantiles in sorted(calibration.items())}
    found = forecasts(points, calibration)
    return listed.join(found, on="k", how="left"), {"forecastDays": len(samples), "forecastsTried": tried}
