"""What a status says, and that it stays small and free of contradictions."""

import itertools
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kafka_rebalance.api.conditions import ConditionType, Reason, find_condition
from kafka_rebalance.api.v1alpha1 import FINALIZER, MAX_BATCH_ROWS, MAX_SKIPPED_ROWS
from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.execution.decide import Direction, Kind, Verdict
from kafka_rebalance.execution.progress import Progress
from kafka_rebalance.execution.queue import Place
from kafka_rebalance.execution.throttle import ClusterRates, Rates
from kafka_rebalance.model.plan import Plan, PlannedPartition, SkippedPartition
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.records import open_run
from kafka_rebalance.reconcile.report import build_status
from kafka_rebalance.reconcile.state import ready_reason, waiting_summary
from kafka_rebalance.reconcile.work import Ended, Hold, Work

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
FLYING = Verdict(Kind.IN_FLIGHT, step=replicas_of(3, 1, 2), started=True)
MOVED = Progress(
    partitions_total=2,
    partitions_completed=1,
    partitions_in_flight=1,
    partitions_waiting=0,
    partitions_skipped=0,
    replicas_total=2,
    replicas_completed=1,
    bytes_total=2 * 2**20,
    bytes_moved=2**20,
    above_replication_factor=0,
)


def tp(number, topic="t"):
    return TopicPartition(topic, number)


BODY = {
    "metadata": {"name": "r", "namespace": "kafka", "uid": "u-1", "generation": 3},
    "spec": {"kafka": {"bootstrapServers": "kafka:9092"}},
}


def work(count=1, *, topic="t", skipped=(), direction=Direction.FORWARD, opened=True, closed=None, progress=None):
    mine = Work.of(BODY)
    rows = tuple(
        PlannedPartition(tp(i, topic), replicas_of(1, 2), replicas_of(3, 2), size_bytes=100) for i in range(count)
    )
    plan = Plan(rows, lower_bound=count, optimal=True, skipped=tuple(skipped))
    closed_at = NOW if closed else None
    mine.run = Run("u-1", "kafka", "r", "c", "run-1", mine.planning_hash, plan.hash, NOW, closed_at, closed)
    if opened:
        mine.open = open_run(mine.run, plan, "plan-0", {})
        mine.direction = direction
    mine.rates = ClusterRates(Rates(2**20, 2**20))
    mine.rate_source, mine.throttled_brokers = "spec.throttle", 3
    mine.progress = progress
    return mine


def seen(count=1, topic="t"):
    states = {
        tp(i, topic): PartitionState(
            tp(i, topic), "", replicas_of(3, 1, 2), frozenset(replicas_of(1, 2)), 1, replicas_of(3)
        )
        for i in range(count)
    }
    return ClusterState("c", {}, states)


def status_of(mine, cluster=None, on_disk=None, *, stalled=None, now=NOW):
    return build_status(mine, cluster or ClusterState("c", {}), on_disk or {}, stalled=stalled, now=now)


def said(mine, **more):
    """The STATE column and its sentence."""
    found = ready_reason(status_of(mine, **more))
    assert found is not None
    return found


def statuses(mine, **more):
    """Ready, Reconciling and Stalled."""
    kinds = (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)
    conditions = status_of(mine, **more).conditions
    return tuple(find_condition(conditions, kind).status for kind in kinds)


class TestThrottle:
    def test_says_who_else_binds(self):
        """Its own rates, and whose lower limit holds on some brokers."""
        mine = work()
        assert status_of(mine).throttle.bound_by is None
        mine.bound_by = "KafkaReassignmentThrottle kafka/limits"
        status = status_of(mine)
        assert status.throttle.bound_by == "KafkaReassignmentThrottle kafka/limits"
        applied = find_condition(status.conditions, ConditionType.THROTTLE_APPLIED)
        said = "1.0 MiB/s from spec.throttle; on some brokers less, by KafkaReassignmentThrottle kafka/limits"
        assert applied.message == said


