"""The pipeline over s3://: a real broker, the sampler, Spark and the readers, with a real S3 server between them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.fs
import pytest
from confluent_kafka.admin import NewTopic
from tests.pipeline.clusters_by_hand import Samples
from tests.pipeline.test_window_job import windows_in

from e2e.bench.cache import cached
from e2e.bench.kafka import KafkaCluster
from e2e.bench.s3_server import SECRET_KEY, s3_server
from kafka_rebalance.app.load_model_files import LoadModelFiles
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.pipeline.s3_jars import download, jars
from kafka_rebalance.pipeline.sample_manifests import write_batch
from kafka_rebalance.storage.locations import open_location
from kafka_rebalance.storage.stored_models import find_model

pytestmark = [pytest.mark.brokers, pytest.mark.spark, pytest.mark.campaign]

COMMAND = Path(sys.executable).with_name("kafka-rebalance")
TP = TopicPartition("stored", 0)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A lake in an empty bucket; this process and its children reach the server by the environment."""
    with s3_server(tmp_path_factory.mktemp("s3") / "server.log") as reached, pytest.MonkeyPatch.context() as patch:
        for name, value in reached.items():
            patch.setenv(name, value)
        found = cached(f"spark-s3/{hashlib.sha256(json.dumps(jars()).encode()).hexdigest()[:12]}", download)
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"--driver-class-path {found}/* pyspark-shell")
        filesystem, _ = pyarrow.fs.FileSystem.from_uri("s3://bucket?allow_bucket_creation=true")
        filesystem.create_dir("bucket")
        yield "s3://bucket/lake"


@pytest.fixture(scope="module")
def sampled(lake: str) -> Iterator[KafkaCluster]:
    with KafkaCluster({1: "a"}) as cluster:
        admin = cluster.admin()  # keep a reference: the futures of a collected client fail
        admin.create_topics([NewTopic(TP.topic, 1, 1)])[TP.topic].result()
        producer = cluster.producer(acks="all")
        for _ in range(50):
            producer.produce(TP.topic, os.urandom(1000), partition=0)
        assert producer.flush(60) == 0
        connection = ("--bootstrap-servers", cluster.bootstrap_servers, "--lake", lake)
        run("pipeline", "sample", *connection, "--interval", "1s", "--count", "3")
        run("pipeline", "load-model", "--lake", lake)
        yield cluster


def run(*arguments: str, code: int = 0) -> str:
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == code, done.stderr
    assert SECRET_KEY not in done.stdout + done.stderr
    return done.stdout + done.stderr


class TestLakeInAnObjectStore:
    async def test_the_operator_reads_the_model(self, sampled: KafkaCluster, lake: str) -> None:
        """What the sampler wrote and Spark computed."""
        models = LoadModelFiles(f"{lake}/models", lambda: datetime.now(UTC))
        model = await models(sampled.cluster_id)
        assert model is not None
        assert model.partitions[TP].size_bytes > 50 * 1000
        assert await models(sampled.cluster_id) is model  # unchanged: not read again
        assert await models("another-cluster") is None

    def test_plan_reads_the_model(self, sampled: KafkaCluster, lake: str, tmp_path: Path) -> None:
        """A size that the cluster file lacks."""
        cluster = tmp_path / "cluster.json"
        row = {"topic": TP.topic, "partition": 0, "replicas": [1]}
        cluster.write_text(json.dumps({"brokers": [{"id": 1}, {"id": 2}], "partitions": [row]}))
        stored = find_model(open_location(f"{lake}/models"), sampled.cluster_id)
        assert stored is not None
        arguments = ("--cluster", str(cluster), "--decommission", "1", "--load-model", f"s3://{stored.path}")
        assert json.loads(run("plan", *arguments, "-o", "json"))["summary"]["dataToMove"] > 50 * 1000

    @pytest.mark.parametrize(("place", "code"), [("no-such-bucket/lake", 3), ("bucket/lake?no-such-option=1", 1)])
    @pytest.mark.usefixtures("lake")
    def test_a_store_that_cannot_be_used(self, place: str, code: int) -> None:
        """The message names the place, and no key."""
        assert "s3://key" not in run("pipeline", "load-model", "--lake", f"s3://key:{SECRET_KEY}@{place}", code=code)


class TestStreamInAnObjectStore:
    def test_stores_what_the_batch_job_stores_elsewhere(self, lake: str, tmp_path: Path) -> None:
        """With its checkpoint in the store, in two runs of the program; a third one has nothing to do."""
        place = lake.replace("lake", "stream")
        samples = Samples()
        for at in range(0, 3 * 3600, 600):
            samples.leader(at, "t", 0, at * 10, at * 1000)
        samples.write(tmp_path / "batch")
        assert "stored the windows of 3 hours" in run("pipeline", "windows", "--lake", str(tmp_path / "batch"))
        stream = ("pipeline", "windows", "--lake", place, "--stream", "--once")
        quarter_past = 5400  # a quarter of an hour after the second full hour: later than the lateness
        for first, hours in ((True, 2), (False, 1)):
            for at in samples.rows:
                if (at <= quarter_past) is first:
                    write_batch(place, samples.batch(at))
            assert f"stored the windows of {hours} hours" in run(*stream)
        assert "stored the windows" not in run(*stream)
        store = open_location(place)
        pyarrow.fs.copy_files(
            f"{store.root}/windows", str(tmp_path / "stream" / "windows"), source_filesystem=store.filesystem
        )
        assert windows_in(tmp_path / "stream") == windows_in(tmp_path / "batch")
