"""What the client over kafka-python makes of what the brokers say, and when it sends orders."""

import asyncio
import threading
from functools import partial
from types import SimpleNamespace

import pytest
from kafka.protocol.admin import AlterPartitionReassignmentsRequest, DescribeClusterRequest

from kafka import errors as client_errors
from kafka_rebalance.errors import Permanent, Refused, Transient
from kafka_rebalance.kafka.answering_cluster import MOST
from kafka_rebalance.kafka.client_access import ClientAccess
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.ports import AlterCode
from kafka_rebalance.kafka.python_client import PythonClient
from kafka_rebalance.kafka.reassignment import ReassignmentClient, _shares
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of


class Client(PythonClient):
    """Without connections, to brokers that are too old."""

    def __init__(self):
        self._version, self._version_due = None, float("inf")

    def cluster(self):
        raise client_errors.IncompatibleBrokerVersion("Kafka broker does not support the 'DescribeCluster' protocol.")


class TestShareGroups:
    @pytest.mark.parametrize(
        ("told", "shares"),
        [
            ({"group_type": "Share", "group_state": "Stable"}, True),
            ({"group_type": "share", "group_state": "Assigning"}, True),
            ({"group_type": "Share", "group_state": "Empty"}, False),
            ({"group_type": "Consumer", "group_state": "Stable"}, False),
            ({"group_type": "", "group_state": "Stable"}, False),
            ({}, False),
        ],
        ids=["in use", "as another version spells it", "without members", "consumer", "before types", "before states"],
    )
    def test_are_told_by_their_type(self, told, shares):
        """They commit no offsets (KIP-932), so what they read cannot be known."""
        assert _shares(SimpleNamespace(group_id="g", **told)) is shares


async def test_the_settings_are_rendered_in_a_thread(monkeypatch):
    """OpenSSL reads certificates and keys meanwhile: the event loop must not wait."""
    threads = []

    def rendered(settings):
        threads.append(threading.current_thread())
        raise Permanent("KafkaSettingsInvalid", "not a matching pair")

    monkeypatch.setattr("kafka_rebalance.kafka.reassignment.kafka_python_config", rendered)
    client = ReassignmentClient(ClientAccess(ConnectionSettings(bootstrap_servers="kafka:9092")))
    with pytest.raises(Permanent):
        await client.describe_cluster()
    assert len(threads) == 1
    assert threading.main_thread() not in threads
    await client.close()


async def test_a_request_that_brokers_lack():
    """Not an outage: waiting does not help."""
    client = ReassignmentClient(ClientAccess(ConnectionSettings(bootstrap_servers="kafka:9092")))
    client._client = Client()
    with pytest.raises(Permanent) as refused:
        await client.describe_cluster()
    assert refused.value.reason == "KafkaTooOld"
    assert "'DescribeCluster' protocol. The operator needs Kafka 2.8 or later: upgrade" in refused.value.message
    await client.close()


async def test_a_broker_whose_log_dir_has_a_path_that_no_system_opens():
    """Each replica in it is stored with this path. The other brokers are read."""
    longest = "/" + "p" * 4_095

    class Dirs:
        @staticmethod
        def log_dirs_of(broker):
            path = longest if broker == 1 else longest + "p"
            row = SimpleNamespace(error_code=0, log_dir=path, topics=[])
            return SimpleNamespace(error_code=0, results=[SimpleNamespace(error_code=0, log_dir="/d", topics=[]), row])

        @staticmethod
        def close():
            pass

    client = ReassignmentClient(ClientAccess(ConnectionSettings(bootstrap_servers="kafka:9092")))
    client._client = Dirs()
    found = await client.log_dirs([BrokerId(1), BrokerId(2)])
    assert {broker: [one.path for one in dirs] for broker, dirs in found.items()} == {1: ["/d", longest]}
    assert found.errors.keys() == {2}
    assert (
        "broker 2: its answer names a log dir whose path has more than 4096 char" in found.errors[BrokerId(2)].message
    )
    await client.close()


