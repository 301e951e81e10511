"""How real brokers handle the throttle configs: lists, rates and config sources."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from e2e.bench.kafka import SASL_USERS, KafkaCluster
from e2e.bench.load import create_topics
from tests.contract.arranging import FOLLOWER_RATE, LEADER_LIST, LEADER_RATE
from tests.contract.observing import until

from kafka_rebalance.api.connection import SaslMechanism
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import BrokerId

pytestmark = pytest.mark.brokers

ONE = BrokerId(1)


class TestThrottledReplicas:
    """Entries can be appended and subtracted; entries of others are kept."""

    async def change(
        self, admin: KafkaAdmin, op: ConfigOp, value: str, expected: ConfigValue, topic: str = "lists"
    ) -> None:
        assert await admin.alter_topic_configs({topic: [ConfigChange(LEADER_LIST, op, value)]}) == {topic: None}

        async def ask() -> ConfigValue | None:
            return (await admin.topic_configs([topic], [LEADER_LIST])).get(topic, {}).get(LEADER_LIST)

        await until(f"{LEADER_LIST} after {op} {value}", ask, lambda seen: seen == expected)

    async def test_append_subtract_and_the_empty_value(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        create_topics(cluster, {"lists": [[1, 2, 3]]})
        none = ConfigValue("", ConfigSource.DEFAULT)
        assert (await admin.topic_configs(["lists"], [LEADER_LIST]))["lists"][LEADER_LIST] == none
        dynamic = ConfigSource.DYNAMIC_TOPIC
        await self.change(admin, ConfigOp.APPEND, "0:1,0:2", ConfigValue("0:1,0:2", dynamic))
        await self.change(admin, ConfigOp.APPEND, "0:2,0:3", ConfigValue("0:1,0:2,0:3", dynamic))
        await self.change(admin, ConfigOp.SUBTRACT, "0:1,0:9", ConfigValue("0:2,0:3", dynamic))
        await self.change(admin, ConfigOp.SUBTRACT, "0:2,0:3", ConfigValue("", dynamic))
        await self.change(admin, ConfigOp.DELETE, "", none)

    async def test_the_star_stands_alone(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        """The wildcard can be removed, but not combined with entries; invalid entries are refused."""
        create_topics(cluster, {"lists-star": [[1, 2, 3]]})
        star = ConfigValue("*", ConfigSource.DYNAMIC_TOPIC)
        await self.change(admin, ConfigOp.APPEND, "*", star, "lists-star")
        for op, value in ((ConfigOp.APPEND, "0:1"), (ConfigOp.SET, "0:1,*"), (ConfigOp.SET, "0-1")):
            answers = await admin.alter_topic_configs({"lists-star": [ConfigChange(LEADER_LIST, op, value)]})
            assert (answers["lists-star"] or "").startswith("INVALID_CONFIG")
        await self.change(admin, ConfigOp.SUBTRACT, "0:1", star, "lists-star")
        await self.change(admin, ConfigOp.SUBTRACT, "*", ConfigValue("", ConfigSource.DYNAMIC_TOPIC), "lists-star")

    async def test_a_missing_topic_fails_alone(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        create_topics(cluster, {"beside-missing": [[1]]})
        change = [ConfigChange(LEADER_LIST, ConfigOp.APPEND, "0:1")]
        answers = await admin.alter_topic_configs({"beside-missing": change, "never-there": change})
        assert answers["beside-missing"] is None
        assert "UNKNOWN_TOPIC" in (answers["never-there"] or "")
        assert set(await admin.topic_configs(["beside-missing", "never-there"], [LEADER_LIST])) == {"beside-missing"}


class TestRates:
    """A rate has a config source; unset is None."""

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

    async def test_what_is_no_rate_is_refused(self, admin: KafkaAdmin) -> None:
        for value in ("-1", "fast"):
            said = await admin.alter_broker_configs({ONE: [ConfigChange(LEADER_RATE, ConfigOp.SET, value)]})
            assert (said[ONE] or "").startswith("INVALID_REQUEST")
        await self.set(admin, LEADER_RATE, ConfigOp.SET, "0")
        await self.seen(admin, LEADER_RATE, ConfigValue("0", ConfigSource.DYNAMIC_BROKER))
        await self.set(admin, LEADER_RATE, ConfigOp.DELETE)

    async def test_any_name_is_accepted(self, admin: KafkaAdmin) -> None:
        """KIP-542's rate is an unknown config like any other: accepted, its value hidden, without effect."""
        name = "leader.reassignment.throttled.rate"
        await self.set(admin, name, ConfigOp.SET, "1000")
        await self.seen(admin, name, ConfigValue(None, ConfigSource.DYNAMIC_BROKER))
        await self.set(admin, name, ConfigOp.DELETE)
        await self.seen(admin, name, ConfigValue(None, ConfigSource.DEFAULT))

    async def test_librdkafka_takes_one_broker_per_call(self, librdkafka: AdminClient) -> None:
        entry = ConfigEntry(LEADER_RATE, "5", incremental_operation=AlterConfigOpType.SET)
        both = [ConfigResource(ResourceType.BROKER, broker, incremental_configs=[entry]) for broker in ("1", "2")]
        changed, _ = librdkafka.incremental_alter_configs(both).values()
        with pytest.raises(KafkaException, match="Only one ConfigResource of type BROKER"):
            changed.result(timeout=120)

    def default(self, cluster: KafkaCluster, *change: str) -> None:
        """librdkafka refuses the unnamed resource for all brokers; Kafka's own tool accepts it."""
        where = ("--bootstrap-server", cluster.bootstrap_servers, "--entity-type", "brokers", "--entity-default")
        cluster.run_tool("kafka.admin.ConfigCommand", *where, "--alter", *change)


