"""Real brokers, sampler and Spark: the load model matches Kafka's own tool and the produced records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from confluent_kafka import Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import NewTopic

from e2e.bench.kafka import KafkaCluster
from e2e.bench.waiting import wait_until
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.storage.stored_models import read_model_file

pytestmark = [pytest.mark.brokers, pytest.mark.spark, pytest.mark.campaign]

COMMAND = Path(sys.executable).with_name("kafka-rebalance")
TOPIC = "sampled"
PARTITIONS = 4
READ, GROUP = (0, 1), "readers"
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
        self._producer = cluster.producer(acks="all", **{"linger.ms": 20})
        # One group reads half of the partitions, and commits as it goes.
        group = {"group.id": GROUP, "auto.commit.interval.ms": 100}
        self._consumer = Consumer(cluster.client_config(**group))
        self._begin = [ClientPartition(TOPIC, number, 0) for number in READ]
        wait_until("the group can commit", self._commits)
        self._consumer.assign(self._begin)
        self._number = 0
        self._sent: Timeline = defaultdict(list)
        self._acknowledged: Timeline = defaultdict(list)

    def _commits(self) -> bool:
        with suppress(KafkaException):  # until the topic of offsets has been created
            self._consumer.commit(offsets=self._begin, asynchronous=False)
            return True
        return False

    def run_while(self, process: subprocess.Popen[str]) -> None:
        begin = time.time()
        while process.poll() is None:
            self._consumer.consume(1000, timeout=0)
            due = int((time.time() - begin) * RECORDS_PER_SECOND)
            for number in range(self._number, due):
                partition = number % PARTITIONS
                self._sent[partition].append(time.time())
                self._producer.produce(TOPIC, os.urandom(RECORD), partition=partition, on_delivery=self._count)
            self._number = max(self._number, due)
            self._producer.poll(0.02)
        assert self._producer.flush(30) == 0
        self._consumer.close()

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


def commit_rows(lake: Path, partition: int) -> list[dict[str, Any]]:
    """What groups had committed of a partition, oldest first."""
    rows = [
        row
        for path in lake.glob("offsets/*/*/*.parquet")
        for row in pyarrow.parquet.ParquetFile(path).read().to_pylist()
        if (row["topic"], row["partition"]) == (TOPIC, partition)
    ]
    return sorted(rows, key=lambda row: row["sampled_at"])


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

    def test_bytes_out_are_what_the_group_read(self, sampled: tuple[LoadModel, Production, Path]) -> None:
        """The rate is known between the samples with its commits; for a partition without readers it is 0."""
        model, _, lake = sampled
        for number in range(PARTITIONS):
            load = model.partitions[TopicPartition(TOPIC, number)]
            rows = commit_rows(lake, number)
            pairs = [
                (before, after)
                for before, after in pairwise(rows)
                if len(before["groups"]) == len(after["groups"]) == (number in READ)
            ]
            assert pairs
            read = sum(after["committed"][0] - before["committed"][0] for before, after in pairs if after["committed"])
            seconds = sum((after["committed_at"] - before["committed_at"]).total_seconds() for before, after in pairs)
            assert load.bytes_out_covered_seconds == pytest.approx(seconds, abs=0.001)
            assert load.bytes_out_per_second is not None
            sent = load.bytes_out_per_second * load.bytes_out_covered_seconds
            # The size of a record is from sizes and offsets that were read at different times of a short run.
            assert sent == pytest.approx(read * RECORD, rel=0.25)
            assert (read > 0) == (number in READ)

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
