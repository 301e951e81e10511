"""The count of what namespaces write to a lake a day, and how much that may be."""

import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from kafka_rebalance.storage.daily_bytes import claim_bytes, daily_share, written_bytes
from kafka_rebalance.storage.locations import Location, open_location

DAY = date(2026, 3, 4)


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    return open_location(str(tmp_path / "lake"))


class TestCount:
    def test_is_of_a_namespace_a_kind_and_a_day(self, lake: Location) -> None:
        assert claim_bytes(lake, "samples", "k", DAY, 60, 100)
        assert not claim_bytes(lake, "samples", "k", DAY, 41, 100)
        assert claim_bytes(lake, "samples", "k", DAY, 40, 100)
        assert written_bytes(lake, "samples", "k", DAY) == 100
        assert claim_bytes(lake, "samples", "other", DAY, 41, 100)
        assert claim_bytes(lake, "steps", "k", DAY, 41, 100)
        assert claim_bytes(lake, "samples", "k", DAY + timedelta(days=1), 41, 100)
        assert written_bytes(lake, "samples", "k", DAY + timedelta(days=1)) == 41

    @pytest.mark.parametrize(
        "damaged", ["", "[]", "{", '{"date": "2026-03-04", "bytes": "x"}', '{"date": "2026-03-04"}']
    )
    def test_that_is_damaged_is_mended(self, lake: Location, damaged: str) -> None:
        """It costs what was counted, and no later write."""
        claim_bytes(lake, "samples", "k", DAY, 60, 100)
        (path,) = Path(lake.root).rglob("*.json")
        path.write_text(damaged)
        assert claim_bytes(lake, "samples", "k", DAY, 50, 100)
        assert written_bytes(lake, "samples", "k", DAY) == 50


class TestShare:
    @pytest.mark.parametrize(("total", "share"), [(10 << 30, 320 << 20), (50 << 30, 1600 << 20), (8 << 60, 2 << 30)])
    def test_grows_with_the_volume(
        self, lake: Location, monkeypatch: pytest.MonkeyPatch, total: int, share: int
    ) -> None:
        """More than the samples of each minute need on a volume of the recommended size, before the lake exists too."""
        usage = shutil.disk_usage("/")._replace(total=total)
        monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)
        assert daily_share(lake) == share

    def test_of_an_object_store_is_fixed(self) -> None:
        assert daily_share(open_location("mock://lake")) == 2 << 30
