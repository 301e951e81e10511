"""A partition is judged again only when something that its status depends on has changed."""

import inspect
from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest
from tests.fakes.counted_progress import measure
from tests.fakes.found_by_rounds import found, recorded

from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, PartitionStatus
from kafka_rebalance.execution.queue_order import Place
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition, SkippedPartition
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import at_rest
from kafka_rebalance.reconcile.decide.judging import (
    exempt_from_health_gate,
    judge_again,
    judge_inputs,
    partitions_to_judge,
    partitions_to_read,
)
from kafka_rebalance.reconcile.observe.observer import Changes
from kafka_rebalance.reconcile.state.assessment import ContinuedCopies, QueuePlace, Replanning, StepBlock
from kafka_rebalance.reconcile.state.judgement import CopiesToKeep, JudgeInputs, Statuses
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
ALIVE = {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2, 3, 4)}

ANY = Changes(frozenset(), 0, 1)


def tp(number):
    return TopicPartition("t", number)


ORIGINS = {tp(n): Origin(tp(n), "", replicas_of(1, 2), BrokerId(1)) for n in range(2)}


def partition(number, *replicas):
    ids = replicas_of(*replicas)
    return PartitionState(tp(number), "", ids, frozenset(ids), ids[0])


def seen(*states, alive=ALIVE, min_insync=1):
    return Observation(ClusterState("c", alive, {s.tp: s for s in states}), {"t": min_insync})


