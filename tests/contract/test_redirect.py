"""Redirecting a reassignment in flight to another target, and why the adapter refuses it."""

from typing import NamedTuple

import pytest
from e2e.bench.kafka import KafkaCluster
from tests.contract.arranging import new_topic, throttle
from tests.contract.differences import STUCK_OVERLAP
from tests.contract.observing import partition

from kafka_rebalance.kafka.ports import AlterCode, KafkaAdmin
from kafka_rebalance.kafka.reassignment import ReassignmentClient
from kafka_rebalance.model.topology import Replicas, TopicPartition, replicas_of

pytestmark = [pytest.mark.brokers, pytest.mark.usefixtures("crawling")]

ORIGINAL = replicas_of(1, 2, 3)
SWAP = replicas_of(4, 2, 3)


class Wedge(NamedTuple):
    """Two targets; what is then added and removed, and what null leaves; the result where it is not stuck."""

    first: Replicas
    second: Replicas
    adding: Replicas
    removing: Replicas
    left: Replicas
    arrived: Replicas


class Stale(NamedTuple):
    """Two targets, the second with 1 again; the result: without 1."""

    first: Replicas
    second: Replicas
    arrived: Replicas


WEDGES = {
    "swap, then the originals": Wedge(SWAP, ORIGINAL, replicas_of(4), replicas_of(4), ORIGINAL, ORIGINAL),
    "addition, then the originals": Wedge(
        replicas_of(4, 1, 2, 3), ORIGINAL, replicas_of(4), replicas_of(4), ORIGINAL, ORIGINAL
    ),
    "swap of two, then of one": Wedge(
        replicas_of(4, 5, 3), SWAP, replicas_of(4, 5), replicas_of(1, 5), replicas_of(2, 3, 1), SWAP
    ),
}
STALES = {
    "swap, then addition": Stale(SWAP, replicas_of(4, 1, 2, 3), SWAP),
    "swap, then addition at the end": Stale(SWAP, replicas_of(1, 2, 3, 4), replicas_of(2, 3, 4)),
}
RIGHT = {
    "addition, then swap": (replicas_of(4, 1, 2, 3), SWAP),
    "swap, then another swap": (SWAP, replicas_of(5, 2, 3)),
    "swap, then the same": (SWAP, SWAP),
}


class TestOurAdapter:
    """Only null is sent for a partition in flight."""

    async def test_refuses_and_sends_the_rest(self, admin: KafkaAdmin, heavy: TopicPartition) -> None:
        other = TopicPartition("no-such-topic", 0)
        await admin.alter_reassignments({heavy: SWAP})
        before = (await admin.list_reassignments())[heavy]
        answers = await admin.alter_reassignments({heavy: ORIGINAL, other: replicas_of(1)})
        assert answers == {heavy: AlterCode.IN_FLIGHT, other: AlterCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert (await admin.list_reassignments())[heavy] == before
        assert await admin.alter_reassignments({heavy: None}) == {heavy: AlterCode.OK}


class TestBrokers:
    """Brokers accept every redirect; the results differ."""

    @pytest.mark.parametrize("wedge", WEDGES.values(), ids=WEDGES.keys())
    async def test_a_redirect_that_drops_what_was_added(
        self,
        cluster: KafkaCluster,
        admin: KafkaAdmin,
        raw: ReassignmentClient,
        heavy: TopicPartition,
        wedge: Wedge,
        family: str,
    ) -> None:
        """From 4.0 on, the same broker is added and removed, and it never completes; 3.9 completes."""
        await self.redirect(raw, heavy, wedge.first, wedge.second)
        if family < STUCK_OVERLAP:
            await throttle(admin, None)
            await partition(admin, heavy, "has arrived", lambda s: not s.in_flight and s.replicas == wedge.arrived)
            return
        row = (await raw.list_reassignments())[heavy]
        assert (row.adding, row.removing) == (wedge.adding, wedge.removing)
        await throttle(admin, None)
        await partition(admin, heavy, "has all in sync", lambda s: s.isr == set(row.replicas))
        await self.see_another_one_through(cluster, admin, f"beside-{heavy}")
        assert (await raw.list_reassignments())[heavy] == row
        assert await admin.alter_reassignments({heavy: None}) == {heavy: AlterCode.OK}
        await partition(admin, heavy, "is at rest", lambda s: not s.in_flight and s.replicas == wedge.left)

    @pytest.mark.parametrize("stale", STALES.values(), ids=STALES.keys())
    async def test_a_removal_that_is_called_off_is_carried_out(
        self, admin: KafkaAdmin, raw: ReassignmentClient, heavy: TopicPartition, stale: Stale
    ) -> None:
        """The leader is removed although the second target contains it and the request succeeded."""
        await self.redirect(raw, heavy, stale.first, stale.second)
        row = (await raw.list_reassignments())[heavy]
        assert (row.replicas, row.adding, row.removing) == (stale.second, (4,), (1,))
        await throttle(admin, None)
        await partition(admin, heavy, "lost its leader", lambda s: not s.in_flight and s.replicas == stale.arrived)

    @pytest.mark.parametrize(("first", "second"), RIGHT.values(), ids=RIGHT.keys())
    async def test_others_arrive(
        self, admin: KafkaAdmin, raw: ReassignmentClient, heavy: TopicPartition, first: Replicas, second: Replicas
    ) -> None:
        await self.redirect(raw, heavy, first, second)
        await throttle(admin, None)
        await partition(admin, heavy, "has arrived", lambda s: not s.in_flight and s.replicas == second)

    async def redirect(self, raw: ReassignmentClient, tp: TopicPartition, first: Replicas, second: Replicas) -> None:
        assert await raw.alter({tp: first}) == {tp: AlterCode.OK}
        assert tp in await raw.list_reassignments()
        assert await raw.alter({tp: second}) == {tp: AlterCode.OK}

    async def see_another_one_through(self, cluster: KafkaCluster, admin: KafkaAdmin, topic: str) -> None:
        """After another reassignment was started and completed, everything that can complete has."""
        tp = new_topic(cluster, topic, 1, 2, 3)
        await admin.alter_reassignments({tp: replicas_of(4, 2, 3)})
        await partition(admin, tp, "has arrived", lambda s: not s.in_flight and s.replicas == replicas_of(4, 2, 3))
