"""Partition sizes: from the pipeline's load model, and live for topics newer than the model."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.kafka.ports import Answers, LogDir
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reconcile.runs.plan_request import known_loads

T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)


def model(**loads):
    return LoadModel("LoadModel", None, {TopicPartition(topic, 0): load for topic, load in loads.items()}, "c")


class TestKnownLoads:
    @pytest.fixture
    def kafka(self):
        return KafkaInMemory([1, 2, 3], size=700, t=[[1, 2]], u=[[1, 2]])

    async def known(self, kafka, loads):
        return await known_loads(loads, kafka, kafka.info, kafka.states)

    async def test_all_are_in_the_model(self, kafka):
        """No broker is asked."""
        loads = model(t=PartitionLoad(10), u=PartitionLoad(20))
        assert await self.known(kafka, loads) is loads

    async def test_a_topic_that_is_newer(self, kafka):
        """The rest is taken from the model."""
        found = await self.known(kafka, model(t=PartitionLoad(10, 5.0)))
        assert (found.size_bytes(T0), found.size_bytes(U0), found.source) == (10, 700, "LoadModel")
        assert found.bytes_in_per_second(T0) == 5.0

    async def test_a_topic_that_was_created_anew(self, kafka):
        """Size and rate of an earlier topic of the same name do not count."""
        found = await self.known(kafka, model(t=PartitionLoad(10, 5.0, topic_id="t-id-0"), u=PartitionLoad(20)))
        assert (found.size_bytes(T0), found.bytes_in_per_second(T0), found.size_bytes(U0)) == (700, 0.0, 20)

    async def test_no_model(self, kafka):
        """All sizes are read live."""
        found = await self.known(kafka, None)
        assert (found.size_bytes(T0), found.source) == (700, "LogDirs")


class TestBudgetOfBytes:
    async def test_topics_newer_than_the_model_count(self):
        """Twelve moves would balance these brokers; the budget is enough for two."""
        kafka = KafkaInMemory([1, 2, 3, 4], size=1000, t=[(1, 2)] * 6, u=[(2, 1)] * 6)
        loads = {TopicPartition("t", number): PartitionLoad(1000) for number in range(6)}
        operator = OperatorInMemory(kafka, LoadModel("LoadModel", None, loads, "c"))
        operator.apply(goals={"maxDataToMove": 2000})
        await operator.until("Succeeded")
        assert (operator.status["plan"]["replicaMoves"], operator.status["plan"]["dataToMove"]) == (2, 2000)

    async def test_sizes_that_nobody_tells(self):
        """Reported and retried; a partition without a leader is not moved, so its size is not needed."""
        kafka = KafkaInMemory([1, 2, 3], t=[(1, 2)] * 3, u=[(1, 2)])
        kafka.lead("u", 0, None)
        told = {"t": False, "u": False}

        async def log_dirs(brokers):
            sizes = {tp: 100 for tp in kafka.states if told[tp.topic]}
            return Answers({broker: (LogDir("/data", sizes),) for broker in brokers})

        kafka.log_dirs = log_dirs
        operator = OperatorInMemory(kafka)
        operator.apply(goals={"maxDataToMove": 200})
        assert "4 partitions" not in await operator.until("SizesUnknown")
        assert (kafka.altered, "3 partitions (t-0, t-1, t-2)" in operator.message) == ([], True)
        told["t"] = True
        await operator.until("Succeeded")


class TestRates:
    @pytest.mark.parametrize(("topic_id", "said"), [("t-id-1", True), ("t-id-0", False)])
    async def test_of_an_earlier_topic_of_the_name(self, topic_id, said):
        """Neither the operator that plans nor the next one reports that the throttle is below the produce rate."""
        loads = {TopicPartition("t", n): PartitionLoad(100, 5000.0, topic_id=topic_id) for n in range(4)}
        kafka = KafkaInMemory([1, 2, 3], t=[[1], [1], [1], [2]])
        kafka.slow = {3}
        operator = OperatorInMemory(kafka, LoadModel("LoadModel", None, loads, "c"))
        operator.apply(throttle={"leaderRate": 1000, "followerRate": 1000})
        await operator.until("Rebalancing", "ThrottleTooLow")
        for start in (lambda: None, operator.restart):
            start()
            await operator.round()
            assert bool(operator.rebalance.assessment.advance.too_slow) is said
