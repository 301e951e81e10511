"""What real brokers do with a reassignment: the execution relies on each of these rules."""

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from e2e.bench.kafka import SASL_USERS, KafkaCluster
from e2e.bench.load import create_topics
from kafka.admin import KafkaAdminClient
from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.admin import AlterPartitionReassignmentsRequest
from tests.contract.arranging import new_topic, throttle
from tests.contract.differences import FIXED_REPLICATION_FACTOR
from tests.contract.observing import partition, until

from kafka_rebalance.api.connection import SaslMechanism
from kafka_rebalance.errors import Permanent
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import AlterCode, KafkaAdmin, LogDirCode
from kafka_rebalance.kafka.reassignment import ReassignmentClient
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition, replicas_of

pytestmark = pytest.mark.brokers


class TestPureAdd:
    """A superset only adds replicas; the leader changes by election only."""

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

    @pytest.mark.usefixtures("crawling")
    async def test_in_flight_it_shows_what_it_adds(self, admin: KafkaAdmin, heavy: TopicPartition) -> None:
        await admin.alter_reassignments({heavy: replicas_of(1, 2, 3, 4)})
        state = await partition(admin, heavy, "is in flight", lambda s: s.in_flight)
        assert (state.replicas, state.adding, state.removing) == ((1, 2, 3, 4), (4,), ())
        row = (await admin.list_reassignments())[heavy]
        assert (row.replicas, row.adding, row.removing) == ((1, 2, 3, 4), (4,), ())


class TestSwap:
    """A swap removes nothing before the copy is in sync: its peak equals that of an addition followed by a removal."""

    @pytest.mark.usefixtures("crawling")
    async def test_it_holds_all_replicas_until_the_new_one_is_in_sync(
        self, admin: KafkaAdmin, heavy: TopicPartition
    ) -> None:
        """Also shows that an increased rate takes effect in flight: at the old one the copy takes a minute."""
        await admin.alter_reassignments({heavy: replicas_of(4, 2, 3)})
        state = await partition(admin, heavy, "is in flight", lambda s: s.in_flight and len(s.replicas) == 4)
        assert (state.replicas, state.adding, state.removing) == ((4, 2, 3, 1), (4,), (1,))
        assert (state.isr, state.leader) == ({1, 2, 3}, 1)
        await throttle(admin, "1000000000")
        state = await partition(admin, heavy, "is done", lambda s: not s.in_flight and len(s.replicas) == 3)
        assert state.replicas == (4, 2, 3)
        await partition(admin, heavy, "is led by the first of the list", lambda s: s.leader == 4 and s.isr == {2, 3, 4})


class TestAtOnce:
    """A reassignment without a copy is complete when the request returns."""

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


class TestInSync:
    """The listing comes from the controller, the ISR from a broker: they may be out of step."""

    async def test_both_agree_in_the_end(
        self,
        cluster: KafkaCluster,
        admin: KafkaAdmin,
        raw: ReassignmentClient,
        record_property: Callable[[str, object], None],
    ) -> None:
        """An empty listing does not prove that metadata shows the replica in sync; differences are counted."""
        create_topics(cluster, {"two-sources": [[1, 2, 3]] * 20})
        partitions = [TopicPartition("two-sources", n) for n in range(20)]
        assert set((await raw.alter({tp: replicas_of(1, 2, 3, 5) for tp in partitions})).values()) == {AlterCode.OK}
        early = set()

        async def ask() -> bool:
            listed = await raw.list_reassignments()
            states = await admin.describe_partitions(["two-sources"])
            missing = {tp for tp in partitions if tp not in states or 5 not in states[tp].isr}
            early.update(missing - listed.keys())
            return not missing and not listed.keys() & set(partitions)

        await until("all have 5 in sync, and nothing is listed", ask, bool)
        record_property("listing empty before the ISR shows it", len(early))


