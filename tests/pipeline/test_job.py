"""The load model job on messy samples, compared with numbers calculated by hand beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest
from click.testing import CliRunner
from tests.pipeline.clusters_by_hand import CLUSTER, START, Samples, write_version_1
from tests.pipeline.dirty_samples import DAY, END, EXPECTED, EXPECTED_OUT, MB, NOW, SIZES, dirty_samples, reported

from kafka_rebalance.cli.commands.pipeline_command import pipeline
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.pipeline import job, window_job
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_retention import SETTLED, tidy
from kafka_rebalance.pipeline.sample_manifests import write_batch
from kafka_rebalance.storage.stored_models import read_model_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path that looks like a pattern; batches late, twice, damaged, from the future, of two runs."""
    place = tmp_path_factory.mktemp("lakes") / "lake [1] with spaces"
    samples = dirty_samples()
    samples.rows[60] += samples.rows[60]
    samples.rows[120].reverse()
    for at in sorted(samples.rows, reverse=True):
        write_batch(str(place), samples.batch(at, (7,) if at == END else ()))
    write_batch(str(place), samples.batch(600))
    for at in range(-660, -59, 60):
        write_version_1(place, at, "old-schema", (at + 660) * 10, (at + 660) * 1000)
    # A retried Pod samples beside the first one for a while; its answers are two seconds late, and it does not know.
    second = Samples(run="run-b")
    for at in range(600, 1200, 60):
        second.leader(at + 0.2, "steady", 0, (at + 2.2) * 1000, (at + 2.2) * MB)
    second.write(place)
    wild = Samples(run="wild")
    for at in (630.0, 631.0, 632.0, 633.0, 634.0, 86_400.0 * 30):
        wild.leader(at, "steady", 0, 10**9, 10**12)
    unnamed, newer, truncated, rotten, cut, _ = (write_batch(str(place), wild.batch(at)) for at in wild.rows)
    (place / unnamed.name).unlink()
    document = json.loads((place / newer.name).read_text())
    (place / newer.name).write_text(json.dumps(document | {"schemaVersion": 3}))
    (place / truncated.name).write_text('{"path": "sam')
    rot = bytearray((place / rotten.path).read_bytes())
    rot[4:400] = bytes(byte ^ 0xFF for byte in rot[4:400])
    (place / rotten.path).write_bytes(rot)
    (place / cut.path).write_bytes((place / cut.path).read_bytes()[:100])
    reported(place)
    # The files of the first day are merged, and the small ones are still there.
    midnight = START + timedelta(minutes=15)
    assert tidy(Lake.open(str(place)), CLUSTER, midnight + SETTLED, None).into == 2  # of samples and of offsets
    return place


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, lake: Path) -> job.JobOutcome:
    return job.build(spark, str(lake), CLUSTER, DAY, NOW)


def model_of(lake: Path, cluster: str = CLUSTER) -> dict[str, dict[str, Any]]:
    table = pyarrow.parquet.read_table(lake / "models" / cluster / "load-model.parquet")
    return {f"{row['topic']}-{row['partition']}".removesuffix("-0"): row for row in table.to_pylist()}


@pytest.fixture(scope="module")
def model(outcome: job.JobOutcome, lake: Path) -> Mapping[str, dict[str, Any]]:
    return model_of(lake)


