"""A Kafka server that takes long for each call: rounds end, and no rebalance waits for all calls of all others."""

import asyncio
from datetime import timedelta

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.kafka.ports import CALL_SECONDS
from kafka_rebalance.reconcile.act.turns import STAGE_SECONDS

MANY = 30


class SlowKafka(KafkaInMemory):
    """Orders take as long as a call may take, once it is ``slow_since``."""

    clock = None

    async def alter_reassignments(self, orders):
        if self.clock is not None:
            self.clock.at += timedelta(seconds=CALL_SECONDS)
        return await super().alter_reassignments(orders)


class TestManyRebalances:
    async def test_each_gets_its_turn(self):
        """All of them have something to send in every round, and each gets to it; a round sends only for a few."""
        topics = {f"t{n}": [[1]] * MANY for n in range(MANY)}
        kafka = SlowKafka((1, 2), **topics)
        operator = OperatorInMemory(kafka)
        for n in range(MANY):
            metadata = {"name": f"r{n}", "namespace": "kafka", "uid": f"u-{n}", "creationTimestamp": NOON.isoformat()}
            spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "topics": {"include": [f"t{n}"]}}
            spec |= {"brokers": {"decommission": [1]}, "throttle": {"unlimited": True}}
            spec |= {"execution": {"parallelPartitionCount": 1}}
            operator._see(operator.kube.create(REBALANCES, {"metadata": metadata, "spec": spec}))
        kafka.clock = operator.clock
        await operator.until_true(lambda: kafka.altered)
        for _ in range(MANY):
            before = operator.clock.monotonic()
            await operator.round()
            assert operator.clock.monotonic() - before <= 3 * (STAGE_SECONDS + CALL_SECONDS)
        served = {tp.rpartition("-")[0] for tp, _ in kafka.altered}
        assert served == topics.keys()


class HungStore(OperatorInMemory):
    """The store of the load models gives no answer, once it is hung."""

    hung = False

    async def _loads(self, cluster_id):
        if self.hung:
            await asyncio.Event().wait()
        return await super()._loads(cluster_id)


class TestLoadModel:
    async def test_no_round_waits_for_it(self):
        """After a restart the expected rates are read from it; reassignments in flight continue without them."""
        kafka = KafkaInMemory((1, 2), t=[[1]] * 4)
        kafka.slow = {2}
        operator = HungStore(kafka)
        operator.apply(throttle={"unlimited": True})
        await operator.until_true(lambda: kafka.flying)
        operator.hung = True
        operator.restart()
        async with asyncio.timeout(60):
            await operator.round()
        kafka.arrive()
        await operator.until("Succeeded")
