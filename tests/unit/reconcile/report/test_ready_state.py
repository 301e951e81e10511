"""The STATE column and its message: which of several facts is reported first."""

import itertools
from dataclasses import replace

import pytest
from tests.fakes.found_by_rounds import found, recorded, remembered
from tests.fakes.reported_status import BODY, FLYING, MOVED, NOW, rebalance, said, status_of, statuses, tp

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import FINALIZER
from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.queue_order import Place
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.report.ready_state import waiting_summary
from kafka_rebalance.reconcile.state.assessment import Replanning, StepBlock
from kafka_rebalance.reconcile.state.record import EndedRun


class TestState:
    def test_without_a_run_it_is_planning(self):
        """A new object never looks done."""
        mine = rebalance(opened=False)
        recorded(mine, run=None)
        assert said(mine)[0] == "Planning"
        assert statuses(mine) == ("False", "True", "False")

    def test_an_older_success_is_not_this_specs_success(self):
        """The spec changed since the run, so it is planned again."""
        mine = rebalance(opened=False, closed=RunOutcome.SUCCEEDED)
        mine.see({**BODY, "spec": {**BODY["spec"], "brokers": {"decommission": [2]}}})
        assert said(mine)[0] == "Planning"

    @pytest.mark.parametrize(
        "outcome", [RunOutcome.ROLLED_BACK, RunOutcome.ROLLED_BACK_PARTIALLY, RunOutcome.ABANDONED]
    )
    def test_no_other_end_of_a_run_is_success(self, outcome):
        """Only success is Ready."""
        assert statuses(rebalance(opened=False, closed=outcome))[0] == "False"

    @pytest.mark.parametrize("outcome", [RunOutcome.UNDONE, RunOutcome.ROLLED_BACK_PARTIALLY])
    def test_an_undo_names_the_brokers_that_are_still_cordoned(self, outcome):
        """They were dead until its end."""
        mine = rebalance(opened=False, closed=outcome)
        recorded(mine, run=replace(mine.record.run, undo=True))
        assert "cordoned" not in said(mine)[1]
        recorded(mine, run=replace(mine.record.run, cordoned=(2, 3)))
        assert said(mine)[1].endswith("; the cordons of brokers 2, 3 are removed when these answer")

    def test_brokers_that_do_not_allow_a_rate(self):
        """A state of its own, with the way out, because the copies would wait for ever. A deletion goes on."""
        mine = rebalance()
        found(mine, not_allowed="broker 4 does not allow to set a throttle rate (POLICY_VIOLATION: no)")
        reason, message = said(mine)
        assert reason == "ThrottleNotAllowed"
        assert message.startswith(
            "broker 4 does not allow to set a throttle rate (POLICY_VIOLATION: no); no copy starts"
        )
        assert "{unlimited: true}" in message
        applied = find_condition(status_of(mine).conditions, ConditionType.THROTTLE_APPLIED)
        assert (applied.status, applied.reason) == ("False", "ThrottleNotAllowed")
        mine.see({**BODY, "metadata": {**BODY["metadata"], "deletionTimestamp": NOW.isoformat()}})
        assert said(mine)[0] != "ThrottleNotAllowed"

    def test_queued_names_the_holder(self):
        """A queued rebalance names the one that it waits for."""
        mine = rebalance(opened=False)
        recorded(mine, run=None, was_read=True)
        mine.see({**BODY, "metadata": {**BODY["metadata"], "finalizers": [FINALIZER]}})
        found(mine, place=Place(runs=False, behind="kafka/other", position=2))
        reason, message = said(mine)
        assert reason == "Queued"
        assert "kafka/other" in message
        assert "place 2" in message

    @pytest.mark.parametrize(
        ("direction", "reason"),
        [
            (Direction.FORWARD, "Rebalancing"),
            (Direction.ROLLBACK, "RollingBack"),
            (Direction.REVERT, "Reverting"),
        ],
    )
    def test_the_direction_is_the_state(self, direction, reason):
        """The direction of a run is the most important information."""
        mine = rebalance(direction=direction)
        if direction is not Direction.FORWARD:
            mine.see({**BODY, "metadata": {**BODY["metadata"], "deletionTimestamp": NOW.isoformat()}})
        found(mine, statuses={tp(0): FLYING})
        assert said(mine)[0] == reason
        assert statuses(mine) == ("False", "True", "False")

    def test_superseding_is_said_while_the_old_plan_is_cancelled(self):
        """Not Reverting: no user requested that."""
        mine = rebalance(direction=Direction.REVERT)
        found(mine, replanning=Replanning(Reason.SUPERSEDED))
        assert said(mine)[0] == "Superseded"

    @pytest.mark.parametrize("why", [Reason.SUSPENDED, Reason.FROZEN, Reason.OUTSIDE_WINDOW, Reason.CLUSTER_UNHEALTHY])
    def test_a_hold_is_the_state(self, why):
        """A blocked rebalance is neither stuck nor done, and the message names the block."""
        mine = rebalance()
        found(mine, step_block=StepBlock(why, "for this and that"))
        assert said(mine)[0] == why
        assert said(mine)[1].startswith("for this and that")
        assert statuses(mine) == ("False", "True", "False")

    @pytest.mark.parametrize("metadata", [{}, {"deletionTimestamp": NOW.isoformat()}])
    def test_a_window_that_cannot_be_read_is_stuck(self, metadata):
        """It never opens, so a person has to fix it: kstatus and --exit-on-stall must not wait for it."""
        mine = rebalance(direction=Direction.ROLLBACK if metadata else Direction.FORWARD)
        mine.see({**BODY, "metadata": {**BODY["metadata"], **metadata}})
        block = StepBlock(Reason.INVALID_SPEC, "spec.execution.windows: cron '0 25 * * *': bad hour")
        found(mine, step_block=block)
        assert "bad hour" in said(mine)[1]
        assert statuses(mine) == ("False", "False", "True")

    def test_a_stall_comes_before_a_pause(self):
        """What requires action comes first."""
        mine = rebalance()
        stalled = "t-0 gets nothing from broker 1"
        found(mine, step_block=StepBlock(Reason.SUSPENDED, "spec.execution.suspend is set"), stalled=stalled)
        assert said(mine) == ("Stalled", stalled)
        assert statuses(found(rebalance(), stalled="x")) == ("False", "False", "True")

    @pytest.mark.parametrize(("problem", "retried"), [(Transient, True), (Permanent, False)])
    def test_a_problem_comes_before_everything_and_says_whether_it_is_tried_again(self, problem, retried):
        """The message must not announce a retry that will not happen."""
        mine = found(rebalance(), stalled="x")
        remembered(mine, problem=problem("KafkaUnreachable", "no broker answered"))
        reason, message = said(mine)
        assert reason == "KafkaUnreachable"
        assert ("trying again" in message) is retried

    def test_success_counts_what_was_left_alone(self):
        """Done does not mean that every partition moved."""
        mine = rebalance(opened=False, closed=RunOutcome.SUCCEEDED, progress=MOVED)
        drifted = PartitionStatus(MovePhase.SKIPPED, "Drifted")
        found(mine, statuses={tp(0): PartitionStatus(MovePhase.DONE), tp(1): drifted})
        reason, message = said(mine)
        assert reason == "Succeeded"
        assert message.startswith("1 of 2 partitions")
        assert statuses(mine) == ("True", "False", "False")
        assert find_condition(status_of(mine).conditions, ConditionType.SUCCEEDED).status == "True"

    def test_a_plan_that_is_not_worth_its_moves_says_so(self):
        """Nothing to do does not mean balanced: the goal that prevented the moves is named."""
        mine = rebalance(opened=False, closed=RunOutcome.SUCCEEDED, progress=replace(MOVED, partitions_total=0))
        assert said(mine) == ("NothingToDo", "the cluster is as asked for: no partition has to change")
        for why_empty, begins in (
            ("GainTooSmall", "GainTooSmall: what would be moved gains less than goals.minimumGain (0 %)"),
            ("BudgetReached", "goals.maxReplicaMoves or goals.maxDataToMove allow no move that would help"),
        ):
            recorded(mine, ended=EndedRun(why_empty, left_alone=2))
            reason, message = said(mine)
            assert reason == "NothingToDo"
            assert message.startswith(begins)
            assert message.endswith("; 2 partitions were left alone, see status.skipped")

    def test_after_a_restart_a_success_says_what_it_said(self):
        """Nothing is computed again for a closed run."""
        before = rebalance(opened=False, closed=RunOutcome.SUCCEEDED, progress=MOVED)
        after = rebalance(opened=False, closed=RunOutcome.SUCCEEDED)
        after.see({**BODY, **status_of(before).as_patch()})
        assert said(after) == said(before)

    def test_success_that_was_never_written_is_said_all_the_same(self):
        """The operator died between closing the run and writing the status."""
        assert said(rebalance(opened=False, closed=RunOutcome.SUCCEEDED))[0] == "Succeeded"

    def test_ready_reconciling_and_stalled_never_contradict_each_other(self):
        """Exactly one of the three is True in every state."""
        problems = (None, Transient("A", "a"), Permanent("B", "b"))
        outcomes = (None, *RunOutcome)
        cases = itertools.product(
            problems, (None, StepBlock(Reason.SUSPENDED, "")), ("", "stuck"), (True, False), outcomes, Direction
        )
        for problem, block, stalled, opened, outcome, direction in cases:
            mine = rebalance(opened=opened, closed=outcome, direction=direction)
            remembered(found(mine, step_block=block, stalled=stalled), problem=problem)
            assert sorted(statuses(mine)) == ["False", "False", "True"]


