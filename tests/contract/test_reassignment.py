"""What real brokers do with a reassignment: every rule of the execution rests on one of these."""

import pytest
from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics
from tests.contract.observing import partition

from kafka_rebalance.kafka.ports import AlterCode, KafkaAdmin
from kafka_rebalance.kafka.reassignment import ReassignmentClient
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

pytestmark = pytest.mark.brokers


def new_topic(cluster: KafkaCluster, topic: str, *replicas: int) -> TopicPartition:
    create_topics(cluster, {topic: [list(replicas)]})
    return TopicPartition(topic, 0)


class TestPureAdd:
    """A superset adds and removes nothing; the leader moves when it is elected, not before."""

    async def test_new_replica_in_front(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        tp = new_topic(cluster, "add-front", 1, 2, 3)
        assert await admin.alter_reassignments({tp: replicas_of(4, 1, 2, 3)}) == {tp: AlterCode.OK}
        state = await partition(admin, tp, "has 4 in sync", lambda s: 4 in s.isr and not s.in_flight)
        assert state.replicas == (4, 1, 2, 3)
        assert state.leader == 1
        assert await admin.elect_preferred([tp]) == {tp: AlterCode.OK}
        await partition(admin, tp, "is led by 4", lambda s: s.leader == 4)
        assert await admin.elect_preferred([tp]) == {tp: AlterCode.ELECTION_NOT_NEEDED}

    async def test_new_replica_at_the_end(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        tp = new_topic(cluster, "add-end", 1, 2, 3)
        assert await admin.alter_reassignments({tp: replicas_of(1, 2, 3, 4)}) == {tp: AlterCode.OK}
        state = await partition(admin, tp, "has 4 in sync", lambda s: 4 in s.isr and not s.in_flight)
        assert (state.replicas, state.leader) == ((1, 2, 3, 4), 1)


class TestAtOnce:
    """What needs no copy is done when the call returns."""

    async def test_removal_only(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        tp = new_topic(cluster, "removal", 1, 2, 3)
        await admin.alter_reassignments({tp: replicas_of(1, 2)})
        assert tp not in await admin.list_reassignments()
        await partition(admin, tp, "has two replicas", lambda s: s.replicas == (1, 2))

    async def test_reorder_leaves_the_leader(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        tp = new_topic(cluster, "reorder", 1, 2, 3)
        await admin.alter_reassignments({tp: replicas_of(3, 2, 1)})
        assert tp not in await admin.list_reassignments()
        state = await partition(admin, tp, "is reordered", lambda s: s.replicas == (3, 2, 1))
        assert state.leader == 1

    async def test_dropping_the_leader_elects_the_first_in_sync(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        tp = new_topic(cluster, "drop-leader", 1, 2, 3)
        await admin.alter_reassignments({tp: replicas_of(3, 2)})
        state = await partition(admin, tp, "lost 1", lambda s: s.replicas == (3, 2) and s.leader != 1)
        assert state.leader == 3


@pytest.mark.usefixtures("crawling")
class TestCancel:
    """Null restores the set; the order only where nothing was to be removed."""

    async def test_superset_comes_back_in_order(self, admin: KafkaAdmin) -> None:
        tp = TopicPartition("slow-superset", 0)
        await admin.alter_reassignments({tp: replicas_of(4, 1, 2, 3)})
        state = await partition(admin, tp, "is in flight", lambda s: s.in_flight)
        assert (state.replicas, state.adding, state.removing) == ((4, 1, 2, 3), (4,), ())
        assert await admin.alter_reassignments({tp: None}) == {tp: AlterCode.OK}
        state = await partition(admin, tp, "is at rest", lambda s: not s.in_flight and len(s.replicas) == 3)
        assert state.replicas == (1, 2, 3)

    async def test_swap_comes_back_in_another_order(self, admin: KafkaAdmin) -> None:
        tp = TopicPartition("slow-swap", 0)
        await admin.alter_reassignments({tp: replicas_of(4, 2, 3)})
        state = await partition(admin, tp, "is in flight", lambda s: s.in_flight and len(s.replicas) == 4)
        assert (state.adding, state.removing) == ((4,), (1,))
        await admin.alter_reassignments({tp: None})
        state = await partition(admin, tp, "is at rest", lambda s: not s.in_flight and len(s.replicas) == 3)
        assert state.replicas == (2, 3, 1)

    async def test_nothing_in_flight(self, admin: KafkaAdmin) -> None:
        tp = TopicPartition("slow-elect", 0)
        assert await admin.alter_reassignments({tp: None}) == {tp: AlterCode.NO_REASSIGNMENT_IN_PROGRESS}

    async def test_a_replica_out_of_sync_is_not_elected(self, admin: KafkaAdmin) -> None:
        tp = TopicPartition("slow-elect", 0)
        await admin.alter_reassignments({tp: replicas_of(4, 1, 2, 3)})
        await partition(admin, tp, "is in flight", lambda s: s.replicas == (4, 1, 2, 3))
        assert await admin.elect_preferred([tp]) == {tp: AlterCode.PREFERRED_LEADER_NOT_AVAILABLE}
        assert await admin.alter_reassignments({tp: None}) == {tp: AlterCode.OK}


@pytest.mark.usefixtures("crawling")
class TestInFlight:
    """A partition in flight is sent nothing but null; without that rule brokers do harm."""

    async def test_the_adapter_refuses_to_redirect(self, admin: KafkaAdmin) -> None:
        tp, other = TopicPartition("slow-refused", 0), TopicPartition("no-such-topic", 0)
        await admin.alter_reassignments({tp: replicas_of(4, 2, 3)})
        before = (await admin.list_reassignments())[tp]
        answers = await admin.alter_reassignments({tp: replicas_of(1, 2, 3), other: replicas_of(1)})
        assert answers == {tp: AlterCode.IN_FLIGHT, other: AlterCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert (await admin.list_reassignments())[tp] == before
        assert await admin.alter_reassignments({tp: None}) == {tp: AlterCode.OK}

    async def test_what_a_redirect_to_the_originals_would_do(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        """4.3 adds and removes 4 at once, which never ends; 3.9 completes. Null ends both."""
        tp = TopicPartition("slow-redirect", 0)
        await admin.alter_reassignments({tp: replicas_of(4, 2, 3)})
        raw = ReassignmentClient(ConnectionSettings(cluster.bootstrap_servers))
        assert await raw.alter({tp: replicas_of(1, 2, 3)}) == {tp: AlterCode.OK}
        await raw.close()
        if cluster.jars.version.startswith("4.3"):
            state = await partition(admin, tp, "is wedged", lambda s: s.wedged)
            assert (state.adding, state.removing) == ((4,), (4,))
            assert await admin.alter_reassignments({tp: None}) == {tp: AlterCode.OK}
        state = await partition(admin, tp, "is at rest", lambda s: not s.in_flight and len(s.replicas) == 3)
        assert set(state.replicas) == {1, 2, 3}


class TestTargets:
    """Kafka checks that a broker is registered, not that it is alive."""

    async def test_unregistered_broker(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        tp = new_topic(cluster, "unregistered", 1, 2)
        answers = await admin.alter_reassignments({tp: replicas_of(1, 99)})
        assert answers == {tp: AlterCode.INVALID_REPLICA_ASSIGNMENT}

    async def test_dead_broker_is_accepted_and_null_works(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        tp = new_topic(cluster, "dead-target", 1, 2)
        alone = new_topic(cluster, "dead-leader", 5)
        cluster.kill9(5)
        try:
            cluster.wait_gone(5)
            assert await admin.alter_reassignments({tp: replicas_of(1, 2, 5)}) == {tp: AlterCode.OK}
            state = await partition(admin, tp, "is in flight", lambda s: s.in_flight)
            assert (state.adding, state.isr) == ((5,), {1, 2})
            assert await admin.alter_reassignments({tp: None}) == {tp: AlterCode.OK}
            await partition(admin, tp, "is restored", lambda s: s.replicas == (1, 2) and not s.in_flight)
            await self._other_brokers_answer(admin, alone)
        finally:
            cluster.start_brokers(5)

    async def _other_brokers_answer(self, admin: KafkaAdmin, alone: TopicPartition) -> None:
        """A registered, fenced broker is not listed, and hides nothing of the others."""
        assert set((await admin.describe_cluster()).brokers) == {1, 2, 3, 4}
        everyone = [BrokerId(b) for b in (1, 2, 3, 4, 5)]
        assert set(await admin.log_dirs(everyone)) == {1, 2, 3, 4}
        assert set(await admin.broker_configs(everyone, ["log.dirs"])) == {1, 2, 3, 4}
        state = (await admin.describe_partitions())[alone]
        assert (state.leader, state.replicas) == (None, (5,))
        assert alone not in await admin.offsets([alone])
        assert await admin.elect_preferred([alone]) == {alone: AlterCode.PREFERRED_LEADER_NOT_AVAILABLE}
