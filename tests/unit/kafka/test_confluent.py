"""librdkafka's client is freed where nothing waits for it: this joins threads, and one may be resolving a name."""

import asyncio
import gc
import threading
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, ResourceType

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka import confluent
from kafka_rebalance.kafka.client_access import ClientAccess
from kafka_rebalance.kafka.confluent import ConfluentClient
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import TopicPartition

TOPICS = ("1", "2", "3")
CHANGE = ConfigChange("a", ConfigOp.SET, "b")


class Library:
    """Stands for librdkafka: freeing a client lasts until ``resolved`` is set. ``built_in``, ``freed_in``: threads.

    ``orders``: what was to be changed.
    """

    def __init__(self):
        self.resolved = threading.Event()
        self.built_in, self.freed_in, self.orders = [], [], []

    def client(self, config):
        self.built_in.append(threading.current_thread())
        return _Client(self, config)


class _Client:
    def __init__(self, library, config):
        self._library, self._callback = library, config["error_cb"]  # a cycle, as with the library

    def describe_topics(self, topics, request_timeout):
        answer = Future()
        answer.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        return {"t": answer}

    def incremental_alter_configs(self, resources, request_timeout):
        self._library.orders += resources
        return {}

    def elect_leaders(self, election, partitions):
        self._library.orders += partitions
        return Future()

    @staticmethod  # a method in C leaves no frame that refers to the client
    def list_topics(**_):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def poll(self, seconds):
        pass

    def __del__(self):
        self._library.freed_in.append(threading.current_thread())
        self._library.resolved.wait(1)


@pytest.fixture
def library(monkeypatch):
    library = Library()
    monkeypatch.setattr(confluent, "AdminClient", library.client)
    monkeypatch.setattr(confluent, "_CLOSE_SECONDS", 0.01)
    yield library
    library.resolved.set()


async def failed(call):
    """The error, which refers to the frames that it has come through."""
    with pytest.raises(Transient) as error:
        await call
    return error.value


async def freed(library, count):
    async with asyncio.timeout(60):
        while len(library.freed_in) < count:
            gc.collect()
            await asyncio.sleep(0.01)
    assert threading.main_thread() not in library.freed_in


class TestFreeing:
    @pytest.mark.parametrize("topics", [["t"], None])
    async def test_closing(self, library, topics):
        """Also after an error: its frames refer to the client."""
        client = ConfluentClient(ClientAccess(ConnectionSettings("nowhere:9092")))
        error = await failed(client.describe_partitions(topics))
        await client.close()
        del client, error
        await freed(library, 1)

    async def test_a_client_that_is_replaced(self, library):
        """After two time-outs in a row."""
        client = ConfluentClient(ClientAccess(ConnectionSettings("nowhere:9092")))
        for _ in range(2):
            await failed(client.describe_partitions(["t"]))
        await freed(library, 1)
        await client.close()


class TestClosing:
    async def test_a_call_that_waits_for_a_thread(self, library):
        """It fails. If it were cancelled, the task that has made it would end, and nothing would be reported."""
        client, answered = ConfluentClient(ClientAccess(ConnectionSettings("nowhere:9092"))), threading.Event()
        under_way = [asyncio.create_task(client._in_thread(answered.wait)) for _ in range(confluent._THREADS)]
        waits = asyncio.create_task(client.reach())
        await asyncio.sleep(0)
        await client.close()
        answered.set()
        await asyncio.wait({waits, *under_way})
        assert not waits.cancelled()
        assert str(waits.exception()) == "the client was closed"
        assert library.built_in == []


class TestOrders:
    @pytest.mark.parametrize(
        ("order", "changes"),
        [
            ("alter_topic_configs", {"t": []}),
            ("alter_broker_configs", {1: []}),
            ("elect_preferred", [TopicPartition("t", 0)]),
        ],
    )
    async def test_the_lease_is_lost_before_the_thread_sends(self, library, order, changes):
        """All threads may be busy, or the process was suspended."""
        client = ConfluentClient(
            ClientAccess(ConnectionSettings("nowhere:9092"), before_order=Fence(lambda: False).check)
        )
        error = await failed(getattr(client, order)(changes))
        await client.close()
        assert (error.reason, library.orders) == ("NotLeading", [])


class TestBuilding:
    async def test_where(self, library):
        """In a thread: it starts the threads of librdkafka and reads keys, and the event loop must not wait."""
        client = ConfluentClient(ClientAccess(ConnectionSettings("nowhere:9092")))
        assert library.built_in == []
        await failed(client.describe_partitions(["t"]))
        assert len(library.built_in) == 1
        assert threading.main_thread() not in library.built_in
        await client.close()


class TestErrors:
    """A broker may answer with an error and a long text for each of thousands of topics. Secrets are masked in all."""

    CALLS = (
        lambda client: client.describe_partitions(TOPICS),
        lambda client: client.authorized_operations(TOPICS),
        lambda client: client.topic_configs(TOPICS, ["a"]),
        lambda client: client.broker_configs([1, 2, 3], ["a"]),
        lambda client: client.alter_topic_configs({topic: [CHANGE] for topic in TOPICS}),
        lambda client: client.alter_broker_configs({broker: [CHANGE] for broker in (1, 2, 3)}),
    )

    @pytest.fixture
    def masked(self, monkeypatch):
        """The text and the thread of each call that masks secrets."""
        found = []

        def redact(settings, text):
            found.append((text, threading.current_thread()))
            return text

        monkeypatch.setattr(ConnectionSettings, "redact", redact)
        return found

    @pytest.fixture
    def client(self, monkeypatch):
        """Each resource has an error with the same text."""
        refusal = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no")

        async def refused(self, action, ask, **options):
            kind = ResourceType.BROKER if "broker" in action else ResourceType.TOPIC
            resources = [ConfigResource(kind, str(key)) for key in (1, 2, 3)]
            return {r if "config" in action else r.name: refusal for r in resources}

        monkeypatch.setattr(ConfluentClient, "ask_all", refused)
        return ConfluentClient(ClientAccess(ConnectionSettings("127.0.0.1:1")))

    @pytest.mark.parametrize("call", CALLS)
    async def test_are_masked_beside_the_event_loop(self, client, masked, call):
        answers = await call(client)
        assert len(getattr(answers, "errors", answers)) == 3
        assert masked
        assert threading.current_thread() not in [thread for _, thread in masked]

    @pytest.mark.parametrize("call", CALLS[-2:])
    async def test_equal_texts_are_masked_once(self, client, masked, call):
        answers = await call(client)
        assert set(answers.values()) == {"TOPIC_AUTHORIZATION_FAILED: no"}
        assert [text for text, _ in masked] == ["TOPIC_AUTHORIZATION_FAILED: no"]
