"""Runs `kafka-rebalance status` for its tests: the whole program with an API server and a Kafka in memory."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from unittest.mock import patch

from tests.fakes.whole_program import run_program

from kafka_rebalance.api.v1alpha1 import parse_rebalance, planning_hash
from kafka_rebalance.kafka.ports import Answers, ClusterInfo, LogDir
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, TopicPartition, replicas_of

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
UID = "3f2a91c4-0000-4000-8000-000000000000"
SPEC = {"kafka": {"bootstrapServers": "kafka:9092"}}


def tp(number, topic="t"):
    return TopicPartition(topic, number)


def partition(number, replicas, *, adding=(), removing=(), topic="t", topic_id="", leader=None):
    present = replicas_of(*replicas)
    isr = frozenset(present) - set(adding)
    led = leader if leader is not None else next((b for b in present if b in isr), None)
    return PartitionState(tp(number, topic), topic_id, present, isr, led, replicas_of(*adding), replicas_of(*removing))


def resource(*, status=None, metadata=None, spec=None):
    about = {"name": "r", "namespace": "kafka", "uid": UID, "generation": 1}
    return {"metadata": about | (metadata or {}), "spec": SPEC | (spec or {}), "status": status or {}}


def open_run_of(body, plan_hash="sha256:0", **more):
    hashed = planning_hash(parse_rebalance(body).spec)
    return Run(UID, "kafka", "r", "cluster-1", "run-1", hashed, plan_hash, NOW, **more)


@dataclass
class Kafka:
    """A cluster in which every partition of the plan is being copied to broker 3."""

    partitions: dict
    cluster_id: str = "cluster-1"
    failure: Exception | None = None
    settings: list = field(default_factory=list)
    closed: bool = False

    def connect(self, settings):
        self.settings.append(settings)
        return self

    async def describe_cluster(self):
        if self.failure:
            raise self.failure
        return ClusterInfo(self.cluster_id, {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2, 3)})

    async def describe_partitions(self, topics=None):
        return Answers({at: state for at, state in self.partitions.items() if topics is None or at.topic in topics})

    async def log_dirs(self, brokers):
        return Answers({b: (LogDir("/d", dict.fromkeys(self.partitions, 400)),) for b in brokers})

    async def close(self):
        self.closed = True


def run(kube, *arguments, kafka=None):
    """Run the whole program, exit codes included; ``kube.namespace`` is the operator namespace that it used."""

    def connect(namespace=None, **chosen):
        kube.namespace = namespace or kube.namespace
        kube.connected_with = chosen
        return kube

    with (
        patch.object(KubeClient, "connect", connect),
        patch("kafka_rebalance.cli.commands.asked_of_kafka.connect", kafka.connect if kafka else None),
    ):
        return run_program("status", *arguments)
