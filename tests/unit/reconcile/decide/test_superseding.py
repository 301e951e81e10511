"""A spec that is edited during its run: one plan at a time, and every move stays part of the run."""

import asyncio
import inspect
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory


def away(kafka, topics="t"):
    """The partitions that have left their origin."""
    return [(topic, n) for topic in topics for n, held in enumerate(kafka.lists(topic)) if held != [1]]


async def tick(operator):
    """A round that does not wait for a plan."""
    await operator.engine.tick()
    operator.clock.at += timedelta(seconds=1)
    for _ in range(20):
        await asyncio.sleep(0)


async def planned_for_long(operator):
    """Edit the spec and keep planning until the returned event is set."""
    loaded = asyncio.Event()

    async def late(_):
        await loaded.wait()

    operator.engine._rounds._runs._plans._load_models = late
    operator.edit(topics={"exclude": ["no-1"]})
    while operator.rebalance.memory.planning is None:
        await tick(operator)
    return loaded


class TestEditedBack:
    @pytest.mark.parametrize("rounds", range(2, 9))
    async def test_while_a_plan_is_being_made(self, rounds):
        """That plan is given up: the run goes on with the plan that it has."""
        kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 9)
        operator = OperatorInMemory(kafka)
        operator.apply(execution={"parallelPartitionCount": 1}, goals={"maxReplicaMoves": 4})
        await operator.until_true(lambda: len(away(kafka)) == 1)
        loaded = await planned_for_long(operator)
        operator.edit(topics={"exclude": []})
        for _ in range(rounds):
            await tick(operator)
        loaded.set()
        await operator.until_closed()
        assert len(away(kafka)) == 4
        assert all(len(held) == 1 for held in kafka.lists("t"))


class TestATopicThatOnlySomeBrokersKnow:
    """Read while the run is planned again. The topic still exists: its moves belong to the run."""

    async def replanned(self, **spec):
        """Two partitions have moved when one of their topics is missing from metadata; it is back later."""
        kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 6, u=[[1]] * 6)
        operator = OperatorInMemory(kafka)
        operator.apply(execution={"parallelPartitionCount": 1}, **spec)
        await operator.until_true(lambda: len(away(kafka, "tu")) == 2)
        kafka.unseen = {away(kafka, "tu")[0][0]}
        operator.edit(topics={"exclude": ["no-1"]})
        await operator.until("MetadataStale")
        assert operator.rebalance.memory.planning is None
        kafka.unseen = set()
        return kafka, operator

    async def test_it_counts_against_the_budget(self):
        """Like moves of any other topic."""
        kafka, operator = await self.replanned(goals={"maxReplicaMoves": 3})
        await operator.until_closed()
        assert len(away(kafka, "tu")) == 3

    async def test_it_is_rolled_back(self):
        """A deletion moves everything back."""
        kafka, operator = await self.replanned()
        await operator.until("Rebalancing")
        operator.delete()
        await operator.until_true(lambda: not operator.kube.resources)
        assert away(kafka, "tu") == []


class Killed(BaseException):
    """The process is gone; no code catches this."""


async def in_flight():
    """Two copies are in flight, to brokers 2 and 3."""
    kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 3, u=[[1]] * 3)
    kafka.slow = {2, 3}
    operator = OperatorInMemory(kafka)
    operator.apply(execution={"parallelPartitionCount": 2})
    await operator.until_true(lambda: len(kafka.flying) == 2)
    return kafka, operator


async def retargeted():
    """Two copies are in flight; the new spec has another target for the second one."""
    kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 2)
    kafka.slow = {2, 3}
    operator = OperatorInMemory(kafka)
    operator.assign(("t", 0, [2]), ("t", 1, [2]), topics={"exclude": ["no-1"]})
    await operator.until_true(lambda: len(kafka.flying) == 2)
    operator.write(("t", 0, [2]), ("t", 1, [3]))
    operator.edit(topics={"exclude": ["no-2"]})
    return kafka, operator


def followers(kafka):
    """The followers' entries, as ``partition:broker`` after its topic."""
    lists = {topic: kafka.values.get((topic, "follower.replication.throttled.replicas"), "") for topic in "tu"}
    return {f"{topic}-{entry}" for topic, text in lists.items() for entry in text.split(",") if entry}


def nulled(kafka):
    """The cancelled partitions, in order."""
    return [tp for tp, to in kafka.altered if to is None]


async def superseded(operator):
    """Run rounds until the run matches the spec."""
    await operator.until_true(lambda: operator.rebalance.record.was_read)
    await operator.until_true(lambda: operator.run.planning_hash == operator.rebalance.desired.planning_hash)
    await operator.round()


