"""KIP-6's files, exchanged between our commands and Kafka's own tool: each reads the other's, with equal results."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from e2e.bench.judge import Judge
from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics, fill
from e2e.bench.waiting import wait_until

pytestmark = pytest.mark.brokers

COMMAND = str(Path(sys.executable).with_name("kafka-rebalance"))
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
MEGABYTES = 2_000_000
STANDSTILL = "16384"
"""Bytes per second: two megabytes take two minutes."""
FAST = "500000000"

Lines = list[str]


class Both:
    """Our command and Kafka's tool on one cluster, with a topic of three partitions on brokers 1, 2 and 3."""

    def __init__(self, kafka: KafkaCluster, topic: str, directory: Path) -> None:
        self.kafka = kafka
        self.topic = topic
        self._directory = directory

    def file(self, name: str, text: str) -> str:
        path = self._directory / name
        path.write_text(text)
        return str(path)

    def target(self, *lists: list[int]) -> str:
        rows = [{"topic": self.topic, "partition": n, "replicas": row} for n, row in enumerate(lists)]
        return json.dumps({"version": 1, "partitions": rows})

    def tool(self, *arguments: str) -> str:
        return self.kafka.run_tool(REASSIGN, "--bootstrap-server", self.kafka.bootstrap_servers, *arguments)

    def ours(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command, *rest = arguments
        where = ("--bootstrap-servers", self.kafka.bootstrap_servers)
        return subprocess.run([COMMAND, command, *where, *rest], check=False, capture_output=True, text=True)

    def verified(self, file: str) -> tuple[int, Lines]:
        """Our exit code, and the lines about partitions, which must be the same from us and from Kafka's tool."""
        done = self.ours("verify", "--reassignment-json-file", file)
        theirs = self.tool("--verify", "--preserve-throttles", "--reassignment-json-file", file)
        assert done.stderr == ""
        assert about(done.stdout) == about(theirs)
        return done.returncode, about(done.stdout)


def about(text: str) -> Lines:
    """The lines about single partitions."""
    found = [line for line in text.splitlines() if line.startswith(("Reassignment of partition", "There is no active"))]
    assert found, text
    return sorted(found)


@pytest.fixture
def both(kafka: KafkaCluster, unique: Callable[[str], str], tmp_path: Path) -> Iterator[Both]:
    topic = unique("files")
    create_topics(kafka, {topic: [[1, 2, 3]] * 3})
    fill(kafka, {(topic, partition): MEGABYTES for partition in range(3)})
    yield Both(kafka, topic, tmp_path)
    admin = kafka.admin()  # keep a reference: the futures of a collected client fail
    for deleted in admin.delete_topics([topic]).values():
        deleted.result(timeout=60)


class TestVerify:
    """Before, during and after: the same output as Kafka's tool, and its throttles stay."""

    def test_agrees_at_every_stage(self, both: Both, judge: Judge) -> None:
        name = both.topic
        target = both.file("target.json", both.target([4, 2, 3], [2, 1, 3], [1, 2, 3]))
        assert both.verified(target) == (
            4,
            [
                f"Reassignment of partition {name}-2 is completed.",
                f"There is no active reassignment of partition {name}-0, but replica set is 1,2,3 rather than 4,2,3.",
                f"There is no active reassignment of partition {name}-1, but replica set is 1,2,3 rather than 2,1,3.",
            ],
        )
        execution = ("--execute", "--reassignment-json-file", target, "--throttle")
        both.tool(*execution, STANDSTILL)
        code, said = both.verified(target)
        assert code == 4
        assert f"Reassignment of partition {name}-0 is still in progress." in said

        both.tool(*execution, FAST, "--additional")
        wait_until("ours says that all is done", lambda: not both.ours("verify", *execution[1:3]).returncode, every=0.5)
        assert both.verified(target) == (0, [f"Reassignment of partition {name}-{n} is completed." for n in range(3)])

        told = json.loads(both.ours("verify", *execution[1:3], "-o", "json").stdout)
        assert set(told["throttles"]["brokers"][0]["configs"].values()) == {FAST}
        assert [row["topic"] for row in told["throttles"]["topics"]] == [name]
        leaders = {n: state.leader for (_, n), state in judge.describe_topics(name).items()}
        assert {row["partition"]: row["leader"] for row in told["partitions"]} == leaders
        assert judge.throttles() != {}, "we took them away"
        both.tool("--verify", *execution[1:3])
        assert "Throttle" not in both.ours("verify", *execution[1:3]).stdout


class TestFiles:
    """We read Kafka's files, and Kafka's tool reads ours."""

    def test_generated_rolled_back_and_returned(self, both: Both) -> None:
        """KIP-6's files with KIP-236's original_replicas, in both directions.

        --generate -> our verify and execute -> --execute -> the rollback JSON that both print -> --execute of that.
        """
        chosen = both.file("topics.json", json.dumps({"version": 1, "topics": [{"topic": both.topic}]}))
        generated = both.tool("--generate", "--topics-to-move-json-file", chosen, "--broker-list", "1,2,3,4,5")
        proposed = both.file("proposed.json", generated.split("Proposed partition reassignment configuration\n")[1])
        assert both.ours("verify", "--reassignment-json-file", proposed).returncode == 4

        asked = both.ours("execute", "--reassignment-json-file", proposed)
        assert asked.returncode == 0, asked.stderr
        lists, rebalance = yaml.safe_load_all(asked.stdout)
        assert rebalance["spec"]["assignment"]["configMapRef"]["name"] == lists["metadata"]["name"]
        rows = json.loads(lists["data"]["assignment.json"])["partitions"]
        assert [row["original_replicas"] for row in rows] == [[1, 2, 3]] * 3

        ours = both.file("ours.json", lists["data"]["assignment.json"])
        begun = both.tool("--execute", "--reassignment-json-file", ours)
        said, theirs = asked.stderr.splitlines()[:5], begun.splitlines()[:5]
        if both.kafka.jars.version.startswith("3."):  # 3.9 does not return the log directories
            said[2] = re.sub(r'"/[^"]*"', '"any"', said[2])
        assert said == theirs
        wait_until(
            "it is there", lambda: not both.ours("verify", "--reassignment-json-file", ours).returncode, every=0.5
        )
        again = both.ours("execute", "--reassignment-json-file", ours)
        assert again.stderr.startswith("refused (OriginalReplicasDiffer)")

        # Kafka's tool sends the log directories right after the reassignment, and sometimes a broker that has only just
        # received the replica refuses them (4.3.1: InvalidReplicaAssignment, with the reassignment in flight).
        back = both.file("back.json", re.sub(r'"/[^"]*"', '"any"', asked.stderr.split("\n\n")[1]))
        both.tool("--execute", "--reassignment-json-file", back)
        wait_until(
            "all is back", lambda: not both.ours("verify", "--reassignment-json-file", back).returncode, every=0.5
        )
        assert both.verified(back)[0] == 0
