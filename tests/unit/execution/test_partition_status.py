"""The status of one partition: done, in flight, ready for a call, or waiting, and for what."""

import dataclasses

import pytest
from tests.unit.execution.partition_states import FORWARD, MOVE, REVERT, ROLLBACK, TP, seen, state, status_of

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, judge
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.model.topology import BrokerId, replicas_of


class TestLeftAlone:
    def test_a_deleted_partition_is_skipped(self):
        """Missing from several readings: it leaves the run."""
        found = status_of(None, gone={TP})
        assert (found.phase, found.reason) == (MovePhase.SKIPPED, "TopicDeleted")

    def test_one_reading_without_the_partition_proves_nothing(self):
        """Missing from one reading means unknown, not deleted."""
        found = status_of(None)
        assert (found.phase, found.reason) == (MovePhase.WAITING, "MetadataMissing")

    def test_a_topic_that_we_may_not_read_is_not_deleted(self):
        """Kafka leaves it out of all topics, just like a deleted one: it waits, and says for what."""
        forbidden = {"orders": "not allowed"}
        for partition, gone, min_insync in ((None, {TP}, {"orders": 1}), (state(1, 2, 3), (), {})):
            there = dataclasses.replace(seen(partition, gone=gone), forbidden=forbidden, min_insync=min_insync)
            found = judge(MOVE, there, FORWARD, 1)
            assert (found.phase, found.reason, found.message) == (MovePhase.WAITING, "TopicForbidden", "not allowed")

    def test_a_cancellation_that_may_not_read_min_insync_says_so(self):
        """Also how a deletion ends without it."""
        there = dataclasses.replace(
            seen(state(4, 1, 2, 3, adding=(4,))), forbidden={"orders": "not allowed"}, min_insync={}
        )
        found = judge(MOVE, there, ROLLBACK, 1)
        assert (found.phase, found.reason) == (MovePhase.WAITING, "TopicForbidden")
        assert found.message.startswith("not allowed: the reassignment is cancelled when min.insync.replicas can be")
        assert "kafkarebalance.dev/let-go=true" in found.message

    @pytest.mark.parametrize(("at", "direction"), [((1, 2, 3), FORWARD), ((4, 5, 6), FORWARD), ((1, 2, 3), ROLLBACK)])
    def test_nothing_ends_and_nothing_is_sent_by_an_older_reading(self, at, direction):
        """A step may have been sent since."""
        there = dataclasses.replace(seen(state(*at)), unread={"orders"})
        found = judge(MOVE, there, direction, 1)
        assert (found.phase, found.reason, found.call) == (MovePhase.WAITING, "MetadataMissing", None)

    @pytest.mark.parametrize("direction", list(Direction))
    def test_a_replication_factor_that_somebody_lowered_is_left_alone(self, direction):
        """No step of ours reduces the replicas below both origin and target, so the missing ones are not added back."""
        found = status_of(state(1, 2), direction)
        assert (found.phase, found.reason) == (MovePhase.SKIPPED, "Drifted")

    @pytest.mark.parametrize("flight", [{}, {"adding": (4,)}])
    def test_a_re_created_topic_is_skipped_and_never_cancelled(self, flight):
        """The same name with another id is another topic: neither its lists nor its reassignments are ours."""
        ids = (1, 2, 3, *flight.get("adding", ()))
        found = status_of(state(*ids, topic_id="id-2", **flight))
        assert (found.phase, found.reason, found.cancel) == (MovePhase.SKIPPED, "TopicRecreated", False)

    def test_an_unknown_topic_id_is_no_proof_of_a_new_topic(self):
        """Brokers that report no topic ids, and plans made from files, are matched by name."""
        assert status_of(state(1, 2, 3, topic_id="")).phase is MovePhase.READY
        assert status_of(state(1, 2, 3), move=dataclasses.replace(MOVE, topic_id="")).phase is MovePhase.READY

    @pytest.mark.parametrize("direction", list(Direction))
    def test_a_drifted_partition_is_skipped_and_its_replicas_named(self, direction):
        """A replica that the run cannot have placed was placed by another tool, in both directions."""
        found = status_of(state(1, 2, 7), direction)
        assert (found.phase, found.reason) == (MovePhase.SKIPPED, "Drifted")
        assert "[1, 2, 7]" in found.message

    @pytest.mark.parametrize("direction", list(Direction))
    @pytest.mark.parametrize(
        ("removing", "reason"),
        [((), "ForeignReassignment"), ((1,), "ForeignReassignment"), ((7,), "WedgedReassignment")],
    )
    def test_a_foreign_reassignment_is_waited_for(self, direction, removing, reason):
        """Reported and left alone, never cancelled or counted as ours; if it is wedged, the message names the fix."""
        found = status_of(state(1, 2, 3, 7, adding=(7,), removing=removing), direction)
        assert (found.phase, found.reason) == (MovePhase.WAITING, reason)
        assert ("kafka-rebalance doctor --cancel-wedged" in found.message) == (reason == "WedgedReassignment")
        assert not found.cancel
        assert found.call is None


