from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.unit.pipeline.test_sample_manifests import DAY, LATER, MOMENT, batch, commits_of, found

from kafka_rebalance.pipeline import lake_retention
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_retention import SETTLED, STILL_READ, Tidied, forget_runs, tidy
from kafka_rebalance.pipeline.lake_tables import OFFSETS, SAMPLES, LakeTable
from kafka_rebalance.pipeline.sample_manifests import StoredBatch, inventory, publish, write_batch
from kafka_rebalance.pipeline.schema import ARROW_SCHEMA

NOW = LATER + timedelta(hours=1)
LONG_AFTER = datetime.now(UTC) + STILL_READ + timedelta(hours=1)  # by the clock of the file system


def write(place: Path, *seconds: float) -> list[str]:
    moments = [MOMENT + timedelta(seconds=at) for at in seconds]
    return [write_batch(str(place), batch(moment, sequence=n)).name for n, moment in enumerate(moments)]


def _same_rows(of: StoredBatch, table: LakeTable = SAMPLES, **row: Any) -> bytes:
    """A file of this batch, all rows of which are the same."""
    values = {"sampled_at": of.sampled_at, "run_id": "r", "sequence": of.sequence, "cluster_id": "c1"}
    rows = pa.Table.from_pylist([values | {"topic": "t", "partition": 0} | row], table.schema)
    sink = pa.BufferOutputStream()
    with pyarrow.parquet.ParquetWriter(sink, table.schema, compression="zstd") as writer:
        writer.write_table(rows.take(pa.array([0] * of.rows)))
    data: bytes = sink.getvalue().to_pybytes()
    return data


@contextmanager
def _memory() -> Iterator[pa.MemoryPool]:
    """The memory that Arrow has allocated meanwhile."""
    pool, before = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        yield pool
    finally:
        pa.set_memory_pool(before)


