"""The outputs in docs/cli.md of the commands that read a Kafka cluster are those of the program."""

import json
from dataclasses import replace
from unittest.mock import patch

import pytest
from tests.docs.pages import sample
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.whole_program import Done, run_program
from tests.unit.cli.commands.execute_runs import Kube

from kafka_rebalance.cli.commands import doctor_command, execute_command, verify_command
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, FOLLOWER_RATE
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

KAFKA = ("--bootstrap-servers", "kafka-0:9092")


class Cluster(KafkaInMemory):
    """Brokers that a command has a connection to, which it closes."""

    async def close(self) -> None:
        pass


def run(cluster: KafkaInMemory, *arguments: str, stdin: str = "") -> Done:
    with (
        patch.object(verify_command, "connect", lambda _: cluster),
        patch.object(execute_command, "connect", lambda _: cluster),
        patch.object(doctor_command, "connect", lambda _: cluster),
    ):
        return run_program(*arguments, stdin=stdin)


def shown(done: Done) -> list[str]:
    return [line.rstrip() for line in done.out.splitlines()]


def file_of(**lists: list[list[int]]) -> str:
    """Kafka's reassignment file of these replica lists, by topic."""
    rows = [
        {"topic": topic, "partition": number, "replicas": replicas}
        for topic, found in lists.items()
        for number, replicas in enumerate(found)
    ]
    return json.dumps({"version": 1, "partitions": rows})


class TestVerify:
    def test_partly_done(self) -> None:
        """One partition is completed and led by another replica, one is in flight, one was never begun."""
        cluster = Cluster((1, 2, 3, 4), orders=[[4, 2, 3], [1, 2, 3], [1, 2, 3]])
        cluster.lead("orders", 0, 2)
        cluster.slow = {4}
        cluster._alter(TopicPartition("orders", 1), replicas_of(4, 2, 3))
        cluster.values[BrokerId(4), FOLLOWER_RATE] = "52428800"
        cluster.values["orders", FOLLOWER_LIST] = "1:4"
        done = run(cluster, "verify", *KAFKA, "--reassignment-json-file", "-", stdin=file_of(orders=[[4, 2, 3]] * 3))
        assert done.code == 4
        assert shown(done) == sample("verify --bootstrap-servers kafka-0:9092 --reassignment-json-file plan.json")


class TestExecute:
    def test_applied(self) -> None:
        cluster = Cluster((1, 2, 3, 4), orders=[[1, 2, 3]])
        kube = Kube()
        options = ("--reassignment-json-file", "-", "--throttle", "50Mi", "-n", "kafka", "--apply")
        with patch.object(KubeClient, "connect", lambda *_, **__: kube):
            done = run(cluster, "execute", *KAFKA, *options, stdin=file_of(orders=[[4, 2, 3]]))
        options = ("--reassignment-json-file", "plan.json", *options[2:])
        assert shown(done) == sample(" ".join(("execute", *KAFKA, *options)))


class TestDoctor:
    @pytest.fixture
    def wedged(self) -> KafkaInMemory:
        """orders-8 adds and removes broker 4."""
        cluster = Cluster((1, 2, 3, 4), orders=[[1, 2, 3]] * 9)
        tp, stuck = TopicPartition("orders", 8), replicas_of(4)
        held = replicas_of(1, 2, 3, 4)
        state = replace(cluster.states[tp], replicas=held, isr=frozenset(held), adding=stuck, removing=stuck)
        cluster.states[tp] = state
        return cluster

    def test_a_stuck_reassignment(self, wedged: KafkaInMemory) -> None:
        done = run(wedged, "doctor", *KAFKA)
        assert done.code == 4
        assert shown(done) == sample("doctor --bootstrap-servers kafka-0:9092")

    def test_it_is_cancelled(self, wedged: KafkaInMemory) -> None:
        done = run(wedged, "doctor", *KAFKA, "--cancel-wedged", "-o", "json")
        assert done.code == 0
        printed = sample("doctor --bootstrap-servers kafka-0:9092 --cancel-wedged -o json")
        assert json.loads(done.out) == json.loads("".join(printed))

    def test_throttles_are_cleared(self) -> None:
        """Of broker 4, and of a topic with twelve partitions."""
        cluster = Cluster((1, 2, 3, 4), orders=[[1, 2, 4]] * 12)
        cluster.values[BrokerId(4), FOLLOWER_RATE] = "1000000"
        cluster.values["orders", FOLLOWER_LIST] = ",".join(f"{number}:4" for number in range(12))
        done = run(cluster, "doctor", *KAFKA, "--clear-throttles", "--no-operator")
        assert done.code == 0
        command = "doctor --bootstrap-servers kafka-0:9092 --clear-throttles --operator-namespace kafka-rebalance"
        assert shown(done) == sample(command)