class Controllers(Client):
    """Broker 1 is no controller any more, broker 2 is. ``lead``: what happens while the controller is looked for.

    ``ids``: the cluster ids with which the brokers answer over the connection of an order.
    """

    def __init__(self, lead=lambda: None, ids=None, described_as="c"):
        super().__init__()
        self._controller_id, self._manager = 1, self
        self.lead, self.sent_to, self.ids, self.described_as = lead, [], ids or {}, described_as

    def cluster(self):
        brokers = [SimpleNamespace(broker_id=n, rack=None, host=f"kafka-{n}", port=9092) for n in (1, 2)]
        return SimpleNamespace(error_code=0, cluster_id=self.described_as, brokers=brokers)

    def run(self, call):
        return asyncio.run(call())

    async def _refresh_controller_id(self):
        self.lead()
        return 2

    def get_connection(self, node_id):
        return SimpleNamespace(send_request=partial(self.sent, node_id), paused=set())

    async def sent(self, node_id, request, request_timeout_ms=None):
        if isinstance(request, DescribeClusterRequest):
            return SimpleNamespace(cluster_id=self.ids.get(node_id, "c"))
        self.sent_to.append(node_id)
        if not isinstance(request, AlterPartitionReassignmentsRequest):
            return SimpleNamespace(results=[])
        rows = [SimpleNamespace(partition_index=0, error_code=0)]
        code = 0 if node_id == 2 else client_errors.NotControllerError.errno
        return SimpleNamespace(error_code=code, responses=[SimpleNamespace(name="t", partitions=rows)])

    def cluster_id_of(self, broker):
        return self.ids.get(broker, "c")

    def close(self):
        pass


ORDERS = {TopicPartition("t", 0): replicas_of(1, 2)}


class TestOrders:
    async def test_are_sent_again_to_the_new_controller(self):
        """The broker that is no controller has carried out nothing."""
        client = ReassignmentClient(ClientAccess(ConnectionSettings(bootstrap_servers="kafka:9092")))
        client._client = controllers = Controllers()
        assert await client.alter(ORDERS) == {TopicPartition("t", 0): AlterCode.OK}
        assert controllers.sent_to == [1, 2]
        await client.close()

    async def test_are_not_sent_again_by_an_operator_that_does_not_lead_any_more(self):
        """The Lease is lost while the controller is looked for."""
        leads = [True]
        fence = Fence(lambda: leads[0])
        client = ReassignmentClient(ClientAccess(ConnectionSettings("kafka:9092"), before_order=fence.check))
        client._client = controllers = Controllers(lambda: leads.__setitem__(0, False))
        with pytest.raises(Transient) as refused:
            await client.alter(ORDERS)
        assert refused.value.reason == "NotLeading"
        assert controllers.sent_to == [1]
        await client.close()

    async def test_to_log_dirs_are_not_sent_by_an_operator_that_does_not_lead_any_more(self):
        """The Lease is lost while the call waits for its thread."""
        fence = Fence(lambda: False)
        client = ReassignmentClient(ClientAccess(ConnectionSettings("kafka:9092"), before_order=fence.check))
        client._client = controllers = Controllers()
        with pytest.raises(Transient) as refused:
            await client.alter_log_dirs({(TopicPartition("t", 0), BrokerId(1)): "/d"})
        assert refused.value.reason == "NotLeading"
        assert controllers.sent_to == []
        await client.close()

    async def test_that_are_not_permitted(self, monkeypatch):
        """Kafka says it of the call: none of its partitions is changed. What was answered before stays as it is."""
        monkeypatch.setattr("kafka_rebalance.kafka.reassignment.PARTITIONS_PER_ALTER", 1)
        client = ReassignmentClient(ClientAccess(ConnectionSettings(bootstrap_servers="kafka:9092")))
        client._client = Controllers()
        denying, orders = Denying(), {TopicPartition("t", number): replicas_of(1, 2) for number in range(3)}
        alter = client._alter_batch

        async def revoked_after_the_first(batch):
            answers = await alter(batch)
            client._client = denying
            return answers

        monkeypatch.setattr(client, "_alter_batch", revoked_after_the_first)
        answers = await client.alter(orders)
        assert list(answers.values()) == [AlterCode.OK, AlterCode.NOT_AUTHORIZED, AlterCode.NOT_AUTHORIZED]
        await client.close()


class Denying(Controllers):
    """Without the right Alter on the cluster."""

    def alter(self, orders, before_order):
        raise client_errors.ClusterAuthorizationFailedError