class TestState:
    def test_without_a_run_it_is_planning(self):
        """Fresh objects are never seen as done."""
        mine = work(opened=False)
        mine.run = None
        assert said(mine)[0] == "Planning"
        assert statuses(mine) == ("False", "True", "False")

    def test_an_older_success_is_not_this_specs_success(self):
        """The spec changed since the run: it is planned anew."""
        mine = work(opened=False, closed=RunOutcome.SUCCEEDED)
        mine.update({**BODY, "spec": {**BODY["spec"], "brokers": {"decommission": [2]}}})
        assert said(mine)[0] == "Planning"

    @pytest.mark.parametrize(
        "outcome", [RunOutcome.ROLLED_BACK, RunOutcome.ROLLED_BACK_PARTIALLY, RunOutcome.ABANDONED]
    )
    def test_no_other_end_of_a_run_is_success(self, outcome):
        """Only success is Ready."""
        assert statuses(work(opened=False, closed=outcome))[0] == "False"

    def test_queued_names_the_holder(self):
        """Who waits knows for whom."""
        mine = work(opened=False)
        mine.run, mine.run_loaded = None, True
        mine.update({**BODY, "metadata": {**BODY["metadata"], "finalizers": [FINALIZER]}})
        mine.place = Place(runs=False, behind="kafka/other", position=2)
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
        """Where a run is going is what people look for first."""
        mine = work(direction=direction)
        if direction is not Direction.FORWARD:
            mine.update({**BODY, "metadata": {**BODY["metadata"], "deletionTimestamp": NOW.isoformat()}})
        mine.verdicts = {tp(0): FLYING}
        assert said(mine)[0] == reason
        assert statuses(mine) == ("False", "True", "False")

    def test_superseding_is_said_while_the_old_plan_is_cancelled(self):
        """Not Reverting: nobody asked for that."""
        mine = work(direction=Direction.REVERT)
        mine.replanning = Reason.SUPERSEDED
        assert said(mine)[0] == "Superseded"

    @pytest.mark.parametrize("why", [Reason.SUSPENDED, Reason.FROZEN, Reason.OUTSIDE_WINDOW, Reason.CLUSTER_UNHEALTHY])
    def test_a_hold_is_the_state(self, why):
        """Held back is neither stuck nor done, and the message says by what."""
        mine = work()
        mine.hold = Hold(why, "for this and that")
        assert said(mine)[0] == why
        assert said(mine)[1].startswith("for this and that")
        assert statuses(mine) == ("False", "True", "False")

    def test_a_stall_comes_before_a_pause(self):
        """What a person must act on comes first."""
        mine = work()
        mine.hold = Hold(Reason.SUSPENDED, "spec.execution.suspend is set")
        reason, message = said(mine, stalled="t-0 gets nothing from broker 1")
        assert (reason, message) == ("Stalled", "t-0 gets nothing from broker 1")
        assert statuses(work(), stalled="x") == ("False", "False", "True")

    @pytest.mark.parametrize(("problem", "retried"), [(Transient, True), (Permanent, False)])
    def test_a_problem_comes_before_everything_and_says_whether_it_is_tried_again(self, problem, retried):
        """The sentence must not promise what will not happen."""
        mine = work()
        mine.problem = problem("KafkaUnreachable", "no broker answered")
        reason, message = said(mine, stalled="x")
        assert reason == "KafkaUnreachable"
        assert ("trying again" in message) is retried

    def test_success_counts_what_was_left_alone(self):
        """Done is not the same as all done."""
        mine = work(opened=False, closed=RunOutcome.SUCCEEDED, progress=MOVED)
        mine.verdicts = {tp(0): Verdict(Kind.DONE), tp(1): Verdict(Kind.SKIPPED, "Drifted")}
        reason, message = said(mine)
        assert reason == "Succeeded"
        assert message.startswith("1 of 2 partitions")
        assert statuses(mine) == ("True", "False", "False")
        assert find_condition(status_of(mine).conditions, ConditionType.SUCCEEDED).status == "True"

    def test_a_plan_that_is_not_worth_its_moves_says_so(self):
        """Nothing to do is not the same as balanced: the goal that held it back is named."""
        mine = work(opened=False, closed=RunOutcome.SUCCEEDED, progress=replace(MOVED, partitions_total=0))
        assert said(mine) == ("NothingToDo", "the cluster is as asked for: no partition has to change")
        for why_empty, begins in (
            ("GainTooSmall", "GainTooSmall: what would be moved gains less than goals.minimumGain (0 %)"),
            ("BudgetReached", "goals.maxReplicaMoves or goals.maxDataToMove allow no move that would help"),
        ):
            mine.ended = Ended(why_empty, left_alone=2)
            reason, message = said(mine)
            assert reason == "NothingToDo"
            assert message.startswith(begins)
            assert message.endswith("; 2 partitions were left alone, see status.skipped")

    def test_after_a_restart_a_success_says_what_it_said(self):
        """Nothing is counted anew for a run that is over."""
        before = work(opened=False, closed=RunOutcome.SUCCEEDED, progress=MOVED)
        after = work(opened=False, closed=RunOutcome.SUCCEEDED)
        after.update({**BODY, **status_of(before).as_patch()})
        assert said(after) == said(before)

    def test_success_that_was_never_written_is_said_all_the_same(self):
        """The operator died between closing the run and writing the status."""
        assert said(work(opened=False, closed=RunOutcome.SUCCEEDED))[0] == "Succeeded"

    def test_ready_reconciling_and_stalled_never_contradict_each_other(self):
        """Exactly one of the three is True, in every state."""
        problems = (None, Transient("A", "a"), Permanent("B", "b"))
        outcomes = (None, *RunOutcome)
        cases = itertools.product(
            problems, (None, Hold(Reason.SUSPENDED, "")), (None, "stuck"), (True, False), outcomes, Direction
        )
        for problem, hold, stalled, opened, outcome, direction in cases:
            mine = work(opened=opened, closed=outcome, direction=direction)
            mine.problem, mine.hold = problem, hold
            assert sorted(statuses(mine, stalled=stalled)) == ["False", "False", "True"]