class TestCopiesInFlight:
    """A copy that the new plan continues in the same way stays; the others are cancelled first."""

    @pytest.mark.parametrize("killed_after", [None, 0, 1, 2, 3])
    async def test_an_edit_that_changes_nothing_for_them(self, killed_after):
        kafka, operator = await in_flight()
        flying, sent, old = kafka.flying, list(kafka.altered), operator.run.planning_hash
        operator.edit(topics={"exclude": ["no-1"]})
        if killed_after is not None:
            for _ in range(killed_after):
                await operator.round()
            operator.restart()
        await superseded(operator)
        assert operator.run.planning_hash != old
        assert (kafka.flying, kafka.altered) == (flying, sent)
        kafka.arrive()
        await operator.until("Succeeded")
        assert nulled(kafka) == []

    @pytest.mark.parametrize("killed_after", [None, 0, 1, 2, 3])
    async def test_a_topic_that_is_taken_out(self, killed_after):
        """Two topics each have a copy in flight; only that topic's copy is cancelled."""
        kafka = KafkaInMemory((1, 2), t=[[1]] * 2, u=[[1]] * 2)
        kafka.slow = {2}
        operator = OperatorInMemory(kafka)
        operator.assign(("t", 0, [2]), ("u", 0, [2]), topics={"exclude": ["no-1"]})
        await operator.until_true(lambda: len(kafka.flying) == 2)
        operator.write(("t", 0, [2]))
        operator.edit(topics={"exclude": ["no-2"]})
        if killed_after is not None:
            for _ in range(killed_after):
                await operator.round()
            operator.restart()
        await superseded(operator)
        assert nulled(kafka) == ["u-0"]
        assert kafka.flying == {"t-0"}
        kafka.arrive()
        await operator.until("Succeeded")
        assert (kafka.lists("t"), kafka.lists("u")) == ([[2], [1]], [[1], [1]])

    async def test_one_that_gets_another_target(self):
        kafka, operator = await retargeted()
        await superseded(operator)
        assert nulled(kafka) == ["t-1"]
        kafka.arrive()
        await operator.until("Succeeded")
        assert kafka.lists("t") == [[2], [3]]

    async def test_one_that_arrives_while_the_plan_is_made(self):
        """The new plan continues from there."""
        kafka, operator = await in_flight()
        loaded = await planned_for_long(operator)
        await tick(operator)
        kafka.arrive()
        await tick(operator)
        loaded.set()
        await operator.until("Succeeded")
        assert nulled(kafka) == []
        assert sorted(kafka.leaders("t") + kafka.leaders("u")) == [1, 1, 2, 2, 3, 3]

    async def test_their_throttle_stays(self):
        """In every round each copy in flight has its entry."""
        kafka, operator = await in_flight()
        operator.edit(topics={"exclude": ["no-1"]})
        while operator.run.planning_hash != operator.rebalance.desired.planning_hash:
            await operator.round()
            assert followers(kafka) == {f"{tp}:{state.adding[0]}" for tp, state in kafka.states.items() if state.adding}
        await operator.round()
        assert followers(kafka) == {f"{tp}:{state.adding[0]}" for tp, state in kafka.states.items() if state.adding}

    async def test_the_budget_counts_them_once(self):
        """As moves of the new plan, because they have not completed."""
        kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 6)
        kafka.slow = {2, 3}
        operator = OperatorInMemory(kafka)
        operator.apply(execution={"parallelPartitionCount": 2}, goals={"maxReplicaMoves": 3})
        await operator.until_true(lambda: len(kafka.flying) == 2)
        operator.edit(topics={"exclude": ["no-1"]})
        await superseded(operator)
        kafka.arrive()
        await operator.until_closed()
        assert (nulled(kafka), len(away(kafka))) == ([], 3)

    @pytest.mark.parametrize("calls", range(1, 75))
    async def test_killed_between_any_two_calls(self, calls):
        """One of two copies is still cancelled, and the other one stays. The answer to the last call is lost."""
        kafka, operator = await retargeted()
        left = calls

        def deadly(call):
            async def carried_out(*args, **kwargs):
                nonlocal left
                left -= 1
                answer = await call(*args, **kwargs)
                if left == 0:
                    raise Killed
                return answer

            return carried_out

        for port in (kafka, operator.kube):
            for name in dir(port):
                if not name.startswith("_") and inspect.iscoroutinefunction(getattr(port, name)):
                    setattr(port, name, deadly(getattr(port, name)))
        try:
            await superseded(operator)
        except Killed:
            if operator.rebalance.memory.planning is not None:
                operator.rebalance.memory.planning.cancel()
            operator.restart()
            await superseded(operator)
        assert nulled(kafka) == ["t-1"]
        kafka.arrive()
        await operator.until("Succeeded")
        assert kafka.lists("t") == [[2], [3]]
