"""When it is put on record that a run lets others move its partitions first, and what it leaves to them then."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.fakes.counted_progress import measure
from tests.fakes.found_by_rounds import found, recorded, remembered
from tests.unit.reconcile.decide.test_queue_places import WAITING, in_line, lined_up, place_given_up, resource, running

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, PartitionStatus
from kafka_rebalance.execution.queue_order import Place
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.arrival_proof import unsettled_topics
from kafka_rebalance.reconcile.decide.direction import at_rest
from kafka_rebalance.reconcile.decide.given_up_places import left_to_others, open_to_others
from kafka_rebalance.reconcile.decide.judging import judge_again, judge_inputs
from kafka_rebalance.reconcile.decide.queue_places import is_to_give_up_place
from kafka_rebalance.reconcile.observe.observer import Changes
from kafka_rebalance.reconcile.state.assessment import QueuePlace, Replanning, RollbackBarrier, StepBlock
from kafka_rebalance.reconcile.state.judgement import Statuses
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
NOW = 10_000.0
TP = TopicPartition("t", 0)
LIVE = {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2, 3, 4)}
SUSPENDED = StepBlock(Reason.SUSPENDED, "spec.suspend is set", gives_up_place=True)
QUEUED = StepBlock(Reason.QUEUED, "kafka/other goes first")
WAITS = Place(runs=False, behind="kafka/other", position=1)
RUNS = Place(runs=True)


def rebalance(**run):
    """Its run leads the partition from ``[1, 2]`` to ``[2, 3]``, and has its origin on record."""
    metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
    mine = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
    plan = Plan((PlannedPartition(TP, replicas_of(1, 2), replicas_of(2, 3)),), Certificate(1, optimal=True))
    origins = {TP: Origin(TP, "", replicas_of(1, 2), BrokerId(1))}
    record = replace(Run("u-1", "kafka", "r", "c", "run", "h", plan.hash, NOON, started_at=NOON), **run)
    return recorded(mine, run=record, loaded_run=loaded_run_of(record, plan, "ref", origins), origins=origins)


def seen(*replicas, adding=(), removing=(), alive=LIVE):
    ids = replicas_of(*replicas)
    held = frozenset(ids) - frozenset(replicas_of(*adding))
    state = PartitionState(TP, "", ids, held, ids[0], replicas_of(*adding), replicas_of(*removing))
    return Observation(ClusterState("c", alive, {TP: state}), {"t": 1})


AT_REST = seen(1, 2)
COPYING = seen(2, 3, 1, adding=(3,))
TO_A_DEAD_BROKER = seen(1, 2, 3, adding=(3,), alive={b: LIVE[b] for b in (1, 2, 4)})


def judged(mine, now, direction=Direction.REVERT):
    inputs = judge_inputs(mine, mine.record.loaded_run, direction, now, frozenset())
    reading = mine.assessment.judgement.reading + 1
    changes = Changes(frozenset({TP}), reading - 1, reading)
    found(mine, judgement=judge_again(mine.assessment.judgement, inputs, now, changes, NOON))
    statuses = mine.assessment.statuses.by_partition
    return found(mine, progress=measure(mine.record.moves, statuses, now.cluster, {}, direction))


def status(mine):
    return mine.assessment.statuses.by_partition[TP]


def waiting(now=AT_REST, block=QUEUED, place=WAITS, direction=Direction.FORWARD, **run):
    return judged(found(rebalance(**run), step_block=block, queue=QueuePlace(place=place)), now, direction)


class TestRecord:
    """Whether it is to be recorded that the run has given up its place."""

    def test_it_waits_for_another_one(self):
        assert is_to_give_up_place(waiting(), NOW)

    def test_its_own_resource_holds_it_back(self):
        assert is_to_give_up_place(waiting(block=SUSPENDED, place=RUNS), NOW)

    @pytest.mark.parametrize("place", [RUNS, None])
    def test_not_in_its_turn(self, place):
        assert not is_to_give_up_place(waiting(place=place), NOW)

    @pytest.mark.parametrize("run", [{"started_at": None}, {"rested": True}, {"place_given_up": True}])
    def test_not_if_it_has_sent_nothing_or_it_is_recorded(self, run):
        assert not is_to_give_up_place(waiting(**run), NOW)

    @pytest.mark.parametrize("direction", list(Direction))
    def test_not_while_something_of_it_is_in_flight(self, direction):
        assert not is_to_give_up_place(waiting(COPYING, direction=direction), NOW)

    def test_while_its_topic_cannot_be_read(self):
        """It is at rest for the queue, so that others may begin."""
        mine = waiting()
        unread = PartitionStatus(MovePhase.WAITING, Reason.TOPIC_FORBIDDEN, started=True)
        found(mine, judgement=replace(mine.assessment.judgement, statuses=Statuses.of({TP: unread})))
        assert is_to_give_up_place(mine, NOW)

    def test_one_that_has_finished_and_cannot_be_closed(self):
        """Nothing is left to do, and others must not wait until its throttle is gone."""
        mine = waiting(direction=Direction.REVERT)
        assert mine.assessment.finished
        assert is_to_give_up_place(mine, NOW)

    def test_one_that_is_tried_again_later(self):
        mine = waiting(block=StepBlock(Reason.CLUSTER_UNHEALTHY, ""), place=RUNS)
        assert not is_to_give_up_place(mine, NOW)
        assert is_to_give_up_place(remembered(mine, problem=Refused("UnknownBroker", "7"), retry_at=NOW + 10), NOW)

    def test_not_while_a_call_may_be_executed_late(self):
        mine = waiting()
        mine.memory = replace(mine.memory, unanswered_at=NOW - 1)
        assert not is_to_give_up_place(mine, NOW)


class TestLeft:
    """What is in flight on its partitions while it has given up its place."""

    @pytest.mark.parametrize("direction", list(Direction))
    def test_it_is_at_rest_whatever_moves(self, direction):
        assert at_rest(judged(rebalance(place_given_up=True), COPYING, direction))
        assert not at_rest(judged(rebalance(), COPYING, direction))

    def test_a_copy(self):
        assert status(judged(rebalance(), COPYING)).cancel
        left = status(judged(rebalance(place_given_up=True), COPYING))
        assert (left.phase, left.reason, left.cancel) == (MovePhase.WAITING, Reason.FOREIGN_REASSIGNMENT, False)

    def test_not_a_copy_to_a_broker_that_is_gone(self):
        """It never ends: in its turn, the run cancels it."""
        assert status(judged(rebalance(place_given_up=True), TO_A_DEAD_BROKER)).cancel

    @pytest.mark.parametrize("block", [SUSPENDED, None])
    def test_during_a_pause_also_a_replica_above_the_replication_factor(self, block):
        mine = judged(found(rebalance(place_given_up=True), step_block=block), seen(1, 2, 3), Direction.ROLLBACK)
        assert status(mine).phase is (MovePhase.WAITING if block else MovePhase.READY)

    @pytest.mark.parametrize("block", [SUSPENDED, None])
    def test_there_is_nothing_to_revert(self, block):
        """A new plan is made although others have left a replica more, or another order."""
        mine = judged(found(rebalance(place_given_up=True), step_block=block), seen(1, 2, 3))
        assert (status(mine).phase, status(mine).reason) == (MovePhase.SKIPPED, Reason.LEFT_IN_PLACE)
        assert status(judged(found(rebalance(), step_block=block), seen(1, 2, 3))).phase is MovePhase.READY

    @pytest.mark.parametrize("away", [frozenset(), frozenset({BrokerId(3)})])
    def test_a_copy_to_a_broker_that_restarts_stays(self, away):
        mine = judged(rebalance(place_given_up=True), COPYING)
        recorded(mine, run=replace(mine.record.run, place_given_up=False))
        now = seen(2, 3, 1, adding=(3,), alive={b: LIVE[b] for b in (1, 2, 4)})
        inputs = judge_inputs(mine, mine.record.loaded_run, Direction.REVERT, now, away)
        assert inputs.left_in_motion == ({TP} if away else set())

    def test_until_it_is_at_rest_when_the_run_has_sent_something(self):
        mine = judged(rebalance(place_given_up=True), COPYING)
        recorded(mine, run=replace(mine.record.run, place_given_up=False))
        assert left_to_others(mine, COPYING) == {TP}
        judged(mine, COPYING)
        assert not status(mine).cancel
        assert open_to_others(mine) == {TP}
        judged(mine, AT_REST)
        assert open_to_others(mine) == set()
        assert status(judged(mine, COPYING)).cancel

    def test_nothing_else(self):
        assert left_to_others(judged(rebalance(), COPYING), COPYING) == set()


class TestUnsettled:
    """The topics in which something of the run may be in flight when it is recorded."""

    @staticmethod
    def unsettled(now, status):
        mine = waiting()
        found(mine, judgement=replace(mine.assessment.judgement, statuses=Statuses.of({TP: status})))
        return unsettled_topics(mine, now.cluster.partitions)

    @pytest.mark.parametrize("reason", [Reason.CANCEL_IMPOSSIBLE, Reason.FOREIGN_REASSIGNMENT])
    def test_by_a_copy_that_waits(self, reason):
        """It cannot be cancelled, or another run went first with it before the operator was restarted."""
        assert self.unsettled(COPYING, PartitionStatus(MovePhase.WAITING, reason)) == {"t"}

    def test_by_a_topic_that_cannot_be_read(self):
        assert self.unsettled(AT_REST, PartitionStatus(MovePhase.WAITING, Reason.TOPIC_FORBIDDEN)) == {"t"}

    def test_not_by_what_others_move(self):
        others = PartitionStatus(MovePhase.WAITING, Reason.FOREIGN_REASSIGNMENT)
        assert self.unsettled(seen(1, 2, 4, adding=(4,)), others) == set()

    def test_not_at_rest(self):
        assert self.unsettled(AT_REST, PartitionStatus(MovePhase.WAITING, Reason.FOREIGN_REASSIGNMENT)) == set()


class TestQueue:
    """The places of others."""

    @pytest.mark.parametrize("deleting", [False, True])
    def test_one_that_has_given_up_its_place_waits_after_a_start(self, deleting):
        """The places of the other process are not known. The one that may copy comes to rest first."""
        first, second = running("first", deleting=deleting), running("second")
        assert lined_up(first, second)["first"].runs
        place_given_up(first)
        for each in (first, second):
            found(each, queue=QueuePlace())
        places = in_line(first, second)
        assert not places["first"].runs
        assert (places["second"].runs, places["second"].yields) == (not deleting, deleting)

    @pytest.mark.parametrize(
        "waits", [{"barrier": RollbackBarrier.TOO_LARGE}, {"replanning": Replanning(Reason.SUPERSEDED)}]
    )
    def test_what_is_left_in_place_for_now_is_claimed(self, waits):
        """The rollback may go on when a decision is made, and the new plan may move it."""
        left = PartitionStatus(MovePhase.SKIPPED, Reason.LEFT_IN_PLACE)
        first, second = running("first", left), running("second")
        assert lined_up(first, second)["first"].runs
        assert lined_up(first, second)["second"].runs
        found(first, **waits)
        assert not lined_up(first, second)["first"].runs

    def test_what_a_revert_leaves_in_place_is_claimed_until_it_has_ended(self):
        """But not if it was at rest before, and others may have begun."""
        left = PartitionStatus(MovePhase.SKIPPED, Reason.LEFT_IN_PLACE)
        first, second = running("first", left), running("second")
        found(first, judgement=replace(first.assessment.judgement, direction=Direction.REVERT))
        assert not lined_up(first, second)["first"].runs or not lined_up(first, second)["second"].runs
        place_given_up(first)
        assert in_line(first, second)["second"].runs

    def test_others_wait_until_it_is_recorded_that_the_place_is_given_up(self):
        """Else it would take their copies for its own after a restart."""
        first = found(running("first", WAITING), step_block=StepBlock(Reason.SUSPENDED, "", gives_up_place=True))
        assert not in_line(first, resource("second"))["second"].runs
        place_given_up(first)
        assert in_line(first, resource("second"))["second"].runs
