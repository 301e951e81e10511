"""The environment of a demo without Kubernetes: brokers with records, and traffic.

Every process is a `Child` of the bench, or started with the same parent-death signal: it cannot outlive the demo.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.load import Traffic, TrafficReport, create_topics, fill
from e2e.bench.waiting import wait_until
from e2e.demo.layout import BYTES_PER_PARTITION, RACKS, Layout, spread_over

RECORDS_PER_SECOND = 50
_CONFIGS = {"min.insync.replicas": "2"}
_SECONDS_BETWEEN_LINES = 2
_EXAMPLES = Path(__file__).parents[2] / "examples"
_COMMANDS = Path(sys.executable).parent


class BrokerStage:
    """Kafka with records, and producers and consumers."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.kafka = KafkaCluster(racks_of(range(1, layout.brokers + 1)))
        self.directory = Path(tempfile.mkdtemp(prefix="demo-"))
        self._topics = [f"demo-{number:02d}" for number in range(layout.topics)]
        self._traffic: list[Traffic] = []

    @property
    def logs(self) -> list[Path]:
        """The directories with the logs of the servers."""
        return [self.kafka.directory]

    def start(self, say: Callable[[str], None]) -> None:
        """Start everything, and write the records."""
        self._start_kafka(say)

    def start_traffic(self) -> None:
        """Two producers and two consumers, each pair for half of the topics."""
        self._traffic = [Traffic(self.kafka, self._topics[half::2], rate=RECORDS_PER_SECOND).start() for half in (0, 1)]

    def create_topic(self, topic: str, rows: Sequence[Sequence[int]]) -> None:
        """Create a topic with these replicas."""
        create_topics(self.kafka, {topic: rows}, _CONFIGS)

    def add_traffic(self, partitions: Sequence[tuple[str, int]], *, rate: float, record_bytes: int) -> None:
        """Another producer and consumer; `rate` is in records per second over all of these partitions.

        Returns when their records are read back: what a producer sends at its start would count as traffic.
        """
        pair = Traffic(self.kafka, partitions=partitions, rate=rate, record_bytes=record_bytes)
        self._traffic.append(pair.start())
        wait_until("the new traffic flows", lambda: pair.consumed >= len(partitions))

    def stop_traffic(self) -> list[TrafficReport]:
        """Stop writing, read the rest, and report the outcome of each pair."""
        traffic, self._traffic = self._traffic, []
        return [pair.stop() for pair in traffic]

    def fill_in(self, example: str, fields: Mapping[str, str]) -> Path:
        """A copy of `examples/<example>` with the bootstrap servers of this cluster, and these values of fields."""
        servers = ",".join(self.kafka.address(broker) for broker in self.kafka.brokers[:2])
        text = (_EXAMPLES / example).read_text()
        for name, value in {"bootstrapServers": servers, **fields}.items():
            text, replaced = re.subn(rf"\b({name}:) [^\s}}]+", rf"\1 {value}", text)
            if not replaced:
                raise RuntimeError(f"{example} has no field {name}")
        path = self.directory / example
        path.write_text(text)
        return path

    def environment(self) -> dict[str, str]:
        """The environment variables that a shell needs to use this cluster."""
        return {**os.environ, "KUBECONFIG": os.devnull, "PATH": f"{self.commands}:{os.environ['PATH']}"}

    @property
    def commands(self) -> str:
        """The directories of the commands, for PATH."""
        return str(_COMMANDS)

    def run(self, *command: str) -> str:
        """Run a command of the product or kubectl; returns its output. The error contains its stderr."""
        done = subprocess.run(mortal(command), env=self.environment(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def run_visibly(self, *command: str) -> None:
        """Run a command that draws on the terminal itself."""
        subprocess.run(mortal(command), env=self.environment(), check=True)

    def run_tersely(self, *command: str) -> Iterator[str]:
        """Run a command and yield one of its output lines every other second, and the last one."""
        with subprocess.Popen(mortal(command), env=self.environment(), stdout=subprocess.PIPE, text=True) as process:
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

    def _start_kafka(self, say: Callable[[str], None]) -> None:
        self.kafka.start()
        layout, racks = self.layout, ", ".join(f"r{number}" for number in range(1, RACKS + 1))
        say(f"Kafka {self.kafka.jars.version}: brokers 1 to {layout.brokers} in racks {racks} and a controller are up")
        each = layout.partitions_per_topic
        rows = spread_over(layout.hosts, layout.partitions)
        create_topics(
            self.kafka,
            {topic: rows[at * each : (at + 1) * each] for at, topic in enumerate(self._topics)},
            _CONFIGS,
        )
        say(f"{layout.topics} topics with {each} partitions and 3 replicas each are on brokers 1 to {layout.hosts}")
        partitions = [(topic, number) for topic in self._topics for number in range(each)]
        fill(self.kafka, dict.fromkeys(partitions, BYTES_PER_PARTITION))
        say(f"{layout.megabytes} MB of records are written, {3 * layout.megabytes} MB with their replicas")


def mortal(command: tuple[str, ...]) -> list[str]:
    """Wrap the command so that it dies with the thread that starts it, the main thread."""
    return ["setpriv", "--pdeathsig", "KILL", *command]
