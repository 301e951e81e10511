"""Decides which rebalances of a cluster may continue: the wants of each, for ``execution.queue_order``. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from kafka_rebalance.execution.partition_status import Direction, MovePhase
from kafka_rebalance.execution.queue_order import Claimant, Place, line_up
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.arrival_proof import late_call_possible
from kafka_rebalance.reconcile.decide.direction import at_rest, requires_decision
from kafka_rebalance.reconcile.decide.replanning import wants_plan
from kafka_rebalance.reconcile.state.assessment import QueuePlace, RollbackBarrier
from kafka_rebalance.reconcile.state.rebalance import Rebalance, RebalanceView

MOST_IN_LINE = 200
"""Rebalances of one namespace that have an open run of a cluster, or a place in its queue. The time for the order of
the queue grows with the square of their number."""
_MANY = 10_000
"""Partitions that are wanted, and pairs of rebalances. For 200 rebalances, a thread finds the order in 50 ms."""
_EPOCH = datetime.fromtimestamp(0, UTC)


def may_plan(rebalance: RebalanceView) -> bool:
    """Whether a plan is being made, or is to be made."""
    return rebalance.memory.planning is not None or wants_plan(rebalance)


@dataclass(frozen=True, slots=True)
class PlaceRequests:
    """What those that have an open run or want a plan ask for. Nothing of it changes, so a thread may find the places.

    ``queued``: by uid, what each asks for, with the place it had. ``no_room``: the places of those not in line.
    """

    queued: Mapping[str, QueuePlace]
    claimants: Sequence[Claimant]
    no_room: Mapping[str, Place]
    now: datetime

    @property
    def many(self) -> bool:
        """Whether to find the places takes long."""
        wanted = sum(len(some) for claimant in self.claimants for some in claimant.wants)
        return wanted + len(self.claimants) ** 2 >= _MANY

    def places(self) -> dict[str, QueuePlace]:
        """The place of each, by uid."""
        before = {uid: queue.place for uid, queue in self.queued.items() if queue.place is not None}
        places = {**line_up(self.claimants, before, self.now), **self.no_room}
        return {uid: replace(queue, place=places[uid]) for uid, queue in self.queued.items()}


def place_requests(
    rebalances: Iterable[RebalanceView],
    selected: Mapping[str, frozenset[TopicPartition]],
    now: datetime,
    monotonic: float,
) -> PlaceRequests:
    """What every rebalance that has an open run or wants a plan asks for. The places they had are considered.

    ``selected``: by uid, the partitions that the specs of those that may plan select. Of a namespace with more than
    ``MOST_IN_LINE`` of them, the others wait behind these.
    """
    asking = [r for r in rebalances if r.record.loaded_run is not None or may_plan(r)]
    queued = {r.desired.uid: _asked_since(r, now) for r in asking}
    later = _too_many(asking)
    lined = [r for r in asking if r.desired.uid not in later]
    claimants = [_claimant(r, queued[r.desired.uid], selected, monotonic) for r in lined]
    return PlaceRequests(queued, claimants, later, now)


def _too_many(asking: Iterable[RebalanceView]) -> dict[str, Place]:
    """By uid, the places of those for which the line has no room. One with an open run, or a plan, is always in it."""
    by_namespace = defaultdict[str, list[RebalanceView]](list)
    for rebalance in asking:
        by_namespace[rebalance.desired.metadata.namespace].append(rebalance)
    return {uid: place for some in by_namespace.values() for uid, place in _behind_the_line(some)}


def _behind_the_line(asking: Sequence[RebalanceView]) -> Iterable[tuple[str, Place]]:
    if len(asking) <= MOST_IN_LINE:
        return
    line = sorted(asking, key=lambda r: (not _in_line(r), -r.desired.spec.priority, r.desired.age_key))
    for position, rebalance in enumerate(line):
        if position >= MOST_IN_LINE and not _in_line(rebalance):
            behind_last = Place(runs=False, behind=line[position - 1].desired.name, position=position, no_room=True)
            yield rebalance.desired.uid, behind_last


def _in_line(rebalance: RebalanceView) -> bool:
    return rebalance.record.loaded_run is not None or rebalance.memory.planning is not None


def behind(queue: QueuePlace, name: str) -> QueuePlace:
    """The place of a rebalance that waits for the named one: to inherit its origins, or because it was not seen yet."""
    return replace(queue, place=Place(runs=False, behind=name, position=1))


def ahead_of(rebalance: RebalanceView, rebalances: Iterable[Rebalance]) -> list[Rebalance]:
    """The rebalances that run while this one waits, or end their steps to make room.

    Their moves are theirs, even if one looks like a step of this rebalance. One that ends steps of its own waits only
    for those that run, so that no two wait for each other.
    """
    mine = rebalance.assessment.queue.place
    if mine is None or mine.runs:
        return []

    def first(place: Place | None) -> bool:
        return place is not None and (place.runs or (place.yields and not mine.yields))

    return [r for r in rebalances if r.record.loaded_run and first(r.assessment.queue.place)]


def left_alone(rebalance: RebalanceView, *, for_good: bool = False) -> frozenset[TopicPartition]:
    """The partitions that the run has skipped. It does not claim them, so others may move them.

    ``for_good``: except for those that it leaves in place only until it may go on, has a new plan, or has ended with
    Revert. That may be put off by a copy that cannot be cancelled, and what it leaves in place is not on record.
    """
    assessment = rebalance.assessment
    skipped = assessment.statuses.within(MovePhase.SKIPPED)
    undecided = assessment.teardown.barrier is RollbackBarrier.TOO_LARGE
    reverts = assessment.judgement.direction is Direction.REVERT and not rebalance.place_given_up
    if not for_good or not (undecided or reverts or assessment.replanning is not None):
        return frozenset(skipped)
    return frozenset(tp for tp, status in skipped.items() if status.reason != Reason.LEFT_IN_PLACE)


def is_to_give_up_place(rebalance: RebalanceView, now: float) -> bool:
    """Whether the run is at rest without a place in the queue, and this is to be recorded (``Run.place_given_up``).

    Until it is recorded, no other one gets the place. ``now``: seconds of the monotonic clock.
    """
    place = rebalance.assessment.queue.place
    if not _unrecorded(rebalance) or late_call_possible(rebalance, now):
        return False
    return held_back(rebalance) or rebalance.memory.blocked(now) or (place is not None and not place.runs)


def _unrecorded(rebalance: RebalanceView) -> bool:
    """Whether the run is at rest after it has sent something, and it is not on record that others may begin."""
    run, opened = rebalance.record.open_run, rebalance.record.loaded_run
    if run is None or opened is None or run.started_at is None or run.place_given_up or run.rested:
        return False
    return at_rest(rebalance)


def _asked_since(rebalance: RebalanceView, now: datetime) -> QueuePlace:
    queue, desired = rebalance.assessment.queue, rebalance.desired
    if queue.asks_for == desired.planning_hash:
        return queue
    # If a resource was edited, the time since the edit counts, because its age is not the age of this request.
    since = now if queue.asks_for else desired.metadata.creation_timestamp or _EPOCH
    return replace(queue, asks_for=desired.planning_hash, asked_since=since)


def _claimant(
    rebalance: RebalanceView, queue: QueuePlace, selected: Mapping[str, frozenset[TopicPartition]], now: float
) -> Claimant:
    desired, record, statuses = rebalance.desired, rebalance.record, rebalance.assessment.statuses
    planning = rebalance.memory.planning is not None
    skipped = left_alone(rebalance, for_good=True)
    nothing = frozenset[TopicPartition]()
    partitions = record.loaded_run.partitions if record.loaded_run is not None else nothing
    moving = record.loaded_run is not None and (not _waits_to_replan(rebalance) or statuses.copying)
    gives_up_place = moving and held_back(rebalance)
    # Others may have begun since. Without the places that it had before a start, it would come first.
    holds = moving and not gives_up_place and not rebalance.place_given_up
    return Claimant(
        key=desired.uid,
        name=desired.name,
        partitions=partitions - skipped if skipped else partitions,
        priority=desired.spec.priority,
        since=queue.asked_since or _EPOCH,
        tearing_down=desired.deleting,
        holds=planning or holds,
        at_rest=not planning and (not moving or at_rest(rebalance)),
        asks=(_ends(rebalance) or not rebalance.memory.blocked(now)) and not gives_up_place,
        unanswered=record.loaded_run is not None and (late_call_possible(rebalance, now) or _unrecorded(rebalance)),
        planning=planning,
        failed=wants_plan(rebalance) and rebalance.memory.often_failed(desired.planning_hash),
        selected=selected[desired.uid] if may_plan(rebalance) else nothing,
    )


def _ends(rebalance: RebalanceView) -> bool:
    """Whether everything has arrived, and only the record of that is missing.

    If writing it got no answer, it may be there already. The run would undo what others move until it is tried again.
    """
    ended = rebalance.record.loaded_run is not None and rebalance.assessment.finished
    return ended and rebalance.refusal is None and not may_plan(rebalance)


def _waits_to_replan(rebalance: RebalanceView) -> bool:
    """Whether a new plan is to be made next. One that may not begin makes none, and only rests with its run."""
    replanning = rebalance.assessment.replanning
    return replanning is not None and replanning.ready and rebalance.may_begin


def held_back(rebalance: RebalanceView) -> bool:
    """Whether its own resource holds it back, so that the place in the queue is of no use to it."""
    assessment = rebalance.assessment
    if assessment.teardown.barrier is not None:
        return requires_decision(rebalance)
    block = assessment.step_block
    return block is not None and block.gives_up_place