class TestInFlight:
    def test_ours_is_adopted_after_a_crash(self):
        """A reassignment that matches the plan is ours, without any record of having sent it."""
        found = status_of(state(4, 1, 2, 3, adding=(4,)))
        assert found.phase is MovePhase.IN_FLIGHT
        assert found.started
        assert found.step == (4, 1, 2, 3)
        assert found.call is None
        assert not found.cancel

    def test_the_step_leaves_out_what_is_being_removed(self):
        """The step is the list that Kafka is moving to."""
        assert status_of(state(4, 2, 3, 1, adding=(4,), removing=(1,))).step == (4, 2, 3)

    @pytest.mark.parametrize(("ids", "leads_away"), [((1, 2, 3, 4), False), ((4, 1, 2, 3), True)])
    def test_a_first_that_does_not_lead_is_a_leader_movement(self, ids, leads_away):
        """L counts every call that may change the leader."""
        assert status_of(state(*ids, leader=1, adding=(4,))).leader_movement is leads_away

    def test_a_goal_that_differs_is_cancelled_first(self):
        """The rule for duplicates in KIP-236: cancel with null, never redirect."""
        move = PartitionMove(TP, "id-1", replicas_of(1, 2), replicas_of(1, 2, 3), replicas_of(2, 4))
        found = status_of(state(1, 2, 3, adding=(3,)), move=move)
        assert (found.phase, found.reason, found.cancel) == (MovePhase.READY, "Cancelling", True)
        assert found.call is None

    @pytest.mark.parametrize("direction", [ROLLBACK, REVERT])
    def test_going_back_cancels_what_is_in_flight(self, direction):
        """The operator does not wait for a copy that the origin does not have."""
        assert status_of(state(4, 1, 2, 3, adding=(4,)), direction).cancel

    def test_a_rollback_waits_for_its_own_copies(self):
        """A copy to an original broker is the rollback's own step; Revert cancels even that."""
        going_back = state(4, 2, 3, 1, adding=(1,))
        assert status_of(going_back, ROLLBACK).phase is MovePhase.IN_FLIGHT
        assert status_of(going_back, REVERT).cancel

    @pytest.mark.parametrize("direction", [FORWARD, ROLLBACK])
    def test_a_copy_to_a_broker_that_is_away_says_so(self, direction):
        """The operator waits: a broker that restarts continues the copy."""
        move = MOVE if direction is FORWARD else dataclasses.replace(MOVE, origin=MOVE.target)
        there = dataclasses.replace(seen(state(4, 1, 2, 3, adding=(4,)), alive=(1, 2, 3, 5, 6)), restarting={4})
        found = judge(move, there, direction, 1)
        assert (found.phase, found.reason, found.cancel) == (MovePhase.IN_FLIGHT, "TargetBrokerUnavailable", False)
        assert "broker 4" in found.message
        assert status_of(state(4, 1, 2, 3, adding=(4,))).reason == ""

    def test_a_copy_that_waits_for_a_replica_that_stays_says_so(self):
        """Kafka 3.9 completes nothing while a target replica is out of sync; 4.3 completes no drop."""
        found = status_of(state(4, 2, 3, 1, isr=(4, 2, 1), adding=(4,), removing=(1,), leader=1))
        assert (found.phase, found.reason) == (MovePhase.IN_FLIGHT, "ReplicaNotInSync")
        assert "broker 3" in found.message

    @pytest.mark.parametrize(("alive", "cancel"), [((1, 2, 4, 5, 6), True), ((1, 2, 3, 4, 5, 6), False)])
    def test_a_rollback_does_not_wait_for_an_original_that_is_gone(self, alive, cancel):
        """[1,2,3] with the copy on 4 being removed and 3 out of sync: the drop completes only with 3."""
        found = status_of(state(1, 2, 3, 4, isr=(1, 2, 4), removing=(4,)), ROLLBACK, alive=alive)
        assert found.cancel is cancel

    def test_a_rollback_does_not_wait_beside_a_copy_that_is_there(self):
        """Kafka 3.9: the original is back in sync, but the step completes only with a replica whose broker is gone."""
        back = state(1, 4, 3, 2, isr=(4, 3, 2), adding=(2,), leader=4)
        assert status_of(back, ROLLBACK, alive=(2, 3, 4, 5, 6)).cancel
        copying = state(1, 4, 3, 2, isr=(4, 3), adding=(2,), leader=4)
        assert status_of(copying, ROLLBACK, alive=(2, 3, 4, 5, 6)).phase is MovePhase.IN_FLIGHT

    @pytest.mark.parametrize(("restarting", "cancel"), [((), True), ((5,), False)])
    @pytest.mark.parametrize("removing", [(), (6,)])
    def test_a_rollback_does_not_wait_beside_a_dead_broker_that_only_the_run_added(self, removing, restarting, cancel):
        """Kafka 3.9: the original is back in sync, but the step completes only with the dead replica of the run."""
        back = state(1, 4, 5, 6, isr=(1, 4, 6), adding=(1,), removing=removing, leader=4)
        there = dataclasses.replace(seen(back, alive=(1, 2, 3, 4, 6)), restarting=restarting)
        assert judge(MOVE, there, ROLLBACK, 1).cancel is cancel
        afterwards = status_of(state(4, 5, 6, isr=(4, 6), leader=4), ROLLBACK, alive=(1, 2, 3, 4, 6))
        assert 5 not in afterwards.call.replicas

    def test_a_copy_without_a_source_says_so(self):
        """A partition without a leader has no source to copy from."""
        assert status_of(state(1, 2, 3, 4, isr=(), adding=(4,))).reason == "NoLeader"

    def test_a_rollback_cancels_the_copy_to_a_broker_that_is_gone(self):
        """A deletion completes without this copy; going forward the operator waits, because the plan requires it."""
        back = state(4, 2, 3, 1, adding=(1,))
        assert status_of(back, ROLLBACK, alive=(2, 3, 4, 5, 6)).cancel
        forth = state(1, 2, 3, 4, adding=(4,))
        assert status_of(forth, FORWARD, alive=(1, 2, 3, 5, 6)).phase is MovePhase.IN_FLIGHT

    def test_a_wedged_reassignment_of_ours_is_cancelled(self):
        """A reassignment that adds and removes the same broker never completes."""
        assert status_of(state(1, 2, 3, 4, adding=(4,), removing=(4,))).cancel

    @pytest.mark.parametrize(("isr", "possible"), [({4}, False), (set(), False), ({3, 4}, True), ({1}, True)])
    def test_a_null_needs_an_original_in_sync(self, isr, possible):
        """KIP-236: it would drop the only live copy, and KRaft refuses it: CancelImpossible, retried."""
        found = status_of(state(4, 1, 2, 3, isr=isr, adding=(4,)), ROLLBACK)
        assert found.cancel is possible
        if not possible:
            assert (found.phase, found.reason) == (MovePhase.WAITING, "CancelImpossible")
            assert "[1, 2, 3]" in found.message

    @pytest.mark.parametrize("direction", [ROLLBACK, REVERT])
    @pytest.mark.parametrize(
        ("isr", "min_insync", "possible"),
        [
            ((1, 4), 2, False),  # 2 and 3 are dead: the null would leave {1}
            ((1, 2, 4), 2, True),
            ((1, 4), 1, True),
            ((1, 2, 4), 3, False),
            ((1, 2), 3, True),  # below it before: the null takes nothing away
            ((1,), 2, True),
        ],
    )
    def test_a_null_leaves_min_insync_replicas_in_sync(self, direction, isr, min_insync, possible):
        """Kafka would carry it out and producers would fail: it waits, and the message names the exits."""
        found = status_of(state(4, 1, 2, 3, isr=isr, adding=(4,)), direction, alive=(1, 4, 5, 6), min_insync=min_insync)
        assert found.cancel is possible
        if not possible:
            assert (found.phase, found.reason) == (MovePhase.WAITING, "CancelBelowMinInsyncReplicas")
            assert "spec.rollback.timeout" in found.message
            assert "kafkarebalance.dev/let-go=true" in found.message

    def test_a_null_waits_until_min_insync_replicas_is_known(self):
        """One that is not known may be any."""
        there = dataclasses.replace(seen(state(4, 1, 2, 3, adding=(4,))), min_insync={})
        found = judge(MOVE, there, REVERT, 1)
        assert (found.phase, found.reason, found.cancel) == (MovePhase.WAITING, "MetadataMissing", False)


