"""The load model job on messy samples, compared with numbers calculated by hand beside them."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest
from click.testing import CliRunner

from kafka_rebalance.cli.commands.pipeline_command import pipeline
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.load_artifact import parse_load_model
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.pipeline import job
from kafka_rebalance.pipeline.lake import Lake, write_batch
from kafka_rebalance.pipeline.schema import SampleBatch, SampleRow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CLUSTER = "c1"
START = datetime(2026, 2, 28, 23, 59, 50, tzinfo=UTC)  # the window crosses midnight: two date directories
DAY = timedelta(days=1)


class Samples:
    """Collects rows by time; calls of ``leader`` and ``follower`` read like lines of a table."""

    def __init__(self, cluster: str = CLUSTER) -> None:
        self.cluster = cluster
        self.rows: dict[int, list[SampleRow]] = defaultdict(list)

    def leader(
        self, at: int, topic: str, start: int, end: int, size: int, broker: int = 1, topic_id: str = "a"
    ) -> None:
        self._add(at, topic, topic_id, broker, size, True, start, end)

    def follower(self, at: int, topic: str, size: int, broker: int = 2, topic_id: str = "a") -> None:
        self._add(at, topic, topic_id, broker, size, False, None, None)

    def batch(self, at: int, missing: tuple[int, ...] = ()) -> SampleBatch:
        brokers = tuple(BrokerId(broker) for broker in missing)
        return SampleBatch(START + timedelta(seconds=at), self.cluster, tuple(self.rows[at]), brokers)

    def _add(
        self,
        at: int,
        topic: str,
        topic_id: str,
        broker: int,
        size: int,
        leads: bool,
        start: int | None,
        end: int | None,
    ) -> None:
        moment = START + timedelta(seconds=at)
        row = SampleRow(moment, self.cluster, topic, topic_id, 0, broker, leads, size, start, end)
        self.rows[at].append(row)


def dirty_samples() -> Samples:
    s = Samples()
    # 100 bytes per record; 100 records in the first 10 s, 200 in the next.
    s.leader(0, "steady", 0, 100, 10_000)
    s.leader(10, "steady", 0, 200, 20_000)
    s.leader(20, "steady", 0, 400, 40_000)
    # Broker 2 takes over and stores the same records in 95 bytes each; a big stale replica stays on broker 1.
    s.leader(0, "led-by-another", 0, 100, 10_000, broker=1)
    s.follower(0, "led-by-another", 9_000, broker=2)
    s.leader(10, "led-by-another", 0, 200, 19_000, broker=2)
    s.leader(20, "led-by-another", 0, 300, 30_000, broker=2)
    s.follower(20, "led-by-another", 99_999, broker=1)
    # Records of 16 000 bytes, then of 200.
    s.leader(0, "small-after-big", 0, 100, 1_600_000)
    s.leader(10, "small-after-big", 0, 200, 1_620_000)
    # Retention deletes 900 records while 100 arrive, then everything while another 100 arrive.
    s.leader(0, "retention", 0, 1000, 100_000)
    s.leader(10, "retention", 900, 1100, 20_000)
    s.leader(20, "retention", 1200, 1200, 0)
    # Deleted and recreated, and in the second sample larger than before.
    s.leader(0, "again", 0, 1000, 100_000, topic_id="old")
    s.leader(10, "again", 0, 2000, 1_000_000, topic_id="new")
    s.leader(20, "again", 0, 2020, 1_010_000, topic_id="new")
    # The same if brokers return no topic id: the end offset decreases.
    s.leader(0, "went-back", 0, 1000, 100_000, topic_id="")
    s.leader(10, "went-back", 0, 100, 10_000, topic_id="")
    s.leader(20, "went-back", 0, 200, 20_000, topic_id="")
    # No sample for 70 s.
    s.leader(0, "gap", 0, 100, 10_000)
    s.leader(10, "gap", 0, 200, 20_000)
    s.leader(80, "gap", 0, 340, 34_000)
    s.leader(0, "idle", 5, 10, 500)
    s.leader(20, "idle", 5, 10, 500)
    s.leader(10, "once", 0, 7, 700)
    s.follower(0, "leaderless", 300)
    s.follower(10, "leaderless", 280, broker=1)
    s.follower(10, "leaderless", 290, broker=2)
    return s


EXPECTED = {
    # (10 000 + 20 000 bytes) / 20 s; of 20 s sorted by rate the 19th is at 2000
    "steady": PartitionLoad(40_000, 1500.0, 2000.0, 2000.0, 20.0, "a"),
    # 100 x 95 bytes, then a growth of 11 000, in 20 s; the leader's size, not the largest
    "led-by-another": PartitionLoad(30_000, 1025.0, 1100.0, 1100.0, 20.0, "a"),
    # the log grew by 20 000 bytes, although the mean record is forty times the size of the new ones
    "small-after-big": PartitionLoad(1_620_000, 2000.0, 2000.0, 2000.0, 10.0, "a"),
    # twice 100 records x 100 bytes, the second with the size from the previous sample, because none is left
    "retention": PartitionLoad(0, 1000.0, 1000.0, 1000.0, 20.0, "a"),
    # 20 records x 500 bytes in the 10 s of the new topic; the old one is not compared
    "again": PartitionLoad(1_010_000, 1000.0, 1000.0, 1000.0, 10.0, "new"),
    # only the second interval counts
    "went-back": PartitionLoad(20_000, 1000.0, 1000.0, 1000.0, 10.0, ""),
    # (10 000 + 14 000 bytes) / 80 s; 200 B/s for 70 s and 1000 B/s for the 10 s on top, so the 76th second is at 1000
    "gap": PartitionLoad(34_000, 300.0, 1000.0, 1000.0, 80.0, "a"),
    "idle": PartitionLoad(500, 0.0, 0.0, 0.0, 20.0, "a"),
    "once": PartitionLoad(700, topic_id="a"),
    "leaderless": PartitionLoad(290, topic_id="a"),
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Late batches, repeated batches, repeated rows, a partial one, and files to be ignored."""
    place = tmp_path_factory.mktemp("lake with spaces")
    samples = dirty_samples()
    samples.rows[10] += samples.rows[10]
    samples.rows[20].reverse()
    for at, missing in ((20, ()), (0, ()), (80, (1, 3)), (10, ()), (10, ())):
        write_batch(str(place), samples.batch(at, missing))
    wild = Samples()
    wild.leader(30, "steady", 0, 10**9, 10**12)
    unnamed = write_batch(str(place), wild.batch(30))
    (place / unnamed.path.replace("samples/", "manifests/").replace(".parquet", ".json")).unlink()
    cut = write_batch(str(place), wild.batch(30))
    (place / cut.path).write_bytes((place / cut.path).read_bytes()[:100])
    return place


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, lake: Path) -> job.Outcome:
    return job.build(spark, str(lake), CLUSTER, DAY)


