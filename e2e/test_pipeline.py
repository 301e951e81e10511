"""Real brokers, sampler and Spark: the load model matches Kafka's own tool and the produced records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import NewTopic

from e2e.bench.kafka import KafkaCluster
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.storage.stored_models import read_model_file

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

COMMAND = Path(sys.executable).with_name("kafka-rebalance")
TOPIC = "sampled"
PARTITIONS = 4
RECORD = 4096
HEADERS = 128  # of a record that is alone in its batch: 61 bytes of the batch and some of the record
RECORDS_PER_SECOND = 250
Timeline = defaultdict[int, list[float]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster({1: "a", 2: "b"}) as cluster:
        topic = NewTopic(TOPIC, PARTITIONS, 2)
        admin = cluster.admin()  # keep a reference: the futures of a collected client fail
        admin.create_topics([topic])[TOPIC].result()
        yield cluster


class Production:
    """Produces evenly spread records of random, incompressible bytes; remembers what was sent and what acknowledged."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._producer = Producer(cluster.client_config(acks="all", **{"linger.ms": 20}))
        self._number = 0
        self._sent: Timeline = defaultdict(list)
        self._acknowledged: Timeline = defaultdict(list)

    def run_while(self, process: subprocess.Popen[str]) -> None:
        begin = time.time()
        while process.poll() is None:
            due = int((time.time() - begin) * RECORDS_PER_SECOND)
            for number in range(self._number, due):
                partition = number % PARTITIONS
                self._sent[partition].append(time.time())
                self._producer.produce(TOPIC, os.urandom(RECORD), partition=partition, on_delivery=self._count)
            self._number = max(self._number, due)
            self._producer.poll(0.02)
        assert self._producer.flush(30) == 0

    def at_least(self, partition: int, moment: datetime) -> int:
        """Bytes of records that the leader had at that time: all that were acknowledged before."""
        return sum(at <= moment.timestamp() for at in self._acknowledged[partition]) * RECORD

    def at_most(self, partition: int, moment: datetime) -> int:
        """Bytes of records that it may have had: all that were sent before, with the headers of their batches."""
        return int(sum(at <= moment.timestamp() for at in self._sent[partition]) * (RECORD + HEADERS))

    def _count(self, error: object, message: Message) -> None:
        assert error is None
        self._acknowledged[message.partition() or 0].append(time.time())


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
    (artefact,) = lake.glob("models/*/load-model.parquet")
    return read_model_file(str(artefact)), production, lake


def leader_rows(lake: Path, partition: int) -> list[dict[str, Any]]:
    """The leader's rows of a partition, oldest first."""
    rows = [
        row
        for path in lake.glob("samples/*/*/*.parquet")
        for row in pyarrow.parquet.ParquetFile(path).read().to_pylist()
        if (row["topic"], row["partition"]) == (TOPIC, partition) and row["broker"] == row["leader"]
    ]
    return sorted(rows, key=lambda row: row["size_at"])


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
            (broker, f"{TOPIC}-{n}"): model.partitions[TopicPartition(TOPIC, n)].size_bytes
            for broker in (1, 2)
            for n in range(PARTITIONS)
        } == told

    def test_the_rate_is_what_was_produced(self, sampled: tuple[LoadModel, Production, Path]) -> None:
        """Per partition between the first and the last answer: no less than was acknowledged, no more than was sent.

        An answer was made between the begin of its sample and the time at which it was read.
        """
        model, production, lake = sampled
        for number in range(PARTITIONS):
            load = model.partitions[TopicPartition(TOPIC, number)]
            first, *_, last = leader_rows(lake, number)
            assert load.covered_seconds == pytest.approx(
                (last["size_at"] - first["size_at"]).total_seconds(), abs=0.001
            )
            assert load.bytes_in_per_second is not None
            written = load.bytes_in_per_second * load.covered_seconds
            assert written == pytest.approx(last["size_bytes"] - first["size_bytes"], rel=0.001)
            at_least = production.at_least(number, last["sampled_at"]) - production.at_most(number, first["size_at"])
            at_most = production.at_most(number, last["size_at"]) - production.at_least(number, first["sampled_at"])
            assert at_least <= written <= at_most
            assert load.bytes_in_max is not None

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
