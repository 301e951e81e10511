"""The effect of throttled lists and rates on a copy.

A rate of one byte per second lets one bite pass every 11 s: a throttled copy makes no progress, while one that is not
throttled completes.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics
from kafka.admin import ConfigResource as ClientResource
from kafka.admin import ConfigResourceType as ClientResourceType
from kafka.admin import KafkaAdminClient
from tests.contract.arranging import (
    BITE_BYTES,
    FOLLOWER_RATE,
    LEADER_RATE,
    RECORD_BYTES,
    RECORDS,
    begin,
    change_lists,
    default_of_all_brokers,
    new_topic,
    put_to_rest,
    throttle,
    write,
)
from tests.contract.observing import partition, until

from kafka_rebalance.kafka.ports import AlterCode, ConfigOp, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition, replicas_of

pytestmark = pytest.mark.brokers

HALT = "1"
SLOW = "1000000"
"""Bytes per second: about 15 bites."""


async def bites(admin: KafkaAdmin, tp: TopicPartition, broker: int) -> float:
    """How much of a partition is on a broker's disk, in bites."""
    dirs = (await admin.log_dirs([BrokerId(broker)]))[BrokerId(broker)]
    return sum(found.replica_bytes.get(tp, 0) for found in dirs) / BITE_BYTES


class Halted:
    """Copies at `HALT` since this moment, and what may have passed of each of them until now.

    A busy machine takes its time to restart a broker, so the limit grows with the time: by one bite in 11 s.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()

    def limit(self, leaders: int = 1) -> float:
        """In bites: some at once, from each broker that has led, and one whenever the quota's window is empty again."""
        return 2 + leaders + (time.monotonic() - self._began) / 11


def arrived(target: Replicas) -> Callable[[PartitionState], bool]:
    return lambda state: state.replicas == target and state.isr == set(target) and not state.in_flight


class Copy(NamedTuple):
    """A partition that moves from one broker to another, and the side of it that is throttled."""

    tp: TopicPartition
    source: int
    destination: int
    side: str

    @property
    def rate(self) -> tuple[int, str]:
        """Broker and name of its rate."""
        return (self.source, LEADER_RATE) if self.side == "leader" else (self.destination, FOLLOWER_RATE)

    @property
    def entry(self) -> dict[str, str]:
        broker = self.source if self.side == "leader" else self.destination
        return {self.side: f"{self.tp.partition}:{broker}"}

    @property
    def other(self) -> "Copy":
        """The same copy, throttled on the other side."""
        return self._replace(side="follower" if self.side == "leader" else "leader")


