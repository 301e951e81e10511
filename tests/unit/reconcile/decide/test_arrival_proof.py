"""How long a run waits before it ends, depending on the calls that it has sent."""

from dataclasses import replace

import pytest
from tests.fakes.found_by_rounds import found, recorded
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.log_dir_moves import LogDirStatus, LogDirStatuses
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.progress import Progress
from kafka_rebalance.kafka.ports import CALL_SECONDS
from kafka_rebalance.model.plan import Certificate, LogDirMove, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.arrival_proof import (
    HUNG_SECONDS,
    SECOND_READING_SECONDS,
    has_come_to_rest,
    late_call_possible,
    leading_back,
    may_hang,
    proof_seconds,
)
from kafka_rebalance.reconcile.state.assessment import StepBlock
from kafka_rebalance.reconcile.state.judgement import JudgeInputs
from kafka_rebalance.reconcile.state.memory import Memory
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of

TP = TopicPartition("t", 0)
DONE = {TP: PartitionStatus(MovePhase.DONE)}


def arrived(
    origin=None, *, back=False, target=(2,), elects=False, first_call=(), direction=Direction.ROLLBACK, deleted=False
):
    """A run that leads t-0 from broker 1 to ``target`` (``back``: goes back), which is there. ``origin``: on record.

    ``deleted``: it goes back because it is deleted, and not because of an undo.
    """
    metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
    metadata |= {"deletionTimestamp": NOON.isoformat()} if deleted else {}
    rebalance = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
    run = Run("u-1", "kafka", "r", "c", "run", "h", "p", NOON, undo=back and not deleted)
    row = PlannedPartition(TP, replicas_of(1), replicas_of(*target), elects=elects)
    plan = Plan((row,), Certificate(1, optimal=True))
    origins = {} if origin is None else {TP: Origin(TP, "", replicas_of(*origin), first_call=replicas_of(*first_call))}
    loaded = loaded_run_of(run, plan, "ref", origins, back=back)
    recorded(rebalance, run=run, was_read=True, loaded_run=loaded, origins=origins)
    return found(rebalance, statuses=DONE, direction=direction if back else Direction.FORWARD)


class TestForward:
    def test_the_run_has_sent_it(self):
        assert proof_seconds(arrived((1,))) == 0

    @pytest.mark.parametrize("elects", [False, True])
    def test_nothing_is_on_record(self, elects):
        assert proof_seconds(arrived(elects=elects, target=(1,) if elects else (2,))) == SECOND_READING_SECONDS

    def test_an_earlier_plan_has_sent_something(self):
        """An earlier plan recorded the origin, so the target may be a former place of the partition."""
        assert proof_seconds(arrived((2,))) == SECOND_READING_SECONDS

    def test_nothing_is_to_be_sent(self):
        assert proof_seconds(arrived(target=(1,))) == 0

    def test_a_partition_that_has_not_arrived_proves_nothing(self):
        waiting = found(arrived(), statuses={TP: PartitionStatus(MovePhase.WAITING)})
        assert proof_seconds(waiting) == 0


