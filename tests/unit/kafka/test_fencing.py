"""Whoever does not lead sends nothing, and reads on."""

import asyncio

import pytest

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.fencing import Fence, fenced
from kafka_rebalance.kafka.ports import KafkaAdmin
from kafka_rebalance.model.topology import TopicPartition

ORDERS = {
    "alter_reassignments": ({TopicPartition("t", 0): None},),
    "elect_preferred": ([TopicPartition("t", 0)],),
    "alter_topic_configs": ({"t": []},),
    "alter_broker_configs": ({1: []},),
}
READINGS = {
    "describe_cluster": (),
    "describe_partitions": (["t"],),
    "list_reassignments": (),
    "topic_configs": (["t"], ["name"]),
    "broker_configs": ([1], ["name"]),
    "log_dirs": ([1],),
    "offsets": ([TopicPartition("t", 0)],),
    "close": (),
}


class Recording:
    """An admin that writes down what it is asked; answers wait for ``gate`` where one is set."""

    def __init__(self):
        self.asked = []
        self.gate = None

    def __getattr__(self, name):
        async def call(*arguments):
            self.asked.append((name, arguments))
            if self.gate is not None:
                await self.gate.wait()
            return f"answer to {name}"

        return call


@pytest.fixture
def kafka():
    return Recording()


class TestFence:
    def test_every_method_is_an_order_or_a_reading(self):
        """A method that is added to the port must be put on one side or the other."""
        methods = {name for name in vars(KafkaAdmin) if not name.startswith("_")}
        assert methods == ORDERS.keys() | READINGS.keys()

    @pytest.mark.parametrize("name", ORDERS)
    async def test_orders_are_refused_without_the_lease(self, kafka, name):
        admin = fenced(kafka, Fence(lambda: False))
        with pytest.raises(Transient) as refused:
            await getattr(admin, name)(*ORDERS[name])
        assert refused.value.reason == "NotLeading"
        assert kafka.asked == []

    @pytest.mark.parametrize("name", ORDERS)
    async def test_orders_pass_with_it(self, kafka, name):
        admin = fenced(kafka, Fence(lambda: True))
        assert await getattr(admin, name)(*ORDERS[name]) == f"answer to {name}"
        assert kafka.asked == [(name, ORDERS[name])]

    @pytest.mark.parametrize("name", READINGS)
    async def test_readings_always_pass(self, kafka, name):
        await getattr(fenced(kafka, Fence(lambda: False)), name)(*READINGS[name])
        assert kafka.asked == [(name, READINGS[name])]

    async def test_what_was_sent_is_waited_for(self, kafka):
        """An engine that is stopped lets go of its order; the order is settled only when Kafka has answered."""
        fence, kafka.gate = Fence(lambda: True), asyncio.Event()
        sending = asyncio.create_task(fenced(kafka, fence).elect_preferred([]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        settled = asyncio.create_task(fence.settled())
        await asyncio.sleep(0)
        assert not settled.done()
        kafka.gate.set()
        await settled
        await fence.settled()
