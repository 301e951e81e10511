"""Properties of the images, and that they work with a read-only root and without root rights."""

import json
import os
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs
import pytest

from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics
from e2e.bench.s3_server import s3_server
from e2e.node.docker import Docker
from e2e.node.images import OPERATOR, PIPELINE
from e2e.node.release import ROOT
from kafka_rebalance.storage.locations import open_location
from kafka_rebalance.storage.stored_models import find_model

pytestmark = pytest.mark.node

SPARK_AND_JAVA_BYTES = 500_000_000

LAKE = "s3://bucket/lake"
RECORDS, RECORD_BYTES = 50, 1_000

CLUSTER = {
    "brokers": [{"id": number, "rack": None} for number in range(1, 6)],
    "partitions": [
        {"topic": "t", "partition": at, "replicas": replicas}
        for at, replicas in enumerate([[1, 2], [1, 3], [2, 1], [1, 2], [2, 3], [3, 1]])
    ],
}
"""Its plan uses both solvers, flow and constraint."""


@pytest.mark.parametrize("tag", [OPERATOR, PIPELINE])
class TestBoth:
    def test_runs_as_a_number(self, docker: Docker, tag: str) -> None:
        """`runAsNonRoot` requires a numeric user; no Docker health check; the command runs without a shell."""
        config = docker.inspect(tag)["Config"]
        assert config["User"] == "65532:65532"
        assert "Healthcheck" not in config
        assert config["Entrypoint"] == ["/opt/venv/bin/kafka-rebalance"]

    def test_says_what_it_is(self, docker: Docker, tag: str) -> None:
        labels = docker.inspect(tag)["Config"]["Labels"]
        version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert labels["org.opencontainers.image.version"] == version
        assert labels["org.opencontainers.image.revision"] in {head.stdout.strip(), "unknown"}
        assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
        assert version in docker.run(tag, "--version").stdout

    def test_plans_locked_up(self, docker: Docker, tag: str) -> None:
        """The whole program is in the image, including both solvers of the planner."""
        done = docker.run(tag, "plan", "--cluster", "-", "-o", "json", stdin=json.dumps(CLUSTER))
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["summary"]["optimal"]

    def test_has_machine_code_for_plans_by_load(self, docker: Docker, tag: str) -> None:
        """It was compiled when the image was built, and is read where nothing can be written."""
        code = "from kafka_rebalance.planning.load.relief import relieve; print(bool(relieve.stats.cache_hits))"
        assert docker.run(tag, "-c", code, entrypoint="/opt/venv/bin/python").stdout == "True\n"


class TestOperator:
    def test_has_no_spark(self, docker: Docker) -> None:
        """The image has no Spark and no Java: they are in the other image."""
        done = docker.run(OPERATOR, "pipeline", "load-model", "--lake", "/tmp")
        assert done.returncode == 1
        assert "ExtraMissing" in done.stderr
        assert docker.size_bytes(OPERATOR) < docker.size_bytes(PIPELINE) - SPARK_AND_JAVA_BYTES

    def test_imports_without_compiling(self, docker: Docker) -> None:
        """The image contains the bytecode of our modules, because the operator runs with a read-only root."""
        code = (
            "import pathlib, kafka_rebalance as k; root = pathlib.Path(k.__file__).parent\n"
            "print([p.name for p in root.rglob('*.py') if 'pipeline' not in p.parts[-2:] "
            "and not list((p.parent / '__pycache__').glob(p.stem + '.*.pyc'))])"
        )
        assert docker.run(OPERATOR, "-c", code, entrypoint="/opt/venv/bin/python").stdout == "[]\n"


class TestLakeInAnObjectStore:
    """From brokers to a plan, each command in the image that users run it in, with a real S3 server."""

    @pytest.fixture
    def s3(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
        """A server with an empty bucket."""
        with s3_server(tmp_path / "s3.log") as variables:
            for name, value in variables.items():
                monkeypatch.setenv(name, value)
            pyarrow.fs.FileSystem.from_uri("s3://bucket?allow_bucket_creation=true")[0].create_dir("bucket")
            yield variables

    @pytest.fixture
    def brokers(self) -> Iterator[KafkaCluster]:
        """Two brokers; the only topic is on the first one."""
        with KafkaCluster({1: "a", 2: "b"}) as cluster:
            create_topics(cluster, {"stored": [[1]]})
            producer = cluster.producer(acks="all")
            for _ in range(RECORDS):
                producer.produce("stored", os.urandom(RECORD_BYTES), partition=0)
            assert producer.flush(60) == 0
            yield cluster

    def test_sampled_computed_and_planned(self, docker: Docker, s3: dict[str, str], brokers: KafkaCluster) -> None:
        """The sampler and Spark run in the pipeline's image, and the planner reads the model in the operator's."""

        def run(tag: str, *arguments: str, stdin: str = "") -> str:
            done = docker.run(tag, *arguments, stdin=stdin, network="host", variables=s3)
            assert done.returncode == 0, done.stderr
            return done.stdout

        servers = ("--bootstrap-servers", brokers.bootstrap_servers)
        run(PIPELINE, "pipeline", "sample", *servers, "--lake", LAKE, "--interval", "1s", "--count", "3")
        run(PIPELINE, "pipeline", "load-model", "--lake", LAKE)
        stored = find_model(open_location(f"{LAKE}/models"), brokers.cluster_id)
        assert stored is not None
        described = {
            "brokers": [{"id": 1}, {"id": 2}],
            "partitions": [{"topic": "stored", "partition": 0, "replicas": [1]}],
        }
        model = ("--load-model", f"s3://{stored.path}")
        arguments = ("--cluster", "-", "--decommission", "1", *model, "-o", "json")
        plan = json.loads(run(OPERATOR, "plan", *arguments, stdin=json.dumps(described)))
        assert plan["summary"]["dataToMove"] > RECORDS * RECORD_BYTES
