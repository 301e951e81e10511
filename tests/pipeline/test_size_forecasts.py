"""Forecasts of sizes, compared with what came: the last days are held out."""

from __future__ import annotations

import math
import statistics
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet
import pytest
from tests.pipeline.clusters_by_hand import CLUSTER, START
from tests.pipeline.sizes_by_process import Log, logs, write

from kafka_rebalance.pipeline import job
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_retention import tidy
from kafka_rebalance.pipeline.size_history import HORIZONS
from kafka_rebalance.pipeline.window_job import store_windows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def forecasts_of(spark: SparkSession, lake: Path, day: int) -> dict[str, dict[str, Any]]:
    outcome = job.build(spark, str(lake), CLUSTER, timedelta(days=1), START + timedelta(days=day))
    rows = pyarrow.parquet.read_table(lake / outcome.artefact).to_pylist()
    return {row["topic"]: row for row in rows}


def judged(made: dict[str, dict[str, Any]], truth: list[Log], day: int, horizon: int) -> list[tuple[bool, float]]:
    """For each partition with a forecast: whether the interval covers the actual size, and the relative error."""
    found = []
    for log in truth:
        row, came = made[log.name], log.size[day + horizon]
        if came is not None and row[f"forecast_{horizon}d"] is not None:
            covered = row[f"forecast_{horizon}d_low"] <= came <= row[f"forecast_{horizon}d_high"]
            found.append((covered, abs(row[f"forecast_{horizon}d"] - came) / max(came, 1)))
    return found


class HeldOut(NamedTuple):
    """Of one horizon: partitions with a forecast, the share covered by the interval, and the median relative error."""

    partitions: int
    covered: float
    error: float


def held_out(spark: SparkSession, lake: Path, count: int, days: int, seed: int) -> dict[int, HeldOut]:
    truth = logs(count, days + max(HORIZONS) + 1, seed)
    write(lake, truth, range(days + 1))
    made = forecasts_of(spark, lake, days)
    found = {horizon: judged(made, truth, days, horizon) for horizon in HORIZONS}
    return {
        horizon: HeldOut(
            partitions=len(rows),
            covered=statistics.mean(covered for covered, _ in rows),
            error=statistics.median(error for _, error in rows),
        )
        for horizon, rows in found.items()
    }


def check(spark: SparkSession, lake: Path, count: int, days: int, seed: int) -> None:
    for horizon, found in held_out(spark, lake, count, days, seed).items():
        assert found.partitions > 0.9 * count, horizon
        assert 0.85 <= found.covered <= 0.95, (horizon, found)


@pytest.mark.campaign
@pytest.mark.parametrize(("days", "seed"), [(54, 1), (60, 2), (65, 3), (75, 4)])
def test_intervals_cover_what_came(spark: SparkSession, tmp_path: Path, days: int, seed: int) -> None:
    """Nine of ten: at least 85 %, at most 95 % of the partitions, on all weekdays.

    One, seven and thirty days ahead; the figures are in docs/pipeline.md.
    """
    check(spark, tmp_path, 1000, days, seed)


@pytest.mark.campaign
def test_stored_windows_take_the_place_of_expired_samples(spark: SparkSession, tmp_path: Path) -> None:
    """The same forecasts for 30 days from two weeks of samples and 54 days of windows; from the samples alone none."""
    days, now = 54, START + timedelta(days=54)
    write(tmp_path, logs(200, days + 1, seed=1), range(days + 1))
    expected = forecasts_of(spark, tmp_path, days)
    assert sum(row["forecast_30d"] is not None for row in expected.values()) > 100
    lake = Lake.open(str(tmp_path))
    stored = store_windows(spark, str(tmp_path), CLUSTER, timedelta(days=60), now)
    assert len(stored.written) == days
    tidy(lake, CLUSTER, now, timedelta(days=14), timedelta(days=60))
    assert len(list(tmp_path.glob("manifests/*/*"))) == 15
    outcome = job.build(spark, str(tmp_path), CLUSTER, timedelta(days=1), now)
    lineage = outcome.model.header["lineage"]
    assert (lineage["forecastDays"], lineage["forecastDaysFromWindows"]) == (days + 1, days + 1 - 15)
    names = [name for name in expected["t0"] if name.startswith("forecast_")]
    found = {row["topic"]: row for row in pyarrow.parquet.read_table(tmp_path / outcome.artefact).to_pylist()}
    assert [[found[t][name] for name in names] for t in found] == [[expected[t][name] for name in names] for t in found]
    lake.delete_directory("windows")
    outcome = job.build(spark, str(tmp_path), CLUSTER, timedelta(days=1), now)
    assert outcome.model.forecasts[7].partitions > 100
    assert outcome.model.forecasts[30].partitions == 0


@pytest.mark.campaign
def test_a_thin_history_has_no_forecast(spark: SparkSession, tmp_path: Path) -> None:
    """Twelve days are enough for a day and a week ahead, not for thirty.

    A topic from yesterday has no trend. A partition has no forecast if there are too few of its kind to measure the
    error: here only the kind without retention has enough.
    """
    truth = logs(60, 13, seed=3)
    truth[0].size[:11] = [None] * 11
    steady = [1000 * (day + 1) for day in range(13)]
    truth[1] = Log("t1", math.inf, [*steady], [0] * 13, [*steady])
    write(tmp_path, truth, range(13))
    made = forecasts_of(spark, tmp_path, 12)
    known = {h: [row for row in made.values() if row[f"forecast_{h}d"] is not None] for h in HORIZONS}
    growing = [log for log in truth if log.retention == math.inf and (log.size[-1] or 0) > (log.size[-2] or 0)]
    assert len(known[1]) >= 0.9 * len(growing) > 20
    assert len(known[7]) >= 0.9 * len(growing)
    assert known[30] == []
    assert made["t0"]["forecast_1d"] is None
    assert made["t1"]["forecast_7d"] == pytest.approx(20_000, rel=0.05)
    for row in known[7]:
        assert 0 <= row["forecast_7d_low"] <= row["forecast_7d"] <= row["forecast_7d_high"]
