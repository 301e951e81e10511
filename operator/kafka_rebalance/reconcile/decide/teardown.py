"""How a deletion ends: which resource takes over, and what prevents that everything is moved back. Pure."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from kafka_rebalance.api.execution_spec import DeletionPolicy
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation
from kafka_rebalance.execution.progress import ReplicaBytes, bytes_to_move_back
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import direction_of, going_back
from kafka_rebalance.reconcile.decide.replanning import wants_plan
from kafka_rebalance.reconcile.state.assessment import Assessment, RollbackBarrier, Successor, Teardown
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import Record

_RENAMED_WITHIN = timedelta(minutes=5)
"""Between the deletion under the old name and the creation under the new one, whichever comes first."""
_NEVER = datetime.max.replace(tzinfo=UTC)
MOST_TAKEN_OVER = 10
"""Runs that one resource takes over before it begins. Plan and origins of each, of several MB, are kept until then."""
_CANCEL_SECONDS = 120.0
"""The time for cancelling if a rollback may not go on. Then the finalizer is removed even if reassignments remain."""


class Successors(NamedTuple):
    """By uid of a rebalance that is being deleted: who continues instead of a rollback, or may not: it is full."""

    chosen: dict[str, Successor]
    full: dict[str, Successor]


def successors_of(rebalances: Collection[RebalanceView]) -> Successors:
    """The resources that continue instead of rollbacks.

    That is one of the same namespace that has sent nothing yet: one that names it in spec.takesOver, or one that was
    created about when it was deleted and whose stored plan moves every partition that a rollback would. A resource that
    was renamed in Git must not move everything back first, only to move it forth again. Others wait for the rollback.

    One that has taken over ``MOST_TAKEN_OVER`` runs and has not begun is full: the next ones are rolled back.
    """
    found = Successors({}, {})
    sets = _PartitionSets()
    taken = Counter({new.desired.uid: new.record.handed_over or 0 for new in rebalances})
    ending = _rollbacks(rebalances)
    beginning = [new for new in rebalances if _may_begin(new)] if ending else []
    planned = [new for new in beginning if new.record.loaded_run is not None]
    by_uid = {new.desired.uid: new for new in beginning}
    naming = defaultdict[tuple[str, str], list[RebalanceView]](list)
    for new in beginning:
        naming[new.desired.metadata.namespace, new.desired.spec.takes_over or ""].append(new)
    # Those with a successor first: they keep it.
    for old in sorted(ending, key=lambda old: old.assessment.successor is None):
        chosen = old.assessment.successor
        able = [new for new in planned if _moves_the_same(new, old, sets)]
        able += naming.get((old.desired.metadata.namespace, old.desired.metadata.name), [])
        # What a cancellation has left in place does not change the choice.
        able += [by_uid[chosen.uid]] if chosen is not None and chosen.uid in by_uid else []
        with_room = [new for new in able if taken[new.desired.uid] < MOST_TAKEN_OVER]
        if able:
            first = min(with_room or able, key=lambda new: (not _names(new, old), new.desired.age_key)).desired
            (found.chosen if with_room else found.full)[old.desired.uid] = Successor(first.uid, first.name)
            taken[first.uid] += 1
    return found


def uncounted_successors(rebalances: Collection[RebalanceView]) -> set[str]:
    """The uids of those that may take over a rollback, if it is not known how many runs they have taken over."""
    named, deleted = set[tuple[str, str]](), defaultdict[str, list[RebalanceView]](list)
    for old in sorted(_rollbacks(rebalances), key=_deleted_at):
        named.add((old.desired.metadata.namespace, old.desired.metadata.name))
        if old.desired.spec.deletion_policy is DeletionPolicy.ROLLBACK:
            deleted[old.desired.metadata.namespace].append(old)

    def renamed(new: Desired) -> bool:
        if new.metadata.creation_timestamp is None or new.metadata.namespace not in deleted:
            return False
        olds, since = deleted[new.metadata.namespace], new.metadata.creation_timestamp - _RENAMED_WITHIN
        first = bisect_left(olds, since, key=_deleted_at)
        return first < len(olds) and _renamed(new, olds[first])

    def may_take_over(new: RebalanceView) -> bool:
        names = (new.desired.metadata.namespace, new.desired.spec.takes_over or "")
        return _may_begin(new) and (names in named or renamed(new.desired))

    return {new.desired.uid for new in rebalances if new.record.handed_over is None and may_take_over(new)}


def renamed_from(
    rebalances: Collection[RebalanceView], selected: Mapping[str, frozenset[TopicPartition]]
) -> Iterator[tuple[str, list[RebalanceView]]]:
    """By uid, the rollbacks whose resource may have been created again under this new name.

    It may take over those for which it selects everything, see ``selections_with_all_of``. ``selected``: as for
    ``place_requests``. A round pauses between those that this yields.
    """
    ending = _rollbacks(rebalances)
    for new in rebalances:
        begins = new.desired.uid in selected and _may_begin(new) and (new.record.handed_over or 0) < MOST_TAKEN_OVER
        yield new.desired.uid, [old for old in ending if _renamed(new.desired, old)] if begins else []


def selections_with_all_of(
    record: Record, assessment: Assessment, selections: Iterable[frozenset[TopicPartition]]
) -> set[int]:
    """The ids of those of these sets that have every partition that a rollback moves back.

    Thousands of resources may select the same set. ``record`` and ``assessment``: of the rollback; they do not change,
    so a thread may look.
    """
    moved = _may_be_moved_back(record, assessment)
    return {id(some) for some in selections if moved <= some}


def _rollbacks(rebalances: Iterable[RebalanceView]) -> list[RebalanceView]:
    """Those that are being deleted with an open run. Usually there are few: each is compared with all others.

    One at rest is not: nothing is moved back before its rest has ended, and others may be moving its partitions.
    """
    deleted = (old for old in rebalances if old.desired.deleting and not old.rests)
    return [old for old in deleted if old.record.loaded_run is not None]


def _deleted_at(old: RebalanceView) -> datetime:
    return old.desired.metadata.deletion_timestamp or _NEVER


def awaited_plans(
    rebalances: Iterable[RebalanceView], renamed: Mapping[str, Collection[RebalanceView]], now: datetime
) -> dict[str, str]:
    """By uid of a rollback, the name of the resource whose plan it waits for before its first step: the first of these.

    It waits no longer than the time in which a new resource may be created after the deletion, so a rollback is never
    blocked for long. ``renamed``: by uid of each, the rollbacks that it may take over.
    """
    found: dict[str, str] = {}
    for new in rebalances:
        olds = [old for old in renamed[new.desired.uid] if old.desired.uid not in found and _waits(old, now)]
        if olds and (new.memory.planning is not None or wants_plan(new)):
            found |= {old.desired.uid: new.desired.name for old in olds}
    return found


def _waits(old: RebalanceView, now: datetime) -> bool:
    deleted = old.desired.metadata.deletion_timestamp
    return deleted is not None and now - deleted <= _RENAMED_WITHIN and old.assessment.successor is None


def as_rolled_back(
    moves: Iterable[PartitionMove], partitions: Mapping[TopicPartition, PartitionState]
) -> dict[TopicPartition, PartitionState]:
    """These partitions as a rollback would leave them."""
    return {
        move.tp: replace(
            partitions[move.tp],
            replicas=move.origin,
            isr=frozenset(move.origin),
            leader=move.origin_leader if move.origin_leader in move.origin else move.origin[0],
            adding=(),
            removing=(),
        )
        for move in moves
        if move.tp in partitions
    }


def moved_back(record: Record, assessment: Assessment) -> dict[TopicPartition, PartitionMove]:
    """What a rollback moves: the partitions that the run has sent something, but for those left alone.

    What the cancellation for a successor leaves in place counts: without that successor, it is moved back too.
    """
    run, statuses = record.loaded_run, assessment.statuses.within(MovePhase.SKIPPED)
    skipped = {*statuses, *(row.tp for row in (run.plan.skipped if run is not None else ()))}
    if assessment.successor is not None:
        skipped -= _left_in_place(assessment)
    return {move.tp: move for move in record.moves if move.tp not in skipped}


def _may_be_moved_back(record: Record, assessment: Assessment) -> frozenset[TopicPartition]:
    found = frozenset(moved_back(record, assessment))
    if assessment.teardown.barrier is not None:  # it only reverts for as long as it is
        found |= _left_in_place(assessment)
    return found


def _left_in_place(assessment: Assessment) -> set[TopicPartition]:
    statuses = assessment.statuses.within(MovePhase.SKIPPED)
    return {tp for tp, status in statuses.items() if status.reason == Reason.LEFT_IN_PLACE}


class _PartitionSets:
    """Which partitions rollbacks and plans move. Found once for all pairs of resources: each may have 100,000."""

    def __init__(self) -> None:
        self._moved_back: dict[str, frozenset[TopicPartition]] = {}
        self._planned: dict[str, frozenset[TopicPartition]] = {}

    def moved_back(self, old: RebalanceView) -> frozenset[TopicPartition]:
        if (found := self._moved_back.get(old.desired.uid)) is None:
            found = self._moved_back[old.desired.uid] = _may_be_moved_back(old.record, old.assessment)
        return found

    def planned(self, new: RebalanceView) -> frozenset[TopicPartition]:
        if (found := self._planned.get(new.desired.uid)) is None:
            plan = new.record.loaded_run.plan if new.record.loaded_run is not None else None
            moved = [p.tp for p in plan.partitions if p.current != p.target or p.elects] if plan is not None else []
            found = self._planned[new.desired.uid] = frozenset(moved)
        return found


def _may_begin(new: RebalanceView) -> bool:
    """Whether it has sent nothing and could: with origins of its own it could not inherit any."""
    record, replanning = new.record, new.assessment.replanning
    if new.desired.deleting or not new.desired.has_finalizer:
        return False
    if new.memory.problem is not None and not isinstance(new.memory.error, Transient):
        return False
    if record.run is None or not record.was_read:
        return record.was_read
    return record.run.open and record.run.started_at is None and (replanning is None or replanning.ready)


def _names(new: RebalanceView, old: RebalanceView) -> bool:
    mine, other = new.desired, old.desired
    return mine.spec.takes_over == other.metadata.name and mine.metadata.namespace == other.metadata.namespace


def _moves_the_same(new: RebalanceView, old: RebalanceView, sets: _PartitionSets) -> bool:
    if new.record.loaded_run is None or new.assessment.replanning is not None or not _renamed(new.desired, old):
        return False
    return bool(sets.moved_back(old)) and sets.moved_back(old) <= sets.planned(new)


def _renamed(new: Desired, old: RebalanceView) -> bool:
    """Whether one can be the other under a new name, instead of a rollback."""
    created, deleted = new.metadata.creation_timestamp, old.desired.metadata.deletion_timestamp
    if created is None or deleted is None or new.metadata.namespace != old.desired.metadata.namespace:
        return False
    rolls_back = old.desired.spec.deletion_policy is DeletionPolicy.ROLLBACK
    return rolls_back and old.record.loaded_run is not None and abs(created - deleted) <= _RENAMED_WITHIN


def teardown_of(rebalance: RebalanceView, seen: Observation, replica_bytes: ReplicaBytes, now: datetime) -> Teardown:
    """The bytes that a rollback must copy, and what prevents it; no barrier also where it was not asked for."""
    desired = rebalance.desired
    moves = rebalance.record.moves if going_back(rebalance) else ()
    back, unknown = bytes_to_move_back(moves, seen.cluster, replica_bytes)
    back += rebalance.assessment.log_dirs.away_bytes if moves else 0
    if not desired.deleting or desired.spec.deletion_policy is not DeletionPolicy.ROLLBACK:
        return Teardown(None, back)
    most = desired.spec.rollback.max_data
    if rebalance.assessment.successor is not None:
        return Teardown(RollbackBarrier.SUCCESSOR, back)
    if rebalance.refusal is not None:
        return Teardown(RollbackBarrier.REFUSED, back)
    if rebalance.memory.terminating:
        return Teardown(RollbackBarrier.TERMINATING, back)
    if desired.timed_out(now):
        return Teardown(RollbackBarrier.TIMED_OUT, back)
    if most is not None and not _goes_back(rebalance):
        unknown += [move.tp for move in moves if _unread(move.tp, seen)]
    if most is not None and unknown:
        return Teardown(RollbackBarrier.TOO_LARGE, back, tuple(unknown))
    return Teardown(RollbackBarrier.TOO_LARGE if most is not None and back > most else None, back)


def lets_go(rebalance: RebalanceView, now: datetime, monotonic: float, *, connected: bool) -> bool:
    """Whether a deletion does not change Kafka, by its policy, by annotation, or because its time is over."""
    asked = direction_of(rebalance) is None or rebalance.desired.metadata.let_go_ordered
    return asked or expired(rebalance, now, monotonic, connected=connected)


def expired(rebalance: RebalanceView, now: datetime, monotonic: float, *, connected: bool) -> bool:
    """Whether ``rollback.timeout``, or the deletion of the namespace or the CRD, ends a deletion.

    At ``rollback.timeout`` without Kafka. Else after the time for cancelling, which begins when this process has seen
    that a rollback may only cancel: it may have started after that, or a user may have edited the timeout.
    ``monotonic``: seconds of the monotonic clock.
    """
    memory, cancelling_since = rebalance.memory, monotonic - _CANCEL_SECONDS
    if memory.terminating and memory.terminating_checked_at < cancelling_since:
        return True
    if not rebalance.desired.timed_out(now):
        return False
    return not connected or (memory.timed_out_at is not None and memory.timed_out_at < cancelling_since)


def _goes_back(rebalance: RebalanceView) -> bool:
    """Whether a rollback is under way: an answer without one of its partitions must not cancel the other copies."""
    assessment = rebalance.assessment
    return assessment.judgement.direction is Direction.ROLLBACK and assessment.teardown.barrier is None


def _unread(tp: TopicPartition, seen: Observation) -> bool:
    return (tp not in seen.cluster.partitions and tp not in seen.gone) or tp.topic in seen.unread


def outcome_of(rebalance: RebalanceView) -> RunOutcome:
    """The outcome of a teardown that has come to its end."""
    assessment = rebalance.assessment
    if assessment.teardown.barrier is RollbackBarrier.SUCCESSOR:
        return RunOutcome.TAKEN_OVER
    if assessment.teardown.barrier is RollbackBarrier.TIMED_OUT:
        return RunOutcome.ROLLED_BACK_PARTIALLY
    if assessment.judgement.direction is Direction.REVERT:
        return RunOutcome.REVERTED
    unlike_before = {
        Reason.ORIGINAL_BROKER_GONE,
        Reason.PREFERRED_LEADER_GONE,
        Reason.BELOW_MIN_INSYNC_REPLICAS,
        Reason.LEFT_IN_PLACE,  # by an edit before the deletion; another rebalance moves it now
    }
    partially = any(status.reason in unlike_before for status in assessment.statuses.by_partition.values())
    elsewhere = {Reason.LOG_DIR_OFFLINE, Reason.ORIGINAL_BROKER_GONE}
    partially |= any(s.reason in elsewhere for s in assessment.log_dirs.by_replica.values())
    return RunOutcome.ROLLED_BACK_PARTIALLY if partially else RunOutcome.ROLLED_BACK
