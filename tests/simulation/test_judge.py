"""The judge reports each kind of broken rule."""

from types import SimpleNamespace

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON
from tests.simulation.judge import Judge
from tests.simulation.virtual_time import VirtualLoop

from kafka_rebalance.api.v1alpha1 import parse_rebalance, planning_hash
from kafka_rebalance.kafka.ports import AlterCode
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import PartitionState, TopicPartition, replicas_of

TP = TopicPartition("t", 0)


class Ordered:
    """The runs a and b have both moved a partition; b copies it to broker 3 now, or others to broker 4.

    ``sender``: the resource for which the copy is cancelled.
    """

    def __init__(self, adding, sender):
        self.kube = KubeInMemory()
        replicas, here = replicas_of(2, adding), frozenset(replicas_of(2))
        self.state = PartitionState(TP, "id", replicas, here, replicas[0], adding=replicas_of(adding))
        basis = SimpleNamespace(read={TP: (self.state, 0.0)}, resource=f"n/{sender}")
        self.client = SimpleNamespace(process=SimpleNamespace(), host="kafka-n", basis=basis)
        self.bodies = {uid: self.body(uid) for uid in "ab"}
        self.judge = Judge(self)

    loop = SimpleNamespace(now=0.0)
    kafka = SimpleNamespace(dead={})

    @staticmethod
    def body(uid):
        metadata = {"name": uid, "namespace": "n", "uid": uid, "finalizers": []}
        return {"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka-n:9092"}}}

    async def stored(self):
        """With the owner and both runs on record."""
        await BindingStore(self.kube).save(Binding("c", Owner("n")))
        await self._store("a", replicas_of(3), replicas_of(2))
        await self._store("b", replicas_of(2), replicas_of(3))
        return self

    async def _store(self, uid, before, target):
        spec = parse_rebalance(self.bodies[uid]).spec
        plan = Plan((PlannedPartition(TP, before, target, "id"),), Certificate.of(1, 1))
        run = Run(uid, "n", uid, "c", "run", planning_hash(spec), plan.hash, NOON, started_at=NOON)
        await PlanStore(self.kube).save(uid, plan.hash, "c", plan, NOON)
        await OriginStore(self.kube).append(uid, "run", [Origin(TP, "id", before, before[0])])
        await RunStore(self.kube).save(run)

    def note(self, _):
        """The trace of the seed is not looked at."""

    def body_of(self, uid):
        return self.bodies[uid]

    def host_of(self, owner):
        return f"kafka-{owner.namespace}"

    def min_insync(self, _):
        return 1

    def cancelled(self, ours):
        """What is broken when the copy is cancelled, which the resource with this uid has begun; None: others."""
        if ours is not None:
            self.judge.ours[TP] = ours
        self.judge.ordered(self.client, TP, None, self.state, AlterCode.OK)
        return self.judge.broken


def broken_by(adding, ours, change=lambda _: None, sender="b"):
    """What a cancel breaks, in the loop of the simulation."""

    async def judged():
        ordered = await Ordered(adding, sender).stored()
        change(ordered)
        return ordered.cancelled(ours)

    loop = VirtualLoop()
    try:
        return loop.run_until_complete(judged())
    finally:
        loop.close()


def delete(uid):
    return lambda ordered: ordered.bodies[uid]["metadata"].update(deletionTimestamp="2026-01-01T12:00:00Z")


class TestCancels:
    def test_of_a_copy_that_another_run_wants(self):
        """The rollback of a has an origin of the partition, and the copy is that of b."""
        assert broken_by(3, "b", delete("a"), sender="a") == [
            "t-0 -> null: cancels the copy of b, which still wants it"
        ]

    def test_of_a_copy_of_others(self):
        (said,) = broken_by(4, None)
        assert said == "t-0 -> null: cancels the copy to [4], which no plan or origin names"

    @pytest.mark.parametrize(
        "change",
        [delete("b"), lambda ordered: ordered.bodies["b"]["spec"].update(topics={"include": ["u"]})],
        ids=["deleted", "edited"],
    )
    def test_of_a_copy_that_its_run_gives_up(self, change):
        assert broken_by(3, "b", change) == []