@pytest.fixture(scope="module")
def model(outcome: job.Outcome, lake: Path) -> LoadModel:
    return parse_load_model((lake / "models" / CLUSTER / "load-model.json.gz").read_bytes())


class TestDirtySamples:
    @pytest.mark.parametrize("topic", EXPECTED)
    def test_give_the_numbers_worked_out_by_hand(self, model: LoadModel, topic: str) -> None:
        """Size, mean, 95th percentile, maximum, covered seconds and topic id of each case."""
        assert model.partitions[TopicPartition(topic, 0)] == EXPECTED[topic]

    def test_nothing_else_is_in_the_model(self, model: LoadModel) -> None:
        """One row per partition, without earlier topics of the same name."""
        assert {tp.topic for tp in model.partitions} == EXPECTED.keys()

    def test_the_window_and_its_samples_are_told(self, model: LoadModel) -> None:
        """A repeated batch counts as one sample."""
        assert (model.window_start, model.measured_at) == (START, START + timedelta(seconds=80))
        assert (model.cluster_id, model.samples, model.source) == (CLUSTER, 4, "LoadModel")

    def test_what_could_not_be_used_is_counted(self, outcome: job.Outcome) -> None:
        """A damaged file, a partial sample, partitions without a rate."""
        assert (outcome.missing_files, outcome.partial_batches, outcome.unknown_rates) == (1, 1, 2)

    def test_the_table_says_the_same(self, outcome: job.Outcome, lake: Path) -> None:
        """The Parquet output has every partition with the inputs of its numbers."""
        table = pyarrow.parquet.read_table(lake / outcome.table, partitioning=None).to_pylist()
        steady = next(row for row in table if row["topic"] == "steady")
        assert len(table) == len(EXPECTED)
        assert (steady["bytes_in_per_second"], steady["intervals"], steady["samples"]) == (1500.0, 2, 3)
        assert steady["last_seen"] == START + timedelta(seconds=20)

    def test_again_gives_the_same_bytes(self, spark: SparkSession, outcome: job.Outcome, lake: Path) -> None:
        """The model depends on the samples only."""
        artefact = Lake.open(str(lake)).read(outcome.artefact)
        job.build(spark, str(lake), CLUSTER, DAY)
        assert Lake.open(str(lake)).read(outcome.artefact) == artefact


class TestWindow:
    def test_older_samples_are_not_read(self, spark: SparkSession, tmp_path: Path) -> None:
        """A burst before the window does not raise the rate in it."""
        samples = Samples()
        for at, end in ((0, 0), (10, 9000), (20, 9100), (30, 9200)):
            samples.leader(at, "t", 0, end, end * 10)
            write_batch(str(tmp_path), samples.batch(at))
        built = job.build(spark, str(tmp_path), CLUSTER, timedelta(seconds=20)).model
        assert built.partitions[TopicPartition("t", 0)].bytes_in_per_second == 100.0
        assert built.samples == 3


class TestCommand:
    def test_a_line_per_cluster(self, spark: SparkSession, tmp_path: Path) -> None:
        """Partitions, samples, window and path of the model; unknown rates are reported as unknown, not as zero."""
        for name in ("c1", "c2"):
            samples = Samples(name)
            samples.leader(0, "t", 0, 10, 1024)
            write_batch(str(tmp_path), samples.batch(0))
        result = CliRunner().invoke(pipeline, ["load-model", "--lake", str(tmp_path)], catch_exceptions=False)
        assert [line.split(",")[0] for line in result.stdout.splitlines()] == [
            "cluster c1: 1 partitions",
            "cluster c2: 1 partitions",
        ]
        assert "1 samples from 2026-02-28 23:59:50Z to 2026-02-28 23:59:50Z" in result.stdout
        assert f"{tmp_path}/models/c2/load-model.json.gz" in result.stdout
        assert "cluster c1: 1 partitions have no rate" in result.stderr
        model = parse_load_model((tmp_path / "models/c2/load-model.json.gz").read_bytes())
        assert model.partitions[TopicPartition("t", 0)] == PartitionLoad(1024, topic_id="a")

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
        with pytest.raises(Refused, match="none of 1 batches has rows"):
            job.build(spark, str(tmp_path), CLUSTER, DAY)
        assert not (tmp_path / "models").exists()
