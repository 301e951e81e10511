"""Where the partitions of a deleted rebalance go (KIP-236)."""

import pytest

from kafka_rebalance.execution.rollback import Skip, drop_set, rollback_target, without_surplus
from kafka_rebalance.execution.steps import Wait
from kafka_rebalance.model.topology import PartitionState, TopicPartition, replicas_of

ALIVE = frozenset(range(1, 10))
ORIGIN = replicas_of(1, 2, 3)
TARGET = replicas_of(4, 5, 6)


def state(*ids, isr=None, leader=None):
    replicas = replicas_of(*ids)
    in_sync = frozenset(replicas if isr is None else isr)
    return PartitionState(TopicPartition("t", 0), "", replicas, in_sync, leader or replicas[0])


class TestRollbackTarget:
    @pytest.mark.parametrize(
        "present",
        [(1, 2, 3), (2, 3, 1), (4, 1, 2, 3), (1, 2, 3, 4, 5), (4, 2, 3), (4, 5, 3), (4, 5, 6)],
    )
    def test_everything_goes_back_to_the_origin_in_its_order(self, present):
        """Untouched, reordered, above the replication factor, half way or complete: to the origin, leader first."""
        assert rollback_target(ORIGIN, TARGET, state(*present), ALIVE) == ORIGIN

    @pytest.mark.parametrize("present", [(1, 4), (4, 1), (4, 5, 6)])
    def test_copies_that_a_larger_replication_factor_asked_for_stay_with_revert(self, present):
        """Each is a completed step; a rollback removes the copies."""
        found = rollback_target(replicas_of(1), TARGET, state(*present), ALIVE, only_in_flight=True)
        assert isinstance(found, Skip)
        assert rollback_target(replicas_of(1), TARGET, state(*present), ALIVE) == (1,)

    @pytest.mark.parametrize("dead", [{1}, {2}, {1, 2}])
    def test_a_dead_original_is_never_added_back(self, dead):
        """The partition stays as it is, and the message names the broker."""
        found = rollback_target(ORIGIN, TARGET, state(4, 5, 3), ALIVE - dead)
        assert isinstance(found, Skip)
        assert found.reason == "OriginalBrokerGone"
        assert all(str(b) in found.message for b in dead)

    def test_a_dead_original_that_is_still_a_replica_does_not_matter(self):
        """It need not be added, so the others can still move back."""
        assert rollback_target(ORIGIN, TARGET, state(1, 4, 3), ALIVE - {1}) == ORIGIN

    def test_above_the_replication_factor_a_dead_original_goes_and_its_copy_stays(self):
        """Kafka completes no drop while a dead replica remains in the list."""
        present = state(1, 2, 3, 4, isr={2, 3, 4}, leader=2)
        assert rollback_target(ORIGIN, TARGET, present, ALIVE - {1}) == (2, 3, 4)
        assert rollback_target(ORIGIN, TARGET, present, ALIVE - {1}, only_in_flight=True) == (2, 3, 4)

    @pytest.mark.parametrize("only_in_flight", [False, True])
    def test_above_the_replication_factor_a_restarting_original_is_waited_for(self, only_in_flight):
        """It will be in sync again, and then the copy can be dropped."""
        present = state(1, 2, 3, 4, isr={2, 3, 4}, leader=2)
        found = rollback_target(ORIGIN, TARGET, present, ALIVE - {1}, restarting={1}, only_in_flight=only_in_flight)
        assert isinstance(found, Wait)
        assert "broker 1" in found.message

    def test_copies_above_the_replication_factor_are_shed_although_an_original_is_gone(self):
        """A partition that cannot be restored at least keeps no extra copy; in-sync copies survive."""
        present = state(4, 2, 3, 5, isr={2, 4, 5}, leader=4)
        assert rollback_target(ORIGIN, TARGET, present, ALIVE - {1}) == (4, 2, 5)

    def test_of_those_out_of_sync_the_dead_go_first(self):
        """Kafka drops no live one beside a dead one, so the partition would stay above its replication factor."""
        present = state(1, 2, 3, 4, isr={1, 4})
        assert rollback_target(ORIGIN, TARGET, present, ALIVE - {2}) == (1, 3, 4)
        assert rollback_target(ORIGIN, TARGET, present, ALIVE - {2}, only_in_flight=True) == (1, 3, 4)


