"""One real cluster for the contract suite, and what every test of it starts from."""

from collections.abc import AsyncIterator, Iterator

import pytest
from confluent_kafka.admin import AdminClient
from e2e.bench.kafka import KafkaCluster
from kafka.admin import KafkaAdminClient
from tests.contract.arranging import (
    BITE_BYTES,
    EVERYONE,
    FOLLOWER_RATE,
    LEADER_RATE,
    new_heavy_topic,
    put_to_rest,
    settings_of,
    throttle,
)
from tests.contract.observing import partition

from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, KafkaAdmin
from kafka_rebalance.kafka.reassignment import ReassignmentClient
from kafka_rebalance.kafka.settings import kafka_python_config
from kafka_rebalance.model.topology import TopicPartition

HEAVY_PARTITIONS = 32


@pytest.fixture(scope="package")
def cluster() -> Iterator[KafkaCluster]:
    """Five brokers; the follower rate is set in their files, so that every source of a config is there to be seen."""
    racks = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
    properties = {FOLLOWER_RATE: "1000000000", "replica.fetch.max.bytes": str(BITE_BYTES)}
    with KafkaCluster(racks, properties=properties) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def family(cluster: KafkaCluster) -> str:
    """The version family under test: 4.3 or 3.9."""
    return ".".join(cluster.jars.version.split(".")[:2])


@pytest.fixture
async def admin(cluster: KafkaCluster) -> AsyncIterator[KafkaAdmin]:
    admin = connect(settings_of(cluster))
    yield admin
    await admin.close()


@pytest.fixture
async def raw(cluster: KafkaCluster) -> AsyncIterator[ReassignmentClient]:
    """KIP-455's calls without the rule that our adapter adds: it redirects what is in flight."""
    client = ReassignmentClient(settings_of(cluster))
    yield client
    await client.close()


@pytest.fixture
def kafka_python(cluster: KafkaCluster) -> Iterator[KafkaAdminClient]:
    """kafka-python without anything of ours."""
    client = KafkaAdminClient(**kafka_python_config(settings_of(cluster)))
    yield client
    client.close()


@pytest.fixture
def librdkafka(cluster: KafkaCluster) -> AdminClient:
    """librdkafka without anything of ours; held for as long as a test waits for its answers."""
    return cluster.admin()


@pytest.fixture(scope="package")
def heavy_partitions(cluster: KafkaCluster) -> Iterator[TopicPartition]:
    """Partitions on [1, 2, 3] for the tests to use up."""
    return iter(new_heavy_topic(cluster, "heavy", *[[1, 2, 3]] * HEAVY_PARTITIONS))


@pytest.fixture
async def heavy(heavy_partitions: Iterator[TopicPartition], admin: KafkaAdmin) -> AsyncIterator[TopicPartition]:
    """A partition of its own for each test, on [1, 2, 3], with so many bytes that `crawling` keeps it in flight."""
    tp = next(heavy_partitions)
    await admin.elect_preferred([tp])  # a test before may have killed the leader
    await partition(admin, tp, "is led by its first", lambda s: s.leader == 1 and s.isr == {1, 2, 3})
    yield tp
    await put_to_rest(admin, tp)


@pytest.fixture
async def crawling(admin: KafkaAdmin) -> AsyncIterator[None]:
    """Broker 4 fetches throttled replicas so slowly that what is sent to it stays in flight."""
    await throttle(admin, "1")
    yield
    await throttle(admin, None)


@pytest.fixture
async def rates_put_back(admin: KafkaAdmin) -> AsyncIterator[None]:
    """Whatever rates a test sets are gone afterwards."""
    yield
    deletions = [ConfigChange(name, ConfigOp.DELETE) for name in (LEADER_RATE, FOLLOWER_RATE)]
    assert await admin.alter_broker_configs(dict.fromkeys(EVERYONE, deletions)) == dict.fromkeys(EVERYONE)


@pytest.fixture(scope="package")
def secured() -> Iterator[KafkaCluster]:
    """One broker that asks who is there, and lets nobody but its admin do anything."""
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    rights = {"authorizer.class.name": authorizer, "super.users": "User:admin"}
    with KafkaCluster({1: "a"}, sasl=True, properties=rights) as cluster:
        yield cluster
