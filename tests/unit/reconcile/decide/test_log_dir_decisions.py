"""Which statuses the replicas of a run have between log dirs, by its direction and by what was read."""

from dataclasses import replace

import pytest
from tests.fakes.found_by_rounds import found, recorded
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.execution.log_dir_moves import LogDirReading, LogDirStatus, LogDirStatuses
from kafka_rebalance.execution.partition_status import Direction, MovePhase
from kafka_rebalance.model.plan import Certificate, LogDirMove, Plan, PlannedPartition
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.reconcile.decide.log_dir_decisions import with_log_dirs_judged
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of

TP, ONE = TopicPartition("t", 0), BrokerId(1)
READY = LogDirStatuses(Direction.FORWARD, {(TP, ONE): LogDirStatus(MovePhase.READY, ask="/b")})


@pytest.fixture
def ready():
    """A run whose replica on broker 1 is about to move to another log dir."""
    metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
    rebalance = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
    run = Run("u-1", "kafka", "r", "c", "run", "h", "p", NOON)
    rows = (PlannedPartition(TP, replicas_of(1), replicas_of(1)),)
    plan = Plan(rows, Certificate(0, optimal=True), log_dirs=(LogDirMove(TP, ONE, "/a", "/b", "/a"),))
    recorded(rebalance, run=run, was_read=True, loaded_run=loaded_run_of(run, plan, "ref", {}))
    return found(rebalance, log_dirs=READY, direction=Direction.FORWARD)


def turned(rebalance):
    """It goes back, and has moved nothing between log dirs."""
    record = rebalance.record
    rebalance.record = replace(record, loaded_run=record.loaded_run.turned({}, back=True))
    return found(rebalance, direction=Direction.REVERT)


@pytest.mark.parametrize("seen", [None, LogDirReading(asked=frozenset({(TP, ONE)}))])
def test_a_turn_clears_the_statuses(ready, seen):
    """Else the replica would still move, although the plan was put aside."""
    assert with_log_dirs_judged(turned(ready), seen).log_dirs == LogDirStatuses()


def test_without_a_reading_the_statuses_stay(ready):
    assert with_log_dirs_judged(ready, None).log_dirs is READY


def test_a_reading_for_other_rebalances_proves_nothing(ready):
    assert with_log_dirs_judged(ready, LogDirReading()).log_dirs == LogDirStatuses()