class TestMerge:
    def test_many_small_files_become_one(self, tmp_path: Path) -> None:
        """With the same batches and rows. Times in the name are of the last one."""
        write(tmp_path, -30, -20, -10)
        before = found(tmp_path)
        assert tidy(Lake.open(str(tmp_path)), "c1", NOW, None) == Tidied(3, 1, 0)
        (merged,) = found(tmp_path).manifests
        assert list(merged.batches) == before.batches()
        assert "20260228T235940" in merged.name
        table = pyarrow.parquet.ParquetFile(tmp_path / merged.path).read()
        assert table.num_rows == 6
        assert table.schema.equals(ARROW_SCHEMA, check_metadata=True)

    def test_what_was_merged_is_deleted_when_nobody_reads_it_any_more(self, tmp_path: Path) -> None:
        """A job that began before the merge opens its files while it runs."""
        write(tmp_path, -30, -20, -10)
        for _ in range(2):
            tidy(Lake.open(str(tmp_path)), "c1", NOW, None)
            assert len(list(tmp_path.glob("samples/*/*/*"))) == 4
        before = found(tmp_path)
        assert tidy(Lake.open(str(tmp_path)), "c1", LONG_AFTER, None) == Tidied(0, 0, 3)
        assert len(list(tmp_path.glob("samples/*/*/*"))) == len(list(tmp_path.glob("manifests/*/*/*"))) == 1
        assert found(tmp_path) == before

    def test_a_file_that_was_merged_may_be_merged_again(self, tmp_path: Path) -> None:
        """With later ones of its day, before its parts are deleted: each batch is found once."""
        write(tmp_path, -30, -20)
        tidy(Lake.open(str(tmp_path)), "c1", NOW, None)
        write(tmp_path, -10)
        batches = found(tmp_path).batches()
        assert tidy(Lake.open(str(tmp_path)), "c1", NOW, None) == Tidied(2, 1, 0)
        assert found(tmp_path).batches() == batches
        assert tidy(Lake.open(str(tmp_path)), "c1", LONG_AFTER, None) == Tidied(0, 0, 4)

    def test_a_batch_that_was_stored_twice_is_merged_once(self, tmp_path: Path) -> None:
        """Two rows of one moment would hide what was deleted before it."""
        for _ in range(2):
            write(tmp_path, -30)
        tidy(Lake.open(str(tmp_path)), "c1", NOW, None)
        (merged,) = found(tmp_path).manifests
        assert pyarrow.parquet.ParquetFile(tmp_path / merged.path).read().num_rows == merged.rows == 2

    def test_a_file_that_unpacks_to_much_more_is_not_in_memory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of partitions in which nothing happens, a row of 150 bytes may take three bytes in the file."""
        lake, idle = Lake.open(str(tmp_path)), StoredBatch(MOMENT - timedelta(seconds=25), "r", 1, rows=600_000)
        publish(lake, "c1", _same_rows(idle, broker=1, size_bytes=0, isr=[1]), (idle,))
        write(tmp_path, -30, -20)
        monkeypatch.setattr(lake_retention, "_ROW_GROUP", 50_000)
        with _memory() as pool:
            assert tidy(lake, "c1", NOW, None) == Tidied(3, 1, 0)
        assert found(tmp_path).manifests[0].rows == 600_004
        assert pool.max_memory() < 30 << 20

    def test_rows_with_long_lists_are_not_in_memory_together(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Servers may claim any replicas, and a thousand groups with long names in each partition.

        Those of each table have more than 70 MiB.
        """
        lake, names = Lake.open(str(tmp_path)), [f"{n:0255}" for n in range(1000)]
        committed = {"topic_id": "", "log_start_offset": 0, "log_end_offset": 1, "committed_at": MOMENT}
        for number in range(2):
            offsets = StoredBatch(MOMENT - timedelta(seconds=30 - number), "r", number, rows=150)
            row = committed | {"groups": names, "committed": [1] * 1000}
            publish(lake, "c1", _same_rows(offsets, OFFSETS, **row), (offsets,), table=OFFSETS)
            replicas = StoredBatch(MOMENT - timedelta(seconds=30 - number), "r", number, rows=2000)
            publish(lake, "c1", _same_rows(replicas, broker=1, isr=[1] * 10_000), (replicas,))
        monkeypatch.setattr(lake_retention, "_GROUP_BYTES", 4 << 20)
        with _memory() as pool:
            assert tidy(lake, "c1", NOW, None) == Tidied(4, 2, 0)
        assert pool.max_memory() < 60 << 20
        (merged,) = inventory(lake, "c1", DAY, NOW, OFFSETS).manifests
        assert pyarrow.parquet.ParquetFile(tmp_path / merged.path).read()["groups"].to_pylist() == [names] * 300

    def test_a_merged_file_has_a_manifest_that_can_be_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It names each sample; of very many small samples there are several files."""
        monkeypatch.setattr(lake_retention, "MOST_BATCHES", 2)
        write(tmp_path, -50, -40, -30, -20, -10)
        assert tidy(Lake.open(str(tmp_path)), "c1", NOW, None) == Tidied(4, 2, 0)
        assert len(found(tmp_path).batches()) == 5

    def test_again_changes_nothing(self, tmp_path: Path) -> None:
        """One file of a day is not merged with itself."""
        write(tmp_path, -30, -20)
        tidy(Lake.open(str(tmp_path)), "c1", NOW, None)
        (merged,) = found(tmp_path).manifests
        assert tidy(Lake.open(str(tmp_path)), "c1", NOW, None) == Tidied(0, 0, 0)
        assert found(tmp_path).manifests == (merged,)

    def test_new_files_are_left_alone(self, tmp_path: Path) -> None:
        """A job may be reading them."""
        write(tmp_path, -30, -20)
        assert tidy(Lake.open(str(tmp_path)), "c1", MOMENT + SETTLED - timedelta(seconds=30), None) == Tidied(0, 0, 0)

    def test_a_damaged_file_is_left_where_it_is(self, tmp_path: Path) -> None:
        """Its rows must not become part of a file whose hash is right."""
        _, bad, _ = write(tmp_path, -30, -20, -10)
        path = tmp_path / bad.replace("manifests", "samples").replace(".json", ".parquet")
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        assert tidy(Lake.open(str(tmp_path)), "c1", NOW, None) == Tidied(2, 1, 0)
        assert [each.name for each in found(tmp_path).skipped] == [str(path.relative_to(tmp_path))]

    @pytest.mark.parametrize("deleted", range(5))
    def test_killed_at_any_moment_every_batch_is_found_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deleted: int
    ) -> None:
        """After any number of deletions; the next run deletes the rest."""
        write(tmp_path, -30, -20)
        before = found(tmp_path).batches()
        tidy(Lake.open(str(tmp_path)), "c1", NOW, None)
        delete, calls = Lake.delete, []

        def dying(lake: Lake, path: str) -> None:
            if len(calls) == deleted:
                raise KeyboardInterrupt
            calls.append(path)
            delete(lake, path)

        monkeypatch.setattr(Lake, "delete", dying)
        if deleted < 4:
            with pytest.raises(KeyboardInterrupt):
                tidy(Lake.open(str(tmp_path)), "c1", LONG_AFTER, None)
        monkeypatch.undo()
        if deleted < 4:
            assert found(tmp_path).batches() == before
            assert found(tmp_path).skipped == ()
        tidy(Lake.open(str(tmp_path)), "c1", LONG_AFTER, None)
        assert found(tmp_path).batches() == before
        assert len(list(tmp_path.glob("manifests/*/*/*"))) == 1


class TestRuns:
    def test_those_that_nothing_learns_from_go(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The newest of each cluster that is in use stay, whatever their age."""
        monkeypatch.setattr(lake_retention, "MOST_RUNS", 2)
        for cluster, days in (("a", ("2026-01-01", "2026-01-02", "2026-01-02", "2026-02-01")), ("b", ("2026-01-01",))):
            for number, day in enumerate(days):
                path = tmp_path / f"steps/cluster={cluster}/date={day}/{day.replace('-', '')}T00000{number}Z-r.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        assert forget_runs(Lake.open(str(tmp_path)), NOW) == 2
        left = sorted(str(path.relative_to(tmp_path / "steps")) for path in tmp_path.glob("steps/*/*/*"))
        assert left == [
            "cluster=a/date=2026-01-02/20260102T000002Z-r.parquet",
            "cluster=a/date=2026-02-01/20260201T000003Z-r.parquet",
            "cluster=b/date=2026-01-01/20260101T000000Z-r.parquet",
        ]


