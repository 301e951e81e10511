"""Reading a cluster: complete, without side effects, and explicit about unreachable brokers."""

import asyncio
import time
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from e2e.bench.kafka import SASL_USERS, KafkaCluster
from e2e.bench.load import create_topics, fill
from tests.contract.observing import LATEST_SECONDS, partition, until

from kafka_rebalance.api.connection import SaslMechanism
from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import AlterCode, AuthorizedOperations, KafkaAdmin, OffsetRange
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

pytestmark = pytest.mark.brokers


class TestCluster:
    """Ids, racks and addresses of the brokers."""

    async def test_brokers_and_racks(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        info = await admin.describe_cluster()
        assert {broker.id: broker.rack for broker in info.brokers.values()} == cluster.racks
        assert {f"{broker.host}:{broker.port}" for broker in info.brokers.values()} == set(
            cluster.bootstrap_servers.split(",")
        )


class TestPartitions:
    """All partitions in one call, in assignment order, with the topic id."""

    async def test_order_id_and_sizes(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        create_topics(cluster, {"described": [[3, 1, 2], [2, 4, 1]]})
        fill(cluster, {("described", 0): 100_000})
        everything = await admin.describe_partitions()
        first, second = (everything[TopicPartition("described", n)] for n in (0, 1))
        assert (first.replicas, first.leader, first.isr) == ((3, 1, 2), 3, {1, 2, 3})
        assert (second.replicas, second.topic_id) == ((2, 4, 1), first.topic_id)
        assert await admin.describe_partitions([]) == {}
        dirs = await admin.log_dirs([BrokerId(2), BrokerId(5)])
        assert {b: sum(d.replica_bytes.get(first.tp, -1) > 100_000 for d in on) for b, on in dirs.items()} == {
            2: 1,
            5: 0,
        }
        assert all(0 < d.usable_bytes < d.total_bytes for on in dirs.values() for d in on)
        offsets = await admin.offsets([first.tp, second.tp, TopicPartition("not-there", 0)])
        assert offsets == {first.tp: OffsetRange(0, 7), second.tp: OffsetRange(0, 0)}

    async def test_offsets_have_the_epoch_of_the_leader_and_the_time_of_its_answer(
        self, cluster: KafkaCluster, admin: KafkaAdmin
    ) -> None:
        """The epoch grows with each election: it distinguishes a log that went on from one that was cut and written."""
        create_topics(cluster, {"elected-anew": [[1, 2], [2, 1]]})
        tp, other = (TopicPartition("elected-anew", n) for n in (0, 1))
        asked = time.monotonic()
        before = await admin.offsets([tp, other])
        answered = time.monotonic()
        assert all(asked <= (found.read_at or 0) <= answered for found in before.values())
        await admin.alter_reassignments({tp: replicas_of(2, 1)})
        assert await admin.elect_preferred([tp]) == {tp: AlterCode.OK}
        await partition(admin, tp, "is led by 2", lambda state: state.leader == 2)
        after = await until("the new leader answers", lambda: admin.offsets([tp, other]), lambda found: len(found) == 2)
        assert (before[tp].leader_epoch, before[other].leader_epoch) == (0, 0)
        assert (after[tp].leader_epoch or 0) > 0
        assert after[other].leader_epoch == 0


async def commit(cluster: KafkaCluster, group: str, tp: TopicPartition, offset: int) -> None:
    """As a consumer does that assigns partitions by itself, once the topic of offsets has been created."""
    offsets = [ClientPartition(tp.topic, tp.partition, offset)]
    consumer = Consumer(cluster.client_config(**{"group.id": group}))

    async def committed() -> bool:
        with suppress(KafkaException):
            consumer.commit(offsets=offsets, asynchronous=False)
            return True
        return False

    await until(f"{group} commits", committed, bool)
    consumer.close()


class TestRefusals:
    """Reported within the time-out of a call, with the servers' names and without the password."""

    async def test_unreachable(self) -> None:
        admin = connect(ConnectionSettings("127.0.0.1:1"))
        async with asyncio.timeout(LATEST_SECONDS):
            answers = await asyncio.gather(
                admin.describe_cluster(),
                admin.describe_partitions(),
                admin.list_reassignments(),
                admin.alter_reassignments({TopicPartition("t", 0): None}),
                return_exceptions=True,
            )
        await admin.close()
        for error in answers:
            assert isinstance(error, Transient)
            assert error.reason == "KafkaUnreachable"
            assert "127.0.0.1:1" in error.message
            assert "refused" in error.message

    async def test_credentials(self, secured: KafkaCluster) -> None:
        for mechanism in (SaslMechanism.PLAIN, SaslMechanism.SCRAM_SHA_512):
            good = self.settings(secured, mechanism, SASL_USERS["operator"])
            admin = connect(good)
            assert set((await admin.describe_cluster()).brokers) == {1}
            assert await admin.list_reassignments() == {}
            await admin.close()
            bad = connect(self.settings(secured, mechanism, "hunter2-hunter2"))
            for call in (bad.describe_cluster, bad.describe_partitions, bad.list_reassignments):
                with pytest.raises(Permanent) as refused:
                    await call()
                assert refused.value.reason == "KafkaAuthenticationFailed"
                assert secured.bootstrap_servers in refused.value.message
                assert "hunter2" not in repr(refused.value)
            await bad.close()

    async def test_rights(self, secured: KafkaCluster) -> None:
        """Without any permission the cluster is described, and "all" omits topics that the user may not see."""
        admin = connect(self.settings(secured, SaslMechanism.PLAIN, SASL_USERS["operator"]))
        one = [BrokerId(1)]
        for call in (
            admin.describe_partitions(["any"]),
            admin.topic_configs(["any"], ["retention.ms"]),
            admin.broker_configs(one, ["log.dirs"]),
            admin.log_dirs(one),
        ):
            answers = await call
            (refused,) = answers.errors.values()
            assert isinstance(refused, Permanent)
            assert refused.reason == "KafkaAuthorizationFailed"
            assert secured.bootstrap_servers in refused.message
            assert answers == {}
        assert await admin.describe_partitions() == {}
        # KIP-430: what is permitted; without Describe on the cluster nothing is said of the rest.
        assert await admin.authorized_operations(["any"]) == AuthorizedOperations(hidden_topics=frozenset({"any"}))
        await admin.close()

    async def test_all_rights(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        """Without an authorizer everything is permitted."""
        create_topics(cluster, {"permitted": [[1]]})
        found = await admin.authorized_operations(["permitted", "not-there"])
        assert found.cluster == {"Alter", "Describe", "DescribeConfigs", "AlterConfigs"}
        assert found.topics.keys() == {"permitted"}
        assert found.topics["permitted"] > {"Describe", "DescribeConfigs", "AlterConfigs"}
        assert found.hidden_topics == frozenset()

    def settings(self, cluster: KafkaCluster, mechanism: SaslMechanism, password: str) -> ConnectionSettings:
        return ConnectionSettings(
            cluster.bootstrap_servers, sasl_mechanism=mechanism, username="operator", password=password
        )


class TestCommittedOffsets:
    """Describe alone is enough to read the offsets of all consumer groups."""

    async def test_by_group(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        """Whichever brokers coordinate the groups."""
        create_topics(cluster, {"consumed": [[1, 2], [2, 1]]})
        fill(cluster, {("consumed", 0): 100_000})
        tp = TopicPartition("consumed", 0)
        groups = {f"reader-{number}": number for number in range(6)}
        for group, offset in groups.items():
            await commit(cluster, group, tp, offset)
        with pytest.raises(Permanent, match=r"they have \d+ committed offsets, more than the limit of 5"):
            await admin.committed_offsets(5)
        found = await admin.committed_offsets(1_000)
        assert found.errors == {}
        assert {group: found[group] for group in groups} == {group: {tp: offset} for group, offset in groups.items()}
