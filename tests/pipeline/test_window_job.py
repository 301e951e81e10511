"""Stored windows: a load model made from them has the numbers of one made from the samples."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest
from click.testing import CliRunner
from pyspark.errors import StreamingQueryException
from tests.pipeline.clusters_by_hand import CLUSTER, START, Samples
from tests.pipeline.dirty_samples import DAY
from tests.pipeline.test_job import model_of

from kafka_rebalance.cli.commands.pipeline_command import pipeline
from kafka_rebalance.errors import Permanent, Refused
from kafka_rebalance.pipeline import job, window_stream
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_retention import SETTLED, tidy
from kafka_rebalance.pipeline.sample_manifests import write_batch
from kafka_rebalance.pipeline.window_job import WindowsOutcome, store_windows
from kafka_rebalance.pipeline.window_stream import follow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HOURS = 4
END = HOURS * 3600
NOW = START + timedelta(hours=HOURS)


def random_samples(seed: int, topics: int = 60) -> Samples:
    """Each topic with a history of its own: gaps, elections, deletions, cleaners, another topic of the same name."""
    rng = random.Random(seed)
    s = Samples()
    for number in range(topics):
        name, whole = f"t{number}", rng.choice([True, False, None])
        start, end, size, epoch, broker, incarnation = 0.0, 1000.0, 100_000.0, 1, 1, 0
        step, absent = rng.choice([60, 60, 300, 1200]), 0
        deletes, elections, breaks = (rng.choice([0, 0.05, 0.9]), rng.choice([0, 0.05]), rng.choice([0, 0.03]))
        for at in range(0, HOURS * 3600, step):
            records = rng.choice([0, 1, 100, 10_000])
            end, size = end + records, size + records * rng.choice([1, 100, 1000])
            if rng.random() < deletes:
                gone = rng.random() * (end - start)
                start, size = start + gone, size * rng.random()
            if rng.random() < elections:
                epoch, broker = epoch + rng.choice([1, 2]), rng.choice([1, 2])
            if rng.random() < elections / 4:
                incarnation, start, end, size = incarnation + 1, 0.0, 10.0, 10.0
            absent = rng.randrange(90) * 60 if rng.random() < breaks and not absent else max(0, absent - step)
            if not absent or at + step >= HOURS * 3600:
                late, known = rng.random() * 9, None if rng.random() < 0.01 else size
                s.leader(
                    at,
                    name,
                    start,
                    end,
                    known,
                    broker=broker,
                    epoch=epoch,
                    topic_id=str(incarnation),
                    late=late,
                    whole=whole,
                )
    return s


def numbers(lake: Path) -> list[dict[str, Any]]:
    """The rows of the model, rounded, because sums in another order may differ."""
    rows = pyarrow.parquet.read_table(lake / "models" / CLUSTER / "load-model.parquet").to_pylist()
    return [{name: pytest.approx(v, rel=1e-6) if isinstance(v, float) else v for name, v in r.items()} for r in rows]


def built(spark: SparkSession, lake: Path, *, use_stored: bool = True) -> tuple[job.JobOutcome, list[dict[str, Any]]]:
    outcome = job.build(spark, str(lake), CLUSTER, DAY, NOW, use_stored=use_stored)
    return outcome, numbers(lake)


def windows_in(lake: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each file, sorted; floats to nine digits."""

    def plain(value: Any) -> Any:
        return float(f"{value:.9g}") if isinstance(value, float) else value

    files = {path.name: pyarrow.parquet.read_table(path).to_pylist() for path in lake.glob("windows/*/*/*")}
    return {
        name: sorted(({key: plain(value) for key, value in row.items()} for row in rows), key=str)
        for name, rows in files.items()
    }


def _one_by_one(clusters: Sequence[str], store: Callable[[str], None]) -> None:
    for cluster in clusters:
        store(cluster)


