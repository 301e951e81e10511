"""Cordoned log dirs (KIP-1066): Kafka places nothing new on such a broker; supported from 4.3 on, unknown before."""

from collections.abc import AsyncIterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from e2e.bench.kafka import KafkaCluster
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import DescribeLogDirsRequest
from tests.contract.arranging import new_topic
from tests.contract.differences import CORDONED_LOG_DIRS
from tests.contract.observing import partition, until

from kafka_rebalance.kafka.ports import AlterCode, ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

pytestmark = pytest.mark.brokers

CORDONED = "cordoned.log.dirs"
FIVE = BrokerId(5)


def unset(family: str) -> ConfigValue:
    """The difference: a broker that supports the config describes it even if it is unset."""
    return ConfigValue("" if family >= CORDONED_LOG_DIRS else None, ConfigSource.DEFAULT)


def shown(value: str, family: str) -> ConfigValue:
    """A broker accepts any config name, and hides the value of an unknown one like a password."""
    return ConfigValue(value if family >= CORDONED_LOG_DIRS else None, ConfigSource.DYNAMIC_BROKER)


async def change(admin: KafkaAdmin, op: ConfigOp, value: str = "") -> str | None:
    return (await admin.alter_broker_configs({FIVE: [ConfigChange(CORDONED, op, value)]}))[FIVE]


async def shows(admin: KafkaAdmin, expected: ConfigValue) -> None:
    async def ask() -> ConfigValue:
        return (await admin.broker_configs([FIVE], [CORDONED]))[FIVE][CORDONED]

    await until(CORDONED, ask, lambda seen: seen == expected)


@pytest.fixture
async def cordoned(admin: KafkaAdmin, family: str) -> AsyncIterator[None]:
    assert await change(admin, ConfigOp.SET, "*") is None
    await shows(admin, shown("*", family))
    yield
    assert await change(admin, ConfigOp.DELETE) is None
    await shows(admin, unset(family))


class TestConfig:
    """A dynamic config per broker; only describing the unset config proves support, not a successful write."""

    async def test_unset_it_tells_who_offers_it(self, admin: KafkaAdmin, family: str) -> None:
        await shows(admin, unset(family))

    async def test_a_dir_by_its_path(self, admin: KafkaAdmin, family: str) -> None:
        path = (await admin.log_dirs([FIVE]))[FIVE][0].path
        assert await change(admin, ConfigOp.SET, path) is None
        await shows(admin, shown(path, family))
        assert await change(admin, ConfigOp.DELETE) is None
        await shows(admin, unset(family))

    async def test_a_dir_that_is_not_there(self, admin: KafkaAdmin, family: str) -> None:
        said = await change(admin, ConfigOp.SET, "/not/a/log/dir")
        if family >= CORDONED_LOG_DIRS:
            assert said is not None
            assert "must be present in log.dirs" in said
        else:
            assert said is None
        await change(admin, ConfigOp.DELETE)
        await shows(admin, unset(family))


@pytest.mark.usefixtures("cordoned")
class TestCordoned:
    """Affects only the automatic placement."""

    async def test_reassigned_there_by_name(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        tp = new_topic(cluster, "cordoned-target", 1, 2)
        assert await admin.alter_reassignments({tp: replicas_of(1, 5)}) == {tp: AlterCode.OK}
        await partition(admin, tp, "is on 5", lambda s: s.replicas == (1, 5) and s.isr == {1, 5} and not s.in_flight)

    async def test_created_there_by_name(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        tp = new_topic(cluster, "cordoned-new", 5, 1)
        await partition(admin, tp, "is on 5", lambda s: s.isr == {5, 1} and s.leader == 5)

    async def test_placed_by_kafka(self, admin: KafkaAdmin, librdkafka: AdminClient, family: str) -> None:
        last = TopicPartition("placed", 39)
        topic = NewTopic(last.topic, num_partitions=40, replication_factor=2)
        librdkafka.create_topics([topic])[last.topic].result(timeout=120)
        await partition(admin, last, "is there", lambda _: True)

        async def used() -> set[BrokerId]:
            states = await admin.describe_partitions([last.topic])
            return {broker for state in states.values() for broker in state.replicas}

        await until(
            "brokers used",
            used,
            lambda seen: seen == ({1, 2, 3, 4} if family >= CORDONED_LOG_DIRS else {1, 2, 3, 4, 5}),
        )

    async def test_fewer_brokers_than_replicas(self, librdkafka: AdminClient, family: str) -> None:
        name = "needs-all"
        created = librdkafka.create_topics([NewTopic(name, num_partitions=1, replication_factor=5)])[name]
        if family >= CORDONED_LOG_DIRS:
            with pytest.raises(KafkaException, match="cordoned"):
                created.result(timeout=120)
        else:
            created.result(timeout=120)

    async def test_described_with_the_log_dirs(self, kafka_python: KafkaAdminClient, family: str) -> None:
        request = DescribeLogDirsRequest(topics=None)
        (answer,) = kafka_python._manager.run(lambda: kafka_python._manager.send(request, 5)).results
        assert answer.is_cordoned is (family >= CORDONED_LOG_DIRS)
