"""What completes and what waits while brokers 3 and 5 are dead, and when they return.

All tests here share one outage: some reassignments are submitted before it, the others as soon as the cluster has
noticed it, and each test checks its own partition.
"""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from e2e.bench.kafka import KafkaCluster
from tests.contract.arranging import (
    FOLLOWER_LIST,
    LEADER_LIST,
    LEADER_RATE,
    new_heavy_topic,
    settings_of,
    throttle,
    write,
)
from tests.contract.differences import COMPLETES_BESIDE_DEAD, ELIGIBLE_LEADERS
from tests.contract.observing import partition

from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import AlterCode, ConfigChange, ConfigOp, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition, replicas_of

pytestmark = pytest.mark.brokers

DEAD = {3, 5}
EVERYONE = [BrokerId(broker) for broker in (1, 2, 3, 4, 5)]


ALL = "~"
"""Greater than any release line."""


class Order(NamedTuple):
    """Original and target, and the release lines that do not complete it while the brokers are dead."""

    replicas: Replicas
    target: Replicas
    waits_before: str = ""


SENT_BEFORE = {
    "swap beside two dead": Order(replicas_of(1, 3, 5), replicas_of(4, 3, 5), COMPLETES_BESIDE_DEAD),
}
SENT_AFTER = {
    "replace a dead one": Order(replicas_of(1, 2, 5), replicas_of(1, 2, 4)),
    "replace both dead at once": Order(replicas_of(1, 3, 5), replicas_of(1, 2, 4)),
    "replace one of two dead": Order(replicas_of(1, 3, 5), replicas_of(1, 4, 5), COMPLETES_BESIDE_DEAD),
    "remove one of two dead": Order(replicas_of(1, 3, 5), replicas_of(1, 5), ALL),
    "remove a dead one": Order(replicas_of(1, 2, 5), replicas_of(1, 2)),
    "reorder beside a dead one": Order(replicas_of(1, 2, 5), replicas_of(2, 1, 5)),
    "swap beside a dead one": Order(replicas_of(1, 2, 5), replicas_of(1, 4, 5), COMPLETES_BESIDE_DEAD),
    "add beside a dead one": Order(replicas_of(1, 2, 5), replicas_of(1, 2, 5, 4), COMPLETES_BESIDE_DEAD),
    "remove one beside a dead one": Order(replicas_of(1, 2, 5), replicas_of(1, 5), ALL),
    "remove all that are alive": Order(replicas_of(1, 3, 5), replicas_of(3, 5), ALL),
    "add one, remove two beside a dead one": Order(replicas_of(1, 2, 5), replicas_of(4, 5), ALL),
    "move to a dead one": Order(replicas_of(1, 2, 4), replicas_of(1, 2, 5), ALL),
}
ORDERS = SENT_BEFORE | SENT_AFTER


@dataclass
class Outage:
    """The partitions by reassignment, those of other tests, and the results of the requests."""

    admin: KafkaAdmin
    ordered: dict[str, TopicPartition]
    only: TopicPartition
    led_by_a_dead_one: TopicPartition
    to_be_cancelled: TopicPartition
    slowed: TopicPartition
    twin: TopicPartition
    answers: dict[TopicPartition, AlterCode] = field(default_factory=dict)

    async def send(self, orders: dict[str, Order]) -> None:
        answers = await self.admin.alter_reassignments({self.ordered[o]: orders[o].target for o in orders})
        self.answers.update(answers)


@pytest.fixture(scope="module")
async def outage(cluster: KafkaCluster) -> AsyncIterator[Outage]:
    """That of the module, with a client of its own."""
    admin = connect(settings_of(cluster))
    async with outage_of(cluster, admin) as outage:
        yield outage
    await admin.close()


