"""A broker that was paused answers with the metadata it had then. Such answers must not end a run.

The list of reassignments comes from the controller and is never outdated.
"""

import asyncio
import copy
from dataclasses import replace

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST
from kafka_rebalance.model.topology import BrokerId, TopicPartition

TP = TopicPartition("t", 0)
SLOW = {"leaderRate": "1Mi", "followerRate": "1Mi"}


class Behind(KafkaInMemory):
    """``old``: what the next answers show, of which there are ``answers``."""

    def __init__(self, *arguments, **topics):
        super().__init__(*arguments, **topics)
        self.old, self.answers = copy.deepcopy(self.states), 0

    async def describe_partitions(self, topics=None, listed=None):
        if not self.answers:
            return await super().describe_partitions(topics)
        self.answers -= 1
        now, self.states = self.states, copy.deepcopy(self.old)
        try:
            return await super().describe_partitions(topics)
        finally:
            self.states = now


class BehindAfter(Behind):
    """The first time it is sent this list, the next ``answers`` show what was there before the last copy.

    ``begun``: the throttled replicas when each copy began.
    """

    def __init__(self, last, answers, *arguments, **topics):
        super().__init__(*arguments, **topics)
        self.last, self.behind, self.begun = last, answers, []

    async def alter_reassignments(self, orders):
        for tp, to in orders.items():
            held = self.states[tp].replicas
            for broker in {*(to or ())} - {*held}:
                throttled = self.values.get((tp.topic, FOLLOWER_LIST), "").split(",")
                self.begun.append((int(broker), f"{tp.partition}:{broker}" in throttled))
            if to is not None and not set(to) <= set(held):
                self.old = copy.deepcopy(self.states)
            if to is not None and list(to) == self.last and self.behind:
                self.answers, self.behind = self.behind, 0
        return await super().alter_reassignments(orders)


class BehindWhilePlanning(Behind):
    """``planning``: whether this task makes a plan; the first answer that it gets is an old one."""

    async def describe_partitions(self, topics=None, listed=None):
        if self.planning() and topics is None:
            self.answers, self.planning = 1, lambda: False
        return await super().describe_partitions(topics, listed)


async def rounds_until(operator, outcome):
    """The number of rounds (of a second) until the run ends in this state."""
    for rounds in range(40):
        if operator.run is not None and operator.run.outcome == outcome:
            return rounds
        await operator.round()
    raise AssertionError(f"{operator.state}: {operator.message}")


class TestNextCall:
    """A call follows an earlier one of the partition only after a reading that shows the earlier one."""

    @pytest.mark.parametrize("answers", [1, 2, 3, 6, 9])
    async def test_of_an_undo_in_small_steps(self, answers):
        """Otherwise the replica that was just dropped is copied again, without a throttle."""
        kafka = BehindAfter([1, 2, 5], answers, (1, 2, 3, 4, 5), t=[[1, 2, 3]])
        operator = OperatorInMemory(kafka)
        operator.assign(("t", 0, [1, 4, 5]), execution={"parallelReplicaCount": 1}, throttle=SLOW)
        await operator.until("Succeeded")
        kafka.begun.clear()
        operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
        await rounds_until(operator, "Undone")
        assert (kafka.begun, kafka.lists("t")) == ([(2, True), (3, True)], [[1, 2, 3]])

    async def test_the_status_says_what_it_waits_for(self):
        operator = OperatorInMemory(BehindAfter([1, 2, 5], 9, (1, 2, 3, 4, 5), t=[[1, 2, 3]]))
        operator.assign(("t", 0, [1, 4, 5]), execution={"parallelReplicaCount": 1}, throttle=SLOW)
        await operator.until("Succeeded")
        operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
        waiting = "MetadataStale (1, e.g. t-0: metadata does not show its last call yet"
        await operator.until_true(lambda: operator.state == "Undoing" and waiting in operator.message)
        await operator.until_true(lambda: waiting not in operator.message)
        await rounds_until(operator, "Undone")


