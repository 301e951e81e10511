"""How many steps of a run are complete, derived from the lists."""

import pytest

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.step_count import steps_completed
from kafka_rebalance.execution.steps import Present, StepRules, all_steps
from kafka_rebalance.model.topology import ClusterState, PartitionState, TopicPartition, replicas_of

TP = TopicPartition("t", 0)
MOVE = PartitionMove(TP, "", replicas_of(1, 2, 3), replicas_of(1, 2, 3), replicas_of(4, 5, 6))


def counted(*ids, adding=(), phase=MovePhase.READY, direction=Direction.FORWARD, move=MOVE, r=1, reason=""):
    state = PartitionState(TP, "", replicas_of(*ids), frozenset(replicas_of(*ids)), ids[0], replicas_of(*adding))
    return steps_completed(
        [move], {TP: PartitionStatus(phase, reason)}, ClusterState("c", {}, {TP: state}), direction, r
    )


class TestStepsCompleted:
    @pytest.mark.parametrize("r", [1, 2, 3])
    @pytest.mark.parametrize("direction", [Direction.FORWARD, Direction.ROLLBACK])
    def test_one_more_after_each_step(self, r, direction):
        """Counts the same steps that are carried out, both ways, independent of broker ids."""
        start, goal = MOVE.origin, MOVE.target
        if direction is Direction.ROLLBACK:
            start, goal = goal, start
        steps = all_steps(Present(start, frozenset(start), start[0]), goal, StepRules(r))
        lists = [start, *(step.replicas for step in steps)]
        assert [counted(*at, direction=direction, r=r) for at in lists] == list(range(len(lists)))

    def test_a_step_under_way_is_not_completed(self):
        """Its copies are not in sync yet, and nothing has been dropped."""
        assert counted(4, 1, 2, 3, adding=[4], phase=MovePhase.IN_FLIGHT) == 0
        assert counted(4, 1, 2, 3) == 1

    def test_an_election_alone_is_a_step(self):
        """The list stays the same, so the status decides when the step is done."""
        move = PartitionMove(TP, "", replicas_of(1, 2), replicas_of(1, 2), replicas_of(1, 2), elects=True)
        assert counted(1, 2, move=move) == 0
        assert counted(1, 2, move=move, phase=MovePhase.DONE) == 1

    @pytest.mark.parametrize(
        ("phase", "reason"), [(MovePhase.SKIPPED, "Drifted"), (MovePhase.WAITING, "ForeignReassignment")]
    )
    def test_what_others_do_is_no_step_of_ours(self, phase, reason):
        """Wherever others have moved it."""
        assert counted(4, 5, 6, phase=phase, reason=reason) == 0

    @pytest.mark.parametrize("other", [(7, 8, 9), (3, 2, 1), (1,), (4, 5, 6, 7, 8, 9)])
    def test_it_is_never_negative(self, other):
        """The current list and the remaining steps do not matter."""
        assert counted(*other) >= 0

    def test_what_is_gone_does_not_count(self):
        """A partition missing from metadata does not count."""
        assert (
            steps_completed([MOVE], {TP: PartitionStatus(MovePhase.READY)}, ClusterState("c", {}), Direction.FORWARD, 1)
            == 0
        )