@contextlib.asynccontextmanager
async def outage_of(cluster: KafkaCluster, admin: KafkaAdmin) -> AsyncIterator[Outage]:
    """3 and 5 are dead and fenced; 4 is not throttled."""
    others = [[5, 1, 2], [1, 2, 4], [1, 2, 3], [1, 2, 3]]
    partitions = new_heavy_topic(cluster, "outage", *(order.replicas for order in ORDERS.values()), *others)
    (only,) = new_heavy_topic(cluster, "outage-only", [5])
    outage = Outage(admin, dict(zip(ORDERS, partitions, strict=False)), only, *partitions[len(ORDERS) :])
    min_insync = ConfigChange("min.insync.replicas", ConfigOp.SET, "2")
    assert await admin.alter_topic_configs({"outage": [min_insync]}) == {"outage": None}
    await throttle(admin, "1")
    await outage.send(SENT_BEFORE)
    assert await admin.alter_reassignments({only: replicas_of(4)}) == {only: AlterCode.OK}
    await partition(admin, only, "is in flight", lambda s: s.in_flight)
    cluster.kill9(*DEAD)
    try:
        cluster.wait_gone(*DEAD)
        for name, tp in outage.ordered.items():
            alive = set(ORDERS[name].replicas) - DEAD
            await partition(admin, tp, "lost the dead", lambda s, alive=alive: s.isr == alive)
        await throttle(admin, None)
        await outage.send(SENT_AFTER)
        yield outage
    finally:
        if gone := DEAD - set(cluster.running):
            cluster.start_brokers(*gone)


@pytest.fixture(scope="module")
async def returned(cluster: KafkaCluster, outage: Outage) -> AsyncIterator[Outage]:
    """At the end of the outage."""
    async with return_after(cluster, outage):
        yield outage


@contextlib.asynccontextmanager
async def return_after(cluster: KafkaCluster, outage: Outage) -> AsyncIterator[None]:
    """3 and 5 are back and have to catch up; the leader of `slowed` is throttled, its followers are not."""
    write(cluster, [*[outage.slowed] * 5, outage.twin])
    lists = [
        ConfigChange(FOLLOWER_LIST, ConfigOp.DELETE),
        ConfigChange(LEADER_LIST, ConfigOp.SET, f"{outage.slowed.partition}:1"),
    ]
    assert await outage.admin.alter_topic_configs({"outage": lists}) == {"outage": None}
    await throttle(outage.admin, "1", broker=1, name=LEADER_RATE)
    cluster.start_brokers(*DEAD)
    yield
    await throttle(outage.admin, None, broker=1, name=LEADER_RATE)


class TestOrders:
    """With a dead replica, 3.9 waits until the whole target is in sync; 4.x waits if more replicas are removed than
    added.

    Otherwise 4.x completes when the added replicas are in sync, regardless of `min.insync.replicas`: "swap beside two
    dead" ends with one replica in sync although two are required.
    """

    @pytest.mark.parametrize("name", ORDERS)
    async def test_completes_or_waits(self, admin: KafkaAdmin, outage: Outage, family: str, name: str) -> None:
        tp, order = outage.ordered[name], ORDERS[name]
        assert outage.answers[tp] == AlterCode.OK
        if family < order.waits_before:
            alive = {*order.replicas, *order.target} - DEAD
            await partition(admin, tp, "has all who are alive in sync", lambda s: s.in_flight and s.isr == alive)
            assert tp in await admin.list_reassignments()
        else:
            alive = set(order.target) - DEAD
            await partition(
                admin, tp, "is done", lambda s: s.replicas == order.target and s.isr == alive and not s.in_flight
            )

    async def test_null_ends_what_can_not_be_done(self, admin: KafkaAdmin, outage: Outage) -> None:
        tp = outage.to_be_cancelled
        assert await admin.alter_reassignments({tp: replicas_of(1, 2, 4, 5)}) == {tp: AlterCode.OK}
        await partition(admin, tp, "is in flight", lambda s: s.adding == (5,))
        assert await admin.alter_reassignments({tp: None}) == {tp: AlterCode.OK}
        await partition(admin, tp, "is restored", lambda s: s.replicas == (1, 2, 4) and not s.in_flight)

    async def test_null_where_the_only_original_is_dead(self, admin: KafkaAdmin, outage: Outage, family: str) -> None:
        """The replica is an eligible leader outside the ISR (KIP-966); Kafka refuses to remove the last one."""
        tp = outage.only
        if family >= ELIGIBLE_LEADERS:
            refused = {tp: AlterCode.INVALID_REPLICA_ASSIGNMENT}
            assert await admin.alter_reassignments({tp: None}) == refused
            await partition(admin, tp, "goes on", lambda s: s.in_flight and s.isr == set() and s.leader is None)
        else:
            assert await admin.alter_reassignments({tp: None}) == {tp: AlterCode.OK}
            await partition(
                admin, tp, "is restored", lambda s: s.replicas == (5,) and s.isr == {5} and s.leader is None
            )