@pytest.mark.usefixtures("rates_put_back")
class TestInFlight:
    """Rates and entries of either side take effect within a second, when set and when removed."""

    WRITES = 66
    WHOLE = WRITES * RECORDS * RECORD_BYTES / BITE_BYTES
    """Bites in a partition: about 24 s at `SLOW`."""

    @pytest.fixture
    async def copies(
        self, cluster: KafkaCluster, admin: KafkaAdmin, request: pytest.FixtureRequest
    ) -> AsyncIterator[list[Copy]]:
        """Two copies that have just started, at one byte per second."""
        topic = f"throttled{request.node.name.removeprefix('test').replace('_', '-')}"
        create_topics(cluster, {topic: [[1], [2]]})
        one, two = (TopicPartition(topic, number) for number in (0, 1))
        write(cluster, [one, two] * self.WRITES)
        copies = [Copy(one, 1, 5, "leader"), Copy(two, 2, 4, "follower")]
        for copy in copies:
            await self.set_rate(admin, copy, HALT)
            await change_lists(admin, topic, ConfigOp.APPEND, **copy.entry)
        await begin(admin, {copy.tp: replicas_of(copy.destination) for copy in copies})
        for copy in copies:
            await partition(admin, copy.tp, "is in flight", lambda s: s.in_flight)
        yield copies
        await put_to_rest(admin, one, two)

    async def test_rates(
        self, admin: KafkaAdmin, copies: list[Copy], record_property: Callable[[str, object], None]
    ) -> None:
        """Increased, decreased, and deleted, which restores the rate of the broker's file, or none."""
        for copy in copies:
            assert await bites(admin, copy.tp, copy.destination) <= 2
            await self.set_rate(admin, copy, SLOW)
        for copy in copies:
            await self.flows(admin, copy)
        for copy, passed in zip(copies, await self.passing(admin, copies, 3), strict=True):
            record_property(f"bytes/s at {SLOW}, {copy.side}", round(passed * BITE_BYTES / 3))
            # Too short to determine the rate: more passes in the first second, and then nothing until it is
            # compensated. Without a rate the whole partition would pass.
            assert passed < self.WHOLE / 2
        for copy in copies:
            await self.flows(admin, copy)
        for copy in copies:
            await self.set_rate(admin, copy, HALT)
        await self.all_stand_still(admin, copies)
        for copy in copies:
            await self.set_rate(admin, copy, None)
        for copy in copies:
            await partition(admin, copy.tp, "has arrived", arrived(replicas_of(copy.destination)))

    async def test_entries(self, admin: KafkaAdmin, copies: list[Copy]) -> None:
        """Add and remove an entry of the other side; then remove the first one too."""
        for copy in copies:
            await self.set_rate(admin, copy, SLOW)
            await self.set_rate(admin, copy.other, HALT)
            await self.flows(admin, copy)
        for copy in copies:
            await change_lists(admin, copy.tp.topic, ConfigOp.APPEND, **copy.other.entry)
        await self.all_stand_still(admin, copies)
        for copy in copies:
            await change_lists(admin, copy.tp.topic, ConfigOp.SUBTRACT, **copy.other.entry)
        for copy in copies:
            await self.flows(admin, copy)
            await self.set_rate(admin, copy, HALT)
            await change_lists(admin, copy.tp.topic, ConfigOp.SUBTRACT, **copy.entry)
        for copy in copies:
            await partition(admin, copy.tp, "has arrived", arrived(replicas_of(copy.destination)))

    async def set_rate(self, admin: KafkaAdmin, copy: Copy, value: str | None) -> None:
        broker, name = copy.rate
        await throttle(admin, value, broker, name)

    async def flows(self, admin: KafkaAdmin, copy: Copy) -> None:
        """Nine more bites pass, or the last ones; at one byte per second nine would take one and a half minutes.

        After more than its rate, a broker sends nothing until that is compensated.
        """
        before = await bites(admin, copy.tp, copy.destination)
        await until(
            f"{copy} goes on",
            lambda: bites(admin, copy.tp, copy.destination),
            lambda now: now - before >= 9 or now > self.WHOLE - 3,
            seconds=60,
        )

    async def all_stand_still(self, admin: KafkaAdmin, copies: Sequence[Copy]) -> None:
        """From one second after the change on, at most two bites pass in 1.5 s; at `SLOW` it would be twenty."""
        await asyncio.sleep(1)
        for copy, passed in zip(copies, await self.passing(admin, copies, 1.5), strict=True):
            assert passed <= 2, f"{copy} goes on"

    async def passing(self, admin: KafkaAdmin, copies: Sequence[Copy], seconds: float) -> list[float]:
        """Number of bites of each copy that pass in this time."""
        before = [await bites(admin, copy.tp, copy.destination) for copy in copies]
        await asyncio.sleep(seconds)
        return [await bites(admin, copy.tp, copy.destination) - had for copy, had in zip(copies, before, strict=True)]


