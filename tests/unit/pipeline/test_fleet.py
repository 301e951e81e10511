from __future__ import annotations

from pathlib import Path

import pytest

from kafka_rebalance.pipeline.fleet import Snapshot, find_snapshots


def touched(directory: Path, *names: str) -> Path:
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).write_bytes(b"{}" * (1 + len(name)))
    return directory


class TestFindSnapshots:
    def test_of_a_directory(self, tmp_path: Path) -> None:
        """Every cluster file, plain or gzipped; nothing else."""
        (tmp_path / "old.json").mkdir()
        place = touched(tmp_path, "b.json", "a.json.gz", "README.md", "c.json.gz.part")
        directory, found = find_snapshots(str(place))
        assert directory == str(place)
        assert found == (Snapshot("a", "a.json.gz", 20), Snapshot("b", "b.json", 14))

    def test_by_a_pattern(self, tmp_path: Path) -> None:
        """A directory may be called [1]."""
        place = touched(tmp_path / "[1]", "eu-1.json", "eu-2.json", "us-1.json")
        assert [s.cluster for s in find_snapshots(f"{place}/eu-*")[1]] == ["eu-1", "eu-2"]

    def test_a_name_stands_for_one_cluster(self, tmp_path: Path) -> None:
        """Otherwise one plan would replace the other."""
        with pytest.raises(ValueError, match=r"a\.json and a\.json\.gz are both of cluster a: remove one"):
            find_snapshots(str(touched(tmp_path, "a.json", "a.json.gz")))

    def test_nothing_there(self, tmp_path: Path) -> None:
        """The command says what to do."""
        assert find_snapshots(str(tmp_path / "none"))[1] == ()
