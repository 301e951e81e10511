"""The least ACLs suffice, and each is necessary: without it the resource and doctor name it, and the rest goes on."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from e2e.bench.kafka import KafkaCluster
from e2e.bench.kafka_properties import SASL_USERS
from e2e.bench.kube import KubeCluster
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.rebalance import Rebalance, condition
from e2e.test_cli import COMMAND
from e2e.test_operator import CORDON
from e2e.world import FAST, SMALL, World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver, pytest.mark.campaign]

Acl = tuple[str, ResourceType, str]
"""Operation, kind of resource, name."""
CLUSTER = (ResourceType.BROKER, "kafka-cluster")
EVERY_TOPIC = (ResourceType.TOPIC, "*")
ALTER: Acl = ("ALTER", *CLUSTER)
ALTER_CONFIGS: Acl = ("ALTER_CONFIGS", *CLUSTER)
DESCRIBE_TOPICS: Acl = ("DESCRIBE", *EVERY_TOPIC)
ALTER_TOPIC_CONFIGS: Acl = ("ALTER_CONFIGS", *EVERY_TOPIC)
LEAST = (ALTER, ALTER_CONFIGS, DESCRIBE_TOPICS, ALTER_TOPIC_CONFIGS)
PRINCIPAL = "User:operator"


class Walled:
    """A cluster whose user `operator` may do what the ACLs allow."""

    def __init__(self, kafka: KafkaCluster, world: World, directory: Path) -> None:
        self.kafka, self.world = kafka, world
        self._admin = kafka.admin()
        secret = world.secret("login", username="operator", password=SASL_USERS["operator"])
        sasl = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": secret}}
        self._connection = {"bootstrapServers": kafka.bootstrap_servers, "sasl": sasl}
        self.command_config = directory / "client.properties"
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        login = f'{module} required username="operator" password="{SASL_USERS["operator"]}";'
        self.command_config.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={login}\n"
        )

    def allow(self, *acls: Acl) -> None:
        """Exactly these."""
        every = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, PRINCIPAL, None, AclOperation.ANY, AclPermissionType.ANY
        )
        bindings = [
            AclBinding(
                kind,
                name,
                ResourcePatternType.LITERAL,
                PRINCIPAL,
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for operation, kind, name in acls
        ]
        for deleted in self._admin.delete_acls([every]).values():  # first, for the calls may arrive in any order
            deleted.result(timeout=120)
        for created in self._admin.create_acls(bindings).values():
            created.result(timeout=120)

    def uncordon(self, broker: int) -> None:
        """A decommission leaves the cordon, and internal topics need all three brokers."""
        entry = ConfigEntry(CORDON, None, incremental_operation=AlterConfigOpType.DELETE)
        resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
        for done in self._admin.incremental_alter_configs([resource]).values():
            done.result(timeout=120)

    def rebalance(self, name: str, topic: str, **spec: Any) -> Rebalance:
        """Applied with the user's credentials."""
        return self.world.rebalance(name, topic, kafka=self._connection, **{"throttle": FAST, **spec})

    def missing(self) -> set[str]:
        """The operations that doctor says are missing, by resource: "Alter Cluster"."""
        options = ("--bootstrap-servers", self.kafka.bootstrap_servers, "--command-config", str(self.command_config))
        done = subprocess.run([COMMAND, "doctor", *options, "-o", "json"], check=False, capture_output=True, text=True)
        found = json.loads(done.stdout)["findings"]
        assert done.returncode == (4 if found else 0), done.stderr
        assert {row["reason"] for row in found} <= {"PermissionsMissing"}
        return {f"{row['operation']} {row['resource']}" for row in found}

    def wait_missing(self, *what: str) -> None:
        """Brokers learn of ACLs from the controller, each by itself."""
        wait_until(f"doctor names {what}", lambda: self.missing() == set(what), every=1)


