from __future__ import annotations

import itertools
import os
import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafka_rebalance.cli.commands.pipeline_command import _one, _sample_regularly, pipeline
from kafka_rebalance.errors import Permanent, RebalanceError, Transient
from kafka_rebalance.pipeline import lake_retention
from kafka_rebalance.pipeline.lake import Lake, clusters
from kafka_rebalance.pipeline.sample_manifests import inventory, write_batch
from kafka_rebalance.pipeline.schema import SampleBatch
from kafka_rebalance.pipeline.stored_hours import HourInputs, publish_hour
from kafka_rebalance.printable_text import is_printable


class Sampling:
    """A sample that fails as specified, call by call; None means success."""

    def __init__(self, *failures: RebalanceError | None) -> None:
        self.failures = list(failures)

    async def __call__(self) -> None:
        failure = self.failures.pop(0)
        if failure is not None:
            raise failure


def away(number: int) -> Transient:
    return Transient("KafkaUnreachable", f"time-out {number}")


class TestBeat:
    async def test_a_time_out_costs_one_sample(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The next samples are taken, and the lost one is reported."""
        take = Sampling(None, away(1), None)
        await _sample_regularly(take, interval=0.001, count=3)
        assert take.failures == []
        assert capsys.readouterr().err == "no sample (KafkaUnreachable): time-out 1\n"

    async def test_no_sample_at_all_is_a_failure(self) -> None:
        """With the reason of the last failure."""
        with pytest.raises(Transient, match="time-out 2"):
            await _sample_regularly(Sampling(away(1), away(2)), interval=0.001, count=2)

    async def test_what_will_not_heal_ends_it(self) -> None:
        """Wrong credentials do not become valid."""
        take = Sampling(Permanent("AuthenticationFailed", "wrong password"), None)
        with pytest.raises(Permanent, match="wrong password"):
            await _sample_regularly(take, interval=0.001, count=0)
        assert take.failures == [None]


class _Full:
    """A sampler whose samples no store has room for."""

    async def sample(self) -> SampleBatch:
        return SampleBatch(datetime(2026, 3, 1, tzinfo=UTC), "c1", ())


class TestStore:
    async def test_a_store_that_cannot_be_written_costs_one_sample(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A sampler that runs for months must survive a full disk."""
        (tmp_path / "samples").write_text("in the way")
        takes = iter([lambda: _one(_Full(), str(tmp_path)), Sampling(None)])
        await _sample_regularly(lambda: next(takes)(), interval=0.001, count=2)
        said = capsys.readouterr().err
        assert said == f"no sample (LakeUnusable): the sample was not stored in {tmp_path} (Not a directory)\n"


class TestDailyLimit:
    async def test_a_sampler_does_not_fill_the_lake_of_all(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Brokers may claim any number of replicas, and any cluster id: what counts is the name of the sampler."""
        clusters = itertools.count()

        async def take(name: str | None) -> None:
            cluster = _Denied()
            cluster.cluster_id = f"c{next(clusters)}"
            await _one(cluster, str(tmp_path), None, name)

        await take(None)
        each = sum(size for _, size in Lake.open(str(tmp_path)).sizes())
        usage = shutil.disk_usage("/")._replace(total=32 * each * 5 // 2)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
        capsys.readouterr()
        for name, stored in (("a", 2), ("b", 2), (None, 10)):
            await _sample_regularly(partial(take, name), interval=0.001, count=10)
            said = capsys.readouterr()
            assert said.out.count("0 rows") == stored
            assert said.err.count("no sample (DailyLimit): the samples of") == 10 - stored


class _Denied:
    """A sampler whose user may not describe a group."""

    cluster_id = "c1"

    async def sample(self) -> SampleBatch:
        why = "1 of 2, for example g: Kafka does not allow us to read it"
        return SampleBatch(datetime(2026, 3, 1, tzinfo=UTC), self.cluster_id, (), commits_missing=why)


class TestOtherCluster:
    async def test_brokers_that_claim_the_id_of_another_cluster(self, tmp_path: Path) -> None:
        """Its owner is not theirs, and would get a load model of their samples."""
        with pytest.raises(Permanent, match="the brokers belong to cluster c1, not to c2") as refused:
            await _one(_Full(), str(tmp_path), "c2")
        assert refused.value.reason == "OtherCluster"
        assert os.listdir(tmp_path) == []
        await _one(_Full(), str(tmp_path), "c1")
        assert os.listdir(tmp_path) != []


class TestStrangeNames:
    async def test_control_no_terminal(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Servers may claim any cluster id, and a lake has it as long as its samples."""
        cluster = _Denied()
        cluster.cluster_id = "c\x1b]0;title\x07"
        await _one(cluster, str(tmp_path))
        done = CliRunner().invoke(pipeline, ["compact", "--lake", str(tmp_path)], catch_exceptions=False)
        for said in (*capsys.readouterr(), done.stdout):
            assert is_printable(said.replace("\n", ""))
            assert r"cluster c\x1b]0;title\x07: " in said


class TestConsumerGroups:
    async def test_that_cannot_be_read_are_told_and_cost_no_sample(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """With the group, the reason and what to do."""
        await _one(_Denied(), str(tmp_path))
        said = capsys.readouterr()
        assert said.out.startswith("00:00:00 cluster c1: 0 rows")
        assert "groups cannot be read (1 of 2, for example g: Kafka does not allow us to read it): permit" in said.err
        assert not (tmp_path / "offsets").exists()


class TestAStoreThatDoesNotAnswer:
    @pytest.mark.parametrize("command", ["load-model", "compact", "quality"])
    def test_is_one_line_without_keys(self, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """The library's own text may contain the URI and its keys."""

        def names(*_: object) -> list[str]:
            raise OSError("When listing s3://key:secret@bucket: AWS Error NETWORK_CONNECTION during ListObjectsV2")

        monkeypatch.setattr(Lake, "names", names)
        done = CliRunner().invoke(pipeline, [command, "--lake", "s3://key:secret@bucket/lake?region=r"])
        assert isinstance(done.exception, Transient)
        assert done.exception.message == "the lake s3://bucket/lake cannot be used (NETWORK_CONNECTION)"


class TestCompact:
    def test_a_line_per_cluster(self, tmp_path: Path) -> None:
        """The output says what was merged and deleted."""
        for age in (timedelta(days=30), timedelta(hours=3), timedelta(hours=2)):
            batch = SampleBatch(datetime.now(UTC).replace(hour=12) - timedelta(days=1) - age, "c1", (), run_id="a")
            write_batch(str(tmp_path), replace(batch, sequence=int(age.total_seconds())))
        part = tmp_path / "unfinished" / "job" / "part-0.parquet"
        part.parent.mkdir(parents=True)
        part.touch()
        os.utime(part, (0, 0))
        command = ["compact", "--lake", str(tmp_path), "--retention", "14d"]
        result = CliRunner().invoke(pipeline, command, catch_exceptions=False)
        assert result.stdout.splitlines() == [
            "cluster c1: merged 2 files into 1, deleted 1",
            "deleted the steps of 0 runs, and the load models of 0 clusters",
            "deleted 1 files that killed writers had left",
        ]

    def test_windows_that_fill_the_volume_go(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before anything is merged, and only if stored windows may be deleted."""
        write_batch(str(tmp_path), SampleBatch(datetime.now(UTC), "c1", (), run_id="a"))
        hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        publish_hour(Lake.open(str(tmp_path)), HourInputs("c1", hour, (), (), (), (), ()), bytes(100_000), ())
        usage = shutil.disk_usage("/")._replace(total=100_000)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
        command = ["compact", "--lake", str(tmp_path)]
        for options, left in (([], 1), (["--windows-retention", "60d"], 0)):
            done = CliRunner().invoke(pipeline, [*command, *options], catch_exceptions=False)
            assert len(list(tmp_path.glob("windows/*/*/*"))) == left
        assert "deleted the windows of 1 hours, because the lake had too little of its volume left" in done.stdout

    def test_load_models_of_clusters_that_are_gone_go(self, tmp_path: Path) -> None:
        """Servers may claim any number of cluster ids. Models of clusters with samples or windows are in use."""
        now = datetime.now(UTC)
        write_batch(str(tmp_path), SampleBatch(now, "sampled", (), run_id="a"))
        (tmp_path / "window-manifests/cluster=windows/date=2026-01-01").mkdir(parents=True)
        (tmp_path / "manifests/cluster=gone").mkdir(parents=True)
        old, new = now - timedelta(days=91), now - timedelta(days=89)
        for cluster, at in (("gone", old), ("new", new), ("sampled", old), ("windows", old)):
            for name in (f"models/{cluster}/load-model.parquet", f"turns/windows/cluster={cluster}/began"):
                (tmp_path / name).parent.mkdir(parents=True)
                (tmp_path / name).touch()
                os.utime(tmp_path / name, (at.timestamp(), at.timestamp()))
        learnt = tmp_path / "models/gone/durations.json"
        learnt.touch()
        os.utime(learnt, (0, 0))
        command = ["compact", "--lake", str(tmp_path)]
        CliRunner().invoke(pipeline, command, catch_exceptions=False)
        assert len(list(tmp_path.glob("models/*/load-model.parquet"))) == 4
        done = CliRunner().invoke(pipeline, [*command, "--retention", "14d"], catch_exceptions=False)
        assert "and the load models of 1 clusters" in done.stdout
        kept = ["new", "sampled", "windows"]
        assert sorted(path.parent.name for path in tmp_path.glob("models/*/load-model.parquet")) == kept
        assert not (tmp_path / "turns/windows/cluster=gone").exists()
        assert learnt.exists()

    @pytest.mark.parametrize("sampled", [True, False])
    def test_steps_of_clusters_without_a_recent_run_go(self, tmp_path: Path, sampled: bool) -> None:
        """Servers may claim any number of cluster ids, each of which would keep its newest 500 runs for ever.

        Also in a lake that has no samples.
        """
        now = datetime.now(UTC)
        runs = {"made-up-1": (400, 100), "made-up-2": (91,), "used": (400, 89)}
        for cluster, ages in runs.items():
            for age in ages:
                day = (now - timedelta(days=age)).date().isoformat()
                path = tmp_path / f"steps/cluster={cluster}/date={day}/r.parquet"
                path.parent.mkdir(parents=True)
                path.touch()
        if sampled:
            write_batch(str(tmp_path), SampleBatch(now, "c1", (), run_id="a"))
        command = ["compact", "--lake", str(tmp_path)]
        kept = CliRunner().invoke(pipeline, command, catch_exceptions=False)
        assert len(list(tmp_path.glob("steps/*/*/*"))) == 5, kept.output
        done = CliRunner().invoke(pipeline, [*command, "--retention", "14d"])
        assert "deleted the steps of 3 runs" in done.stdout, done.exception
        assert [path.name for path in tmp_path.glob("steps/*")] == ["cluster=used"]
        assert len(list(tmp_path.glob("steps/*/*/*"))) == 2

    def test_a_cluster_with_more_files_than_a_job_can_merge(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The next run merges those of the others first, and then goes on with it."""
        _three_clusters(tmp_path)
        merged: list[str] = []

        def until_deadline(lake: Lake, cluster_id: str, *rest: Any) -> None:
            if merged == ["a"]:
                merged.append("deadline")
                raise KeyboardInterrupt
            merged.append(cluster_id)
            merge(lake, cluster_id, *rest)

        merge = lake_retention._merge
        monkeypatch.setattr(lake_retention, "_merge", until_deadline)
        for _ in range(2):
            _compacted(tmp_path)
        assert merged == ["a", "deadline", "b", "c", "a", "a"]

    def test_clusters_whose_files_kill_the_job(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each of them stops it once before it has merged the files of the others, and then never again."""
        _three_clusters(tmp_path)
        merged: list[str] = []

        def killed(lake: Lake, cluster_id: str, *rest: Any) -> None:
            if cluster_id != "c":
                merged.append(cluster_id)
                raise KeyboardInterrupt
            merge(lake, cluster_id, *rest)

        merge = lake_retention._merge
        monkeypatch.setattr(lake_retention, "_merge", killed)
        for _ in range(2):
            _compacted(tmp_path)
        for age in range(3):
            _write_two(tmp_path, "c", age + 5)
            _write_two(tmp_path, "c", age + 1)
            unmerged = _files_by_day(tmp_path, "c")
            _compacted(tmp_path)
            assert dict.fromkeys(unmerged, 1) == _files_by_day(tmp_path, "c")
        assert merged == ["a", "b", "a", "b", "a"]

    def test_old_samples_go_before_anything_is_merged(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The Job may be killed while it merges."""
        _three_clusters(tmp_path)

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(lake_retention, "_merge", killed)
        CliRunner().invoke(pipeline, ["compact", "--lake", str(tmp_path), "--retention", "3d"])
        left = {path.parent.name for path in tmp_path.glob("samples/*/*/*")}
        assert left == {f"date={NOON.date() - timedelta(days=age)}" for age in (1, 2)}

    def test_a_cluster_in_trouble_does_not_stop_the_others(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is named."""
        _three_clusters(tmp_path)
        merge = lake_retention._merge

        def failing(lake: Lake, cluster_id: str, *rest: Any) -> None:
            if cluster_id == "b":
                raise ValueError("strange rows")
            merge(lake, cluster_id, *rest)

        monkeypatch.setattr(lake_retention, "_merge", failing)
        result = CliRunner().invoke(pipeline, ["compact", "--lake", str(tmp_path)])
        assert sorted(line for line in result.stdout.splitlines() if line.startswith("cluster")) == [
            "cluster a: merged 6 files into 3, deleted 0",
            "cluster c: merged 2 files into 1, deleted 0",
        ]
        assert result.stderr == "cluster b: failed (ValueError): strange rows\n"
        assert isinstance(result.exception, Permanent)

    def test_a_cluster_that_is_gone(self, tmp_path: Path) -> None:
        """Its windows expire after its samples; Jobs then have nothing to do for it, which is no failure."""
        _three_clusters(tmp_path)
        hour = tmp_path / f"window-manifests/cluster=c/date={NOON.date() - timedelta(days=4)}"
        hour.mkdir(parents=True)
        (hour / f"{NOON - timedelta(days=4):%Y%m%dT%H%M%S.%f}Z-{'0' * 32}.json").touch()
        for windows, left in (("30d", 1), ("3d", 0)):
            command = ["compact", "--lake", str(tmp_path), "--retention", "3d", "--windows-retention", windows]
            CliRunner().invoke(pipeline, command, catch_exceptions=False)
            assert clusters(Lake.open(str(tmp_path))) == ["a"]
            assert len(list(tmp_path.glob("window-manifests/cluster=c/*/*"))) == left


NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


def _three_clusters(lake: Path) -> None:
    """The first has two files on each of three days, the others only on the first of these."""
    for cluster, days in (("a", (4, 2, 1)), ("b", (4,)), ("c", (4,))):
        for age in days:
            _write_two(lake, cluster, age)


def _write_two(lake: Path, cluster: str, age: int) -> None:
    for number in range(2):
        at = NOON - timedelta(days=age, seconds=number)
        write_batch(str(lake), SampleBatch(at, cluster, (), run_id="r", sequence=age * 2 + number))


def _compacted(lake: Path) -> None:
    """By a run an hour ago."""
    CliRunner().invoke(pipeline, ["compact", "--lake", str(lake)])
    for mark in lake.glob("turns/*/*/*"):
        before = mark.stat().st_mtime - 3600
        os.utime(mark, (before, before))


def _files_by_day(lake: Path, cluster: str) -> dict[str, int]:
    """How many files with samples that are not in another file each day has."""
    found = inventory(Lake.open(str(lake)), cluster, timedelta(days=99), datetime.now(UTC)).manifests
    return Counter(manifest.name.split("/")[2] for manifest in found)


class TestUsage:
    @pytest.mark.parametrize(
        ("option", "value", "why"),
        [("--interval", "0s", "less than 1s"), ("--interval", "fast", "not a duration"), ("--count", "-1", "x>=0")],
    )
    def test_a_bad_option_is_named(self, option: str, value: str, why: str) -> None:
        """Exit code 2, before any request or write."""
        command = ["sample", "--bootstrap-servers", "127.0.0.1:1", "--lake", "lake", option, value]
        result = CliRunner().invoke(pipeline, command)
        assert result.exit_code == 2
        assert option in result.stderr
        assert why in result.stderr


class TestWhereSparkRuns:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["windows", "--stream", "--remote", "sc://nowhere"], "without --stream each hour"),
            (["load-model", "--master", "local", "--remote", "sc://nowhere"], "use --master or --remote"),
            (["windows", "--once"], "--once is for --stream"),
            (["windows", "--stream", "--cluster", "c1"], "omit --cluster"),
        ],
    )
    def test_what_contradicts_itself_is_refused(self, words: list[str], said: str, tmp_path: Path) -> None:
        """Before Spark starts, with what to write instead."""
        result = CliRunner().invoke(pipeline, [*words, "--lake", str(tmp_path)])
        assert (result.exit_code, said in result.stderr) == (2, True)
