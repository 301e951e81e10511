"""What a status contains, and that it stays small and consistent."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.found_by_rounds import found, recorded, remembered
from tests.fakes.reported_status import FLYING, MOVED, NOW, rebalance, said, seen, status_of, tp

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.resource_status import MAX_BATCH_ROWS, MAX_OUTSIDE_ROWS, MAX_PLAN_BROKERS, MAX_SKIPPED_ROWS
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.reassignment_throttle import ClusterRates, Rates
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load_outcome import MOST_ROWS, LoadOutcome, OutsideBroker, OutsideReason, ResourceBalance
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition, SkippedPartition
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.report.rebalance_report import build_status
from kafka_rebalance.reconcile.state.assessment import Drain, LeavingBroker, StepBlock

MUCH = 2**60
MUCH_LOAD = LoadOutcome(
    tuple(
        ResourceBalance(resource, 10, 250.4, 109.9, 300, MOST_ROWS, (MUCH,) * 500, (MUCH,) * 500, (MUCH,) * 500)
        for resource in LoadResource
    ),
    113,
    100,
    tuple(map(BrokerId, range(500))),
    tuple(
        OutsideBroker(BrokerId(10**9 + b), LoadResource.LEADER_BYTES_IN, MUCH, MUCH, OutsideReason.PARTITION_TOO_LARGE)
        for b in range(MOST_ROWS)
    ),
)


class TestThrottle:
    def test_says_who_else_binds(self):
        """Its own rates, and the resource whose lower limit applies on some brokers."""
        mine = rebalance()
        assert status_of(mine).throttle.bound_by is None
        found(mine, bound_by="KafkaReassignmentThrottle kafka/limits")
        status = status_of(mine)
        assert status.throttle.bound_by == "KafkaReassignmentThrottle kafka/limits"
        applied = find_condition(status.conditions, ConditionType.THROTTLE_APPLIED)
        said = "1.0 MiB/s from spec.throttle; on some brokers less, by KafkaReassignmentThrottle kafka/limits"
        assert applied.message == said


class TestRebalancing:
    """The condition of that name: whether steps are submitted or in flight."""

    def condition(self, mine):
        found_condition = find_condition(status_of(mine).conditions, ConditionType.REBALANCING)
        return found_condition.status, found_condition.reason

    def test_no_step_may_start_and_none_is_in_flight(self):
        """A run that waits for its approval moves nothing, and so does a suspended one at rest."""
        waiting = {tp(0): PartitionStatus(MovePhase.READY)}
        mine = found(rebalance(progress=MOVED), statuses=waiting)
        assert self.condition(mine) == ("True", "Rebalancing")
        for reason in (Reason.AWAITING_APPROVAL, Reason.SUSPENDED, Reason.OUTSIDE_WINDOW, Reason.CLUSTER_UNHEALTHY):
            found(mine, step_block=StepBlock(reason, "not now"))
            assert self.condition(mine) == ("False", reason)

    def test_steps_in_flight_go_on(self):
        """A suspended run finishes them first."""
        mine = rebalance()
        recorded(mine, run=replace(mine.record.run, started_at=NOW))
        found(mine, statuses={tp(0): FLYING}, progress=MOVED, step_block=StepBlock(Reason.SUSPENDED, "not now"))
        assert self.condition(mine) == ("True", "Suspended")


class TestWarnings:
    def test_what_the_plan_does_to_a_rack(self):
        """The warning is shown until the plan is executed."""
        mine = rebalance(progress=MOVED)
        said = "broker 3 ends with 12 replicas instead of 6: it is the last broker of rack b"
        recorded(
            mine, loaded_run=replace(mine.record.loaded_run, plan=replace(mine.record.loaded_run.plan, crowded=(said,)))
        )
        warning = find_condition(status_of(mine).conditions, ConditionType.SPEC_WARNING)
        assert (warning.status, warning.reason, warning.message) == ("True", "FewBrokersInRack", said)

    def test_brokers_that_others_empty_are_counted_beyond_a_few(self):
        """A namespace may have drained hundreds of thousands of brokers that its server has claimed."""
        many = {BrokerId(100 + n): LeavingBroker(f"kafka/d{n // 200}", NOW) for n in range(2_000)}
        mine = found(rebalance(progress=MOVED), leaving={BrokerId(4): LeavingBroker("kafka/one"), **many})
        live = {broker: Broker(broker) for broker in (BrokerId(4), *list(many)[:1_400])}
        status = status_of(mine, ClusterState("c", live))
        texts = find_condition(status.conditions, ConditionType.SPEC_WARNING).message.split("; ")
        use = "in spec.brokers.include, or delete"
        drained = "those that are empty get no replicas. To use them, list them"
        assert texts == [
            f"kafka/one drains broker 4: it gets no replicas. To use it, list it {use} kafka/one",
            f"kafka/d0 has drained brokers 100, 101, 102 and 197 more: {drained} {use} kafka/d0",
            f"kafka/d1 has drained brokers 300, 301, 302 and 197 more: {drained} {use} kafka/d1",
            "1000 more brokers that other rebalances empty or have drained get no replicas",
        ]


class TestElections:
    def test_they_are_counted_and_named_as_what_they_are(self):
        """No list changes, so the message does not mention replica moves."""
        mine = rebalance(progress=MOVED)
        row = PlannedPartition(tp(0), replicas_of(1, 2), replicas_of(1, 2), elects=True)
        plan = Plan((row,), Certificate(0, optimal=True))
        recorded(mine, loaded_run=replace(mine.record.loaded_run, plan=plan))
        found(mine, statuses={tp(0): PartitionStatus(MovePhase.READY)}, progress=MOVED)
        status = status_of(mine)
        assert (status.plan.partitions, status.plan.elections) == (0, 1)
        planned = find_condition(status.conditions, ConditionType.PLANNED)
        assert planned.message == "0 partitions, 0 replica moves, 1 leader elections"
        assert said(mine) == ("Rebalancing", "having preferred leaders elected")


class TestNumbers:
    def test_the_batch_shows_lists_and_bytes_left(self):
        """KIP-435's current batch."""
        mine = rebalance()
        found(mine, statuses={tp(0): FLYING}, since={tp(0): NOW})
        status = status_of(mine, seen(), {(tp(0), 3): 40})
        (row,) = status.current_batch
        assert (row.current, row.step, row.target, row.adding) == ((1, 2), (3, 1, 2), (3, 2), (3,))
        assert (row.bytes_remaining, row.since) == (60, NOW)

    def test_the_batch_stays_where_nothing_was_read(self):
        """A round that fails as a whole says nothing about reassignments in flight."""
        mine = rebalance()
        found(mine, statuses={tp(0): FLYING}, since={tp(0): NOW})
        remembered(mine, built=status_of(mine, seen()))
        status = build_status(mine, ClusterState("c", {}), {}, now=NOW, problem=Transient("KafkaUnreachable", "no"))
        assert (status.current_batch, status.current_batch_size) == (mine.memory.built.current_batch, 1)

    def test_a_rollbacks_target_is_the_origin(self):
        """The row shows where the partition is going."""
        mine = rebalance(direction=Direction.ROLLBACK)
        found(mine, statuses={tp(0): FLYING})
        assert status_of(mine, seen()).current_batch[0].target == (1, 2)

    def test_plan_progress_and_columns(self):
        """kubectl get prints the same values as the fields."""
        mine = rebalance(progress=MOVED)
        found(mine, eta=(60.0, 125.0))
        status = status_of(mine)
        assert (status.plan.partitions, status.plan.replica_moves, status.plan.data_to_move) == (1, 1, 100)
        assert (status.progress.percent, status.progress.bytes.moved) == (50, 2**20)
        written = status.as_patch()["status"]["progress"]
        assert written["estimatedCompletion"] == "2026-01-01T12:02:05Z"  # the longer estimate
        shown = status.display
        assert (shown.progress, shown.moved, shown.eta) == ("50%", "1.0 MiB/2.0 MiB", "1m-2m")
        assert shown.throttle == "1.0 MiB/s"

    def test_what_each_broker_gets_and_gives_up(self):
        """Brokers that change most come first; an unchanged broker has no row."""
        shown = status_of(rebalance(2)).plan  # [1, 2] -> [3, 2], twice
        rows = [row.model_dump(by_alias=True) for row in shown.per_broker]
        names = ("broker", "replicasIn", "replicasOut", "bytesIn", "bytesOut", "leadersIn", "leadersOut")
        assert [tuple(row[name] for name in names) for row in rows] == [
            (1, 0, 2, 0, 200, 0, 2),
            (3, 2, 0, 200, 0, 2, 0),
        ]
        assert shown.per_broker_count == 2

    def test_steps_and_their_start(self):
        """There is no start until the first step is submitted, however long the run has been open."""
        mine = rebalance(progress=MOVED)
        found(mine, steps_completed=7)
        shown = status_of(mine).progress
        assert (shown.steps.completed, shown.steps.in_flight) == (7, 1)
        assert shown.started_at is None
        recorded(mine, run=replace(mine.record.run, started_at=NOW))  # the plan's own copy of the record is older
        assert status_of(mine).progress.started_at == NOW

    def test_when_it_ended(self):
        """Not while a run is open, and not forgotten by an operator that has not read the record yet."""
        mine = rebalance(progress=MOVED)
        assert status_of(mine).completed_at is None
        recorded(mine, run=replace(mine.record.run, closed_at=NOW))
        ended = status_of(mine)
        assert ended.as_patch()["status"]["completedAt"] == "2026-01-01T12:00:00Z"
        recorded(mine, run=None)
        remembered(mine, built=ended)
        assert status_of(mine).completed_at == NOW

    def test_no_end_is_promised_while_nothing_moves(self):
        """A dash, not a guess."""
        status = status_of(rebalance(progress=MOVED))
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
        """A single number only if both sides have it."""
        mine = rebalance()
        found(mine, rates=ClusterRates(rates))
        assert status_of(mine).display.throttle == text

    @pytest.mark.parametrize(
        ("rates", "brokers", "pending", "expected"),
        [
            (Rates(None, None), 0, 0, ("False", "Unlimited")),
            (Rates(1, 1), 3, 0, ("True", "Applied")),
            (Rates(1, 1), 3, 9, ("False", "Pending")),
            (Rates(1, 1), 0, 9, ("False", "Pending")),
            (Rates(1, 1), 0, 0, ("False", "Pending")),
        ],
    )
    def test_throttle_applied_only_when_it_is(self, rates, brokers, pending, expected):
        """A requested rate is not in force yet, or not on every broker."""
        mine = rebalance()
        found(mine, rates=ClusterRates(rates), brokers=brokers, brokers_pending=pending)
        applied = find_condition(status_of(mine).conditions, ConditionType.THROTTLE_APPLIED)
        assert (applied.status, applied.reason) == expected
        assert (f"set on {brokers} of {brokers + pending} brokers" in applied.message) is bool(pending)

    def test_a_throttle_that_no_round_has_found_out_is_not_unlimited(self):
        """The first round may fail before it does."""
        mine = rebalance()
        found(mine, rates=ClusterRates(), source="", brokers=0)
        applied = find_condition(status_of(mine).conditions, ConditionType.THROTTLE_APPLIED)
        assert (applied.status, applied.reason) == ("False", "Pending")
        assert status_of(mine).display.throttle == "-"

    def test_copies_that_are_not_throttled_at_both_ends_are_counted(self):
        """The lists of throttled replicas may have no room for them."""
        mine = rebalance()
        found(mine, left_out=7)
        applied = find_condition(status_of(mine).conditions, ConditionType.THROTTLE_APPLIED)
        assert applied.message.endswith("; 7 partitions not at both ends: the lists of throttled replicas are full")

    def test_skipped_by_the_plan_or_since_is_listed_once(self):
        """With the later reason."""
        mine = rebalance(skipped=[SkippedPartition(tp(7), "NoLeader"), SkippedPartition(tp(0), "NoLeader")])
        found(mine, statuses={tp(0): PartitionStatus(MovePhase.SKIPPED, "Drifted")})
        status = status_of(mine)
        assert [(row.partition, row.reason) for row in status.skipped] == [(0, "Drifted"), (7, "NoLeader")]
        assert status.skipped_count == 2

    @pytest.mark.parametrize(("drained", "status"), [(True, "True"), (False, "False")])
    def test_drained_is_said_only_where_it_was_looked_for(self, drained, status):
        """None: nothing is decommissioned, and an earlier condition is removed."""
        mine = rebalance()
        found(mine, drain=Drain(frozenset(), drained, "brokers"))
        remembered(mine, written=status_of(mine))
        assert find_condition(mine.memory.written.conditions, ConditionType.DRAINED).status == status
        found(mine, drain=None)
        assert find_condition(status_of(mine).conditions, ConditionType.DRAINED) is None


