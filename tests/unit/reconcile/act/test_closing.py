"""When a broker that is decommissioned counts as empty."""

from datetime import timedelta

from tests.fakes.found_by_rounds import recorded
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.api.v1alpha1 import FINALIZER
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.reconcile.act.closing import Closing
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of


class Closed:
    """A run that has moved topic t away from broker 4, which may hold replicas of topic u."""

    def __init__(self):
        self.kafka, self.clock = KafkaInMemory((1, 4), t=[[1]], u=[[1]]), StoppedClock()
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1", "finalizers": [FINALIZER]}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "topics": {"include": ["t"]}}
        self.rebalance = Rebalance.of({"metadata": metadata, "spec": {**spec, "brokers": {"decommission": [4]}}})
        moved = PlannedPartition(TopicPartition("t", 0), replicas_of(4), replicas_of(1))
        plan = Plan((moved,), Certificate(1, optimal=True))
        run = Run("u-1", "kafka", "r", "c", "run", self.rebalance.desired.planning_hash, plan.hash, NOON)
        recorded(self.rebalance, run=run, was_read=True, loaded_run=loaded_run_of(run, plan, "ref", {}))
        self.closing = Closing(self.kafka, Lifecycle(None, None, self.clock), self.clock)

    async def empty(self, *, seconds=0):
        """Whether broker 4 is reported as empty this much later; None: it is not known yet."""
        self.clock.at += timedelta(seconds=seconds)
        drain = (await self.closing.finish(self.rebalance, self.kafka.info)).drain
        return drain and drain.empty


class TestDrained:
    async def test_two_readings_some_time_apart(self):
        """One reading proves nothing: another tool may be about to place a replica there."""
        closed = Closed()
        assert [await closed.empty(), await closed.empty(seconds=1), await closed.empty(seconds=1)] == [
            None,
            None,
            True,
        ]

    async def test_the_two_readings_follow_each_other(self):
        """A reading that finds a replica in between starts the proof again."""
        closed = Closed()
        assert await closed.empty() is None
        closed.kafka.assign("u", 0, 4)
        assert await closed.empty(seconds=3) is False
        closed.kafka.assign("u", 0, 1)
        assert await closed.empty(seconds=3) is None
        assert await closed.empty(seconds=3) is True
