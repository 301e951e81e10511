"""Config values that are too long, and requests that are: some of them make the active controller resign.

Uses its own cluster, because a controller that resigns disturbs every other test.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest
from e2e.bench.kafka import KafkaCluster
from e2e.bench.load import create_topics
from tests.contract.arranging import FOLLOWER_LIST, LEADER_LIST, settings_of
from tests.contract.differences import REFUSES_LONG_VALUES
from tests.contract.observing import until

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, KafkaAdmin

pytestmark = pytest.mark.brokers

LONGEST = 32_767
MANY = 160
"""Topics: with two lists of 30,000 bytes each, more than the 8 MiB that the controller writes at once."""


@pytest.fixture(scope="module")
def own() -> Iterator[KafkaCluster]:
    with KafkaCluster({1: "a"}) as cluster:
        create_topics(cluster, {f"long-{number}": [[1]] for number in range(MANY)})
        yield cluster


@pytest.fixture
async def admin(own: KafkaCluster) -> AsyncIterator[KafkaAdmin]:
    admin = connect(settings_of(own))
    yield admin
    await admin.close()


def entries(length: int) -> str:
    """A list of exactly this many bytes."""
    value = ",".join(f"{1000 + number}:1001" for number in range(length // 10 - 1))
    return f"{value},{'7' * (length - len(value) - 6)}:1001"


def epoch(cluster: KafkaCluster) -> int:
    """The epoch of the active controller: one that resigns is elected again with the next one."""
    where = ("--bootstrap-server", cluster.bootstrap_servers, "describe", "--status")
    told = cluster.run_tool("org.apache.kafka.tools.MetadataQuorumCommand", *where)
    return next(int(line.split()[-1]) for line in told.splitlines() if line.startswith("LeaderEpoch"))


async def change(admin: KafkaAdmin, topic: str, op: ConfigOp, value: str) -> str | None:
    return (await admin.alter_topic_configs({topic: [ConfigChange(LEADER_LIST, op, value)]}))[topic]


async def stored(admin: KafkaAdmin, topic: str) -> int:
    return len((await admin.topic_configs([topic], [LEADER_LIST]))[topic][LEADER_LIST].value or "")


async def takes_changes_again(admin: KafkaAdmin) -> None:
    async def ask() -> str | None:
        try:
            return await change(admin, "long-9", ConfigOp.SET, "0:1")
        except Transient as error:
            return error.message

    await until("the controller takes changes", ask, lambda answer: answer is None)


class TestOneValue:
    async def test_the_longest(self, own: KafkaCluster, admin: KafkaAdmin) -> None:
        """32,767 bytes are stored."""
        before = epoch(own)
        assert await change(admin, "long-0", ConfigOp.SET, entries(LONGEST)) is None
        await until("it is stored", lambda: stored(admin, "long-0"), lambda length: length == LONGEST)
        assert epoch(own) == before

    @pytest.mark.parametrize("op", [ConfigOp.SET, ConfigOp.APPEND, ConfigOp.SUBTRACT])
    async def test_a_longer_string(self, own: KafkaCluster, admin: KafkaAdmin, op: ConfigOp) -> None:
        """The broker drops the connection without an answer, for any kind of string; nothing is changed."""
        before = epoch(own)
        with pytest.raises(Transient, match="transport failure"):
            await change(admin, "long-1", op, entries(LONGEST + 1))
        assert await stored(admin, "long-1") == 0
        await takes_changes_again(admin)
        assert epoch(own) == before


class TestStoredValue:
    async def test_an_append_that_makes_it_too_long(self, own: KafkaCluster, admin: KafkaAdmin, family: str) -> None:
        """From 4.1 on it is refused. Before, the controller resigns each time it is tried. Nothing is changed."""
        assert await change(admin, "long-2", ConfigOp.SET, entries(LONGEST - 9)) is None
        before = epoch(own)
        for attempt in (1, 2):
            answer = await change(admin, "long-2", ConfigOp.APPEND, "9999:1001") or ""
            if family >= REFUSES_LONG_VALUES:
                assert answer.startswith("INVALID_CONFIG")
                assert "maximum value size of 32767 bytes" in answer
                assert epoch(own) == before
            else:
                assert answer.startswith("UNKNOWN")
                await takes_changes_again(admin)
                assert epoch(own) >= before + attempt  # on 4.0 two later each time
        assert await stored(admin, "long-2") == LONGEST - 9

    async def test_an_append_of_what_is_there(self, admin: KafkaAdmin) -> None:
        """It makes the value no longer, so it is accepted."""
        assert await change(admin, "long-3", ConfigOp.SET, entries(LONGEST)) is None
        assert await change(admin, "long-3", ConfigOp.APPEND, "1000:1001,1001:1001") is None


class TestManyValues:
    async def test_a_request_whose_lists_are_too_long_together(self, own: KafkaCluster, admin: KafkaAdmin) -> None:
        """Short appends, but the controller writes each list as a whole: above 8 MiB it resigns, in all versions."""
        for name in (LEADER_LIST, FOLLOWER_LIST):
            for first in range(10, MANY, 20):
                topics = [f"long-{number}" for number in range(first, min(first + 20, MANY))]
                wanted = [ConfigChange(name, ConfigOp.SET, entries(30_000))]
                assert set((await admin.alter_topic_configs(dict.fromkeys(topics, wanted))).values()) == {None}
        before = epoch(own)
        both = [ConfigChange(name, ConfigOp.APPEND, "9999:1001") for name in (LEADER_LIST, FOLLOWER_LIST)]
        with suppress(Transient):  # a slow controller does not answer in time
            answers = await admin.alter_topic_configs({f"long-{number}": both for number in range(10, MANY)})
            assert all((answer or "").startswith("UNKNOWN") for answer in answers.values())
        await takes_changes_again(admin)
        assert epoch(own) > before
        assert await stored(admin, "long-10") == 30_000
