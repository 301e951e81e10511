from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet
import pytest

from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.pipeline.commits_schema import COMMITS_ARROW_SCHEMA, CommitRow
from kafka_rebalance.pipeline.lake import Lake, clusters
from kafka_rebalance.pipeline.lake_tables import OFFSETS
from kafka_rebalance.pipeline.sample_manifests import Inventory, StoredBatch, inventory, write_batch
from kafka_rebalance.pipeline.schema import ARROW_SCHEMA, SampleBatch, SampleRow

MOMENT = datetime(2026, 2, 28, 23, 59, 50, 1, tzinfo=UTC)
LATER = MOMENT + timedelta(hours=1)
DAY = timedelta(days=1)


def batch(
    moment: datetime = MOMENT, cluster: str = "c1", missing: tuple[int, ...] = (), sequence: int = 3
) -> SampleBatch:
    common = (moment, "run", sequence, cluster, "orders", "id-1", 0)
    rows = (
        SampleRow(*common, 1, 1, 7, "/d", 1000, moment, 5, 15, moment, (1, 2), True),
        SampleRow(*common, 2, 1, None, "/d", 990, moment, isr=(1, 2), whole_log=True),
    )
    return SampleBatch(moment, cluster, rows, tuple(BrokerId(b) for b in missing), "run", sequence)


def found(place: Path, window: timedelta = DAY, cluster: str = "c1", now: datetime = LATER) -> Inventory:
    return inventory(Lake.open(str(place)), cluster, window, now)


class TestWriting:
    def test_rows_come_back_from_the_named_file(self, tmp_path: Path) -> None:
        """Parquet keeps every column, with times in UTC to the microsecond."""
        manifest = write_batch(str(tmp_path), batch())
        table = pyarrow.parquet.ParquetFile(tmp_path / manifest.path).read()
        assert table.schema.equals(ARROW_SCHEMA, check_metadata=True)
        common = (MOMENT, "run", 3, "c1", "orders", "id-1", 0)
        assert [tuple(row.values()) for row in table.to_pylist()] == [
            (*common, 1, 1, 7, "/d", 1000, MOMENT, 5, 15, MOMENT, [1, 2], True, None, None),
            (*common, 2, 1, None, "/d", 990, MOMENT, None, None, None, [1, 2], True, None, None),
        ]

    def test_the_manifest_says_what_was_written(self, tmp_path: Path) -> None:
        """Path by cluster and date, rows, size, hash, schema, run and the brokers that did not answer."""
        manifest = write_batch(str(tmp_path), batch(missing=(3, 4)))
        data = (tmp_path / manifest.path).read_bytes()
        (stored,) = (tmp_path / "manifests/cluster=c1/date=2026-02-28").iterdir()
        assert json.loads(stored.read_bytes()) == {
            "schemaVersion": 2,
            "path": f"samples/cluster=c1/date=2026-02-28/{stored.stem}.parquet",
            "clusterId": "c1",
            "rows": 2,
            "sizeBytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "batches": [
                {
                    "sampledAt": "2026-02-28T23:59:50.000001+00:00",
                    "runId": "run",
                    "sequence": 3,
                    "rows": 2,
                    "missingBrokers": [3, 4],
                }
            ],
            "replaces": [],
        }

    def test_of_many_brokers_that_did_not_answer_the_first_are_named(self, tmp_path: Path) -> None:
        """Brokers may claim replicas on any number of others, in each of the samples of a merged file."""
        write_batch(str(tmp_path), batch(missing=tuple(range(100_000))))
        (path,) = tmp_path.glob("manifests/cluster=c1/*/*")
        assert path.stat().st_size < 2000
        (stored,) = found(tmp_path).batches()
        assert (stored.missing_brokers, stored.missing_more) == (tuple(range(20)), 99_980)

    def test_the_same_moment_twice_is_two_files(self, tmp_path: Path) -> None:
        """Raw data is never overwritten."""
        first, second = (write_batch(str(tmp_path), batch()) for _ in range(2))
        assert first.path != second.path
        assert (tmp_path / first.path).exists()

    def test_a_batch_counts_only_from_its_manifest_on(self, tmp_path: Path) -> None:
        """If the manifest cannot be written, the rows are never read."""
        (tmp_path / "manifests").write_text("in the way")
        with pytest.raises(OSError, match="manifests"):
            write_batch(str(tmp_path), batch())
        assert list(tmp_path.glob("samples/cluster=c1/date=2026-02-28/*.parquet"))
        (tmp_path / "manifests").unlink()
        assert clusters(Lake.open(str(tmp_path))) == []

    def test_an_odd_cluster_id_stays_one_segment(self, tmp_path: Path) -> None:
        """A cluster id cannot escape its directory."""
        write_batch(str(tmp_path), batch(cluster="../x/y"))
        assert clusters(Lake.open(str(tmp_path))) == ["../x/y"]
        assert not (tmp_path.parent / "x").exists()


