"""The command line on a live cluster: snapshots for Kafka's own tool, credentials, and the doctor."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.bench.judge import Judge, Reassignment
from e2e.bench.kafka import KafkaCluster
from e2e.bench.kafka_properties import SASL_USERS
from e2e.bench.load import create_topics
from e2e.bench.waiting import wait_until
from e2e.world import BIG, FINE, SMALL, World

pytestmark = pytest.mark.brokers

COMMAND = str(Path(sys.executable).with_name("kafka-rebalance"))
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
STANDSTILL = "4096"
"""A copy of a BIG partition takes eight minutes."""


def run(*arguments: str) -> str:
    done = tried(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tried(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def guarded() -> Iterator[KafkaCluster]:
    """One broker whose only listener requires authentication."""
    with KafkaCluster({1: "r1"}, sasl=True) as cluster:
        create_topics(cluster, {"guarded": [[1], [1]]})
        yield cluster


class TestSnapshot:
    """snapshot -> plan -> Kafka's tool: KIP-6's generate, execute and verify."""

    def test_kafkas_tool_carries_out_the_plan(self, world: World, judge: Judge, tmp_path: Path) -> None:
        """The snapshot matches the cluster, and Kafka's tool accepts the plan as a reassignment file."""
        topic = world.skewed("snapshot", *[SMALL] * 6)
        snapshot, chosen, planned = tmp_path / "cluster.json", tmp_path / "topics.json", tmp_path / "plan.json"
        run("snapshot", "--bootstrap-servers", world.kafka.bootstrap_servers, "-o", str(snapshot))
        seen = json.loads(snapshot.read_text())
        assert {broker["id"]: broker["rack"] for broker in seen["brokers"]} == world.kafka.racks
        assert all(broker["capacity"]["disk"] > 0 for broker in seen["brokers"])
        listed = {row["partition"]: row for row in seen["partitions"] if row["topic"] == topic}
        told = judge.describe_topics(topic)
        assert {(topic, number): tuple(row["replicas"]) for number, row in listed.items()} == {
            key: state.replicas for key, state in told.items()
        }
        assert all(row["size"] >= SMALL for row in listed.values())

        chosen.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
        files = ("--cluster", str(snapshot), "--topics-to-move-json-file", str(chosen))
        planned.write_text(run("plan", *files, "-o", "json"))
        targets = {
            (row["topic"], row["partition"]): row["replicas"] for row in json.loads(planned.read_text())["partitions"]
        }
        assert targets
        arguments = ("--bootstrap-server", world.kafka.bootstrap_servers, "--reassignment-json-file", str(planned))
        world.kafka.run_tool(REASSIGN, *arguments, "--execute")
        wait_until("Kafka's tool finds everything in place", lambda: not judge.verify(targets))
        after = {key: state.replicas for key, state in judge.describe_topics(topic).items()}
        assert {key: after[key] for key in targets} == {key: tuple(ids) for key, ids in targets.items()}


class TestCredentials:
    """--command-config for brokers that require authentication: the same file as for Kafka's own tools."""

    def scram(self, cluster: KafkaCluster, directory: Path, password: str) -> str:
        """A properties file with everything, including the bootstrap servers."""
        login = f'{SCRAM} required \\\n    username="operator" password="{password}";'
        path = directory / "client.properties"
        path.write_text(
            f"bootstrap.servers={cluster.bootstrap_servers}\nclient.id=somebody\n"
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={login}\n"
        )
        return str(path)

    def test_every_command_that_asks_kafka(self, guarded: KafkaCluster, tmp_path: Path) -> None:
        """With SCRAM from our own file, and with the file that the judge's tools use."""
        ours = ("--command-config", self.scram(guarded, tmp_path, SASL_USERS["operator"]))
        tools = ("--command-config", str(guarded.tool_config), "--bootstrap-servers", guarded.bootstrap_servers)
        for login in (ours, tools):
            seen = json.loads(run("snapshot", *login))
            assert [broker["id"] for broker in seen["brokers"]] == [1]
            assert {("guarded", 0), ("guarded", 1)} <= {(row["topic"], row["partition"]) for row in seen["partitions"]}
            assert run("doctor", *login).startswith("no problems found")
        run("pipeline", "sample", *ours, "--lake", str(tmp_path / "lake"))
        assert list(tmp_path.glob("lake/samples/**/*.parquet"))

    def test_a_wrong_password(self, guarded: KafkaCluster, tmp_path: Path) -> None:
        """Reported as an authentication failure, without showing the password."""
        done = tried("snapshot", "--command-config", self.scram(guarded, tmp_path, "hunter2-hunter2"))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("failed (KafkaAuthenticationFailed): ")
        assert "hunter2" not in done.stderr


class TestDoctor:
    """A user redirects a reassignment in flight with Kafka's own tool."""

    def test_ends_what_is_wedged_and_nothing_else(self, world: World, judge: Judge) -> None:
        """4.3 never completes it although all replicas are in sync; 3.9 completes it. Other reassignments continue."""
        topic = world.topic(
            "wedged", [[1, 2, 3]] * 2, BIG, batch_bytes=FINE, follower_replication_throttled_replicas="0:4,1:5"
        )
        wedged, moving = (topic, 0), (topic, 1)
        doctor = ("doctor", "--bootstrap-servers", world.kafka.bootstrap_servers)
        assert run(*doctor).startswith("no problems found")
        with world.broker_config("--entity-name", "5", follower_replication_throttled_rate=STANDSTILL):
            with world.broker_config("--entity-name", "4", follower_replication_throttled_rate=STANDSTILL):
                world.reassign({wedged: (4, 2, 3), moving: (5, 2, 3)})
                world.reassign({wedged: (1, 2, 3)})
            still = {moving: Reassignment((5, 2, 3, 1), (5,), (1,))}
            if not world.kafka.jars.version.startswith("3."):
                wait_until("the copy is in sync", lambda: world.partitions(topic)[0].isr == {1, 2, 3, 4})
                assert judge.list_reassignments() == {wedged: Reassignment((1, 2, 3, 4), (4,), (4,)), **still}
                done = tried(*doctor)
                assert (done.returncode, done.stderr) == (4, "")
                assert done.stdout.splitlines()[1].split() == [f"{topic}-0", "1,2,3,4", "4", "4", "1,2,3,4"]
                done = tried(*doctor, "-o", "json", "--cancel-wedged")
                assert (done.returncode, done.stderr) == (0, "")
                (found,) = json.loads(done.stdout)["findings"]
                assert (found["topic"], found["partition"], found["left"]) == (topic, 0, [1, 2, 3])
            assert judge.list_reassignments() == still
            after = judge.describe_topics(topic)[wedged]
            assert (after.replicas, after.leader, after.isr) == ((1, 2, 3), 1, {1, 2, 3})
            assert run(*doctor).startswith("no problems found")
        wait_until(
            "the other one arrives", lambda: judge.describe_topics(topic)[moving].replicas == (5, 2, 3), every=0.5
        )
