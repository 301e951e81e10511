"""An operator with a rebalance ``r`` of a cluster with slow copies, for tests that walk from state to state."""

from datetime import timedelta

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES, UNDO_ANNOTATION, parse_throttle

ONE_AT_A_TIME = {"parallelPartitionCount": 1}
SUSPENDED = {**ONE_AT_A_TIME, "suspend": True}
NOT_NOW = {"cron": "0 3 * * *", "duration": "1h"}
TWO_BROKERS = {"brokers": {"include": [1, 2]}}
NARROWER = {"include": ["t"], "exclude": ["nothing"]}
"""An equivalent selection of topics in other words: enough for a new plan."""


class SlowCluster(KafkaInMemory):
    """Two of four partitions have to move to broker 2, which is slow.

    The hooks run once each, in the middle of a round: ``begun`` before partitions are read, ``sent`` after a step was
    submitted.
    """

    def __init__(self, *, slow=True, rows=((1,), (1,), (1,), (1,)), **topics):
        super().__init__((1, 2, 3), t=rows, **topics)
        self.slow = {2} if slow else set()
        self.begun = self.sent = None

    async def describe_cluster(self):
        happens, self.begun = self.begun, None
        if happens is not None:
            happens()
        return await super().describe_cluster()

    async def alter_reassignments(self, orders):
        answers = await super().alter_reassignments(orders)
        happens, self.sent = self.sent, None
        if happens is not None:
            happens()
        return answers


class WalkedOperator(OperatorInMemory):
    """With a second rebalance, and a throttle resource."""

    def apply_other(self, name="other", **spec):
        """A rebalance that is one second younger than ``r``."""
        created = (NOON + timedelta(seconds=1)).isoformat()
        metadata = {"name": name, "namespace": "kafka", "uid": f"u-{name}", "creationTimestamp": created}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "topics": {"include": ["t"]}, **TWO_BROKERS, **spec}
        self._see(self.kube.create(REBALANCES, {"metadata": metadata, "spec": spec}))

    def freeze(self, freeze):
        """Set ``freeze`` on a KafkaReassignmentThrottle."""
        metadata = {"name": "limits", "namespace": "kafka", "uid": "k-1"}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "freeze": freeze}
        self._see(self.kube.create(REASSIGNMENT_THROTTLES, {"metadata": metadata, "spec": spec}))

    def delete(self):
        body = self.kube.delete(REBALANCES, "kafka", "r", self.clock.at.isoformat())
        if body is not None:
            self._see(body)

    def undo(self):
        """Request an undo, as `kafka-rebalance undo` does."""
        self.order(UNDO_ANNOTATION, self.status["plan"]["hash"])

    async def until_flying(self):
        """Run rounds until a copy is in flight and the status reports it."""
        await self.until_true(lambda: bool(self.status.get("currentBatchSize")))

    async def until_gone(self):
        """Run rounds until ``r`` is deleted; copies of the rollback are in sync at once."""
        self.kafka.slow = set()
        await self.until_true(lambda: (REBALANCES, "kafka", "r") not in self.kube.resources)

    def _see(self, body):
        if "freeze" in body["spec"]:
            self.engine.see_throttles({body["metadata"]["uid"]: parse_throttle(body)})
        else:
            super()._see(body)


def applied(kafka=None, **spec):
    """An operator that has just seen ``r``."""
    operator = WalkedOperator(kafka or SlowCluster())
    operator.apply(**{"topics": {"include": ["t"]}, "execution": ONE_AT_A_TIME, **TWO_BROKERS, **spec})
    return operator


async def flying(kafka=None, **spec):
    """One copy of ``r`` is in flight."""
    operator = applied(kafka, **spec)
    await operator.until_flying()
    return operator


async def succeeded(kafka=None, **spec):
    """The run of ``r`` has succeeded; from now on copies to broker 1 are slow."""
    operator = applied(kafka or SlowCluster(slow=False), **spec)
    await operator.until("Succeeded")
    operator.kafka.slow = {1}
    return operator


async def succeeded_before(kafka=None):
    """The last run of ``r`` had nothing to do, and the one before it has succeeded."""
    operator = await succeeded(kafka)
    operator.edit(topics=NARROWER)
    await operator.until("NothingToDo")
    return operator


async def undoing():
    """One copy of an undo is in flight."""
    operator = await succeeded()
    operator.undo()
    await operator.until("Undoing")
    await operator.until_true(lambda: bool(operator.kafka.flying))
    return operator
