"""One real cluster for the contract suite, and what every test of it starts from."""

from collections.abc import AsyncIterator, Iterator

import pytest
from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics, fill

from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, KafkaAdmin
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import BrokerId

MIB = 2**20
CRAWL = "10240"
# Broker 5 is never a source or a destination of these: tests may kill it.
SLOW_TOPICS = ("slow-superset", "slow-swap", "slow-refused", "slow-redirect", "slow-elect")


@pytest.fixture(scope="package")
def cluster() -> Iterator[KafkaCluster]:
    """Five brokers; the follower rate is set in their files, so that every source of a config is there to be seen."""
    racks = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
    with KafkaCluster(racks, properties={"follower.replication.throttled.rate": "1000000000"}) as cluster:
        create_topics(
            cluster, {topic: [[1, 2, 3]] for topic in SLOW_TOPICS}, {"follower.replication.throttled.replicas": "0:4"}
        )
        fill(cluster, {(topic, 0): 4 * MIB for topic in SLOW_TOPICS})
        yield cluster


@pytest.fixture
async def admin(cluster: KafkaCluster) -> AsyncIterator[KafkaAdmin]:
    admin = connect(ConnectionSettings(cluster.bootstrap_servers))
    yield admin
    await admin.close()


@pytest.fixture
async def crawling(admin: KafkaAdmin) -> AsyncIterator[None]:
    """Broker 4 fetches throttled replicas so slowly that what is sent to it stays in flight."""
    name, broker = "follower.replication.throttled.rate", BrokerId(4)
    assert await admin.alter_broker_configs({broker: [ConfigChange(name, ConfigOp.SET, CRAWL)]}) == {4: None}
    yield
    assert await admin.alter_broker_configs({broker: [ConfigChange(name, ConfigOp.DELETE)]}) == {4: None}


@pytest.fixture(scope="package")
def secured() -> Iterator[KafkaCluster]:
    """One broker that asks who is there, and lets nobody but its admin do anything."""
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    rights = {"authorizer.class.name": authorizer, "super.users": "User:admin"}
    with KafkaCluster({1: "a"}, sasl=True, properties=rights) as cluster:
        yield cluster
