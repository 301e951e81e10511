"""Two answers of librdkafka with all topics: what they share."""

import asyncio
import gc
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from kafka_rebalance.kafka.client_access import ClientAccess
from kafka_rebalance.kafka.confluent import ConfluentClient
from kafka_rebalance.kafka.confluent_values import partition_states
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import TopicPartition


def described(*leaders):
    """A topic with these leaders of its partitions, as librdkafka describes it."""
    brokers = [SimpleNamespace(id=broker) for broker in (1, 2)]
    infos = [
        SimpleNamespace(id=number, leader=SimpleNamespace(id=leader), replicas=brokers, isr=brokers)
        for number, leader in enumerate(leaders)
    ]
    return SimpleNamespace(topic_id="AAAAAAAAAAAAAAAAAAAAAQ", partitions=infos)


class TestPartitionStates:
    def test_what_is_as_before_is_the_same_object(self):
        """An engine keeps one reading while the next one is made: 60 MB for 267,000 partitions."""
        before = partition_states({"t": described(1, 1)})
        now = partition_states({"t": described(1, 2), "u": described(1)}, before)
        same, moved = TopicPartition("t", 0), TopicPartition("t", 1)
        assert now[same] is before[same]
        assert next(iter(now)) is before[same].tp
        assert [state.leader for state in now.values()] == [1, 2, 1]
        assert now[moved] is not before[moved]

    def test_errors_are_left_out(self):
        """The caller reports them."""
        assert partition_states({"t": KafkaError(KafkaError._TIMED_OUT)}) == {}


class TestDescribed:
    @pytest.fixture
    def client(self, monkeypatch):
        client = ConfluentClient(ClientAccess(ConnectionSettings("kafka:9092")))

        async def answers(*_, **__):
            return {"t": described(1, 2)}

        async def topics(_):
            return SimpleNamespace(topics={"t": None})

        monkeypatch.setattr(client, "ask_all", answers)
        monkeypatch.setattr(client, "_in_thread", topics)
        return client

    async def test_an_answer_shares_with_the_one_before_while_that_is_kept(self, client):
        first = await client.describe_partitions(None)
        assert all(second is first[tp] for tp, second in (await client.describe_partitions(None)).items())

    async def test_nothing_is_kept_for_nobody(self, client):
        """A sampler forgets what it has read."""
        first = await client.describe_partitions(None)
        was_kept = client._last_answers.newest is first
        del first
        await asyncio.sleep(0)  # the event loop refers to what this step was given
        gc.collect()
        assert (was_kept, client._last_answers.newest) == (True, {})

    async def test_named_topics_are_no_answer_with_all(self, client):
        first = await client.describe_partitions(None)
        await client.describe_partitions(["t"])
        assert client._last_answers.newest is first
