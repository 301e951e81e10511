"""A rebalance after a round of the engine, and its status: for the tests of both."""

from datetime import UTC, datetime

from tests.fakes.found_by_rounds import found, recorded

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.progress import Progress
from kafka_rebalance.execution.reassignment_throttle import ClusterRates, Rates
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.report.ready_state import ready_reason
from kafka_rebalance.reconcile.report.rebalance_report import build_status
from kafka_rebalance.reconcile.state.judgement import Judgement
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
FLYING = PartitionStatus(MovePhase.IN_FLIGHT, step=replicas_of(3, 1, 2), started=True)
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


def rebalance(count=1, *, topic="t", skipped=(), direction=Direction.FORWARD, opened=True, closed=None, progress=None):
    mine = Rebalance.of(BODY)
    rows = tuple(
        PlannedPartition(tp(i, topic), replicas_of(1, 2), replicas_of(3, 2), size_bytes=100) for i in range(count)
    )
    plan = Plan(rows, Certificate(count, optimal=True), skipped=tuple(skipped))
    closed_at = NOW if closed else None
    run = Run("u-1", "kafka", "r", "c", "run-1", mine.desired.planning_hash, plan.hash, NOW, closed_at, closed)
    recorded(mine, run=run)
    if opened:
        recorded(mine, loaded_run=loaded_run_of(run, plan, "plan-0", {}))
        found(mine, judgement=Judgement(direction))
    return found(mine, rates=ClusterRates(Rates(2**20, 2**20)), source="spec.throttle", brokers=3, progress=progress)


def seen(count=1, topic="t"):
    states = {
        tp(i, topic): PartitionState(
            tp(i, topic), "", replicas_of(3, 1, 2), frozenset(replicas_of(1, 2)), 1, replicas_of(3)
        )
        for i in range(count)
    }
    return ClusterState("c", {}, states)


def status_of(mine, cluster=None, on_disk=None, *, now=NOW):
    return build_status(mine, cluster or ClusterState("c", {}), on_disk or {}, now=now)


def said(mine):
    """The STATE column and its message."""
    state = ready_reason(status_of(mine))
    assert state is not None
    return state


def statuses(mine):
    """Ready, Reconciling and Stalled."""
    kinds = (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)
    conditions = status_of(mine).conditions
    return tuple(find_condition(conditions, kind).status for kind in kinds)
