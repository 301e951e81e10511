"""Who of several rebalances of one cluster may go on: what each wants or holds, for ``execution.queue_order``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from kafka_rebalance.clock import Clock
from kafka_rebalance.execution.partition_status import MovePhase
from kafka_rebalance.execution.queue_order import Claimant, line_up
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState

_EPOCH = datetime.fromtimestamp(0, UTC)


def give_places(
    works: Iterable[RebalanceState], everything: Mapping[TopicPartition, PartitionState], clock: Clock
) -> None:
    """Set ``place`` of every work that has an open run or wants a plan. The places they had are taken into account."""
    lined = [work for work in works if work.open is not None or work.planning is not None or work.wants_plan]
    for work in lined:
        if work.asks_for != work.planning_hash:
            # Of a resource that was edited, the time since the edit counts: its age is not the age of this wish.
            created = work.rebalance.metadata.creation_timestamp or _EPOCH
            work.asks_for, work.asks_since = work.planning_hash, clock.now() if work.asks_for else created
    claimants = [_claimant(work, everything, clock.monotonic()) for work in lined]
    before = {work.uid: work.place for work in lined if work.place is not None}
    places = line_up(claimants, before, clock.now())
    for work in lined:
        work.place = places[work.uid]


def ahead_of(work: RebalanceState, works: Iterable[RebalanceState]) -> list[RebalanceState]:
    """Those that run while this one waits: what they move is theirs, also where it looks like a step of this one."""
    if not work.queued:
        return []
    return [other for other in works if other.open is not None and other.place is not None and other.place.runs]


def _claimant(work: RebalanceState, everything: Mapping[TopicPartition, PartitionState], now: float) -> Claimant:
    left_alone = {tp for tp, verdict in work.verdicts.items() if verdict.phase is MovePhase.SKIPPED}
    partitions = {errand.tp for errand in work.errands if errand.tp not in left_alone}
    if work.wants_plan or work.planning is not None:
        partitions |= work.wanted(everything)
    moving = work.open is not None and (not work.settled or work.copying)
    return Claimant(
        key=work.uid,
        name=work.name,
        partitions=frozenset(partitions),
        priority=work.rebalance.spec.priority,
        since=work.asks_since or _EPOCH,
        tearing_down=work.rebalance.metadata.deleting,
        holds=work.planning is not None or (moving and not _rests_by_itself(work)),
        at_rest=work.planning is None and (not moving or work.at_rest),
        asks=not work.blocked(now) and not (moving and _rests_by_itself(work)),
    )


def _rests_by_itself(work: RebalanceState) -> bool:
    """Whether its own resource holds it back, so that the place in the queue is of no use to it."""
    if work.barrier is not None:
        return work.waits_for_a_word
    queue = {Reason.QUEUED, Reason.YIELDING}
    return work.hold is not None and work.hold.releases and work.hold.reason not in queue
