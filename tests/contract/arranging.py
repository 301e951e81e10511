"""Setup and cleanup of the tests: topics, slow copies, cancelled reassignments."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence

from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics
from tests.contract.observing import until

from kafka_rebalance.kafka.ports import AlterCode, ConfigChange, ConfigOp, KafkaAdmin
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition

FOLLOWER_RATE = "follower.replication.throttled.rate"
FOLLOWER_LIST = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
LEADER_LIST = "leader.replication.throttled.replicas"
EVERYONE = tuple(BrokerId(broker) for broker in (1, 2, 3, 4, 5))
BITE_BYTES = 65_536
RECORD_BYTES = BITE_BYTES - 5_000
RECORDS = 6


def settings_of(cluster: KafkaCluster) -> ConnectionSettings:
    return ConnectionSettings(cluster.bootstrap_servers)


def new_topic(cluster: KafkaCluster, topic: str, *replicas: int) -> TopicPartition:
    """One empty partition on these replicas."""
    create_topics(cluster, {topic: [list(replicas)]})
    return TopicPartition(topic, 0)


def new_heavy_topic(cluster: KafkaCluster, topic: str, *assignments: Sequence[int]) -> list[TopicPartition]:
    """Partitions with records, whose replicas are copied at their broker's throttled rate.

    A quota lets one fetch pass and then nothing until its window of 11 s is over. A batch that is larger than the
    maximum fetch would pass as a whole, so each record is a batch and a fetch of its own ("bite"): six of them take a
    minute.
    """
    create_topics(cluster, {topic: [list(replicas) for replicas in assignments]}, {FOLLOWER_LIST: "*"})
    partitions = [TopicPartition(topic, n) for n in range(len(assignments))]
    write(cluster, partitions)
    return partitions


def write(cluster: KafkaCluster, partitions: Sequence[TopicPartition]) -> None:
    """Write six records, each a fetch of its own, to each partition, acknowledged by all in-sync replicas."""
    settings = {"batch.num.messages": 1, "max.in.flight": 5, "linger.ms": 0}
    producer = cluster.producer(acks="all", **settings)
    payload = os.urandom(RECORD_BYTES)
    for _ in range(RECORDS):
        for tp in partitions:
            producer.produce(tp.topic, payload, partition=tp.partition)
            producer.poll(0)
    assert producer.flush(120) == 0


async def throttle(admin: KafkaAdmin, rate: str | None, broker: int = 4, name: str = FOLLOWER_RATE) -> None:
    """Limit a broker to this many bytes per second for throttled replicas, or (None) restore the rate of its file."""
    change = ConfigChange(name, ConfigOp.DELETE if rate is None else ConfigOp.SET, rate or "")
    assert await admin.alter_broker_configs({BrokerId(broker): [change]}) == {broker: None}


async def change_lists(admin: KafkaAdmin, topic: str, op: ConfigOp, leader: str = "", follower: str = "") -> None:
    """Change the throttled lists of a topic, each if a value is given; DELETE removes both."""
    values = ((LEADER_LIST, leader), (FOLLOWER_LIST, follower))
    changes = [ConfigChange(name, op, value) for name, value in values if value or op is ConfigOp.DELETE]
    assert await admin.alter_topic_configs({topic: changes}) == {topic: None}


@contextlib.contextmanager
def default_of_all_brokers(cluster: KafkaCluster, name: str, value: str) -> Iterator[None]:
    """A temporary dynamic default: librdkafka has no resource for all brokers, Kafka's own tool has."""
    where = ("--bootstrap-server", cluster.bootstrap_servers, "--entity-type", "brokers", "--entity-default", "--alter")
    cluster.run_tool("kafka.admin.ConfigCommand", *where, "--add-config", f"{name}={value}")
    try:
        yield
    finally:
        cluster.run_tool("kafka.admin.ConfigCommand", *where, "--delete-config", name)


async def begin(admin: KafkaAdmin, orders: Mapping[TopicPartition, Replicas]) -> None:
    """Submit reassignments, all of which must be accepted."""
    assert await admin.alter_reassignments(orders) == dict.fromkeys(orders, AlterCode.OK)


async def put_to_rest(admin: KafkaAdmin, *partitions: TopicPartition) -> None:
    """Cancel the reassignments in flight."""
    listed = await admin.list_reassignments()
    await admin.alter_reassignments({tp: None for tp in partitions if tp in listed})
    await until(f"{partitions} are at rest", admin.list_reassignments, lambda rows: not rows.keys() & set(partitions))
