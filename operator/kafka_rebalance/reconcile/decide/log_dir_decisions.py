"""Which replicas move between log dirs now, and what they may take. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kafka_rebalance.api.execution_spec import BETWEEN_LOG_DIRS
from kafka_rebalance.execution.log_dir_moves import (
    LogDirOrders,
    LogDirReading,
    LogDirShare,
    LogDirStatus,
    LogDirStatuses,
    judge_replica,
    log_dir_orders,
)
from kafka_rebalance.execution.partition_status import Direction, MovePhase
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.model.run import Origin
from kafka_rebalance.model.topology import BrokerId, PartitionState, ReplicaKey, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import by_precedence, direction_of
from kafka_rebalance.reconcile.decide.given_up_places import LEFT_IN_MOTION
from kafka_rebalance.reconcile.state.assessment import Assessment
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import LoadedRun, on_record


def replicas_to_read(running: Iterable[RebalanceView]) -> set[ReplicaKey]:
    """The replicas whose log dirs have to be read: none of a rebalance that has finished its work there.

    A rollback that waits for calls without an answer has not.
    """
    return {
        move.key
        for r in running
        if r.record.loaded_run is not None and (not r.assessment.finished or r.memory.unseen_since is not None)
        for move in r.record.loaded_run.log_dirs
    }


def with_log_dirs_judged(rebalance: RebalanceView, seen: LogDirReading | None) -> Assessment:
    """The assessment with the statuses by this reading; those before if nothing was read in this round.

    A reading that was made for other rebalances says nothing about one that had finished. A run that goes back and has
    moved nothing between log dirs has no statuses, also none from before it turned.
    """
    assessment, run = rebalance.assessment, rebalance.record.loaded_run
    direction = assessment.judgement.direction or direction_of(rebalance)
    if run is not None and not run.log_dirs and assessment.log_dirs.by_replica:
        return replace(assessment, log_dirs=LogDirStatuses(), dir_full=frozenset())
    if seen is None or run is None or direction is None or not run.log_dirs:
        return assessment
    if not seen.asked.issuperset(d.key for d in run.log_dirs):
        return assessment if assessment.finished else replace(assessment, log_dirs=LogDirStatuses())
    partitions, paused = assessment.statuses.by_partition, assessment.step_block is not None
    gone, of_others = set[BrokerId](), dict[ReplicaKey, str]()
    if (inputs := assessment.judgement.inputs) is not None:
        of_others = {d.key: name for name, first, left in inputs.ahead for d in first.log_dirs if d.tp not in left}
        gone = {d.broker for d in run.log_dirs} - seen.brokers - inputs.brokers.keys() - inputs.restarting
    statuses = {}
    for d in run.log_dirs:
        origin, status = _origin_of(d.tp, run, rebalance), partitions.get(d.tp)
        judged = judge_replica(d, seen, status, direction, origin, paused=paused, gone=d.broker in gone)
        if judged.cancel and (other := of_others.get(d.key)) is not None:
            message = f"{other} goes first with it"  # its copy may lead to a log dir that this run has left
            judged = LogDirStatus(MovePhase.WAITING, Reason.FOREIGN_REASSIGNMENT, message)
        elif judged.cancel and rebalance.place_given_up and d.tp.topic not in rebalance.unsettled:
            judged = LogDirStatus(MovePhase.WAITING, Reason.FOREIGN_REASSIGNMENT, LEFT_IN_MOTION)
        statuses[d.key] = judged
    found = LogDirStatuses(direction, statuses)
    return replace(assessment, log_dirs=found, dir_full=log_dir_orders([_share(rebalance, found)], seen)[0].no_room)


def _origin_of(tp: TopicPartition, run: LoadedRun, rebalance: RebalanceView) -> Origin | None:
    planned = run.move_of.get(tp)
    return on_record(tp, planned.topic_id if planned is not None else "", rebalance.own_origins)


def _share(rebalance: RebalanceView, statuses: LogDirStatuses) -> LogDirShare:
    per_broker = rebalance.desired.spec.execution.max_per_broker.between_log_dirs
    return LogDirShare(statuses, per_broker or BETWEEN_LOG_DIRS)


def orders_for_log_dirs(running: Sequence[RebalanceView], seen: LogDirReading) -> dict[str, LogDirOrders]:
    """By uid, with the same precedence as for other steps.

    By a reading of this round: by an older one the same copies would be counted as not begun, and too many begun.
    """
    first = by_precedence(running)
    shares = [_share(r, r.assessment.log_dirs) for r in first]
    return {r.desired.uid: orders for r, orders in zip(first, log_dir_orders(shares, seen), strict=True)}


def placements(
    rebalance: RebalanceView, orders: Orders, partitions: Mapping[TopicPartition, PartitionState]
) -> dict[ReplicaKey, str]:
    """The log dirs for the replicas that these orders create; in a rollback, those from before the run."""
    run = rebalance.record.loaded_run
    if run is None or not run.log_dirs or not orders.alters:
        return {}
    back = rebalance.assessment.judgement.direction is not Direction.FORWARD
    found = {}
    for move in run.log_dirs:
        path, created = (move.origin, move.after) if back else (move.after, move.before)
        comes = move.broker in orders.alters.get(move.tp, ())
        if comes and path is not None and created is None and move.broker not in partitions[move.tp].replicas:
            found[move.key] = path
    return found
