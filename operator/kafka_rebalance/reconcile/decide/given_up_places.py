"""Runs that let others move their partitions first: what it means that this is on record. Pure.

While the operator runs, the queue keeps two runs off the same partition (``queue_places``). The queue is not stored:
after a restart, a rollback that waits for a decision would take what another run copies for copies of its own, and
cancel them. So it is on record that a run has come to rest and has given up its place, before another one has it, see
``queue_places.is_to_give_up_place``. What is in motion from then on is of others, until the run begins something.
Topics in which a copy of its own may still be in flight are on record too: nothing of this holds there.
"""

from collections.abc import Collection
from collections.abc import Set as AbstractSet

from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, PartitionStatus
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.queue_places import left_alone
from kafka_rebalance.reconcile.state.judgement import JudgeInputs
from kafka_rebalance.reconcile.state.rebalance import RebalanceView

_NONE = frozenset[TopicPartition]()
LEFT_IN_MOTION = "others had begun to move it before: waits until that has ended, or is cancelled by hand"
_NOT_SENT = {MovePhase.IN_FLIGHT, MovePhase.WAITING}


def ends_without_us(state: PartitionState | None, seen: Observation) -> bool:
    """Whether a reassignment is in flight that can complete: not wedged, and no copy to a broker that is gone."""
    if state is None or not state.in_flight or state.wedged:
        return False
    return all(broker in seen.cluster.brokers or broker in seen.restarting for broker in state.adding)


def left_to_others(rebalance: RebalanceView, seen: Observation) -> AbstractSet[TopicPartition]:
    """The partitions that others had begun to move while the run had given up its place, until they are at rest.

    Nothing is added once the run has begun something. While it has not, see ``JudgeInputs.place_given_up``.
    """
    judgement = rebalance.assessment.judgement
    if judgement.inputs is None or rebalance.place_given_up:
        return _NONE
    left: AbstractSet[TopicPartition] = judgement.inputs.left_in_motion
    if judgement.inputs.place_given_up:
        # Nothing was ready for them, so the run has not sent it since.
        few, inputs = judgement.statuses.few, judgement.inputs
        left = {tp for tp, s in few.items() if s.phase in _NOT_SENT and inputs.lets_others_move(tp)}
    return frozenset(tp for tp in left if ends_without_us(seen.cluster.partitions.get(tp), seen)) if left else _NONE


def left_as_it_is(tp: TopicPartition, known: Observation, inputs: JudgeInputs) -> PartitionStatus | None:
    """The status of a partition that is left to others although a call is ready for it; None: it may be sent.

    If the run has given up its place, nothing of it is in flight, so that there is nothing to revert either.
    """
    state = known.cluster.partitions.get(tp)
    theirs = inputs.lets_others_move(tp)
    if tp in inputs.left_in_motion or (theirs and ends_without_us(state, known)):
        return PartitionStatus(MovePhase.WAITING, Reason.FOREIGN_REASSIGNMENT, LEFT_IN_MOTION)
    if theirs and inputs.direction is Direction.REVERT and state is not None and not state.in_flight:
        return PartitionStatus(MovePhase.SKIPPED, Reason.LEFT_IN_PLACE, "nothing of the run was in flight")
    return None


def open_to_others(rebalance: RebalanceView) -> AbstractSet[TopicPartition]:
    """The partitions that others may move in the turn of the run: skipped, or in motion when it had its place again."""
    inputs = rebalance.assessment.judgement.inputs
    return left_alone(rebalance) | (inputs.left_in_motion if inputs is not None else _NONE)


def begins_with(rebalance: RebalanceView, called: Collection[TopicPartition]) -> bool:
    """Whether the run goes on with calls, no cancellations, for these partitions.

    While it has no place, those in the topics that are unsettled only bring it to rest there.
    """
    place = rebalance.assessment.queue.place
    waits = place is not None and not place.runs
    return any(not (waits and tp.topic in rebalance.unsettled) for tp in called)
