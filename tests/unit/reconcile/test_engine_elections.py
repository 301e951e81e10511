"""The strategy PreferredLeaders where lists match the plan but leaders do not."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.model.topology import TopicPartition

EVEN = [[1, 2], [2, 3], [3, 1]]


@pytest.fixture
def kafka():
    """Broker 2 was restarted: 3 leads a partition that 2 should lead."""
    kafka = KafkaInMemory((1, 2, 3), t=EVEN)
    kafka.lead("t", 1, 3)
    return kafka


def applied(kafka, **spec):
    operator = OperatorInMemory(kafka)
    operator.apply(**{"strategy": "PreferredLeaders", **spec})
    return operator


class TestElections:
    async def test_the_preferred_leaders_are_elected(self, kafka):
        """No list changes, and only that partition is elected; another run has nothing to do."""
        operator = applied(kafka)
        assert await operator.until("Succeeded", "NothingToDo") == "1 of 1 partitions are at their targets"
        assert (kafka.elected, kafka.altered, kafka.leaders("t")) == (["t-1"], [], [1, 2, 3])
        plan = operator.status["plan"]
        assert (plan["partitions"], plan["elections"], plan["leaderMoves"]) == (0, 1, 0)
        operator.edit(goals={"followerOrder": False})
        await operator.until("NothingToDo")
        assert kafka.elected == ["t-1"]

    async def test_the_other_strategies_leave_it_to_kafka(self, kafka):
        """They only determine where replicas are."""
        await applied(kafka, strategy="MinimalMovement").until("NothingToDo")
        assert kafka.elected == []

    @pytest.mark.parametrize(
        "spec", [{"topics": {"pinned": ["t"]}}, {"brokers": {"include": [1, 3]}}, {"topics": {"include": ["u"]}}]
    )
    async def test_whom_nobody_asked_for(self, kafka, spec):
        """A pinned partition, a broker that must not lead any, a topic that is not selected."""
        operator = applied(kafka, **spec)
        await operator.until("Succeeded", "NothingToDo")
        assert 2 not in kafka.leaders("t")

    async def test_at_most_so_many_at_once(self):
        """KIP-435's L limits elections like all leader movements."""
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
        """The approval covers these elections: the hash differs from that of a plan without them."""
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
        """The elections are part of the stored plan."""
        operator = applied(kafka, execution={"suspend": True})
        await operator.until("Suspended")
        operator.restart()
        operator.edit(execution={"suspend": False})
        await operator.until("Succeeded")
        assert kafka.elected == ["t-1"]


class TestSuperseded:
    """Elections that an edit removes from the plan are not carried out."""

    @pytest.mark.parametrize("restart", [False, True])
    @pytest.mark.parametrize(
        "edit",
        [
            {"topics": {"exclude": ["t"]}},
            {"topics": {"pinned": ["t"]}},
            {"strategy": "MinimalMovement"},
            {"brokers": {"include": [1, 3]}, "topics": {"exclude": ["t"]}},
        ],
    )
    async def test_nobody_is_elected_whom_the_spec_no_longer_asks_for(self, kafka, edit, restart):
        """The run still has the partition, but that is no reason to change it."""
        operator = applied(kafka, execution={"suspend": True})
        await operator.until("Suspended")
        if restart:
            operator.restart()
        operator.edit(**edit, execution={"suspend": False})
        await operator.until("Succeeded", "NothingToDo")
        assert (kafka.elected, kafka.altered) == ([], [])

    async def test_elections_of_a_new_plan_wait_for_its_approval(self):
        """An earlier plan of the run set the order of the list, but did not leave this election pending."""
        kafka = KafkaInMemory((1, 2, 3), t=[[1, 2], [2, 3]])
        kafka.slow = {1}
        operator = OperatorInMemory(kafka)
        operator.assign(("t", 0, [2, 1]), ("t", 1, [2, 1]), execution={"parallelPartitionCount": 10})
        await operator.until_true(lambda: kafka.lists("t")[0] == [2, 1] and kafka.leaders("t")[0] == 2)
        await operator.round()
        kafka.lead("t", 0, 1)
        kafka.elected.clear()
        goals = {"followerOrder": False}
        operator.edit(strategy="PreferredLeaders", assignment=None, approval={"policy": "Manual"}, goals=goals)
        await operator.until("AwaitingApproval")
        for _ in range(4):
            await operator.round()
        assert operator.status["plan"]["elections"] == 1
        assert kafka.elected == []


