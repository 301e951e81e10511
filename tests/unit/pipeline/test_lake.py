from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.fs
import pyarrow.parquet
import pytest

from kafka_rebalance.errors import Permanent, Refused
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.pipeline import lake as lakes
from kafka_rebalance.pipeline.schema import ARROW_SCHEMA, SampleBatch, SampleRow

MOMENT = datetime(2026, 2, 28, 23, 59, 50, 1, tzinfo=UTC)


def batch(moment: datetime = MOMENT, cluster: str = "c1", missing: tuple[int, ...] = ()) -> SampleBatch:
    rows = (
        SampleRow(moment, cluster, "orders", "id-1", 0, 1, True, 1000, 5, 15),
        SampleRow(moment, cluster, "orders", "id-1", 0, 2, False, 990, None, None),
    )
    return SampleBatch(moment, cluster, rows, tuple(BrokerId(b) for b in missing))


class TestWriting:
    def test_rows_come_back_from_the_named_file(self, tmp_path: Path) -> None:
        """Parquet keeps every column, with times in UTC to the microsecond."""
        manifest = lakes.write_batch(str(tmp_path), batch())
        table = pyarrow.parquet.ParquetFile(tmp_path / manifest.path).read()
        assert table.schema.equals(ARROW_SCHEMA, check_metadata=True)
        assert [tuple(row.values()) for row in table.to_pylist()] == [
            (MOMENT, "c1", "orders", "id-1", 0, 1, True, 1000, 5, 15),
            (MOMENT, "c1", "orders", "id-1", 0, 2, False, 990, None, None),
        ]

    def test_the_manifest_says_what_was_written(self, tmp_path: Path) -> None:
        """Path by cluster and date, rows, size, hash, schema and the brokers that did not answer."""
        manifest = lakes.write_batch(str(tmp_path), batch(missing=(3, 4)))
        data = (tmp_path / manifest.path).read_bytes()
        (stored,) = (tmp_path / "manifests/cluster=c1/date=2026-02-28").iterdir()
        assert json.loads(stored.read_bytes()) == {
            "schemaVersion": 1,
            "path": f"samples/cluster=c1/date=2026-02-28/{stored.stem}.parquet",
            "sampledAt": "2026-02-28T23:59:50.000001+00:00",
            "clusterId": "c1",
            "rows": 2,
            "sizeBytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "missingBrokers": [3, 4],
        }

    def test_the_same_moment_twice_is_two_files(self, tmp_path: Path) -> None:
        """Raw data is never overwritten."""
        first, second = (lakes.write_batch(str(tmp_path), batch()) for _ in range(2))
        assert first.path != second.path
        assert (tmp_path / first.path).exists()

    def test_a_batch_counts_only_from_its_manifest_on(self, tmp_path: Path) -> None:
        """If the manifest cannot be written, the rows are never read."""
        (tmp_path / "manifests").write_text("in the way")
        with pytest.raises(OSError, match="manifests"):
            lakes.write_batch(str(tmp_path), batch())
        assert list(tmp_path.glob("samples/cluster=c1/date=2026-02-28/*.parquet"))
        (tmp_path / "manifests").unlink()
        assert lakes.clusters(lakes.Lake.open(str(tmp_path))) == []

    def test_nothing_unfinished_is_left(self, tmp_path: Path) -> None:
        """Replacing a file leaves only the new one."""
        lake = lakes.Lake.open(str(tmp_path))
        for data in (b"old", b"new"):
            lake.write("models/c1/load-model.json.gz", data)
        assert [path.name for path in (tmp_path / "models/c1").iterdir()] == ["load-model.json.gz"]
        assert lake.read("models/c1/load-model.json.gz") == b"new"

    def test_a_store_without_renames_gets_the_bytes_as_they_are(self, tmp_path: Path) -> None:
        """One stream to the final name, and no second gzip because of its extension."""
        store = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
        (tmp_path / "bucket").mkdir()
        lakes.Lake(store, "bucket", "s3a://bucket").write("model.json.gz", b"bytes")
        assert [(path.name, path.read_bytes()) for path in (tmp_path / "bucket").iterdir()] == [
            ("model.json.gz", b"bytes")
        ]

    def test_a_file_uri_is_the_same_lake(self, tmp_path: Path) -> None:
        """Including paths with spaces."""
        place = tmp_path / "a lake"
        lakes.write_batch(place.as_uri(), batch())
        lake = lakes.Lake.open(str(place))
        assert lakes.clusters(lake) == ["c1"]
        assert lake.spark_root == lakes.Lake.open(place.as_uri()).spark_root == f"file://{place}"

    def test_an_odd_cluster_id_stays_one_segment(self, tmp_path: Path) -> None:
        """A cluster id cannot escape its directory."""
        lakes.write_batch(str(tmp_path), batch(cluster="../x/y"))
        assert lakes.clusters(lakes.Lake.open(str(tmp_path))) == ["../x/y"]
        assert not (tmp_path.parent / "x").exists()

    def test_an_unusable_uri_is_refused_without_its_keys(self) -> None:
        """A URI may contain credentials; messages must not."""
        with pytest.raises(Permanent, match="cannot be opened") as failure:
            lakes.Lake.open("nope://key:secret@bucket/lake?token=secret")
        assert "secret" not in failure.value.message


