"""The status of one partition while steps are paused, and while its list stays."""

import dataclasses

import pytest
from tests.unit.execution.partition_states import MOVE, ROLLBACK, TP, state, status_of

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.model.topology import BrokerId, replicas_of


class TestListsThatStay:
    """Moves where the plan does not change the list."""

    STAYS = dataclasses.replace(MOVE, target=MOVE.origin)

    def test_a_partition_that_is_only_remembered_is_let_be(self):
        """An earlier plan of the run moved it; its leader and order no longer matter."""
        for found in (state(1, 2, 3, leader=2), state(3, 1, 2, leader=3)):
            assert status_of(found, move=self.STAYS).phase is MovePhase.DONE

    @pytest.mark.parametrize("origin", [(1, 2, 3), (3, 2, 1)])
    def test_an_election_is_for_the_list_that_was_planned_from(self, origin):
        """If the order changed meanwhile, another tool did it."""
        move = dataclasses.replace(self.STAYS, origin=replicas_of(*origin), elects=True)
        found = status_of(state(3, 1, 2, leader=3), move=move)
        assert (found.phase, found.reason) == (MovePhase.SKIPPED, "Drifted")
        assert "[3, 1, 2]" in found.message


class TestPaused:
    """Suspended, frozen or outside a window: only calls that lead to a rest point are sent."""

    def test_no_partition_begins(self):
        """The step that it would take is still reported."""
        found = status_of(state(1, 2, 3), paused=True)
        assert (found.phase, found.reason, found.call) == (MovePhase.WAITING, "Paused", None)
        assert found.step == (4, 1, 2, 3)

    def test_no_further_copy_is_begun_half_way(self):
        """A partition at its replication factor is at a rest point, even with replicas still to move."""
        assert status_of(state(4, 2, 3), paused=True).reason == "Paused"

    def test_a_copy_too_many_is_dropped(self):
        """Above the replication factor is not a rest point."""
        found = status_of(state(4, 1, 2, 3, leader=4), paused=True)
        assert found.phase is MovePhase.READY
        assert len(found.call.replicas) == 3

    @pytest.mark.parametrize("r", [1, 2])
    @pytest.mark.parametrize(
        "of_others",
        [{"on_record": False}, {"first_call": replicas_of(5, 1, 2, 3)}],
        ids=["nothing was sent", "something else was sent"],
    )
    def test_replicas_that_others_have_added_stay(self, r, of_others):
        """The run brings them to its replication factor neither during a pause nor without one."""
        move = dataclasses.replace(MOVE, **of_others)
        for found in (state(4, 1, 2, 3, leader=4), state(4, 1, 2, 3, leader=1), state(4, 5, 1, 2, 3)):
            for paused in (True, False):
                status = status_of(found, move=move, r=r, paused=paused)
                assert (status.phase, status.reason, status.call) == (MovePhase.SKIPPED, "Drifted", None)

    @pytest.mark.parametrize("direction", Direction)
    def test_a_reassignment_by_others_is_theirs(self, direction):
        """Also between brokers of the run, if the run has sent nothing, or something else."""
        for of_others in ({"on_record": False}, {"first_call": replicas_of(5, 1, 2, 3)}):
            for found in (state(4, 1, 2, 3, adding=(4,)), state(1, 4, 2, 3, adding=(1,))):
                status = status_of(found, direction, move=dataclasses.replace(MOVE, **of_others))
                assert (status.phase, status.reason, status.cancel) == (MovePhase.WAITING, "ForeignReassignment", False)
                assert not status.started  # so that nothing is throttled for it

    def test_an_order_that_others_have_made_stays(self):
        """The first replica is elected only if a step has put it first."""
        found, move = state(2, 1, 3, leader=1), dataclasses.replace(MOVE, target=replicas_of(2, 1, 3))
        assert status_of(found, move=move, paused=True).call == Elect(BrokerId(2))
        theirs = status_of(found, move=dataclasses.replace(move, on_record=False), paused=True)
        assert (theirs.phase, theirs.reason, theirs.call) == (MovePhase.WAITING, "Paused", None)

    def test_a_copy_back_is_not_cancelled(self):
        """Others may have started it. Without a pause it is cancelled, because the run leads away from there."""
        found = state(1, 4, 2, 3, adding=(1,))
        assert status_of(found).cancel
        paused = status_of(found, paused=True)
        assert (paused.phase, paused.cancel, paused.started) == (MovePhase.WAITING, False, True)
        assert status_of(found, ROLLBACK, move=dataclasses.replace(MOVE, origin=replicas_of(2, 3)), paused=True).cancel

    @pytest.mark.parametrize(("r", "isr", "left"), [(2, (4, 1, 2, 3), (4, 2, 3)), (2, (4, 1, 2), (4, 1, 2))])
    def test_a_copy_too_many_is_dropped_before_the_next_copy(self, r, isr, left):
        """With R = 2 the next step copies before it drops; those out of sync go first, and the leader stays."""
        found = state(4, 1, 2, 3, isr=isr, leader=4)
        assert status_of(found, r=r).call.until_in_sync
        paused = status_of(found, r=r, paused=True)
        assert (paused.phase, paused.call, paused.step) == (MovePhase.READY, Alter(replicas_of(*left)), left)

    @pytest.mark.parametrize(
        ("listed", "leader", "left"),
        [((4, 1, 2, 3), 1, (4, 1, 3)), ((1, 4, 3, 2), 2, (2, 4, 3))],
        ids=["the first one stays", "the first one is dropped"],
    )
    def test_a_copy_too_many_is_dropped_while_another_replica_leads(self, listed, leader, left):
        """If the first replica is dropped, the leader becomes the first: Kafka may elect the first one at any time."""
        move = dataclasses.replace(MOVE, target=replicas_of(4, 3, 5))
        found = state(*listed, leader=leader)
        assert status_of(found, move=move, r=2).call.until_in_sync
        paused = status_of(found, move=move, r=2, paused=True)
        assert (paused.phase, paused.call, paused.step) == (MovePhase.READY, Alter(replicas_of(*left)), left)

    @pytest.mark.parametrize(
        ("alive", "left"),
        [((1, 4, 5, 6), None), ((1, 3, 4, 5, 6), (4, 1, 3)), ((1, 2, 3, 4, 5, 6), (4, 1, 3))],
        ids=["two dead", "one dead", "none dead"],
    )
    def test_nothing_is_dropped_while_another_dead_replica_stays(self, alive, left):
        """Kafka would not complete it. All dead replicas are replaced together after the pause."""
        found = state(4, 1, 2, 3, isr=(4, 1), leader=4)
        paused = status_of(found, alive=alive, paused=True)
        assert paused.call == (Alter(replicas_of(*left)) if left else None)
        assert {2, 3}.isdisjoint(status_of(found, alive=(1, 4, 5, 6)).call.replicas)

    @pytest.mark.parametrize(
        ("found", "more"),
        [
            (state(4, 1, 2, 3, isr=(4, 1), leader=1), {}),
            (state(1, 4, 2, 3, 5, leader=1, isr=(1, 2)), {"min_insync": 2}),
            (state(4, 1, 2, leader=4), {}),
        ],
        ids=["the leader would move", "its copies are not in sync", "at its replication factor"],
    )
    def test_nothing_is_dropped_that_a_rest_point_does_not_need(self, found, more):
        paused = status_of(found, r=2, paused=True, **more)
        assert paused.call is None or isinstance(paused.call, Elect)

    def test_a_pending_election_passes(self):
        """The order has changed already: Kafka would elect by itself, outside our limits."""
        assert status_of(state(4, 5, 6, leader=5), paused=True).call == Elect(BrokerId(4))

    def test_not_an_election_that_is_all_there_is_to_do(self):
        """Nothing has begun, so the election is a step like any other."""
        move = dataclasses.replace(MOVE, target=MOVE.origin, elects=True)
        assert status_of(state(1, 2, 3, leader=2), move=move).call == Elect(BrokerId(1))
        assert status_of(state(1, 2, 3, leader=2), move=move, paused=True).reason == "Paused"

    def test_nor_one_before_the_first_step(self):
        """A broker was restarted, and another one leads since: no step of the run has put the leader first."""
        move = dataclasses.replace(MOVE, target=replicas_of(1, 4, 5))
        assert status_of(state(1, 2, 3, leader=2), move=move).call == Elect(BrokerId(1))
        assert status_of(state(1, 2, 3, leader=2), move=move, paused=True).reason == "Paused"

    def test_neither_one_that_an_earlier_plan_prepared(self):
        """The plan that elects is new, so the earlier cause of the change does not matter."""
        now = replicas_of(2, 1, 3)
        move = dataclasses.replace(MOVE, planned_from=now, target=now, elects=True)
        assert status_of(state(2, 1, 3, leader=1), move=move, paused=True).reason == "Paused"

    def test_a_null_is_never_blocked(self):
        """Cancelling remains possible during a freeze."""
        assert status_of(state(4, 1, 2, 3, adding=(4,)), ROLLBACK, paused=True).cancel

    def test_what_is_in_flight_goes_on(self):
        """A pause only stops new steps."""
        assert status_of(state(4, 1, 2, 3, adding=(4,)), paused=True).phase is MovePhase.IN_FLIGHT


