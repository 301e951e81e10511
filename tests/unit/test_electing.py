"""The strategy PreferredLeaders where lists are as they shall be and leaders are not."""

import pytest
from tests.unit.kafka_in_memory import KafkaInMemory
from tests.unit.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION

EVEN = [[1, 2], [2, 3], [3, 1]]


@pytest.fixture
def kafka():
    """Broker 2 was restarted: 3 leads what 2 should."""
    kafka = KafkaInMemory((1, 2, 3), t=EVEN)
    kafka.lead("t", 1, 3)
    return kafka


def applied(kafka, **spec):
    operator = OperatorInMemory(kafka)
    operator.apply(**{"strategy": "PreferredLeaders", **spec})
    return operator


class TestElections:
    async def test_the_preferred_leaders_are_elected(self, kafka):
        """No list is touched, and only those partitions are; another run finds nothing to do."""
        operator = applied(kafka)
        assert await operator.until("Succeeded", "NothingToDo") == "1 of 1 partitions are at their targets"
        assert (kafka.elected, kafka.altered, kafka.leaders("t")) == (["t-1"], [], [1, 2, 3])
        plan = operator.status["plan"]
        assert (plan["partitions"], plan["elections"], plan["leaderMoves"]) == (0, 1, 0)
        operator.edit(goals={"followerOrder": False})
        await operator.until("NothingToDo")
        assert kafka.elected == ["t-1"]

    async def test_the_other_strategies_leave_it_to_kafka(self, kafka):
        """They say where replicas shall be."""
        await applied(kafka, strategy="MinimalMovement").until("NothingToDo")
        assert kafka.elected == []

    @pytest.mark.parametrize(
        "spec", [{"topics": {"pinned": ["t"]}}, {"brokers": {"include": [1, 3]}}, {"topics": {"include": ["u"]}}]
    )
    async def test_whom_nobody_asked_for(self, kafka, spec):
        """A pinned partition, a broker that shall hold none, a topic that is not selected."""
        operator = applied(kafka, **spec)
        await operator.until("Succeeded", "NothingToDo")
        assert 2 not in kafka.leaders("t")

    async def test_at_most_so_many_at_once(self):
        """KIP-435's L holds for elections as for all leader movements."""
        kafka = KafkaInMemory((1, 2, 3), t=EVEN * 3)
        for number, (_, second) in enumerate(EVEN * 3):
            kafka.lead("t", number, second)
        operator = applied(kafka, goals={"followerOrder": False}, execution={"parallelLeaderMovements": 2})
        for _ in range(20):
            before = len(kafka.elected)
            await operator.round()
            assert len(kafka.elected) - before <= 2
        assert sorted(kafka.elected) == [f"t-{n}" for n in range(9)]

    @pytest.mark.parametrize(
        ("held", "state", "released"),
        [
            ({"execution": {"suspend": True}}, "Suspended", {"execution": {"suspend": False}}),
            ({"approval": {"policy": "Manual"}}, "AwaitingApproval", None),
        ],
    )
    async def test_not_before_it_may(self, kafka, held, state, released):
        """An approval is of these elections: the hash tells them from a plan without any."""
        operator = applied(kafka, **held)
        await operator.until(state)
        for _ in range(3):
            await operator.round()
        assert (operator.state, kafka.elected) == (state, [])
        approved = {"approval": {"policy": "Manual", "planHash": operator.status["plan"]["hash"]}}
        operator.edit(**(released or approved))
        await operator.until("Succeeded")
        assert kafka.elected == ["t-1"]

    async def test_after_a_restart(self, kafka):
        """The stored plan has them."""
        operator = applied(kafka, execution={"suspend": True})
        await operator.until("Suspended")
        operator.restart()
        operator.edit(execution={"suspend": False})
        await operator.until("Succeeded")
        assert kafka.elected == ["t-1"]


class TestNoWayBack:
    async def test_an_undo_elects_nobody(self, kafka):
        """The lists are as they were; who led was a matter of chance."""
        operator = applied(kafka)
        await operator.until("Succeeded")
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until("Undone")
        assert (kafka.elected, kafka.altered, kafka.leaders("t")) == (["t-1"], [], [1, 2, 3])

    async def test_neither_does_a_deletion(self, kafka):
        """It ends at once."""
        operator = applied(kafka, execution={"suspend": True})
        await operator.until("Suspended")
        operator.delete()
        for _ in range(5):
            if "u-1" in operator.engine.works:
                await operator.round()
        assert operator.kube.resources == {}
        assert (kafka.elected, kafka.leaders("t")) == ([], [1, 3, 3])
