"""Only the leader writes to Kafka; every operator may read."""

import asyncio

import pytest

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka import admin as adapter
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.ports import Answers, KafkaReader, KafkaWriter
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import TopicPartition

SETTINGS = ConnectionSettings("kafka:9092")

ORDERS = {
    "alter_reassignments": ({TopicPartition("t", 0): None},),
    "elect_preferred": ([TopicPartition("t", 0)],),
    "alter_log_dirs": ({(TopicPartition("t", 0), 1): "/data/1"},),
    "alter_topic_configs": ({"t": []},),
    "alter_broker_configs": ({1: []},),
}
READINGS = {
    "describe_cluster": (),
    "describe_partitions": (["t"],),
    "topic_ids": (["t"],),
    "list_reassignments": (),
    "topic_configs": (["t"], ["name"]),
    "broker_configs": ([1], ["name"]),
    "log_dirs": ([1],),
    "offsets": ([TopicPartition("t", 0)],),
    "authorized_operations": (["t"],),
    "committed_offsets": (10,),
}
ASKED = {"committed_offsets": ("consumer_groups", ())}
"""The first call of those that are several."""


class Recording:
    """Both client libraries: records calls; answers wait for ``gate`` if it is set."""

    def __init__(self):
        self.asked = []
        self.gate = None

    def __getattr__(self, name):
        async def call(*arguments):
            self.asked.append((name, arguments))
            if self.gate is not None:
                await self.gate.wait()
            return Answers({name: "answer"})

        return call


@pytest.fixture
def kafka(monkeypatch):
    """What `connect` connects to."""
    recording = Recording()
    monkeypatch.setattr(adapter, "ConfluentClient", lambda *_: recording)
    monkeypatch.setattr(adapter, "ReassignmentClient", lambda *_: recording)
    return recording


def methods_of(port):
    return {name for name in vars(port) if not name.startswith("_")}


class TestFence:
    def test_the_writer_is_what_is_fenced(self):
        """A method that is added to one of the ports must be tested here on the same side."""
        assert (methods_of(KafkaWriter), methods_of(KafkaReader)) == (ORDERS.keys(), READINGS.keys())

    @pytest.mark.parametrize("name", ORDERS)
    async def test_orders_are_refused_without_the_lease(self, kafka, name):
        admin = adapter.connect(SETTINGS, Fence(lambda: False))
        with pytest.raises(Transient) as refused:
            await getattr(admin, name)(*ORDERS[name])
        assert refused.value.reason == "NotLeading"
        assert kafka.asked == []

    @pytest.mark.parametrize("name", ORDERS)
    async def test_orders_pass_with_it(self, kafka, name):
        admin = adapter.connect(SETTINGS, Fence(lambda: True))
        sent = "alter" if name == "alter_reassignments" else name
        assert await getattr(admin, name)(*ORDERS[name]) == {sent: "answer"}
        assert kafka.asked[-1] == (sent, ORDERS[name])

    @pytest.mark.parametrize("name", ORDERS)
    async def test_a_command_has_no_lease(self, kafka, name):
        await getattr(adapter.connect(SETTINGS), name)(*ORDERS[name])
        assert kafka.asked

    @pytest.mark.parametrize("name", READINGS)
    async def test_readings_always_pass(self, kafka, name):
        await getattr(adapter.connect(SETTINGS, Fence(lambda: False)), name)(*READINGS[name])
        assert ASKED.get(name, (name, READINGS[name])) in kafka.asked

    def test_the_last_check_is_made_by_the_client(self, monkeypatch):
        """Right before it sends, because reading the listing takes time."""
        monkeypatch.setattr(adapter, "ConfluentClient", lambda *_: None)
        monkeypatch.setattr(adapter, "ReassignmentClient", lambda access: access.before_order())
        with pytest.raises(Transient, match="does not hold the lease"):
            adapter.connect(SETTINGS, Fence(lambda: False))

    async def test_what_was_sent_is_waited_for(self, kafka):
        """An engine that is stopped abandons its request; the fence is idle only when Kafka has answered."""
        fence, kafka.gate = Fence(lambda: True), asyncio.Event()
        sending = asyncio.create_task(adapter.connect(SETTINGS, fence).elect_preferred([]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        idle = asyncio.create_task(fence.wait_until_idle())
        await asyncio.sleep(0)
        assert not idle.done()
        kafka.gate.set()
        await idle
        await fence.wait_until_idle()
