from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_retention import STILL_READ, tidy
from kafka_rebalance.pipeline.run_chain import Chain
from kafka_rebalance.pipeline.sample_manifests import Skipped, StoredBatch
from kafka_rebalance.pipeline.stored_hours import HOUR, HourInputs, StoredHour, publish_hour, read_hours

HOUR_0 = datetime(2026, 3, 1, 0, tzinfo=UTC)
LONG_AFTER = datetime.now(UTC) + STILL_READ + HOUR  # by the clock of the file system
KEPT = StoredBatch(HOUR_0, "a", 0, 5, (3,))
DROPPED = StoredBatch(HOUR_0 + timedelta(seconds=10), "b", 0, 5)
LATER = StoredBatch(HOUR_0 + HOUR, "a", 1, 5)
CHAIN = Chain((KEPT, LATER), (HOUR_0, HOUR_0 + HOUR), (DROPPED,))
SKIPPED = Skipped("samples/cluster=c1/date=2026-03-01/20260301T001000.000000Z-aa.parquet", "it is missing")
INPUTS = HourInputs.of("c1", HOUR_0, CHAIN, [SKIPPED], ["k"])


def names(lake: Path) -> list[str]:
    return sorted(path.name for path in lake.glob("*/*/*/*"))


class TestManifest:
    def test_comes_back(self, tmp_path: Path) -> None:
        """With all that it says; only samples, breaks and files of the hour are its own."""
        written = publish_hour(Lake.open(str(tmp_path)), INPUTS, b"rows", ["bb", "aa"])
        assert read_hours(Lake.open(str(tmp_path)), "c1", HOUR_0, HOUR_0 + HOUR) == [written]
        assert (written.inputs.batches, written.inputs.dropped) == ((KEPT,), (DROPPED,))
        assert (written.inputs.breaks, written.inputs.skipped) == ((HOUR_0,), (SKIPPED,))
        assert (written.files, written.size_bytes) == (("aa", "bb"), 4)
        assert StoredHour.from_json(written.to_json()) == written

    def test_the_same_samples_have_the_same_name(self, tmp_path: Path) -> None:
        """So it does not matter how often an hour is stored."""
        lake = Lake.open(str(tmp_path))
        publish_hour(lake, INPUTS, b"rows", ["aa"])
        before = names(tmp_path)
        publish_hour(lake, INPUTS, b"rows", ["aa"])
        assert names(tmp_path) == before
        publish_hour(lake, replace(INPUTS, batches=()), b"rows", ["aa"])
        assert len(names(tmp_path)) == 4

    def test_hours_are_within_the_time(self, tmp_path: Path) -> None:
        """From their begin to their end."""
        lake = Lake.open(str(tmp_path))
        publish_hour(lake, INPUTS, b"rows", ["aa"])
        assert not read_hours(lake, "c1", HOUR_0 + timedelta(seconds=1), HOUR_0 + 2 * HOUR)
        assert not read_hours(lake, "c1", HOUR_0 - HOUR, HOUR_0 + HOUR - timedelta(seconds=1))
        assert not read_hours(lake, "c2", HOUR_0, HOUR_0 + HOUR)


class TestRetention:
    def test_old_windows_are_deleted(self, tmp_path: Path) -> None:
        """By the time of the hour; without a retention none."""
        lake = Lake.open(str(tmp_path))
        publish_hour(lake, INPUTS, b"rows", ["aa"])
        tidy(lake, "c1", HOUR_0 + 30 * HOUR, HOUR, None)
        tidy(lake, "c1", HOUR_0 + 30 * HOUR, HOUR, 30 * HOUR)
        assert len(names(tmp_path)) == 2
        assert tidy(lake, "c1", HOUR_0 + 30 * HOUR, None, 28 * HOUR).deleted_files == 1
        assert names(tmp_path) == []

    def test_of_an_hour_the_last_file_remains(self, tmp_path: Path) -> None:
        """The others go when no job can be reading them any more."""
        lake = Lake.open(str(tmp_path))
        publish_hour(lake, replace(INPUTS, batches=()), b"rows", ["aa"])
        last = publish_hour(lake, INPUTS, b"rows", ["aa"])
        assert tidy(lake, "c1", datetime.now(UTC), None).deleted_files == 0
        assert tidy(lake, "c1", LONG_AFTER, None).deleted_files == 1
        assert read_hours(lake, "c1", HOUR_0, HOUR_0 + HOUR) == [last]
