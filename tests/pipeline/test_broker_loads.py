"""What brokers carry in the windows of a load model, compared with numbers calculated by hand beside them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest
from click.testing import CliRunner
from tests.pipeline.clusters_by_hand import CLUSTER, Samples
from tests.pipeline.dirty_samples import DAY, MB, NOW
from tests.pipeline.test_job import model_of

from kafka_rebalance.cli.commands.pipeline_command import _report, pipeline
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.pipeline import job
from kafka_rebalance.pipeline.broker_loads import BrokerLoad

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DISK, BYTES_IN, BYTES_OUT, LEADER_BYTES_IN = LoadResource
WINDOWS = 6
KB = 1000


def written(at: float, peak: int) -> int:
    """Bytes until then: 5 kB/s in the window ``peak``, 1 kB/s in the five others."""
    return sum(min(max(round(at) - 300 * n, 0), 300) * KB * (5 if n == peak else 1) for n in range(WINDOWS))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half an hour, a sample a minute; records have 100 bytes."""
    place, s = tmp_path_factory.mktemp("lake"), Samples()
    for minute in range(31):
        at = 60 * minute
        # Broker 1 leads two partitions, whose peaks are in different windows. Broker 2 follows in one of them.
        s.leader(at, "a", 0, written(at, 0) / 100, written(at, 0), groups={"g": written(at, 0) / 100})
        s.follower(at, "a", written(at, 0))
        s.leader(at, "b", 0, written(at, 1) / 100, written(at, 1), groups={})
        # What comes in to one partition of broker 4 is not known.
        s.leader(at, "tiered", 0, 10**9 + at * KB, 1000 * MB, whole=False, broker=4)
        s.leader(at, "beside", 0, at * 10, at * KB, broker=4)
        # One partition of broker 5 is there from the middle on.
        s.leader(at, "early", 0, at * 10, at * KB, broker=5)
        if minute >= 15:
            s.leader(at, "late", 0, at * 10, at * KB, broker=5)
        s.log_dir(at, 3)
    s.write(place)
    return place


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, lake: Path) -> job.JobOutcome:
    return job.build(spark, str(lake), CLUSTER, DAY, NOW, by_broker=True)


@pytest.fixture(scope="module")
def loads(outcome: job.JobOutcome) -> dict[tuple[int, LoadResource], BrokerLoad]:
    return {(load.broker, load.resource): load for load in outcome.model.brokers}


EXPECTED = {
    # The windows have 6, 6, 2, 2, 2, 2 kB/s. The 95th percentiles of the two partitions, 5 kB/s each, add up to 10.
    (1, BYTES_IN): (20 * KB / 6, 6 * KB, 6 * KB, 6, 2, 2),
    (1, LEADER_BYTES_IN): (20 * KB / 6, 6 * KB, 6 * KB, 6, 2, 2),
    # What the group reads of the first partition, and as much for its follower: 10, 2, 2, 2, 2, 2 kB/s.
    (1, BYTES_OUT): (20 * KB / 6, 10 * KB, 10 * KB, 6, 2, 2),
    # 1.8, 3.6, 4.2, 4.8, 5.4 and 6 MB at the ends of the windows.
    (1, DISK): (4.3 * MB, 6 * MB, 6 * MB, 6, 2, 2),
    (2, BYTES_IN): (10 * KB / 6, 5 * KB, 5 * KB, 6, 1, 1),
    (2, LEADER_BYTES_IN): (0, 0, 0, 6, 0, 0),
    (2, BYTES_OUT): (0, 0, 0, 6, 0, 0),
    # 1.5, 1.8, 2.1, 2.4, 2.7 and 3 MB.
    (2, DISK): (2.25 * MB, 3 * MB, 3 * MB, 6, 1, 1),
    **{(3, resource): (0, 0, 0, 6, 0, 0) for resource in LoadResource},
    (4, BYTES_IN): (None, None, None, 0, 2, 1),
    (4, LEADER_BYTES_IN): (None, None, None, 0, 2, 1),
    (4, BYTES_OUT): (None, None, None, 0, 2, 0),
    # 300, 600, ... 1800 kB beside what is constant.
    (4, DISK): (1001.05 * MB, 1001.8 * MB, 1001.8 * MB, 6, 2, 2),
    # Of three windows only both partitions are known.
    (5, BYTES_IN): (2 * KB, 2 * KB, 2 * KB, 3, 2, 2),
    (5, LEADER_BYTES_IN): (2 * KB, 2 * KB, 2 * KB, 3, 2, 2),
    (5, BYTES_OUT): (None, None, None, 0, 2, 0),
    # 1200, 1500 and 1800 kB twice.
    (5, DISK): (3 * MB, 3.6 * MB, 3.6 * MB, 3, 2, 2),
}


