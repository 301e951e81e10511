"""Real brokers, sampler and Spark: the load model matches Kafka's own tool and the produced records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from e2e.bench.kafka import KafkaCluster
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.load_artifact import parse_load_model
from kafka_rebalance.model.topology import TopicPartition

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

COMMAND = Path(sys.executable).with_name("kafka-rebalance")
TOPIC = "sampled"
PARTITIONS = 4
RECORD = 4096
RECORDS_PER_SECOND = 250


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster({1: "a", 2: "b"}) as cluster:
        topic = NewTopic(TOPIC, PARTITIONS, 2)
        admin = cluster.admin()  # keep a reference: the futures of a collected client fail
        admin.create_topics([topic])[TOPIC].result()
        yield cluster


class Production:
    """Produces evenly spread records of random, incompressible bytes; remembers what was acknowledged and when."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._producer = Producer(cluster.client_config(acks="all", **{"linger.ms": 20}))
        self._acknowledged = 0
        self._timeline: list[tuple[float, int]] = []

    def run_while(self, process: subprocess.Popen[str]) -> None:
        begin = time.time()
        sent = 0
        while process.poll() is None:
            due = int((time.time() - begin) * RECORDS_PER_SECOND)
            for number in range(sent, due):
                self._producer.produce(
                    TOPIC, os.urandom(RECORD), partition=number % PARTITIONS, on_delivery=self._count
                )
            sent = due
            self._producer.poll(0.02)
            self._timeline.append((time.time(), self._acknowledged))
        assert self._producer.flush(30) == 0
        self._timeline.append((time.time(), self._acknowledged))

    def bytes_until(self, moment: float) -> int:
        return max((count for at, count in self._timeline if at <= moment), default=0) * RECORD

    def _count(self, error: object, _message: object) -> None:
        assert error is None
        self._acknowledged += 1


def run(*arguments: str) -> str:
    done = subprocess.run([COMMAND, "pipeline", *arguments], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sampled(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadModel, Production, Path]:
    """Samples during production and one after it, then the Spark job."""
    lake = tmp_path_factory.mktemp("lake")
    sample = ("sample", "--bootstrap-servers", cluster.bootstrap_servers, "--lake", str(lake))
    production = Production(cluster)
    regularly = [COMMAND, "pipeline", *sample, "--interval", "2s", "--count", "5"]
    with subprocess.Popen(regularly, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as sampler:
        production.run_while(sampler)
        assert sampler.stdout is not None
        output = sampler.stdout.read()
    assert sampler.returncode == 0, output
    run(*sample)
    summary = run("load-model", "--lake", str(lake))
    assert "6 samples" in summary
    (artefact,) = lake.glob("models/*/load-model.json.gz")
    return parse_load_model(artefact.read_bytes()), production, lake


def sampled_at(lake: Path) -> list[float]:
    """The times of the samples, oldest first."""
    stamps = (json.loads(path.read_text())["sampledAt"] for path in lake.glob("manifests/*/*/*.json"))
    return sorted(datetime.fromisoformat(stamp).timestamp() for stamp in stamps)


class TestModelOfARealCluster:
    def test_sizes_are_those_of_kafkas_own_tool(
        self, cluster: KafkaCluster, sampled: tuple[LoadModel, Production, Path]
    ) -> None:
        """Equal to the byte, because nothing was written after the last sample."""
        model, _, _ = sampled
        output = cluster.run_tool(
            "org.apache.kafka.tools.LogDirsCommand",
            *("--bootstrap-server", cluster.bootstrap_servers, "--describe", "--topic-list", TOPIC),
        )
        listing = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
        told = {
            (broker["broker"], replica["partition"]): replica["size"]
            for broker in listing["brokers"]
            for directory in broker["logDirs"]
            for replica in directory["partitions"]
        }
        assert len(told) == 2 * PARTITIONS
        assert {
            (broker, f"{TOPIC}-{n}"): model.size_bytes(TopicPartition(TOPIC, n))
            for broker in (1, 2)
            for n in range(PARTITIONS)
        } == told

    def test_the_rate_is_what_was_produced(self, sampled: tuple[LoadModel, Production, Path]) -> None:
        """Per partition over the window, within 25 %: the stamp is that of the answer, which took a moment."""
        model, production, lake = sampled
        assert model.measured_at is not None
        assert model.window_start is not None
        start, end = model.window_start.timestamp(), model.measured_at.timestamp()
        produced = (production.bytes_until(end) - production.bytes_until(start)) / PARTITIONS
        # On a busy machine an answer may be read long after its stamp: any two samples may hold all that was produced.
        shortest = min(later - earlier for earlier, later in pairwise(sampled_at(lake)))
        for number in range(PARTITIONS):
            load = model.partitions[TopicPartition(TOPIC, number)]
            assert load.bytes_in_per_second is not None
            assert load.bytes_in_max is not None
            assert load.covered_seconds == pytest.approx(end - start, abs=0.001)
            assert load.bytes_in_per_second * load.covered_seconds == pytest.approx(produced, rel=0.25)
            assert load.bytes_in_per_second <= load.bytes_in_max <= 1.25 * produced / shortest

    def test_the_model_belongs_to_this_cluster(
        self, cluster: KafkaCluster, sampled: tuple[LoadModel, Production, Path]
    ) -> None:
        """The model has Kafka's cluster id, and every partition has its topic id."""
        model, _, lake = sampled
        admin = cluster.admin()
        described = admin.describe_cluster().result()
        assert model.cluster_id == described.cluster_id
        assert (lake / "models" / described.cluster_id).is_dir()
        assert all(load.topic_id for load in model.partitions.values())
