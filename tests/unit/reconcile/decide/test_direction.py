"""Which rebalance of a cluster is served first."""

import itertools
from datetime import UTC, datetime

import pytest
from tests.fakes.found_by_rounds import recorded, remembered

from kafka_rebalance.model.run import Run
from kafka_rebalance.reconcile.decide.direction import by_precedence, may_end_later
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.rebalance import Rebalance

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


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


class TestMayEndLater:
    """A deletion that is prepared in a later round."""

    @staticmethod
    def deleted(*, was_read=True, started_at=None, **spec):
        mine = rebalance("r", 1, deleted=True, **spec)
        run = Run("r", "kafka", "r", "c", "run-1", "h", "p", NOON, started_at=started_at)
        return recorded(mine, was_read=was_read, run=run)

    def test_one_that_has_sent_nothing(self):
        assert may_end_later(self.deleted())

    def test_not_one_that_may_have_sent_something(self):
        """It may have something to move back, now; so may one whose record is not read yet."""
        assert not may_end_later(self.deleted(started_at=NOON))
        assert not may_end_later(self.deleted(was_read=False))

    def test_one_that_leaves_kafka_as_it_is(self):
        """It sends nothing meanwhile, even if the first attempt to end it has failed."""
        mine = self.deleted(started_at=NOON, deletionPolicy="Abandon")
        assert may_end_later(mine)
        assert may_end_later(remembered(mine, prepared=mine.desired.change_key))
        assert not may_end_later(self.deleted(was_read=False, started_at=NOON, deletionPolicy="Abandon"))

    def test_one_whose_finalizer_could_not_be_removed(self):
        """Its deletion is prepared, its run has ended: nothing in Kafka waits for it."""
        mine = recorded(rebalance("r", 1, deleted=True), was_read=True)
        assert may_end_later(remembered(mine, prepared=mine.desired.change_key))

    def test_not_one_whose_deletion_is_prepared(self):
        mine = self.deleted()
        assert not may_end_later(remembered(mine, prepared=mine.desired.change_key))
        assert not may_end_later(recorded(rebalance("r", 1), was_read=True))