@pytest.fixture(scope="module")
def brokers() -> Iterator[KafkaCluster]:
    """Three brokers with users and ACLs."""
    with KafkaCluster({1: "r1", 2: "r2", 3: "r3"}, sasl=True, acls=True) as cluster:
        yield cluster


@pytest.fixture
def walled(
    brokers: KafkaCluster, kube: KubeCluster, operator: OperatorProcess, unique: Callable[[str], str], tmp_path: Path
) -> Iterator[Walled]:
    """The cluster with the least ACLs; tests take some away."""
    world = World(brokers, kube, operator, unique)
    walled = Walled(brokers, world, tmp_path)
    walled.allow(*LEAST)
    yield walled
    walled.allow(*LEAST)
    world.close()
    walled.uncordon(1)


def permitted(rebalance: Rebalance, text: str) -> None:
    """Wait until the condition names this."""

    def named(status: Any) -> bool:
        rows = [c for c in status.get("conditions", []) if c["type"] == "Permitted"]
        return any(c["status"] == "False" and text in c["message"] for c in rows)

    rebalance.until(f"Permitted names {text}", named)


MOVED_OFF_1 = {"brokers": {"decommission": [1]}, "goals": {"rackAwareness": "Disabled"}}


class TestLeast:
    """The four ACLs of the documentation."""

    def test_suffice(self, walled: Walled) -> None:
        """For a decommission with a throttle, up to its proof."""
        topic = walled.world.topic("least", [[1, 2], [1, 3]], SMALL)
        walled.wait_missing()
        rebalance = walled.rebalance("least", topic, **MOVED_OFF_1)
        rebalance.wait_for("Succeeded")
        assert "Permitted" not in {c["type"] for c in rebalance.status["conditions"]}
        assert not any(1 in state.replicas for state in walled.world.partitions(topic).values())

    def test_alter_on_the_cluster(self, walled: Walled) -> None:
        """Without it nothing is read or moved; with it the rebalance goes on by itself."""
        topic = walled.world.topic("alter", [[1, 2]], SMALL)
        walled.allow(ALTER_CONFIGS, DESCRIBE_TOPICS, ALTER_TOPIC_CONFIGS)
        walled.wait_missing("Alter Cluster")
        rebalance = walled.rebalance("alter", topic, **MOVED_OFF_1)
        permitted(rebalance, "Alter on the cluster is not permitted")
        walled.allow(*LEAST)
        rebalance.wait_for("Succeeded")

    def test_describe_on_the_cluster_is_not_enough(self, walled: Walled) -> None:
        """It is planned, and not submitted."""
        topic = walled.world.topic("submit", [[1, 2]], SMALL)
        walled.allow(("DESCRIBE", *CLUSTER), ALTER_CONFIGS, DESCRIBE_TOPICS, ALTER_TOPIC_CONFIGS)
        walled.wait_missing("Alter Cluster")
        rebalance = walled.rebalance("submit", topic, throttle={"unlimited": True}, **MOVED_OFF_1)
        permitted(rebalance, "no step can be submitted")
        rebalance.wait_state("KafkaAuthorizationFailed")
        assert condition(rebalance.status, "Planned") == "True"
        walled.allow(*LEAST)
        rebalance.wait_for("Succeeded")

    def test_alter_configs_on_the_cluster(self, walled: Walled) -> None:
        """Only copies under a throttle wait."""
        topic, free = (walled.world.topic(name, [[1, 2]], SMALL) for name in ("rates", "free"))
        walled.allow(ALTER, DESCRIBE_TOPICS, ALTER_TOPIC_CONFIGS)
        walled.wait_missing("AlterConfigs Cluster")
        rebalance = walled.rebalance("rates", topic, **MOVED_OFF_1)
        permitted(rebalance, "AlterConfigs on the cluster is not permitted")
        goal = {"strategy": "Assignment", "assignment": {"configMapRef": {"name": lists(walled, free), "key": "k"}}}
        walled.rebalance("free", free, throttle={"unlimited": True}, **goal).wait_for("Succeeded")
        assert walled.world.partitions(topic)[0].replicas == (1, 2)
        walled.allow(*LEAST)
        rebalance.wait_for("Succeeded")

    def test_describe_on_topics(self, walled: Walled) -> None:
        """A broker that holds a topic that is hidden is not taken for empty."""
        seen, hidden = (walled.world.topic(name, [[1, 2]], SMALL) for name in ("seen", "hidden"))
        walled.allow(ALTER, ALTER_CONFIGS, ALTER_TOPIC_CONFIGS, ("DESCRIBE", ResourceType.TOPIC, seen))
        walled.wait_missing("Describe Topic")
        rebalance = walled.rebalance("seen", ".*", **MOVED_OFF_1)
        rebalance.wait_for("Succeeded")
        assert not any(1 in state.replicas for state in walled.world.partitions(seen).values())
        (drained,) = (c for c in rebalance.status["conditions"] if c["type"] == "Drained")
        assert drained["status"] == "False"
        assert f"{hidden}-0" in drained["message"]

    def test_alter_configs_on_topics(self, walled: Walled) -> None:
        """Only the topic without it waits."""
        topic, other = (walled.world.topic(name, [[1, 2]], SMALL) for name in ("kept", "other"))
        walled.allow(ALTER, ALTER_CONFIGS, DESCRIBE_TOPICS, ("ALTER_CONFIGS", ResourceType.TOPIC, topic))
        walled.wait_missing("AlterConfigs Topic")
        waits = walled.rebalance("other", other, **MOVED_OFF_1)
        permitted(waits, f"AlterConfigs on topic {other} is not permitted")
        waits.until("its partition waits", lambda status: "TopicForbidden" in str(status))
        walled.rebalance("kept", topic, **MOVED_OFF_1).wait_for("Succeeded")
        assert walled.world.partitions(other)[0].replicas == (1, 2)
        walled.allow(*LEAST)
        waits.wait_for("Succeeded")


