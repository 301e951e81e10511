"""How long the partitions of a run must be seen in their place before the run may end. Pure.

A broker that was paused can answer with outdated metadata. Such an answer may show a partition at its place before this
run, or before an earlier run. So a reading proves an arrival only if the run itself has sent the call: Kafka executes
each call that it has accepted, and until then the controller lists a reassignment. For the same reason one reading does
not prove that another tool has changed a partition.
"""

from collections.abc import Collection, Iterable, Mapping

from kafka_rebalance.execution.partition_move import PartitionMove, is_by_others
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.kafka.ports import CALL_SECONDS
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import at_rest, going_back
from kafka_rebalance.reconcile.decide.rests import replicas_with_log_dirs
from kafka_rebalance.reconcile.state.memory import Memory
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import as_recorded

HUNG_SECONDS = 60.0
"""How long a call without an answer may be in a broker that hangs and is not listed any more.

A broker that hung for a minute has passed its call on (recorded). One that is dead must not hold up a run for ever.
"""
SECOND_READING_SECONDS = 2.0
"""Within this time, a resumed broker has updated its metadata."""
_CHANGED_BY_OTHERS = {Reason.DRIFTED, Reason.TOPIC_RECREATED, Reason.TOPIC_DELETED}
"""Why a partition is left alone after a single reading, or several that may follow each other at once."""


def proof_seconds(rebalance: RebalanceView) -> float:
    """How long; 0: the last reading is enough."""
    statuses = rebalance.assessment.statuses
    done = statuses.within(MovePhase.DONE)
    arrived = [move for move in rebalance.record.moves if move.tp in done]
    left_alone = any(status.reason in _CHANGED_BY_OTHERS for status in statuses.within(MovePhase.SKIPPED).values())
    if not going_back(rebalance):
        unproved = left_alone or any(_without_a_call(rebalance, move) for move in arrived)
        return SECOND_READING_SECONDS if unproved else 0.0
    if any(move.first_call not in {(), move.origin} for move in arrived) or _back_in_log_dirs(rebalance):
        # Kafka may still execute a first call without an answer. After the end, nothing would move the partition back.
        return CALL_SECONDS
    led_back = rebalance.memory.led_back
    if not left_alone and all(move.tp in led_back or move.first_call == move.origin for move in arrived):
        return 0.0
    # Records are deleted at the end. A revert leaves completed moves in place, so a shorter wait is enough.
    wholly = rebalance.assessment.judgement.direction is Direction.ROLLBACK
    return CALL_SECONDS if wholly else SECOND_READING_SECONDS


def late_call_possible(rebalance: RebalanceView, now: float) -> bool:
    """Whether Kafka may still execute a call of the run that failed without an answer.

    After the end of the run, nothing would undo it. ``now``: seconds of the monotonic clock. A later call of the same
    partition that Kafka has answered does not change this, because another broker has received it.
    """
    return may_be_executed_late(rebalance.memory.unanswered_at, now)


def late_list_possible(rebalance: RebalanceView, now: float) -> bool:
    """As ``late_call_possible``, of the calls that may put a replica on another broker."""
    return may_be_executed_late(rebalance.memory.list_unanswered_at, now)


def has_come_to_rest(rebalance: RebalanceView, partitions: Mapping[TopicPartition, PartitionState], now: float) -> bool:
    """Whether a started run is at rest while its connection is refused, and this is not recorded yet.

    ``partitions``: the reading that it was judged by.
    """
    run, assessment = rebalance.record.open_run, rebalance.assessment
    if rebalance.refusal is None or rebalance.desired.deleting or run is None or run.started_at is None or run.rested:
        return False
    ends = assessment.finished and assessment.replanning is None  # a new plan is not made before it has permission
    if not at_rest(rebalance) or ends or late_call_possible(rebalance, now):
        return False
    inputs, few = assessment.judgement.inputs, assessment.statuses.few
    unread = inputs.unread if inputs is not None else frozenset[str]()
    moving = (_may_be_moving(status, partitions.get(tp), unread=tp.topic in unread) for tp, status in few.items())
    return not any(moving) and _log_dirs_rest(rebalance)