class TestDirtySamples:
    @pytest.mark.parametrize("topic", EXPECTED)
    def test_give_the_numbers_worked_out_by_hand(self, model: Mapping[str, dict[str, Any]], topic: str) -> None:
        """Within one percent where nothing hides the truth, else as good as the method can, or unknown."""
        row, expected = model[topic], EXPECTED[topic]
        near = [rate if rate is None else pytest.approx(rate, rel=expected.tolerance) for rate in expected[1:3]]
        assert [row["method"], row["bytes_in_mean"], row["bytes_in_p95"]] == [expected.method, *near]
        assert row["covered_seconds"] == pytest.approx(expected.covered, abs=0.001)

    def test_nothing_else_is_in_the_model(self, model: Mapping[str, dict[str, Any]]) -> None:
        """One row per partition of the newest sample: neither deleted topics nor earlier ones of the same name."""
        assert model.keys() == EXPECTED.keys() | EXPECTED_OUT.keys()
        assert model["again"]["topic_id"] == "new"

    @pytest.mark.parametrize("topic", SIZES)
    def test_sizes_are_of_each_replica(self, model: Mapping[str, dict[str, Any]], topic: str) -> None:
        """A new copy takes the leader's size; of a broker that is silent the last known one counts."""
        row = model[topic]
        assert (row["size_bytes"], row["replica_brokers"], row["replica_bytes"]) == SIZES[topic]

    def test_quantiles_are_of_windows(self, model: Mapping[str, dict[str, Any]]) -> None:
        """Of six windows with 1 to 6 kB/s by nearest rank; the size grows as they say."""
        ramp = model["ramp"]
        assert [ramp[f"bytes_in_{name}"] for name in ("p50", "p95", "p99", "max")] == [3000, 6000, 6000, 6000]
        assert ramp["windows"] == 6
        assert model["steady"]["growth_bytes_per_second"] == pytest.approx(MB, rel=0.01)

    def test_a_long_gap_has_no_quantiles(self, model: Mapping[str, dict[str, Any]]) -> None:
        """Its bytes are in the mean, but their distribution over time is not known: only sampled windows count."""
        assert model["gap"]["windows"] == 2

    @pytest.mark.parametrize("topic", EXPECTED_OUT)
    def test_bytes_out_are_what_groups_read(self, model: Mapping[str, dict[str, Any]], topic: str) -> None:
        """Records between commits times the size of such records; null, not zero, where that cannot be known."""
        row, expected = model[topic], EXPECTED_OUT[topic]
        near = [rate if rate is None else pytest.approx(rate, rel=expected.tolerance) for rate in expected[1:3]]
        found = [row["bytes_out_method"], row["bytes_out_mean"], row["bytes_out_p95"]]
        assert found == [expected.method, *near]
        assert row["bytes_out_covered_seconds"] == pytest.approx(expected.covered, abs=0.001)

    def test_what_could_not_be_used_is_named(self, outcome: job.JobOutcome) -> None:
        """Files of a newer version, truncated, damaged or from the future; the second run's samples are left out."""
        assert sorted(skipped.why.split(":")[0].split(",")[0] for skipped in outcome.skipped) == [
            "it is from the future",
            "it is not a manifest of samples",
            "it is of schema 3",
            "its SHA-256 is not that of its manifest",
            "its SHA-256 is not that of its manifest",
        ]
        assert (outcome.partial_batches, outcome.dropped_batches) == (1, 10)

    def test_the_file_says_what_it_is(self, outcome: job.JobOutcome, lake: Path) -> None:
        """Version, cluster, window and lineage are in its metadata; rows are sorted, names are dictionaries."""
        schema = pyarrow.parquet.read_schema(lake / outcome.artefact)
        header = json.loads(schema.metadata[b"kafka_rebalance.load_model"])
        assert (header["version"], header["clusterId"]) == (2, CLUSTER)
        assert header["windowStart"] == "2026-02-28T23:34:00Z"
        assert header["windowEnd"] == "2026-03-01T00:15:00Z"
        assert header["samples"] == outcome.samples == 81 + 11
        assert (header["lineage"]["skippedFiles"], header["lineage"]["runs"]) == (5, 2)
        assert {name: str(schema.field(name).type) for name in ("topic", "method", "replica_bytes", "windows")} == {
            "topic": "dictionary<values=string, indices=int32, ordered=0>",
            "method": "dictionary<values=string, indices=int32, ordered=0>",
            "replica_bytes": "list<element: int64>",
            "windows": "int32",
        }
        rows = pyarrow.parquet.read_table(lake / outcome.artefact).to_pylist()
        assert [row["topic"] for row in rows] == sorted(row["topic"] for row in rows)

    def test_again_gives_the_same_bytes(self, spark: SparkSession, outcome: job.JobOutcome, lake: Path) -> None:
        """The model depends on the samples only, and nothing else is left in the lake."""
        artefact = Lake.open(str(lake)).read(outcome.artefact)
        job.build(spark, str(lake), CLUSTER, DAY, NOW)
        assert Lake.open(str(lake)).read(outcome.artefact) == artefact
        assert not list((lake / "unfinished").iterdir())


class TestReader:
    def test_the_operator_reads_what_the_job_wrote(self, outcome: job.JobOutcome, lake: Path) -> None:
        """Sizes, rates and replicas, through the reader of the operator."""
        model = read_model_file(str(lake / outcome.artefact))
        load = model.partitions[TopicPartition("steady", 0)]
        assert (load.bytes_in_p95, load.bytes_out_p95, load.size_bytes) == (MB, None, END * MB)
        assert load.replica_bytes == {1: END * MB, 2: END * MB + 7}
        assert model.partitions[TopicPartition("tiered", 0)].bytes_in_per_second is None
        assert (model.cluster_id, model.samples) == (CLUSTER, outcome.samples)


