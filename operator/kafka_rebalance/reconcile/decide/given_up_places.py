"""Runs that let others move their partitions first: when that is put on record, and what it means. Pure.

While the operator runs, the queue keeps two runs off the same partition (``queue_places``). The queue is not stored:
after a restart, a rollback that waits for a decision would take what another run copies for copies of its own, and
cancel them. So it is on record that a run has come to rest and has given up its place, before another one has it. What
is in motion from then on is of others, until the run sends something again.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from kafka_rebalance.execution.partition_status import MovePhase, Observation, PartitionStatus
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.arrival_proof import nothing_in_flight
from kafka_rebalance.reconcile.decide.queue_places import held_back, left_alone
from kafka_rebalance.reconcile.state.rebalance import RebalanceView

_NONE = frozenset[TopicPartition]()


def gives_up_place(rebalance: RebalanceView, partitions: Mapping[TopicPartition, PartitionState], now: float) -> bool:
    """Whether the run has come to rest without a place in the queue, and this is not recorded yet.

    ``partitions``: the reading that it was judged by; ``now``: seconds of the monotonic clock.
    """
    run, assessment = rebalance.record.open_run, rebalance.assessment
    if run is None or run.started_at is None or run.place_given_up or run.rested:
        return False
    place = assessment.queue.place
    waits = held_back(rebalance) or (place is not None and not place.runs and not assessment.finished)
    return waits and nothing_in_flight(rebalance, partitions, now)


def ends_without_us(state: PartitionState | None, seen: Observation) -> bool:
    """Whether a reassignment is in flight that can complete: not wedged, and no copy to a broker that is gone."""
    if state is None or not state.in_flight or state.wedged:
        return False
    return all(broker in seen.cluster.brokers or broker in seen.restarting for broker in state.adding)


def left_to_others(rebalance: RebalanceView, seen: Observation) -> AbstractSet[TopicPartition]:
    """The partitions that others had begun to move while the run had given up its place, until they are at rest.

    Nothing is added once the run has sent something. While it has not, see ``JudgeInputs.place_given_up``.
    """
    judgement = rebalance.assessment.judgement
    if judgement.inputs is None or rebalance.place_given_up:
        return _NONE
    left: AbstractSet[TopicPartition] = judgement.inputs.left_in_motion
    if judgement.inputs.place_given_up:
        left = {tp for tp, status in judgement.statuses.few.items() if _is_by_others(status)}
    return frozenset(tp for tp in left if ends_without_us(seen.cluster.partitions.get(tp), seen)) if left else _NONE


def open_to_others(rebalance: RebalanceView) -> AbstractSet[TopicPartition]:
    """The partitions that others may move in the turn of the run: skipped, or in motion when it had its place again."""
    inputs = rebalance.assessment.judgement.inputs
    return left_alone(rebalance) | (inputs.left_in_motion if inputs is not None else _NONE)


def _is_by_others(status: PartitionStatus) -> bool:
    return status.phase is MovePhase.IN_FLIGHT or status.reason == Reason.FOREIGN_REASSIGNMENT
