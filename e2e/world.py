"""Shared by the operator's end-to-end tests: their own topics and resources, and Kafka as a client sees it.

Tests keep moves in flight with a throttle at which a copy takes half a minute, and release them with a patch: nothing
waits for a fixed time. This module does not import the product and does not judge results: Kafka's tools do.
"""

import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType

from e2e.bench.judge import Judge, Key, PartitionState
from e2e.bench.kafka import KafkaCluster
from e2e.bench.kube import KubeCluster, KubectlError
from e2e.bench.load import create_topics, fill
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.clients import Clients, adding_replicas, running
from e2e.rebalance import GROUP_VERSION, KIND, NAMESPACE, Rebalance
from e2e.sampler import Sampler
from kafka import KafkaAdminClient
from kafka import TopicPartition as ClientPartition

THROTTLE_KIND = "kafkareassignmentthrottles.kafkarebalance.dev"
BIG = 2_000_000
"""Bytes of a partition whose copy takes half a minute at CRAWL: much longer than the actions of a test."""
SMALL = 1_000
CRAWL = {"leaderRate": "64Ki", "followerRate": "64Ki"}
CRAWL_BYTES = "65536"
SLOW = {"leaderRate": "8Ki", "followerRate": "8Ki"}
SLOW_BYTES = "8192"
"""A copy of a BIG partition takes four minutes if its batches are FINE: time for many calls on a busy machine."""
FINE = 65_536
FAST = {"leaderRate": "500Mi", "followerRate": "500Mi"}
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_LIST = "leader.replication.throttled.replicas"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
FOLLOWER_LIST = "follower.replication.throttled.replicas"
ON_THREE = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
"""Replicas of a cluster to which brokers 4 and 5 were just added."""

_CONFIGS = "kafka.admin.ConfigCommand"
_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
_REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"

