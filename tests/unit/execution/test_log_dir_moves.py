"""The status of a replica that moves between log dirs, and which log dirs to ask for."""

from typing import ClassVar

import pytest

from kafka_rebalance.execution.log_dir_moves import (
    DirShift,
    LogDirReading,
    LogDirShare,
    LogDirStatus,
    LogDirStatuses,
    ReplicaPlace,
    judge_replica,
    log_dir_orders,
    measure_log_dirs,
    without_room,
)
from kafka_rebalance.execution.log_dir_progress import seconds_at_rate
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.model.plan import LogDirMove
from kafka_rebalance.model.run import Origin
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

TP, ONE = TopicPartition("t", 0), BrokerId(1)
A, B, C = "/a", "/b", "/c"
MOVE = LogDirMove(TP, ONE, A, B, A, 100)
COMES = LogDirMove(TP, ONE, None, B, None, 100)
LEAVES = LogDirMove(TP, ONE, A, None, A, 100)
SECOND = LogDirMove(TP, ONE, B, C, A, 100)
DONE = PartitionStatus(MovePhase.DONE)
SENT = Origin(TP, "id", replicas_of(1))
ASKED = Origin(TP, "id", replicas_of(1), log_dirs=((ONE, A),))
"""The run has sent something for the partition only, or has asked for another log dir too."""
EARLIER = Origin(TP, "id", replicas_of(1), log_dirs=None)
"""On record of an earlier version, which did not record log dirs."""
FORWARD, ROLLBACK, REVERT = Direction.FORWARD, Direction.ROLLBACK, Direction.REVERT


def reading(at, future=None, copied=0):
    places = {} if at is None else {(TP, ONE): ReplicaPlace(at, future, 100, copied)}
    return LogDirReading(frozenset({ONE}), places)


def judged(move, at, future=None, direction=FORWARD, partition=DONE, origin=ASKED, **more):
    return judge_replica(move, reading(at, future, 30), partition, direction, origin, **more)