class TestDrift:
    async def test_a_list_that_somebody_else_changed_is_theirs(self, kafka):
        """The plan changes no list, so none is restored: the partition leaves the run, whichever broker leads it."""
        held = {"execution": {"suspend": True}, "approval": {"driftBudget": 100}}
        operator = applied(kafka, goals={"followerOrder": False}, **held)
        await operator.until("Suspended")
        kafka.assign("t", 1, 3, 2)
        operator.edit(execution={"suspend": False})
        await operator.until("Succeeded")
        assert (kafka.elected, kafka.altered, operator.skipped) == ([], [], {"t-1": "Drifted"})

    async def test_one_election_of_many_is_within_the_budget(self):
        """Every election counts as one move, lost or not."""
        kafka = KafkaInMemory((1, 2, 3, 4), t=EVEN * 10)
        for number, (_, second) in enumerate(EVEN * 10):
            kafka.lead("t", number, second)
        operator = applied(kafka, approval={"policy": "Manual"}, goals={"followerOrder": False})
        await operator.until("AwaitingApproval")
        asked = operator.status["plan"]["hash"]
        kafka.assign("t", 0, 1, 4)
        for _ in range(12):
            await operator.round()
        assert (operator.state, operator.status["plan"]["hash"]) == ("AwaitingApproval", asked)


class TestOrderOfOthers:
    """The run has only elected a leader when somebody gives the list another order. An edit then moves it."""

    @pytest.mark.parametrize("restart", [False, True])
    @pytest.mark.parametrize("led_by", [3, 1])
    async def test_a_deletion_leads_back_to_it(self, led_by, restart):
        """The list is theirs, and so is the leader, unless it is the one that the run has elected."""
        kafka = KafkaInMemory(range(1, 7), t=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        for number, leader in enumerate((2, 3, 1)):
            kafka.lead("t", number, leader)
        operator = applied(kafka, throttle={"unlimited": True}, execution={"parallelLeaderMovements": 1})
        await operator.until_true(lambda: bool(kafka.elected))
        assert (kafka.elected, kafka.altered) == (["t-0"], [])
        kafka.assign("t", 0, 3, 2, 1)
        kafka.lead("t", 0, led_by)
        if restart:
            operator.restart()
        operator.edit(strategy="MinimalMovement", brokers={"decommission": [2]})
        await operator.until_true(lambda: 2 not in kafka.lists("t")[0])
        origin = operator.rebalance.record.origins[TopicPartition("t", 0)]
        assert (origin.replicas, origin.leader) == ((3, 2, 1), 3 if led_by == 3 else 2)
        operator.delete()
        await operator.until_true(lambda: not operator.kube.resources)
        assert kafka.lists("t") == [[3, 2, 1], [2, 3, 1], [3, 1, 2]]
        assert led_by == 1 or kafka.leaders("t")[0] == 3


class TestDecommission:
    async def test_what_is_elected_is_not_left_alone(self, kafka):
        """An elected partition is not in status.skipped as well, and the undo is complete."""
        operator = applied(kafka, brokers={"decommission": [3]}, goals={"followerOrder": False})
        await operator.until("Succeeded")
        assert "t-1" in kafka.elected
        assert "t-1" not in operator.skipped
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until("Undone")


class TestNoWayBack:
    async def test_an_undo_elects_nobody(self, kafka):
        """The lists are unchanged, and the earlier leaders were accidental."""
        operator = applied(kafka)
        await operator.until("Succeeded")
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until("Undone")
        assert (kafka.elected, kafka.altered, kafka.leaders("t")) == (["t-1"], [], [1, 2, 3])

    async def test_neither_does_a_deletion(self, kafka):
        """It completes at once."""
        operator = applied(kafka, execution={"suspend": True})
        await operator.until("Suspended")
        operator.delete()
        for _ in range(5):
            if "u-1" in operator.engine.rebalances:
                await operator.round()
        assert operator.kube.resources == {}
        assert (kafka.elected, kafka.leaders("t")) == ([], [1, 3, 3])
