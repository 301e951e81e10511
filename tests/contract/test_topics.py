"""Topics that are missing, deleted, recreated or given partitions during a reassignment.

Reassignments identify topics by name only. Only the topic id distinguishes a topic from a recreated one.
"""

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics
from kafka.admin import KafkaAdminClient
from tests.contract.arranging import LEADER_LIST, new_heavy_topic, new_topic, put_to_rest
from tests.contract.observing import partition, until

from kafka import TopicPartition as ClientPartition
from kafka_rebalance.kafka.ports import AlterCode, ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of

pytestmark = pytest.mark.brokers


class TestMissing:
    """No call creates a topic, and a listing silently omits unknown topics."""

    async def test_no_call_creates_a_missing_topic(self, admin: KafkaAdmin) -> None:
        missing = TopicPartition("must-not-appear", 0)
        assert await admin.describe_partitions([missing.topic]) == {}
        assert await admin.topic_configs([missing.topic], ["retention.ms"]) == {}
        assert await admin.offsets([missing]) == {}
        unknown = {missing: AlterCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert await admin.elect_preferred([missing]) == unknown
        assert await admin.alter_reassignments({missing: replicas_of(1)}) == unknown
        assert await admin.alter_reassignments({missing: None}) == unknown
        assert missing not in await admin.describe_partitions()

    async def test_librdkafka_creates_one_unless_told_otherwise(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        """Hence `allow.auto.create.topics` in our client's settings: otherwise a deleted topic would be recreated."""
        AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics("comes-to-be", timeout=10)
        await partition(admin, TopicPartition("comes-to-be", 0), "is there", lambda _: True)

    async def test_a_listing_omits_what_is_missing_and_what_is_at_rest(
        self, cluster: KafkaCluster, kafka_python: KafkaAdminClient
    ) -> None:
        """An alteration returns a result for both."""
        tp = new_topic(cluster, "not-listed", 1, 2)
        asked = [ClientPartition("no-such-topic", 0), ClientPartition(tp.topic, 7), ClientPartition(tp.topic, 0)]
        assert kafka_python.list_partition_reassignments(asked) == {}
        assert set(kafka_python.alter_partition_reassignments(dict.fromkeys(asked))) == set(asked)


@pytest.mark.usefixtures("crawling")
class TestDeleted:
    """The reassignment, the throttled lists and the copy are deleted with the topic; the name may be reused."""

    async def test_deleted_and_made_again_in_flight(
        self, cluster: KafkaCluster, admin: KafkaAdmin, librdkafka: AdminClient
    ) -> None:
        (tp,) = new_heavy_topic(cluster, "doomed", [1, 2, 3])
        await admin.alter_topic_configs({tp.topic: [ConfigChange(LEADER_LIST, ConfigOp.SET, "0:1")]})
        await admin.alter_reassignments({tp: replicas_of(4, 2, 3)})
        before = await partition(admin, tp, "is in flight", lambda s: s.in_flight)

        librdkafka.delete_topics([tp.topic])[tp.topic].result(timeout=120)
        assert tp not in await admin.list_reassignments()
        await until("metadata forgets it", lambda: self.seen(admin, tp), lambda state: state is None)
        unknown = {tp: AlterCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert await admin.alter_reassignments({tp: None}) == unknown
        assert await admin.alter_reassignments({tp: replicas_of(1, 2, 3)}) == unknown
        await until("the copy is gone", lambda: self.brokers_with(admin, tp), lambda brokers: not brokers)

        create_topics(cluster, {tp.topic: [[1, 2, 3]]})
        after = await partition(admin, tp, "is made again", lambda _: True)
        assert after.topic_id != before.topic_id
        assert (after.replicas, after.in_flight) == ((1, 2, 3), False)
        assert await admin.alter_reassignments({tp: None}) == {tp: AlterCode.NO_REASSIGNMENT_IN_PROGRESS}

        async def throttled() -> ConfigValue | None:
            return (await admin.topic_configs([tp.topic], [LEADER_LIST])).get(tp.topic, {}).get(LEADER_LIST)

        await until("nothing is throttled", throttled, lambda seen: seen == ConfigValue("", ConfigSource.DEFAULT))

    async def test_an_order_for_the_old_topic_is_carried_out_on_the_new(
        self, cluster: KafkaCluster, admin: KafkaAdmin, librdkafka: AdminClient
    ) -> None:
        tp = new_topic(cluster, "namesake", 1, 2, 3)
        before = await partition(admin, tp, "is there", lambda _: True)
        librdkafka.delete_topics([tp.topic])[tp.topic].result(timeout=120)
        await until("metadata forgets it", lambda: self.seen(admin, tp), lambda state: state is None)
        create_topics(cluster, {tp.topic: [[3, 2, 1]]})
        assert await admin.alter_reassignments({tp: replicas_of(1, 2)}) == {tp: AlterCode.OK}
        after = await partition(admin, tp, "is altered", lambda s: s.replicas == (1, 2))
        assert after.topic_id != before.topic_id

    async def seen(self, admin: KafkaAdmin, tp: TopicPartition) -> PartitionState | None:
        return (await admin.describe_partitions([tp.topic])).get(tp)

    async def brokers_with(self, admin: KafkaAdmin, tp: TopicPartition) -> set[BrokerId]:
        everyone = [BrokerId(broker) for broker in (1, 2, 3, 4, 5)]
        dirs = await admin.log_dirs(everyone)
        assert set(dirs) == set(everyone)
        return {broker for broker, on in dirs.items() for one in on if tp in one.replica_bytes}


@pytest.mark.usefixtures("crawling")
class TestPartitionsAdded:
    """New partitions get as many replicas as partition 0 has at that moment, including those being added."""

    @pytest.mark.parametrize("target", [(4, 1, 2, 3), (4, 2, 3)], ids=["addition", "swap"])
    async def test_in_flight(
        self, cluster: KafkaCluster, admin: KafkaAdmin, librdkafka: AdminClient, target: tuple[int, ...]
    ) -> None:
        """The reassignment continues; new partitions of a topic with three replicas keep four."""
        (tp,) = new_heavy_topic(cluster, f"growing{len(target)}", [1, 2, 3])
        new = [TopicPartition(tp.topic, n) for n in (1, 2)]
        await admin.alter_reassignments({tp: replicas_of(*target)})
        await partition(admin, tp, "is in flight", lambda s: s.in_flight)
        librdkafka.create_partitions([NewPartitions(tp.topic, 3)])[tp.topic].result(timeout=120)
        for added in new:
            state = await partition(admin, added, "is there", lambda _: True)
            assert (len(state.replicas), state.in_flight) == (4, False)
        assert (await admin.list_reassignments())[tp].adding == (4,)
        await put_to_rest(admin, tp)
        assert len((await admin.describe_partitions([tp.topic]))[new[0]].replicas) == 4


class TestJustMade:
    """A lagging broker does not know a new topic yet: a single such result does not prove that it was deleted."""

    async def test_absent_or_whole(self, admin: KafkaAdmin, librdkafka: AdminClient) -> None:
        names = [f"just-made-{n}" for n in range(20)]
        for name in names:
            librdkafka.create_topics([NewTopic(name, num_partitions=1, replica_assignment=[[1, 2, 3]])])[name].result(
                timeout=30
            )
            assert len(await admin.describe_partitions([name])) in (0, 1)

        async def known() -> set[str]:
            return {tp.topic for tp in await admin.describe_partitions(names)}

        await until("all are known", known, lambda seen: seen == set(names))
