"""kafka-rebalance plan: the offline contract of design section 10."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fakes.load_models import render_parquet, render_version_1
from tests.unit.cli.commands.plan_runs import (
    CLUSTER,
    RESOURCE,
    SETTLED,
    lists,
    planned,
    run,
    table,
    with_partition,
    without_sizes,
)

from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import TopicPartition


class TestOutput:
    def test_json_is_kafkas_file_with_a_summary(self) -> None:
        """Only changed partitions, in Kafka's format, with every figure of the contract."""
        document = planned()
        assert document["version"] == 1
        assert all(set(p) == {"topic", "partition", "replicas"} for p in document["partitions"])
        summary = document["summary"]
        assert (summary["replicaMoves"], summary["lowerBound"], summary["optimal"]) == (4, 4, True)
        assert summary["partitionsChanged"] == len(document["partitions"])
        assert summary["rackViolations"] == 0
        assert summary["planningSeconds"] > 0
        assert summary["hash"].startswith("sha256:")
        assert isinstance(summary["leaderMoves"], int)

    def test_all_prints_unchanged_partitions_too(self) -> None:
        """--all lists every selected partition."""
        assert set(lists(planned("--all"))) == {"t-0", "t-1", "u-5", "u-7"}

    def test_yaml_says_the_same(self) -> None:
        """-o yaml is the JSON document as YAML, except for the planning time."""
        done = run("--cluster", "-", "-o", "yaml", stdin=json.dumps(CLUSTER).encode())
        said, expected = yaml.safe_load(done.stdout), planned()
        said["summary"].pop("planningSeconds")
        expected["summary"].pop("planningSeconds")
        assert said == expected

    def test_the_table_is_for_people(self) -> None:
        """The default output shows partitions, brokers and the certificate."""
        text = run("--cluster", "-", stdin=json.dumps(CLUSTER).encode()).stdout.decode()
        assert "t-1" in text
        assert "4 replica moves (proved minimal)" in text

    def test_a_budget_that_is_used_up_is_said(self) -> None:
        """Otherwise the plan looks as if it reached full balance."""
        cluster = json.dumps(CLUSTER).encode()
        said = "goals.maxReplicaMoves (1) is used up: `explain` says how many moves full balance takes\n"
        assert "is used up" not in run("--cluster", "-", stdin=cluster).stdout.decode()
        assert said in run("--cluster", "-", "--max-replica-moves", "1", stdin=cluster).stdout.decode()

    def test_the_proof_of_a_plan_within_a_budget(self) -> None:
        """The plan without the budget takes more moves, so "minimal" would say nothing of this one."""
        text = run("--cluster", "-", "--max-replica-moves", "1", stdin=json.dumps(CLUSTER).encode()).stdout.decode()
        assert "1 replica move (proved to be the best within the movement budget)" in text
        assert "minimal" not in text

    def test_the_table_lists_unchanged_partitions_on_demand(self) -> None:
        """--all applies to the table as well; an unchanged partition gets no copies."""
        assert "u-9" not in table(cluster=SETTLED)
        row = next(line.split() for line in table("--all", cluster=SETTLED).splitlines() if "u-9" in line)
        assert row == ["u-9", "0,1", "0,1", "-"]

    def test_a_piped_table_keeps_long_names_whole(self) -> None:
        """Without a known width lines are not truncated; racks and topics are not interpreted as markup."""
        name = "x" * 249
        cluster = {**CLUSTER, "brokers": [{"id": 0, "rack": ":x:[b]"}, {"id": 1}, {"id": 2}]}
        cluster["partitions"] = [{"topic": name, "partition": 12345, "replicas": [0, 1]}]
        text = table("--decommission", "1", cluster=cluster)
        assert f"{name}-12345  0,1" in text
        assert ":x:[b]" in text

    def test_nothing_to_move_is_said(self) -> None:
        """A table without changes says why."""
        assert "balanced already: nothing to move" in table(cluster=SETTLED)
        assert "nothing to move" not in table()

    def test_gzip_and_files_are_read(self, tmp_path: Path) -> None:
        """gzip is detected by its first bytes, with any file name."""
        file = tmp_path / "cluster.json"
        file.write_bytes(gzip.compress(json.dumps(CLUSTER).encode()))
        done = run("--cluster", str(file), "-o", "json")
        assert json.loads(done.stdout)["summary"]["hash"] == planned()["summary"]["hash"]