class TestAround:
    """A dead broker is not described, and does not affect the results of the others."""

    async def test_the_others_answer(self, admin: KafkaAdmin, outage: Outage) -> None:
        there = set(EVERYONE) - DEAD
        assert set((await admin.describe_cluster()).brokers) == there
        assert set(await admin.log_dirs(EVERYONE)) == there
        assert set(await admin.broker_configs(EVERYONE, ["log.dirs"])) == there

    async def test_a_partition_without_a_leader(self, admin: KafkaAdmin, outage: Outage) -> None:
        state = (await admin.describe_partitions())[outage.only]
        assert (state.leader, 5 in state.replicas) == (None, True)
        assert outage.only not in await admin.offsets([outage.only])

    async def test_elections(self, admin: KafkaAdmin, outage: Outage) -> None:
        both = [outage.led_by_a_dead_one, outage.only]
        assert await admin.elect_preferred(both) == dict.fromkeys(both, AlterCode.PREFERRED_LEADER_NOT_AVAILABLE)

    async def test_its_config_can_not_be_changed(self, admin: KafkaAdmin, outage: Outage) -> None:
        """A change of broker configs is sent to each broker; the others do not wait for a dead one."""
        change = [ConfigChange(LEADER_RATE, ConfigOp.DELETE)]
        answers = await admin.alter_broker_configs({BrokerId(1): change, BrokerId(5): change})
        assert answers[BrokerId(1)] is None
        assert "TIMED_OUT" in (answers[BrokerId(5)] or "")

    async def test_topics_are_created_on_it(self, admin: KafkaAdmin, outage: Outage, librdkafka: AdminClient) -> None:
        """If at least one of the brokers is alive."""
        kinds = {"half-dead": [5, 1], "all-dead": [5, 3]}
        topics = [NewTopic(name, num_partitions=1, replica_assignment=[on]) for name, on in kinds.items()]
        created = librdkafka.create_topics(topics)
        created["half-dead"].result(timeout=120)
        await partition(admin, TopicPartition("half-dead", 0), "is there", lambda s: s.isr == {1} and s.leader == 1)
        with pytest.raises(KafkaException, match="INVALID_REPLICA_ASSIGNMENT"):
            created["all-dead"].result(timeout=120)


class TestReturned:
    """Waiting reassignments complete without another request."""

    @pytest.mark.parametrize("name", ORDERS)
    async def test_everything_arrives(self, admin: KafkaAdmin, returned: Outage, name: str) -> None:
        target = ORDERS[name].target
        await partition(
            admin,
            returned.ordered[name],
            "is done",
            lambda s: s.replicas == target and s.isr == set(target) and not s.in_flight,
        )

    async def test_the_only_original(self, admin: KafkaAdmin, returned: Outage, family: str) -> None:
        """Where the null was refused, the reassignment completes."""
        there = replicas_of(4 if family >= ELIGIBLE_LEADERS else 5)
        await partition(admin, returned.only, "is led again", lambda s: s.replicas == there and s.leader == there[0])

    async def test_a_throttled_leader_slows_followers_that_are_on_no_list(
        self, admin: KafkaAdmin, returned: Outage
    ) -> None:
        """Broker 3 is no destination; when it returns, it is slowed by the leader's throttle of the partition."""
        await partition(admin, returned.twin, "has 3 back in sync", lambda s: 3 in s.isr)
        await partition(admin, returned.slowed, "has not", lambda s: 3 not in s.isr)
        await throttle(admin, None, broker=1, name=LEADER_RATE)
        await partition(admin, returned.slowed, "has 3 back in sync", lambda s: 3 in s.isr)
