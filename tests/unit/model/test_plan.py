"""Plans and their certificates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_rebalance.model.plan import Certificate, LogDirMove, Plan, PlannedPartition, joined_log_dirs
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of


class TestCertificate:
    def test_a_plan_that_meets_its_lower_bound_is_optimal(self):
        """The number of moves is proven minimal if it equals the lower bound."""
        assert Certificate.of(moves=3, lower_bound=3) == Certificate(3, optimal=True)
        assert Certificate.of(moves=4, lower_bound=3) == Certificate(3, optimal=False)


class TestHash:
    MOVE = PlannedPartition(TopicPartition("t", 0), replicas_of(1, 2), replicas_of(3, 2))

    def test_it_covers_the_brokers_to_empty(self):
        """Also those that lose no replica by the plan: they are cordoned, which requires approval."""
        kept, emptied, more = (
            Plan((self.MOVE,), Certificate(1, optimal=True), decommission=b) for b in ((), (1,), (1, 5))
        )
        assert len({kept.hash, emptied.hash, more.hash}) == 3
        assert {plan.moves_hash for plan in (kept, emptied, more)} == {kept.hash}
        empty = Plan((), Certificate(0, optimal=True))
        assert replace(empty, decommission=(5,)).hash not in {empty.hash, emptied.hash}


class TestLogDirsOfTwoRuns:
    """The second run has moved the replica from /data/b to /data/c."""

    LATER = LogDirMove(TopicPartition("t", 0), BrokerId(1), "/data/b", "/data/c", "/data/b")

    @pytest.mark.parametrize(
        ("first", "origin"),
        [
            (("/data/a", "/data/b", "/data/a"), "/data/a"),
            (("/data/a", "/data/d", "/data/a"), "/data/b"),
            (("/data/d", "/data/e", "/data/b"), "/data/b"),
            ((None, "/data/d", None), None),
            (("/data/a", None, "/data/a"), "/data/a"),
        ],
    )
    def test_a_rollback_leads_to_before_the_first(self, first, origin):
        """Unless others have moved the replica in between: the first run has not moved it to /data/b."""
        older = LogDirMove(self.LATER.tp, self.LATER.broker, *first)
        joined = joined_log_dirs({older.key: older}, [self.LATER])
        assert joined == {older.key: replace(self.LATER, origin=origin)}