class TestRevert:
    """deletionPolicy Revert: only partitions in flight move back."""

    @pytest.mark.parametrize("present", [(4, 5, 6), (4, 2, 3), (4, 5, 3)])
    def test_completed_steps_stay(self, present):
        """At its replication factor and without all its originals, a partition is at a rest point."""
        found = rollback_target(ORIGIN, TARGET, state(*present), ALIVE, only_in_flight=True)
        assert isinstance(found, Skip)
        assert found.reason == "LeftInPlace"

    @pytest.mark.parametrize("present", [(2, 3, 1), (4, 1, 2, 3)])
    def test_a_cancelled_first_step_gets_its_order_back(self, present):
        """A null restores the set, not the order."""
        assert rollback_target(ORIGIN, TARGET, state(*present), ALIVE, only_in_flight=True) == ORIGIN

    def test_a_half_done_later_step_sheds_its_superset(self):
        """The leader, then in-sync replicas in their present order, down to the original count."""
        present = state(4, 2, 3, 5, isr={4, 2, 3})
        assert rollback_target(ORIGIN, TARGET, present, ALIVE, only_in_flight=True) == (4, 2, 3)

    @pytest.mark.parametrize(("present", "kept"), [((4, 1, 5), (4, 1)), ((1, 4, 5, 6), (1, 4))])
    def test_of_a_larger_replication_factor_only_the_surplus_is_dropped(self, present, kept):
        """The copies that it asks for are steps of their own: below it they stay, too."""
        found = rollback_target(replicas_of(1), replicas_of(4, 5), state(*present), ALIVE, only_in_flight=True)
        assert found == kept

    def test_a_completed_reorder_stays(self):
        """A target that reorders the origin has been reached."""
        target = replicas_of(2, 1, 3)
        found = rollback_target(ORIGIN, target, state(2, 1, 3), ALIVE, only_in_flight=True)
        assert isinstance(found, Skip)
        assert found.reason == "LeftInPlace"


class TestDropSet:
    @pytest.mark.parametrize(
        ("ids", "isr", "leader", "count", "dropped"),
        [
            ((1, 2, 3), {1, 2}, 1, 2, {3}),
            ((1, 2, 3), {1, 2, 3}, 3, 2, {2}),
            ((1, 2, 3, 4), {3, 4}, 4, 2, {1, 2}),
            ((1, 2, 3, 4), {4}, 4, 3, {3}),
            ((1, 2), {1, 2}, 1, 2, set()),
        ],
    )
    def test_leader_then_in_sync_then_the_rest(self, ids, isr, leader, count, dropped):
        """KIP-236: the replicas beyond the first ``count`` of leader ++ in-sync ++ out-of-sync."""
        assert drop_set(state(*ids, isr=isr, leader=leader), count) == dropped

    @pytest.mark.parametrize(
        ("dead", "count", "dropped"),
        [({2}, 3, {2}), ({2}, 2, {2, 3}), ({2, 3}, 3, {3}), ({4}, 3, {3}), (set(), 3, {3})],
    )
    def test_the_dead_go_first(self, dead, count, dropped):
        """One that is still in the ISR counts as in sync."""
        assert drop_set(state(1, 2, 3, 4, isr={1, 4}), count, ALIVE - dead) == dropped

    def test_what_is_left_of_the_partition(self):
        """Without the surplus, in the present order; unchanged if there is none."""
        present = state(1, 2, 3, 4, isr={1, 4})
        assert without_surplus(present, 3, ALIVE - {2}) == state(1, 3, 4, isr={1, 4})
        assert without_surplus(present, 4, ALIVE) is present
