"""The history of runs on real brokers: what an operator with --history writes of them."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow.parquet
import pytest

from e2e.bench.kube import KubeCluster
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.lane import NAMESPACE, OPERATOR_NAMESPACE, WATCHED
from e2e.world import World
from kafka_rebalance.pipeline.duration_fit import learn
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.run_steps import past_runs
from kafka_rebalance.pipeline.spark_session import spark_session

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver, pytest.mark.campaign]

SIZE = 1_000_000
RATE = 128 << 10


@pytest.fixture
def lake(kube: KubeCluster, operator: OperatorProcess, tmp_path: Path) -> Iterator[Path]:
    """The operator of the lane runs with --history meanwhile."""
    operator.stop()
    process = OperatorProcess(kube, *WATCHED, "--history", str(tmp_path), namespace=OPERATOR_NAMESPACE).start()
    yield tmp_path
    process.stop()
    operator.start()


def test_a_run_leaves_its_steps(world: World, lake: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every copy with its bytes, brokers and rates; a report shows them."""
    pages = tmp_path_factory.mktemp("pages")
    topic = world.skewed("history", *[SIZE] * 6)
    before = world.judge.describe_topics(topic)
    throttle = {"leaderRate": str(RATE), "followerRate": str(RATE)}
    rebalance = world.rebalance("history", topic, throttle=throttle, execution={"parallelPartitionCount": 2})
    rebalance.until("copies are in flight", lambda status: status.get("currentBatchSize"))
    _report(world, rebalance.name, pages / "running.md")
    running = (pages / "running.md").read_text()
    assert running.startswith(f"# KafkaRebalance {NAMESPACE}/{rebalance.name}\n\n**Rebalancing**")
    rebalance.wait_for("Succeeded")
    after = world.judge.describe_topics(topic)
    wait_until("the record of the run", lambda: list(lake.rglob("*.parquet")))
    (file,) = lake.rglob("*.parquet")
    rows = pyarrow.parquet.ParquetFile(file).read().to_pylist()
    assert [path for path in (lake / "steps").rglob("*") if path.is_file()] == [file]
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

    _report(world, rebalance.name, pages / "ended.html", "--history", str(lake))
    page = (pages / "ended.html").read_text()
    steps = len({(row["topic"], row["partition"], row["started_at"]) for row in rows})
    assert f"{steps} of {steps} steps" in page
    assert f"kafka-rebalance undo {rebalance.name} -n {NAMESPACE}" in page


def _report(world: World, name: str, page: Path, *options: str) -> None:
    """What a user writes; the records of this lane's operator are not in the usual namespace."""
    where = ("-n", NAMESPACE, "--operator-namespace", OPERATOR_NAMESPACE)
    world.command("report", name, *where, *options, "-o", str(page))


def test_durations_are_learnt_from_real_runs(world: World, lake: Path) -> None:
    """Twenty-two runs back and forth, at three rates and three limits: the model predicts each from the others."""
    topic = world.skewed("durations", *[500_000] * 6)
    for number in range(22):
        rate = str((256 << 10) * (1, 2, 4)[number % 3])
        rebalance = world.rebalance(
            f"durations-{number}",
            topic,
            throttle={"leaderRate": rate, "followerRate": rate},
            execution={"parallelPartitionCount": (1, 2, 6)[number // 3 % 3]},
            brokers={"include": [1, 4, 5] if number % 2 == 0 else [1, 2, 3]},
        )
        rebalance.wait_for("Succeeded")
        wait_until("the record of the run", lambda done=number + 1: len(list(lake.rglob("*.parquet"))) == done)
    with spark_session("local[1]") as spark:
        runs, looked_at = past_runs(spark, Lake.open(str(lake)), world.kafka.cluster_id)
    assert (len(runs), looked_at) == (22, 22)
    model = learn(world.kafka.cluster_id, runs)
    assert model.median_error <= 0.3, model
    assert model.low < 1 < model.high