class TestOrdersOfAnotherCluster:
    """A broker advertises the address of a broker of another cluster: nothing is sent there."""

    def client(self, **ids):
        client = ReassignmentClient(ClientAccess(ConnectionSettings("kafka:9092")))
        client._client = Controllers(ids={int(broker[1:]): cluster_id for broker, cluster_id in ids.items()})
        return client

    async def test_to_the_controller(self):
        """Its connections are dropped: the address may lead to the right broker again."""
        client = self.client(b2="other")
        controllers = client._client
        with pytest.raises(Refused) as refused:
            await client.alter(ORDERS)
        assert refused.value.reason == "OtherCluster"
        assert refused.value.message.startswith("broker 2 answers as Kafka cluster other, and others answered as c: ")
        assert (client._client, controllers.sent_to) == (None, [1])
        await client.close()

    async def test_to_log_dirs(self):
        client = self.client(b1="other")
        controllers = client._client
        with pytest.raises(Refused):
            await client.alter_log_dirs({(TopicPartition("t", 0), BrokerId(1)): "/d"})
        assert controllers.sent_to == []
        await client.close()

    @pytest.mark.parametrize("concerned", [[BrokerId(1)], []])
    async def test_by_the_other_library(self, concerned):
        """Any broker may be the one that it sends to. No order follows, even if the cluster is described again."""
        client = self.client(b2="other")
        await client.describe_cluster()
        with pytest.raises(Refused):
            await client.check_brokers(concerned)
        client._client = controllers = Controllers()
        await client.describe_cluster()
        with pytest.raises(Refused):
            await client.alter(ORDERS)
        assert controllers.sent_to == []
        await client.close()

    async def test_while_the_refusal_lasts_no_broker_is_asked(self):
        """They would count as asked after it."""
        client = self.client(b2="other")
        await client.describe_cluster()
        for _ in range(2):
            with pytest.raises(Refused):
                await client.check_brokers()
        assert client._answering.to_ask([]) == [1, 2]
        await client.close()


class Hanging(Controllers):
    """A hundred brokers, which do not say to which cluster they belong until they may."""

    def __init__(self):
        super().__init__()
        self.may_answer, self.asked = threading.Event(), []

    def cluster(self):
        found = super().cluster()
        found.brokers = [SimpleNamespace(broker_id=n, rack=None, host=f"kafka-{n}", port=9092) for n in range(100)]
        return found

    def cluster_id_of(self, broker):
        self.asked.append(broker)
        self.may_answer.wait()
        return "c"


class TestManyBrokersThatHang:
    """An order concerns all brokers of a large cluster, such as new rates of the throttle."""

    async def test_few_are_asked_at_the_same_time(self, monkeypatch):
        """Other requests need threads meanwhile. Those that were not asked are due before the next order."""
        monkeypatch.setattr("kafka_rebalance.kafka.reassignment._CHECK_SECONDS", 0.2)
        monkeypatch.setattr("kafka_rebalance.kafka.reassignment.CALL_SECONDS", 6.0)
        client = ReassignmentClient(ClientAccess(ConnectionSettings("kafka:9092")))
        client._client = hanging = Hanging()
        try:
            everyone = [BrokerId(n) for n in range(100)]
            await client.describe_cluster()
            await client.check_brokers(everyone)
            assert len((await client.describe_cluster()).brokers) == 100
            assert len(hanging.asked) <= MOST
            assert len(client._answering.to_ask(everyone)) == 100 - MOST
        finally:
            hanging.may_answer.set()
            await client.close()


class TestOrdersOfAReplacedClient:
    """It knows the id of its cluster, and has not read anything yet. The servers may lead elsewhere by now."""

    def client(self, described_as, **ids):
        access = ClientAccess(ConnectionSettings("kafka:9092"), cluster_id="c")
        client = ReassignmentClient(access)
        client._client = Controllers(ids={int(k[1:]): v for k, v in ids.items()}, described_as=described_as)
        return client

    async def test_to_the_controller(self):
        client = self.client("other", b1="other", b2="other")
        controllers = client._client
        with pytest.raises(Refused) as refused:
            await client.alter(ORDERS)
        assert (refused.value.reason, controllers.sent_to) == ("OtherCluster", [])
        await client.close()

    async def test_by_the_other_library(self):
        client = self.client("other")
        with pytest.raises(Refused) as refused:
            await client.check_brokers()
        assert refused.value.reason == "OtherCluster"
        await client.close()

    async def test_of_the_same_cluster(self):
        client = self.client("c")
        assert await client.alter(ORDERS) == {TopicPartition("t", 0): AlterCode.OK}
        await client.close()