class TestBrokers:
    @pytest.mark.parametrize("option", ["--brokers", "--broker-list"])
    def test_brokers_not_named_keep_nothing(self, option: str) -> None:
        """--brokers lists the brokers that may hold replicas; KIP-6's --broker-list is an alias."""
        after = lists(planned(option, "2,3", "--all"))
        assert {b for replicas in after.values() for b in replicas} == {2, 3}

    def test_the_hash_covers_decommissioned_brokers(self) -> None:
        """As in the operator, since these are cordoned; brokers that are only not listed are not."""
        by_name, by_list = (planned(*given)["summary"] for given in (["--decommission", "3"], ["--brokers", "0,1,2"]))
        assert by_name["decommission"] == [3]
        assert "decommission" not in by_list
        assert by_name["hash"] != by_list["hash"]

    def test_decommissioned_brokers_keep_nothing(self) -> None:
        """Several brokers can be drained at once."""
        after = lists(planned("--decommission", "0,3", "--all"))
        assert {b for replicas in after.values() for b in replicas} == {1, 2}

    def test_replicas_on_brokers_that_are_gone_move(self) -> None:
        """A broker that the file does not list is dead; it may also be decommissioned by name."""
        dead = {**CLUSTER, "partitions": [{"topic": "t", "partition": 0, "replicas": [9, 0]}]}
        for arguments in ([], ["--decommission", "9"]):
            assert 9 not in lists(planned(*arguments, cluster=dead))["t-0"]


class TestResource:
    @pytest.fixture
    def resource(self, tmp_path: Path) -> str:
        file = tmp_path / "krb.yaml"
        file.write_text(yaml.safe_dump(RESOURCE))
        return str(file)

    def test_topics_and_brokers_come_from_the_file(self, resource: str) -> None:
        """The topic filter selects; the decommissioned broker is drained of the selected topics."""
        after = lists(planned("--rebalance", resource, "--all"))
        assert set(after) == {"t-0", "t-1"}
        assert all(1 not in replicas for replicas in after.values())

    def test_options_win_over_the_file(self, resource: str, tmp_path: Path) -> None:
        """Brokers and topics on the command line override those of the file."""
        topics = tmp_path / "topics.json"
        topics.write_text(json.dumps({"topics": [{"topic": "u"}], "version": 1}))
        arguments = ["--rebalance", resource, "--brokers", "0,1", "--topics-to-move-json-file", str(topics), "--all"]
        after = lists(planned(*arguments))
        assert set(after) == {"u-5", "u-7"}
        assert all(set(replicas) == {0, 1} for replicas in after.values())

    def test_a_bad_field_is_named(self, tmp_path: Path) -> None:
        """The path is the one in the YAML."""
        file = tmp_path / "bad.yaml"
        file.write_text(yaml.safe_dump({**RESOURCE, "spec": {**RESOURCE["spec"], "goals": {"balance": "Odd"}}}))
        done = run("--cluster", "-", "--rebalance", str(file), stdin=json.dumps(CLUSTER).encode())
        assert done.returncode == 2
        assert b"spec.goals.balance" in done.stderr

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("kind: Deployment", "expected one KafkaRebalance, found Deployment"),
            ("kind: KafkaRebalance\n---\nhello", "found KafkaRebalance of no apiVersion, text"),
            ("a: 1", "found an object without a kind"),
            ("# nothing", "expected one KafkaRebalance, found nothing"),
            ("", "the file is empty"),
        ],
    )
    def test_what_else_is_in_the_file_is_said(self, text: str, says: str, tmp_path: Path) -> None:
        """A user who passed the wrong file can see what it contains."""
        file = tmp_path / "other.yaml"
        file.write_text(text)
        done = run("--cluster", "-", "--rebalance", str(file), stdin=json.dumps(CLUSTER).encode())
        assert (done.returncode, done.stdout) == (2, b"")
        assert says in done.stderr.decode()


