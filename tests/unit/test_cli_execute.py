"""kafka-rebalance execute: what it asks the operator for, what it refuses, and the rollback that it prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from click.testing import CliRunner
from tests.unit.kube_in_memory import KubeInMemory
from tests.unit.test_cli_verify import Cluster, state

from kafka_rebalance.api.v1alpha1 import parse_rebalance
from kafka_rebalance.cli import execute, resource
from kafka_rebalance.cli.main import main
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kube.errors import Conflict

FILE = {
    "version": 1,
    "partitions": [
        {"topic": "t", "partition": 1, "replicas": [1, 2]},
        {"topic": "t", "partition": 0, "replicas": [2, 3]},
    ],
}
CURRENT = (
    '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["/disk-1","/disk-2"]},'
    '{"topic":"t","partition":1,"replicas":[3,2],"log_dirs":["any","any"]}]}'
)
ROLLBACK = (
    f"Current partition replica assignment\n\n{CURRENT}\n\n"
    "Save this to use as the --reassignment-json-file option during rollback\n\n"
)


class Kube(KubeInMemory):
    """Takes what is created; ``failing`` is what it says to a kind."""

    def __init__(self) -> None:
        super().__init__()
        self.created: dict[str, Any] = {}
        self.failing: dict[str, Exception] = {}

    async def request(self, method: str, path: str, body: Any = None, *, content_type: str = "") -> Any:
        if method == "DELETE":
            del self.created[path]
            return {}
        if body["kind"] in self.failing:
            raise self.failing[body["kind"]]
        self.created[f"{path.partition('?')[0]}/{body['metadata']['name']}"] = body
        return body


class World:
    """One call of the program."""

    def __init__(self) -> None:
        self.cluster = Cluster(state(0, 1, 2), state(1, 3, 2))
        self.kube = Kube()

    def run(self, *arguments: str, file: Any = FILE, servers: str = "kafka:9092") -> tuple[Any, str, str]:
        code: Any = 0
        argv = ["kafka-rebalance", "execute", "--bootstrap-servers", servers, *arguments]
        with (
            CliRunner().isolation(input=json.dumps(file).encode()) as streams,
            patch.object(sys, "argv", argv),
            patch.object(execute, "connect", lambda _: self.cluster),
            patch.object(resource.KubeClient, "connect", lambda _: self.kube),
        ):
            try:
                main()
            except SystemExit as stop:
                code = stop.code
            return code, streams[0].getvalue().decode(), streams[1].getvalue().decode()

    def printed(self, *arguments: str) -> list[dict[str, Any]]:
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return list(yaml.safe_load_all(out))


@pytest.fixture
def world() -> World:
    return World()


FROM_FILE = ("--reassignment-json-file", "-")


class TestAssignment:
    def test_what_is_printed(self, world: World) -> None:
        """Lists in a ConfigMap, with what the partitions have now as KIP-236's original_replicas."""
        lists, rebalance = world.printed(*FROM_FILE, "--throttle", "50Mi", "-n", "kafka", "--name", "move")
        assert lists["metadata"] == rebalance["metadata"] == {"name": "move", "namespace": "kafka"}
        assert json.loads(lists["data"]["assignment.json"])["partitions"] == [
            {"topic": "t", "partition": 0, "replicas": [2, 3], "original_replicas": [1, 2]},
            {"topic": "t", "partition": 1, "replicas": [1, 2], "original_replicas": [3, 2]},
        ]
        assert rebalance["spec"] == {
            "kafka": {"bootstrapServers": "kafka:9092"},
            "strategy": "Assignment",
            "assignment": {"configMapRef": {"name": "move", "key": "assignment.json"}},
            "throttle": {"leaderRate": "50Mi", "followerRate": "50Mi"},
        }
        assert world.cluster.closed
        assert world.kube.created == {}

    def test_lists_of_another_length_ask_for_that_replication_factor(self, world: World) -> None:
        """It is never changed unless asked; to two numbers at once it cannot be."""
        world.cluster.states[state(0, 1).tp] = state(0, 1)
        assert world.printed(*FROM_FILE)[1]["spec"]["replicationFactor"] == 2
        world.cluster.states[state(1, 3, 2).tp] = state(1, 3, 2, 1)
        assert world.printed(*FROM_FILE)[1]["spec"]["replicationFactor"] == 2

    def test_lists_of_two_lengths_are_refused_where_they_change_it(self, world: World, tmp_path: Path) -> None:
        rows = [{**row, "replicas": row["replicas"][: 1 + at]} for at, row in enumerate(FILE["partitions"])]
        file = tmp_path / "mixed.json"
        file.write_text(json.dumps({**FILE, "partitions": rows}))
        code, out, err = world.run("--bootstrap-servers", "kafka:9092", "--reassignment-json-file", str(file))
        assert (code, out) == (3, "")
        assert "refused (MixedFactors)" in err

    def test_rollback_is_printed_as_kafka_prints_it(self, world: World) -> None:
        """On stderr where stdout is for kubectl."""
        code, out, err = world.run(*FROM_FILE)
        assert (code, err) == (0, ROLLBACK)
        assert "Current partition" not in out

    def test_json(self, world: World) -> None:
        """A List, as kubectl takes it."""
        document = json.loads(world.run(*FROM_FILE, "-o", "json")[1])
        assert [item["kind"] for item in document["items"]] == ["ConfigMap", "KafkaRebalance"]

    def test_the_name_follows_from_the_order(self, world: World) -> None:
        """The same twice is one; from another state it is another."""
        names = {world.printed(*FROM_FILE)[0]["metadata"]["name"] for _ in range(2)}
        world.cluster.states[state(0, 1).tp] = state(0, 3, 1)
        names.add(world.printed(*FROM_FILE)[0]["metadata"]["name"])
        assert len(names) == 2

    def test_a_resource_to_begin_with(self, world: World, tmp_path: Path) -> None:
        """Its connection and execution count; what is asked for here wins."""
        spec = {"kafka": {"bootstrapServers": "inside:9092"}, "execution": {"parallelReplicaCount": 2}, "strategy": "X"}
        base = tmp_path / "krb.yaml"
        base.write_text(yaml.safe_dump_all([{"kind": "Secret"}, {"kind": "KafkaRebalance", "spec": spec}]))
        made = world.printed(*FROM_FILE, "--rebalance", str(base))[1]["spec"]
        assert made["kafka"] == {"bootstrapServers": "inside:9092"}
        assert made["execution"] == {"parallelReplicaCount": 2}
        assert made["strategy"] == "Assignment"

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ({"topic": "u", "partition": 0, "replicas": [1]}, "UnknownPartition"),
            ({"topic": "t", "partition": 0, "replicas": [1, 9]}, "UnknownBroker"),
            ({"topic": "t", "partition": 0, "replicas": [3], "original_replicas": [2, 1]}, "OriginalReplicasDiffer"),
            ({"topic": "t", "partition": 2, "replicas": [1]}, "ReassignmentInProgress"),
            (None, "NothingToDo"),
        ],
    )
    def test_refused(self, world: World, row: Any, reason: str) -> None:
        """Nothing is printed that could be applied."""
        world.cluster.states[state(2, 1).tp] = state(2, 1, 2, adding=(2,))
        code, out, err = world.run(*FROM_FILE, file={"version": 1, "partitions": [row] if row else []})
        assert (code, out) == (3, "")
        assert err.startswith(f"refused ({reason}): ")

    def test_original_replicas_that_are_the_present_ones(self, world: World) -> None:
        """KIP-236's file of a moment ago is accepted."""
        row = {"topic": "t", "partition": 0, "replicas": [3, 1], "original_replicas": [1, 2]}
        assert world.run(*FROM_FILE, file={"version": 1, "partitions": [row]})[0] == 0

    def test_too_large_for_a_config_map(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kafka_rebalance.cli.manifests.MAX_BYTES", 100)
        assert world.run(*FROM_FILE)[2].startswith("refused (AssignmentTooLarge)")


class TestPlanning:
    def test_decommission(self, world: World) -> None:
        """KIP-6: plans with the fewest moves, and runs."""
        (made,) = world.printed("--decommission-broker", "4,2", "--throttle", "50000000")
        assert made["spec"] == {
            "kafka": {"bootstrapServers": "kafka:9092"},
            "brokers": {"decommission": [2, 4]},
            "throttle": {"leaderRate": "50000000", "followerRate": "50000000"},
        }
        assert made["metadata"]["name"].startswith("decommission-2-4-")
        parse_rebalance({**made, "metadata": {**made["metadata"], "uid": "1"}})

    def test_topics_and_brokers(self, world: World, tmp_path: Path) -> None:
        """Names are names: a dot in one is no expression."""
        topics = tmp_path / "topics.json"
        topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "a.b"}, {"topic": "a-b_c"}]}))
        (made,) = world.printed("--topics-to-move-json-file", str(topics), "--broker-list", "3,1")
        assert made["spec"]["topics"] == {"include": ["a-b_c", "a\\.b"]}
        assert made["spec"]["brokers"] == {"include": [1, 3]}
        parse_rebalance({**made, "metadata": {**made["metadata"], "uid": "1"}})