class TestForward:
    @pytest.mark.parametrize("answers", [1, 2])
    async def test_back_to_where_the_partitions_were(self, answers):
        """The spec is edited to the opposite, and the answer is from before the first run."""
        operator = OperatorInMemory(Behind((1, 2), t=[[1]]))
        operator.assign(("t", 0, [2]))
        await operator.until("Succeeded")
        operator.write(("t", 0, [1]))
        operator.edit(topics={"include": ["t"]})
        await operator.until_true(lambda: operator.rebalance.memory.planning is not None)
        operator.kafka.answers = answers
        await operator.until("Rebalancing")
        await operator.until_closed()
        assert (operator.state, operator.kafka.lists("t")) == ("Succeeded", [[1]])

    @pytest.mark.parametrize("answers", [1, 2])
    async def test_preferred_leaders(self, answers):
        """The leader has just moved away from the preferred replica."""
        kafka = Behind((1, 2), t=[[1, 2]])
        kafka.states[TP] = replace(kafka.states[TP], leader=BrokerId(2))
        operator = OperatorInMemory(kafka)
        operator.apply(strategy="PreferredLeaders")
        await operator.until_true(lambda: operator.rebalance.memory.planning is not None)
        kafka.answers = answers
        await operator.until_closed()
        assert (operator.run.outcome, kafka.states[TP].leader) == ("Succeeded", 1)

    @pytest.mark.parametrize("answers", [1, 2])
    async def test_as_if_another_tool_had_changed_the_partition(self, answers):
        """The answer is from before another tool moved it to where the plan begins."""
        kafka = Behind((1, 2, 4, 5), t=[[4, 5]])
        kafka.assign("t", 0, 1)
        operator = OperatorInMemory(kafka)
        operator.assign(("t", 0, [2]), approval={"policy": "Automatic", "driftBudget": 100})
        await operator.until_true(lambda: operator.run is not None)
        kafka.answers = answers
        await operator.until_closed()
        assert (operator.run.outcome, kafka.lists("t")) == ("Succeeded", [[2]])

    @pytest.mark.parametrize("strategy", ["Assignment", "MinimalMovement"])
    async def test_a_plan_without_moves(self, strategy):
        """The answer shows the partition where it is to go; another tool has moved it since."""
        kafka = BehindWhilePlanning((1, 2), t=[[1], [2]])
        kafka.assign("t", 1, 1)
        operator = OperatorInMemory(kafka)
        if strategy == "Assignment":
            operator.assign(("t", 0, [1]), ("t", 1, [2]))
        else:
            operator.apply()
        kafka.planning = lambda: asyncio.current_task() is operator.rebalance.memory.planning
        await operator.until_closed()
        assert (operator.run.outcome, kafka.lists("t")) == ("Succeeded", [[1], [2]])

    async def test_a_run_that_has_sent_all_calls_itself(self):
        """It does not wait."""
        operator = OperatorInMemory(Behind((1, 2), t=[[1]]))
        operator.assign(("t", 0, [2]))
        await operator.until_true(lambda: operator.run is not None)
        assert await rounds_until(operator, "Succeeded") == 2

    async def test_a_plan_that_is_superseded_waits_for_nothing(self):
        """Although another tool has moved a partition to where the run found it, and copies are in flight."""
        kafka = Behind((1, 2, 3, 4), t=[[1], [1]])
        kafka.slow = {4}
        operator = OperatorInMemory(kafka)
        operator.assign(("t", 0, [2]), ("t", 1, [4]), throttle={"unlimited": True})
        await operator.until_true(lambda: [2] in kafka.lists("t"))
        operator.write(("t", 0, [3]), ("t", 1, [4]))
        operator.edit(topics={"include": ["t"]})
        await operator.until_true(lambda: [3] in kafka.lists("t"))
        kafka.assign("t", 0, 1)
        operator.edit(topics={"include": ["t", "u"]})
        await operator.until_true(lambda: [3] in kafka.lists("t"))
        assert kafka.flying == {"t-1"}


