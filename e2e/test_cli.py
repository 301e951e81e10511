"""The command line on a live cluster: what plan makes of a snapshot, Kafka's own tool carries out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.bench.judge import Judge
from e2e.bench.waiting import wait_until
from e2e.world import SMALL, World

pytestmark = pytest.mark.brokers

COMMAND = str(Path(sys.executable).with_name("kafka-rebalance"))
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


def run(*arguments: str) -> str:
    return subprocess.run([COMMAND, *arguments], check=True, capture_output=True, text=True).stdout


class TestSnapshot:
    """snapshot -> plan -> Kafka's tool: KIP-6's generate, execute and verify."""

    def test_kafkas_tool_carries_out_the_plan(self, world: World, judge: Judge, tmp_path: Path) -> None:
        """The snapshot is the cluster, and the plan is a reassignment file as Kafka's tool takes it."""
        topic = world.skewed("snapshot", *[SMALL] * 6)
        snapshot, chosen, planned = tmp_path / "cluster.json", tmp_path / "topics.json", tmp_path / "plan.json"
        run("snapshot", "--bootstrap-servers", world.kafka.bootstrap_servers, "-o", str(snapshot))
        seen = json.loads(snapshot.read_text())
        assert {broker["id"]: broker["rack"] for broker in seen["brokers"]} == world.kafka.racks
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
