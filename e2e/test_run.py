"""`kafka-rebalance run` on real brokers, without Kubernetes: to the end, killed, stopped, and rolled back."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e.bench.judge import Judge, Key
from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics, fill
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until

pytestmark = pytest.mark.brokers

COMMAND = str(Path(sys.executable).with_name("kafka-rebalance"))
BIG = 2_000_000
CRAWL = {"leaderRate": "128Ki", "followerRate": "128Ki"}
"""A copy takes a quarter of a minute: much longer than the actions of the test."""
FAST = {"leaderRate": "500Mi", "followerRate": "500Mi"}
ON_THREE = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2


class Terminal:
    """A manifest of one topic, a directory for records, and the command."""

    def __init__(self, kafka: KafkaCluster, topic: str, directory: Path) -> None:
        self._kafka = kafka
        self._topic = topic
        self._manifest = directory / "rebalance.yaml"
        self._records = directory / "records"
        self._log = directory / "run.log"
        self._child: Child | None = None

    def start(self, *options: str, throttle: Mapping[str, str]) -> Child:
        """Write the manifest with this throttle, and start the command."""
        spec: dict[str, Any] = {
            "kafka": {"bootstrapServers": self._kafka.bootstrap_servers},
            "topics": {"include": [self._topic]},
            "throttle": dict(throttle),
            "execution": {"brokerSettleTime": "10s", "parallelPartitionCount": 1},
        }
        metadata = {"name": "spread"}
        kind = {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": "KafkaRebalance"}
        self._manifest.write_text(json.dumps({**kind, "metadata": metadata, "spec": spec}))
        self._log.unlink(missing_ok=True)
        command = [COMMAND, "run", str(self._manifest), "--records", str(self._records), *options]
        self._child = Child(command, log=self._log, env={**os.environ, "KUBECONFIG": os.devnull})
        return self._child

    def command(self, verb: str, *options: str) -> str:
        """What a command prints in a second terminal."""
        command = [COMMAND, verb, "spread", "--records", str(self._records), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
        return done.stdout.strip()

    def ended(self) -> tuple[int, str]:
        """Wait for the end; the exit code and the last line."""
        child = self._child
        assert child is not None
        wait_until("the run ends", lambda: not child.running, timeout=240)
        return child.stop(), child.tail(1)

    def close(self) -> None:
        if self._child is not None:
            self._child.kill9()


@pytest.fixture
def topic(kafka: KafkaCluster, unique: Callable[[str], str]) -> str:
    """Six partitions on brokers 1, 2 and 3 of five."""
    topic = unique("run")
    create_topics(kafka, {topic: ON_THREE})
    fill(kafka, dict.fromkeys([(topic, number) for number in range(len(ON_THREE))], BIG))
    return topic


@pytest.fixture
def terminal(kafka: KafkaCluster, topic: str, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(kafka, topic, tmp_path)
    yield terminal
    terminal.close()


@pytest.fixture
def port() -> Iterator[int]:
    number = reserve_port()
    yield number
    release_port(number)


class TestTheStory:
    """One topic, spread over two new brokers and back."""

    def test_killed_stopped_carried_out_and_rolled_back(
        self, judge: Judge, topic: str, terminal: Terminal, port: int, tmp_path: Path
    ) -> None:
        """By Kafka's tools: nothing is lost by kill -9, nothing is left by Ctrl-C, and the way back is exact."""
        before = judge.describe_topics(topic)

        child = terminal.start(throttle=CRAWL)
        wait_until("a copy is in flight", lambda: in_flight(judge, topic))
        child.kill9()
        assert in_flight(judge, topic)
        assert judge.throttles()

        child = terminal.start(throttle=CRAWL)
        wait_until("it goes on", lambda: "Rebalancing" in child.tail())

        assert (
            terminal.command("suspend")
            == "KafkaRebalance default/spread is suspended: no new step starts, steps in flight finish"
        )
        wait_until("it is suspended", lambda: "Suspended" in child.tail())
        child.kill9()
        assert terminal.command("throttle", "--rate", "300Ki").endswith(
            "followers fetch at most 300Ki bytes per second"
        )
        child = terminal.start("--serve", str(port), throttle=CRAWL)
        wait_until("it is still suspended", lambda: "Suspended" in child.tail())
        assert "is not suspended" in terminal.command("resume")
        wait_until("a copy is in flight", lambda: in_flight(judge, topic))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            page = answer.read().decode()
        assert '<span class="state">Rebalancing</span>' in page
        assert "4 of 4 partitions that change" in page
        wait_until("at the rate of the command", lambda: "307200" in str(judge.throttles()))
        os.kill(child.pid, signal.SIGINT)
        code, last = terminal.ended()
        assert (code, last) == (130, "stopped at a rest point: run it again to go on")
        assert judge.list_reassignments() == {}
        assert judge.throttles() == {}
        half_way = judge.describe_topics(topic)
        assert half_way != before
        assert 0 < replicas_on(half_way)[4] + replicas_on(half_way)[5] < 6

        terminal.start(throttle=FAST)
        code, last = terminal.ended()
        assert code == 0
        assert last.startswith("Succeeded     100%  partitions 4/4")
        assert replicas_on(judge.describe_topics(topic)) == {1: 3, 2: 3, 3: 6, 4: 3, 5: 3}  # 3 is alone in its rack
        assert judge.list_reassignments() == {}
        assert judge.throttles() == {}
        report = tmp_path / "report.md"
        terminal.command("report", "-o", str(report))
        assert report.read_text().startswith("# KafkaRebalance default/spread\n\n**Succeeded**")
        assert report.read_text().count(f"| {topic}-") == 4

        terminal.start("--rollback", throttle=FAST)
        code, last = terminal.ended()
        assert (code, last) == (0, "rolled back: replicas and throttles are as before the run")
        back = judge.describe_topics(topic)
        assert {key: state.replicas for key, state in back.items()} == {
            key: state.replicas for key, state in before.items()
        }
        assert {key: state.leader for key, state in back.items()} == {
            key: state.leader for key, state in before.items()
        }
        assert judge.list_reassignments() == {}
        assert judge.throttles() == {}


def in_flight(judge: Judge, topic: str) -> list[Key]:
    return [key for key in judge.list_reassignments() if key[0] == topic]


def replicas_on(states: Mapping[Key, Any]) -> Counter[int]:
    return Counter(broker for state in states.values() for broker in state.replicas)
