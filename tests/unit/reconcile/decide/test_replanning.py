"""When a plan may be made."""

import pytest
from tests.fakes.found_by_rounds import recorded

from kafka_rebalance.api.v1alpha1 import FINALIZER
from kafka_rebalance.reconcile.decide.replanning import wants_plan
from kafka_rebalance.reconcile.state.rebalance import Rebalance


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
