"""The configuration files of the bench's brokers and controller: stock Kafka, but for what a comment here explains."""

from pathlib import Path

CONTROLLER_ID = 1000
# The users of a cluster that asks for one; the passwords are public, the listeners are on this machine.
SASL_USERS = {"admin": "admin-secret", "operator": "operator-secret"}

_MODULES = "org.apache.kafka.common.security"


def controller_properties(data: Path, port: int) -> dict[str, str]:
    """The controller's own file."""
    return {
        "process.roles": "controller",
        "node.id": str(CONTROLLER_ID),
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "log.dirs": str(data),
        **_quorum(port),
    }


def broker_properties(
    broker: int, *, rack: str, data: Path, address: str, controller_port: int, replicas: int, sasl: bool
) -> dict[str, str]:
    """A broker's file; `replicas` is what the internal topics get, `address` is host:port of its listener."""
    listener = f"CLIENT://{address}"
    return {
        "process.roles": "broker",
        "node.id": str(broker),
        "broker.rack": rack,
        "listeners": listener,
        "advertised.listeners": listener,
        "inter.broker.listener.name": "CLIENT",
        "log.dirs": str(data),
        # Consumers start at once, and the internal topics stay small.
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "5",
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        # Nobody asks by JMX, and a cleaner of next to nothing needs no 128 MB.
        "metric.reporters": "",
        "log.cleaner.dedupe.buffer.size": "1100000",
        **_quorum(controller_port),
        **(_asking_for_users() if sasl else _protocols("PLAINTEXT")),
    }


def login() -> str:
    """The JAAS line, without its semicolon, with which brokers and tools log in as admin."""
    return f'{_MODULES}.plain.PlainLoginModule required username="admin" password="{SASL_USERS["admin"]}"'


def _quorum(controller_port: int) -> dict[str, str]:
    return {
        "controller.quorum.voters": f"{CONTROLLER_ID}@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        # A killed broker cannot register again before its old session ends: 9 s by default.
        "broker.session.timeout.ms": "5000",
        "broker.heartbeat.interval.ms": "500",
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