# kafka-python logs every request.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class World:
    """The view of one test: its own topics and resources on the shared clusters, deleted by `close`."""

    def __init__(
        self, kafka: KafkaCluster, kube: KubeCluster, operator: OperatorProcess, unique: Callable[[str], str]
    ) -> None:
        self.kafka = kafka
        self.kube = kube
        self.operator = operator
        self.judge = Judge(kafka)
        self.unique = unique
        self._clients = Clients(kafka)
        self._topics: list[str] = []
        self._objects: list[tuple[str, str, str]] = []

    def topic(
        self,
        name: str,
        replicas: Sequence[Sequence[int]],
        sizes: Sequence[int] | int = BIG,
        *,
        batch_bytes: int = 500_000,
        **configs: str,
    ) -> str:
        """Create a topic with this many bytes per partition, in such batches; a config `a_b` stands for `a.b`."""
        topic = self.empty_topic(name, replicas, **configs)
        each = [sizes] * len(replicas) if isinstance(sizes, int) else sizes
        partitions = {(topic, partition): size for partition, size in enumerate(each)}
        fill(self.kafka, partitions, batch_bytes=batch_bytes)
        return topic

    def empty_topic(self, name: str, replicas: Sequence[Sequence[int]], **configs: str) -> str:
        """Create a topic without records."""
        topic = self.unique(name)
        create_topics(self.kafka, {topic: replicas}, {key.replace("_", "."): value for key, value in configs.items()})
        self._topics.append(topic)
        return topic

    def skewed(self, name: str, *sizes: int, **configs: Any) -> str:
        """Create a topic with one partition per size, all on brokers 1, 2 and 3."""
        return self.topic(name, [ON_THREE[at % 3] for at in range(len(sizes))], sizes, **configs)

    def rebalance(
        self,
        name: str,
        *topics: str,
        throttle: Mapping[str, Any] = CRAWL,
        kafka: Any = None,
        namespace: str = NAMESPACE,
        **spec: Any,
    ) -> Rebalance:
        """Apply a KafkaRebalance of these topics.

        Brokers get less time to settle than by default, because other tests stop and start them.
        """
        spec["execution"] = {"brokerSettleTime": "10s", **spec.get("execution", {})}
        body = {
            "kafka": kafka or {"bootstrapServers": self.kafka.bootstrap_servers},
            "topics": {"include": list(topics)},
            "throttle": dict(throttle),
            **spec,
        }
        return Rebalance(self.kube, self._apply("KafkaRebalance", KIND, name, body, namespace), body, namespace)

    def throttle(self, name: str, **spec: Any) -> str:
        """Apply a KafkaReassignmentThrottle for the shared cluster; returns its name."""
        kafka = {"bootstrapServers": self.kafka.bootstrap_servers}
        return self._apply("KafkaReassignmentThrottle", THROTTLE_KIND, name, {"kafka": kafka, **spec})

    def secret(self, name: str, **data: str) -> str:
        """Apply a Secret; returns its name."""
        unique = self.unique(name)
        self._objects.append(("secrets", unique, NAMESPACE))
        metadata = {"name": unique, "namespace": NAMESPACE}
        self.kube.apply(json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}))
        return unique

    def config_map(self, name: str, **data: str) -> str:
        """Apply a ConfigMap; returns its name."""
        unique = self.unique(name)
        self._objects.append(("configmaps", unique, NAMESPACE))
        metadata = {"name": unique, "namespace": NAMESPACE}
        self.kube.apply(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
        return unique

    def planned(self, rebalance: Rebalance, before: Mapping[Key, PartitionState]) -> Any:
        """The offline plan of `kafka-rebalance plan` for the same resource and these partitions."""
        cluster = {
            "brokers": [{"id": broker, "rack": self.kafka.racks[broker]} for broker in self.kafka.brokers],
            "partitions": [
                {"topic": topic, "partition": partition, "replicas": state.replicas}
                for (topic, partition), state in before.items()
            ],
        }
        resource = {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": "KafkaRebalance", "spec": rebalance.spec}
        with tempfile.TemporaryDirectory() as directory:
            paths = Path(directory, "cluster.json"), Path(directory, "rebalance.yaml")
            for path, document in zip(paths, (cluster, resource), strict=True):
                path.write_text(json.dumps(document))
            files = ("--cluster", str(paths[0]), "--rebalance", str(paths[1]))
            return json.loads(self.command("plan", "-o", "json", *files))

    def command(self, *arguments: str) -> str:
        """Run `kafka-rebalance` as the cluster's administrator; returns its output."""
        program = str(Path(sys.executable).with_name("kafka-rebalance"))
        env = {**os.environ, "KUBECONFIG": str(self.kube.admin_kubeconfig)}
        done = subprocess.run([program, *arguments], check=False, capture_output=True, text=True, env=env)
        assert done.returncode == 0, f"{' '.join(arguments)}: exit code {done.returncode}: {done.stderr}"
        return done.stdout

    # -- Kafka as a client sees it ------------------------------------------------------------------------------

    def partitions(self, topic: str) -> dict[int, PartitionState]:
        """Replicas, leader and ISR from metadata."""
        known = self._clients.admin().list_topics(topic, timeout=120).topics[topic].partitions
        return {
            number: PartitionState(tuple(found.replicas), found.leader, frozenset(found.isrs))
            for number, found in known.items()
        }

    def epochs(self, topic: str) -> dict[int, int]:
        """The leader epoch of each partition; every election and every change of the replicas raises it."""
        wanted = {TopicPartition(topic, number): OffsetSpec.latest() for number in self.partitions(topic)}
        admin = self._clients.admin()
        answers = admin.list_offsets(wanted)
        return {tp.partition: answer.result(timeout=120).leader_epoch for tp, answer in answers.items()}

    def moved(self, topic: str, before: Mapping[Key, PartitionState]) -> set[int]:
        """The partitions with completed moves: changed replicas, and no extra one."""
        return {
            number
            for number, found in self.partitions(topic).items()
            if len(found.replicas) == len(before[topic, number].replicas)
            and set(found.replicas) != set(before[topic, number].replicas)
        }

    def begun(self, topic: str, before: Mapping[Key, PartitionState]) -> set[int]:
        """The partitions in flight, and those with other replicas: also one that still has its old replica as well."""
        return {number for _, number in self.in_flight(topic)} | {
            number
            for number, found in self.partitions(topic).items()
            if set(found.replicas) != set(before[topic, number].replicas)
        }

    def in_flight(self, *topics: str) -> dict[Key, tuple[int, ...]]:
        """Reassignments of these topics, with the replicas that each adds."""
        listed = self._clients.asked(adding_replicas)
        return {key: adding for key, adding in listed.items() if key[0] in topics}

    @contextlib.contextmanager
    def reassignments(self) -> Iterator[Callable[[], dict[Key, tuple[int, ...]]]]:
        """Yields a function that lists all reassignments, over one connection."""
        client = KafkaAdminClient(bootstrap_servers=self._alive().split(","))
        try:
            yield lambda: adding_replicas(client)
        finally:
            client.close()

    def order(self, target: Mapping[Key, Sequence[int]]) -> None:
        """Send KIP-455's request as other tools do: unlike Kafka's tool it accepts brokers that are down."""
        client = KafkaAdminClient(bootstrap_servers=self._alive().split(","))
        try:
            client.alter_partition_reassignments({ClientPartition(*key): list(ids) for key, ids in target.items()})
        finally:
            client.close()

    def rates(self, broker: int) -> tuple[str | None, str | None]:
        """The throttle rates of a broker: leader, follower."""
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        entries = self._clients.admin().describe_configs([resource])[resource].result(timeout=120)
        found = {name: entries[name].value for name in (LEADER_RATE, FOLLOWER_RATE) if name in entries}
        return found.get(LEADER_RATE), found.get(FOLLOWER_RATE)

    def list_lengths(self, topic: str) -> dict[str, int]:
        """The bytes of both lists of throttled replicas of a topic."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self._clients.admin().describe_configs([resource])[resource].result(timeout=120)
        return {name: len(entries[name].value or "") for name in (LEADER_LIST, FOLLOWER_LIST)}

    def controller_epoch(self) -> int:
        """The epoch of the active controller, which is higher after each election, by Kafka's tool."""
        told = self.kafka.run_tool(_QUORUM, "--bootstrap-server", self._alive(), "describe", "--status")
        return next(int(line.split()[-1]) for line in told.splitlines() if line.startswith("LeaderEpoch"))

    def setting(self, broker: int, name: str) -> str | None:
        """The value of one config, as the broker returns it."""
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        entry = self._clients.admin().describe_configs([resource])[resource].result(timeout=120).get(name)
        return entry.value if entry is not None else None

    def unset(self, broker: int, name: str) -> None:
        """Delete a dynamic config of a broker, with Kafka's tool."""
        where = ("--alter", "--entity-type", "brokers", "--entity-name", str(broker), "--delete-config", name)
        self.kafka.run_tool(_CONFIGS, "--bootstrap-server", self._alive(), *where)

    @contextlib.contextmanager
    def broker_config(self, *entity: str, **values: str) -> Iterator[None]:
        """Set dynamic configs of `--entity-name` or `--entity-default` temporarily; `a_b` stands for `a.b`."""
        names = {key.replace("_", "."): value for key, value in values.items()}
        where = ("--bootstrap-server", self._alive(), "--alter", "--entity-type", "brokers", *entity)
        set_them = ",".join(f"{name}={value}" for name, value in names.items())
        self.kafka.run_tool(_CONFIGS, *where, "--add-config", set_them)
        try:
            yield
        finally:
            self.kafka.run_tool(_CONFIGS, *where, "--delete-config", ",".join(names))

    def sampling(self, *topics: str) -> Sampler:
        """Sample the reassignments of these topics every tenth of a second."""
        return Sampler(self.reassignments, topics)

    def wait_in_sync(self, *topics: str) -> None:
        """Wait until every replica of these topics is in the ISR."""

        def in_sync() -> bool:
            found = [state for topic in topics for state in self.partitions(topic).values()]
            return all(state.isr == set(state.replicas) for state in found)

        wait_until(f"the replicas of {topics} are in sync", in_sync)

    def reassign(self, target: Mapping[Key, Sequence[int]]) -> None:
        """Start a reassignment with Kafka's own tool, beside those in flight; does not wait for its completion."""
        rows = [{"topic": topic, "partition": at, "replicas": list(ids)} for (topic, at), ids in target.items()]
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=self.kafka.directory) as file:
            json.dump({"version": 1, "partitions": rows}, file)
            file.flush()
            where = ("--bootstrap-server", self._alive(), "--reassignment-json-file", file.name)
            self.kafka.run_tool(_REASSIGN, *where, "--execute", "--additional")

    # -- checks and cleanup -------------------------------------------------------------------------------------

    def assert_tidy(self) -> None:
        """By Kafka's tools: nothing is in flight, and no throttle is left on any broker or topic.

        A broker on a busy machine describes configs a while after the controller has deleted them.
        """
        assert self.judge.list_reassignments() == {}
        wait_until("no throttle is left", lambda: self.judge.throttles() == {}, every=1)

    def assert_reached(self, target: Mapping[Key, Sequence[int]]) -> None:
        """By Kafka's tools: every partition has these replicas in order, led by the first; nothing remains."""
        found = self.judge.describe_topics(*{topic for topic, _ in target})
        reached = {key: (found[key].replicas, found[key].leader) for key in target}
        assert reached == {key: (replicas, replicas[0]) for key, replicas in target.items()}
        self.assert_tidy()

    def close(self) -> None:
        """Delete everything this test created, in any state."""
        self.operator.ensure_running()
        for kind, name, namespace in reversed(self._objects):
            self._delete(kind, name, namespace)
        if self._topics:
            for deleted in self._clients.admin().delete_topics(self._topics).values():
                deleted.result(timeout=60)
        self._clients.close()

    def _delete(self, kind: str, name: str, namespace: str) -> None:
        """Delete without a rollback and wait until it is gone; does nothing if it does not exist."""
        plural, _, group = kind.partition(".")
        path = f"/apis/{GROUP_VERSION}" if group else "/api/v1"
        path += f"/namespaces/{namespace}/{plural}/{name}"

        def gone() -> bool:
            try:
                self.kube.api.get(path)
            except KubectlError as error:
                if "(NotFound)" in str(error):
                    return True
                raise
            return False

        if gone():
            return
        with contextlib.suppress(KubectlError):
            if kind == KIND:
                self.kube.api.send("PATCH", path, {"spec": {"deletionPolicy": "Abandon"}})
            self.kube.api.send("DELETE", path)
        wait_until(f"{kind} {namespace}/{name} is gone", gone)

    def _alive(self) -> str:
        return running(self.kafka)

    def _apply(self, kind: str, plural: str, name: str, spec: Mapping[str, Any], namespace: str = NAMESPACE) -> str:
        unique = self.unique(name)
        self._objects.append((plural, unique, namespace))
        metadata = {"name": unique, "namespace": namespace}
        body = {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
        self.kube.apply(json.dumps(body))
        return unique


def targets(plan: Mapping[str, Any]) -> dict[Key, tuple[int, ...]]:
    """The target replicas of the partitions that a plan, as returned by `World.planned`, changes."""
    return {(row["topic"], row["partition"]): tuple(row["replicas"]) for row in plan["partitions"]}