class TestBrokers:
    @pytest.mark.parametrize("place", EXPECTED, ids=lambda place: f"{place[0]}-{place[1]}")
    def test_statistics_are_of_the_sums(
        self, loads: dict[tuple[int, LoadResource], BrokerLoad], place: tuple[int, LoadResource]
    ) -> None:
        """In windows that are known of each partition of the broker; unknown if there is none, and never 0 then."""
        load = loads[place]
        *figures, windows, partitions, known = EXPECTED[place]
        near = [figure if figure is None else pytest.approx(figure, rel=1e-6) for figure in figures]
        assert [load.mean, load.p95, load.max] == near
        assert (load.windows, load.of_windows, load.partitions, load.known_partitions) == (
            *(windows, WINDOWS),
            *(partitions, known),
        )

    def test_each_broker_has_each_resource(self, loads: dict[tuple[int, LoadResource], BrokerLoad]) -> None:
        """A broker without replicas too: it lowers the share of the others."""
        assert loads.keys() == EXPECTED.keys()

    def test_hot_partitions_are_those_with_the_largest_means(
        self, loads: dict[tuple[int, LoadResource], BrokerLoad]
    ) -> None:
        """Where all means are known. Of two partitions none is hot: it had to carry all."""
        assert loads[1, BYTES_IN].hot_partitions == ()
        assert loads[4, BYTES_IN].hot_partitions is None


class TestArtefact:
    def test_has_the_leader_and_the_log_dirs(self, outcome: job.JobOutcome, lake: Path) -> None:
        """Of each partition and replica, in the newest sample."""
        row = model_of(lake)["a"]
        assert (row["leader"], row["replica_brokers"], row["replica_log_dirs"]) == (1, [1, 2], ["/data-1", "/data-2"])

    def test_is_one_table_of_brokers(self, outcome: job.JobOutcome, lake: Path) -> None:
        """Parquet beside the model, with a row for each broker and resource."""
        table = pyarrow.parquet.read_table(lake / "models" / CLUSTER / "broker-loads.parquet")
        assert table.num_rows == len(EXPECTED)
        assert table.schema.field("p95").type == "double"


class TestCommands:
    def test_say_who_has_most_and_what_is_not_known(
        self, outcome: job.JobOutcome, lake: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A resource that is not known of one broker is unknown, with an example."""
        _report(outcome, str(lake), 1.0)
        said = capsys.readouterr()
        disk = "Disk: broker 4 has most, 955 MiB (p95 of summed windows), 4.94 times an equal share of 5 brokers"
        unknown = "BytesIn: Unknown for 1 of 5 brokers, for example broker 4: in no window are all its 2 partitions"
        assert f"cluster c1: {disk}; known in 3 or more of 6 windows\n" in said.out
        assert f"cluster c1: {unknown} known, at most 1\n" in said.err
        quality = CliRunner().invoke(pipeline, ["quality", "--lake", str(lake)], catch_exceptions=False).stdout
        assert f"  brokers    {disk}" in quality
        assert f"  brokers    {unknown}" in quality
