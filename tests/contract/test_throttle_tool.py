"""What Kafka's own ReassignPartitionsCommand does to throttles of other owners.

It keeps no state: it overwrites existing values, and in the end deletes them, on every broker of the cluster.
"""

import json
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple

import pytest
from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics
from tests.contract.arranging import (
    EVERYONE,
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    begin,
    change_lists,
    default_of_all_brokers,
    put_to_rest,
    write,
)
from tests.contract.observing import partition, until

from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

pytestmark = [pytest.mark.brokers, pytest.mark.usefixtures("rates_put_back")]

OUR_RATE = "900"
"""Bytes per second: after its first bite a copy does not progress for a minute."""
THEIR_RATE = "300"

Tool = Callable[..., str]
Sides = tuple[str | None, ...]
"""The values of the leader's and the follower's side; None: not set."""

OUR_RATES: Sides = (OUR_RATE, OUR_RATE)
OUR_LISTS = ("0:1,0:2", "0:4")
EVERYTHING = ("*", "*")
THEIR_RATES: Sides = (THEIR_RATE, THEIR_RATE)
NOTHING: Sides = (None, None)
GONE = dict.fromkeys(EVERYONE, NOTHING)
OWN_SOURCES = {ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_TOPIC}


@pytest.fixture
def tool(cluster: KafkaCluster) -> Tool:
    """Runs it with a JSON file of these targets; returns its output."""

    def run(target: Mapping[TopicPartition, Sequence[int]], *options: str) -> str:
        rows = [{**tp._asdict(), "replicas": list(replicas)} for tp, replicas in target.items()]
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=cluster.directory) as file:
            json.dump({"version": 1, "partitions": rows}, file)
            file.flush()
            where = ("--bootstrap-server", cluster.bootstrap_servers, "--reassignment-json-file", file.name)
            return cluster.run_tool("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", *where, *options)

    return run


class Ours(NamedTuple):
    """Our moves under a throttle on all five brokers: one partition in flight without progress, and others at rest."""

    moving: TopicPartition
    beside: TopicPartition
    elsewhere: TopicPartition
    """At rest in another topic with wildcard lists."""


@pytest.fixture
async def ours(cluster: KafkaCluster, admin: KafkaAdmin, request: pytest.FixtureRequest) -> AsyncIterator[Ours]:
    """Partitions on [1, 2]; the first is being reassigned to [1, 2, 4]."""
    topic = f"{request.cls.__name__}-{request.node.name}"
    create_topics(cluster, {topic: [[1, 2]] * 2, f"{topic}-else": [[1, 2]]})
    ours = Ours(TopicPartition(topic, 0), TopicPartition(topic, 1), TopicPartition(f"{topic}-else", 0))
    write(cluster, ours)
    rates = [ConfigChange(name, ConfigOp.SET, OUR_RATE) for name in (LEADER_RATE, FOLLOWER_RATE)]
    assert await admin.alter_broker_configs(dict.fromkeys(EVERYONE, rates)) == dict.fromkeys(EVERYONE)
    await change_lists(admin, topic, ConfigOp.SET, *OUR_LISTS)
    await change_lists(admin, ours.elsewhere.topic, ConfigOp.SET, *EVERYTHING)
    await begin(admin, {ours.moving: replicas_of(1, 2, 4)})
    await partition(admin, ours.moving, "is in flight", lambda s: s.in_flight)
    yield ours
    await put_to_rest(admin, *ours)


async def reads(
    admin: KafkaAdmin, ours: Ours, rates: Mapping[int, Sides], lists: Sides = OUR_LISTS, elsewhere: Sides = EVERYTHING
) -> None:
    """Wait until the configs have these values; brokers that are not listed have our rates."""
    all_rates = {broker: rates.get(broker, OUR_RATES) for broker in EVERYONE}
    expected = all_rates, {ours.moving.topic: lists, ours.elsewhere.topic: elsewhere}

    async def ask() -> tuple[dict[BrokerId, Sides], dict[str, Sides]]:
        brokers = await admin.broker_configs(EVERYONE, [LEADER_RATE, FOLLOWER_RATE])
        topics = await admin.topic_configs([ours.moving.topic, ours.elsewhere.topic], [LEADER_LIST, FOLLOWER_LIST])
        return (
            {broker: own(of[LEADER_RATE], of[FOLLOWER_RATE]) for broker, of in brokers.items()},
            {topic: own(of[LEADER_LIST], of[FOLLOWER_LIST]) for topic, of in topics.items()},
        )

    await until("the throttle", ask, lambda seen: seen == expected)


