"""Partitions are judged again where something that bears on them has changed, and only there."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, PartitionStatus
from kafka_rebalance.execution.progress import measure
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.judging import judge_again, moving, still_meant
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState, StepBlock
from kafka_rebalance.reconcile.state.records import open_run

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
ALIVE = {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2, 3, 4)}


def tp(number):
    return TopicPartition("t", number)


def partition(number, *replicas):
    ids = replicas_of(*replicas)
    return PartitionState(tp(number), "", ids, frozenset(ids), ids[0])


def seen(*states, alive=ALIVE, min_insync=1):
    return Observation(ClusterState("c", alive, {s.tp: s for s in states}), {"t": min_insync})


def work():
    mine = RebalanceState.of(
        {
            "metadata": {"name": "r", "namespace": "kafka", "uid": "u"},
            "spec": {"kafka": {"bootstrapServers": "kafka:9092"}},
        }
    )
    rows = tuple(PlannedPartition(tp(n), replicas_of(1, 2), replicas_of(3, 2)) for n in range(2))
    plan = Plan(rows, Certificate(2, optimal=True))
    mine.run = Run("u", "kafka", "r", "c", "run", mine.planning_hash, plan.hash, NOON)
    mine.open = open_run(mine.run, plan, "ref", {})
    judge_again(mine, seen(partition(0, 1, 2), partition(1, 1, 2)), Direction.FORWARD, frozenset(), ())
    return mine


def kinds(mine):
    return [mine.verdicts[tp(n)].phase for n in range(2)]


class TestJudgeAgain:
    def test_at_first_everything_is_judged(self):
        """Nothing is known yet."""
        assert kinds(work()) == [MovePhase.READY, MovePhase.READY]

    def test_then_only_what_reads_otherwise(self):
        """The other partition moved too, but nobody said so: its verdict is an older one, and is looked at again."""
        mine = work()
        moved = seen(partition(0, 3, 2), partition(1, 3, 2))
        judge_again(mine, moved, Direction.FORWARD, frozenset(), {tp(0)})
        assert kinds(mine) == [MovePhase.DONE, MovePhase.READY]

    @pytest.mark.parametrize(
        "change",
        [
            {"heading": Direction.ROLLBACK},
            {"hold": StepBlock(Reason.SUSPENDED, "")},
            {"seen": {"alive": {b: ALIVE[b] for b in list(ALIVE)[:2]}}},
            {"seen": {"min_insync": 2}},
            {"restarting": frozenset({BrokerId(1)})},
            {"execution": {"parallelReplicaCount": 2}},
        ],
    )
    def test_everything_again_where_something_else_counts_now(self, change):
        """Direction, hold, brokers, min.insync.replicas, who restarts, R."""
        mine = work()
        mine.hold = change.get("hold")
        if "execution" in change:
            metadata = {"name": "r", "namespace": "kafka", "uid": "u"}
            spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "execution": change["execution"]}
            mine.update({"metadata": metadata, "spec": spec})
        moved = seen(partition(0, 3, 2), partition(1, 3, 2), **change.get("seen", {}))
        heading = change.get("heading", Direction.FORWARD)
        judge_again(mine, moved, heading, change.get("restarting", frozenset()), ())
        fresh = work()
        fresh.hold, fresh.rebalance, fresh.judged_in = mine.hold, mine.rebalance, None
        judge_again(fresh, moved, heading, change.get("restarting", frozenset()), ())
        assert mine.verdicts == fresh.verdicts
        assert kinds(mine) != [MovePhase.READY, MovePhase.READY] or heading is Direction.ROLLBACK


class TestAhead:
    """Another rebalance of the same partitions has the turn."""

    @pytest.mark.parametrize("heading", [Direction.FORWARD, Direction.REVERT])
    @pytest.mark.parametrize("adding", [(3,), ()])
    def test_what_it_moves_is_left_to_it(self, heading, adding):
        """Neither a null for its copy nor a drop of one that has just arrived: they would undo each other for ever."""
        mine, other = work(), work()
        state = replace(partition(0, 3, 1, 2), adding=replicas_of(*adding))
        if adding:
            state = replace(state, isr=state.isr - set(state.adding), leader=BrokerId(1))
        now = seen(state, partition(1, 1, 2))
        judge_again(mine, now, heading, frozenset(), (), [other])
        assert (mine.verdicts[tp(0)].phase, mine.verdicts[tp(0)].reason) == (
            MovePhase.WAITING,
            Reason.FOREIGN_REASSIGNMENT,
        )
        assert other.name in mine.verdicts[tp(0)].message
        judge_again(mine, now, heading, frozenset(), ())
        assert mine.verdicts[tp(0)].phase in {MovePhase.READY, MovePhase.IN_FLIGHT}

    def test_so_it_is_at_rest(self):
        """Or it would take part in the queue as one that still drains."""
        mine, other = work(), work()
        now = seen(partition(0, 3, 1, 2), partition(1, 1, 2))
        judge_again(mine, now, Direction.FORWARD, frozenset(), (), [other])
        mine.progress = measure(mine.errands, mine.verdicts, now.cluster, {}, Direction.FORWARD)
        assert mine.at_rest

    def test_what_it_does_not_want_stays_its_own(self):
        """Partitions outside the plan of the one ahead."""
        mine, other = work(), work()
        plan = Plan((other.open.plan.partitions[1],), Certificate(1, optimal=True))
        other.open = open_run(other.run, plan, "ref", {})
        judge_again(mine, seen(partition(0, 1, 2), partition(1, 1, 2)), Direction.FORWARD, frozenset(), (), [other])
        assert kinds(mine) == [MovePhase.READY, MovePhase.WAITING]


class TestMoving:
    def test_what_moves_what_has_begun_and_what_was_sent(self):
        """These are read in every tick; what is done, left alone or not begun is not."""
        mine = work()
        mine.verdicts = {
            tp(0): PartitionStatus(MovePhase.IN_FLIGHT, started=True),
            tp(1): PartitionStatus(MovePhase.READY, started=True),
            tp(2): PartitionStatus(MovePhase.WAITING, "CopyNotInSync", started=True),
            tp(3): PartitionStatus(MovePhase.WAITING, "MetadataMissing"),
            tp(4): PartitionStatus(MovePhase.READY),
            tp(5): PartitionStatus(MovePhase.DONE),
            tp(6): PartitionStatus(MovePhase.SKIPPED, "Drifted"),
            tp(7): PartitionStatus(MovePhase.READY),
        }
        mine.sent = frozenset({tp(7)})
        assert moving(mine) == {tp(0), tp(1), tp(2), tp(3), tp(7)}


class TestStillMeant:
    def test_an_order_of_which_the_second_look_says_otherwise_is_not_sent(self):
        """Somebody was faster: the next round decides anew."""
        mine = work()
        before = dict(mine.verdicts)
        mine.verdicts = {**before, tp(0): replace(before[tp(0)], phase=MovePhase.WAITING, reason="ForeignReassignment")}
        orders = Orders(alters={tp(0): replicas_of(1, 2, 3), tp(1): replicas_of(1, 2, 3)})
        assert still_meant(orders, before, mine).alters == {tp(1): replicas_of(1, 2, 3)}

    def test_what_was_read_in_this_round_needs_no_second_look(self):
        """It is sent as it was decided."""
        mine = work()
        orders = Orders(cancels=(tp(0),), elections=(tp(1),))
        assert still_meant(orders, {}, mine) == orders
