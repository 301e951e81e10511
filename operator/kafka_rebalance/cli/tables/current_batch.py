"""The whole of what is under way in an open run, and the same in the shape of KIP-435's response. Pure.

KIP-435 extends ListPartitionReassignments, version 1, with "the currently executed reassignment batch" beside "the
ongoing reassignments": the latter are all partitions that are not where they shall be in the end, the batch is those
for which a step is being carried out now, with that step's list as target.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from kafka_rebalance.api.v1alpha1 import DeletionPolicy, KafkaRebalance, planning_hash
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, PartitionMove, judge
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import ClusterState, Replicas, TopicPartition


@dataclass(frozen=True, slots=True)
class Underway:
    """A partition of the plan that is not at its final target.

    ``current`` lacks what is being copied; ``step`` is the list that Kafka is bringing it to, empty where nothing is
    in flight. ``size_bytes`` is one replica's, as planned with.
    """

    tp: TopicPartition
    current: Replicas
    target: Replicas
    step: Replicas = ()
    adding: Replicas = ()
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """``ongoing``, sorted, of ``planned`` partitions; what somebody else moves; what no broker told about."""

    planned: int = 0
    ongoing: tuple[Underway, ...] = ()
    foreign: tuple[TopicPartition, ...] = ()
    untold: tuple[TopicPartition, ...] = ()

    @property
    def current(self) -> tuple[Underway, ...]:
        """KIP-435's current batch: those with a step in flight."""
        return tuple(row for row in self.ongoing if row.step)


def heading(rebalance: KafkaRebalance, run: Run) -> Direction:
    """Where the open run is going. A spec that was changed has what is in flight cancelled first, also in an undo."""
    spec = rebalance.spec
    if rebalance.metadata.deleting:
        policies = {DeletionPolicy.ROLLBACK: Direction.ROLLBACK, DeletionPolicy.REVERT: Direction.REVERT}
        return policies.get(spec.deletion_policy, Direction.FORWARD)
    if run.planning_hash != planning_hash(spec):
        return Direction.REVERT
    return Direction.ROLLBACK if run.undo else Direction.FORWARD


def batch_of(
    errands: Iterable[PartitionMove], cluster: ClusterState, direction: Direction, parallel_replicas: int
) -> Batch:
    """What is under way. What the engine leaves alone (drifted, deleted, re-created) is not.

    A broker that is away counts as restarting, since one look cannot tell for how long it has been gone.
    """
    rows, foreign, untold, planned = [], [], [], 0
    for errand in sorted(errands, key=lambda e: e.tp):
        planned += 1
        state = cluster.partitions.get(errand.tp)
        if state is None:
            untold.append(errand.tp)
            continue
        seen = Observation(cluster, {errand.tp.topic: 1}, restarting=errand.known - set(cluster.brokers))
        verdict = judge(errand, seen, direction, parallel_replicas)
        goal = errand.target if direction is Direction.FORWARD else errand.origin
        if state.in_flight and not set(state.replicas) <= errand.known:
            foreign.append(errand.tp)
        elif verdict.phase is not MovePhase.SKIPPED and (state.in_flight or state.replicas != goal):
            rows.append(
                Underway(
                    tp=errand.tp,
                    current=tuple(b for b in state.replicas if b not in state.adding),
                    target=goal,
                    step=tuple(b for b in state.replicas if b not in state.removing) if state.in_flight else (),
                    adding=state.adding,
                    size_bytes=errand.size_bytes,
                )
            )
    return Batch(planned, tuple(rows), tuple(foreign), tuple(untold))


def response(batch: Batch) -> dict[str, Any]:
    """ListPartitionReassignmentsResponse, version 1, of KIP-435, with names as in Kafka's own JSON of its messages.

    The KIP calls both arrays ``Topics``, which an object cannot hold twice: the second has its struct's name here.
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
