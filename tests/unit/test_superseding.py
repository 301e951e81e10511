"""A spec that is edited while its run goes on: one plan at a time, and nothing that was moved is forgotten."""

import asyncio
from datetime import timedelta

import pytest
from tests.unit.kafka_in_memory import KafkaInMemory
from tests.unit.operator_in_memory import OperatorInMemory


def away(kafka, topics="t"):
    """The partitions that are not where they were."""
    return [(topic, n) for topic in topics for n, held in enumerate(kafka.lists(topic)) if held != [1]]


async def tick(operator):
    """A round that does not wait for a plan."""
    await operator.engine.tick()
    operator.clock.at += timedelta(seconds=1)
    for _ in range(20):
        await asyncio.sleep(0)


class TestEditedBack:
    @pytest.mark.parametrize("rounds", range(2, 9))
    async def test_while_a_plan_is_being_made(self, rounds):
        """The run stands still until that plan is there: it was made from what the partitions are now."""
        kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 9)
        operator = OperatorInMemory(kafka)
        operator.apply(execution={"parallelPartitionCount": 1}, goals={"maxReplicaMoves": 4})
        await operator.until_true(lambda: len(away(kafka)) == 1)
        loaded = asyncio.Event()

        async def late(_):
            await loaded.wait()

        operator.engine._runs._load_models = late
        operator.edit(topics={"exclude": ["no-1"]})
        while operator.work.planning is None:
            await tick(operator)
        before = list(kafka.altered)
        operator.edit(topics={"exclude": []})
        for _ in range(rounds):
            await tick(operator)
        assert kafka.altered == before
        loaded.set()
        await operator.until_closed()
        assert len(away(kafka)) == 4
        assert all(len(held) == 1 for held in kafka.lists("t"))


class TestATopicThatOnlySomeBrokersKnow:
    """Read while the run is planned again. It is there all the same: what was moved of it belongs to the run."""

    async def replanned(self, **spec):
        """Two partitions have been moved when one of their topics is not told about; it is told again later."""
        kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 6, u=[[1]] * 6)
        operator = OperatorInMemory(kafka)
        operator.apply(execution={"parallelPartitionCount": 1}, **spec)
        await operator.until_true(lambda: len(away(kafka, "tu")) == 2)
        kafka.unseen = {away(kafka, "tu")[0][0]}
        operator.edit(topics={"exclude": ["no-1"]})
        await operator.until("MetadataStale")
        assert operator.work.planning is None
        kafka.unseen = set()
        return kafka, operator

    async def test_it_counts_against_the_budget(self):
        """As what was moved of any other topic."""
        kafka, operator = await self.replanned(goals={"maxReplicaMoves": 3})
        await operator.until_closed()
        assert len(away(kafka, "tu")) == 3

    async def test_it_is_rolled_back(self):
        """A deletion brings everything back."""
        kafka, operator = await self.replanned()
        await operator.until("Rebalancing")
        operator.delete()
        await operator.until_true(lambda: not operator.kube.resources)
        assert away(kafka, "tu") == []