def _stores_one_and_dies(spark: SparkSession, lake_uri: str, *arguments: Any) -> WindowsOutcome:
    write = Lake.write
    with pytest.MonkeyPatch.context() as patch:

        def dies_later(lake: Lake, path: str, data: bytes) -> None:
            if lake.names("window-manifests/cluster=c1/date=2026-03-01"):
                raise RuntimeError("killed")
            write(lake, path, data)

        patch.setattr(Lake, "write", dies_later)
        return store_windows(spark, lake_uri, *arguments)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random histories, and a second sampler beside the first across a full hour."""
    place = tmp_path_factory.mktemp("windows") / "lake [1]"
    random_samples(seed=7).write(place)
    second = Samples(run="run-b")
    for at in range(800, 1100, 60):
        second.leader(at + 0.2, "t0", 0, at, at)
    second.write(place)
    return place


class TestModelFromWindows:
    def test_has_the_numbers_of_the_samples(self, spark: SparkSession, lake: Path) -> None:
        """Of partitions with all that can happen to them, whichever hours are stored; the lineage is the same too."""
        from_samples, expected = built(spark, lake)
        assert from_samples.stored_hours == 0
        stored = store_windows(spark, str(lake), CLUSTER, DAY, NOW)
        assert len(stored.written) == HOURS  # the last one has not ended
        from_windows, found = built(spark, lake)
        assert from_windows.stored_hours == HOURS
        assert found == expected
        same = ("files", "sha256", "skippedFiles", "runs", "leftOutSamples")
        lineages = [outcome.model.header["lineage"] for outcome in (from_samples, from_windows)]
        assert [lineages[0][name] for name in same] == [lineages[1][name] for name in same]
        assert (from_samples.samples, from_samples.start, from_samples.end) == (
            from_windows.samples,
            from_windows.start,
            from_windows.end,
        )
        (lake / next(lake.glob("window-manifests/*/*/*T01*"))).unlink()  # an hour in the middle is read from samples
        some, found = built(spark, lake)
        assert (some.stored_hours, found) == (HOURS - 1, expected)

    @pytest.mark.campaign
    def test_does_not_need_the_samples_of_stored_hours(self, spark: SparkSession, tmp_path: Path) -> None:
        """They may have expired: the windows remain."""
        samples = Samples()
        for at in range(0, 3 * 3600, 60):
            samples.leader(at, "t", 0, at * 10, at * 1000)
        samples.write(tmp_path)
        store_windows(spark, str(tmp_path), CLUSTER, DAY, NOW)
        for path in [*tmp_path.glob("samples/*/*/*T01*"), *tmp_path.glob("manifests/*/*/*T01*")]:
            path.unlink()
        job.build(spark, str(tmp_path), CLUSTER, DAY, NOW)
        row = model_of(tmp_path)["t"]
        assert (row["covered_seconds"], row["bytes_in_mean"]) == (3 * 3600 - 60, 1000)

    @pytest.mark.campaign
    def test_a_sample_that_came_late_counts(self, spark: SparkSession, tmp_path: Path) -> None:
        """The stored windows do not have it, so the hour is read from samples, and stored again by the next run."""
        samples = Samples()
        for at in range(0, 3 * 3600, 60):
            samples.leader(at, "t", 0, at, at * (1000 if at < 4000 else 3000))
        late = samples.rows.pop(3960)
        samples.write(tmp_path)
        store_windows(spark, str(tmp_path), CLUSTER, DAY, NOW)
        samples.rows[3960] = late
        write_batch(str(tmp_path), samples.batch(3960))
        outcome, found = built(spark, tmp_path)
        assert outcome.stored_hours == 2
        assert found == built(spark, tmp_path, use_stored=False)[1]
        assert len(store_windows(spark, str(tmp_path), CLUSTER, DAY, NOW).written) == 1
        outcome, again = built(spark, tmp_path)
        assert (outcome.stored_hours, again) == (3, found)


class TestRoom:
    def test_a_lake_that_is_nearly_full_gets_no_windows(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The space is for samples. The hour is stored when there is room for it."""
        samples = Samples()
        for at in range(900, 2 * 3600, 600):
            samples.leader(at, "t", 0, at, at * 1000)
        samples.write(tmp_path)
        used = sum(size for _, size in Lake.open(str(tmp_path)).sizes())
        usage = shutil.disk_usage("/")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(total=(used + 100) * 16 // 15 + 16))
        with pytest.raises(Permanent, match="leaves a 16th of its volume"):
            store_windows(spark, str(tmp_path), CLUSTER, DAY, NOW)
        assert not list(tmp_path.glob("window*/*/*/*"))
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(total=1 << 30))
        assert len(store_windows(spark, str(tmp_path), CLUSTER, DAY, NOW).written) == 1


