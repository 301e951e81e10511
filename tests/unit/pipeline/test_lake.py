from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pyarrow.fs
import pytest

from kafka_rebalance.errors import Permanent, Refused
from kafka_rebalance.pipeline import lake as lakes


class TestFiles:
    def test_nothing_unfinished_is_left(self, tmp_path: Path) -> None:
        """Replacing a file leaves only the new one."""
        lake = lakes.Lake.open(str(tmp_path))
        for data in (b"old", b"new"):
            lake.write("models/c1/model", data)
        assert [path.name for path in (tmp_path / "models/c1").iterdir()] == ["model"]
        assert lake.read("models/c1/model") == b"new"

    def test_a_store_without_renames_gets_the_bytes_as_they_are(self, tmp_path: Path) -> None:
        """One stream to the final name, and no second gzip because of its extension."""
        store = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
        (tmp_path / "bucket").mkdir()
        lakes.Lake(store, "bucket", "s3a://bucket").write("model.json.gz", b"bytes")
        assert [(path.name, path.read_bytes()) for path in (tmp_path / "bucket").iterdir()] == [
            ("model.json.gz", b"bytes")
        ]

    def test_a_hash_is_of_all_bytes(self, tmp_path: Path) -> None:
        """The hash of a file of several pieces; None for a missing file."""
        data = b"x" * (9 << 20)
        (tmp_path / "large").write_bytes(data)
        lake = lakes.Lake.open(str(tmp_path))
        assert lake.sha256("large") == hashlib.sha256(data).hexdigest()
        assert lake.sha256("gone") is None

    def test_deleting_twice_is_no_error(self, tmp_path: Path) -> None:
        """Two processes may tidy up."""
        (tmp_path / "file").write_text("")
        (tmp_path / "directory").mkdir()
        lake = lakes.Lake.open(str(tmp_path))
        for _ in range(2):
            lake.delete("file")
            lake.delete_directory("directory")
        assert list(tmp_path.iterdir()) == []


class TestPlaces:
    def test_a_file_uri_is_the_same_lake(self, tmp_path: Path) -> None:
        """Including paths with spaces."""
        place = tmp_path / "a lake"
        lakes.Lake.open(place.as_uri()).write("manifests/cluster=c1/x", b"")
        lake = lakes.Lake.open(str(place))
        assert lakes.clusters(lake) == ["c1"]
        assert lake.spark_root == lakes.Lake.open(place.as_uri()).spark_root == f"file://{place}"

    def test_an_unusable_uri_is_refused_without_its_keys(self) -> None:
        """A URI may contain credentials; messages must not."""
        with pytest.raises(Permanent, match="cannot be opened") as failure:
            lakes.Lake.open("nope://key:secret@bucket/lake?token=secret")
        assert "secret" not in failure.value.message

    def test_a_cluster_without_samples_is_refused_with_those_that_have_some(self, tmp_path: Path) -> None:
        """Without a choice it is all of them."""
        lakes.Lake.open(str(tmp_path)).write("manifests/cluster=c1/x", b"")
        assert lakes.chosen_clusters(str(tmp_path), ()) == ["c1"]
        with pytest.raises(Refused, match="no samples of c9; clusters with samples: c1"):
            lakes.chosen_clusters(str(tmp_path), ("c9",))


class _Forbidding:
    """A file system with a directory that may not be read, as Arrow reports it to a user without rights."""

    def __init__(self, forbidden: str) -> None:
        self._files, self._forbidden = pyarrow.fs.LocalFileSystem(), forbidden

    def get_file_info(self, selector: pyarrow.fs.FileSelector) -> list[pyarrow.fs.FileInfo]:
        if selector.recursive and self._forbidden.startswith(selector.base_dir):
            raise PermissionError(13, f"Cannot list directory '{self._forbidden}'")
        found: list[pyarrow.fs.FileInfo] = self._files.get_file_info(selector)
        return found


def test_the_sizes_beside_what_a_volume_has_in_its_root(tmp_path: Path) -> None:
    """The root of an ext4 volume has ``lost+found``, which only root may read."""
    lake = lakes.Lake.open(str(tmp_path))
    lake.write("samples/cluster=c/a.parquet", b"12")
    lake.write("durations.json", b"1")
    (tmp_path / "lost+found").mkdir()
    limited = replace(lake, filesystem=_Forbidding(str(tmp_path / "lost+found")))
    assert sorted(limited.sizes()) == [("durations.json", 1), ("samples/cluster=c/a.parquet", 2)]
