from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.pipeline.test_sample_manifests import LATER, MOMENT, batch, commits_of, found
from tests.unit.pipeline.test_stored_hours import INPUTS

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_leftovers import ABANDONED, sweep
from kafka_rebalance.pipeline.sample_manifests import write_batch
from kafka_rebalance.pipeline.stored_hours import publish_hour

NOW = LATER + timedelta(days=400)


def made(lake: Path, name: str, age: timedelta) -> Path:
    """A file that was written so long ago."""
    path = lake / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")
    os.utime(path, ((NOW - age).timestamp(),) * 2)
    return path


def swept(lake: Path) -> int:
    return sweep(Lake.open(str(lake)), NOW)


def files(lake: Path) -> list[Path]:
    return [path for path in lake.rglob("*") if path.is_file()]


class TestUnfinished:
    def test_output_of_killed_jobs_is_deleted(self, tmp_path: Path) -> None:
        """With its directory; each file counts."""
        for name in ("a/part-0.parquet", "a/_temporary/0/part-1.parquet", "b/hour=1/part-0.parquet"):
            made(tmp_path, f"unfinished/{name}", ABANDONED + timedelta(minutes=1))
        assert swept(tmp_path) == 3
        assert list((tmp_path / "unfinished").iterdir()) == []
        assert swept(tmp_path) == 0

    def test_a_job_that_has_just_written_is_left_alone(self, tmp_path: Path) -> None:
        """Its first files are old, the last one is not."""
        made(tmp_path, "unfinished/a/part-0.parquet", 3 * ABANDONED)
        made(tmp_path, "unfinished/a/part-1.parquet", ABANDONED - timedelta(minutes=1))
        assert swept(tmp_path) == 0
        assert len(files(tmp_path)) == 2


class TestUnnamed:
    @pytest.mark.parametrize("place", ["samples", "offsets", "metrics", "windows"])
    def test_a_file_without_a_manifest_is_deleted(self, tmp_path: Path, place: str) -> None:
        """Its writer was killed in between; one of today may get its manifest yet."""
        day = f"{place}/cluster=c1/date=2026-03-01"
        made(tmp_path, f"{day}/20260301T000000.000000Z-01.parquet", ABANDONED + timedelta(minutes=1))
        new = made(tmp_path, f"{day}/20260301T000000.000000Z-02.parquet", ABANDONED - timedelta(minutes=1))
        assert swept(tmp_path) == 1
        assert files(tmp_path) == [new]

    @pytest.mark.parametrize(
        "name", ["samples/cluster=c1/x.parquet", "manifests/cluster=c1/x.json", "models/c1/load-model.parquet"]
    )
    def test_the_beginning_of_a_file_is_deleted(self, tmp_path: Path, name: str) -> None:
        made(tmp_path, f"{name}.0123.part", ABANDONED + timedelta(minutes=1))
        assert swept(tmp_path) == 1
        assert files(tmp_path) == []

    def test_what_is_whole_remains(self, tmp_path: Path) -> None:
        """However old: samples, offsets and windows that a manifest names, models, steps and checkpoints."""
        write_batch(str(tmp_path), commits_of(batch(MOMENT)))
        publish_hour(Lake.open(str(tmp_path)), INPUTS, b"rows", ["aa"])
        for name in ("models/c1/load-model.parquet", "steps/cluster=c1/date=2026-03-01/a.parquet", "checkpoints/w/0"):
            made(tmp_path, name, 3 * ABANDONED)
        before = sorted(files(tmp_path))
        assert len(before) == 2 + 2 + 2 + 3
        for path in before:
            os.utime(path, (0, 0))
        assert swept(tmp_path) == 0
        assert sorted(files(tmp_path)) == before
        assert len(found(tmp_path).manifests) == 1


def test_an_empty_lake_has_none(tmp_path: Path) -> None:
    assert sweep(Lake.open(str(tmp_path)), datetime.now(UTC)) == 0
