"""What the judge allows at the end of a run, a rollback and an owner, and what it allows of late requests."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON
from tests.simulation.judge import Judge
from tests.simulation.leftover_judge import LeftoverJudge
from tests.simulation.owner_judge import OwnerJudge
from tests.simulation.process import at_once
from tests.simulation.status_judge import StatusJudge
from tests.simulation.virtual_time import in_simulated_time

from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.store import OriginStore, RunStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.plan import PlannedPartition
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of

TP = TopicPartition("t", 0)
RUN = Run("a", "n", "a", "c", "run", "spec", "plan", NOON)


class TestPartitionsThatAreOnlyRemembered:
    """The plan of a run leaves t-0 on the brokers 1 and 2."""

    STAYS = PlannedPartition(TP, replicas_of(1, 2), replicas_of(1, 2), "id")

    def remembered(self, row, *origin):
        async def judged():
            kube = KubeInMemory()
            if origin:
                await OriginStore(kube).append("a", "run", [Origin(TP, "id", replicas_of(*origin), BrokerId(1))])
            return Judge(SimpleNamespace(kube=kube))._only_remembers(RUN, row)

        return in_simulated_time(judged())

    @pytest.mark.parametrize("origin", [(), (1, 2)])
    def test_no_call_was_sent(self, origin):
        assert self.remembered(self.STAYS, *origin)

    def test_an_earlier_plan_has_moved_it(self):
        assert not self.remembered(self.STAYS, 1, 3)

    def test_it_has_a_target_or_a_leader_to_elect(self):
        assert not self.remembered(PlannedPartition(TP, replicas_of(1, 2), replicas_of(2, 3), "id"))
        assert not self.remembered(PlannedPartition(TP, replicas_of(1, 2), replicas_of(1, 2), "id", elects=True))


class TestRollbacksThatTakeLong:
    """The resource a was deleted 91 s ago. Its run, which b takes over without t-0, has moved t-0."""

    def left_alone(self, *, timeout, adding=()):
        """Whether the run may leave the partition alone."""
        about = {"name": "a", "namespace": "n", "uid": "a", "finalizers": []}
        about["deletionTimestamp"] = (NOON - timedelta(seconds=91)).isoformat()
        spec = {"kafka": {"bootstrapServers": "k:9092"}, "rollback": {"timeout": timeout}}
        here = replicas_of(1, 2, *adding)
        states = {TP: PartitionState(TP, "id", here, frozenset(here), here[0], adding=replicas_of(*adding))}
        world = SimpleNamespace(kafka=SimpleNamespace(states=states), clock=SimpleNamespace(now=lambda: NOON))
        world.body_of = lambda _: {"metadata": about, "spec": spec}
        judge = SimpleNamespace(foreign={}, deaths={}, _plan=lambda _: {})
        judge.log_dirs = SimpleNamespace(by_another=lambda *_: False)
        return StatusJudge(world, judge)._skips(RUN, TP, "id", replicas_of(2, 1))

    def test_only_cancel_after_the_timeout(self):
        assert self.left_alone(timeout="90s")
        assert not self.left_alone(timeout="90s", adding=(3,))

    def test_move_back_before_it(self):
        assert not self.left_alone(timeout="100s")


class TestRunsThatNeverBegan:
    """The record of an open run is written."""

    def left(self, *, late, resource=None, started=None):
        kube, broken = KubeInMemory(), []
        run = Run("a", "n", "a", "c", "run", "spec", "plan", NOON, started_at=started)
        at_once(RunStore(kube).save(run))
        world = SimpleNamespace(kube=kube, body_of=lambda _: resource)
        judge = LeftoverJudge(world, SimpleNamespace(breach=broken.append))
        judge.recorded(run, late=late)
        judge._records()
        return broken

    def test_late_after_the_resource_is_gone(self):
        assert self.left(late=True) == []

    @pytest.mark.parametrize(
        "differs", [{"late": False}, {"resource": {}}, {"started": NOON}], ids=["in time", "it is there", "begun"]
    )
    def test_any_other(self, differs):
        assert self.left(**{"late": True} | differs) == ["the run of a is open"]


class TestCallsWithoutAnOwner:
    """The owner was on record until 5 s. The call was sent then, or later, and is carried out at 7 s."""

    def broken(self, *, late, at):
        kube, broken = KubeInMemory(), []
        loop = SimpleNamespace(now=5.0)
        world = SimpleNamespace(kube=kube, loop=loop, host_of=lambda owner: f"kafka-{owner.namespace}")
        owners = OwnerJudge(world, SimpleNamespace(breach=broken.append))
        at_once(BindingStore(kube).save(Binding("c", Owner("n"))))
        owners.recorded()
        kube.config_maps.clear()
        loop.now = 7.0
        basis = SimpleNamespace(late=late, at=at)
        owners.ordered(SimpleNamespace(host="kafka-n", basis=basis), "configs of t")
        return broken

    def test_sent_while_there_was_one(self):
        assert self.broken(late=True, at=5.0) == []

    @pytest.mark.parametrize("differs", [{"late": False}, {"at": 6.0}], ids=["in time", "sent later"])
    def test_sent_without_one(self, differs):
        assert self.broken(**{"late": True, "at": 5.0} | differs) == [
            "configs of t: sent to a cluster without an owner on record"
        ]