def lists(walled: Walled, topic: str) -> str:
    """A ConfigMap that moves the topic's first replica from broker 1 to 3."""
    rows = [{"topic": topic, "partition": 0, "replicas": [3, 2]}]
    return walled.world.config_map("lists", k=json.dumps({"version": 1, "partitions": rows}))


class TestSampler:
    def test_reads_consumer_groups_with_describe_alone(self, walled: Walled) -> None:
        """Without it on one group, that group is named, and the sample is stored without what groups have committed."""
        topic = walled.world.empty_topic("read", [[1, 2]])
        lake = walled.command_config.with_name("lake")
        for group in ("open", "closed"):
            commit(walled.kafka, group, topic)
        sampler = (("DESCRIBE", *CLUSTER), DESCRIBE_TOPICS)
        for group, named in (("open", "for example closed"), ("*", "")):
            walled.allow(*sampler, ("DESCRIBE", ResourceType.GROUP, group))
            wait_until(f"the sampler may read {group}", lambda said=named: said_by_sampler(walled, lake, said), every=1)
            assert (lake / "offsets").exists() == (not named)


def said_by_sampler(walled: Walled, lake: Path, named: str) -> bool:
    """Whether a sample is stored, and this is said of the groups (nothing: all were read)."""
    servers = ("--bootstrap-servers", walled.kafka.bootstrap_servers, "--command-config", str(walled.command_config))
    command = (COMMAND, "pipeline", "sample", *servers, "--lake", str(lake))
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    said = "consumer groups cannot be read" in done.stderr
    return done.returncode == 0 and said == bool(named) and named in done.stderr


def commit(kafka: KafkaCluster, group: str, topic: str) -> None:
    """Offset 0, as admin; again until the topic of offsets has been created."""
    consumer = Consumer(kafka.client_config(**{"group.id": group}))

    def committed() -> bool:
        with suppress(KafkaException):
            consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
            return True
        return False

    wait_until(f"{group} commits", committed, every=1)
    consumer.close()
