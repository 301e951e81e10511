"""One real cluster for the contract suite, and its common fixtures."""

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
from tests.contract.log_dir_replicas import NewReplica, Replica
from tests.contract.observing import partition

from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.client_access import ClientAccess
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, KafkaAdmin
from kafka_rebalance.kafka.reassignment import ReassignmentClient
from kafka_rebalance.kafka.settings import kafka_python_config
from kafka_rebalance.model.topology import TopicPartition

HEAVY_PARTITIONS = 32


@pytest.fixture(scope="package")
def cluster() -> Iterator[KafkaCluster]:
    """Five brokers that keep their leaders, with a follower rate in their files: every source of a config occurs."""
    racks = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
    properties = {FOLLOWER_RATE: "1000000000", "replica.fetch.max.bytes": str(BITE_BYTES)}
    with KafkaCluster(racks, properties=properties, automatic_leaders=False) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def family(cluster: KafkaCluster) -> str:
    """The release line under test, such as 4.3."""
    return ".".join(cluster.jars.version.split(".")[:2])


@pytest.fixture
async def admin(cluster: KafkaCluster) -> AsyncIterator[KafkaAdmin]:
    admin = connect(settings_of(cluster))
    yield admin
    await admin.close()


@pytest.fixture
async def raw(cluster: KafkaCluster) -> AsyncIterator[ReassignmentClient]:
    """KIP-455's requests without our adapter's rule: can redirect a reassignment in flight."""
    client = ReassignmentClient(ClientAccess(settings_of(cluster)))
    yield client
    await client.close()


@pytest.fixture
def kafka_python(cluster: KafkaCluster) -> Iterator[KafkaAdminClient]:
    """The plain kafka-python client."""
    client = KafkaAdminClient(**kafka_python_config(settings_of(cluster)))
    yield client
    client.close()


@pytest.fixture
def librdkafka(cluster: KafkaCluster) -> AdminClient:
    """The plain librdkafka client; kept while a test waits for its results."""
    return cluster.admin()


@pytest.fixture(scope="package")
def heavy_partitions(cluster: KafkaCluster) -> Iterator[TopicPartition]:
    """Partitions on [1, 2, 3]; each test uses one."""
    return iter(new_heavy_topic(cluster, "heavy", *[[1, 2, 3]] * HEAVY_PARTITIONS))


@pytest.fixture
async def heavy(heavy_partitions: Iterator[TopicPartition], admin: KafkaAdmin) -> AsyncIterator[TopicPartition]:
    """A new partition for each test, on [1, 2, 3], with enough data that `crawling` keeps it in flight."""
    tp = next(heavy_partitions)
    await admin.elect_preferred([tp])  # an earlier test may have killed the leader
    await partition(admin, tp, "is led by its first", lambda s: s.leader == 1 and s.isr == {1, 2, 3})
    yield tp
    await put_to_rest(admin, tp)


@pytest.fixture
async def crawling(admin: KafkaAdmin) -> AsyncIterator[None]:
    """Broker 4 fetches throttled replicas so slowly that copies to it stay in flight."""
    await throttle(admin, "1")
    yield
    await throttle(admin, None)


@pytest.fixture
async def rates_put_back(admin: KafkaAdmin) -> AsyncIterator[None]:
    """Removes all rates that a test has set."""
    yield
    deletions = [ConfigChange(name, ConfigOp.DELETE) for name in (LEADER_RATE, FOLLOWER_RATE)]
    assert await admin.alter_broker_configs(dict.fromkeys(EVERYONE, deletions)) == dict.fromkeys(EVERYONE)


@pytest.fixture
def new_replica(cluster: KafkaCluster, admin: KafkaAdmin) -> NewReplica:
    """Of a cluster whose brokers have several log dirs."""

    def make(*, both: bool = False) -> Replica:
        return Replica(cluster, admin, both=both)

    return make


@pytest.fixture(scope="package")
def secured() -> Iterator[KafkaCluster]:
    """One broker with authentication, where only admin is authorized."""
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    rights = {"authorizer.class.name": authorizer, "super.users": "User:admin"}
    with KafkaCluster({1: "a"}, sasl=True, properties=rights) as cluster:
        yield cluster