class TestBack:
    def test_the_run_has_led_it_back(self):
        rebalance = arrived((1,), back=True)
        rebalance.memory = replace(rebalance.memory, led_back=frozenset({TP}))
        assert proof_seconds(rebalance) == 0

    @pytest.mark.parametrize(
        ("deleted", "phase", "seconds"),
        [(True, MovePhase.DONE, CALL_SECONDS), (True, MovePhase.SKIPPED, 0), (False, MovePhase.DONE, 0)],
    )
    def test_a_replica_may_still_move(self, deleted, phase, seconds):
        """A broker may still carry that out, although the replica is where it was. An undo has seen all of it."""
        rebalance, one = arrived((1,), back=True, deleted=deleted), BrokerId(1)
        rebalance.memory = replace(rebalance.memory, led_back=frozenset({TP}))
        moves = (LogDirMove(TP, one, "/a", "/b", "/a"),)
        rebalance.record = replace(rebalance.record, loaded_run=replace(rebalance.record.loaded_run, log_dirs=moves))
        found(rebalance, log_dirs=LogDirStatuses(Direction.ROLLBACK, {(TP, one): LogDirStatus(phase)}))
        assert proof_seconds(rebalance) == seconds

    def test_nothing_was_sent_on_the_way_back(self):
        assert proof_seconds(arrived((1,), back=True)) == CALL_SECONDS

    def test_a_revert_leaves_what_is_complete(self):
        assert proof_seconds(arrived((1,), back=True, direction=Direction.REVERT)) == SECOND_READING_SECONDS

    @pytest.mark.parametrize("direction", [Direction.ROLLBACK, Direction.REVERT])
    def test_a_first_call_may_still_be_carried_out(self, direction):
        assert proof_seconds(arrived((1,), back=True, first_call=(1, 2), direction=direction)) == CALL_SECONDS

    def test_only_a_leader_was_elected(self):
        assert proof_seconds(arrived((1,), back=True, first_call=(1,))) == 0


class TestLateCalls:
    def test_no_call_has_failed(self):
        assert not late_call_possible(arrived((1,)), now=0.0)

    @pytest.mark.parametrize(("seconds", "possible"), [(0, True), (CALL_SECONDS - 1, True), (CALL_SECONDS, False)])
    def test_a_call_has_failed(self, seconds, possible):
        """Even if a later call has led the partition back."""
        rebalance = arrived((1,), back=True)
        rebalance.memory = replace(rebalance.memory, led_back=frozenset({TP}), unanswered_at=100.0)
        assert late_call_possible(rebalance, now=100.0 + seconds) is possible


class TestBrokerThatHangs:
    @pytest.mark.parametrize(
        ("live", "seconds", "possible"),
        [((1, 2), 0, True), ((1, 2), HUNG_SECONDS - 1, True), ((1, 2), HUNG_SECONDS, False), ((1, 2, 3), 0, False)],
    )
    def test_may_have_the_call(self, live, seconds, possible):
        memory = Memory(failed_at=100.0, called=frozenset({1, 2, 3}))
        assert may_hang(memory, live, 100.0 + seconds) is possible

    def test_no_call_has_failed(self):
        assert not may_hang(Memory(), (1, 2), 0.0)


class TestLeadingBack:
    """By the call, and for a null by the list that Kafka restores."""

    @pytest.mark.parametrize(
        ("replicas", "adding", "call", "leads"),
        [
            ((2,), (), (1,), True),
            ((2,), (), (2, 1), False),
            ((1, 2), (2,), None, True),
            ((2, 1), (2,), None, True),
            ((2, 3), (3,), None, False),
        ],
    )
    def test_calls(self, replicas, adding, call, leads):
        move = arrived((1,)).record.moves[0]
        held = replicas_of(*replicas)
        state = PartitionState(TP, "id", held, frozenset(held), held[0], adding=replicas_of(*adding))
        alters = {} if call is None else {TP: replicas_of(*call)}
        assert leading_back([move], alters, ClusterState("c", {}, {TP: state})) == ({TP} if leads else set())