class TestTargets:
    """Kafka checks that the brokers of a list are registered and distinct."""

    @pytest.mark.parametrize("target", [(1, 99), (1, 1, 2), (1, -1)], ids=["unregistered", "twice", "negative"])
    async def test_refused(self, cluster: KafkaCluster, admin: KafkaAdmin, target: tuple[int, ...]) -> None:
        tp = new_topic(cluster, f"refused{target[-1]}", 1, 2)
        answers = await admin.alter_reassignments({tp: replicas_of(*target)})
        assert answers == {tp: AlterCode.INVALID_REPLICA_ASSIGNMENT}
        assert tp not in await admin.list_reassignments()

    async def test_one_bad_order_does_not_hold_up_the_others(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        good, bad = new_topic(cluster, "good-order", 1, 2), new_topic(cluster, "bad-order", 1, 2)
        missing = TopicPartition("good-order", 7)
        orders = {bad: replicas_of(1, 99), good: replicas_of(2, 1), missing: replicas_of(1)}
        assert await admin.alter_reassignments(orders) == {
            bad: AlterCode.INVALID_REPLICA_ASSIGNMENT,
            good: AlterCode.OK,
            missing: AlterCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        await partition(admin, good, "is reordered", lambda s: s.replicas == (2, 1))


@pytest.mark.usefixtures("crawling")
class TestFixedReplicationFactor:
    """KIP-860's flag refuses every step that changes the replication factor, and so make-before-break."""

    def alter(self, kafka_python: KafkaAdminClient, tp: TopicPartition, replicas: Replicas | None) -> int:
        """Kafka's error code for a request that must not change the replication factor."""
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic
        order = topic.ReassignablePartition(partition_index=tp.partition, replicas=replicas and list(replicas))
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=8_000,
            allow_replication_factor_change=False,
            topics=[topic(name=tp.topic, partitions=[order])],
            min_version=1,
        )
        answer = kafka_python._manager.run(kafka_python._send_request_to_controller, request)
        return answer.responses[0].partitions[0].error_code

    async def test_what_it_refuses(
        self, admin: KafkaAdmin, heavy: TopicPartition, kafka_python: KafkaAdminClient, family: str
    ) -> None:
        if family < FIXED_REPLICATION_FACTOR:
            with pytest.raises(IncompatibleBrokerVersion):
                self.alter(kafka_python, heavy, replicas_of(4, 2, 3))
            return
        invalid_replication_factor = 38
        assert self.alter(kafka_python, heavy, replicas_of(4, 1, 2, 3)) == invalid_replication_factor
        assert self.alter(kafka_python, heavy, replicas_of(1, 2)) == invalid_replication_factor
        assert self.alter(kafka_python, heavy, replicas_of(4, 2, 3)) == 0
        await partition(admin, heavy, "is in flight", lambda s: s.in_flight)
        assert self.alter(kafka_python, heavy, None) == 0


class TestWithoutAlter:
    """A user that may describe everything, and alter nothing."""

    async def test_each_partition_is_refused(self) -> None:
        """Kafka refuses reassignments and elections as a whole, and log dirs one by one."""
        with KafkaCluster({1: "a"}, sasl=True, acls=True) as guarded:
            create_topics(guarded, {"guarded": [[1], [1]]})
            tps = [TopicPartition("guarded", number) for number in range(2)]
            described = [
                AclBinding(
                    kind,
                    name,
                    ResourcePatternType.LITERAL,
                    "User:operator",
                    "*",
                    AclOperation.DESCRIBE,
                    AclPermissionType.ALLOW,
                )
                for kind, name in ((ResourceType.BROKER, "kafka-cluster"), (ResourceType.TOPIC, "guarded"))
            ]
            super_user = guarded.admin()
            for done in super_user.create_acls(described).values():
                done.result(timeout=120)
            password = SASL_USERS["operator"]
            reader = connect(
                ConnectionSettings(
                    guarded.bootstrap_servers,
                    sasl_mechanism=SaslMechanism.PLAIN,
                    username="operator",
                    password=password,
                )
            )
            await until("its rights", reader.describe_partitions, lambda found: tps[0] in found)
            (log_dir, *_) = (await reader.log_dirs([BrokerId(1)]))[BrokerId(1)]
            refused = dict.fromkeys(tps, AlterCode.NOT_AUTHORIZED)
            assert await reader.alter_reassignments(dict.fromkeys(tps, replicas_of(1))) == refused
            with pytest.raises(Permanent, match="does not allow us to elect leaders"):
                await reader.elect_preferred(tps)
            asked = {(tp, BrokerId(1)): log_dir.path for tp in tps}
            assert await reader.alter_log_dirs(asked) == dict.fromkeys(asked, LogDirCode.NOT_AUTHORIZED)
            assert await reader.list_reassignments() == {}
            await reader.close()
