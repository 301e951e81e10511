"""A real Kafka cluster on this machine: KRaft brokers in racks, and a controller beside them.

The controller is a process of its own, so that a test may kill any broker without killing the quorum. All waiting is
asking: a broker is up when the brokers say so. Nothing here knows what the tests do with the cluster.
"""

import contextlib
import logging
import shutil
import socket
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from e2e.bench.kafka_jars import KafkaJars, format_storage, kafka_jars
from e2e.bench.kafka_properties import CONTROLLER_ID, SASL_USERS, broker_properties, controller_properties, login
from e2e.bench.kafka_tools import KafkaTools
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until

_quiet = logging.getLogger("e2e.bench.kafka.client")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


class KafkaCluster:
    """Brokers `racks` (id -> rack) and one controller; `with` starts it and leaves nothing running.

    `properties` go into every broker's configuration. With `sasl` the brokers' only listener asks for a user
    (SASL_PLAINTEXT; PLAIN or SCRAM-SHA-512), for clients and for the other brokers alike. `host` is the address that
    they listen on, for clients that are not on loopback.
    """

    def __init__(
        self,
        racks: Mapping[int, str],
        *,
        properties: Mapping[str, str] | None = None,
        sasl: bool = False,
        version: str | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.host = host
        self.jars: KafkaJars = kafka_jars(version)
        self._tools = KafkaTools(self.jars)
        self.racks = dict(racks)
        self.sasl = sasl
        self.directory = Path(tempfile.mkdtemp(prefix="kafka-bench-"))
        self._properties = dict(properties or {})
        self._cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._controller_port = reserve_port()
        self._ports = {broker: reserve_port() for broker in self.racks}
        self._children: dict[int, Child] = {}

    # -- addresses ----------------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """All brokers that are meant to be there, dead or alive, as an operator would be told them."""
        return ",".join(self.address(broker) for broker in self.brokers)

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers, dead or alive."""
        return tuple(sorted(self._ports))

    @property
    def running(self) -> tuple[int, ...]:
        """The ids of the brokers whose process runs."""
        return tuple(broker for broker in self.brokers if self._runs(broker))

    def address(self, broker: int) -> str:
        """host:port of one broker."""
        return f"{self.host}:{self._ports[broker]}"

    def pid(self, broker: int) -> int:
        """The process id of a broker, or of `CONTROLLER_ID`."""
        return self._children[broker].pid

    def log(self, broker: int) -> Path:
        """The log file of a broker, or of `CONTROLLER_ID`."""
        return self.directory / f"{broker}.log"

    def client_config(self, bootstrap: str | None = None, **more: Any) -> dict[str, Any]:
        """A configuration for confluent-kafka's clients."""
        config: dict[str, Any] = {"bootstrap.servers": bootstrap or self.bootstrap_servers}
        if self.sasl:
            config |= {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": SASL_USERS["admin"],
            }
        # A metadata refresh of 5 minutes makes a client cling to a dead broker; asking must never create a topic.
        return config | {"topic.metadata.refresh.interval.ms": 3000, "allow.auto.create.topics": False} | more

    def admin(self, bootstrap: str | None = None) -> AdminClient:
        """A new admin client; librdkafka's complaints about brokers that are down are not shown."""
        return AdminClient(self.client_config(bootstrap), logger=_quiet)

    @property
    def tool_config(self) -> Path:
        """The `--command-config` of Kafka's own tools."""
        path = self.directory / "tool.properties"
        if not path.exists():
            lines = ["default.api.timeout.ms=60000"]
            if self.sasl:
                lines += ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", f"sasl.jaas.config={login()};"]
            path.write_text("\n".join(lines) + "\n")
        return path

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start everything and wait until every broker sees every broker."""
        try:
            self._start_controller()
            for broker in self.brokers:
                self._launch(broker)
            self.wait_ready()
            if self.sasl:
                self._create_scram_users()
        except BaseException:
            self.close(keep_logs=True)
            raise
        return self

    def close(self, *, keep_logs: bool = False) -> None:
        """Kill everything; delete the data, and the logs too unless they are to be kept."""
        self._tools.close()
        for child in self._children.values():
            child.kill9()
        self._children.clear()
        for port in (self._controller_port, *self._ports.values()):
            with contextlib.suppress(KeyError):
                release_port(port)
        for data in self.directory.glob("*-data"):
            shutil.rmtree(data)
        if not keep_logs:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close(keep_logs=error is not None)
        if error is not None:
            print(f"The brokers' logs are in {self.directory}")

    # -- single brokers -----------------------------------------------------------------------------------------

    def kill9(self, *brokers: int) -> None:
        """SIGKILL, without waiting for the cluster to notice: see `wait_gone`."""
        for broker in brokers:
            self._children[broker].kill9()

    def pause(self, *brokers: int) -> None:
        """Let brokers hang: their connections stay open, and nothing answers."""
        for broker in brokers:
            self._children[broker].pause()

    def resume(self, *brokers: int) -> None:
        """Let brokers that hang go on, and wait until they serve."""
        for broker in brokers:
            self._children[broker].resume()
        self.wait_ready()

    def stop(self, *brokers: int) -> None:
        """A controlled shutdown: leaders move away first where they can."""
        for broker in brokers:
            self._children[broker].stop()

    def start_brokers(self, *brokers: int) -> None:
        """Start brokers that were stopped or killed, and wait until they serve."""
        for broker in brokers:
            if self._runs(broker):
                raise RuntimeError(f"broker {broker} runs already")
            self._launch(broker)
        self.wait_ready()

    def restart(self, *brokers: int) -> None:
        """A controlled shutdown and a new start, one broker after the other."""
        for broker in brokers:
            self.stop(broker)
            self.start_brokers(broker)

    def add(self, racks: Mapping[int, str]) -> None:
        """Start new, empty brokers, and wait until they serve."""
        for broker, rack in racks.items():
            if broker in self._ports:
                raise ValueError(f"broker {broker} is there already")
            self.racks[broker] = rack
            self._ports[broker] = reserve_port()
            self._launch(broker)
        self.wait_ready()

    def remove(self, broker: int) -> None:
        """Stop a broker, unregister it with Kafka's own tool and forget it and its data."""
        if self._runs(broker):
            self.stop(broker)
        self._children.pop(broker, None)
        release_port(self._ports.pop(broker))
        self.run_tool(
            "org.apache.kafka.tools.ClusterTool",
            *("unregister", "--bootstrap-server", self._reachable(), "--id", str(broker)),
            *("--config", str(self.tool_config)),
        )
        self.wait_gone(broker)
        del self.racks[broker]
        shutil.rmtree(self._data(broker))

    # -- asking the cluster -------------------------------------------------------------------------------------

    def wait_ready(self, timeout: float = 90) -> None:
        """Wait until every running broker answers and lists every running broker."""
        expected = set(self.running)
        for broker in sorted(expected):
            wait_until(
                f"broker {broker} lists brokers {sorted(expected)} (log: {self.log(broker)})",
                partial(self._sees, broker, expected),
                timeout=timeout,
            )

    def wait_gone(self, *brokers: int, timeout: float = 60) -> None:
        """Wait until every running broker has noticed that these are not there."""
        for witness in self.running:
            wait_until(
                f"broker {witness} no longer lists {brokers}",
                partial(self._misses, witness, set(brokers)),
                timeout=timeout,
            )

    def run_tool(self, main: str, *arguments: str) -> str:
        """Run one of Kafka's command-line tools; its standard output."""
        return self._tools.run(main, *arguments, timeout=120)

    # -- inside -------------------------------------------------------------------------------------------------

    def _runs(self, broker: int) -> bool:
        return broker in self._children and self._children[broker].running

    def _reachable(self) -> str:
        return ",".join(self.address(broker) for broker in self.running)

    def _seen_by(self, broker: int) -> set[int]:
        """The brokers that this broker lists; none while it does not answer."""
        for child in self._children.values():
            if child.name in (str(broker), str(CONTROLLER_ID)):
                child.check_alive()
        with contextlib.suppress(OSError), socket.create_connection((self.host, self._ports[broker]), timeout=1):
            # A new client every time: an old one remembers other brokers and asks those.
            client = self.admin(self.address(broker))
            # Not describe_cluster, which asks the broker named controller, and ends the process where all are fenced.
            with contextlib.suppress(KafkaException):
                return set(client.list_topics(timeout=5).brokers)
        return set()

    def _sees(self, broker: int, expected: set[int]) -> bool:
        return expected <= self._seen_by(broker)

    def _misses(self, broker: int, gone: set[int]) -> bool:
        seen = self._seen_by(broker)
        return bool(seen) and not seen & gone

    def _data(self, node: int) -> Path:
        return self.directory / f"{node}-data"

    def _start_controller(self) -> None:
        path = self._write(CONTROLLER_ID, controller_properties(self._data(CONTROLLER_ID), self._controller_port))
        format_storage(self.jars, path, self._cluster_id)
        self._spawn(CONTROLLER_ID, path)

    def _launch(self, broker: int) -> None:
        data = self._data(broker)
        properties = broker_properties(
            broker,
            rack=self.racks[broker],
            data=data,
            address=self.address(broker),
            controller_port=self._controller_port,
            replicas=min(3, len(self._ports)),
            sasl=self.sasl,
        )
        path = self._write(broker, properties | self._properties)
        if not data.exists():
            # All that Kafka's formatting writes for a node that is no controller; it saves a JVM per broker.
            data.mkdir()
            (data / "meta.properties").write_text(f"version=1\ncluster.id={self._cluster_id}\nnode.id={broker}\n")
        self._spawn(broker, path)

    def _spawn(self, node: int, properties: Path) -> None:
        self._children[node] = Child(self.jars.java("kafka.Kafka", str(properties), role="broker"), log=self.log(node))

    def _write(self, node: int, properties: Mapping[str, str]) -> Path:
        path = self.directory / f"{node}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return path

    def _create_scram_users(self) -> None:
        from confluent_kafka.admin import (
            ScramCredentialInfo,
            ScramMechanism,
            UserScramCredentialAlteration,
            UserScramCredentialUpsertion,
        )

        mechanism = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, iterations=4096)
        users: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(name, mechanism, word.encode()) for name, word in SASL_USERS.items()
        ]
        client = self.admin()
        for done in client.alter_user_scram_credentials(users).values():
            done.result(timeout=30)


def racks_of(brokers: Sequence[int], racks: int = 3) -> dict[int, str]:
    """Spread brokers over racks r1, r2, … in turn."""
    return {broker: f"r{1 + at % racks}" for at, broker in enumerate(brokers)}