class TestComingToRest:
    """A run whose connection is refused claims nothing any more once it rests, so nothing of it may be moving then."""

    @staticmethod
    def refused(status, dirs=None, *, adding=(), unread=(), log_dirs_on_record=()):
        mine = arrived((1,))
        origins = {tp: replace(row, log_dirs=log_dirs_on_record) for tp, row in mine.record.origins.items()}
        recorded(mine, origins=origins)
        move = LogDirMove(TP, BrokerId(2), "/a", "/b", "/a")
        log_dirs = (move,) if dirs is not None else ()
        run = replace(mine.record.run, started_at=NOON)
        recorded(mine, run=run, loaded_run=replace(mine.record.loaded_run, run=run, log_dirs=log_dirs))
        mine.refusal = Refused(Reason.CONNECTION_NOT_PERMITTED, "not permitted")
        progress = Progress(1, 0, 0, 1, 0, 1, 0, 1, 0, 0)
        found(mine, statuses={TP: status}, progress=progress, log_dirs=dirs or LogDirStatuses())
        found(mine, step_block=StepBlock(Reason.CONNECTION_NOT_PERMITTED, "not permitted"))
        loaded, unread = mine.record.loaded_run, frozenset(unread)
        inputs = JudgeInputs(loaded, Direction.FORWARD, True, 1, {}, frozenset(), {}, {}, unread)
        statuses = mine.assessment.statuses.under(paused=True)
        judgement = replace(mine.assessment.judgement, statuses=statuses, inputs=inputs)
        mine.assessment = replace(mine.assessment, judgement=judgement)
        held = replicas_of(1, *adding)
        state = PartitionState(TP, "id", held, frozenset(held), held[0], adding=replicas_of(*adding))
        return has_come_to_rest(mine, {TP: state}, 1000.0)

    @pytest.mark.parametrize(
        ("status", "rests"),
        [
            (PartitionStatus(MovePhase.READY, pausable=True), True),
            (PartitionStatus(MovePhase.WAITING, Reason.FOREIGN_REASSIGNMENT), True),
            (PartitionStatus(MovePhase.IN_FLIGHT, started=True), False),
            (PartitionStatus(MovePhase.READY, Reason.CANCELLING, cancel=True, started=True, pausable=True), False),
            (PartitionStatus(MovePhase.WAITING, Reason.METADATA_MISSING), False),
            (PartitionStatus(MovePhase.WAITING, Reason.TOPIC_FORBIDDEN), False),
        ],
    )
    def test_no_reassignment_may_be_in_flight(self, status, rests):
        assert self.refused(status) is rests

    @pytest.mark.parametrize(
        "reason",
        [
            Reason.TARGET_BROKER_UNAVAILABLE,
            Reason.COPY_NOT_IN_SYNC,
            Reason.PAUSED,
            Reason.CANCEL_BELOW_MIN_INSYNC_REPLICAS,
        ],
    )
    @pytest.mark.parametrize(("adding", "unread", "rests"), [((), (), True), ((2,), (), False), ((), ("t",), False)])
    def test_a_partition_between_two_steps_may_wait_for_ever(self, reason, adding, unread, rests):
        """Whether anything of it is in flight shows the reading, not what it waits for."""
        status = PartitionStatus(MovePhase.WAITING, reason, started=True)
        assert self.refused(status, adding=adding, unread=unread) is rests

    def test_a_topic_that_was_not_read(self):
        """By the reading before, no step was sent."""
        assert not self.refused(PartitionStatus(MovePhase.WAITING, Reason.PAUSED), unread=("t",))

    @pytest.mark.parametrize(
        ("status", "rests"),
        [
            (LogDirStatus(MovePhase.WAITING, Reason.PAUSED), True),
            (LogDirStatus(MovePhase.WAITING, Reason.FOREIGN_REASSIGNMENT), True),
            (LogDirStatus(MovePhase.READY, Reason.CANCELLING, cancel=True), False),
        ],
    )
    def test_no_copy_between_log_dirs_may_be_in_flight(self, status, rests):
        ready = PartitionStatus(MovePhase.READY, pausable=True)
        assert self.refused(ready, LogDirStatuses(Direction.FORWARD, {(TP, BrokerId(2)): status})) is rests
        assert not self.refused(ready, LogDirStatuses())

    @pytest.mark.parametrize(("on_record", "rests"), [((), True), (((BrokerId(2), "/a"),), False), (None, False)])
    def test_log_dirs_that_cannot_be_read(self, on_record, rests):
        """They matter if the run may have asked for another log dir there."""
        unknown = LogDirStatus(MovePhase.WAITING, Reason.LOG_DIRS_UNKNOWN)
        dirs = LogDirStatuses(Direction.FORWARD, {(TP, BrokerId(2)): unknown})
        ready = PartitionStatus(MovePhase.READY, pausable=True)
        assert self.refused(ready, dirs, log_dirs_on_record=on_record) is rests