class TestBack:
    async def test_to_the_origin_that_a_new_plan_keeps(self):
        """Another tool seems to have moved the partition since the run did: the answer is from before both."""
        kafka = BehindWhilePlanning((1, 2, 3, 4, 5), t=[[4], [1]])
        kafka.planning, kafka.slow = lambda: False, {3}
        kafka.assign("t", 0, 1)
        operator = OperatorInMemory(kafka)
        operator.assign(("t", 0, [2]), ("t", 1, [3]), throttle={"unlimited": True})
        await operator.until_true(lambda: kafka.lists("t")[0] == [2])
        first, kafka.planning = operator.run, lambda: asyncio.current_task() is operator.rebalance.memory.planning
        operator.edit(topics={"include": ["t", "u"]})
        await operator.until_true(lambda: operator.run.planning_hash != first.planning_hash)
        operator.delete()
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert kafka.lists("t") == [[1], [1]]

    @pytest.mark.parametrize("answers", [1, 2, 3, 6])
    async def test_undo(self, answers):
        operator = OperatorInMemory(Behind((1, 2), t=[[1]]))
        operator.assign(("t", 0, [2]))
        await operator.until("Succeeded")
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        operator.kafka.answers = answers
        await rounds_until(operator, "Undone")
        assert operator.kafka.lists("t") == [[1]]

    @pytest.mark.parametrize("answers", [1, 2, 3, 6])
    async def test_deletion(self, answers):
        """Kafka has executed all calls, and the answer is from before the first one."""
        operator = OperatorInMemory(Behind((1, 2), t=[[1]] * 12))
        operator.apply(execution={"parallelPartitionCount": 1}, throttle={"unlimited": True})
        await operator.until_true(lambda: [2] in operator.kafka.lists("t"))
        assert operator.run.open
        operator.delete()
        operator.kafka.answers = answers
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert operator.kafka.lists("t") == [[1]] * 12

    @pytest.mark.parametrize("answers", [1, 2, 6])
    async def test_deletion_as_if_another_tool_had_changed_a_partition(self, answers):
        """Its records would be deleted, and the partition would keep the replica that it has too many."""
        kafka = Behind((1, 2, 4, 5), t=[[4, 5], *[[1]] * 11])
        kafka.assign("t", 0, 1)
        operator = OperatorInMemory(kafka)
        several = [("t", number, [2]) for number in range(12)]
        operator.assign(*several, execution={"parallelPartitionCount": 1}, throttle={"unlimited": True})
        await operator.until_true(lambda: [2] in kafka.lists("t"))
        operator.delete()
        await operator.round()
        assert kafka.lists("t")[0] == [2, 1]
        kafka.answers = answers
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert kafka.lists("t") == [[1]] * 12

    async def test_deletion_as_if_the_topic_had_been_deleted(self):
        """The broker was paused before the topic was created. In a cluster with events, rounds follow at once."""
        operator = OperatorInMemory(Behind((1, 2), t=[[1]] * 12))
        operator.apply(execution={"parallelPartitionCount": 1}, throttle={"unlimited": True})
        await operator.until_true(lambda: [2] in operator.kafka.lists("t"))
        operator.delete()
        operator.kafka.old, operator.kafka.answers = {}, 1_000
        for _ in range(20):
            await operator.engine.tick()
        operator.kafka.answers = 0
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert operator.kafka.lists("t") == [[1]] * 12

    @pytest.mark.parametrize("policy", ["Rollback", "Revert"])
    async def test_a_deletion_that_has_sent_all_calls_itself(self, policy):
        """It does not wait: a copy in flight is cancelled, and completed moves are moved back."""
        operator = OperatorInMemory(Behind((1, 2), t=[[1]] * 4))
        operator.kafka.slow = {2}
        operator.apply(throttle={"unlimited": True}, deletionPolicy=policy)
        await operator.until_true(lambda: bool(operator.kafka.flying))
        operator.delete()
        for _ in range(3):
            await operator.round()
        assert (operator.engine.rebalances, operator.kafka.lists("t")) == ({}, [[1]] * 4)

    async def test_an_undo_that_has_sent_all_calls_itself(self):
        operator = OperatorInMemory(Behind((1, 2), t=[[1]]))
        operator.assign(("t", 0, [2]))
        await operator.until("Succeeded")
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        assert await rounds_until(operator, "Undone") <= 3

    async def test_the_wait_begins_again(self):
        """An old answer between two correct ones restarts the waiting time."""
        operator = OperatorInMemory(Behind((1, 2), t=[[1]] * 12))
        operator.apply(execution={"parallelPartitionCount": 1}, throttle={"unlimited": True})
        await operator.until_true(lambda: [2] in operator.kafka.lists("t"))
        operator.delete()
        operator.kafka.answers = 1
        await operator.round()
        operator.kafka.slow = {1}
        for _ in range(12):
            await operator.round()
        operator.kafka.slow, operator.kafka.answers = set(), 1
        operator.kafka.arrive()
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert operator.kafka.lists("t") == [[1]] * 12