class TestJudge:
    @pytest.mark.parametrize(
        ("move", "at", "future", "direction", "phase", "ask"),
        [
            (MOVE, A, None, FORWARD, MovePhase.READY, B),
            (MOVE, A, B, FORWARD, MovePhase.IN_FLIGHT, None),
            (MOVE, B, None, FORWARD, MovePhase.DONE, None),
            (MOVE, B, None, ROLLBACK, MovePhase.READY, A),
            (MOVE, B, A, ROLLBACK, MovePhase.IN_FLIGHT, None),
            (MOVE, A, None, ROLLBACK, MovePhase.DONE, None),
            (MOVE, A, B, ROLLBACK, MovePhase.READY, A),
            (MOVE, B, A, FORWARD, MovePhase.READY, B),
            (MOVE, A, B, REVERT, MovePhase.READY, A),
            (MOVE, B, A, REVERT, MovePhase.READY, B),
            (MOVE, B, None, REVERT, MovePhase.DONE, None),
            (MOVE, C, None, FORWARD, MovePhase.SKIPPED, None),
            (MOVE, C, None, ROLLBACK, MovePhase.SKIPPED, None),
            (MOVE, A, C, FORWARD, MovePhase.WAITING, None),
            (MOVE, A, C, REVERT, MovePhase.WAITING, None),
            (COMES, C, None, FORWARD, MovePhase.READY, B),
            (COMES, B, None, FORWARD, MovePhase.DONE, None),
            (COMES, B, None, ROLLBACK, MovePhase.DONE, None),
            (COMES, C, B, ROLLBACK, MovePhase.READY, C),
            (LEAVES, None, None, FORWARD, MovePhase.DONE, None),
            (LEAVES, C, None, ROLLBACK, MovePhase.READY, A),
            (LEAVES, A, None, ROLLBACK, MovePhase.DONE, None),
            (SECOND, C, None, ROLLBACK, MovePhase.READY, A),
            (SECOND, B, None, ROLLBACK, MovePhase.READY, A),
        ],
    )
    def test_by_where_it_is(self, move, at, future, direction, phase, ask):
        status = judged(move, at, future, direction)
        assert (status.phase, status.ask) == (phase, ask)
        assert status.cancel is (ask is not None and ask == at)

    @pytest.mark.parametrize("direction", [FORWARD, ROLLBACK, REVERT])
    @pytest.mark.parametrize(("at", "future"), [(A, B), (B, A)])
    @pytest.mark.parametrize("origin", [None, SENT])
    def test_a_copy_that_the_run_has_not_asked_for(self, origin, at, future, direction):
        """It is left alone, and no throttle is set for it, though it goes where the plan or the way back leads."""
        status = judged(MOVE, at, future, direction, origin=origin)
        assert (status.phase, status.reason, status.ask) == (MovePhase.WAITING, "ForeignReassignment", None)
        statuses = LogDirStatuses(direction, {MOVE.key: status})
        assert (statuses.unsettled, statuses.to_throttle) == ({ONE}, frozenset())

    def test_a_copy_to_where_an_earlier_plan_had_moved_it(self):
        """This plan asks neither for that log dir nor leads back to it."""
        assert judged(SECOND, A, B).reason == "ForeignReassignment"
        assert judged(SECOND, A, C).phase is MovePhase.IN_FLIGHT

    def test_a_copy_on_record_of_an_earlier_version(self):
        """What that version has asked for is not known."""
        assert judged(MOVE, A, B, REVERT, origin=EARLIER).cancel
        assert judged(MOVE, A, C, REVERT, origin=EARLIER).reason == "ForeignReassignment"

    @pytest.mark.parametrize(("direction", "phase"), [(ROLLBACK, MovePhase.IN_FLIGHT), (FORWARD, MovePhase.WAITING)])
    def test_a_replica_that_a_rollback_has_brought_back(self, direction, phase):
        """The broker has forgotten where to place it. No log dir is recorded before it is moved to its former one."""
        assert judged(LEAVES, C, A, direction, origin=SENT).phase is phase

    @pytest.mark.parametrize(("direction", "phase"), [(ROLLBACK, MovePhase.IN_FLIGHT), (REVERT, MovePhase.READY)])
    def test_a_replica_that_a_later_plan_has_brought_back_elsewhere(self, direction, phase):
        """An earlier plan had taken it off the broker: it was told the new log dir, so the old one is not on record."""
        back = LogDirMove(TP, ONE, None, B, A, 100)
        assert judged(back, B, A, direction, origin=SENT).phase is phase

    def test_what_is_to_be_throttled(self):
        statuses = LogDirStatuses(FORWARD, {MOVE.key: judged(MOVE, A)})
        assert statuses.to_throttle == {ONE}

    def test_a_broker_that_does_not_answer(self):
        status = judge_replica(MOVE, LogDirReading(), DONE, FORWARD, None)
        assert (status.phase, status.reason) == (MovePhase.WAITING, "LogDirsUnknown")

    def test_a_rollback_without_it(self):
        """A replica that the rollback removes needs no log dir: a broker that describes none holds up nothing."""
        assert judge_replica(COMES, LogDirReading(), DONE, ROLLBACK, SENT).phase is MovePhase.DONE
        for move, direction in ((MOVE, ROLLBACK), (COMES, REVERT), (COMES, FORWARD)):
            assert judge_replica(move, LogDirReading(), DONE, direction, SENT).phase is MovePhase.WAITING

    def test_its_partition_comes_first(self):
        """A replica that is being reassigned would be copied for nothing."""
        assert judged(MOVE, A, partition=PartitionStatus(MovePhase.IN_FLIGHT)).phase is MovePhase.WAITING
        skipped = PartitionStatus(MovePhase.SKIPPED, "Drifted", "moved by others")
        assert judged(MOVE, A, partition=skipped) == LogDirStatus(MovePhase.SKIPPED, "Drifted", "moved by others")

    def test_a_pause_starts_nothing_and_cancels_still(self):
        assert judged(MOVE, A, paused=True).reason == "Paused"
        assert judged(MOVE, A, B, ROLLBACK, paused=True).cancel
        assert judged(MOVE, A, B, paused=True).phase is MovePhase.IN_FLIGHT

    def test_a_replica_in_no_log_dir_that_is_online(self):
        assert judged(MOVE, None).reason == "LogDirOffline"

    def test_what_a_rollback_would_copy(self):
        assert judged(MOVE, B).away_bytes == 100
        assert judged(MOVE, A, B).away_bytes == 0
        assert judged(MOVE, C).away_bytes == 0
        assert judged(COMES, B).away_bytes == 0


def ready(ask, *, cancel=False):
    return LogDirStatus(MovePhase.READY, ask=ask, cancel=cancel)


def asked(statuses, seen, *more, per_broker=5):
    shares = [LogDirShare(LogDirStatuses(FORWARD, found), per_broker) for found in (statuses, *more)]
    return [{str(tp): path for (tp, _), path in orders.asks.items()} for orders in log_dir_orders(shares, seen)]


def key(number, broker=1):
    return TopicPartition("t", number), BrokerId(broker)


