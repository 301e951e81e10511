"""The bytes per second that brokers report: Kafka's own metrics over JMX, read with Kafka's own JmxTool.

Offsets and sizes are what the sampler reads, too; these counters are not.
"""

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from e2e.bench.kafka import KafkaCluster
from e2e.bench.ports import release_port, reserve_port

_TOOL = "org.apache.kafka.tools.JmxTool"
_METRICS = "kafka.server:type=BrokerTopicMetrics"
_PRODUCED, _REPLICATED = f"{_METRICS},name=BytesInPerSec", f"{_METRICS},name=ReplicationBytesInPerSec"


@dataclass(frozen=True)
class BrokerRates:
    """Bytes in per second of each broker: from producers, and from producers and leaders together."""

    produced: Mapping[int, float]
    written: Mapping[int, float]


@dataclass(frozen=True)
class _Count:
    milliseconds: int
    produced: int
    replicated: int


class BrokerMetrics:
    """The metrics of the brokers that run now, not of one that is started later.

    Make it once for a cluster: the brokers go on listening until they end.
    """

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self._ports: dict[int, int] = {}
        for broker in cluster.running:
            port = self._ports[broker] = reserve_port()
            settings = (f"jmxremote.port={port}", f"jmxremote.rmi.port={port}", "jmxremote.host=127.0.0.1")
            settings += ("jmxremote.authenticate=false", "jmxremote.ssl=false")
            command = ("jcmd", str(cluster.pid(broker)), "ManagementAgent.start", *settings)
            subprocess.run(command, check=True, capture_output=True, timeout=120)

    def close(self) -> None:
        """Release the ports; the brokers listen on them as long as they run."""
        for port in self._ports.values():
            release_port(port)

    def while_(self, work: Callable[[], object]) -> BrokerRates:
        """The mean rates while this runs."""
        first = self._counts()
        work()
        last = self._counts()
        produced, written = {}, {}
        for broker, end in last.items():
            begin = first[broker]
            seconds = (end.milliseconds - begin.milliseconds) / 1000
            produced[broker] = (end.produced - begin.produced) / seconds
            written[broker] = produced[broker] + (end.replicated - begin.replicated) / seconds
        return BrokerRates(produced, written)

    def over(self, seconds: float) -> BrokerRates:
        """The mean rates of the next seconds."""
        return self.while_(lambda: time.sleep(seconds))

    def _counts(self) -> dict[int, _Count]:
        return {broker: self._count(port) for broker, port in self._ports.items()}

    def _count(self, port: int) -> _Count:
        said = self._cluster.run_tool(
            _TOOL,
            *("--jmx-url", f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"),
            *("--object-name", _PRODUCED, "--object-name", _REPLICATED, "--attributes", "Count"),
            *("--one-time", "--report-format", "properties"),
        )
        found = dict(line.rpartition("=")[::2] for line in said.splitlines() if "=" in line)
        return _Count(int(found["time"]), int(found[f"{_PRODUCED}:Count"]), int(found[f"{_REPLICATED}:Count"]))