def commits_of(sample: SampleBatch) -> SampleBatch:
    common = (sample.sampled_at, sample.run_id, sample.sequence, sample.cluster_id, "orders", "id-1", 0)
    return replace(sample, commits=(CommitRow(*common, 5, 15, MOMENT, ("g", "h"), (7, 15)),))


class TestCommits:
    def test_are_a_table_of_their_own(self, tmp_path: Path) -> None:
        """With the time, run and sequence of the sample that they were read with."""
        write_batch(str(tmp_path), commits_of(batch(missing=(3,))))
        (manifest,) = inventory(Lake.open(str(tmp_path)), "c1", DAY, LATER, OFFSETS).manifests
        assert manifest.batches == (StoredBatch(MOMENT, "run", 3, 1, (3,)),)
        assert manifest.path.startswith("offsets/cluster=c1/date=2026-02-28/")
        table = pyarrow.parquet.ParquetFile(tmp_path / manifest.path).read()
        assert table.schema.equals(COMMITS_ARROW_SCHEMA, check_metadata=True)
        (row,) = table.to_pylist()
        assert row["groups"] == ["g", "h"]
        assert row["committed"] == [7, 15]

    def test_versions_that_do_not_know_them_see_the_same_samples(self, tmp_path: Path) -> None:
        """Their manifests are beside the directories of clusters, and no cluster."""
        manifest = write_batch(str(tmp_path), commits_of(batch()))
        assert found(tmp_path).manifests == (manifest,)
        assert clusters(Lake.open(str(tmp_path))) == ["c1"]

    def test_each_counts_for_a_byte_at_least(self, tmp_path: Path) -> None:
        """Equal ones take less in the file, and as much time of Spark as others."""
        sample = commits_of(batch())
        (row,) = sample.commits
        groups = tuple(f"g{number:05}" for number in range(5_000))
        many = replace(sample, commits=(replace(row, groups=groups, committed=(7,) * len(groups)),) * 20)
        permitted: list[int] = []
        for written in (sample, many):
            write_batch(str(tmp_path), written, permitted.append)
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert permitted[1] == 100_000
        assert permitted[0] < sum(path.stat().st_size for path in files) < 100_000

    def test_a_sample_without_any_writes_no_file(self, tmp_path: Path) -> None:
        """The groups were not read, or not all of them."""
        write_batch(str(tmp_path), batch())
        assert not (tmp_path / "offsets").exists()