def unsettled_topics(rebalance: RebalanceView, partitions: Mapping[TopicPartition, PartitionState]) -> frozenset[str]:
    """The topics in which something of a run that is ``at_rest`` may be in flight: it waits, or cannot be read.

    ``partitions``: as last read.
    """
    assessment, run = rebalance.assessment, rebalance.record.loaded_run
    if run is None:
        return frozenset()
    inputs, found = assessment.judgement.inputs, set[str]()
    unread = inputs.unread if inputs is not None else frozenset[str]()
    for tp, status in assessment.statuses.few.items():
        state = partitions.get(tp)
        waits = status.phase is MovePhase.WAITING and state is not None and state.in_flight
        if waits and status.reason == Reason.FOREIGN_REASSIGNMENT:
            waits = _may_be_own(rebalance, run.move_of.get(tp), partitions[tp])  # if another run goes first with it
        elif not waits:
            waits = _may_be_moving(status, state, unread=tp.topic in unread)
        if waits:
            found.add(tp.topic)
    return frozenset(found) if _log_dirs_rest(rebalance) else frozenset(found).union(d.tp.topic for d in run.log_dirs)


def _may_be_own(rebalance: RebalanceView, move: PartitionMove | None, state: PartitionState) -> bool:
    """Whether the run may have sent what is in flight."""
    if move is None:
        return False
    recorded = as_recorded(rebalance.own_origins, move)
    return recorded.known.issuperset(state.replicas) and not is_by_others(recorded, state)


def _may_be_moving(status: PartitionStatus, state: PartitionState | None, *, unread: bool) -> bool:
    """Whether a reassignment of the run may be in flight, judged without a pause: it may wait, or not be readable.

    A partition between two steps may wait for ever, for a broker or for a rebalance that goes first.
    """
    if status.phase is not MovePhase.WAITING:
        return status.cancel or status.phase is MovePhase.IN_FLIGHT
    unknown = unread or status.reason in {Reason.METADATA_MISSING, Reason.TOPIC_FORBIDDEN}
    return unknown or (status.started and state is not None and state.in_flight)


def _log_dirs_rest(rebalance: RebalanceView) -> bool:
    run, found = rebalance.record.loaded_run, rebalance.assessment.log_dirs
    waiting = found.within(MovePhase.WAITING)
    unread = {key for key, status in waiting.items() if status.reason == Reason.LOG_DIRS_UNKNOWN}
    if unread and not unread.isdisjoint(replicas_with_log_dirs(rebalance)):
        return False
    return run is not None and (not run.log_dirs or found.direction is not None) and not found.copying


def may_be_executed_late(failed_at: float, now: float) -> bool:
    """Whether Kafka may still execute a call that failed without an answer; both times by the monotonic clock."""
    return now - failed_at < CALL_SECONDS


def moved_since(rebalance: RebalanceView, acting: Iterable[RebalanceView]) -> bool:
    """Whether another rebalance has sent a call for a partition of the run after the reading that shows its arrival.

    Only the next reading shows whether the partition is still there. ``acting``: those that may have sent something in
    this round. A partition that the run leaves alone does not count.
    """
    run = rebalance.record.loaded_run
    others = [other for other in acting if other is not rebalance]
    called = {tp for other in others for tp in other.assessment.sent if run is not None and tp in run.move_of}
    return bool(called) and not called <= rebalance.assessment.statuses.within(MovePhase.SKIPPED).keys()


def may_hang(memory: Memory, live: Collection[BrokerId], now: float) -> bool:
    """Whether a broker that may have a call without an answer is not live, so that it may execute the call later."""
    return now - memory.failed_at < HUNG_SECONDS and not memory.called.issubset(live)


def leading_back(
    accepted: Iterable[PartitionMove], alters: Mapping[TopicPartition, Replicas], cluster: ClusterState
) -> set[TopicPartition]:
    """The partitions whose call (in ``alters``, or a cancellation) restores their origin, including its order.

    ``accepted``: partitions whose call Kafka has accepted. ``cluster``: the reading before the call.
    """
    found = set()
    for move in accepted:
        state = cluster.partitions[move.tp]
        kept = tuple(b for b in state.replicas if b not in state.adding)
        if alters.get(move.tp, kept) == move.origin:
            found.add(move.tp)
    return found


def _without_a_call(rebalance: RebalanceView, move: PartitionMove) -> bool:
    """Whether the run moves the partition, and may not have sent a call of the present plan for it.

    If the origin differs from the start of the plan, an earlier plan or a run that was taken over recorded it.
    """
    if not move.elects and move.planned_from == move.target:
        return False
    return move.tp not in rebalance.record.origins or move.origin != move.planned_from


def _back_in_log_dirs(rebalance: RebalanceView) -> bool:
    """Whether the run may have requested another log dir for a replica that does not move now.

    An undo follows a success, so the results of all these requests have been seen.
    """
    opened, done = rebalance.record.loaded_run, rebalance.assessment.log_dirs.within(MovePhase.DONE)
    if opened is None or opened.run.undo:
        return False
    asked = (move for move in opened.log_dirs if None not in {move.origin, move.after} and move.origin != move.after)
    return any(move.key in done for move in asked)