class TestBounds:
    def test_a_status_is_at_most_64_kib_whatever_the_size_of_the_cluster(self):
        """Rows are truncated, counts are not."""
        count, topic = 2000, "x" * 240
        mine = rebalance(
            count, topic=topic, skipped=[SkippedPartition(tp(i, "s" * 249), "NoLeader") for i in range(count)]
        )
        statuses = {tp(i, topic): FLYING for i in range(count)}
        statuses |= {
            tp(i, "w" * 249): PartitionStatus(MovePhase.WAITING, f"R{i % 9}", "y" * 3000) for i in range(count)
        }
        on_many = (
            PlannedPartition(tp(i, "b"), (BrokerId(i),), (BrokerId(10**9 + i),), size_bytes=2**60) for i in range(count)
        )
        plan = mine.record.loaded_run.plan
        plan = replace(plan, partitions=(*plan.partitions, *on_many), load=MUCH_LOAD)
        found(recorded(mine, loaded_run=replace(mine.record.loaded_run, plan=plan)), statuses=statuses)
        status = status_of(mine, seen(count, topic))
        assert (len(status.plan.per_broker), status.plan.per_broker_count) == (MAX_PLAN_BROKERS, 2 * count)
        assert (len(status.plan.load.resources), len(status.plan.load.outside)) == (4, MAX_OUTSIDE_ROWS)
        assert (status.plan.load.resources[0].outside_after, status.plan.load.gap) == (50, "1.13")
        assert len(json.dumps(status.as_patch()).encode()) <= 64 * 1024
        assert (len(status.current_batch), status.current_batch_size) == (MAX_BATCH_ROWS, count)
        assert (len(status.skipped), status.skipped_count) == (MAX_SKIPPED_ROWS, count)

    def test_the_generation_that_was_acted_on_is_named(self):
        """On the status and on each condition."""
        status = status_of(rebalance())
        assert status.observed_generation == 3
        assert {condition.observed_generation for condition in status.conditions} == {3}

    def test_saying_the_same_later_changes_nothing(self):
        """Otherwise each tick would write, and each write would wake up every watcher."""
        mine = rebalance(progress=MOVED)
        remembered(mine, built=status_of(mine))
        assert status_of(mine, now=NOW + timedelta(hours=1)) == mine.memory.built


class TestMeasured:
    def test_the_disks_after_a_success_stand_beside_the_prediction(self):
        """Only in the row of disks, in the plan of this run, and also if the operator was killed before it said so."""
        mine = rebalance()
        plan = replace(mine.record.loaded_run.plan, load=MUCH_LOAD)
        recorded(mine, loaded_run=replace(mine.record.loaded_run, plan=plan))
        remembered(mine, built=status_of(mine))
        run = replace(mine.record.run, outcome=RunOutcome.SUCCEEDED, closed_at=NOW, disk_peak=112)
        recorded(mine, run=run, loaded_run=None)
        rows = status_of(mine).plan.load.resources
        assert [(row.peak_after, row.peak_measured) for row in rows] == [(110, 112), *[(110, None)] * 3]
        recorded(mine, run=replace(run, plan_hash="sha256:another"))
        assert all(row.peak_measured is None for row in status_of(mine).plan.load.resources)