class TestWaitingSummary:
    def test_reasons_with_counts_and_an_example_the_most_frequent_first(self):
        """One line for a thousand partitions."""
        mine = work()
        rare, common = Verdict(Kind.WAITING, "Rare", "once"), Verdict(Kind.WAITING, "Often", "again")
        mine.verdicts = {tp(0): rare, tp(1): common, tp(2): common}
        assert waiting_summary(mine) == "Often (2, e.g. t-1: again); Rare (1, e.g. t-0: once)"

    def test_a_copy_in_flight_that_waits_is_named(self):
        """Where all is in flight nothing else would tell of the broker that is away; others just fly."""
        mine = work()
        away = Verdict(Kind.IN_FLIGHT, "TargetBrokerUnavailable", "broker 4 is away", started=True)
        mine.verdicts = {tp(0): FLYING, tp(1): away}
        assert said(mine) == (Reason.REBALANCING, "TargetBrokerUnavailable (1, e.g. t-1: broker 4 is away)")

    def test_a_pause_is_said_elsewhere(self):
        """Otherwise it would hide every other reason."""
        mine = work()
        mine.verdicts = {tp(0): Verdict(Kind.WAITING, "Paused", "no"), tp(1): Verdict(Kind.READY)}
        assert waiting_summary(mine) == ""

    def test_it_is_what_a_rollback_waits_for(self):
        """CancelImpossible is seen in kubectl get, not only in a log."""
        mine = work(direction=Direction.ROLLBACK)
        mine.verdicts = {tp(0): Verdict(Kind.WAITING, "CancelImpossible", "none is in sync")}
        assert "CancelImpossible" in said(mine)[1]


class TestElections:
    def test_they_are_counted_and_named_as_what_they_are(self):
        """No list changes, so there is no word of replicas that move."""
        mine = work(progress=MOVED)
        row = PlannedPartition(tp(0), replicas_of(1, 2), replicas_of(1, 2), elects=True)
        mine.open = replace(mine.open, plan=Plan((row,), lower_bound=0, optimal=True))
        mine.verdicts = {tp(0): Verdict(Kind.READY)}
        status = status_of(mine)
        assert (status.plan.partitions, status.plan.elections) == (0, 1)
        planned = find_condition(status.conditions, ConditionType.PLANNED)
        assert planned.message == "0 partitions, 0 replica moves, 1 leader elections"
        assert said(mine) == ("Rebalancing", "having preferred leaders elected")


