"""Requests that create more than 10,000 records: a creation fails as a whole, an alteration is executed in part.

Uses its own cluster, because brokers need minutes to delete thousands of partitions. Broker 2 is dead, so that
reassignments to it stay in flight and nothing is copied.
"""

from collections.abc import AsyncIterator, Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic
from e2e.bench.kafka import KafkaCluster
from kafka.admin import KafkaAdminClient
from kafka.errors import UnknownError
from tests.contract.arranging import settings_of

from kafka import TopicPartition as ClientPartition
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import AlterCode, KafkaAdmin
from kafka_rebalance.kafka.settings import kafka_python_config
from kafka_rebalance.model.topology import TopicPartition, replicas_of

pytestmark = pytest.mark.brokers

TOPICS, PARTITIONS = 3, 4_000
RECORDS = 10_000


@pytest.fixture(scope="module")
def large() -> Iterator[KafkaCluster]:
    with KafkaCluster({1: "a", 2: "b"}) as cluster:
        cluster.kill9(2)
        cluster.wait_gone(2)
        yield cluster


@pytest.fixture
async def admin(large: KafkaCluster) -> AsyncIterator[KafkaAdmin]:
    admin = connect(settings_of(large))
    yield admin
    await admin.close()


class TestTenThousandRecords:
    """The controller's limit."""

    def test_a_topic_that_is_too_large(self, large: KafkaCluster) -> None:
        client = large.admin()
        topic = NewTopic("too-large", num_partitions=RECORDS, replication_factor=1)
        with pytest.raises(KafkaException, match="excessively large batch operation"):
            client.create_topics([topic])["too-large"].result(timeout=60)

    async def test_an_alteration_that_is_too_large(self, large: KafkaCluster, admin: KafkaAdmin) -> None:
        """10,000 partitions are accepted, the rest gets an unknown error; our client sends smaller requests."""
        librdkafka = large.admin()
        for topic in range(TOPICS):
            new = NewTopic(f"large-{topic}", num_partitions=PARTITIONS, replica_assignment=[[1]] * PARTITIONS)
            librdkafka.create_topics([new], request_timeout=60)[new.topic].result(timeout=60)
        every = [TopicPartition(f"large-{topic}", n) for topic in range(TOPICS) for n in range(PARTITIONS)]

        patient = {"request_timeout_ms": 60_000}  # for one request with everything; ours are smaller
        client = KafkaAdminClient(**{**kafka_python_config(settings_of(large)), **patient})
        orders = {ClientPartition(tp.topic, tp.partition): [1, 2] for tp in every}
        answers = client.alter_partition_reassignments(orders)
        client.close()
        accepted = {TopicPartition(*tp) for tp, error in answers.items() if error is None}
        assert len(accepted) == RECORDS
        assert {error for error in answers.values() if error is not None} == {UnknownError}
        assert set(await admin.list_reassignments()) == accepted

        rest = {tp: replicas_of(1, 2) for tp in every if tp not in accepted}
        assert await admin.alter_reassignments(rest) == dict.fromkeys(rest, AlterCode.OK)
        assert len(await admin.list_reassignments()) == len(every)
        assert await admin.alter_reassignments(dict.fromkeys(every)) == dict.fromkeys(every, AlterCode.OK)
        assert await admin.list_reassignments() == {}
