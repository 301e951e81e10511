"""kafka-rebalance snapshot: what of the cluster is in the file."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from unittest.mock import patch

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.whole_program import run_program

from kafka_rebalance.cli.commands import snapshot_command
from kafka_rebalance.kafka.ports import Answers, ClusterInfo, LogDir
from kafka_rebalance.model.cluster_file import parse_cluster
from kafka_rebalance.model.topology import BrokerId, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Disks(KafkaInMemory):
    """Broker 1 has two log dirs and reports the size of one of them, broker 2 has one; broker 3 does not answer."""

    async def describe_cluster(self) -> ClusterInfo:
        return ClusterInfo("c", self.brokers)

    async def log_dirs(self, brokers: Any) -> Any:
        two = (LogDir("/a", {T0: 100}, total_bytes=1000, usable_bytes=900), LogDir("/b", {T1: 100}, {T0: 50}))
        found = {BrokerId(1): two, BrokerId(2): (LogDir("/data", {T0: 100}),)}
        return Answers({b: dirs for b, dirs in found.items() if b in brokers})

    async def close(self) -> None:
        pass


def written(kafka: KafkaInMemory) -> dict[str, Any]:
    with patch.object(snapshot_command, "connect", lambda _: kafka):
        code, out, err = run_program("snapshot", "--bootstrap-servers", "kafka:9092")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def test_log_dirs_of_brokers_with_several() -> None:
    """With the log dir of each replica; a copy that is on its way to another log dir is where it was."""
    document = written(Disks([1, 2, 3], t=[[1, 2], [3, 1]]))
    assert [broker.get("logDirs") for broker in document["brokers"]] == [
        [{"path": "/a", "size": 1000}, {"path": "/b"}],
        None,
        None,
    ]
    assert [row["log_dirs"] for row in document["partitions"]] == [["/a", "any"], ["any", "/b"]]
    assert parse_cluster(json.dumps(document).encode()).log_dirs == {1: {"/a": 1000, "/b": None}}


def test_none_where_each_broker_has_one() -> None:
    document = written(OneDisk([1, 2], t=[[1, 2]]))
    assert all("logDirs" not in broker for broker in document["brokers"])
    assert all("log_dirs" not in row for row in document["partitions"])


def test_partitions_that_are_omitted() -> None:
    """Otherwise a plan from the file looks like one of the whole cluster."""
    kafka = OneDisk([1, 2], t=[[1], [1]])
    kafka.slow = {BrokerId(2)}
    asyncio.run(kafka.alter_reassignments({T0: (BrokerId(2),)}))
    with patch.object(snapshot_command, "connect", lambda _: kafka):
        code, out, err = run_program("snapshot", "--bootstrap-servers", "kafka:9092")
    assert (code, [row["partition"] for row in json.loads(out)["partitions"]]) == (0, [1])
    assert err == ("warning: 1 partition is being reassigned and omitted: a plan from this file ignores them\n")


class OneDisk(Disks):
    """Each broker has one log dir."""

    async def log_dirs(self, brokers: Any) -> Any:
        return Answers({b: (LogDir("/data", {T0: 100}),) for b in brokers})
