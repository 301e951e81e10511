"""The origins of runs that a resource takes over, one after the other."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kafka_rebalance.model.plan import Certificate, LogDirMove, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.reconcile.decide.inheritance import Inheritance
from kafka_rebalance.reconcile.state.record import loaded_run_of

TP = TopicPartition("t", 0)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN = Run("u-1", "n", "r", "c", "run", "p", "h", NOW, started_at=NOW)


def origin(*replicas, first_call=(), topic_id="id", leader=None):
    led = BrokerId(leader if leader is not None else replicas[0])
    return Origin(TP, topic_id, replicas_of(*replicas), led, replicas_of(*first_call))


def moved(origin, planned_from, target):
    """A run that has planned this, with its origin; None: it has sent the partition nothing."""
    planned = PlannedPartition(TP, replicas_of(*planned_from), replicas_of(*target), "id")
    origins = {TP: origin} if origin is not None else {}
    plan = Plan((planned,), Certificate(0, optimal=False))
    return origins, loaded_run_of(RUN, plan, "", origins, back=True)


def inherited(*runs):
    found = Inheritance()
    for run in runs:
        found = found.followed_by(*run)
    return found


FIRST = moved(origin(1, 2, 3), [1, 2, 3], [4, 2, 3])


class TestTwoRuns:
    def test_nobody_else_has_moved_it(self):
        """A deletion leads to before the first; what the second has moved it to is not the work of others."""
        found = inherited(FIRST, moved(origin(4, 2, 3), [4, 2, 3], [4, 5, 3]))
        assert found.origins[TP].replicas == (1, 2, 3)
        assert found.moves[TP].target == (4, 5, 3)

    @pytest.mark.parametrize("there", [(4, 1, 2, 3), (1, 2, 3), (2, 1, 3)])
    def test_the_second_has_begun_at_a_step_of_the_first(self, there):
        found = inherited(FIRST, moved(origin(*there), there, [4, 5, 3]))
        assert found.origins[TP].replicas == (1, 2, 3)

    @pytest.mark.parametrize("there", [(6, 2, 3), (4, 2)])
    def test_others_have_moved_it_in_between(self, there):
        """The first run cannot have made that list."""
        found = inherited(FIRST, moved(origin(*there), there, [4, 5, 3]))
        assert found.origins[TP].replicas == there

    def test_others_have_moved_it_instead_of_the_first_call(self):
        """All replicas are known, but the only call of the first run makes another list."""
        first = moved(origin(1, 2, 3, first_call=(1, 2, 3, 4)), [1, 2, 3], [4, 2, 3])
        found = inherited(first, moved(origin(4, 2, 3), [4, 2, 3], [4, 5, 3]))
        assert found.origins[TP].replicas == (4, 2, 3)

    def test_the_second_has_sent_nothing(self):
        """Its plan says nothing on where the first run has left the partition."""
        found = inherited(FIRST, moved(None, [6, 2, 3], [4, 5, 3]))
        assert (found.origins, found.moves) == (FIRST[0], FIRST[1].move_of)

    @pytest.mark.parametrize(("first_leader", "leader", "kept"), [(2, 3, 3), (2, 1, 2), (1, 1, 1)])
    def test_others_have_reordered_what_the_first_has_only_elected(self, first_leader, leader, kept):
        """The order is theirs, and so is the leader, unless it is the one that the first run has elected."""
        first = moved(origin(1, 2, 3, first_call=(1, 2, 3), leader=first_leader), [1, 2, 3], [1, 2, 3])
        second = moved(origin(3, 2, 1, first_call=(4, 3, 2, 1), leader=leader), [3, 2, 1], [4, 2, 1])
        assert inherited(first, second).origins[TP] == origin(3, 2, 1, first_call=(4, 3, 2, 1), leader=kept)

    def test_the_topic_was_created_again(self):
        again = {TP: origin(4, 2, 3, topic_id="newer")}
        assert inherited(FIRST, (again, None)).origins == again

    def test_a_plan_that_is_gone(self):
        """It is not known what the first run can have made: its origin counts."""
        found = inherited((FIRST[0], None), moved(origin(6, 2, 3), [6, 2, 3], [4, 5, 3]))
        assert found.origins[TP].replicas == (1, 2, 3)


@pytest.mark.parametrize("outcome", RunOutcome)
def test_only_a_run_that_was_let_go_leaves_copies_in_flight(outcome):
    origins, run = FIRST
    ended = inherited((origins, replace(run, run=replace(run.run, outcome=outcome))))
    assert ended.left == ({TP} if outcome is RunOutcome.ABANDONED else set())


def test_a_run_without_its_plan_may_leave_copies_in_flight():
    assert inherited((FIRST[0], None)).left == {TP}


class TestFirstCalls:
    """The origin names a first call until it is known that Kafka has carried it out."""

    ONE_CALL = moved(origin(1, 2, 3, first_call=(1, 2, 3, 4)), [1, 2, 3], [4, 2, 3])

    def test_was_carried_out(self):
        """Later lists are not compared with it: the second run has made them."""
        second = moved(origin(1, 2, 3, 4, first_call=(4, 2, 3)), [1, 2, 3, 4], [4, 2, 3])
        assert inherited(self.ONE_CALL, second).origins[TP] == origin(1, 2, 3)

    def test_was_not_carried_out(self):
        """The first call is then that of the second run. The leader was elected by the first run."""
        second = moved(origin(1, 2, 3, first_call=(5, 1, 2, 3), leader=2), [1, 2, 3], [5, 2, 3])
        assert inherited(self.ONE_CALL, second).origins[TP] == origin(1, 2, 3, first_call=(5, 1, 2, 3))

    def test_of_one_run(self):
        assert inherited(self.ONE_CALL).origins == self.ONE_CALL[0]


class TestLogDirs:
    """Of the replica on broker 2, which two runs have moved between log dirs."""

    @staticmethod
    def run(before, after, *dirs):
        row = replace(origin(1, 2, 3, first_call=(1, 2, 3)), log_dirs=tuple((BrokerId(b), path) for b, path in dirs))
        planned = PlannedPartition(TP, row.replicas, row.replicas, "id")
        move = LogDirMove(TP, BrokerId(2), before, after, before)
        plan = Plan((planned,), Certificate(0, optimal=False), log_dirs=(move,))
        return {TP: row}, loaded_run_of(RUN, plan, "", {TP: row}, back=True)

    def test_nobody_else_has_moved_it(self):
        """It goes back to where it was before both, and a replica that only the second has moved to before that."""
        found = inherited(self.run("/a", "/b", (2, "/a")), self.run("/b", "/c", (2, "/b"), (3, "/d")))
        assert found.origins[TP].log_dirs == ((2, "/a"), (3, "/d"))
        assert found.log_dirs[TP, BrokerId(2)] == LogDirMove(TP, BrokerId(2), "/b", "/c", "/a")

    def test_others_have_reordered_the_list_in_between(self):
        """The log dirs of before both stay on record."""
        origins, run = self.run("/b", "/c", (2, "/b"))
        origins[TP] = replace(origins[TP], replicas=replicas_of(3, 2, 1), first_call=replicas_of(3, 2, 1))
        found = inherited(self.run("/a", "/b", (2, "/a")), (origins, run))
        assert (found.origins[TP].replicas, found.origins[TP].log_dirs) == ((3, 2, 1), ((2, "/a"),))

    def test_others_have_moved_it_in_between(self):
        found = inherited(self.run("/a", "/b", (2, "/a")), self.run("/c", "/b", (2, "/c")))
        assert found.origins[TP].log_dirs == ((2, "/c"),)
        assert found.log_dirs[TP, BrokerId(2)].origin == "/c"


def test_three_runs():
    """Others have moved the partition after the first one: the others follow each other."""
    second = moved(origin(6, 2, 3), [6, 2, 3], [6, 5, 3])
    third = moved(origin(6, 5, 3), [6, 5, 3], [6, 5, 1])
    found = inherited(FIRST, second, third)
    assert (found.origins[TP].replicas, found.moves[TP].origin) == ((6, 2, 3), (6, 5, 3))
