from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.pipeline.test_sample_manifests import DAY, batch
from tests.unit.pipeline.test_stored_hours import HOUR_0, LONG_AFTER

from kafka_rebalance.pipeline.coverage import Coverage, coverage
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_retention import SETTLED, tidy
from kafka_rebalance.pipeline.sample_manifests import Manifest, StoredBatch, publish, write_batch
from kafka_rebalance.pipeline.stored_hours import HOUR, HourInputs, StoredHour, hour_of, publish_hour

COLUMNS = ("k", "w")


def sampled(place: Path, *minutes: float, run: str = "run") -> list[Manifest]:
    """Samples at these minutes after an hour begins."""
    lake, manifests = Lake.open(str(place)), []
    for minute in minutes:
        moment = HOUR_0 + timedelta(minutes=minute)
        stored = StoredBatch(moment, run, round(minute * 60), 1)
        manifests.append(publish(lake, "c1", f"{run} {minute}".encode(), (stored,)))
    return manifests


def covered(place: Path, window: timedelta = DAY, columns: tuple[str, ...] = COLUMNS) -> Coverage:
    return coverage(Lake.open(str(place)), "c1", window, HOUR_0 + DAY, columns)


def store(place: Path, window: timedelta = DAY) -> None:
    """As the job does it: every hour that has ended and is not stored."""
    found = covered(place, window)
    last = hour_of(found.linked.batches[-1].sampled_at)
    for hour in sorted({hour_of(each.sampled_at) for each in found.open_batches()} - {last}):
        inputs = HourInputs.of("c1", hour, found.linked, found.found.skipped, COLUMNS)
        files = found.files(inputs.batches)
        publish_hour(Lake.open(str(place)), inputs, b"windows", (manifest.sha256 for manifest in files))


def hours(found: Iterable[StoredHour]) -> list[int]:
    return [round((hour.inputs.hour - HOUR_0) / HOUR) for hour in found]


def minutes(batches: Iterable[StoredBatch]) -> list[float]:
    return [(batch.sampled_at - HOUR_0).total_seconds() / 60 for batch in batches]


class TestCoverage:
    def test_samples_are_needed_only_for_the_hours_that_are_not_stored(self, tmp_path: Path) -> None:
        """The last hour may not have ended; the samples of all of them count."""
        sampled(tmp_path, 0, 30, 60, 90, 120)
        assert minutes(covered(tmp_path).open_batches()) == [0, 30, 60, 90, 120]
        store(tmp_path)
        found = covered(tmp_path)
        assert (hours(found.stored), minutes(found.open_batches())) == ([0, 1], [120])
        assert minutes(found.linked.batches) == [0, 30, 60, 90, 120]
        assert len(found.found.manifests) == 1

    def test_an_hour_that_the_window_cuts_is_read_from_samples(self, tmp_path: Path) -> None:
        """The windows of the whole hour have more."""
        sampled(tmp_path, 0, 30, 60, 90, 120)
        store(tmp_path)
        found = covered(tmp_path, timedelta(minutes=100))
        assert (hours(found.stored), minutes(found.open_batches())) == ([1], [30, 120])

    def test_a_late_sample_makes_its_hour_open(self, tmp_path: Path) -> None:
        """Until it is stored again; then the file with more samples counts."""
        sampled(tmp_path, 0, 30, 60, 120)
        store(tmp_path)
        sampled(tmp_path, 90)
        found = covered(tmp_path)
        assert (hours(found.stored), minutes(found.open_batches())) == ([0], [60, 90, 120])
        store(tmp_path)
        assert hours(covered(tmp_path).stored) == [0, 1]

    def test_samples_may_expire(self, tmp_path: Path) -> None:
        """Samples of stored hours still count; samples of other hours are gone."""
        sampled(tmp_path, 0, 30, 60, 120)
        store(tmp_path)
        for path in tmp_path.glob("*/*/*/*T0[01]*"):
            if path.parts[-4] in ("samples", "manifests"):
                path.unlink()
        found = covered(tmp_path)
        assert (hours(found.stored), minutes(found.linked.batches)) == ([0, 1], [0, 30, 60, 120])

    def test_a_damaged_file_costs_its_samples_and_nothing_is_computed_again(self, tmp_path: Path) -> None:
        """The hour was stored without it, and it is still reported."""
        damaged = sampled(tmp_path, 0, 30, 60, 120)[1]
        (tmp_path / damaged.path).write_bytes(b"rot")
        store(tmp_path)
        found = covered(tmp_path)
        assert (hours(found.stored), minutes(found.linked.batches)) == ([0, 1], [0, 60, 120])
        assert [skipped.name for skipped in found.found.skipped] == [damaged.path]

    def test_other_samplers_may_count_within_another_window(self, tmp_path: Path) -> None:
        """The hour was stored with the run that had begun first; within a short window the other one begins first."""
        sampled(tmp_path, 50, 70, 90, 110)
        sampled(tmp_path, 65, 85, 105, 125, 145, run="other")
        store(tmp_path)
        assert hours(covered(tmp_path).stored) == [0, 1]
        found = covered(tmp_path, timedelta(minutes=85))
        assert (hours(found.stored), minutes(found.linked.batches)) == ([], [65, 85, 105, 125, 145])

    def test_other_columns_are_computed_again(self, tmp_path: Path) -> None:
        """A program with another measure does not take it for absent."""
        sampled(tmp_path, 0, 60)
        store(tmp_path)
        assert hours(covered(tmp_path, columns=(*COLUMNS, "new")).stored) == []

    def test_a_merge_of_samples_changes_nothing(self, tmp_path: Path) -> None:
        """The hours are known by their samples, not by files."""
        for at in (0, 30, 60, 120):
            write_batch(str(tmp_path), batch(HOUR_0 + timedelta(minutes=at), sequence=at))
        store(tmp_path)
        now = HOUR_0 + DAY + SETTLED
        assert tidy(Lake.open(str(tmp_path)), "c1", now, None).into == 1
        assert hours(covered(tmp_path).stored) == [0, 1]
        tidy(Lake.open(str(tmp_path)), "c1", LONG_AFTER, None)
        assert (hours(covered(tmp_path).stored), minutes(covered(tmp_path).open_batches())) == ([0, 1], [120])

    @pytest.mark.parametrize("content", [b"rotting", None])
    def test_a_damaged_file_of_windows_is_not_used(self, tmp_path: Path, content: bytes | None) -> None:
        """Nor one that is gone: its hour is read from samples, and stored again."""
        sampled(tmp_path, 0, 60, 120)
        store(tmp_path)
        damaged = next(tmp_path.glob("windows/*/*/*T00*"))
        if content is None:
            damaged.unlink()
        else:
            damaged.write_bytes(content)
        found = covered(tmp_path)
        assert (hours(found.stored), minutes(found.open_batches())) == ([1], [0, 120])
        store(tmp_path)
        assert hours(covered(tmp_path).stored) == [0, 1]

    @pytest.mark.parametrize("content", [b"", b"{}", b'{"version": 2}'])
    def test_a_manifest_that_cannot_be_read_is_left_out(self, tmp_path: Path, content: bytes) -> None:
        """The samples say the same."""
        sampled(tmp_path, 0, 60)
        store(tmp_path)
        (manifest,) = tmp_path.glob("window-manifests/*/*/*")
        manifest.write_bytes(content)
        assert minutes(covered(tmp_path).open_batches()) == [0, 60]


def test_nothing_is_covered_in_an_empty_lake(tmp_path: Path) -> None:
    found = covered(tmp_path)
    assert (found.linked.batches, found.stored, found.found.manifests) == ((), (), ())