def own(leader: ConfigValue, follower: ConfigValue) -> Sides:
    return tuple(value.value if value.source in OWN_SOURCES else None for value in (leader, follower))


class TestExecute:
    """It overwrites both rates of the brokers it moves between and both lists of its topics."""

    async def test_alone(self, admin: KafkaAdmin, ours: Ours, tool: Tool) -> None:
        await put_to_rest(admin, ours.moving)
        tool({ours.beside: [1, 3]}, "--execute", "--throttle", THEIR_RATE)
        await reads(admin, ours, dict.fromkeys((1, 2, 3), THEIR_RATES), ("1:1,1:2", "1:3"))

    async def test_beside_another(self, admin: KafkaAdmin, ours: Ours, tool: Tool) -> None:
        """It treats all reassignments in flight as its own, and changes those brokers and topics, too.

        It overwrites them with its own values; additional entries of ours are lost.
        """
        await change_lists(admin, ours.moving.topic, ConfigOp.APPEND, "7:7", "7:8")
        with pytest.raises(RuntimeError, match="Use --additional to override"):
            tool({ours.elsewhere: [1, 3]}, "--execute", "--throttle", THEIR_RATE)
        tool({ours.elsewhere: [1, 3]}, "--execute", "--additional", "--throttle", THEIR_RATE)
        rates = dict.fromkeys((1, 2, 3, 4), THEIR_RATES)
        await reads(admin, ours, rates, OUR_LISTS, elsewhere=("0:1,0:2", "0:3"))

    async def test_without_a_rate(self, admin: KafkaAdmin, ours: Ours, tool: Tool) -> None:
        tool({ours.beside: [1, 3]}, "--execute", "--additional")
        await reads(admin, ours, {})


class TestVerify:
    """While anything is in flight in the cluster it changes nothing; otherwise it deletes."""

    async def test_in_flight(self, admin: KafkaAdmin, ours: Ours, tool: Tool) -> None:
        tool({ours.elsewhere: [1, 2]}, "--verify")
        await reads(admin, ours, {})

    async def test_at_rest(self, cluster: KafkaCluster, admin: KafkaAdmin, ours: Ours, tool: Tool) -> None:
        """Deletes both rates of every broker, and both lists of the topics in its file; other topics are not changed.

        The default of all brokers stays.
        """
        await put_to_rest(admin, ours.moving)
        tool({ours.elsewhere: [1, 2]}, "--verify", "--preserve-throttles")
        await reads(admin, ours, {})
        with default_of_all_brokers(cluster, LEADER_RATE, "1000"):
            tool({ours.elsewhere: [1, 2]}, "--verify")
            await reads(admin, ours, GONE, elsewhere=NOTHING)
            default = ConfigValue("1000", ConfigSource.DYNAMIC_DEFAULT_BROKER)
            assert (await admin.broker_configs([BrokerId(4)], [LEADER_RATE]))[BrokerId(4)][LEADER_RATE] == default


class TestCancel:
    """It deletes like `--verify`, without checking for other reassignments in flight."""

    async def test_beside_another(self, admin: KafkaAdmin, ours: Ours, tool: Tool) -> None:
        """Our move continues at full speed: its list entries remain, its rates are deleted."""
        await begin(admin, {ours.elsewhere: replicas_of(1, 3)})
        tool({ours.elsewhere: [1, 3]}, "--cancel", "--preserve-throttles")
        await reads(admin, ours, {})
        assert (await partition(admin, ours.moving, "is there", lambda _: True)).in_flight
        await begin(admin, {ours.elsewhere: replicas_of(1, 3)})
        tool({ours.elsewhere: [1, 3]}, "--cancel")
        await reads(admin, ours, GONE, elsewhere=NOTHING)
        await partition(admin, ours.moving, "has arrived", lambda s: not s.in_flight and s.isr == {1, 2, 4})

    async def test_nothing(self, admin: KafkaAdmin, ours: Ours, tool: Tool) -> None:
        """Even if there is nothing to cancel."""
        tool({ours.elsewhere: [1, 3]}, "--cancel")
        await reads(admin, ours, GONE, elsewhere=NOTHING)
