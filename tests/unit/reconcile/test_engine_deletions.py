"""Many rebalances of one namespace are deleted at once: others of the cluster do not wait for all of them."""

from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.kube.store import KIND_LABEL
from kafka_rebalance.reconcile.act.turns import STAGE_SECONDS
from kafka_rebalance.reconcile.decide import teardown
from kafka_rebalance.reconcile.decide.requeue import BUSY_SECONDS

MANY = 20


class Crowded(OperatorInMemory):
    """Beside "r", which moves "t", ``MANY`` suspended rebalances of another namespace. Counts lists of all runs."""

    def __init__(self):
        super().__init__(KafkaInMemory((1, 2, 3, 4), t=[[1, 2, 3]], other=[[1, 2, 3]]))
        self.kafka.slow = {4}
        self.lists = 0
        self._list_config_maps, self.kube.list_config_maps = self.kube.list_config_maps, self._counted
        self.apply(topics={"include": ["t"]}, brokers={"decommission": [1]}, throttle={"unlimited": True})

    async def _counted(self, labels):
        self.lists += labels.get(KIND_LABEL) == "run"
        return await self._list_config_maps(labels)

    def suspended(self, prefix="s", **metadata):
        for n in range(MANY):
            given = {"namespace": "other", "creationTimestamp": NOON.isoformat(), **metadata}
            given |= {"name": f"{prefix}{n}", "uid": f"{prefix}-{n}"}
            spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "topics": {"include": ["other"]}, "suspend": True}
            self.see(self.kube.create(REBALANCES, {"metadata": given, "spec": spec}))

    def delete_suspended(self):
        for n in range(MANY):
            self.see(self.kube.delete(REBALANCES, "other", f"s{n}", self.clock.at.isoformat()))

    @property
    def left(self):
        return sum(name.startswith("s") for _, _, name in self.kube.resources)


@pytest.fixture
async def crowded():
    operator = Crowded()
    operator.suspended()
    await operator.until_true(lambda: operator.kafka.flying)
    await operator.round()
    return operator


class TestLists:
    async def test_deletions_of_a_round_share_a_list(self, crowded):
        """A deletion looks for runs that were handed over to its resource. A list for each would take long."""
        crowded.lists = 0
        crowded.delete_suspended()
        await crowded.round()
        assert (crowded.left, crowded.lists) == (0, 1)


class TestTurns:
    """An API server that takes long for each call leaves no time for all deletions in a round."""

    SECONDS = 5

    def slow(self, operator):
        patch_finalizers = operator.kube.patch_finalizers

        async def slow(*given):
            operator.clock.at += timedelta(seconds=self.SECONDS)
            return await patch_finalizers(*given)

        operator.kube.patch_finalizers = slow

    async def test_a_round_ends_and_the_next_ones_serve_the_others(self, crowded):
        """A deletion that nothing has to be moved back for may wait; the pause before the next round is short."""
        self.slow(crowded)
        crowded.delete_suspended()
        left = [MANY]
        while left[-1]:
            before = crowded.clock.monotonic()
            assert await crowded.engine.tick() <= BUSY_SECONDS
            assert crowded.clock.monotonic() - before <= STAGE_SECONDS + self.SECONDS
            left.append(crowded.left)
            assert left[-1] < left[-2]
        assert len(left) > 2

    async def test_one_that_moves_something_does_not_wait(self, crowded):
        """Its rollback begins in the next round."""
        self.slow(crowded)
        crowded.delete_suspended()
        crowded.delete()
        await crowded.round()
        assert crowded.left
        assert not crowded.kafka.flying


async def test_deletions_without_a_run_are_not_compared_with_the_plans_of_others(monkeypatch):
    """A finalizer of the user keeps them for as long as wanted; only a rollback waits for a plan."""
    operator, asked = Crowded(), []
    wants_plan = teardown.wants_plan
    monkeypatch.setattr(teardown, "wants_plan", lambda new: (asked.append(new), wants_plan(new))[1])
    operator.suspended(finalizers=["example.com/kept"])
    await operator.round()
    operator.delete_suspended()
    operator.suspended("n")
    await operator.round()
    asked.clear()
    await operator.round()
    assert (operator.left, len(asked)) == (MANY, 0)
