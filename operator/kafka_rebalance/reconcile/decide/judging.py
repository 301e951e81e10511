"""How each partition of a rebalance stands: judged again only where something that bears on it has changed.

The judgement itself is ``execution.partition_status.judge``, which looks at the present only. A status is kept while
the partition and all other inputs of the judgement are unchanged: of 200,000 planned partitions a few hundred move.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from kafka_rebalance.execution.partition_status import (
    Direction,
    MovePhase,
    Observation,
    PartitionMove,
    PartitionStatus,
    judge,
)
from kafka_rebalance.execution.progress import lost_moves
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState

log = logging.getLogger(__name__)


def moving(work: RebalanceState) -> set[TopicPartition]:
    """The partitions that have to be read in every tick: those that move or have begun to, and those not told about."""
    return {
        tp
        for tp, v in work.verdicts.items()
        if v.phase is MovePhase.IN_FLIGHT
        or (
            v.phase is not MovePhase.DONE
            and v.phase is not MovePhase.SKIPPED
            and (v.started or v.reason == Reason.METADATA_MISSING)
        )
    } | set(work.sent)


def judge_again(
    work: RebalanceState,
    seen: Observation,
    heading: Direction,
    restarting: frozenset[BrokerId],
    changed: Collection[TopicPartition],
    ahead: Collection[RebalanceState] = (),
) -> None:
    """Bring ``work.verdicts`` up to date; ``changed`` are partitions that may read otherwise than before.

    ``ahead`` are those whose turn it is: how their partitions look is their doing, and not for this one to mend.
    """
    if work.open is None:
        return
    paused, r = work.hold is not None, work.limits.parallel_replicas
    # Everything that `judge` looks at besides the partition itself.
    context = (
        heading,
        paused,
        r,
        frozenset(seen.cluster.brokers),
        restarting,
        tuple(sorted((topic, seen.min_insync.get(topic)) for topic in work.topics)),
        work.run_plan_hash,
        tuple(sorted((other.uid, other.run_plan_hash) for other in ahead)),
        (work.replanning, work.kept, work.planning_hash),
    )
    mine = replace(seen, restarting=restarting)

    def verdict(errand: PartitionMove) -> PartitionStatus:
        state = seen.cluster.partitions.get(errand.tp)
        stays = state is not None and state.in_flight and work.keeps(errand.tp)
        found = judge(errand, mine, Direction.FORWARD if stays else heading, r, paused=paused)
        other = next((o for o in ahead if o.open is not None and errand.tp in o.open.errand_of), None)
        if other is None or found.phase not in {MovePhase.IN_FLIGHT, MovePhase.READY}:
            return found
        return PartitionStatus(MovePhase.WAITING, Reason.FOREIGN_REASSIGNMENT, f"{other.name} goes first with it")

    if context != work.judged_in:
        work.judged_in = context
        work.verdicts = {e.tp: verdict(e) for e in work.errands}
        return
    for tp in changed:
        errand = work.open.errand_of.get(tp)
        if errand is not None:
            work.verdicts[tp] = verdict(errand)


def notice_drift(work: RebalanceState) -> None:
    """With more of the moves gone than the budget, the plan is no longer worth carrying out."""
    if work.direction is not Direction.FORWARD:
        return
    lost, total = lost_moves(work.errands, work.verdicts)
    if total and 100 * lost > work.rebalance.spec.approval.drift_budget * total:
        log.info("%s: %d of %d replica moves are lost to others: planning again", work.name, lost, total)
        work.replanning = Reason.DRIFTED


def still_meant(orders: Orders, before: dict[TopicPartition, PartitionStatus], work: RebalanceState) -> Orders:
    """The orders for partitions of which a second look says the same: an older reading may have been overtaken."""

    def holds(tp: TopicPartition) -> bool:
        return tp not in before or work.verdicts[tp] == before[tp]

    return replace(
        orders,
        cancels=tuple(tp for tp in orders.cancels if holds(tp)),
        alters={tp: to for tp, to in orders.alters.items() if holds(tp)},
        elections=tuple(tp for tp in orders.elections if holds(tp)),
    )
