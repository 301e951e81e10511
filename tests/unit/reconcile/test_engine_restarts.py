"""An operator that is killed and restarted reports what its predecessor would have reported."""

from datetime import datetime, timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reconcile.report.status_cadence import FIGURES_EVERY

UNEVEN = [[1], [1], [2]]
"""On brokers 1 to 3: one move balances it."""


async def ended(kafka, *, restart, silent=False, **spec):
    """The final message. ``restart``: between plan and end of the run. ``silent``: the end was not reported."""
    operator = OperatorInMemory(kafka)
    operator.apply(**spec)
    await operator.until_open()
    if restart:
        operator.restart()
    if silent:
        await operator.until_closed()
        operator.unsay()
    return await operator.until("NothingToDo"), operator


class TestWhyNothingMoves:
    @pytest.mark.parametrize("restart", [False, True])
    @pytest.mark.parametrize("silent", [False, True])
    @pytest.mark.parametrize(
        ("goals", "begins"),
        [
            ({"minimumGain": 60}, "GainTooSmall: what would be moved gains less than goals.minimumGain (60 %)"),
            ({"maxReplicaMoves": 0}, "goals.maxReplicaMoves or goals.maxDataToMove allow no move that would help"),
            ({}, "the cluster is as asked for"),
        ],
    )
    async def test_the_reason_survives_a_restart(self, restart, silent, goals, begins):
        """The plan is stored with its reason; if the end was not reported, the plan's status has the reason."""
        kafka = KafkaInMemory((1, 2, 3), t=UNEVEN if goals else [[1], [2], [3]])
        message, operator = await ended(kafka, restart=restart, silent=silent, goals=goals)
        assert message.startswith(begins)
        assert kafka.altered == []
        assert operator.status["plan"].get("reason") == ("GainTooSmall" if "minimumGain" in goals else None)

    @pytest.mark.parametrize("restart", [False, True])
    @pytest.mark.parametrize("silent", [False, True])
    async def test_topics_that_match_nothing_are_not_taken_for_a_balanced_cluster(self, restart, silent):
        """A typo in a pattern of spec.topics: no topic was selected, and the message says so."""
        kafka = KafkaInMemory((1, 2, 3), t=UNEVEN)
        message, operator = await ended(kafka, restart=restart, silent=silent, topics={"include": ["orders"]})
        assert message == "NothingSelected: spec.topics takes no topic that the cluster has, so nothing was looked at"
        assert operator.status["plan"]["reason"] == "NothingSelected"

    @pytest.mark.parametrize("restart", [False, True])
    async def test_what_the_plan_left_alone_is_counted(self, restart):
        """Partitions without a leader do not count as being at their targets."""
        kafka = KafkaInMemory((1, 2, 3), t=[[1], [2], [3], [1]])
        kafka.lead("t", 3, None)
        message, operator = await ended(kafka, restart=restart)
        assert message.endswith("; 1 partitions were left alone, see status.skipped")
        assert operator.skipped == {"t-3": "NoLeader"}


class TestSteps:
    async def test_begin_with_the_approval_and_are_counted_from_the_lists(self):
        """The start is recorded before Kafka gets a step; a restart loses neither the start nor the count."""
        kafka = KafkaInMemory((1, 2, 3), t=UNEVEN)
        kafka.slow = {3}
        operator = OperatorInMemory(kafka)
        operator.apply(approval={"policy": "Manual"})
        await operator.until("AwaitingApproval")
        operator.clock.at += timedelta(days=2)
        await operator.round()
        assert operator.status["progress"]["startedAt"] is None
        approved_at = operator.clock.at
        operator.edit(approval={"policy": "Manual", "planHash": operator.status["plan"]["hash"]})
        await operator.until_true(lambda: bool(kafka.flying))
        started = operator.run.started_at
        assert started >= approved_at
        for _ in range(2):
            operator.clock.at += FIGURES_EVERY
            await operator.round()
            told = operator.status["progress"]
            assert (told["steps"], datetime.fromisoformat(told["startedAt"])) == (
                {"completed": 0, "inFlight": 1},
                started,
            )
            operator.clock.at += timedelta(hours=1)
            operator.restart()
        kafka.slow = set()
        for tp in [tp for tp, state in kafka.states.items() if state.in_flight]:
            kafka._complete(tp)
        await operator.until("Succeeded")
        assert operator.status["progress"]["steps"] == {"completed": 1, "inFlight": 0}

    async def test_killed_before_the_first_was_sent(self):
        """Or without access to the API server: no step is sent unless its start could be recorded."""
        kafka = KafkaInMemory((1, 2, 3), t=UNEVEN)
        operator = OperatorInMemory(kafka)
        operator.apply()
        await operator.until_open()
        save = operator.engine._stores.runs.save

        async def refuse(run, *check):
            if run.started_at is not None:
                raise Transient("ApiServerUnreachable", "nobody answers", 1.0)
            await save(run, *check)

        operator.engine._rounds._lifecycle._stores.runs.save = refuse
        await operator.until("ApiServerUnreachable")
        assert kafka.altered == []
        operator.restart()
        await operator.until("Succeeded")
        assert kafka.altered


