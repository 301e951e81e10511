"""Configuration files of the bench's brokers and controller: Kafka's defaults, except where a comment explains why."""

from collections.abc import Sequence
from pathlib import Path

CONTROLLER_ID = 1000
# Users of a cluster with SASL; the passwords may be public because the listeners are local to this machine.
SASL_USERS = {"admin": "admin-secret", "operator": "operator-secret"}

_MODULES = "org.apache.kafka.common.security"


def controller_properties(data: Path, port: int, *, automatic_leaders: bool) -> dict[str, str]:
    """The controller's configuration file; with `automatic_leaders` it elects preferred leaders every 5 minutes."""
    return {
        "process.roles": "controller",
        "node.id": str(CONTROLLER_ID),
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "log.dirs": str(data),
        "auto.leader.rebalance.enable": str(automatic_leaders).lower(),
        **_quorum(port),
    }


def broker_properties(
    broker: int, *, rack: str, data: Sequence[Path], address: str, controller_port: int, replicas: int, sasl: bool
) -> dict[str, str]:
    """A broker's configuration; `replicas` is the RF of internal topics, `address` the listener's host:port."""
    listener = f"CLIENT://{address}"
    return {
        "process.roles": "broker",
        "node.id": str(broker),
        "broker.rack": rack,
        "listeners": listener,
        "advertised.listeners": listener,
        "inter.broker.listener.name": "CLIENT",
        "log.dirs": ",".join(map(str, data)),
        # Consumers start at once, and internal topics stay small.
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "5",
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        # Each replica has two index files, whole in the page cache. To write 300 partitions of 1 MB with RF 3 took six
        # brokers 15 GB of it and 64 s of CPU time with Kafka's 10 MiB, 3 GB and 24 s with 1 MiB.
        "log.index.size.max.bytes": str(2**18),
        # JMX is not used, and cleaning tiny logs does not need 128 MB.
        "metric.reporters": "",
        "log.cleaner.dedupe.buffer.size": "1100000",
        **_quorum(controller_port),
        **(_asking_for_users() if sasl else _protocols("PLAINTEXT")),
    }


def authorizer_properties() -> dict[str, str]:
    """ACLs, which the controller keeps. Its own listener has no users: every client there is ANONYMOUS."""
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }


def login() -> str:
    """The JAAS line, without its semicolon, for brokers and tools that log in as admin."""
    return f'{_MODULES}.plain.PlainLoginModule required username="admin" password="{SASL_USERS["admin"]}"'


def _quorum(controller_port: int) -> dict[str, str]:
    return {
        "controller.quorum.voters": f"{CONTROLLER_ID}@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        # A killed broker cannot register again until its old session ends; the default is 9 s.
        "broker.session.timeout.ms": "5000",
        "broker.heartbeat.interval.ms": "1000",
        # Nodes at rest cost an eighth less: no records without content, and fewer threads that wake up for nothing.
        "metadata.max.idle.interval.ms": "0",
        "num.network.threads": "1",
        "num.io.threads": "2",
    }


def _protocols(client: str) -> dict[str, str]:
    return {"listener.security.protocol.map": f"CLIENT:{client},CONTROLLER:PLAINTEXT"}


def _asking_for_users() -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in SASL_USERS.items())
    return {
        **_protocols("SASL_PLAINTEXT"),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": f"{login()} {users};",
        "listener.name.client.scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
    }