class TestApply:
    def test_created(self, world: World) -> None:
        """The lists first; the rollback on stdout, where Kafka's tool prints it."""
        code, out, err = world.run(*FROM_FILE, "--apply", "-n", "kafka", "--name", "move")
        assert (code, err) == (0, "")
        assert out == ROLLBACK + (
            "KafkaRebalance kafka/move created; follow it with: kafka-rebalance watch move -n kafka\n"
        )
        assert list(world.kube.created) == [
            "/api/v1/namespaces/kafka/configmaps/move",
            "/apis/kafkarebalance.dev/v1alpha1/namespaces/kafka/kafkarebalances/move",
        ]
        assert world.kube.closed

    @pytest.mark.parametrize("failure", [Conflict("exists"), Refused("ApiServerRefused", "invalid")])
    def test_all_or_nothing(self, world: World, failure: Exception) -> None:
        """A ConfigMap without its KafkaRebalance would stay for ever."""
        world.kube.failing["KafkaRebalance"] = failure
        assert world.run(*FROM_FILE, "--apply")[0] in {1, 3}
        assert world.kube.created == {}

    def test_the_answer_is_lost(self, world: World) -> None:
        """The KafkaRebalance may be there, and needs its lists."""
        world.kube.failing["KafkaRebalance"] = Transient("ApiServerUnreachable", "no answer")
        assert world.run(*FROM_FILE, "--apply")[0] == 1
        assert len(world.kube.created) == 1


class TestUsage:
    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            [*FROM_FILE, "--decommission-broker", "1"],
            [*FROM_FILE, "--throttle", "fast"],
        ],
    )
    def test_wrong(self, world: World, arguments: list[str]) -> None:
        code, out, _ = world.run(*arguments)
        assert (code, out) == (2, "")

    def test_credentials_are_not_copied_into_a_resource(self, world: World, tmp_path: Path) -> None:
        """They are named in the resource's Secrets, or nowhere."""
        login = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=secret\n"
        config = tmp_path / "client.properties"
        config.write_text(login)
        code, out, err = world.run("--decommission-broker", "1", "--command-config", str(config))
        assert (code, out) == (2, "")
        assert "name these in the spec.kafka" in err