class TestOrderRepairUnderAPause:
    """Section 5: freeze, suspend and windows never block an order repair."""

    def test_an_order_repair_is_never_blocked(self):
        """A null restored the set but not the order: the reorder to the origin is sent while new steps are paused."""
        move = PartitionMove(TP, "id-1", replicas_of(1, 2, 3), replicas_of(1, 2, 3), replicas_of(4, 2, 3))
        found = status_of(state(2, 3, 1, leader=1), ROLLBACK, move=move, paused=True)
        assert found.call == Alter(replicas_of(1, 2, 3))

    @pytest.mark.parametrize("alive", [(1, 2, 3), (2, 3)], ids=["all live", "the preferred leader is gone"])
    @pytest.mark.parametrize("listed", [(3, 1, 2), (2, 1, 3)], ids=["others have changed it", "as planned"])
    def test_a_list_without_copies_stays(self, listed, alive):
        """The undo of a plan that only moves leaders: each of its steps would move one."""
        move = PartitionMove(TP, "id-1", replicas_of(1, 2, 3), replicas_of(1, 2, 3), replicas_of(2, 1, 3))
        found = state(*listed, leader=2, isr=alive)
        assert status_of(found, ROLLBACK, move=move, alive=alive).call == Alter(replicas_of(1, 2, 3))
        assert status_of(found, ROLLBACK, move=move, alive=alive, paused=True).reason == "Paused"


class TestACopyThatIsNotInSync:
    """In sync means the ISR in metadata, not an empty listing."""

    def test_nothing_in_sync_goes_for_it(self):
        """Broker 4 has the copy and the listing is empty, but metadata does not show 4 in the ISR yet: 1 stays."""
        move = PartitionMove(TP, "id-1", replicas_of(1, 2), replicas_of(1, 2), replicas_of(2, 4))
        found = status_of(state(1, 2, 4, isr=(1, 2), leader=2), move=move)
        assert (found.phase, found.reason) == (MovePhase.WAITING, "CopyNotInSync")

    def test_what_is_out_of_sync_itself_may_go(self):
        """Dropping an out-of-sync replica does not reduce the ISR."""
        move = PartitionMove(TP, "id-1", replicas_of(1, 2), replicas_of(1, 2), replicas_of(2, 4))
        assert status_of(state(1, 2, 4, isr=(2,), leader=2), move=move).call == Alter(replicas_of(2, 4))
