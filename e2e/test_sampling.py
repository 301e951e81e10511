"""KafkaConnections with spec.sampling on real brokers: what an operator with --samples stores."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from e2e.bench.kube import KubeCluster
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.connection import Connection
from e2e.lane import OPERATOR_NAMESPACE, WATCHED
from e2e.world import World
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.sample_manifests import StoredBatch, listed

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver, pytest.mark.campaign]


@pytest.fixture
def lake(kube: KubeCluster, operator: OperatorProcess, tmp_path: Path) -> Iterator[Path]:
    """The operator of the lane runs with --samples meanwhile."""
    operator.stop()
    process = OperatorProcess(kube, *WATCHED, "--samples", str(tmp_path / "lake"), namespace=OPERATOR_NAMESPACE).start()
    yield tmp_path / "lake"
    process.stop()
    operator.start()


def test_from_the_first_edit_to_the_deletion(world: World, lake: Path, connect: Callable[..., Connection]) -> None:
    """Sizes as Kafka's tools show them; an edit begins a new run, and a deletion ends the last one."""
    topic = world.skewed("sampled", *[100_000] * 3)
    placed = {(tp, broker) for tp, state in world.judge.describe_topics(topic).items() for broker in state.replicas}

    def runs() -> dict[str, list[StoredBatch]]:
        """The samples of each run, in their order."""
        found: dict[str, list[StoredBatch]] = {}
        now = datetime.now(UTC)
        for batch in listed(Lake.open(str(lake)), world.kafka.cluster_id, timedelta(days=1), now).batches():
            found.setdefault(batch.run_id, []).append(batch)
        return found

    def wait_runs(*counts: int) -> list[list[StoredBatch]]:
        """Wait until the runs, oldest first, have at least that many samples."""

        def there() -> list[list[StoredBatch]] | None:
            found = sorted(runs().values(), key=lambda batches: batches[0].sampled_at)
            enough = len(found) == len(counts) and all(len(b) >= n for b, n in zip(found, counts, strict=True))
            return found if enough else None

        return wait_until(f"samples {counts}", there)

    connection = connect(sampling={"interval": "10s"})
    wait_runs(2)
    status = connection.until("sampled", lambda found: "lastSample" in found and _sampling(found))
    assert _sampling(status) == ("True", "Sampled", "one sample each 10s is stored")
    rows = [
        row for file in (lake / "samples").rglob("*.parquet") for row in pyarrow.parquet.read_table(file).to_pylist()
    ]
    sizes = {
        ((row["topic"], row["partition"]), row["broker"]): row["size_bytes"] for row in rows if row["topic"] == topic
    }
    assert sizes.keys() == placed
    assert min(sizes.values()) >= 90_000

    connection.apply(sampling={"interval": "11s"})
    first, _ = wait_runs(2, 2)
    connection.delete()
    connect("later", sampling={"interval": "10s"})
    ended, second, third = wait_runs(len(first), 2, 2)
    assert len(ended) == len(first)
    assert all(batch.sampled_at < third[0].sampled_at for batch in second)


def _sampling(status: Any) -> tuple[str, str, str] | None:
    found = [c for c in status["conditions"] if c["type"] == "Sampling"]
    return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else None