class TestNumbers:
    def test_the_batch_shows_lists_and_bytes_left(self):
        """KIP-435's current batch."""
        mine = work()
        mine.verdicts, mine.since = {tp(0): FLYING}, {tp(0): NOW}
        status = status_of(mine, seen(), {(tp(0), 3): 40})
        (row,) = status.current_batch
        assert (row.current, row.step, row.target, row.adding) == ((1, 2), (3, 1, 2), (3, 2), (3,))
        assert (row.bytes_remaining, row.since) == (60, NOW)

    def test_a_rollbacks_target_is_the_origin(self):
        """The row says where the partition is going."""
        mine = work(direction=Direction.ROLLBACK)
        mine.verdicts = {tp(0): FLYING}
        assert status_of(mine, seen()).current_batch[0].target == (1, 2)

    def test_plan_progress_and_columns(self):
        """What kubectl get prints is the same as what the fields say."""
        mine = work(progress=MOVED)
        mine.eta = (60.0, 125.0)
        status = status_of(mine)
        assert (status.plan.partitions, status.plan.replica_moves, status.plan.data_to_move) == (1, 1, 100)
        assert (status.progress.percent, status.progress.bytes.moved) == (50, 2**20)
        assert status.progress.estimated_completion == "2026-01-01T12:02:05Z"  # the longer end
        shown = status.display
        assert (shown.progress, shown.moved, shown.eta) == ("50%", "1.0 MiB/2.0 MiB", "1m-2m")
        assert shown.throttle == "1.0 MiB/s"

    def test_no_end_is_promised_while_nothing_moves(self):
        """A dash, not a guess."""
        status = status_of(work(progress=MOVED))
        assert status.progress.estimated_completion is None
        assert status.display.eta == "-"

    @pytest.mark.parametrize(
        ("rates", "text"),
        [
            (Rates(None, None), "unlimited"),
            (Rates(2**20, None), "leader 1.0 MiB/s"),
            (Rates(2**20, 2**21), "leader 1.0 MiB/s, follower 2.0 MiB/s"),
        ],
    )
    def test_the_throttle_column_names_the_sides_that_differ(self, rates, text):
        """One number only where both sides have it."""
        mine = work()
        mine.rates = ClusterRates(rates)
        assert status_of(mine).display.throttle == text

    @pytest.mark.parametrize(
        ("rates", "brokers", "expected"),
        [
            (Rates(None, None), 0, ("False", "Unlimited")),
            (Rates(1, 1), 3, ("True", "Applied")),
            (Rates(1, 1), 0, ("False", "Pending")),
        ],
    )
    def test_throttle_applied_only_when_it_is(self, rates, brokers, expected):
        """A rate that is wanted is not yet a rate in force."""
        mine = work()
        mine.rates, mine.throttled_brokers = ClusterRates(rates), brokers
        found = find_condition(status_of(mine).conditions, ConditionType.THROTTLE_APPLIED)
        assert (found.status, found.reason) == expected

    def test_skipped_by_the_plan_or_since_is_listed_once(self):
        """With the later reason."""
        mine = work(skipped=[SkippedPartition(tp(7), "NoLeader"), SkippedPartition(tp(0), "NoLeader")])
        mine.verdicts = {tp(0): Verdict(Kind.SKIPPED, "Drifted")}
        status = status_of(mine)
        assert [(row.partition, row.reason) for row in status.skipped] == [(0, "Drifted"), (7, "NoLeader")]
        assert status.skipped_count == 2

    @pytest.mark.parametrize(("drained", "status"), [(True, "True"), (False, "False")])
    def test_drained_is_said_only_where_it_was_looked_for(self, drained, status):
        """None: nothing is decommissioned, and an earlier word is taken back."""
        mine = work()
        mine.drained = drained
        mine.written = status_of(mine)
        assert find_condition(mine.written.conditions, ConditionType.DRAINED).status == status
        mine.drained = None
        assert find_condition(status_of(mine).conditions, ConditionType.DRAINED) is None


class TestBounds:
    def test_a_status_is_at_most_64_kib_whatever_the_size_of_the_cluster(self):
        """Rows are cut, counts are not."""
        count, topic = 2000, "x" * 240
        mine = work(count, topic=topic, skipped=[SkippedPartition(tp(i, "s" * 249), "NoLeader") for i in range(count)])
        mine.verdicts = {tp(i, topic): FLYING for i in range(count)}
        mine.verdicts |= {tp(i, "w" * 249): Verdict(Kind.WAITING, f"R{i % 9}", "y" * 3000) for i in range(count)}
        status = status_of(mine, seen(count, topic))
        assert len(json.dumps(status.as_patch()).encode()) <= 64 * 1024
        assert (len(status.current_batch), status.current_batch_size) == (MAX_BATCH_ROWS, count)
        assert (len(status.skipped), status.skipped_count) == (MAX_SKIPPED_ROWS, count)

    def test_the_generation_that_was_acted_on_is_named(self):
        """On the status and on each condition."""
        status = status_of(work())
        assert status.observed_generation == 3
        assert {condition.observed_generation for condition in status.conditions} == {3}

    def test_saying_the_same_later_changes_nothing(self):
        """Else each tick would write, and each write would wake everybody who watches."""
        mine = work(progress=MOVED)
        mine.written = status_of(mine)
        assert status_of(mine, now=NOW + timedelta(hours=1)) == mine.written
