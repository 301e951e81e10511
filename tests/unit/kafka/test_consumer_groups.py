"""What is made of the answers about consumer groups."""

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.kafka import consumer_groups
from kafka_rebalance.kafka.client_access import ClientAccess
from kafka_rebalance.kafka.confluent import ConfluentClient
from kafka_rebalance.kafka.consumer_groups import committed_offsets
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import TopicPartition


class Answering(ConfluentClient):
    """Answers by group."""

    def __init__(self, **answers):
        super().__init__(ClientAccess(ConnectionSettings("kafka-0:9092")))
        self.answers = answers

    async def ask_all(self, action, ask, *, of_one_broker=False):
        return self.answers


def of(*offsets, error=None):
    partitions = [ClientPartition("t", number, offset) for number, offset in enumerate(offsets)]
    return ConsumerGroupTopicPartitions("g", [*partitions, *([error] if error else [])])


async def read(most=10, **answers):
    return await committed_offsets(Answering(**answers), answers, most)


class TestCommittedOffsets:
    async def test_by_group(self):
        """Partitions without a commit have a negative offset."""
        found = await read(a=of(5, -1001, 0), b=of())
        assert dict(found) == {"a": {TopicPartition("t", 0): 5, TopicPartition("t", 2): 0}, "b": {}}
        assert found.errors == {}

    async def test_a_group_that_may_not_be_described_is_named(self):
        """It is an error of its own, and not one of all groups."""
        found = await read(a=of(5), secret=KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
        assert found.keys() == {"a"}
        assert isinstance(found.errors["secret"], Permanent)
        assert found.errors["secret"].reason == "KafkaAuthorizationFailed"
        assert "does not allow us to read the offsets of consumer group secret" in found.errors["secret"].message

    async def test_a_coordinator_that_does_not_answer(self):
        """Only its groups are not known."""
        found = await read(a=of(5), slow=KafkaError(KafkaError._TIMED_OUT))
        assert found.keys() == {"a"}
        assert isinstance(found.errors["slow"], Transient)

    async def test_a_group_that_was_deleted_meanwhile_reads_nothing(self):
        """It is neither found nor an error."""
        found = await read(gone=KafkaError(KafkaError.GROUP_ID_NOT_FOUND))
        assert (dict(found), found.errors) == ({}, {})

    async def test_more_offsets_than_the_limit_are_refused(self):
        """Partitions without a commit do not count."""
        assert len(await read(most=3, a=of(5, -1001, 0), b=of(1))) == 2
        with pytest.raises(Permanent, match="they have 4 committed offsets, more than the limit of 3") as refused:
            await read(most=3, a=of(5, -1001, 0), b=of(1, 2))
        assert refused.value.reason == "ConsumptionUnknown"

    async def test_more_groups_than_the_limit_are_refused(self, monkeypatch):
        """Before anything is asked: there is a call for each of them."""
        monkeypatch.setattr(consumer_groups, "MOST_GROUPS", 2)
        assert len(await read(a=of(5), b=of(1))) == 2
        with pytest.raises(Permanent, match="there are 3 consumer groups, more than the limit of 2") as refused:
            await read(a=of(5), b=of(1), c=of(1))
        assert refused.value.reason == "ConsumptionUnknown"

    async def test_without_groups_nothing_is_asked(self):
        """librdkafka refuses an empty list."""
        assert dict(await read()) == {}
