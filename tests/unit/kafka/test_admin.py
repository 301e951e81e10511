"""Orders of librdkafka are sent after the brokers were asked for the id of their cluster.

It does not show its connections, so the other library asks: first the brokers that the order concerns, because others
may be due and not all are asked before one order.
"""

import pytest

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reasons import Reason

RATE = ConfigChange("leader.replication.throttled.rate", ConfigOp.SET, "1000")
OF_BROKERS = {BrokerId(n): (RATE,) for n in (40, 41)}
OF_TOPICS = {"t": (ConfigChange("leader.replication.throttled.replicas", ConfigOp.APPEND, "0:1"),)}
ORDERS = [
    ("alter_broker_configs", OF_BROKERS, set(OF_BROKERS)),
    ("alter_topic_configs", OF_TOPICS, set()),
    ("elect_preferred", {TopicPartition("t", 0)}, set()),
]


class Libraries:
    """Both clients: notes what they are asked for, in order. ``refusal``: of a broker of another cluster."""

    def __init__(self, _access=None):
        self.calls, self.refusal = [], None

    async def check_brokers(self, concerned=()):
        self.calls.append(("check_brokers", set(concerned)))
        if self.refusal is not None:
            raise self.refusal

    def __getattr__(self, order):
        async def sent(what):
            self.calls.append((order, what))
            return {}

        return sent


@pytest.fixture
def libraries(monkeypatch):
    both = Libraries()
    for client in ("ConfluentClient", "ReassignmentClient"):
        monkeypatch.setattr(f"kafka_rebalance.kafka.admin.{client}", lambda _access: both)
    return both


def connected(*, leading=True):
    return connect(ConnectionSettings(bootstrap_servers="kafka:9092"), Fence(lambda: leading))


@pytest.mark.parametrize(("order", "what", "concerned"), ORDERS)
async def test_the_brokers_are_asked_first(libraries, order, what, concerned):
    await getattr(connected(), order)(what)
    assert libraries.calls == [("check_brokers", concerned), (order, what)]


@pytest.mark.parametrize(("order", "what", "concerned"), ORDERS)
async def test_nothing_is_sent_where_one_belongs_to_another_cluster(libraries, order, what, concerned):
    libraries.refusal = Refused(Reason.OTHER_CLUSTER, "broker 2 answers as another cluster")
    with pytest.raises(Refused):
        await getattr(connected(), order)(what)
    assert libraries.calls == [("check_brokers", concerned)]


@pytest.mark.parametrize(("order", "what", "_concerned"), ORDERS)
async def test_nothing_is_sent_without_the_lease(libraries, order, what, _concerned):
    with pytest.raises(Transient) as refused:
        await getattr(connected(leading=False), order)(what)
    assert refused.value.reason == Reason.NOT_LEADING
    assert libraries.calls == []
