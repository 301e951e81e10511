"""A broker that advertises the address of a broker of another cluster: no order gets to that cluster.

The servers of an inline connection may do that on purpose, and the address of a broker that was replaced may belong to
another cluster by now.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from e2e.bench.kafka import KafkaCluster
from e2e.bench.waiting import wait_until
from tests.contract.arranging import FOLLOWER_LIST, FOLLOWER_RATE, new_topic

from kafka_rebalance.errors import Refused
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, KafkaAdmin
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

pytestmark = pytest.mark.brokers

LOCAL, FOREIGN = 21, 1
"""Brokers of the misleading cluster; what it advertises for the second is broker 1 of the other cluster."""
TP = TopicPartition("foreign-broker", 0)


class MisleadingCluster(KafkaCluster):
    """Two brokers, one of which advertises this address."""

    def __init__(self, address: str) -> None:
        super().__init__({LOCAL: "a", FOREIGN: "b"})
        self._advertised = f"CLIENT://{address}"

    def wait_ready(self, timeout: float = 240) -> None:
        """Only the local broker can be asked."""
        both = {LOCAL, FOREIGN}
        wait_until("both are registered", partial(self._sees, LOCAL, both), timeout=timeout)

    def _write(self, node: int, properties: Mapping[str, str]) -> Path:
        changed = {"advertised.listeners": self._advertised} if node == FOREIGN else {}
        return super()._write(node, {**properties, **changed})


@pytest.fixture(scope="module")
def misleading(cluster: KafkaCluster) -> Iterator[MisleadingCluster]:
    new_topic(cluster, TP.topic, 1, 2, 3)
    with MisleadingCluster(cluster.address(FOREIGN)) as misleading:
        yield misleading


@pytest.fixture
async def misled(misleading: MisleadingCluster) -> AsyncIterator[KafkaAdmin]:
    """A client that takes the misleading cluster for its own."""
    for _ in range(20):  # any broker may answer first
        client = connect(ConnectionSettings(misleading.address(LOCAL)))
        if (await client.describe_cluster()).cluster_id == misleading.cluster_id:
            break
        await client.close()
    else:
        pytest.fail("the local broker has never answered first")
    yield client
    await client.close()


class TestOrders:
    async def test_of_brokers(self, admin: KafkaAdmin, misled: KafkaAdmin) -> None:
        with pytest.raises(Refused) as refused:
            await misled.alter_broker_configs({BrokerId(FOREIGN): [ConfigChange(FOLLOWER_RATE, ConfigOp.SET, "12345")]})
        assert refused.value.reason == "OtherCluster"
        found = await admin.broker_configs([BrokerId(FOREIGN)], [FOLLOWER_RATE])
        assert found[BrokerId(FOREIGN)][FOLLOWER_RATE].value != "12345"

    async def test_of_topics(self, admin: KafkaAdmin, misled: KafkaAdmin) -> None:
        with pytest.raises(Refused):
            await misled.alter_topic_configs({TP.topic: [ConfigChange(FOLLOWER_LIST, ConfigOp.APPEND, "0:1")]})
        assert (await admin.topic_configs([TP.topic], [FOLLOWER_LIST]))[TP.topic][FOLLOWER_LIST].value == ""

    async def test_of_partitions(self, cluster: KafkaCluster, admin: KafkaAdmin, misleading: MisleadingCluster) -> None:
        """Either broker may be named as the controller. Only the local one may get the order: it has no such topic."""
        for _ in range(8):
            client = connect(ConnectionSettings(misleading.address(LOCAL)))
            if (await client.describe_cluster()).cluster_id == misleading.cluster_id:
                with contextlib.suppress(Refused):
                    await client.alter_reassignments({TP: replicas_of(4, 2, 3)})
            await client.close()
        assert (await admin.describe_partitions([TP.topic]))[TP].replicas == (1, 2, 3)
        assert TP not in await admin.list_reassignments()