class TestOrders:
    def test_copies_of_other_tools_count(self):
        seen = LogDirReading(flying={ONE: 2})
        assert asked({key(n): ready(B) for n in range(5)}, seen, per_broker=4) == [{"t-0": B, "t-1": B}]

    def test_the_limit_is_that_of_each_broker(self):
        statuses = {key(n, n % 2): ready(B) for n in range(6)}
        assert len(asked(statuses, LogDirReading(), per_broker=2)[0]) == 4

    def test_rebalances_share_it(self):
        first, second = {key(n): ready(B) for n in range(2)}, {key(n): ready(B) for n in range(2, 5)}
        assert asked(first, LogDirReading(), second, per_broker=3) == [{"t-0": B, "t-1": B}, {"t-2": B}]

    def test_a_cancellation_is_never_held_back(self):
        seen = LogDirReading(flying={ONE: 9}, room={(ONE, A): 0})
        assert asked({key(0): ready(A, cancel=True)}, seen, per_broker=1) == [{"t-0": A}]

    def test_only_what_fits_in_its_new_log_dir(self):
        places = {key(n): ReplicaPlace(A, None, 100) for n in range(3)}
        seen = LogDirReading(places=places, room={(ONE, B): 250})
        statuses = {key(n): ready(B) for n in range(3)}
        assert asked(statuses, seen) == [{"t-0": B, "t-1": B}]
        full = log_dir_orders([LogDirShare(LogDirStatuses(FORWARD, statuses), 5)], seen)[0].no_room
        assert full == {key(2)}

    def test_room_is_left_for_what_has_to_come_first(self):
        """0 fits into B only when 1 has left it, and 1 goes to C only while 2 has not taken its room."""
        places = {
            key(0): ReplicaPlace(A, None, 100),
            key(1): ReplicaPlace(B, None, 100),
            key(2): ReplicaPlace(A, None, 60),
        }
        seen = LogDirReading(places=places, room={(ONE, A): 0, (ONE, B): 0, (ONE, C): 100})
        statuses = {key(0): ready(B), key(1): ready(C), key(2): ready(C)}
        assert asked(statuses, seen) == [{"t-1": C}]


class Counted(tuple):
    """A replica's key; notes each look at its broker."""

    __slots__ = ()
    looks: ClassVar[list[int]] = []

    def __getitem__(self, at):
        self.looks.append(at)
        return super().__getitem__(at)


class TestManyBrokers:
    def test_each_replica_is_looked_at_for_its_own_broker_only(self):
        """A server may claim 1,500 brokers and 150,000 replicas."""
        keys = [Counted((TopicPartition("t", n), BrokerId(n % 100))) for n in range(1000)]
        places = {key: ReplicaPlace(A, None, 100) for key in keys}
        room = {(BrokerId(broker), B): 300 for broker in range(100)}
        statuses = LogDirStatuses(FORWARD, {key: ready(B) for key in keys})
        Counted.looks.clear()
        found = log_dir_orders([LogDirShare(statuses, 2)], LogDirReading(places=places, room=room))[0]
        assert len(found.asks) == 200
        assert len(Counted.looks) < 10_000


class TestRoom:
    def test_an_exchange_without_room_on_either_side(self):
        rows = [DirShift(TopicPartition("t", 0), A, B, 100), DirShift(TopicPartition("t", 1), B, A, 100)]
        assert without_room(rows, {A: 50, B: 50}) == [A, B]
        assert without_room(rows, {A: 50, B: 100}) == []
        assert without_room(rows, {}) == []


class TestProgress:
    def test_counts_and_bytes(self):
        moves = [LogDirMove(*key(n), A, B, A, 100) for n in range(4)]
        found = {
            key(0): LogDirStatus(MovePhase.DONE),
            key(1): LogDirStatus(MovePhase.IN_FLIGHT, copied_bytes=30),
            key(2): LogDirStatus(MovePhase.SKIPPED),
            key(3): LogDirStatus(MovePhase.WAITING),
        }
        progress = measure_log_dirs(moves, LogDirStatuses(FORWARD, found), FORWARD)
        assert (progress.total, progress.completed, progress.in_flight) == (3, 1, 1)
        assert (progress.bytes_total, progress.bytes_moved, dict(progress.bytes_left)) == (300, 130, {ONE: 170})
        assert seconds_at_rate(progress.bytes_left, 10) == 17
        assert seconds_at_rate(progress.bytes_left, None) == 0

    def test_the_way_back_is_that_to_before_the_run(self):
        moves = [SECOND, COMES, LEAVES, LogDirMove(TP, ONE, A, A, A, 100)]
        assert measure_log_dirs(moves, LogDirStatuses(), ROLLBACK).bytes_total == 100
        assert measure_log_dirs(moves, LogDirStatuses(), FORWARD).bytes_total == 100
        assert measure_log_dirs(moves, LogDirStatuses(), REVERT).bytes_total == 0

    def test_finished_on_this_way_only(self):
        """What was judged on the way forward says nothing about the way back."""
        found = LogDirStatuses(FORWARD, {MOVE.key: LogDirStatus(MovePhase.DONE)})
        assert found.finished(FORWARD, [MOVE])
        assert not found.finished(ROLLBACK, [MOVE])
        assert not LogDirStatuses().finished(FORWARD, [MOVE])
        assert LogDirStatuses().finished(FORWARD, [])
