"""The environment of the demo: brokers with records, an API server, the operator, and traffic.

Every process is a `Child` of the bench, or started with the same parent-death signal: it cannot outlive the demo.
"""

import contextlib
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.kube import kube_cluster
from e2e.bench.load import Traffic, TrafficReport, create_topics, fill
from e2e.bench.operator import OperatorProcess

NAMESPACE = "kafka"
TOPICS = 60
PARTITIONS_PER_TOPIC = 10
BYTES_PER_PARTITION = 875_000
RECORDS_PER_SECOND = 100
_SECONDS_BETWEEN_LINES = 2
_EXAMPLES = Path(__file__).parents[2] / "examples"
_COMMANDS = Path(sys.executable).parent


class Stage:
    """Brokers 1 to 6 in racks r1, r2, r3, r1, r2, r3; the topics are on the first three."""

    def __init__(self) -> None:
        self.kafka = KafkaCluster(racks_of(range(1, 7)))
        self.kube = kube_cluster()
        self.directory = Path(tempfile.mkdtemp(prefix="demo-"))
        self.lake = self.directory / "lake"
        self.operator = OperatorProcess(self.kube, "--all-namespaces", "--load-models", str(self.lake / "models"))
        self._topics = [f"demo-{number:02d}" for number in range(TOPICS)]
        self._traffic: list[Traffic] = []

    def start(self, say: Callable[[str], None]) -> None:
        """Start everything, Kafka and Kubernetes in parallel, and write the records."""
        _together(lambda: self._start_kafka(say), lambda: self._start_kube(say))

    def start_traffic(self) -> None:
        """Two producers and two consumers, each pair for half of the topics."""
        self._traffic = [Traffic(self.kafka, self._topics[half::2], rate=RECORDS_PER_SECOND).start() for half in (0, 1)]

    def stop_traffic(self) -> list[TrafficReport]:
        """Stop writing, read the rest, and report the outcome of each pair."""
        traffic, self._traffic = self._traffic, []
        return [pair.stop() for pair in traffic]

    def fill_in(self, example: str) -> Path:
        """A copy of `examples/<example>` with the bootstrap servers of this cluster."""
        text = (_EXAMPLES / example).read_text()
        servers = ",".join(self.kafka.address(broker) for broker in self.kafka.brokers[:2])
        filled, replaced = re.subn(r"(bootstrapServers:) .*", rf"\1 {servers}", text)
        if replaced != 1:
            raise RuntimeError(f"{example} does not name its bootstrap servers exactly once")
        path = self.directory / example
        path.write_text(filled)
        return path

    def environment(self) -> dict[str, str]:
        """The environment variables that a shell needs to use this cluster as its administrator."""
        path = f"{self.commands}:{os.environ['PATH']}"
        return {**os.environ, "KUBECONFIG": str(self.kube.admin_kubeconfig), "PATH": path}

    @property
    def commands(self) -> str:
        """The directories of kafka-rebalance and kubectl, for PATH."""
        return f"{_COMMANDS}:{self.kube.kubectl_path.parent}"

    def run(self, *command: str) -> str:
        """Run a command of the product or kubectl; returns its output. The error contains its stderr."""
        done = subprocess.run(_mortal(command), env=self.environment(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def run_visibly(self, *command: str) -> None:
        """Run a command that draws on the terminal itself."""
        subprocess.run(_mortal(command), env=self.environment(), check=True)

    def run_tersely(self, *command: str) -> Iterator[str]:
        """Run a command and yield one of its output lines every other second, and the last one."""
        with subprocess.Popen(_mortal(command), env=self.environment(), stdout=subprocess.PIPE, text=True) as process:
            shown, line = float("-inf"), None
            for text in process.stdout or ():
                line = text
                if time.monotonic() - shown >= _SECONDS_BETWEEN_LINES:
                    yield line
                    shown, line = time.monotonic(), None
            if line is not None:
                yield line
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: exit code {process.returncode}")

    def close(self, *, keep_logs: bool) -> None:
        """Stop all processes and delete everything except the logs, if they are to be kept."""
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
            stack.callback(self.kafka.close, keep_logs=keep_logs)
            stack.callback(self.kube.close, keep_logs=keep_logs)
            stack.callback(self.operator.close)

    def _start_kafka(self, say: Callable[[str], None]) -> None:
        self.kafka.start()
        say(f"Kafka {self.kafka.jars.version}: brokers 1 to 6 in racks r1, r2, r3 and a controller are up")
        orders = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
        create_topics(
            self.kafka,
            {
                topic: [orders[(at + number) % 3] for number in range(PARTITIONS_PER_TOPIC)]
                for at, topic in enumerate(self._topics)
            },
            {"min.insync.replicas": "2"},
        )
        say(f"{TOPICS} topics with {PARTITIONS_PER_TOPIC} partitions and 3 replicas each are on brokers 1, 2 and 3")
        partitions = [(topic, number) for topic in self._topics for number in range(PARTITIONS_PER_TOPIC)]
        fill(self.kafka, dict.fromkeys(partitions, BYTES_PER_PARTITION))
        megabytes = len(partitions) * BYTES_PER_PARTITION // 1_000_000
        say(f"{megabytes} MB of records are written, {3 * megabytes} MB with their replicas")

    def _start_kube(self, say: Callable[[str], None]) -> None:
        self.kube.start()
        say("Kubernetes: etcd, the API server and the controller manager are up")
        self.operator.install()
        self.kube.apply(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n")
        self.operator.start()
        say("CRDs and roles are applied; the operator runs under its own service account")


def _mortal(command: tuple[str, ...]) -> list[str]:
    """Wrap the command so that it dies with the thread that starts it, the main thread."""
    return ["setpriv", "--pdeathsig", "KILL", *command]


def _together(*works: Callable[[], None]) -> None:
    """Run in parallel; the first failure is raised at once. Ctrl-C does not wait for the others."""
    outcomes: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the main thread raises any exception
            outcomes.put(error)
        else:
            outcomes.put(None)

    for work in works:
        threading.Thread(target=guarded, args=(work,), daemon=True).start()
    for _ in works:
        if (error := outcomes.get()) is not None:
            raise error