class TestAtRest:
    def test_the_first_step_adds_before_it_drops(self):
        """Make before break: one call, with the new leader in front, until it is in sync."""
        found = status_of(state(1, 2, 3))
        assert found.phase is MovePhase.READY
        assert found.call == Alter(replicas_of(4, 1, 2, 3), until_in_sync=replicas_of(4))
        assert found.leader_movement
        assert not found.started

    def test_at_the_target_and_led_by_its_first_it_is_done(self):
        """Read from the cluster, not remembered."""
        assert status_of(state(4, 5, 6)).phase is MovePhase.DONE
        assert status_of(state(1, 2, 3), ROLLBACK).phase is MovePhase.DONE

    def test_at_the_target_but_led_by_another_it_is_elected(self):
        """The last call of a step may have been lost in a crash."""
        found = status_of(state(4, 5, 6, leader=5))
        assert found.call == Elect(BrokerId(4))
        assert found.leader_movement

    def test_a_partition_that_left_its_planned_list_has_begun(self):
        """Whether it has begun is read from the cluster, so that a crash does not change the order."""
        assert status_of(state(4, 1, 2, 3, leader=4)).started

    @pytest.mark.parametrize("direction", list(Direction))
    def test_without_a_leader_nothing_is_sent(self, direction):
        """A partition without an ISR waits until one of its replicas is back."""
        found = status_of(state(1, 2, 3, isr=()), direction)
        assert (found.phase, found.reason) == (MovePhase.WAITING, "NoLeader")

    def test_a_dead_target_is_waited_for(self):
        """Kafka accepts a fenced target and hangs, so the operator does not send it."""
        found = status_of(state(1, 2, 3), alive=[1, 2, 3, 5, 6])
        assert (found.phase, found.reason) == (MovePhase.WAITING, "TargetBrokerUnavailable")

    def test_without_min_insync_nothing_is_decided(self):
        """No drop can be judged, so the topic counts as missing from metadata."""
        unknown = dataclasses.replace(seen(state(1, 2, 3)), min_insync={})
        assert judge(MOVE, unknown, FORWARD, 1).reason == "MetadataMissing"

    def test_the_topics_own_min_insync_is_used(self):
        """With min.insync.replicas above the ISR size, more than R copies are added."""
        assert len(status_of(state(1, 2, 3, isr=(1,)), min_insync=1).call.until_in_sync) == 1
        assert len(status_of(state(1, 2, 3, isr=(1,)), min_insync=3).call.until_in_sync) == 2

    def test_a_min_insync_above_the_replication_factor_moves_all_the_same(self):
        """One replica and min.insync.replicas=2: never more is required than there will be replicas."""
        move = PartitionMove(TP, "id-1", replicas_of(1), replicas_of(1), replicas_of(4))
        assert status_of(state(4, 1, leader=4), move=move, min_insync=2).call == Alter(replicas_of(4))

    def test_a_replication_factor_is_not_lowered_below_min_insync(self):
        """Producers with acks=all would be rejected."""
        move = PartitionMove(TP, "id-1", replicas_of(1, 2), replicas_of(1, 2), replicas_of(1))
        found = status_of(state(1, 2), move=move, min_insync=2)
        assert (found.phase, found.reason) == (MovePhase.WAITING, "MinInsyncReplicas")

    def test_a_larger_replication_factor_stays_where_the_topic_asks_for_it_now(self):
        """A rollback would make the topic reject producers."""
        move = PartitionMove(TP, "id-1", replicas_of(1), replicas_of(1), replicas_of(1, 2, 3))
        found = status_of(state(1, 2, 3), ROLLBACK, move=move, min_insync=2)
        assert (found.phase, found.reason) == (MovePhase.SKIPPED, "BelowMinInsyncReplicas")
        assert status_of(state(1, 2, 3), ROLLBACK, move=move, min_insync=1, r=2).call == Alter(replicas_of(1))

    @pytest.mark.parametrize("direction", [ROLLBACK, REVERT])
    def test_above_a_larger_replication_factor_only_the_surplus_is_dropped(self, direction):
        """Down to the larger one: below min.insync.replicas, no client could produce."""
        move = PartitionMove(TP, "id-1", replicas_of(1), replicas_of(1), replicas_of(3, 2))
        found = status_of(state(3, 1, 2), direction, move=move, min_insync=2)
        assert (found.phase, found.call) == (MovePhase.READY, Alter(replicas_of(3, 1)))
        assert status_of(state(3, 1), direction, move=move, min_insync=2).phase is MovePhase.SKIPPED

    @pytest.mark.parametrize("direction", [ROLLBACK, REVERT])
    def test_a_way_back_ends_beside_dead_copies(self, direction):
        """Of brokers that are no original ones: Kafka drops nothing while one of them stays."""
        move = PartitionMove(TP, "id-1", replicas_of(1), replicas_of(1), replicas_of(3, 2))
        found = status_of(state(3, 1, 2, isr=(1,)), direction, move=move, min_insync=2, alive=[1, 4, 5])
        assert (found.phase, found.reason) == (MovePhase.SKIPPED, "OriginalBrokerGone")
        assert "3" in found.message

    def test_a_revert_does_not_begin_a_drop_that_waits(self):
        """It would cancel it in the next round: a live replica that stays is behind."""
        found = status_of(state(1, 2, 3, 4, isr=(1, 4)), REVERT, alive=[1, 3, 4, 5, 6])
        assert (found.phase, found.reason) == (MovePhase.WAITING, "ReplicaNotInSync")
        assert "broker 3" in found.message
        found = status_of(state(1, 2, 3, 4, isr=(1, 3, 4)), REVERT, alive=[1, 3, 4, 5, 6])
        assert found.call == Alter(replicas_of(1, 3, 4))

    def test_a_rollback_begins_it(self):
        """It completes when the replica is in sync."""
        found = status_of(state(1, 2, 3, 4, isr=(1, 4)), ROLLBACK, alive=[1, 3, 4, 5, 6])
        assert found.call == Alter(replicas_of(1, 3, 4))

    def test_what_the_plan_leaves_is_brought_to_its_replication_factor(self):
        """An earlier plan of the run, or a run that was taken over, has left a copy that this one does not move."""
        move = dataclasses.replace(MOVE, target=MOVE.origin, planned_from=replicas_of(1, 2, 3, 4))
        assert status_of(state(1, 2, 3, 4), move=move).call == Alter(MOVE.origin)

    def test_a_rollback_that_cannot_be_done_is_named(self):
        """OriginalBrokerGone: skipped, so that the teardown completes."""
        found = status_of(state(4, 2, 3), ROLLBACK, alive=[2, 3, 4, 5, 6])
        assert (found.phase, found.reason) == (MovePhase.SKIPPED, "OriginalBrokerGone")

    @pytest.mark.parametrize("direction", [ROLLBACK, REVERT])
    def test_a_dead_original_leader_is_not_waited_for(self, direction):
        """With the replicas back, the deletion does not wait until the dead broker leads; the message names it."""
        found = status_of(state(1, 2, 3, isr=(2, 3), leader=2), direction, alive=[2, 3, 4, 5, 6])
        assert (found.phase, found.reason) == (MovePhase.SKIPPED, "PreferredLeaderGone")
        assert "1" in found.message

    def test_the_order_is_repaired_before_a_dead_leader_is_named(self):
        """A null restores the set, not the order; Kafka elects the dead leader when it returns."""
        found = status_of(state(3, 2, 1, isr=(2, 3), leader=3), ROLLBACK, alive=[2, 3, 4, 5, 6])
        assert (found.phase, found.call) == (MovePhase.READY, Alter(replicas_of(1, 2, 3)))

    def test_a_leader_that_did_not_lead_before_is_not_elected(self):
        """The run did not move it, or moved it back: the broker that led before the run may keep the leadership."""
        move = dataclasses.replace(MOVE, origin_leader=BrokerId(2))
        assert status_of(state(1, 2, 3, leader=3), ROLLBACK, move=move).phase is MovePhase.DONE
        move = dataclasses.replace(MOVE, origin_leader=BrokerId(1))
        assert status_of(state(1, 2, 3, leader=3), ROLLBACK, move=move).call == Elect(BrokerId(1))


