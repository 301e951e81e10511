"""Effects and results of a preferred leader election, at rest and in flight."""

import pytest
from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics
from tests.contract.arranging import new_topic
from tests.contract.observing import partition, until

from kafka_rebalance.kafka.ports import AlterCode, KafkaAdmin
from kafka_rebalance.model.topology import TopicPartition, replicas_of

pytestmark = pytest.mark.brokers


@pytest.mark.usefixtures("crawling")
class TestInFlight:
    """The preferred leader is elected if it is in sync, even while the reassignment is still in flight."""

    async def test_a_retained_replica(self, admin: KafkaAdmin, heavy: TopicPartition) -> None:
        await admin.alter_reassignments({heavy: replicas_of(2, 1, 3, 4)})
        await partition(admin, heavy, "is in flight", lambda s: s.in_flight and s.replicas[0] == 2)
        assert await admin.elect_preferred([heavy]) == {heavy: AlterCode.OK}
        state = await partition(admin, heavy, "is led by 2", lambda s: s.leader == 2)
        assert (state.adding, state.in_flight) == ((4,), True)

    async def test_an_added_replica_in_sync(self, admin: KafkaAdmin, heavy: TopicPartition) -> None:
        await admin.alter_reassignments({heavy: replicas_of(5, 1, 2, 3, 4)})
        await partition(admin, heavy, "has 5 in sync", lambda s: 5 in s.isr)
        assert await admin.elect_preferred([heavy]) == {heavy: AlterCode.OK}
        state = await partition(admin, heavy, "is led by 5", lambda s: s.leader == 5)
        assert state.in_flight

    async def test_an_added_replica_out_of_sync(self, admin: KafkaAdmin, heavy: TopicPartition) -> None:
        await admin.alter_reassignments({heavy: replicas_of(4, 1, 2, 3)})
        await partition(admin, heavy, "is in flight", lambda s: s.in_flight and s.replicas[0] == 4)
        assert await admin.elect_preferred([heavy]) == {heavy: AlterCode.PREFERRED_LEADER_NOT_AVAILABLE}
        assert (await admin.describe_partitions([heavy.topic]))[heavy].leader == 1


class TestAtRest:
    """Each partition of a request has its own result."""

    async def test_many_are_reordered_and_elected_in_one_call_each(
        self, cluster: KafkaCluster, admin: KafkaAdmin
    ) -> None:
        create_topics(cluster, {"many": [[1, 2, 3]] * 50})
        many = [TopicPartition("many", n) for n in range(50)]
        answers = await admin.alter_reassignments({tp: replicas_of(2, 3, 1) for tp in many})
        assert answers == dict.fromkeys(many, AlterCode.OK)
        assert await admin.elect_preferred(many) == dict.fromkeys(many, AlterCode.OK)

        async def leaders() -> set[int | None]:
            return {state.leader for state in (await admin.describe_partitions(["many"])).values()}

        await until("all are led by 2", leaders, lambda seen: seen == {2})
        assert await admin.elect_preferred(many) == dict.fromkeys(many, AlterCode.ELECTION_NOT_NEEDED)

    async def test_missing_ones_fail_alone(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        tp = new_topic(cluster, "elected", 1, 2)
        await admin.alter_reassignments({tp: replicas_of(2, 1)})
        topic, number = TopicPartition("not-there", 0), TopicPartition("elected", 7)
        assert await admin.elect_preferred([tp, topic, number]) == {
            tp: AlterCode.OK,
            topic: AlterCode.UNKNOWN_TOPIC_OR_PARTITION,
            number: AlterCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
