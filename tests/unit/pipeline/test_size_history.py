from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.sample_manifests import StoredBatch, write_batch
from kafka_rebalance.pipeline.schema import SampleBatch, SampleRow
from kafka_rebalance.pipeline.size_history import days_needed, size_history
from kafka_rebalance.pipeline.stored_hours import HOUR, HourInputs, publish_hour

ALL = ("k", "w", "micros", "size", "at", "start")
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
    found = size_history(Lake.open(str(lake)), "c", newest)
    return [(newest - each.batch.sampled_at) / timedelta(hours=1) for each in found.samples]


def windows(lake: Path, hour: datetime, columns: tuple[str, ...] = ALL, content: bytes = b"rows") -> Path:
    """The file of a stored hour."""
    batch = StoredBatch(hour, "r", 0, 1)
    inputs = HourInputs("c", hour, (batch,), (), (), (), columns)
    publish_hour(Lake.open(str(lake)), inputs, content, ["aa"])
    return lake / inputs.path("windows")


def hours(lake: Path, newest: datetime = NOON) -> list[float]:
    """The hours chosen, as hours before noon; the newest sample is of twenty past."""
    found = size_history(Lake.open(str(lake)), "c", newest + timedelta(minutes=20)).hours
    return [(newest - hour.inputs.hour) / HOUR for hour in found]


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


class TestStoredHours:
    def test_stand_in_for_samples_that_expired(self, tmp_path: Path) -> None:
        """One a day, the hour of the newest sample; a day with a sample takes that."""
        for back in (0, 24):
            sample(tmp_path, NOON - timedelta(hours=back))
        for back in range(24, 97):
            windows(tmp_path, NOON - back * HOUR)
        assert chosen(tmp_path) == [24, 0]
        assert hours(tmp_path) == [96, 72, 48]
        found = size_history(Lake.open(str(tmp_path)), "c", NOON)
        assert (found.days, found.reaches_back(NOON)) == (5, 4)

    def test_the_nearest_hour_of_the_day_if_it_is_near(self, tmp_path: Path) -> None:
        """Two hours are near, six are not."""
        sample(tmp_path, NOON)
        for back in (26, 42, 54, 76):
            windows(tmp_path, NOON - back * HOUR)
        assert hours(tmp_path) == [26]

    def test_a_damaged_file_and_other_columns_cost_themselves(self, tmp_path: Path) -> None:
        """The next hour of the day is as good; columns that no size needs may be others."""
        sample(tmp_path, NOON)
        windows(tmp_path, NOON - 24 * HOUR).write_bytes(b"damaged")
        windows(tmp_path, NOON - 25 * HOUR, ("k", "w", "size"))
        windows(tmp_path, NOON - 26 * HOUR, ("k", "w", "at", "size", "start", "of the future"))
        windows(tmp_path, NOON - 48 * HOUR).unlink()
        assert hours(tmp_path) == [26]


def test_days_that_a_forecast_needs() -> None:
    """To have been tried once on the past, on the same weekday, from points of half the days ahead. As documented."""
    assert [days_needed(ahead) for ahead in (1, 7, 30)] == [9, 11, 50]