class TestHowItEnded:
    @pytest.mark.parametrize("silent", [False, True])
    async def test_what_was_left_alone_is_not_at_its_target(self, silent):
        """Whether or not the end was reported before the kill."""
        kafka = KafkaInMemory((1, 2, 3, 4), t=[[1]] * 9)
        kafka.slow = {2, 3}
        operator = OperatorInMemory(kafka)
        operator.apply(
            brokers={"include": [1, 2, 3]}, execution={"parallelPartitionCount": 1}, approval={"driftBudget": 100}
        )
        await operator.until_true(lambda: bool(kafka.flying))
        rest = next(e.tp for e in operator.rebalance.record.moves if str(e.tp) not in kafka.flying)
        kafka.assign("t", rest.partition, 4)
        kafka.slow = set()
        for tp in [tp for tp, state in kafka.states.items() if state.in_flight]:
            kafka._complete(tp)
        await operator.until_closed()
        if silent:
            operator.unsay()
            assert operator.state == "Rebalancing"
        told = await operator.until("Succeeded")
        assert told == "5 of 6 partitions are at their targets; 1 partitions were left alone, see status.skipped"
        assert operator.skipped == {str(rest): "Drifted"}


class TestWhereSizesComeFrom:
    async def test_it_is_stored_with_the_plan(self):
        """The status was still empty when the operator was killed."""
        operator = OperatorInMemory(KafkaInMemory((1, 2, 3), t=UNEVEN))
        operator.apply()
        await operator.until_open()
        assert operator.status["plan"] is None
        operator.restart()
        await operator.until("Succeeded")
        assert operator.status["plan"]["dataSource"] == "LogDirs"


class TestExpectedRates:
    async def test_they_are_asked_for_again(self):
        """Every operator reports a throttle below the produce rate before anything moves."""
        loads = {TopicPartition("t", n): PartitionLoad(100, 5000.0) for n in range(3)}
        kafka = KafkaInMemory((1, 2, 3), t=UNEVEN)
        kafka.slow = {3}
        operator = OperatorInMemory(kafka, LoadModel("LoadModel", None, loads, "c"))
        operator.apply(throttle={"leaderRate": 1000, "followerRate": 1000})
        told = await operator.until("ThrottleTooLow")
        assert "can never be enough" in told
        operator.restart()
        await operator.round()
        assert operator.rebalance.assessment.advance.too_slow == told


class TestDrained:
    async def test_it_is_said_before_the_run_is_closed(self):
        """It is not checked again afterwards: an operator that is killed in between must have reported it."""
        operator = OperatorInMemory(KafkaInMemory((1, 2, 3), t=[[1], [2], [3]]))
        operator.apply(brokers={"decommission": [3]})
        await operator.until_closed()
        operator.unsay()
        assert operator.state == "Rebalancing"
        await operator.until("Succeeded")
        told = operator.condition("Drained")
        assert (told["status"], told["message"]) == (
            "True",
            "brokers 3 held no replica at two readings, and their log dirs are empty",
        )


class TestPartialUndo:
    async def test_what_could_not_go_back_is_named(self):
        """Also by the next operator: a closed run is not evaluated again."""
        kafka = KafkaInMemory((1, 2, 3), t=UNEVEN)
        operator = OperatorInMemory(kafka)
        operator.apply()
        await operator.until("Succeeded")
        moved = next(tp for tp, to in kafka.altered if to is not None)
        kafka.assign("t", int(moved[-1]), 2, 3)
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        message = await operator.until("RolledBackPartially")
        assert moved in message
        operator.restart()
        for _ in range(3):
            await operator.round()
        assert (operator.state, operator.message) == ("RolledBackPartially", message)
