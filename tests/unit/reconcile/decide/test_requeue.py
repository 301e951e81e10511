"""How long the engine sleeps unless it is woken up."""

from datetime import UTC, datetime

import pytest
from tests.fakes.counted_progress import measure
from tests.fakes.found_by_rounds import found, recorded, remembered

from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import ClusterState, TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.requeue import (
    BUSY_SECONDS,
    FOREIGN_SECONDS,
    IDLE_SECONDS,
    RESTING_SECONDS,
    SENT_SECONDS,
    UNSETTLED_SECONDS,
    requeue_after,
)
from kafka_rebalance.reconcile.state.assessment import StepBlock
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
TP = TopicPartition("t", 0)


def rebalance():
    return Rebalance.of(
        {
            "metadata": {"name": "r", "namespace": "kafka", "uid": "u"},
            "spec": {"kafka": {"bootstrapServers": "kafka:9092"}},
        }
    )


def running(phase):
    mine = rebalance()
    plan = Plan((PlannedPartition(TP, replicas_of(1, 2), replicas_of(3, 2)),), Certificate(1, optimal=True))
    run = Run("u", "kafka", "r", "c", "run-1", mine.desired.planning_hash, plan.hash, NOON, started_at=NOON)
    recorded(mine, run=run, loaded_run=loaded_run_of(run, plan, "plan-0", {}))
    statuses = {TP: PartitionStatus(phase)}
    progress = measure(mine.record.moves, statuses, ClusterState("c", {}), {}, Direction.FORWARD)
    return found(mine, statuses=statuses, progress=progress)


def blocked():
    return found(running(MovePhase.WAITING), step_block=StepBlock(Reason.SUSPENDED, "spec.execution.suspend is set"))


def deleted_meanwhile():
    metadata = {"name": "r", "namespace": "kafka", "uid": "u", "deletionTimestamp": NOON.isoformat()}
    return Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})


def waiting(seconds):
    return remembered(rebalance(), problem=Transient(Reason.KAFKA_UNREACHABLE, "nobody answers"), retry_at=seconds)


def pause(*rebalances, sent=None, ledger_empty=True, limits_others=False):
    """``sent``: how many seconds ago something was sent; None: never."""
    sent_at = float("-inf") if sent is None else -sent
    last = {"sent": sent == 0, "sent_at": sent_at}
    return requeue_after(rebalances, 0.0, **last, ledger_empty=ledger_empty, limits_others=limits_others)


class TestPause:
    @pytest.mark.parametrize(
        ("sent", "seconds"),
        [
            (0, SENT_SECONDS),
            (0.04, SENT_SECONDS - 0.04),
            (0.1, SENT_SECONDS / 2),
            (1, 0.25),
            (2, BUSY_SECONDS),
            (None, BUSY_SECONDS),
        ],
    )
    def test_while_something_moves(self, sent, seconds):
        """After a submission the next look is soon: small copies complete quickly. Large ones are looked at less often.

        A copy that has arrived waits for at most a quarter of the time that it took.

        The rest of the round counts: what it took has passed for the copies as well.
        """
        assert pause(running(MovePhase.IN_FLIGHT), sent=sent) == pytest.approx(seconds)

    def test_one_that_moves_is_enough(self):
        assert pause(blocked(), running(MovePhase.IN_FLIGHT)) == BUSY_SECONDS

    @pytest.mark.parametrize(("limits_others", "seconds"), [(False, RESTING_SECONDS), (True, FOREIGN_SECONDS)])
    def test_while_all_that_is_open_rests(self, limits_others, seconds):
        """New foreign reassignments must be throttled soon."""
        assert pause(blocked(), limits_others=limits_others) == seconds

    @pytest.mark.parametrize(
        ("ledger_empty", "limits_others", "seconds"),
        [(True, False, IDLE_SECONDS), (False, False, UNSETTLED_SECONDS), (True, True, FOREIGN_SECONDS)],
        ids=["idle", "a throttle is left", "others are throttled"],
    )
    def test_while_nothing_is_open(self, ledger_empty, limits_others, seconds):
        assert pause(rebalance(), ledger_empty=ledger_empty, limits_others=limits_others) == seconds

    @pytest.mark.parametrize(
        ("retry", "seconds"), [(-5.0, BUSY_SECONDS), (7.0, 7.0), (60.0, IDLE_SECONDS)], ids=["due", "soon", "late"]
    )
    def test_until_a_problem_is_tried_again(self, retry, seconds):
        """Never immediately, and never longer than the other rebalances allow."""
        assert pause(waiting(retry)) == seconds

    def test_until_a_deletion_is_prepared(self):
        """It came during the round, or the round left no time for it."""
        assert pause(deleted_meanwhile()) == BUSY_SECONDS
