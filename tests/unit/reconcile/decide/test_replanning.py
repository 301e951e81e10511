"""When a plan may be made."""

import pytest
from tests.fakes.found_by_rounds import found, recorded
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import FINALIZER
from kafka_rebalance.model.plan import Certificate, Plan
from kafka_rebalance.model.run import Run
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.replanning import wants_plan
from kafka_rebalance.reconcile.state.assessment import Replanning
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of


def resource(*finalizers, was_read=True):
    metadata = {"name": "r", "namespace": "kafka", "uid": "u-1", "finalizers": list(finalizers)}
    mine = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
    return recorded(mine, was_read=was_read)


class TestWantsPlan:
    def test_a_new_resource_is_planned(self):
        """Once the finalizer is on it, and what is stored of it was read."""
        assert wants_plan(resource(FINALIZER))

    @pytest.mark.parametrize("finalizers", [(), ("example.com/theirs",)])
    def test_not_without_our_finalizer(self, finalizers):
        """Somebody may have removed it: the resource could be deleted without a rollback."""
        assert not wants_plan(resource(*finalizers))

    def test_not_before_its_record_was_read(self):
        """There may be an open run."""
        assert not wants_plan(resource(FINALIZER, was_read=False))

    @pytest.mark.parametrize("rested", [False, True])
    def test_not_before_a_rest_has_ended(self, rested):
        """With permission again, what others move is struck off the record first. A plan would still have it."""
        run = Run("u-1", "kafka", "r", "c", "run", "h", "p", NOON, started_at=NOON, rested=rested)
        loaded = loaded_run_of(run, Plan((), Certificate(1, optimal=True)), "ref", {})
        mine = recorded(resource(FINALIZER), run=run, loaded_run=loaded)
        assert wants_plan(found(mine, replanning=Replanning(Reason.SUPERSEDED, ready=True))) is not rested
