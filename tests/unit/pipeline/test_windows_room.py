from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow.fs
import pytest
from tests.unit.pipeline.test_stored_hours import HOUR_0

from kafka_rebalance.errors import Permanent
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.stored_hours import HourInputs, publish_hour, read_hours
from kafka_rebalance.pipeline.windows_room import WindowsRoom, shares, trim

DAY = timedelta(days=1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path))


def volume(monkeypatch: pytest.MonkeyPatch, total: int) -> None:
    usage = shutil.disk_usage("/")._replace(total=total)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)


def made(lake: Lake, cluster_id: str, samples: int, windows: int) -> None:
    """Store samples of that many bytes, and windows of that many bytes in total, for ten hours."""
    lake.write(f"samples/cluster={cluster_id}/date=2026-03-01/a.parquet", bytes(samples))
    for number in range(10 if windows else 0):
        inputs = HourInputs(cluster_id, HOUR_0 + timedelta(hours=number), (), (), (), (), ("k",))
        publish_hour(lake, inputs, bytes(windows // 10), ())


def hours(lake: Lake, cluster_id: str) -> list[int]:
    """Which of the ten are left, and intact."""
    found = read_hours(lake, cluster_id, HOUR_0, HOUR_0 + DAY)
    assert all(lake.sha256(hour.inputs.path("windows")) == hour.sha256 for hour in found)
    return [round((hour.inputs.hour - HOUR_0) / timedelta(hours=1)) for hour in found]


class TestRoom:
    def test_windows_leave_a_sixteenth_of_the_volume(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of all files of the lake; in a run each of them is counted."""
        volume(monkeypatch, 16_000)
        made(lake, "c1", 12_000, 0)
        room = WindowsRoom(lake)
        room.take(2_000)
        with pytest.raises(Permanent, match="leaves a 16th of its volume") as refused:
            room.take(1_001)
        assert refused.value.reason == "LakeUnusable"
        room.take(1_000)

    def test_an_object_store_has_no_volume(self, tmp_path: Path) -> None:
        store = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
        bucket = Lake(store, "bucket", "s3a://bucket")
        WindowsRoom(bucket).take(1 << 60)
        assert trim(bucket) == 0


class TestTrim:
    def test_the_oldest_hours_of_the_cluster_with_most_for_its_samples_go(
        self, lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its brokers chose what its windows need; the samples alone were counted when they were written."""
        made(lake, "greedy", 10_000, 100_000)
        made(lake, "usual", 20_000, 30_000)
        used = sum(size for _, size in lake.sizes())
        volume(monkeypatch, (used - 25_000) * 12 // 11)
        lake.write("durations.json", b"")  # in the root, of no cluster
        assert trim(lake) == 3
        assert hours(lake, "greedy") == [3, 4, 5, 6, 7, 8, 9]
        assert hours(lake, "usual") == [*range(10)]

    def test_nothing_goes_while_there_is_room(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        made(lake, "c1", 0, 100_000)
        volume(monkeypatch, sum(size for _, size in lake.sizes()) * 12 // 11 + 1)
        assert trim(lake) == 0
        assert len(hours(lake, "c1")) == 10

    @pytest.mark.parametrize(
        ("stored", "samples", "most", "kept"),
        [
            ({"a": 90, "b": 30}, {"a": 10, "b": 20}, 100, {"a": 70, "b": 30}),
            ({"a": 90, "b": 90}, {"a": 10, "b": 20}, 90, {"a": 30, "b": 60}),
            ({"a": 90, "gone": 40}, {"a": 10}, 100, {"a": 90, "gone": 10}),
            ({"a": 90, "gone": 40}, {"a": 10}, 0, {"a": 0, "gone": 0}),
            ({"gone": 40}, {}, 30, {"gone": 30}),
        ],
    )
    def test_shares_are_by_samples(
        self, stored: dict[str, int], samples: dict[str, int], most: int, kept: dict[str, int]
    ) -> None:
        """What a cluster does not need is for the others; one whose samples have expired gets what is left."""
        assert shares(stored, samples, most) == kept