class TestWarnings:
    """Allowed, but probably a mistake: a warning on stderr, and only the plan on stdout."""

    def test_selecting_nothing(self, tmp_path: Path) -> None:
        """An empty plan without any selected partition is not a success."""
        topics = tmp_path / "topics.json"
        topics.write_text(json.dumps({"topics": [], "version": 1}))
        stdin = json.dumps(CLUSTER).encode()
        done = run("--cluster", "-", "-o", "json", "--topics-to-move-json-file", str(topics), stdin=stdin)
        assert (done.returncode, json.loads(done.stdout)["partitions"]) == (0, [])
        assert b"no partition is selected: the cluster file has 2 topics, and none of them" in done.stderr
        assert run("--cluster", "-", stdin=stdin).stderr == b""

    def test_a_cluster_without_partitions(self) -> None:
        """The file is the reason, not the selection."""
        done = run("--cluster", "-", stdin=json.dumps({**CLUSTER, "partitions": []}).encode())
        assert b"no partition is selected: the cluster file holds none" in done.stderr

    def test_replicas_on_a_broker_that_is_not_listed(self) -> None:
        """A forgotten broker would be drained."""
        done = run("--cluster", "-", stdin=json.dumps(with_partition(replicas=[0, 9])).encode())
        assert done.returncode == 0
        assert b"broker 9 holds replicas but is not in brokers[]: treated as removed" in done.stderr


class TestSizes:
    @pytest.mark.parametrize("render", [render_parquet, render_version_1])
    def test_the_load_model_fills_in_what_the_file_lacks(
        self, tmp_path: Path, render: Callable[[LoadModel], bytes]
    ) -> None:
        """A size in the cluster file takes precedence; otherwise the model's size is used."""
        one = {**CLUSTER, "partitions": CLUSTER["partitions"][:2]}
        loads = {TopicPartition("t", p): PartitionLoad(size_bytes=5_000_000) for p in (0, 1)}
        model = LoadModel("LoadModel", datetime(2026, 1, 1, tzinfo=UTC), loads, "c")
        file = tmp_path / "model"
        file.write_bytes(render(model))
        summary = planned("--decommission", "0,1", "--load-model", str(file), cluster=one)["summary"]
        assert summary["replicaMoves"] == 4
        assert summary["dataToMove"] == 2 * (1000 + 5_000_000)

    def test_a_size_that_nobody_knows_is_not_nothing(self) -> None:
        """The summary counts changed partitions of unknown size; the table says that sizes are unknown."""
        moved = planned("--brokers", "2,3")
        assert moved["summary"]["sizesUnknown"] == 1
        assert planned("--brokers", "2,3", cluster=without_sizes())["summary"]["sizesUnknown"] == 4
        assert "at least 2.0 KiB to copy (sizes of 1 partitions unknown)" in table("--brokers", "2,3")
        assert "size unknown" in table("--brokers", "2,3", cluster=without_sizes())

    def test_an_empty_partition_is_known_to_be_empty(self) -> None:
        """Size 0 is a known size."""
        text = table("--brokers", "2,3", cluster=with_partition(size=0))
        assert "0 B to copy" in text
        assert "unknown" not in text