class TestReading:
    def test_the_window_ends_at_the_newest_batch(self, tmp_path: Path) -> None:
        """Across midnight, oldest first, for any order of writing."""
        for seconds in (20, 0, 10, -10):
            write_batch(str(tmp_path), batch(MOMENT + timedelta(seconds=seconds)))
        inside = found(tmp_path, timedelta(seconds=20))
        assert [(each.sampled_at - MOMENT).total_seconds() for each in inside.batches()] == [0, 10, 20]

    def test_a_batch_from_the_future_is_not_the_newest(self, tmp_path: Path) -> None:
        """A sampler with a wrong clock must not push the others out of the window. Some minutes are a usual skew."""
        kept = write_batch(str(tmp_path), batch())
        skewed = write_batch(str(tmp_path), batch(LATER + timedelta(minutes=4)))
        ahead = write_batch(str(tmp_path), batch(LATER + timedelta(days=30)))
        inside = found(tmp_path)
        assert inside.manifests == (kept, skewed)
        assert [(each.name, "from the future" in each.why) for each in inside.skipped] == [(ahead.name, True)]

    def test_of_a_long_list_of_missing_brokers_only_the_beginning_is_kept(self, tmp_path: Path) -> None:
        """Such lists were stored once; a stored hour has the same as the samples that it was made of."""
        manifest = write_batch(str(tmp_path), batch(missing=(0,)))
        text = (tmp_path / manifest.name).read_text()
        (tmp_path / manifest.name).write_text(re.sub(r"\[\s+0\s+\]", str(list(range(50))), text))
        (stored,) = found(tmp_path).batches()
        assert (stored.missing_brokers, stored.missing_more) == (tuple(range(20)), 30)

    def test_other_clusters_are_not_mixed_in(self, tmp_path: Path) -> None:
        """A lake can have several clusters."""
        write_batch(str(tmp_path), batch())
        write_batch(str(tmp_path), batch(cluster="c2"))
        assert [manifest.cluster_id for manifest in found(tmp_path, cluster="c2").manifests] == ["c2"]

    def test_what_no_manifest_names_is_not_there(self, tmp_path: Path) -> None:
        """Half-written manifests and stray files are ignored."""
        manifest = write_batch(str(tmp_path), batch())
        (tmp_path / manifest.path).with_name("stray.parquet").write_bytes(b"PAR1")
        (path,) = (tmp_path / "manifests/cluster=c1/date=2026-02-28").iterdir()
        path.with_name(f"{path.name}.0123.part").write_bytes(b'{"schemaVersion"')
        assert found(tmp_path).manifests == (manifest,)
        assert found(tmp_path).skipped == ()

    def test_damaged_and_expired_files_cost_only_themselves(self, tmp_path: Path) -> None:
        """The SHA-256 finds damage that keeps the size. Each is named with the reason."""
        kept, cut, gone, rotten = (write_batch(str(tmp_path), batch()) for _ in range(4))
        (tmp_path / cut.path).write_bytes(b"PAR1")
        (tmp_path / gone.path).unlink()
        (tmp_path / rotten.path).write_bytes((tmp_path / rotten.path).read_bytes()[:-1] + b"x")
        inside = found(tmp_path)
        assert inside.manifests == (kept,)
        damaged = "its SHA-256 is not that of its manifest: it was damaged"
        expected = {cut.path: damaged, gone.path: "it is missing", rotten.path: damaged}
        assert {each.name: each.why for each in inside.skipped} == expected

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            (
                lambda text: text.replace('"schemaVersion": 2', '"schemaVersion": 3'),
                "schema 3, this program reads 1, 2",
            ),
            (lambda text: "{}", "not a manifest of samples"),
            (lambda text: text[:20], "not a manifest of samples"),
            (lambda text: text.replace("+00:00", ""), "a time without a zone"),
            (lambda text: text + " " * (32 << 20), "the manifest is larger than 32 MiB"),
        ],
        ids=["newer", "empty", "truncated", "no zone", "large"],
    )
    def test_a_manifest_that_cannot_be_read_costs_only_its_file(self, tmp_path: Path, change: object, why: str) -> None:
        """The rest of the lake is used; the message names the file."""
        kept, bad = (write_batch(str(tmp_path), batch(sequence=number)) for number in (1, 2))
        (tmp_path / bad.name).write_text(change((tmp_path / bad.name).read_text()))  # type: ignore[operator]
        inside = found(tmp_path)
        assert inside.manifests == (kept,)
        ((name, told),) = ((each.name, each.why) for each in inside.skipped)
        assert name == bad.name
        assert why in told