class TestExpiry:
    def test_samples_older_than_the_retention_go(self, tmp_path: Path) -> None:
        """Also those that no manifest names, of a sampler that was killed; the directory of the day goes too."""
        write(tmp_path, -2 * 86_400, 0)
        (old,) = tmp_path.glob("samples/*/date=2026-02-26")
        (old / "20260226T000000.000000Z-0123.parquet").write_text("")
        assert tidy(Lake.open(str(tmp_path)), "c1", NOW, DAY).deleted_files == 1
        assert not old.exists()
        assert len(found(tmp_path).manifests) == 1

    def test_every_table_is_kept_small(self, tmp_path: Path) -> None:
        """Committed offsets are merged, deleted after the merge, and expire as samples do."""
        for number, at in enumerate((-2 * 86_400, -30, -20)):
            write_batch(str(tmp_path), commits_of(batch(MOMENT + timedelta(seconds=at), sequence=number)))
        assert tidy(Lake.open(str(tmp_path)), "c1", NOW, DAY) == Tidied(4, 2, 2)
        (merged,) = inventory(Lake.open(str(tmp_path)), "c1", DAY, NOW, OFFSETS).manifests
        assert pyarrow.parquet.ParquetFile(tmp_path / merged.path).read().num_rows == merged.rows == 2
        assert tidy(Lake.open(str(tmp_path)), "c1", LONG_AFTER, None) == Tidied(0, 0, 4)
        assert len(list(tmp_path.glob("offsets/*/*/*"))) == 1

    def test_without_a_retention_nothing_is_deleted(self, tmp_path: Path) -> None:
        """Unless somebody says how long to keep samples, they are kept."""
        write(tmp_path, -400 * 86_400, 0)
        assert tidy(Lake.open(str(tmp_path)), "c1", NOW, None) == Tidied(0, 0, 0)