@pytest.mark.usefixtures("rates_put_back")
class TestSides:
    """An entry and a rate of the same side throttle a copy; one without the other has no effect."""

    async def test_alone(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        create_topics(cluster, {"sides": [[1], [2], [2], [1]]})
        leader, follower, entries_only, rates_only = (TopicPartition("sides", n) for n in range(4))
        write(cluster, [leader, follower, entries_only, rates_only] * 10)
        await throttle(admin, HALT, 1, LEADER_RATE)
        await throttle(admin, HALT, 4, FOLLOWER_RATE)
        await change_lists(admin, "sides", ConfigOp.SET, "0:1,2:2", "1:4,2:5")
        to = {leader: 5, follower: 4, entries_only: 5, rates_only: 4}
        halted = Halted()
        await begin(admin, {tp: replicas_of(broker) for tp, broker in to.items()})
        for tp in (entries_only, rates_only):
            await partition(admin, tp, "has arrived", arrived(replicas_of(to[tp])))
        for tp in (leader, follower):
            await partition(admin, tp, "is on its way", lambda s: s.in_flight)
            assert await bites(admin, tp, to[tp]) <= halted.limit()
        await put_to_rest(admin, leader, follower)

    async def test_the_destinations_entry_leaves_a_retained_follower_alone(
        self, cluster: KafkaCluster, admin: KafkaAdmin
    ) -> None:
        """3 catches up; a leader's entry would have throttled it as well (`test_outage.py`)."""
        tp = new_topic(cluster, "sides-retained", 1, 2, 3)
        await throttle(admin, HALT, 4, FOLLOWER_RATE)
        await change_lists(admin, tp.topic, ConfigOp.SET, follower="0:4")
        cluster.stop(3)
        try:
            await partition(admin, tp, "lost 3", lambda s: s.isr == {1, 2})
            write(cluster, [tp] * 10)
            halted = Halted()
            await begin(admin, {tp: replicas_of(1, 2, 3, 4)})
        finally:
            cluster.start_brokers(3)
        await partition(admin, tp, "has 3 back in sync", lambda s: s.isr == {1, 2, 3} and s.in_flight)
        assert await bites(admin, tp, 4) <= halted.limit()
        await put_to_rest(admin, tp)

    async def test_another_leader(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        """The leader's entry applies, whichever replica leads: if all are on the list, a copy stays throttled."""
        create_topics(cluster, {"sides-led": [[1, 2, 3]] * 2})
        all_listed, first_listed = TopicPartition("sides-led", 0), TopicPartition("sides-led", 1)
        write(cluster, [all_listed, first_listed] * 10)
        for broker in (1, 2):
            await throttle(admin, HALT, broker, LEADER_RATE)
        await change_lists(admin, "sides-led", ConfigOp.SET, "0:1,0:2,0:3,1:1")
        both = [all_listed, first_listed]
        target = replicas_of(2, 1, 3, 5)
        halted = Halted()
        await begin(admin, dict.fromkeys(both, target))
        for tp in both:
            await partition(admin, tp, "is in flight, led by 1", lambda s: s.in_flight and s.leader == 1)
        assert await admin.elect_preferred(both) == dict.fromkeys(both, AlterCode.OK)
        await partition(admin, first_listed, "has arrived", arrived(target))
        await partition(admin, all_listed, "is led by 2", lambda s: s.in_flight and s.leader == 2)
        assert await bites(admin, all_listed, 5) <= halted.limit(leaders=2)
        await put_to_rest(admin, all_listed)


@pytest.mark.usefixtures("rates_put_back")
class TestSources:
    """The most specific rate applies: broker, default of all brokers, file; after a deletion, the next one."""

    IN_FILE = ("1000000000", "STATIC_BROKER_CONFIG")
    DEFAULT = ("800000000", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    OWN = ("700000000", "DYNAMIC_BROKER_CONFIG")

    async def test_each_below_the_other(
        self, cluster: KafkaCluster, admin: KafkaAdmin, kafka_python: KafkaAdminClient, librdkafka: AdminClient
    ) -> None:
        with default_of_all_brokers(cluster, FOLLOWER_RATE, self.DEFAULT[0]):
            await throttle(admin, self.OWN[0], 1)
            await self.tells(kafka_python, self.OWN, self.DEFAULT, self.IN_FILE)
            assert self.synonyms_of_librdkafka(librdkafka) == [self.IN_FILE[0]]
            await throttle(admin, None, 1)
            await self.tells(kafka_python, self.DEFAULT, self.IN_FILE)
        await self.tells(kafka_python, self.IN_FILE)

    async def tells(self, kafka_python: KafkaAdminClient, *expected: tuple[str, str]) -> None:
        """Wait until a description returns the most specific value, and all as synonyms; synonyms may lag behind."""
        resource = ClientResource(ClientResourceType.BROKER, "1", [FOLLOWER_RATE])

        async def ask() -> list[tuple[str, str]]:
            answer = await asyncio.to_thread(kafka_python.describe_configs, [resource], True, "all")
            told = answer["broker"]["1"][FOLLOWER_RATE]
            synonyms = [(synonym["value"], synonym["source"]) for synonym in told["synonyms"]]
            return [(told["value"], told["config_source"]), *synonyms]

        await until(FOLLOWER_RATE, ask, lambda seen: seen == [expected[0], *expected])

    def synonyms_of_librdkafka(self, librdkafka: AdminClient) -> list[str | None]:
        """Its Python client stores them by name, and so only the last one of several with the same name."""
        resource = ConfigResource(ResourceType.BROKER, "1")
        entry = librdkafka.describe_configs([resource])[resource].result(timeout=120)[FOLLOWER_RATE]
        return [synonym.value for synonym in entry.synonyms.values()]
