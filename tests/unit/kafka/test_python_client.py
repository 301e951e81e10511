"""kafka-python's client and what it adds: the version of the cluster."""

import asyncio

import pytest
from kafka.protocol.admin import DescribeClusterRequest
from tests.fakes.hostile_server import HostileServer

from kafka import errors as client_errors
from kafka_rebalance.kafka.python_client import PythonClient
from kafka_rebalance.model.kafka_version import KafkaVersion


class Client(PythonClient):
    """Without connections. ``features`` is the answer, or the error; ``asked`` counts the requests."""

    def __init__(self, features):
        self._version, self._version_due = None, float("-inf")
        self.features, self.asked = features, 0

    def describe_features(self):
        self.asked += 1
        if isinstance(self.features, Exception):
            raise self.features
        return self.features


class Manager:
    """kafka-python's connections. Each of ``errors`` is the outcome of one request; after them, requests succeed."""

    def __init__(self, errors):
        self.errors, self.sent = list(errors), 0

    def send(self, request):
        self.sent += 1
        if self.errors:
            raise self.errors.pop(0)
        return "the brokers"

    def run(self, call):
        return call()


class TestCluster:
    """Which brokers there are: the first call of a round, also when brokers have just died."""

    def client(self, *errors):
        client = Client({})
        client._manager = Manager(errors)
        return client

    @pytest.mark.parametrize("refused", [0, 1, 3])
    def test_another_broker_is_asked_if_one_refuses_the_connection(self, refused):
        client = self.client(*[client_errors.KafkaConnectionError("111 ECONNREFUSED")] * refused)
        assert (client.cluster(), client._manager.sent) == ("the brokers", refused + 1)

    def test_a_cluster_that_is_gone_is_an_error(self):
        client = self.client(*[client_errors.KafkaConnectionError("111 ECONNREFUSED")] * 4)
        with pytest.raises(client_errors.KafkaConnectionError):
            client.cluster()

    def test_other_errors_are_not_asked_again(self):
        client = self.client(client_errors.KafkaTimeoutError("no answer"))
        with pytest.raises(client_errors.KafkaTimeoutError):
            client.cluster()
        assert client._manager.sent == 1


class TestVersion:
    @pytest.mark.parametrize(
        ("features", "version"),
        [
            ({"metadata.version": {"supported": (7, 30), "finalized": (30, 30)}}, KafkaVersion(30, 30)),
            ({"metadata.version": {"supported": (1, 21)}, "kraft.version": {"supported": (0, 1)}}, KafkaVersion(21)),
            ({"group.version": {"supported": (0, 1)}}, KafkaVersion()),
            (client_errors.IncompatibleBrokerVersion("no ApiVersions of version 3"), KafkaVersion()),
        ],
        ids=["KRaft", "none in force", "ZooKeeper", "before features"],
    )
    def test_by_its_features(self, features, version):
        assert Client(features).version() == version

    def test_is_asked_for_once_a_minute(self, monkeypatch):
        """The brokers may be upgraded while we are connected."""
        now = 100.0
        monkeypatch.setattr("kafka_rebalance.kafka.python_client.time.monotonic", lambda: now)
        client = Client({"metadata.version": {"supported": (7, 28)}})
        assert (client.version(), client.version(), client.asked) == (KafkaVersion(28), KafkaVersion(28), 1)
        client.features, now = {"metadata.version": {"supported": (7, 30)}}, now + 61
        assert (client.version(), client.asked) == (KafkaVersion(30), 2)

    def test_a_broker_that_does_not_answer_is_no_error(self, monkeypatch):
        """The call that it is part of has its answer; what was known of the version stays."""
        now = 0.0
        monkeypatch.setattr("kafka_rebalance.kafka.python_client.time.monotonic", lambda: now)
        client = Client(client_errors.KafkaConnectionError("broker 1 is gone"))
        assert client.version() is None
        client.features, now = {"metadata.version": {"supported": (7, 30)}}, 61
        assert client.version() == KafkaVersion(30)
        client.features, now = client_errors.KafkaTimeoutError("no answer"), 122
        assert client.version() == KafkaVersion(30)


class TestOrders:
    """Sent over the connection whose broker has just said to which cluster it belongs."""

    @pytest.fixture
    async def server(self):
        async with HostileServer() as server:
            yield server

    async def send(self, server, before_order, *, orders=1):
        """The answer to the last of some orders; any request that the server answers will do."""
        client = await asyncio.to_thread(PythonClient, bootstrap_servers=[server.address])
        try:
            for _ in range(orders):
                order = DescribeClusterRequest(include_cluster_authorized_operations=True)
                answer = await asyncio.to_thread(client._manager.run, client._send_order, 0, order, before_order)
            return answer
        finally:
            await asyncio.to_thread(client.close)

    async def test_after_the_question(self, server):
        asked = []
        assert (await self.send(server, lambda *who: asked.append(who))).cluster_id == "a-cluster"
        assert asked == [(0, "a-cluster")]

    async def test_wait_while_the_broker_throttles_the_client(self, server):
        """With a quota of requests, each answer may. The client refuses to send meanwhile."""
        server.throttle_ms = 50
        assert (await self.send(server, lambda *_: None)).cluster_id == "a-cluster"

    async def test_wait_while_an_earlier_answer_throttles_the_client(self, server):
        """As the answer to the reading before an order does, or to the first of two orders."""
        server.throttle_ms = 50
        assert (await self.send(server, lambda *_: None, orders=2)).cluster_id == "a-cluster"
