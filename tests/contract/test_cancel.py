"""What a cancellation (null) restores at each stage of a reassignment: always the set, not always the order."""

from typing import NamedTuple

import pytest
from e2e.bench.kafka import KafkaCluster
from tests.contract.arranging import new_topic
from tests.contract.observing import partition

from kafka_rebalance.kafka.ports import AlterCode, KafkaAdmin
from kafka_rebalance.model.topology import Replicas, TopicPartition, replicas_of

pytestmark = [pytest.mark.brokers, pytest.mark.usefixtures("crawling")]

ORIGINAL = replicas_of(1, 2, 3)


class Cancel(NamedTuple):
    """The target, the replicas in the ISR when null is sent, and the remaining list. Broker 4 is slow."""

    target: Replicas
    joined: set[int]
    left: Replicas


CANCELS = {
    "addition in front": Cancel(replicas_of(4, 1, 2, 3), set(), ORIGINAL),
    "addition at the end": Cancel(replicas_of(1, 2, 3, 4), set(), ORIGINAL),
    "addition of two, one joined": Cancel(replicas_of(4, 5, 1, 2, 3), {5}, ORIGINAL),
    "addition that reorders": Cancel(replicas_of(2, 4, 1, 3), set(), replicas_of(2, 1, 3)),
    "swap": Cancel(replicas_of(4, 2, 3), set(), replicas_of(2, 3, 1)),
    "swap of two, one joined": Cancel(replicas_of(4, 5, 3), {5}, replicas_of(3, 1, 2)),
    "swap that reorders": Cancel(replicas_of(3, 2, 4, 5), {5}, replicas_of(3, 2, 1)),
    "swap of all, one joined": Cancel(replicas_of(4, 5), {5}, ORIGINAL),
    "one added, two removed": Cancel(replicas_of(4, 1), set(), ORIGINAL),
    "one added, two removed, reordered": Cancel(replicas_of(3, 4), set(), replicas_of(3, 1, 2)),
}


class TestInFlight:
    """The remaining list: the target without the adding replicas, then the removing ones."""

    @pytest.mark.parametrize("cancel", CANCELS.values(), ids=CANCELS.keys())
    async def test_set_and_order(self, admin: KafkaAdmin, heavy: TopicPartition, cancel: Cancel) -> None:
        target = set(cancel.target)
        await admin.alter_reassignments({heavy: cancel.target})
        state = await partition(
            admin, heavy, "is in flight", lambda s: s.in_flight and s.isr == set(ORIGINAL) | cancel.joined
        )
        assert set(state.replicas) == target | set(ORIGINAL)
        assert (set(state.adding), set(state.removing)) == (target - set(ORIGINAL), set(ORIGINAL) - target)
        assert await admin.alter_reassignments({heavy: None}) == {heavy: AlterCode.OK}
        state = await partition(admin, heavy, "is at rest", lambda s: not s.in_flight and s.replicas == cancel.left)
        assert state.leader == 1
        assert await admin.alter_reassignments({heavy: None}) == {heavy: AlterCode.NO_REASSIGNMENT_IN_PROGRESS}

    @pytest.mark.parametrize(
        "cancel",
        [
            pytest.param(Cancel(replicas_of(5, 4, 1, 2, 3), {5}, ORIGINAL), id="addition"),
            pytest.param(Cancel(replicas_of(5, 4, 3), {5}, replicas_of(3, 1, 2)), id="swap"),
        ],
    )
    async def test_a_leader_that_was_added_hands_over(
        self, admin: KafkaAdmin, heavy: TopicPartition, cancel: Cancel
    ) -> None:
        """To the first of the remaining list: after a swap this is not the previous leader."""
        await admin.alter_reassignments({heavy: cancel.target})
        await partition(admin, heavy, "has 5 in sync", lambda s: cancel.joined <= s.isr)
        assert await admin.elect_preferred([heavy]) == {heavy: AlterCode.OK}
        await partition(admin, heavy, "is led by 5", lambda s: s.leader == 5 and s.in_flight)
        assert await admin.alter_reassignments({heavy: None}) == {heavy: AlterCode.OK}
        await partition(admin, heavy, "is at rest", lambda s: s.replicas == cancel.left and s.leader == cancel.left[0])

    async def test_the_order_is_repaired_at_once(self, admin: KafkaAdmin, heavy: TopicPartition) -> None:
        await admin.alter_reassignments({heavy: replicas_of(4, 2, 3)})
        assert await admin.alter_reassignments({heavy: None}) == {heavy: AlterCode.OK}
        await partition(admin, heavy, "is at rest", lambda s: s.replicas == replicas_of(2, 3, 1))
        assert await admin.alter_reassignments({heavy: ORIGINAL}) == {heavy: AlterCode.OK}
        assert heavy not in await admin.list_reassignments()
        state = await partition(admin, heavy, "is restored", lambda s: s.replicas == ORIGINAL)
        assert state.leader == 1


class TestNothingInFlight:
    """A null without a reassignment in flight is answered with an error and changes nothing."""

    async def test_never_begun(self, admin: KafkaAdmin, heavy: TopicPartition) -> None:
        assert await admin.alter_reassignments({heavy: None}) == {heavy: AlterCode.NO_REASSIGNMENT_IN_PROGRESS}

    async def test_already_complete(self, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
        tp = new_topic(cluster, "complete", 1, 2, 3)
        await admin.alter_reassignments({tp: replicas_of(5, 2, 3)})
        await partition(admin, tp, "is done", lambda s: not s.in_flight and s.replicas == replicas_of(5, 2, 3))
        assert await admin.alter_reassignments({tp: None}) == {tp: AlterCode.NO_REASSIGNMENT_IN_PROGRESS}
        state = await partition(admin, tp, "has its replicas in sync", lambda s: s.isr == {5, 2, 3})
        assert state.replicas == replicas_of(5, 2, 3)
