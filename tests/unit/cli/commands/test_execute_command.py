"""kafka-rebalance execute: the resources that it prints, what it refuses, and the rollback that it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.cli.commands.execute_runs import FILE, FROM_FILE, ROLLBACK, World
from tests.unit.cli.commands.test_verify_command import state

from kafka_rebalance.api.topic_patterns import TopicFilter
from kafka_rebalance.api.v1alpha1 import API_VERSION, parse_rebalance


@pytest.fixture
def world() -> World:
    return World()


class TestAssignment:
    def test_what_is_printed(self, world: World) -> None:
        """Lists in a ConfigMap, with the present replicas as KIP-236's original_replicas."""
        lists, rebalance = world.printed(*FROM_FILE, "--throttle", "50Mi", "-n", "kafka", "--name", "move")
        assert rebalance["metadata"] == {"name": "move", "namespace": "kafka"}
        name = lists["metadata"].pop("name")
        assert name.startswith("move-")
        assert lists["metadata"] == {"namespace": "kafka", "labels": {"kafkarebalance.dev/written-by": "execute"}}
        assert lists["immutable"]
        assert json.loads(lists["data"]["assignment.json"])["partitions"] == [
            {"topic": "t", "partition": 0, "replicas": [2, 3], "original_replicas": [1, 2]},
            {"topic": "t", "partition": 1, "replicas": [1, 2], "original_replicas": [3, 2]},
        ]
        assert rebalance["spec"] == {
            "kafka": {"bootstrapServers": "kafka:9092"},
            "strategy": "Assignment",
            "assignment": {"configMapRef": {"name": name, "key": "assignment.json"}},
            "throttle": {"leaderRate": "50Mi", "followerRate": "50Mi"},
        }
        assert world.cluster.closed
        assert world.kube.created == {}

    def test_lists_of_another_length_ask_for_that_replication_factor(self, world: World) -> None:
        """It changes only on request, and two different factors cannot be requested."""
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

    def test_log_dirs_are_ignored_and_that_is_said(self, world: World) -> None:
        """Once for the file; what only says "any" names none."""
        named, other = FILE["partitions"]
        rows = [named | {"log_dirs": ["any", "/d"]}, other | {"log_dirs": ["any", "any"]}]
        code, _, err = world.run(*FROM_FILE, file={**FILE, "partitions": rows})
        assert code == 0
        assert "warning: the log_dirs of 1 partitions are ignored, for example of t-1" in err

    def test_rollback_is_printed_as_kafka_prints_it(self, world: World) -> None:
        """On stderr, because stdout is for kubectl."""
        code, out, err = world.run(*FROM_FILE)
        assert (code, err) == (0, ROLLBACK)
        assert "Current partition" not in out

    def test_json(self, world: World) -> None:
        """A List, which kubectl accepts."""
        document = json.loads(world.run(*FROM_FILE, "-o", "json")[1])
        assert [item["kind"] for item in document["items"]] == ["ConfigMap", "KafkaRebalance"]

    def test_the_name_follows_from_the_order(self, world: World) -> None:
        """The same request gives the same name; a different state gives a different one."""
        names = {world.printed(*FROM_FILE)[0]["metadata"]["name"] for _ in range(2)}
        world.cluster.states[state(0, 1).tp] = state(0, 3, 1)
        names.add(world.printed(*FROM_FILE)[0]["metadata"]["name"])
        assert len(names) == 2

    def test_other_lists_are_another_config_map(self, world: World) -> None:
        """With any name of the KafkaRebalance: a ConfigMap that changes in place would not trigger a new plan."""
        found = [world.printed(*FROM_FILE, "--name", "move") for _ in range(2)]
        world.cluster.states[state(0, 1).tp] = state(0, 3, 1)
        found.append(world.printed(*FROM_FILE, "--name", "move"))
        assert {rebalance["metadata"]["name"] for _, rebalance in found} == {"move"}
        assert len({lists["metadata"]["name"] for lists, _ in found}) == 2
        assert all(
            rebalance["spec"]["assignment"]["configMapRef"]["name"] == lists["metadata"]["name"]
            for lists, rebalance in found
        )

    def test_a_resource_to_begin_with(self, world: World, tmp_path: Path) -> None:
        """Its connection and execution are used; the options take precedence."""
        inside = {"bootstrapServers": "inside:9092"}
        spec = {"kafka": inside, "execution": {"parallelReplicaCount": 2}, "strategy": "ForcedMovesOnly"}
        base = tmp_path / "krb.yaml"
        base.write_text(
            yaml.safe_dump_all(
                [{"kind": "Secret"}, {"apiVersion": API_VERSION, "kind": "KafkaRebalance", "spec": spec}]
            )
        )
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
        """KIP-236's file is accepted while the state is unchanged."""
        row = {"topic": "t", "partition": 0, "replicas": [3, 1], "original_replicas": [1, 2]}
        assert world.run(*FROM_FILE, file={"version": 1, "partitions": [row]})[0] == 0

    def test_too_large_for_a_config_map(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kafka_rebalance.cli.files.manifests.MAX_BYTES", 100)
        assert world.run(*FROM_FILE)[2].startswith("refused (AssignmentTooLarge)")


class TestPlanning:
    def test_decommission(self, world: World) -> None:
        """As in KIP-6: a plan with the fewest moves, which then runs."""
        (made,) = world.printed("--decommission-broker", "4,2", "--throttle", "50000000")
        assert made["spec"] == {
            "kafka": {"bootstrapServers": "kafka:9092"},
            "brokers": {"decommission": [2, 4]},
            "throttle": {"leaderRate": "50000000", "followerRate": "50000000"},
        }
        assert made["metadata"]["name"].startswith("decommission-2-4-")
        parse_rebalance({**made, "metadata": {**made["metadata"], "uid": "1"}})

    def test_topics_and_brokers(self, world: World, tmp_path: Path) -> None:
        """Names are literal, also in a file that somebody else has made: none is a pattern."""
        topics = tmp_path / "topics.json"
        names = ("a.b", "a-b_c", "a|[^x]+")
        topics.write_text(json.dumps({"version": 1, "topics": [{"topic": name} for name in names]}))
        (made,) = world.printed("--topics-to-move-json-file", str(topics), "--broker-list", "3,1")
        assert made["spec"]["topics"] == {"include": ["a-b_c", "a\\.b", "a\\|\\[\\^x\\]\\+"]}
        assert made["spec"]["brokers"] == {"include": [1, 3]}
        parse_rebalance({**made, "metadata": {**made["metadata"], "uid": "1"}})

    def test_more_topics_than_a_resource_has_expressions(self, world: World, tmp_path: Path) -> None:
        """Names share patterns, which still match exactly these topics."""
        names = [f"payments.{number:03}" for number in range(500)]
        topics = tmp_path / "topics.json"
        topics.write_text(json.dumps({"version": 1, "topics": [{"topic": name} for name in names]}))
        (made,) = world.printed("--topics-to-move-json-file", str(topics))
        asked = TopicFilter(made["spec"]["topics"]["include"])
        assert asked.select([*names, "payments", "payments.5000", "payments-001", "xpayments.001"]) == names

    def test_no_topic_is_not_every_topic(self, world: World, tmp_path: Path) -> None:
        """An empty include would mean every topic."""
        topics = tmp_path / "topics.json"
        topics.write_text(json.dumps({"version": 1, "topics": []}))
        code, out, err = world.run("--topics-to-move-json-file", str(topics), "--apply")
        assert (code, out) == (3, "")
        assert err.startswith("refused (NothingToDo): ")
        assert world.kube.created == {}


class TestUsage:
    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            [*FROM_FILE, "--decommission-broker", "1"],
        ],
    )
    def test_wrong(self, world: World, arguments: list[str]) -> None:
        code, out, _ = world.run(*arguments)
        assert (code, out) == (2, "")

    @pytest.mark.parametrize("way", [FROM_FILE, ("--decommission-broker", "4")])
    @pytest.mark.parametrize("apply", [(), ("--apply",)])
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--throttle", "fast"), "'--throttle': 'fast' is not a quantity"),
            (("--throttle", "2Pi"), "'--throttle': '2Pi' is not a quantity"),
            (("--throttle", "050Mi"), "'--throttle': '050Mi' is not a quantity"),
            (("--throttle", "2000Ti"), "'--throttle': must be a quantity of 1 to 1Pi"),
            (
                ("--throttle", "50MB"),
                "'--throttle': '50MB' is not a quantity like 50Mi or 1048576: write 50M",
            ),
            (("--name", "Move_It"), "'--name': must be the name of an object: "),
            (("--name", "a" * 254), "'--name': must have at most 253 characters"),
            (("-n", "kafka.eu"), "'-n' / '--namespace': must be the name of a namespace: "),
            (("--bootstrap-servers", "kafka"), "--bootstrap-servers: must be host:port, or up to 20 separated by "),
            (("--bootstrap-servers", "SSL://kafka:9092"), "--bootstrap-servers: must be host:port, or up to 20 "),
        ],
    )
    def test_what_the_api_server_would_refuse(
        self, world: World, way: tuple[str, ...], apply: tuple[str, ...], arguments: tuple[str, ...], says: str
    ) -> None:
        """The message names the option, before any request: nothing is printed, nothing is created."""
        code, out, err = world.run(*way, *arguments, *apply)
        assert (code, out) == (2, "")
        assert f"Invalid value for {says}" in err
        assert "Current partition" not in err
        assert world.kube.created == {}

    def test_what_options_make_together(self, world: World) -> None:
        """Rules that cover several fields apply, too."""
        code, out, err = world.run("--decommission-broker", "4", "--broker-list", "3,4")
        assert (code, out) == (2, "")
        assert "spec.brokers: a broker cannot be in both include and decommission" in err

    def test_a_long_name(self, world: World) -> None:
        """The name of the ConfigMap ends in a digest and stays within the limit of Kubernetes."""
        lists, rebalance = world.printed(*FROM_FILE, "--name", "a" * 239 + "." + "b" * 13)
        assert rebalance["metadata"]["name"] == "a" * 239 + "." + "b" * 13
        assert lists["metadata"]["name"].startswith("a" * 239 + "-")
        assert len(lists["metadata"]["name"]) <= 253

    def test_blanks_beside_the_commas_of_servers(self, world: World) -> None:
        """Kafka allows them, the resource does not."""
        (made,) = world.printed("--decommission-broker", "4", "--bootstrap-servers", "a:9092, b:9092")
        assert made["spec"]["kafka"] == {"bootstrapServers": "a:9092,b:9092"}

    def test_credentials_are_not_copied_into_a_resource(self, world: World, tmp_path: Path) -> None:
        """They belong in Secrets that the resource refers to."""
        login = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=secret\n"
        config = tmp_path / "client.properties"
        config.write_text(login)
        code, out, err = world.run("--decommission-broker", "1", "--command-config", str(config))
        assert (code, out) == (2, "")
        assert "refer to them in spec.kafka" in err