class TestReading:
    def test_the_window_ends_at_the_newest_batch(self, tmp_path: Path) -> None:
        """Across midnight, oldest first, in whatever order they were written."""
        for seconds in (20, 0, 10, -10):
            lakes.write_batch(str(tmp_path), batch(MOMENT + timedelta(seconds=seconds)))
        found = lakes.manifests(lakes.Lake.open(str(tmp_path)), "c1", timedelta(seconds=20))
        assert [(manifest.sampled_at - MOMENT).total_seconds() for manifest in found] == [0, 10, 20]

    def test_other_clusters_are_not_mixed_in(self, tmp_path: Path) -> None:
        """A lake can have several clusters."""
        lakes.write_batch(str(tmp_path), batch())
        lakes.write_batch(str(tmp_path), batch(cluster="c2"))
        lake = lakes.Lake.open(str(tmp_path))
        assert lakes.clusters(lake) == ["c1", "c2"]
        assert [manifest.cluster_id for manifest in lakes.manifests(lake, "c2", timedelta(days=1))] == ["c2"]

    def test_what_no_manifest_names_is_not_there(self, tmp_path: Path) -> None:
        """Half-written manifests and stray files are ignored."""
        manifest = lakes.write_batch(str(tmp_path), batch())
        (tmp_path / manifest.path).with_name("stray.parquet").write_bytes(b"PAR1")
        (path,) = (tmp_path / "manifests/cluster=c1/date=2026-02-28").iterdir()
        path.with_name(f"{path.name}.0123.part").write_bytes(b'{"schemaVersion"')
        assert lakes.manifests(lakes.Lake.open(str(tmp_path)), "c1", timedelta(days=1)) == [manifest]

    def test_files_that_changed_or_went_are_left_out(self, tmp_path: Path) -> None:
        """A file whose size differs from the manifest is ignored."""
        kept, cut, gone = (lakes.write_batch(str(tmp_path), batch()) for _ in range(3))
        (tmp_path / cut.path).write_bytes(b"PAR1")
        (tmp_path / gone.path).unlink()
        assert lakes.intact(lakes.Lake.open(str(tmp_path)), [kept, cut, gone]) == [kept]

    def test_an_unknown_schema_is_refused(self, tmp_path: Path) -> None:
        """Reading it like a known schema could give wrong figures."""
        lakes.write_batch(str(tmp_path), batch())
        (path,) = (tmp_path / "manifests/cluster=c1/date=2026-02-28").iterdir()
        path.write_text(path.read_text().replace('"schemaVersion": 1', '"schemaVersion": 2'))
        with pytest.raises(Refused, match="schema 2, this program reads 1"):
            lakes.manifests(lakes.Lake.open(str(tmp_path)), "c1", timedelta(days=1))

    def test_a_manifest_that_is_none_is_refused_by_name(self, tmp_path: Path) -> None:
        """The message names the file."""
        lakes.write_batch(str(tmp_path), batch())
        (path,) = (tmp_path / "manifests/cluster=c1/date=2026-02-28").iterdir()
        path.write_text("{}")
        with pytest.raises(Refused, match=path.name):
            lakes.manifests(lakes.Lake.open(str(tmp_path)), "c1", timedelta(days=1))
