"""All partitions of an open run that are not at their targets, also in the format of KIP-435's response. Pure.

KIP-435 extends ListPartitionReassignments, version 1, with "the currently executed reassignment batch" beside "the
ongoing reassignments": the latter are all partitions that are not at their final targets; the batch has those with a
step in flight, with the replicas of that step as target.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from kafka_rebalance.api.execution_spec import DeletionPolicy
from kafka_rebalance.api.v1alpha1 import KafkaRebalance, planning_hash
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, judge
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import ClusterState, Replicas, TopicPartition


@dataclass(frozen=True, slots=True)
class Underway:
    """A partition of the plan that is not at its final target.

    ``current`` lacks the replicas being added; ``step`` is the target of the reassignment in flight, empty where there
    is none. ``size_bytes`` is that of one replica at planning time.
    """

    tp: TopicPartition
    current: Replicas
    target: Replicas
    step: Replicas = ()
    adding: Replicas = ()
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """``ongoing``, sorted, of ``planned`` partitions; those that other tools move; those that no broker reported."""

    planned: int = 0
    ongoing: tuple[Underway, ...] = ()
    foreign: tuple[TopicPartition, ...] = ()
    unreported: tuple[TopicPartition, ...] = ()

    @property
    def current(self) -> tuple[Underway, ...]:
        """KIP-435's current batch: the partitions with a step in flight."""
        return tuple(row for row in self.ongoing if row.step)


def direction_of(rebalance: KafkaRebalance, run: Run) -> Direction:
    """The direction of the open run. After a change of the spec, a cancellation comes first, also in an undo."""
    spec = rebalance.spec
    if rebalance.metadata.deleting:
        policies = {DeletionPolicy.ROLLBACK: Direction.ROLLBACK, DeletionPolicy.REVERT: Direction.REVERT}
        return policies.get(spec.deletion_policy, Direction.FORWARD)
    if run.planning_hash != planning_hash(spec):
        return Direction.REVERT
    return Direction.ROLLBACK if run.undo else Direction.FORWARD


def batch_of(
    moves: Iterable[PartitionMove], cluster: ClusterState, direction: Direction, parallel_replicas: int
) -> Batch:
    """The batch, without the partitions that the engine skips (drifted, deleted, re-created).

    A broker that is offline counts as restarting, since a single read does not show how long it has been offline.
    """
    rows, foreign, unreported, planned = [], [], [], 0
    for move in sorted(moves, key=lambda move: move.tp):
        planned += 1
        state = cluster.partitions.get(move.tp)
        if state is None:
            unreported.append(move.tp)
            continue
        seen = Observation(cluster, {move.tp.topic: 1}, restarting=move.known - set(cluster.brokers))
        status = judge(move, seen, direction, parallel_replicas)
        goal = move.target if direction is Direction.FORWARD else move.origin
        if state.in_flight and not set(state.replicas) <= move.known:
            foreign.append(move.tp)
        elif status.phase is not MovePhase.SKIPPED and (state.in_flight or state.replicas != goal):
            rows.append(
                Underway(
                    tp=move.tp,
                    current=tuple(b for b in state.replicas if b not in state.adding),
                    target=goal,
                    step=tuple(b for b in state.replicas if b not in state.removing) if state.in_flight else (),
                    adding=state.adding,
                    size_bytes=move.size_bytes,
                )
            )
    return Batch(planned, tuple(rows), tuple(foreign), tuple(unreported))


def response(batch: Batch) -> dict[str, Any]:
    """ListPartitionReassignmentsResponse, version 1, of KIP-435, with names as in Kafka's own JSON of its messages.

    The KIP calls both arrays ``Topics``, which an object cannot have twice: the second has the name of its struct.
    """
    return {
        "throttleTimeMs": 0,
        "errorCode": 0,
        "errorMessage": None,
        "topics": _topics((row.tp, row.current, row.target) for row in batch.ongoing),
        "currentTopicReassignmentBatch": _topics((row.tp, row.current, row.step) for row in batch.current),
    }


def _topics(rows: Iterable[tuple[TopicPartition, Replicas, Replicas]]) -> list[dict[str, Any]]:
    return [
        {
            "name": topic,
            "partitions": [
                {"partitionId": tp.partition, "currentBrokers": list(current), "targetBrokers": list(target)}
                for tp, current, target in group
            ],
        }
        for topic, group in groupby(rows, key=lambda row: row[0].topic)
    ]
