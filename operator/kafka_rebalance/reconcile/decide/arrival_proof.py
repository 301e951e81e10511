"""How long partitions must be seen where a run leads before it may end. Pure.

A broker that was paused answers with the metadata that it had then. Such an answer may show a partition where it was
before the run, or before the one before. It proves nothing unless the run itself has sent the call that leads there:
what Kafka has accepted, it carries out, and until then the controller lists it as a reassignment.
"""

from collections.abc import Iterable, Mapping

from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionMove
from kafka_rebalance.kafka.ports import CALL_SECONDS
from kafka_rebalance.model.topology import ClusterState, Replicas, TopicPartition
from kafka_rebalance.reconcile.decide.direction import going_back
from kafka_rebalance.reconcile.state.rebalance import RebalanceView

SECOND_READING_SECONDS = 2.0
"""A broker that runs again has read by then what it has missed."""


def proof_seconds(rebalance: RebalanceView) -> float:
    """For how long; 0: the last reading is enough."""
    done = rebalance.assessment.statuses.within(MovePhase.DONE)
    arrived = [move for move in rebalance.record.moves if move.tp in done]
    if not going_back(rebalance):
        return SECOND_READING_SECONDS if any(_without_a_call(rebalance, move) for move in arrived) else 0.0
    if any(move.first_call not in {(), move.origin} for move in arrived) or _back_in_log_dirs(rebalance):
        # A first call without an answer may still be carried out, and would not be moved back after the end.
        return CALL_SECONDS
    if all(move.tp in rebalance.memory.led_back or move.first_call == move.origin for move in arrived):
        return 0.0
    # Records are deleted at the end. A revert leaves what is complete where it is, so it has less to get wrong.
    wholly = rebalance.assessment.judgement.direction is Direction.ROLLBACK
    return CALL_SECONDS if wholly else SECOND_READING_SECONDS


def leading_back(
    accepted: Iterable[PartitionMove], alters: Mapping[TopicPartition, Replicas], cluster: ClusterState
) -> set[TopicPartition]:
    """Those of these partitions that their call, in ``alters`` or a null, leads to their origin, also its order.

    ``accepted``: Kafka has accepted the call. ``cluster``: as it was before.
    """
    found = set()
    for move in accepted:
        state = cluster.partitions[move.tp]
        kept = tuple(b for b in state.replicas if b not in state.adding)
        if alters.get(move.tp, kept) == move.origin:
            found.add(move.tp)
    return found


def _without_a_call(rebalance: RebalanceView, move: PartitionMove) -> bool:
    """Whether the run moves the partition, and the present plan may have sent nothing for it.

    An origin that the plan does not start from is that of an earlier plan, or of a run that was taken over.
    """
    if not move.elects and move.planned_from == move.target:
        return False
    return move.tp not in rebalance.record.origins or move.origin != move.planned_from


def _back_in_log_dirs(rebalance: RebalanceView) -> bool:
    """Whether the run may have asked for another log dir of a replica that does not move now.

    Before an undo, the run has succeeded: it has seen what became of all that it asked for.
    """
    opened, done = rebalance.record.loaded_run, rebalance.assessment.log_dirs.within(MovePhase.DONE)
    if opened is None or opened.run.undo:
        return False
    asked = (move for move in opened.log_dirs if None not in {move.origin, move.after} and move.origin != move.after)
    return any(move.key in done for move in asked)
