"""What real brokers do with the configs that throttle: lists, rates and where a value comes from."""

import pytest
from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics
from tests.contract.observing import until

from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId

pytestmark = pytest.mark.brokers

LIST = "leader.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
ONE = BrokerId(1)


class TestThrottledReplicas:
    """Entries are appended and subtracted, and foreign ones survive."""

    async def change(self, admin: KafkaAdmin, op: ConfigOp, value: str, expected: ConfigValue) -> None:
        assert await admin.alter_topic_configs({"lists": [ConfigChange(LIST, op, value)]}) == {"lists": None}

        async def ask() -> ConfigValue:
            return (await admin.topic_configs(["lists"], [LIST]))["lists"][LIST]

        await until(f"{LIST} after {op} {value}", ask, lambda seen: seen == expected)

    async def test_append_subtract_and_the_empty_value(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        create_topics(cluster, {"lists": [[1, 2, 3]]})
        none = ConfigValue("", ConfigSource.DEFAULT)
        assert (await admin.topic_configs(["lists"], [LIST]))["lists"][LIST] == none
        dynamic = ConfigSource.DYNAMIC_TOPIC
        await self.change(admin, ConfigOp.APPEND, "0:1,0:2", ConfigValue("0:1,0:2", dynamic))
        await self.change(admin, ConfigOp.APPEND, "0:2,0:3", ConfigValue("0:1,0:2,0:3", dynamic))
        await self.change(admin, ConfigOp.SUBTRACT, "0:1,0:9", ConfigValue("0:2,0:3", dynamic))
        await self.change(admin, ConfigOp.SUBTRACT, "0:2,0:3", ConfigValue("", dynamic))
        await self.change(admin, ConfigOp.DELETE, "", none)

    async def test_a_missing_topic_fails_alone(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        create_topics(cluster, {"beside-missing": [[1]]})
        change = [ConfigChange(LIST, ConfigOp.APPEND, "0:1")]
        answers = await admin.alter_topic_configs({"beside-missing": change, "never-there": change})
        assert answers["beside-missing"] is None
        assert "UNKNOWN_TOPIC" in (answers["never-there"] or "")
        assert set(await admin.topic_configs(["beside-missing", "never-there"], [LIST])) == {"beside-missing"}


class TestRates:
    """A rate tells where it comes from; unset is None."""

    async def seen(self, admin: KafkaAdmin, name: str, expected: ConfigValue) -> None:
        async def ask() -> ConfigValue:
            return (await admin.broker_configs([ONE], [name]))[ONE][name]

        await until(name, ask, lambda value: value == expected)

    async def set(self, admin: KafkaAdmin, name: str, op: ConfigOp, value: str = "") -> None:
        assert await admin.alter_broker_configs({ONE: [ConfigChange(name, op, value)]}) == {ONE: None}

    async def test_none_then_dynamic(self, admin: KafkaAdmin) -> None:
        unset = ConfigValue(None, ConfigSource.DEFAULT)
        await self.seen(admin, LEADER_RATE, unset)
        await self.set(admin, LEADER_RATE, ConfigOp.SET, "12345678")
        await self.seen(admin, LEADER_RATE, ConfigValue("12345678", ConfigSource.DYNAMIC_BROKER))
        await self.set(admin, LEADER_RATE, ConfigOp.DELETE)
        await self.seen(admin, LEADER_RATE, unset)

    async def test_static_below_dynamic(self, admin: KafkaAdmin) -> None:
        static = ConfigValue("1000000000", ConfigSource.STATIC_BROKER)
        await self.seen(admin, FOLLOWER_RATE, static)
        await self.set(admin, FOLLOWER_RATE, ConfigOp.SET, "900000000")
        await self.seen(admin, FOLLOWER_RATE, ConfigValue("900000000", ConfigSource.DYNAMIC_BROKER))
        await self.set(admin, FOLLOWER_RATE, ConfigOp.DELETE)
        await self.seen(admin, FOLLOWER_RATE, static)

    async def test_dynamic_default(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        self.default(cluster, "--add-config", f"{LEADER_RATE}=77777777")
        await self.seen(admin, LEADER_RATE, ConfigValue("77777777", ConfigSource.DYNAMIC_DEFAULT_BROKER))
        self.default(cluster, "--delete-config", LEADER_RATE)
        await self.seen(admin, LEADER_RATE, ConfigValue(None, ConfigSource.DEFAULT))

    def default(self, cluster: KafkaCluster, *change: str) -> None:
        """librdkafka refuses the resource without a name that stands for all brokers; Kafka's own tool does not."""
        where = ("--bootstrap-server", cluster.bootstrap_servers, "--entity-type", "brokers", "--entity-default")
        cluster.run_tool("kafka.admin.ConfigCommand", *where, "--alter", *change)
