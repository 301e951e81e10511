"""How our client handles lost replies, and brokers that die or hang while it uses them.

KRaft brokers return any live broker as the controller and forward to the real one. Both clients cache the broker they
got; the session of a dead broker lasts five seconds, during which other brokers may still return it.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest
from e2e.bench.kafka import KafkaCluster
from e2e.bench.kafka_properties import CONTROLLER_ID
from e2e.bench.load import create_topics
from tests.contract.arranging import new_topic, settings_of
from tests.contract.lossy import ALTER_PARTITION_REASSIGNMENTS, lossy_proxy
from tests.contract.observing import LATEST_SECONDS, partition, until

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka import reassignment
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.client_access import ClientAccess
from kafka_rebalance.kafka.ports import AlterCode, KafkaAdmin
from kafka_rebalance.kafka.python_client import PythonClient
from kafka_rebalance.kafka.reassignment import ReassignmentClient
from kafka_rebalance.kafka.settings import ConnectionSettings, kafka_python_config
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

pytestmark = pytest.mark.brokers

EVERYONE = [BrokerId(broker) for broker in (1, 2, 3, 4, 5)]
Calls = dict[str, Callable[[], Awaitable[Any]]]


@pytest.mark.usefixtures("crawling")
class TestLostReply:
    """The request was executed anyway: only reading the cluster shows it."""

    @pytest.fixture
    async def cut_off(self, cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KafkaAdmin]:
        """Our client, which never receives the reply to an alteration."""
        cut_off = settings_of(cluster)
        async with lossy_proxy(ALTER_PARTITION_REASSIGNMENTS) as proxy:

            def through_the_proxy(settings: ConnectionSettings) -> dict[str, Any]:
                return kafka_python_config(settings) | ({"proxy_url": proxy.url} if settings is cut_off else {})

            monkeypatch.setattr(reassignment, "kafka_python_config", through_the_proxy)
            admin = connect(cut_off)
            yield admin
            await admin.close()
            assert proxy.lost == 2

    async def test_the_order_was_carried_out(
        self, admin: KafkaAdmin, cut_off: KafkaAdmin, heavy: TopicPartition
    ) -> None:
        with pytest.raises(Transient) as unanswered:
            await cut_off.alter_reassignments({heavy: replicas_of(4, 1, 2, 3)})
        assert unanswered.value.reason == "KafkaUnreachable"
        assert (await cut_off.list_reassignments())[heavy].adding == (4,)
        with pytest.raises(Transient):
            await cut_off.alter_reassignments({heavy: None})
        assert heavy not in await cut_off.list_reassignments()
        assert await admin.alter_reassignments({heavy: None}) == {heavy: AlterCode.NO_REASSIGNMENT_IN_PROGRESS}
        await partition(admin, heavy, "is restored", lambda s: s.replicas == (1, 2, 3) and not s.in_flight)


class TestSilentServer:
    """A server that accepts connections and never answers costs one attempt and leaks nothing."""

    @pytest.fixture
    def silent(self) -> Iterator[int]:
        """The port of a server that hangs."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield server.getsockname()[1]

    async def test_another_one_is_asked(
        self, cluster: KafkaCluster, silent: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        servers = f"127.0.0.1:{silent},{cluster.bootstrap_servers}"
        order = iter([silent])

        def pick(brokers: Sequence[Any]) -> Any:
            port = next(order, None)
            return next(broker for broker in brokers if (broker.port == silent) == (port == silent))

        monkeypatch.setattr("kafka.net.manager.random.choice", pick)
        client = ReassignmentClient(ClientAccess(ConnectionSettings(servers)))
        async with asyncio.timeout(LATEST_SECONDS):
            await client.list_reassignments()
        assert next(order, None) is None
        await client.close()

    async def test_attempts_in_vain_leave_no_thread(self, silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each thread would also hold file descriptors: an outage of Kafka would crash the operator."""
        monkeypatch.setattr(reassignment, "_ATTEMPT_SECONDS", (0.3, 0.3))
        client = ReassignmentClient(ClientAccess(ConnectionSettings(f"127.0.0.1:{silent}")))
        before = self.threads()
        with pytest.raises(Transient):
            await client.list_reassignments()

        async def left() -> set[threading.Thread]:
            return self.threads() - before

        await until("threads of kafka-python", left, lambda threads: not threads)
        await client.close()

    def threads(self) -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if "kafka-io" in thread.name}


class TestControllerLost:
    """Every call ends within its time-out, and succeeds again without the lost brokers."""

    @pytest.fixture
    async def remembering(self, cluster: KafkaCluster) -> AsyncIterator[KafkaAdmin]:
        """Our client, with caches filled by one call of each kind."""
        admin = connect(settings_of(cluster))
        for ask in self.calls(admin, self.spread(cluster)).values():
            await ask()
        yield admin
        await admin.close()

    def spread(self, cluster: KafkaCluster) -> TopicPartition:
        tp = TopicPartition("spread", 0)
        if tp.topic not in cluster.admin().list_topics(timeout=10).topics:
            create_topics(cluster, {tp.topic: [[1, 2, 3, 4, 5]]})
        return tp

    def calls(self, admin: KafkaAdmin, tp: TopicPartition) -> Calls:
        return {
            "describe_cluster": admin.describe_cluster,
            "describe_partitions": lambda: admin.describe_partitions([tp.topic]),
            "list_reassignments": admin.list_reassignments,
            "alter_reassignments": lambda: admin.alter_reassignments({tp: None}),
            "elect_preferred": lambda: admin.elect_preferred([tp]),
            "topic_configs": lambda: admin.topic_configs([tp.topic], ["retention.ms"]),
            "offsets": lambda: admin.offsets([tp]),
        }

    def named(self, admin: Any) -> set[int]:
        """The brokers that our two clients use as the controller."""
        by_librdkafka = admin._confluent._admin.list_topics(timeout=5).controller_id
        return {by_librdkafka, admin._reassignments._client._controller_id}

    async def in_time(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """The result, or None if the call failed as transient within its time-out."""
        async with asyncio.timeout(LATEST_SECONDS):
            with contextlib.suppress(Transient):
                return await ask()

    async def all_answer(self, calls: Calls) -> None:
        await asyncio.gather(
            *(
                until(name, lambda ask=ask: self.in_time(ask), lambda answer: answer is not None)
                for name, ask in calls.items()
            )
        )

    async def see_the_others(self, admin: KafkaAdmin, lost: set[int]) -> None:
        """Requests to each broker skip the lost ones, with one time limit for all."""
        there = set(EVERYONE) - lost
        async with asyncio.timeout(LATEST_SECONDS):
            dirs, configs = await asyncio.gather(admin.log_dirs(EVERYONE), admin.broker_configs(EVERYONE, ["log.dirs"]))
        assert (set(dirs), set(configs)) == (there, there)

    async def test_killed(self, cluster: KafkaCluster, remembering: KafkaAdmin) -> None:
        """Calls that any broker answers find another one in time; calls to the controller may fail until one is named.

        The sessions of at most two dead brokers last 5 s, and until then metadata may name them to new connections too.
        """
        calls = self.calls(remembering, self.spread(cluster))
        dead = self.named(remembering)
        cluster.kill9(*dead)
        try:
            assert await self.in_time(calls["describe_cluster"]) is not None
            assert await self.in_time(calls["topic_configs"]) is not None
            await self.all_answer(calls)
            await self.see_the_others(remembering, dead)
        finally:
            cluster.start_brokers(*dead)

    async def test_hanging(self, cluster: KafkaCluster, remembering: KafkaAdmin) -> None:
        """Connections stay open, so a call may wait for one time-out before it uses other brokers."""
        calls = self.calls(remembering, self.spread(cluster))
        silent = self.named(remembering)
        cluster.pause(*silent)
        try:
            await self.see_the_others(remembering, silent)
            await self.all_answer(calls)
        finally:
            cluster.resume(*silent)

    async def test_a_broker_hanging_for_longer_than_a_call(
        self,
        cluster: KafkaCluster,
        remembering: KafkaAdmin,
        raw: ReassignmentClient,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """It executes the call when it continues, although Kafka has fenced it and the connection is closed.

        Our client asks the broker for its cluster id first, and sends nothing if it hangs already: so without that.
        """

        async def unasked(client: PythonClient, broker: int, request: Any, _: Any) -> Any:
            return await client._manager.send(request, node_id=broker)

        tp = new_topic(cluster, "ordered-from-a-broker-that-hangs", 1, 2, 3)
        monkeypatch.setattr(PythonClient, "_send_order", unasked)
        await raw.list_reassignments()
        raw._client._controller_id = 5  # any broker takes such a call
        assert await raw.alter({tp: None}) == {tp: AlterCode.NO_REASSIGNMENT_IN_PROGRESS}
        cluster.pause(5)
        try:
            assert await self.in_time(lambda: raw.alter({tp: replicas_of(3, 2, 1)})) is None
            await until(
                "broker 5 is fenced",
                lambda: self.in_time(remembering.describe_cluster),
                lambda info: info is not None and 5 not in info.brokers,
            )
            there = await until(
                "the topic is described",
                lambda: self.in_time(lambda: remembering.describe_partitions([tp.topic])),
                lambda found: found is not None,
            )
            assert there[tp].replicas == (1, 2, 3)
        finally:
            cluster.resume(5)
        await partition(remembering, tp, "has the new order", lambda s: s.replicas == (3, 2, 1))

    async def test_the_quorum_hanging(
        self, cluster: KafkaCluster, remembering: KafkaAdmin, raw: ReassignmentClient
    ) -> None:
        """Brokers still describe; an alteration times out, and may or may not be executed afterwards."""
        tp = new_topic(cluster, "ordered-in-vain", 1, 2, 3)
        calls = self.calls(remembering, tp)
        cluster.pause(CONTROLLER_ID)
        try:
            described, ordered = await asyncio.gather(
                calls["describe_cluster"](), self.in_time(lambda: raw.alter({tp: replicas_of(3, 2, 1)}))
            )
        finally:
            cluster.resume(CONTROLLER_ID)
        assert (set(described.brokers), ordered) == (set(EVERYONE), None)
        await self.all_answer(calls)
        await partition(remembering, tp, "is whole", lambda s: s.replicas in {(1, 2, 3), (3, 2, 1)} and len(s.isr) == 3)