class TestDeadReplicas:
    def test_one_that_goes_is_replaced_in_one_call(self):
        """Both 3.9 and 4.x complete it; on 3.9 a separate addition would wait for ever."""
        move = PartitionMove(TP, "id-1", replicas_of(1, 2, 3), replicas_of(1, 2, 3), replicas_of(1, 2, 4))
        found = status_of(state(1, 2, 3, isr=(1, 2)), move=move, alive=(1, 2, 4))
        assert found.call == Alter(replicas_of(1, 2, 4), until_in_sync=replicas_of(4))

    def test_all_that_go_are_replaced_together(self):
        """More than R: on 3.9 the second dead replica would block the first."""
        move = PartitionMove(TP, "id-1", replicas_of(1, 2, 3), replicas_of(1, 2, 3), replicas_of(1, 4, 5))
        found = status_of(state(1, 2, 3, isr=(1,)), move=move, alive=(1, 4, 5))
        assert found.call == Alter(replicas_of(1, 4, 5), until_in_sync=replicas_of(4, 5))

    def test_a_dead_leader_to_be_replaced_goes_with_the_addition_of_the_new_one(self):
        """The new leader in front, the dead one removed; elected once in sync."""
        move = PartitionMove(TP, "id-1", replicas_of(1, 2, 3), replicas_of(1, 2, 3), replicas_of(4, 2, 3))
        found = status_of(state(1, 2, 3, isr=(2, 3), leader=2), move=move, alive=(2, 3, 4))
        assert found.call == Alter(replicas_of(4, 2, 3), until_in_sync=replicas_of(4))

    def test_beside_one_that_stays_nothing_is_begun(self):
        """Kafka would keep the extra copy until the dead broker returns."""
        move = PartitionMove(TP, "id-1", replicas_of(1, 2, 3), replicas_of(1, 2, 3), replicas_of(1, 4, 3))
        found = status_of(state(1, 2, 3, isr=(1, 2)), move=move, alive=(1, 2, 4))
        assert (found.phase, found.reason, found.started) == (MovePhase.WAITING, "ReplicaNotInSync", False)
        assert "broker 3" in found.message

    def test_a_rollback_beside_one_that_stays_is_named_and_ends(self):
        """Half way back with a dead original in the list: it cannot be moved any further."""
        found = status_of(state(1, 4, 3, isr=(4, 3), leader=4), ROLLBACK, alive=(2, 3, 4, 5, 6))
        assert (found.phase, found.reason) == (MovePhase.SKIPPED, "OriginalBrokerGone")
