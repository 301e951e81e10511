"""The status of each partition of a rebalance: judged again only where something that it depends on has changed.

The judgement itself is ``execution.partition_status.judge``, which looks at the present only. A status is kept while
the partition and ``JudgeInputs`` are unchanged: of 200,000 planned partitions a few hundred move. Pure.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from kafka_rebalance.execution.alike import AlikeJudge
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, PartitionStatus, judge
from kafka_rebalance.execution.ready_calls import ReadyCalls
from kafka_rebalance.execution.tally import Tally
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import copies_to_keep
from kafka_rebalance.reconcile.decide.given_up_places import left_as_it_is, left_to_others, open_to_others
from kafka_rebalance.reconcile.observe.observer import Changes
from kafka_rebalance.reconcile.state.assessment import Assessment
from kafka_rebalance.reconcile.state.judgement import JudgeInputs, Judgement, Statuses
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import LoadedRun, as_recorded

V = TypeVar("V")

_UNSETTLED = (MovePhase.IN_FLIGHT, MovePhase.READY, MovePhase.WAITING)
_UNKNOWN = {Reason.METADATA_MISSING, Reason.TOPIC_FORBIDDEN}


def partitions_to_read(assessment: Assessment) -> set[TopicPartition]:
    """What has to be read in every round: partitions that move or have begun to, and those that cannot be read."""
    return {
        tp
        for tp, status in assessment.statuses.notable.items()
        if status.phase in _UNSETTLED
        and (status.phase is MovePhase.IN_FLIGHT or status.started or status.reason in _UNKNOWN)
    } | assessment.sent


def skipped_partitions(rebalance: RebalanceView) -> dict[TopicPartition, PartitionStatus]:
    """The partitions left alone, by the plan or since; sorted."""
    found = rebalance.assessment.statuses.within(MovePhase.SKIPPED)
    for row in rebalance.record.loaded_run.plan.skipped if rebalance.record.loaded_run else ():
        found.setdefault(row.tp, PartitionStatus(MovePhase.SKIPPED, row.reason))
    return dict(sorted(found.items()))


def exempt_from_health_gate(
    rebalance: RebalanceView,
    unhealthy: Mapping[TopicPartition, PartitionState],
    partitions: Mapping[TopicPartition, PartitionState],
) -> Iterator[TopicPartition]:
    """The unhealthy partitions that the health gate ignores: those of the run in flight or above their RF.

    And those that the plan skipped because they had no leader: spec.offlinePolicy Skip asks for that.
    """
    run = rebalance.record.loaded_run
    if run is None:
        return
    notable = rebalance.assessment.statuses.notable
    for tp in notable.keys() & unhealthy.keys():
        status, state, move = notable[tp], partitions.get(tp), run.move_of.get(tp)
        if not status.started or status.by_others or status.phase not in _UNSETTLED or state is None or move is None:
            continue
        if state.in_flight or len(state.replicas) > move.most:
            yield tp
    yield from (row.tp for row in run.plan.skipped if row.reason == Reason.NO_LEADER)


def judge_inputs(
    rebalance: RebalanceView,
    run: LoadedRun,
    direction: Direction,
    seen: Observation,
    restarting: frozenset[BrokerId],
    ahead: Iterable[RebalanceView] = (),
    others: Collection[RebalanceView] = (),
) -> JudgeInputs:
    """The inputs of the statuses of the run, in addition to its partitions.

    ``ahead``: the rebalances whose turn it is; ``others``: all other rebalances of the cluster with an open run.
    """
    return JudgeInputs(
        run=run,
        direction=direction,
        paused=rebalance.assessment.step_block is not None,
        parallel_replicas=rebalance.desired.limits.parallel_replicas,
        brokers=dict(seen.cluster.brokers),
        restarting=restarting,
        min_insync=_of_topics(seen.min_insync, run.topics),
        forbidden=_of_topics(seen.forbidden, run.topics),
        unread=frozenset(seen.unread) & run.topics if seen.unread else frozenset(),
        keep=copies_to_keep(rebalance),
        ahead=tuple(
            (other.desired.name, other.record.loaded_run, open_to_others(other))
            for other in ahead
            if other.record.loaded_run is not None
        ),
        origins=rebalance.own_origins,
        rests=rebalance.rests,
        left_to_others=_left_to_others(rebalance, others),
        left_in_motion=left_to_others(rebalance, replace(seen, restarting=restarting)),
        place_given_up=rebalance.place_given_up,
        unsettled=rebalance.unsettled,
    )


def _left_to_others(rebalance: RebalanceView, others: Iterable[RebalanceView]) -> dict[TopicPartition, PartitionStatus]:
    """The skipped partitions that other rebalances move now, which this one does not claim in the queue."""
    moving = [other for other in others if other.assessment.queue.place and other.assessment.queue.place.runs]
    skipped = rebalance.assessment.statuses.within(MovePhase.SKIPPED) if moving else {}
    if not skipped:
        return {}
    theirs = frozenset[TopicPartition]().union(*(_moved(other, skipped.keys()) for other in moving))
    return {tp: status for tp, status in skipped.items() if tp in theirs}


def _moved(rebalance: RebalanceView, tps: AbstractSet[TopicPartition]) -> AbstractSet[TopicPartition]:
    """Those that the run has begun to move. A new plan, which is not judged yet, may continue a copy."""
    run, statuses = rebalance.record.loaded_run, rebalance.assessment.statuses
    if run is None:
        return frozenset()
    if not statuses.judged:
        return tps & run.move_of.keys()
    sent = {tp for tp in tps & rebalance.assessment.sent if tp in statuses.judged}
    return sent | (tps & statuses.begun)


def _of_topics(values: Mapping[str, V], topics: frozenset[str]) -> Mapping[str, V]:
    """The values of these topics. Nothing is copied if there are no other topics."""
    return values if values.keys() <= topics else {topic: v for topic, v in values.items() if topic in topics}


def partitions_to_judge(before: Judgement, inputs: JudgeInputs, changes: Changes) -> Collection[TopicPartition] | None:
    """The partitions whose status may have changed; None: all, because an input differs or a reading was missed."""
    concerned = inputs.concerned(before.inputs) if before.inputs is not None else None
    if concerned is None or before.reading not in {changes.before, changes.after}:
        return None
    # Partitions that were judged by this reading are not judged again: the first reading of a run changes all of them.
    return {*concerned, *changes.partitions} if before.reading != changes.after else concerned


def judge_again(
    before: Judgement, inputs: JudgeInputs, seen: Observation, changes: Changes, now: datetime
) -> Judgement:
    """The judgement, updated by these changes; made from scratch if that may concern any partition.

    Only the partitions of ``seen`` count, and which of them are gone; everything else comes from ``inputs``.
    """
    cluster = ClusterState(seen.cluster.cluster_id, inputs.brokers, seen.cluster.partitions)
    known = Observation(cluster, inputs.min_insync, seen.gone, inputs.restarting, inputs.forbidden, inputs.unread)
    run, direction, tally, ready = inputs.run, inputs.direction, before.tally, before.ready
    alike = AlikeJudge(known, direction, inputs.parallel_replicas, partial(as_recorded, inputs.origins))
    again = partitions_to_judge(before, inputs, changes)
    if again is None:
        others = inputs.left_to_others or inputs.left_in_motion or inputs.place_given_up or inputs.ahead
        plain = not (others or inputs.keep or inputs.rests)
        status_of = alike.status_of if plain else partial(_status_of, known=known, inputs=inputs, alike=alike)
        found = {move.tp: status_of(move) for move in run.moves}
        statuses, tally, ready = Statuses.of(found, paused=inputs.paused), None, None
    else:
        moves = [run.move_of[tp] for tp in again if tp in run.move_of]
        found = {move.tp: _status_of(move, known, inputs, alike) for move in moves}
        judged = before.statuses.judged
        changed = {tp: status for tp, status in found.items() if not _same(status, judged[tp])}
        statuses = before.statuses.updated(changed).under(paused=inputs.paused)
        tally = tally.updated(moves, statuses.judged, cluster.partitions) if tally is not None else None
        ready = ready.updated(found, statuses.judged, cluster.partitions) if ready is not None else None
    if tally is None:
        tally = Tally.of(run.moves, statuses.judged, cluster.partitions, direction, inputs.parallel_replicas)
    if ready is None:
        ready = ReadyCalls.of(statuses.judged, cluster.partitions, run.sizes)
    since = before.since
    if statuses is not before.statuses:
        since = {tp: since.get(tp, now) for tp in statuses.within(MovePhase.IN_FLIGHT)}
    return Judgement(direction, statuses, since, inputs, changes.after, tally, ready)


def _same(one: PartitionStatus, other: PartitionStatus) -> bool:
    return one == other and one.pausable is other.pausable


def _status_of(move: PartitionMove, known: Observation, inputs: JudgeInputs, alike: AlikeJudge) -> PartitionStatus:
    if (left := inputs.left_to_others.get(move.tp)) is not None:
        return left  # what the other one does may look like a step of this run
    other = next((name for name, run, left in inputs.ahead if move.tp in run.move_of and move.tp not in left), None)
    # A rebalance that goes first has changed the partition, not another tool.
    recorded = move if other is not None else as_recorded(inputs.origins, move)
    state = known.cluster.partitions.get(move.tp) if move.tp in inputs.keep else None
    if state is not None and state.in_flight:
        found = judge(recorded, known, Direction.FORWARD, inputs.parallel_replicas)
    elif other is not None:
        found = judge(recorded, known, inputs.direction, inputs.parallel_replicas)
    else:
        found = alike.status_of(move)
    if found.phase is MovePhase.READY and (left := left_as_it_is(move.tp, known, inputs)) is not None:
        return left
    if (inputs.rests or inputs.lets_others_move(move.tp)) and found.phase is MovePhase.READY and not found.cancel:
        found = replace(found, pausable=True, to_rest=None)
    if other is not None and inputs.paused:
        found = found.under_pause()
    if other is None or found.phase not in {MovePhase.IN_FLIGHT, MovePhase.READY}:
        return found
    # It must not be repaired by this rebalance.
    return PartitionStatus(MovePhase.WAITING, Reason.FOREIGN_REASSIGNMENT, f"{other} goes first with it")