def rebalance(name="r", **execution):
    metadata = {"name": name, "namespace": "kafka", "uid": name}
    mine = Rebalance.of(
        {"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}, "execution": execution}}
    )
    rows = tuple(PlannedPartition(tp(n), replicas_of(1, 2), replicas_of(3, 2)) for n in range(2))
    plan = Plan(rows, Certificate(2, optimal=True))
    run = Run(name, "kafka", name, "c", "run", mine.desired.planning_hash, plan.hash, NOON)
    return recorded(mine, run=run, loaded_run=loaded_run_of(run, plan, "ref", {}))


def judged(mine, now, changed=(), *, direction=Direction.FORWARD, restarting=frozenset(), ahead=(), before=1):
    """``before``: the reading that the changes refer to."""
    inputs = judge_inputs(mine, mine.record.loaded_run, direction, now, restarting, ahead)
    changes = Changes(frozenset(changed), before, before + 1)
    judgement = judge_again(mine.assessment.judgement, inputs, now, changes, NOON)
    return found(mine, judgement=judgement)


def judged_before(**execution):
    return judged(rebalance(**execution), seen(partition(0, 1, 2), partition(1, 1, 2)), before=0)


def phases(mine):
    return [mine.assessment.statuses.by_partition[tp(n)].phase for n in range(2)]


class TestJudgeAgain:
    def test_at_first_everything_is_judged(self):
        """There is no earlier judgement."""
        assert phases(judged_before()) == [MovePhase.READY, MovePhase.READY]

    def test_then_only_what_reads_otherwise(self):
        """The other partition moved too, but is not among the changes: it keeps its older status."""
        mine = judged(judged_before(), seen(partition(0, 3, 2), partition(1, 3, 2)), {tp(0)})
        assert phases(mine) == [MovePhase.DONE, MovePhase.READY]

    def test_nothing_twice_by_the_same_reading(self):
        """The first reading of a run changes every partition: a large run would be judged once more on the loop."""
        mine, now = judged_before(), seen(partition(0, 3, 2), partition(1, 3, 2))
        inputs = judge_inputs(mine, mine.record.loaded_run, Direction.FORWARD, now, frozenset())
        by_it, older = Changes(frozenset({tp(0), tp(1)}), 0, 1), Changes(frozenset({tp(0)}), 1, 2)
        assert mine.assessment.judgement.reading == by_it.after
        assert partitions_to_judge(mine.assessment.judgement, inputs, by_it) == ()
        assert partitions_to_judge(mine.assessment.judgement, inputs, older) == {tp(0)}

    def test_everything_again_after_a_reading_that_was_missed(self):
        """After a round that failed or did not include this rebalance, its changes were not reported."""
        mine = judged(judged_before(), seen(partition(0, 3, 2), partition(1, 3, 2)), {tp(0)}, before=2)
        assert phases(mine) == [MovePhase.DONE, MovePhase.DONE]

    def test_the_counts_are_those_of_the_statuses(self):
        """They are updated with the changes, not counted again."""
        mine = judged(judged_before(), seen(partition(0, 3, 2), partition(1, 1, 2)), {tp(0)})
        statuses = mine.assessment.statuses
        assert [statuses.count(phase) for phase in (MovePhase.READY, MovePhase.DONE)] == [1, 1]
        assert (statuses.moving, statuses.copying, statuses.finished) == (True, False, False)

    @pytest.mark.parametrize(
        "change",
        [
            {"direction": Direction.ROLLBACK},
            {"seen": {"alive": {b: ALIVE[b] for b in list(ALIVE)[:2]}}},
            {"seen": {"min_insync": 2}},
            {"restarting": frozenset({BrokerId(1)})},
            {"execution": {"parallelReplicaCount": 2}},
            {"ahead": True},
        ],
    )
    def test_everything_again_where_something_else_counts_now(self, change):
        """Direction, brokers, min.insync.replicas, restarting brokers, R, rebalances ahead."""
        other, fresh = rebalance("other"), rebalance(**change.get("execution", {}))
        mine = judged_before()
        mine.desired = fresh.desired
        moved = seen(partition(0, 3, 2), partition(1, 3, 2), **change.get("seen", {}))
        direction, restarting = change.get("direction", Direction.FORWARD), change.get("restarting", frozenset())
        for each in (mine, fresh):
            found(each, place=Place(runs=False) if "ahead" in change else None)
            ahead = [other] if "ahead" in change else []
            judged(each, moved, direction=direction, restarting=restarting, ahead=ahead)
        assert mine.assessment.statuses == fresh.assessment.statuses
        assert phases(mine) != [MovePhase.READY, MovePhase.READY] or direction is Direction.ROLLBACK

    def test_a_pause_changes_no_judgement(self):
        """It holds back what is ready at once, and lets it go on at once, whatever the number of partitions."""
        mine = judged_before()
        before = mine.assessment.statuses
        paused = judged(found(mine, step_block=StepBlock(Reason.SUSPENDED, "")), seen(), before=1).assessment.statuses
        assert paused.judged is before.judged
        assert {status.reason for status in paused.by_partition.values()} == {Reason.PAUSED}
        assert (paused.count(MovePhase.WAITING), paused.within(MovePhase.READY), paused.moving) == (2, {}, False)
        assert paused.within(MovePhase.WAITING) == dict(paused.by_partition)
        mine = judged(found(mine, step_block=None), seen(), before=2)
        assert (mine.assessment.statuses, phases(mine)) == (before, [MovePhase.READY, MovePhase.READY])

    def test_under_a_pause_what_others_go_first_with_is_paused(self):
        """A pause that begins or ends while others go first is an input like any other."""
        mine, other = judged_before(), judged_before()
        now = seen(partition(0, 1, 2), partition(1, 1, 2))
        found(mine, step_block=StepBlock(Reason.QUEUED, ""))
        judged(mine, now, ahead=[other])
        assert {status.reason for status in mine.assessment.statuses.by_partition.values()} == {Reason.PAUSED}
        judged(found(mine, step_block=None), now, ahead=[other], before=2)
        reasons = {status.reason for status in mine.assessment.statuses.by_partition.values()}
        assert reasons == {Reason.FOREIGN_REASSIGNMENT}

    @pytest.mark.parametrize(("broker", "concerned"), [(1, [0, 1]), (3, [0]), (5, [1]), (6, [])])
    def test_the_death_of_a_broker_concerns_what_the_run_may_have_put_there(self, broker, concerned):
        """Of a large plan, the death of one broker concerns little."""
        mine = rebalance()
        rows = (
            PlannedPartition(tp(0), replicas_of(1, 2), replicas_of(3, 2)),
            PlannedPartition(tp(1), replicas_of(1, 2), replicas_of(5, 2)),
        )
        run = loaded_run_of(mine.record.run, Plan(rows, Certificate(2, optimal=True)), "ref", {})
        recorded(mine, loaded_run=run)
        alive = {BrokerId(b): Broker(BrokerId(b)) for b in range(1, 7)}
        judged(mine, seen(partition(0, 1, 2), partition(1, 1, 2), alive=alive), before=0)
        judged_first = mine.assessment.judgement
        left = {b: alive[b] for b in alive if b != broker}
        inputs = replace(judged_first.inputs, brokers=left)
        assert sorted(inputs.concerned(judged_first.inputs)) == [tp(n) for n in concerned]
        judged(mine, seen(partition(0, 1, 2), partition(1, 1, 2), alive=left))
        fresh = judge_again(type(judged_first)(), inputs, seen(partition(0, 1, 2), partition(1, 1, 2)), ANY, NOON)
        assert dict(mine.assessment.statuses.by_partition) == dict(fresh.statuses.by_partition)

    def test_what_is_counted_and_named_follows_the_changes(self):
        """After any number of changes it is the same as if it were counted again."""
        statuses = Statuses.of({tp(n): PartitionStatus(MovePhase.READY, pausable=True) for n in range(50)})
        for n, phase in enumerate(list(MovePhase) * 9):
            statuses = statuses.updated({tp(n): PartitionStatus(phase), tp(49 - n): PartitionStatus(MovePhase.DONE)})
            again = Statuses.of(dict(statuses.judged))
            for paused in (False, True):
                one, other = statuses.under(paused=paused), again.under(paused=paused)
                assert one == other
                assert dict(one.notable) == dict(other.notable)
                assert [one.count(phase) for phase in MovePhase] == [other.count(phase) for phase in MovePhase]
                assert [one.within(phase) for phase in MovePhase] == [other.within(phase) for phase in MovePhase]

    @pytest.mark.parametrize(
        "change",
        [
            {"run": {"undo": True}},
            {"replanning": None},
            {"replanning": Replanning(Reason.DRIFTED)},
            {"replanning": Replanning(Reason.SUPERSEDED, kept=ContinuedCopies("of the spec", frozenset()))},
        ],
    )
    def test_everything_again_where_other_copies_stay(self, change):
        """A copy in flight stays while its plan is superseded, unless it is undone or the new plan does not keep it."""
        mine = recorded(found(judged_before(), replanning=Replanning(Reason.SUPERSEDED)), origins=ORIGINS)
        flying = replace(partition(0, 3, 1, 2), adding=replicas_of(3), isr=frozenset(replicas_of(1, 2)), leader=1)
        now = seen(flying, partition(1, 1, 2))
        judged(mine, now, {tp(0)}, direction=Direction.REVERT)
        assert phases(mine)[0] is MovePhase.IN_FLIGHT
        if "run" in change:
            mine.record = replace(mine.record, run=replace(mine.record.run, **change["run"]))
        else:
            kept = change["replanning"] and change["replanning"].kept
            kept = kept and replace(kept, planning_hash=mine.desired.planning_hash)
            found(mine, replanning=change["replanning"] and replace(change["replanning"], kept=kept))
        judged(mine, now, direction=Direction.REVERT, before=2)
        assert phases(mine)[0] is MovePhase.READY

    def test_topics_of_others_are_no_input(self):
        """A change of these does not look at every partition of the run."""
        mine, now = rebalance(), seen(partition(0, 1, 2))
        others = replace(now, min_insync={"t": 1, "u": 2}, forbidden={"u": "not allowed"}, unread={"u"})
        one, other = (
            judge_inputs(mine, mine.record.loaded_run, Direction.FORWARD, found, frozenset()) for found in (now, others)
        )
        assert one == other

    def test_no_input_of_the_judging_is_left_out_of_the_key(self):
        """``judge_again`` gets only ``JudgeInputs`` and the reading, so a change of any field counts."""
        before = judged_before().assessment.judgement
        others = {
            "run": rebalance("other").record.loaded_run,
            "direction": Direction.ROLLBACK,
            "paused": True,
            "parallel_replicas": 2,
            "brokers": {},
            "restarting": frozenset({BrokerId(1)}),
            "min_insync": {"t": 2},
            "forbidden": {"t": "not allowed"},
            "unread": frozenset({"t"}),
            "keep": CopiesToKeep(every=True),
            "ahead": (("kafka/other", rebalance("other").record.loaded_run, ()),),
            "left_to_others": {tp(0): PartitionStatus(MovePhase.SKIPPED)},
            "left_in_motion": frozenset({tp(0)}),
            "place_given_up": True,
            "unsettled": frozenset({"t"}),
            "rests": True,
        }
        assert others.keys() == {field.name for field in fields(JudgeInputs) if field.compare}
        assert inspect.signature(judge_again).parameters.keys() == {"before", "inputs", "seen", "changes", "now"}
        now = seen(partition(0, 3, 2), partition(1, 3, 2))
        for name, value in others.items():
            inputs = replace(before.inputs, **{name: value})
            after = judge_again(before, inputs, now, Changes(frozenset(), 1, 2), NOON)
            assert after.statuses is not before.statuses, name


class TestAhead:
    """Another rebalance of the same partitions goes first."""

    @pytest.mark.parametrize("heading", [Direction.FORWARD, Direction.REVERT])
    @pytest.mark.parametrize("adding", [(3,), ()])
    def test_what_it_moves_is_left_to_it(self, heading, adding):
        """Do not cancel its copy, and do not drop one that has just completed: they would undo each other for ever."""
        mine, other = judged_before(), judged_before()
        state = replace(partition(0, 3, 1, 2), adding=replicas_of(*adding))
        if adding:
            state = replace(state, isr=state.isr - set(state.adding), leader=BrokerId(1))
        now = seen(state, partition(1, 1, 2))
        status = judged(mine, now, direction=heading, ahead=[other]).assessment.statuses.by_partition[tp(0)]
        assert (status.phase, status.reason) == (MovePhase.WAITING, Reason.FOREIGN_REASSIGNMENT)
        assert other.name in status.message
        judged(recorded(mine, origins=ORIGINS), now, direction=heading, before=2)
        assert phases(mine)[0] in {MovePhase.READY, MovePhase.IN_FLIGHT}

    def test_so_it_is_at_rest(self):
        """Otherwise it would count as still draining in the queue."""
        now = seen(partition(0, 3, 1, 2), partition(1, 1, 2))
        mine = judged(judged_before(), now, ahead=[judged_before()])
        statuses = mine.assessment.statuses.by_partition
        found(mine, progress=measure(mine.record.moves, statuses, now.cluster, {}, Direction.FORWARD))
        assert at_rest(mine)

    def test_what_it_does_not_want_stays_its_own(self):
        """Partitions outside the plan of the rebalance ahead."""
        mine, other = judged_before(), judged_before()
        plan = Plan((other.record.loaded_run.plan.partitions[1],), Certificate(1, optimal=True))
        recorded(other, loaded_run=loaded_run_of(other.record.run, plan, "ref", {}))
        judged(mine, seen(partition(0, 1, 2), partition(1, 1, 2)), ahead=[other])
        assert phases(mine) == [MovePhase.READY, MovePhase.WAITING]


class Counted(dict):
    """Statuses that count how often one of them is looked up, or all of them are gone through."""

    looks = 0

    def get(self, key, default=None):
        self.looks += 1
        return super().get(key, default)

    def items(self):
        self.looks += 1
        return super().items()


# By partition: the first three have begun.
STATUSES = {
    tp(0): PartitionStatus(MovePhase.IN_FLIGHT, started=True),
    tp(1): PartitionStatus(MovePhase.READY, started=True),
    tp(2): PartitionStatus(MovePhase.WAITING, "CopyNotInSync", started=True),
    tp(3): PartitionStatus(MovePhase.WAITING, "MetadataMissing"),
    tp(4): PartitionStatus(MovePhase.READY),
    tp(5): PartitionStatus(MovePhase.DONE),
    tp(6): PartitionStatus(MovePhase.SKIPPED, "Drifted"),
    tp(7): PartitionStatus(MovePhase.READY),
}


FIRST = QueuePlace(place=Place(runs=True))


def left_to(others, mine):
    run = mine.record.loaded_run
    inputs = judge_inputs(mine, run, Direction.FORWARD, seen(partition(0, 1, 2)), frozenset(), others=others)
    return sorted(at.partition for at in inputs.left_to_others)


class TestLeftToOthers:
    """Partitions that a rebalance has skipped and another one moves."""

    def test_which(self):
        """What moves, what is between two steps, and what was just sent."""
        other = found(rebalance("other"), statuses=STATUSES, sent=frozenset({tp(7), tp(8)}), queue=FIRST)
        mine = found(rebalance(), statuses={tp(n): PartitionStatus(MovePhase.SKIPPED, "Drifted") for n in range(9)})
        assert left_to([other], mine) == [0, 1, 2, 7]

    def test_statuses_of_others_are_gone_through_once(self):
        """All rebalances of a cluster are judged without a pause of the event loop: each looks at all others."""
        statuses = Counted({tp(n): PartitionStatus(MovePhase.SKIPPED, "Drifted") for n in range(50)})
        other = found(rebalance("other"), statuses=statuses, queue=FIRST)
        statuses.looks = 0
        for name in "abc":
            mine = {tp(n): PartitionStatus(MovePhase.SKIPPED, "Drifted") for n in range(50)}
            assert left_to([other], found(rebalance(name), statuses=mine)) == []
        assert statuses.looks <= 1


class TestMoving:
    def test_what_moves_what_has_begun_and_what_was_sent(self):
        """These are read in every round; partitions that are done, skipped or not begun are not."""
        mine = found(rebalance(), statuses=STATUSES, sent=frozenset({tp(7)}))
        assert partitions_to_read(mine.assessment) == {tp(0), tp(1), tp(2), tp(3), tp(7)}


class TestInMotion:
    """What the health gate does not ask about."""

    @pytest.mark.parametrize(
        ("replicas", "adding", "started", "exempt"),
        [
            ((3, 1, 2), (3,), True, True),  # in flight
            ((3, 1, 2), (), True, True),  # above its replication factor: the drop follows
            ((3, 2), (), True, False),  # between two steps
            ((1, 2), (), False, False),  # the plan has not touched it
            ((1, 2, 4), (4,), False, False),  # another tool moves it
        ],
    )
    def test_in_flight_or_above_the_replication_factor(self, replicas, adding, started, exempt):
        """A broker that dies must stop the rest of a plan over all partitions."""
        mine = found(rebalance(), statuses={tp(0): PartitionStatus(MovePhase.WAITING, started=started)})
        state = PartitionState(tp(0), "", replicas_of(*replicas), frozenset(), None, replicas_of(*adding))
        assert set(exempt_from_health_gate(mine, {tp(0): state}, {tp(0): state})) == ({tp(0)} if exempt else set())

    def test_only_the_unhealthy_ones_are_looked_at(self):
        """The gate asks about no others, and a thousand partitions may be in flight."""
        mine = found(rebalance(), statuses={tp(0): PartitionStatus(MovePhase.IN_FLIGHT, started=True)})
        flying = PartitionState(tp(0), "", replicas_of(3, 1, 2), frozenset(), None, replicas_of(3))
        assert set(exempt_from_health_gate(mine, {tp(1): flying}, {tp(0): flying})) == set()

    def test_what_the_plan_skipped_without_a_leader(self):
        """spec.offlinePolicy Skip: it would close the gate for as long as it is offline."""
        mine = rebalance()
        run = mine.record.loaded_run
        skipped = (SkippedPartition(tp(7), Reason.NO_LEADER), SkippedPartition(tp(0), Reason.PINNED))
        recorded(mine, loaded_run=replace(run, plan=replace(run.plan, skipped=skipped)))
        assert set(exempt_from_health_gate(mine, {}, {})) == {tp(7)}