class TestAgain:
    @pytest.mark.campaign
    def test_nothing_is_computed_twice(self, spark: SparkSession, tmp_path: Path) -> None:
        """Not even after the files of samples were merged: the samples are the same."""
        random_samples(seed=9, topics=3).write(tmp_path)
        lasting = timedelta(hours=3, minutes=30)
        assert len(store_windows(spark, str(tmp_path), CLUSTER, lasting, NOW).written) == HOURS - 2  # the first is cut
        assert len(store_windows(spark, str(tmp_path), CLUSTER, DAY, NOW).written) == 2
        before = windows_in(tmp_path)
        assert tidy(Lake.open(str(tmp_path)), CLUSTER, NOW + SETTLED, None).into == 2
        again = store_windows(spark, str(tmp_path), CLUSTER, DAY, NOW)
        assert (again.written, again.unchanged) == ((), HOURS)
        assert windows_in(tmp_path) == before

    @pytest.mark.campaign
    def test_killed_at_any_moment_it_gives_the_same(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Before and after each write to the lake."""
        samples = random_samples(seed=8, topics=3)
        samples.write(tmp_path / "whole")
        samples.write(tmp_path / "killed")
        store_windows(spark, str(tmp_path / "whole"), CLUSTER, DAY, NOW)
        write = Lake.write

        def killed(lake: Lake, path: str, data: bytes) -> None:
            if not left:
                raise KeyboardInterrupt
            left.pop()
            write(lake, path, data)

        monkeypatch.setattr(Lake, "write", killed)
        for most in range(4):
            left = [None] * most
            with pytest.raises(KeyboardInterrupt):
                store_windows(spark, str(tmp_path / "killed"), CLUSTER, DAY, NOW)
        monkeypatch.setattr(Lake, "write", write)
        store_windows(spark, str(tmp_path / "killed"), CLUSTER, DAY, NOW)
        assert windows_in(tmp_path / "killed") == windows_in(tmp_path / "whole")
        assert not list((tmp_path / "killed" / "unfinished").iterdir())


class TestStream:
    def test_a_cluster_in_trouble_does_not_stop_the_others(self, spark: SparkSession, tmp_path: Path) -> None:
        """Its brokers may claim any offset and size. It is named, and the exit code says so."""
        for name, numbers in (("c1", (1 - 2**63, 1 - 2**63, 2**63 - 1, 0)), ("c2", (10, 20, 30, 40))):
            samples = Samples(name)
            for at, number in zip((1000, 1600, 2200, 6000), numbers, strict=True):
                samples.leader(at, "t", min(0, number), number, 10)
            samples.write(tmp_path)
        result = CliRunner().invoke(pipeline, ["windows", "--lake", str(tmp_path), "--stream", "--once"])
        assert isinstance(result.exception, Refused), result.exception
        assert "no windows for 1 clusters: c1" in result.exception.message
        assert "cluster c1: failed (ArithmeticException): [ARITHMETIC_OVERFLOW]" in result.stderr
        assert [path.name for path in (tmp_path / "windows").iterdir()] == ["cluster=c2"]

    @pytest.mark.campaign
    def test_stores_what_the_batch_job_stores(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In any pieces, killed in the middle of a batch; an hour only when the watermark has passed its end."""
        samples = random_samples(seed=10, topics=3)
        samples.write(tmp_path / "batch")
        store_windows(spark, str(tmp_path / "batch"), CLUSTER, DAY, NOW)
        expected = windows_in(tmp_path / "batch")
        place = tmp_path / "stream [1]"
        future = Samples(run="wild")
        future.leader(86_400.0 * 365 * 30, "t0", 0, 1, 1)  # does not move the watermark
        future.write(place)
        told: list[WindowsOutcome] = []

        def run() -> None:
            follow(spark, str(place), timedelta(minutes=10), None, told.append, _one_by_one).awaitTermination()

        def arrive(begin: float, end: float) -> None:
            for at in samples.rows:
                if begin <= at < end:
                    write_batch(str(place), samples.batch(at))

        arrive(0, 900 + 660)  # 00:11: ten minutes after the end of the first hour
        run()
        assert [len(outcome.written) for outcome in told] == [1]
        arrive(1560, 4800)  # 01:05
        run()
        assert [len(outcome.written) for outcome in told] == [1]
        arrive(4800, END)
        with monkeypatch.context() as patch:
            patch.setattr(window_stream, "store_windows", _stores_one_and_dies)
            with pytest.raises(StreamingQueryException):
                run()
        assert len(windows_in(place)) == 2
        run()
        assert windows_in(place) == expected
        run()
        assert [len(outcome.written) for outcome in told] == [1, 2]
