"""The status of a partition that has no leader."""

import dataclasses

import pytest
from tests.unit.execution.partition_states import MOVE, ROLLBACK, seen, state, status_of

from kafka_rebalance.execution.partition_status import MovePhase, judge
from kafka_rebalance.model.topology import replicas_of


class TestNoReplicaReturns:
    """All replicas are on brokers that the run added, and that died: Kafka elects none of the originals."""

    @pytest.mark.parametrize(
        ("alive", "restarting", "reason"),
        [
            ((1, 2, 3), (), "OriginalBrokerGone"),
            ((1, 2, 3, 6), (), "OriginalBrokerGone"),
            ((1, 2, 3), (4,), "NoLeader"),
            ((1, 2, 3), (6,), "NoLeader"),
            ((1, 2, 3, 4), (), "NoLeader"),
        ],
        ids=["all gone", "one is live and behind", "one restarts", "one behind restarts", "one is live again"],
    )
    def test_a_way_back_ends_and_names_them(self, alive, restarting, reason):
        """Unless one of them may still lead: that a broker restarts is waited for."""
        lost = dataclasses.replace(state(4, 5, 6, isr=(4,)), leader=None)
        move = dataclasses.replace(MOVE, planned_from=replicas_of(1, 2, 6), target=replicas_of(4, 5, 7))
        there = dataclasses.replace(seen(lost, alive=alive), restarting=frozenset(restarting))
        found = judge(move, there, ROLLBACK, 1)
        assert found.reason == reason
        assert found.phase is (MovePhase.WAITING if reason == "NoLeader" else MovePhase.SKIPPED)
        assert reason == "NoLeader" or "5" in found.message

    @pytest.mark.parametrize(("restarting", "cancel"), [((), True), ((4,), False)])
    def test_a_copy_back_without_a_source_is_cancelled(self, restarting, cancel):
        """It would never arrive, and the deletion would never end."""
        back = dataclasses.replace(state(1, 4, 5, 6, isr=(4,), adding=(1,)), leader=None)
        there = dataclasses.replace(seen(back, alive=(1, 2, 3)), restarting=frozenset(restarting))
        assert judge(MOVE, there, ROLLBACK, 1).cancel is cancel

    def test_forward_it_waits(self):
        """The plan wants the replicas moved whenever one returns."""
        lost = dataclasses.replace(state(4, 2, 3, isr=(4,)), leader=None)
        found = status_of(lost, alive=(1, 5, 6))
        assert (found.phase, found.reason) == (MovePhase.WAITING, "NoLeader")