class TestNotPermitted:
    @pytest.fixture
    def guarded(self) -> Iterator[KafkaCluster]:
        """One broker and a controller with ACLs, of which there are none: only admin has rights."""
        with KafkaCluster({1: "a"}, sasl=True, acls=True) as cluster:
            yield cluster

    async def test_the_answer_says_so_and_nothing_changes(self, guarded: KafkaCluster) -> None:
        """Also with two rates in one change."""
        plain = partial(ConnectionSettings, guarded.bootstrap_servers, sasl_mechanism=SaslMechanism.PLAIN)
        super_user, other = (connect(plain(username=u, password=SASL_USERS[u])) for u in ("admin", "operator"))
        create_topics(guarded, {"not-mine": [[1]]})
        rates = [ConfigChange(name, ConfigOp.SET, "1000") for name in (LEADER_RATE, FOLLOWER_RATE)]
        (answer,) = (await other.alter_broker_configs({ONE: rates})).values()
        assert (answer or "").startswith("CLUSTER_AUTHORIZATION_FAILED")
        entry = [ConfigChange(LEADER_LIST, ConfigOp.APPEND, "0:1")]
        (answer,) = (await other.alter_topic_configs({"not-mine": entry})).values()
        assert (answer or "").startswith("TOPIC_AUTHORIZATION_FAILED")
        found = (await super_user.broker_configs([ONE], [LEADER_RATE, FOLLOWER_RATE]))[ONE]
        assert {read.source for read in found.values()}.isdisjoint({ConfigSource.DYNAMIC_BROKER})
        listed = (await super_user.topic_configs(["not-mine"], [LEADER_LIST]))["not-mine"][LEADER_LIST]
        assert listed == ConfigValue("", ConfigSource.DEFAULT)
        await super_user.close()
        await other.close()


class TestReadAfterWrite:
    """A read just after a successful write may return the new value or an earlier one: read again before you decide.

    Each read may go to another broker, and each follows at its own pace: one was seen that was two values behind.
    """

    async def test_the_new_value_comes(
        self, cluster: KafkaCluster, admin: KafkaAdmin, record_property: Callable[[str, object], None]
    ) -> None:
        create_topics(cluster, {"written": [[1, 2, 3]]})
        old, written = 0, [""]
        for number in range(20):
            value = f"0:{number}"
            written.append(value)
            change = ConfigChange(LEADER_LIST, ConfigOp.SET, value)
            assert await admin.alter_topic_configs({"written": [change]}) == {"written": None}
            seen = await self.read(admin)
            assert seen in written
            old += seen != value
            await until(f"{LEADER_LIST} of {value}", lambda: self.read(admin), lambda now, value=value: now == value)
        record_property("old values read", old)

    async def read(self, admin: KafkaAdmin) -> str | None:
        return (await admin.topic_configs(["written"], [LEADER_LIST]))["written"][LEADER_LIST].value