class TestWindow:
    def test_older_samples_are_not_read(self, spark: SparkSession, tmp_path: Path) -> None:
        """A burst before the window does not raise the rate in it. Less than half a window gives the mean only."""
        samples = Samples()
        for at, end in ((0, 0), (10, 9000), (20, 9100), (30, 9200)):
            samples.leader(at, "t", 0, end, end * 10)
        samples.write(tmp_path)
        assert job.build(spark, str(tmp_path), CLUSTER, timedelta(seconds=20), NOW).samples == 3
        row = model_of(tmp_path)["t"]
        assert [row[f"bytes_in_{name}"] for name in ("mean", "p50", "p95", "p99", "max")] == [100.0] * 5
        assert row["windows"] == 0


class TestCommand:
    def test_a_line_per_cluster(self, spark: SparkSession, tmp_path: Path) -> None:
        """Partitions, samples, window and path of the model; unknown rates are reported as unknown, not as zero."""
        for name in ("c1", "c2"):
            samples = Samples(name)
            samples.leader(0, "t", 0, 10, 1024)
            samples.write(tmp_path)
        result = CliRunner().invoke(pipeline, ["load-model", "--lake", str(tmp_path)], catch_exceptions=False)
        assert [line.split(",")[0] for line in result.stdout.splitlines()] == [
            "cluster c1: 1 partitions",
            "cluster c2: 1 partitions",
        ]
        assert "1 samples from 2026-02-28 23:45:00Z to 2026-02-28 23:45:00Z" in result.stdout
        assert f"{tmp_path}/models/c2/load-model.parquet" in result.stdout
        assert "cluster c1: 1 partitions have no rate" in result.stderr
        assert model_of(tmp_path, "c2")["t"]["size_bytes"] == 1024

    def test_impossible_numbers_of_one_cluster(self, spark: SparkSession, tmp_path: Path) -> None:
        """Its brokers may claim any offset and size. The other clusters get their models."""
        for name, numbers in (("c1", (1 - 2**63, 2**63 - 1, 0)), ("c2", (10, 20, 30))):
            samples = Samples(name)
            for at, number in zip((-1800, -1200, 4000), numbers, strict=True):
                samples.leader(at, "t", 0, number, number)
            samples.write(tmp_path)
        result = CliRunner().invoke(pipeline, ["load-model", "--lake", str(tmp_path)])
        assert isinstance(result.exception, Refused)
        assert "1 of 2 clusters: c1" in result.exception.message
        assert "cluster c1: failed (ArithmeticException): [ARITHMETIC_OVERFLOW]" in result.stderr
        assert result.stdout.startswith("cluster c2: ")

    @pytest.mark.parametrize(
        ("command", "module", "function"), [("load-model", job, "build"), ("windows", window_job, "store_windows")]
    )
    def test_a_cluster_whose_samples_kill_the_job(
        self,
        spark: SparkSession,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        command: str,
        module: ModuleType,
        function: str,
    ) -> None:
        """The next run begins with the others."""
        for name in ("c1", "c2"):
            samples = Samples(name)
            samples.leader(0, "t", 0, 10, 1024)
            samples.write(tmp_path)
        begun: list[str] = []

        def killed(_: SparkSession, __: str, cluster_id: str, *rest: Any, **more: Any) -> None:
            begun.append(cluster_id)
            raise KeyboardInterrupt

        monkeypatch.setattr(module, function, killed)
        for _ in range(3):
            CliRunner().invoke(pipeline, [command, "--lake", str(tmp_path)])
        assert begun == ["c1", "c2", "c1"]

    def test_an_empty_lake_is_refused(self, tmp_path: Path) -> None:
        """Before Spark starts."""
        with pytest.raises(Refused, match="no samples of any cluster; clusters with samples: none"):
            CliRunner().invoke(pipeline, ["load-model", "--lake", str(tmp_path)], catch_exceptions=False)

    def test_a_cluster_that_is_not_there_is_refused_by_name(self, lake: Path) -> None:
        """The error lists the existing ones."""
        command = ["load-model", "--lake", str(lake), "--cluster", "c9"]
        with pytest.raises(Refused, match="no samples of c9; clusters with samples: c1"):
            CliRunner().invoke(pipeline, command, catch_exceptions=False)

    def test_samples_that_are_all_gone_are_refused_with_the_numbers(self, spark: SparkSession, tmp_path: Path) -> None:
        """Manifests alone give no model, and no file is written."""
        samples = Samples()
        samples.leader(0, "t", 0, 10, 1024)
        (tmp_path / write_batch(str(tmp_path), samples.batch(0)).path).unlink()
        with pytest.raises(Refused, match=r"none of 1 files has samples that can be used; .*it is missing"):
            job.build(spark, str(tmp_path), CLUSTER, DAY, NOW)
        assert not (tmp_path / "models").exists()
