"""The history of runs on real brokers: what an operator with --history writes of them."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow.parquet
import pytest

from e2e.bench.kube import KubeCluster
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.lane import OPERATOR_NAMESPACE, WATCHED
from e2e.world import World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver, pytest.mark.campaign]

SIZE = 1_000_000
RATE = 256 << 10


@pytest.fixture
def lake(kube: KubeCluster, operator: OperatorProcess, tmp_path: Path) -> Iterator[Path]:
    """The operator of the lane runs with --history meanwhile."""
    operator.stop()
    process = OperatorProcess(kube, *WATCHED, "--history", str(tmp_path), namespace=OPERATOR_NAMESPACE).start()
    yield tmp_path
    process.stop()
    operator.start()


def test_a_run_leaves_its_steps(world: World, lake: Path) -> None:
    """Every copy with its bytes, brokers and rates."""
    topic = world.skewed("history", *[SIZE] * 6)
    before = world.judge.describe_topics(topic)
    throttle = {"leaderRate": str(RATE), "followerRate": str(RATE)}
    rebalance = world.rebalance("history", topic, throttle=throttle, execution={"parallelPartitionCount": 2})
    rebalance.wait_for("Succeeded")
    after = world.judge.describe_topics(topic)
    wait_until("the record of the run", lambda: list(lake.rglob("*.parquet")))
    (file,) = lake.rglob("*.parquet")
    rows = pyarrow.parquet.ParquetFile(file).read().to_pylist()
    assert [path for path in lake.rglob("*") if path.is_file()] == [file]
    copied = {(row["topic"], row["partition"], broker) for row in rows for broker in row["destinations"]}
    assert copied == {
        (*key, broker) for key in after for broker in set(after[key].replicas) - set(before[key].replicas)
    }
    for row in rows:
        assert (row["complete"], row["outcome"], row["name"]) == (True, "Succeeded", rebalance.name)
        assert (row["parallel_replicas"], row["parallel_partitions"], row["limits_changed"]) == (1, 2, False)
        assert (row["leader_rate"], row["follower_rate"], row["rate_changed"]) == (RATE, RATE, False)
        key = row["topic"], row["partition"]
        assert row["source"] in {*before[key].replicas, *after[key].replicas}  # the leader may move on the way
        assert 0.97 * SIZE <= row["bytes_copied"] <= 1.2 * SIZE
        assert 1 <= row["copies_in"] <= 2
    began, ended = (datetime.fromisoformat(str(rows[0][name])) for name in ("run_started_at", "run_ended_at"))
    assert 0 < rows[0]["active_seconds"] <= (ended - began).total_seconds() + 1