class TestStrategies:
    """The options correspond to the fields of the resource."""

    def test_given_lists(self, tmp_path: Path) -> None:
        """Kafka's own file is followed exactly; partitions that it does not list stay."""
        file = tmp_path / "lists.json"
        rows = [{"topic": "t", "partition": 0, "replicas": [2, 3], "log_dirs": ["any", "any"]}]
        file.write_text(json.dumps({"version": 1, "partitions": rows}))
        document = planned("--strategy", "Assignment", "--assignment-json-file", str(file))
        assert document["partitions"] == [{"topic": "t", "partition": 0, "replicas": [2, 3]}]
        assert (document["summary"]["replicaMoves"], document["summary"]["optimal"]) == (2, False)

    @pytest.mark.parametrize(
        ("row", "says"),
        [
            ({"topic": "x", "partition": 0, "replicas": [0]}, "x-0, which is not selected"),
            ({"topic": "t", "partition": 9, "replicas": [0, 1]}, "t-9, which is not selected"),
            ({"topic": "t", "partition": 0, "replicas": [0, 9]}, "t-0 names broker 9; known"),
            ({"topic": "t", "partition": 0, "replicas": [2, 3]}, "t-0 names broker 3, which is not eligible"),
            ({"topic": "t", "partition": 0, "replicas": [0]}, "t-0 has 1 replicas instead of 2"),
            ({"topic": "t", "partition": 0, "replicas": [0, 0]}, "names a broker twice"),
            ({"topic": "u", "partition": 5, "replicas": [2, 0]}, "u-5 would change it, and its topic is pinned"),
        ],
    )
    def test_lists_that_cannot_be_given(self, tmp_path: Path, row: dict[str, Any], says: str) -> None:
        """The message names the partition."""
        file = tmp_path / "lists.json"
        file.write_text(json.dumps({"version": 1, "partitions": [row]}))
        options = ("--strategy", "Assignment", "--decommission", "3", "--pin-topics", "u")
        done = run("--cluster", "-", *options, "--assignment-json-file", str(file), stdin=json.dumps(CLUSTER).encode())
        assert done.returncode == 3
        assert says in done.stderr.decode()
        assert done.stdout == b""

    def test_replication_factor(self) -> None:
        """Three replicas each: one new copy each, and one off each full broker; one replica each: half of them move."""
        assert planned("--replication-factor", "3")["summary"]["replicaMoves"] == 6
        summary = planned("--replication-factor", "1")["summary"]
        assert (summary["partitionsChanged"], summary["replicaMoves"], summary["optimal"]) == (4, 2, True)

    def test_forced_moves_only(self) -> None:
        """Only replicas on the drained broker move."""
        summary = planned("--strategy", "ForcedMovesOnly", "--decommission", "1")["summary"]
        assert (summary["replicaMoves"], summary["lowerBound"], summary["optimal"]) == (4, 4, True)
        assert planned("--strategy", "ForcedMovesOnly")["partitions"] == []

    def test_leaders_only(self) -> None:
        """No copies; two leaders each, as before."""
        assert planned("--strategy", "PreferredLeaders")["summary"]["replicaMoves"] == 0

    def test_pins_and_gain(self) -> None:
        """Pinned topics stay; a plan below the minimum gain is empty and says why."""
        rows = planned("--pin-topics", "u")["partitions"]
        assert {row["topic"] for row in rows} == {"t"}
        summary = planned("--minimum-gain", "60")["summary"]
        assert (summary["replicaMoves"], summary["reason"]) == (0, "GainTooSmall")
        assert "reason" not in planned("--minimum-gain", "50")["summary"]

    def test_the_reason_is_text_in_yaml_too(self) -> None:
        """A reason is a constant of ours, which YAML knows nothing of."""
        done = run("--cluster", "-", "--minimum-gain", "60", "-o", "yaml", stdin=json.dumps(CLUSTER).encode())
        assert (done.returncode, yaml.safe_load(done.stdout)["summary"]["reason"]) == (0, "GainTooSmall")

    def test_the_resource_says_the_same(self, tmp_path: Path) -> None:
        """Strategy, replication factor, pinned topics and minimum gain are read from it."""
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "replicationFactor": 3, "topics": {"pinned": ["u"]}}
        file = tmp_path / "krb.yaml"
        file.write_text(yaml.safe_dump({**RESOURCE, "spec": spec}))
        assert planned("--rebalance", str(file)) | {"summary": 0} == planned(
            "--replication-factor", "3", "--pin-topics", "u"
        ) | {"summary": 0}


class TestStart:
    def test_no_client_is_imported(self) -> None:
        """It reads files: importing the clients would take longer than a small plan."""
        clients = "{'kubernetes', 'kopf', 'kafka', 'confluent_kafka', 'aiohttp'}"
        code = f"import sys, kafka_rebalance.cli.commands.plan_command; print(*{clients} & sys.modules.keys())"
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert done.stdout.split() == []


def test_racks_control_no_terminal_in_a_warning() -> None:
    """Brokers name their racks, and a snapshot has these names."""
    racks = {1: "\x1b]0;x\x07", 2: "\x1b]0;x\x07", 3: "b", 4: "b"}
    partitions = [{"topic": "t", "partition": p, "replicas": [1 + p % 4, 1 + (p + 2) % 4]} for p in range(24)]
    cluster = {"brokers": [{"id": broker, "rack": rack} for broker, rack in racks.items()], "partitions": partitions}
    done = run("--cluster", "-", "--brokers", "1,3,4", stdin=json.dumps(cluster).encode())
    assert b"the last broker of rack \\x1b]0;x\\x07" in done.stderr
