from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.sample_manifests import write_batch
from kafka_rebalance.pipeline.schema import SampleBatch, SampleRow
from kafka_rebalance.pipeline.size_history import daily_samples

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def sample(lake: Path, at: datetime, *missing: int) -> Path:
    """The file of a sample with one replica."""
    row = SampleRow(
        sampled_at=at, run_id="r", sequence=1, cluster_id="c", topic="t", topic_id="a", partition=0, broker=1
    )
    manifest = write_batch(str(lake), SampleBatch(at, "c", (row,), missing, "r", round(at.timestamp())))
    return lake / manifest.path


def chosen(lake: Path, newest: datetime = NOON) -> list[float]:
    """Hours before the newest sample."""
    found = daily_samples(Lake.open(str(lake)), "c", newest)
    return [(newest - each.batch.sampled_at) / timedelta(hours=1) for each in found]


class TestDailySamples:
    def test_one_a_day_at_the_time_of_the_newest(self, tmp_path: Path) -> None:
        """The night before says what the night does to sizes, not the day."""
        for hours in range(0, 97, 4):
            sample(tmp_path, NOON - timedelta(hours=hours))
        assert chosen(tmp_path) == [96, 72, 48, 24, 0]

    def test_a_day_without_one_near_that_time_is_left_out(self, tmp_path: Path) -> None:
        """Two hours are near, six are not."""
        for hours in (0, 26, 42, 74):
            sample(tmp_path, NOON - timedelta(hours=hours))
        assert chosen(tmp_path) == [74, 26, 0]

    def test_a_damaged_file_costs_itself(self, tmp_path: Path) -> None:
        """The next one of the day is as good."""
        for hours in (0, 23, 24, 48):
            file = sample(tmp_path, NOON - timedelta(hours=hours))
            if hours in (24, 48):
                file.write_bytes(b"damaged")
        assert chosen(tmp_path) == [23, 0]

    def test_samples_of_today_only_are_no_history(self, tmp_path: Path) -> None:
        """Nothing is opened then: most lakes in tests have no days."""
        for minutes in range(3):
            sample(tmp_path, NOON - timedelta(minutes=minutes))
        assert chosen(tmp_path) == []
