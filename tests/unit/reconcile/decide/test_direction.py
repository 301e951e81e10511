"""Which rebalance of a cluster is served first."""

import itertools

import pytest

from kafka_rebalance.reconcile.decide.direction import by_precedence
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.rebalance import Rebalance


def rebalance(name, minute, deleted=False, **spec):
    metadata = {"name": name, "namespace": "kafka", "uid": name, "creationTimestamp": f"2026-01-01T00:{minute:02}:00Z"}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    return Rebalance(Desired.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "k:9092"}, **spec}}))


class TestPrecedence:
    FIRST_TO_LAST = (
        rebalance("rolls-back", 9, deleted=True),
        rebalance("important", 8, priority=5),
        rebalance("older", 1),
        rebalance("newer", 2),
    )

    @pytest.mark.parametrize("given", list(itertools.permutations(FIRST_TO_LAST)))
    def test_rollbacks_then_priority_then_age(self, given):
        assert by_precedence(given) == list(self.FIRST_TO_LAST)