class TestWaitingSummary:
    def test_reasons_with_counts_and_an_example_the_most_frequent_first(self):
        """One line for a thousand partitions."""
        mine = rebalance()
        rare, common = (
            PartitionStatus(MovePhase.WAITING, "Rare", "once"),
            PartitionStatus(MovePhase.WAITING, "Often", "again"),
        )
        found(mine, statuses={tp(0): rare, tp(1): common, tp(2): common})
        assert waiting_summary(mine.assessment) == "Often (2, e.g. t-1: again); Rare (1, e.g. t-0: once)"

    def test_a_copy_in_flight_that_waits_is_named(self):
        """If everything is in flight, nothing else would show the broker that is down; other copies need no message."""
        mine = rebalance()
        away = PartitionStatus(MovePhase.IN_FLIGHT, "TargetBrokerUnavailable", "broker 4 is away", started=True)
        found(mine, statuses={tp(0): FLYING, tp(1): away})
        assert said(mine) == (Reason.REBALANCING, "TargetBrokerUnavailable (1, e.g. t-1: broker 4 is away)")

    def test_a_pause_is_said_elsewhere(self):
        """Otherwise it would hide every other reason."""
        mine = rebalance()
        paused = PartitionStatus(MovePhase.WAITING, "Paused", "no")
        found(mine, statuses={tp(0): paused, tp(1): PartitionStatus(MovePhase.READY)})
        assert waiting_summary(mine.assessment) == ""

    def test_it_is_what_a_rollback_waits_for(self):
        """CancelImpossible is visible in kubectl get, not only in a log."""
        mine = rebalance(direction=Direction.ROLLBACK)
        found(mine, statuses={tp(0): PartitionStatus(MovePhase.WAITING, "CancelImpossible", "none is in sync")})
        assert "CancelImpossible" in said(mine)[1]
