"""A real Kafka cluster on this machine: KRaft brokers in racks, and a separate controller.

The controller is a separate process, so that a test can kill any broker without losing the quorum. All waiting is
polling: a broker is up when the brokers report it. Nothing here depends on the tests.
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

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from e2e.bench.kafka_jars import KafkaJars, format_storage, kafka_jars
from e2e.bench.kafka_properties import (
    CONTROLLER_ID,
    SASL_USERS,
    authorizer_properties,
    broker_properties,
    controller_properties,
    login,
)
from e2e.bench.kafka_tools import KafkaTools
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until

_quiet = logging.getLogger("e2e.bench.kafka.client")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


class KafkaCluster:
    """Brokers `racks` (id -> rack) and one controller; `with` starts them and stops everything at the end.

    `properties` are added to every broker's configuration. With `sasl` the brokers' only listener requires
    authentication (SASL_PLAINTEXT; PLAIN or SCRAM-SHA-512), for clients and for inter-broker traffic; with `acls` too,
    users other than admin may do what ACLs allow. `host` is the listen address, for clients that are not on loopback.
    `cluster_id` is that of another cluster, for one that claims to be it. With `two_listeners` the brokers have another
    listener, whose addresses are all different. Each broker has `log_dirs` log directories. Without `automatic_leaders`
    the controller elects no preferred leaders by itself, which it does every five minutes.
    """

    def __init__(
        self,
        racks: Mapping[int, str],
        *,
        properties: Mapping[str, str] | None = None,
        sasl: bool = False,
        acls: bool = False,
        version: str | None = None,
        host: str = "127.0.0.1",
        cluster_id: str | None = None,
        two_listeners: bool = False,
        log_dirs: int = 1,
        automatic_leaders: bool = True,
    ) -> None:
        self.host = host
        self.jars: KafkaJars = kafka_jars(version)
        self._tools = KafkaTools(self.jars)
        self.racks = dict(racks)
        self.sasl = sasl
        self.directory = Path(tempfile.mkdtemp(prefix="kafka-bench-"))
        self._authorizer = authorizer_properties() if acls else {}
        self._properties = {**self._authorizer, **(properties or {})}
        self.cluster_id = cluster_id or urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._log_dirs = log_dirs
        self._automatic_leaders = automatic_leaders
        self._controller_port = reserve_port()
        self._ports = {broker: reserve_port() for broker in self.racks}
        self._other_ports = {broker: reserve_port() for broker in self.racks if two_listeners}
        self._children: dict[int, Child] = {}

    # -- addresses ----------------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """All configured brokers, running or not, as in an operator's `bootstrapServers`."""
        return ",".join(self.address(broker) for broker in self.brokers)

    @property
    def other_bootstrap_servers(self) -> str:
        """All configured brokers at their other listener."""
        return ",".join(f"{self.host}:{self._other_ports[broker]}" for broker in self.brokers)

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers, running or not."""
        return tuple(sorted(self._ports))

    @property
    def running(self) -> tuple[int, ...]:
        """The ids of the brokers whose process is running."""
        return tuple(broker for broker in self.brokers if self._runs(broker))

    def address(self, broker: int) -> str:
        """host:port of one broker."""
        return f"{self.host}:{self._ports[broker]}"

    def log_dirs_of(self, broker: int) -> list[Path]:
        """The log directories of a broker; its metadata is in the first."""
        return [self._data(broker), *(self.directory / f"{broker}-{n}-data" for n in range(2, self._log_dirs + 1))]

    def pid(self, broker: int) -> int:
        """The process id of a broker, or of `CONTROLLER_ID`."""
        return self._children[broker].pid

    def log(self, broker: int) -> Path:
        """The log file of a broker, or of `CONTROLLER_ID`."""
        return self.directory / f"{broker}.log"

    def client_config(self, bootstrap: str | None = None, **more: Any) -> dict[str, Any]:
        """A configuration for the confluent-kafka clients."""
        config: dict[str, Any] = {"bootstrap.servers": bootstrap or self.bootstrap_servers}
        if self.sasl:
            config |= {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": SASL_USERS["admin"],
            }
        # With the default refresh of 5 minutes a client keeps using a dead broker; reading must never create a topic.
        return config | {"topic.metadata.refresh.interval.ms": 3000, "allow.auto.create.topics": False} | more

    def admin(self, bootstrap: str | None = None) -> AdminClient:
        """A new admin client; librdkafka's log messages about unavailable brokers are hidden."""
        return AdminClient(self.client_config(bootstrap), logger=_quiet)

    def producer(self, **settings: Any) -> Producer:
        """A new producer with these settings of librdkafka."""
        return Producer(self.client_config(**settings))

    @property
    def tool_config(self) -> Path:
        """The `--command-config` file for Kafka's own tools."""
        path = self.directory / "tool.properties"
        if not path.exists():
            lines = ["default.api.timeout.ms=60000"]
            if self.sasl:
                lines += ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", f"sasl.jaas.config={login()};"]
            path.write_text("\n".join(lines) + "\n")
        return path

    # -- lifecycle ----------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start all processes and wait until every broker sees every other broker."""
        try:
            self._start_controller()
            for broker in self.brokers:
                self._launch(broker)
            self.wait_ready()
            if self.sasl:
                self._create_scram_users(SASL_USERS)
        except BaseException:
            self.close(keep_logs=True)
            raise
        return self

    def close(self, *, keep_logs: bool = False) -> None:
        """Kill all processes; delete the data, and the logs unless `keep_logs`."""
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
        """SIGKILL, without waiting until the cluster notices it: see `wait_gone`."""
        for broker in brokers:
            self._children[broker].kill9()

    def pause(self, *brokers: int) -> None:
        """SIGSTOP: connections stay open, but the brokers do not answer."""
        for broker in brokers:
            self._children[broker].pause()

    def resume(self, *brokers: int) -> None:
        """SIGCONT, and wait until the brokers serve requests."""
        for broker in brokers:
            self._children[broker].resume()
        self.wait_ready()

    def stop(self, *brokers: int) -> None:
        """Controlled shutdown: leaders move to other brokers where possible."""
        for broker in brokers:
            self._children[broker].stop()

    def start_brokers(self, *brokers: int) -> None:
        """Start brokers that were stopped or killed, and wait until they serve requests."""
        for broker in brokers:
            if self._runs(broker):
                raise RuntimeError(f"broker {broker} runs already")
            self._launch(broker)
        self.wait_ready()

    def replace(self, broker: int) -> None:
        """Start another broker with the id of a dead one and empty log directories."""
        for data in self.log_dirs_of(broker):
            shutil.rmtree(data)
        self.start_brokers(broker)

    def restart(self, *brokers: int) -> None:
        """Controlled shutdown and start, one broker at a time."""
        for broker in brokers:
            self.stop(broker)
            self.start_brokers(broker)

    def add(self, racks: Mapping[int, str]) -> None:
        """Start new, empty brokers, and wait until they serve requests."""
        for broker, rack in racks.items():
            if broker in self._ports:
                raise ValueError(f"broker {broker} is there already")
            self.racks[broker] = rack
            self._ports[broker] = reserve_port()
            self._launch(broker)
        self.wait_ready()

    def remove(self, broker: int) -> None:
        """Stop a broker, unregister it with Kafka's own tool and delete its data."""
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
        for data in self.log_dirs_of(broker):
            shutil.rmtree(data)

    # -- queries ------------------------------------------------------------------------------------------------

    def wait_ready(self, timeout: float = 240) -> None:
        """Wait until every running broker answers and lists every running broker."""
        expected = set(self.running)
        for broker in sorted(expected):
            wait_until(
                f"broker {broker} lists brokers {sorted(expected)} (log: {self.log(broker)})",
                partial(self._sees, broker, expected),
                timeout=timeout,
            )

    def wait_gone(self, *brokers: int, timeout: float = 240) -> None:
        """Wait until no running broker lists these brokers."""
        for witness in self.running:
            wait_until(
                f"broker {witness} no longer lists {brokers}",
                partial(self._misses, witness, set(brokers)),
                timeout=timeout,
            )

    def run_tool(self, main: str, *arguments: str) -> str:
        """Run one of Kafka's command-line tools; returns its standard output."""
        return self._tools.run(main, *arguments, timeout=240)

    # -- internals ----------------------------------------------------------------------------------------------

    def _runs(self, broker: int) -> bool:
        return broker in self._children and self._children[broker].running

    def _reachable(self) -> str:
        return ",".join(self.address(broker) for broker in self.running)

    def _seen_by(self, broker: int) -> set[int]:
        """The brokers in this broker's metadata; empty while it does not answer."""
        for child in self._children.values():
            if child.name in (str(broker), str(CONTROLLER_ID)):
                child.check_alive()
        with contextlib.suppress(OSError), socket.create_connection((self.host, self._ports[broker]), timeout=1):
            # A new client each time: an old one remembers other brokers and queries those.
            client = self.admin(self.address(broker))
            # Not describe_cluster: it queries the controller's broker, and terminates the process if all brokers are
            # fenced.
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
        properties = controller_properties(
            self._data(CONTROLLER_ID), self._controller_port, automatic_leaders=self._automatic_leaders
        )
        path = self._write(CONTROLLER_ID, properties | self._authorizer)
        format_storage(self.jars, path, self.cluster_id)
        self._spawn(CONTROLLER_ID, path)

    def _launch(self, broker: int) -> None:
        properties = broker_properties(
            broker,
            rack=self.racks[broker],
            data=self.log_dirs_of(broker),
            address=self.address(broker),
            controller_port=self._controller_port,
            replicas=min(3, len(self._ports)),
            sasl=self.sasl,
        )
        if broker in self._other_ports:
            other = f"OTHER://{self.host}:{self._other_ports[broker]}"
            for name in ("listeners", "advertised.listeners"):
                properties[name] += f",{other}"
            properties["listener.security.protocol.map"] += ",OTHER:PLAINTEXT"
        path = self._write(broker, properties | self._properties)
        for data in self.log_dirs_of(broker):
            if not data.exists():
                # This is all that Kafka's formatting writes for a broker; writing it here saves a JVM start per broker.
                data.mkdir()
                (data / "meta.properties").write_text(f"version=1\ncluster.id={self.cluster_id}\nnode.id={broker}\n")
        self._spawn(broker, path)

    def _spawn(self, node: int, properties: Path) -> None:
        self._children[node] = Child(self.jars.java("kafka.Kafka", str(properties), role="broker"), log=self.log(node))

    def _write(self, node: int, properties: Mapping[str, str]) -> Path:
        path = self.directory / f"{node}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return path

    def _create_scram_users(self, passwords: Mapping[str, str]) -> None:
        from confluent_kafka.admin import (
            ScramCredentialInfo,
            ScramMechanism,
            UserScramCredentialAlteration,
            UserScramCredentialUpsertion,
        )

        mechanism = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, iterations=4096)
        users: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(name, mechanism, word.encode()) for name, word in passwords.items()
        ]
        client = self.admin()
        for done in client.alter_user_scram_credentials(users).values():
            done.result(timeout=120)


def racks_of(brokers: Sequence[int], racks: int = 3) -> dict[int, str]:
    """Distribute brokers over racks r1, r2, … in turn."""
    return {broker: f"r{1 + at % racks}" for at, broker in enumerate(brokers)}
