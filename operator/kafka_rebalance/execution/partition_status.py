"""The status of each partition of a run (done, in flight, ready, waiting, skipped) and its next call to Kafka.

Pure. ``judge`` looks at one partition; ``execution.schedule`` picks what may be sent. Both look only at what was
observed, so a restart changes no answer. Three rules come from real brokers: a partition in flight is sent nothing but
null, new copies are made before old ones are dropped, and only the call before an election changes the order.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kafka_rebalance.execution import steps
from kafka_rebalance.execution.cancellation import why_not_cancel
from kafka_rebalance.execution.copies_in_flight import what_a_copy_lacks
from kafka_rebalance.execution.partition_move import (
    PartitionMove,
    changed_instead,
    drift,
    is_by_others,
    keeps_its_list,
    resized,
)
from kafka_rebalance.execution.rollback import Skip, rollback_target, without_surplus
from kafka_rebalance.model.bulk import made_in_bulk
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

_LET_GO = "a deletion ends without that at spec.rollback.timeout, or with the annotation kafkarebalance.dev/let-go=true"
_EXITS = f": the reassignment is cancelled when another of them is in sync, or completes; {_LET_GO}"
_EXITS_UNREAD = f": the reassignment is cancelled when min.insync.replicas can be read, or completes; {_LET_GO}"


class Direction(StrEnum):
    """Where a run is going."""

    FORWARD = "Forward"  # to the plan's targets
    ROLLBACK = "Rollback"  # back to the origins
    REVERT = "Revert"  # only partitions in flight go back


class MovePhase(StrEnum):
    """How far a partition is."""

    DONE = "Done"  # where the run is going; no call is left
    IN_FLIGHT = "InFlight"  # a step of the move is in progress
    READY = "Ready"  # a call or a cancellation may be sent
    WAITING = "Waiting"  # no call may be sent now; the reason says why
    SKIPPED = "Skipped"  # left alone for the rest of the run


@made_in_bulk
@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """The status of one partition. ``step``: the list that its step leads to; ``call``: what may be sent now.

    ``reason`` and ``message``: what it waits for, in flight too, or why it is skipped. ``cancel``: the reassignment in
    flight is to be cancelled. ``started``: a step may have been sent: it is in flight, or the list is not the one it
    started from. ``leader_movement``: the step counts towards KIP-435's L. ``pausable``: a pause holds it back, see
    ``under_pause``. ``to_rest``: the call that a pause leaves instead, for a partition above its replication factor.
    ``by_others``: others have made the list what it is, so that a pause leaves it.
    """

    phase: MovePhase
    reason: str = ""
    message: str = ""
    step: Replicas = ()
    call: steps.Call | None = None
    cancel: bool = False
    started: bool = False
    leader_movement: bool = False
    pausable: bool = field(default=False, compare=False)
    to_rest: steps.Alter | None = None
    by_others: bool = False

    def under_pause(self) -> "PartitionStatus":
        """The status while no new step is started: only a call that leads to a rest point is left."""
        if not self.pausable:
            return self
        if self.to_rest is not None:
            return PartitionStatus(self.phase, step=self.to_rest.replicas, call=self.to_rest, started=self.started)
        return _wait(Reason.PAUSED, "no new step is started now", started=self.started, step=self.step)


@dataclass(frozen=True, slots=True)
class Observation:
    """The readings of this round.

    ``gone``: partitions that several readings in a row did not show, so they are deleted. ``min_insync``: the effective
    value by topic; without it no replica is dropped and nothing is cancelled. ``restarting``: brokers that are not live
    since just now. ``forbidden``: topics that we may not describe, or whose configs we may not describe, with Kafka's
    error. ``unread``: topics whose last reading failed; their partitions keep the previous values.
    """

    cluster: ClusterState
    min_insync: Mapping[str, int] = field(default_factory=dict)
    gone: Collection[TopicPartition] = ()
    restarting: Collection[BrokerId] = ()
    forbidden: Mapping[str, str] = field(default_factory=dict)
    unread: Collection[str] = ()


def judge(move: PartitionMove, seen: Observation, direction: Direction, parallel_replicas: int) -> PartitionStatus:
    """The partition's status and next call. During a pause its ``under_pause`` holds."""
    status = _judge_as_seen(move, seen, direction, parallel_replicas)
    if move.tp.topic not in seen.unread or status.phase in {MovePhase.IN_FLIGHT, MovePhase.WAITING}:
        return status
    # Where the partition was before may be where it was before our last step: nothing ends, and nothing is sent.
    reason, message = Reason.METADATA_MISSING, "no broker described the partition in this round; retrying"
    if (denied := seen.forbidden.get(move.tp.topic)) is not None:
        reason, message = Reason.TOPIC_FORBIDDEN, denied
    return _wait(reason, message, started=status.started, step=status.step, pausable=status.pausable)


def _judge_as_seen(
    move: PartitionMove, seen: Observation, direction: Direction, parallel_replicas: int
) -> PartitionStatus:
    state = seen.cluster.partitions.get(move.tp)
    if state is None:
        if move.tp.topic in seen.forbidden:
            return _wait(Reason.TOPIC_FORBIDDEN, seen.forbidden[move.tp.topic])
        if move.tp in seen.gone:
            return _skip(Reason.TOPIC_DELETED, "the partition no longer exists")
        return _wait(Reason.METADATA_MISSING, "no broker reported the partition; retrying")
    if move.topic_id and state.topic_id and state.topic_id != move.topic_id:
        return _skip(Reason.TOPIC_RECREATED, "the topic was deleted and created again after the plan was made")
    if direction is not Direction.FORWARD and keeps_its_list(move, state):
        return PartitionStatus(MovePhase.DONE)
    if direction is not Direction.FORWARD and (by_others := changed_instead(move, state)):
        return _wait(Reason.FOREIGN_REASSIGNMENT, by_others) if state.in_flight else _skip(Reason.DRIFTED, by_others)
    if state.in_flight:
        return _judge_in_flight(move, state, seen, direction)
    if by_others := drift(move, state.replicas) or resized(move, state):
        return _skip(Reason.DRIFTED, by_others)
    if direction is Direction.FORWARD and move.elects and state.replicas != move.target:
        message = f"another tool changed its replicas: {list(state.replicas)} is not the list planned from"
        return _skip(Reason.DRIFTED, message)
    if direction is Direction.FORWARD and not move.elects and move.origin == move.planned_from == move.target:
        return PartitionStatus(MovePhase.DONE)  # an earlier plan named it, and no step was sent
    return _judge_at_rest(move, state, seen, direction, parallel_replicas)


def _judge_in_flight(
    move: PartitionMove, state: PartitionState, seen: Observation, direction: Direction
) -> PartitionStatus:
    adding = set(state.adding)
    if not set(state.replicas) <= move.known or is_by_others(move, state):
        if state.wedged:
            message = "a reassignment by another tool adds and removes the same broker and never completes"
            return _wait(Reason.WEDGED_REASSIGNMENT, f"{message}; cancel it: kafka-rebalance doctor --cancel-wedged")
        return _wait(Reason.FOREIGN_REASSIGNMENT, "another tool is reassigning the partition")
    goal = move.target if direction is Direction.FORWARD else move.origin
    # A rollback waits neither for a copy on a broker that is gone nor for its return: a deletion would never end.
    awaited = adding - state.isr or set(state.replicas) - set(state.removing) - state.isr
    lost = not awaited.isdisjoint(_gone(move.known, seen))
    hopeless = direction is Direction.ROLLBACK and (lost or bool(_never_led(state, seen)))
    if adding <= set(goal) and not state.wedged and not hopeless and direction is not Direction.REVERT:
        step = tuple(b for b in state.replicas if b not in state.removing)
        leads_away = bool(state.leader is not None and step[:1] != (state.leader,))
        reason, message = what_a_copy_lacks(state, seen.cluster.brokers)
        return PartitionStatus(
            MovePhase.IN_FLIGHT, reason, message, step=step, started=True, leader_movement=leads_away
        )
    kept = [b for b in state.replicas if b not in adding]
    if (wait := why_not_cancel(kept, state.isr, seen.min_insync.get(move.tp.topic))) is not None:
        if wait.reason == Reason.METADATA_MISSING and move.tp.topic in seen.forbidden:
            return _wait(Reason.TOPIC_FORBIDDEN, seen.forbidden[move.tp.topic] + _EXITS_UNREAD, started=True)
        exits = _EXITS if wait.reason == Reason.CANCEL_BELOW_MIN_INSYNC_REPLICAS else ""
        return _wait(wait.reason, wait.message + exits, started=True)
    # Forward, it is a way back of ours, which may end during a pause, or others move the partition back.
    pausable = direction is Direction.FORWARD and not state.wedged
    return PartitionStatus(MovePhase.READY, Reason.CANCELLING, cancel=True, started=True, pausable=pausable)


def _judge_at_rest(
    move: PartitionMove, state: PartitionState, seen: Observation, direction: Direction, parallel_replicas: int
) -> PartitionStatus:
    if direction is Direction.FORWARD:
        status = _judge_next_step(move, state, seen, direction, move.target, parallel_replicas)
        return replace(status, by_others=True) if is_by_others(move, state) else status
    goal = rollback_target(
        move.origin,
        move.target,
        state,
        seen.cluster.brokers.keys(),
        restarting=seen.restarting,
        only_in_flight=direction is Direction.REVERT,
    )
    if isinstance(goal, Skip):
        return _skip(goal.reason, goal.message)
    if isinstance(goal, steps.Wait):
        return _wait(goal.reason, goal.message, started=True)
    restored = _judge_restored(move, state, seen, direction)
    return restored or _judge_next_step(move, state, seen, direction, goal, parallel_replicas)


def _judge_restored(
    move: PartitionMove, state: PartitionState, seen: Observation, direction: Direction
) -> PartitionStatus | None:
    """The status if no election follows the restored replicas; None: they are not restored, or an election follows."""
    if state.replicas == move.origin and _led_by_another(move):
        return PartitionStatus(MovePhase.DONE)  # as before the run, when its preferred replica did not lead either
    if not _only_preferred_leader_missing(move, state, seen):
        return None
    if state.replicas == move.origin:
        message = f"the replicas are restored, but their preferred leader, broker {move.origin[0]}, is gone"
        return _skip(Reason.PREFERRED_LEADER_GONE, message)
    # The order is restored all the same: Kafka elects the broker when it returns, as it would have before the run.
    call, stays = steps.Alter(move.origin), _may_keep_order(move, state, direction)
    return PartitionStatus(
        MovePhase.READY, step=move.origin, call=call, started=True, leader_movement=True, pausable=stays
    )


def _judge_next_step(
    move: PartitionMove,
    state: PartitionState,
    seen: Observation,
    direction: Direction,
    goal: Replicas,
    parallel_replicas: int,
) -> PartitionStatus:
    """The status by the next step towards the goal."""
    back = direction is not Direction.FORWARD
    min_insync = seen.min_insync.get(move.tp.topic)
    if min_insync is None and move.tp.topic in seen.forbidden:
        return _wait(Reason.TOPIC_FORBIDDEN, seen.forbidden[move.tp.topic])
    if min_insync is None:
        return _wait(Reason.METADATA_MISSING, "no broker reported min.insync.replicas; retrying")
    grown = back and len(goal) < min(len(move.target), len(state.replicas))
    if grown and len(goal) < min_insync:
        if len(state.replicas) <= len(move.target):
            message = f"min.insync.replicas is {min_insync}: no client could produce with {len(goal)} replicas"
            return _skip(Reason.BELOW_MIN_INSYNC_REPLICAS, message)
        goal = without_surplus(state, len(move.target), seen.cluster.brokers).replicas
    # Require no more than there would be: one replica with min.insync.replicas=2 was like that before us.
    min_insync = min(min_insync, max(len(move.origin), len(goal)))
    rules = steps.StepRules(parallel_replicas, min_insync, seen.cluster.brokers.keys())
    present = steps.Present(state.replicas, state.isr, state.leader)
    outcome = steps.next_step(present, goal, rules)
    if outcome is None:
        return PartitionStatus(MovePhase.DONE)
    if isinstance(outcome, steps.Wait):
        awaited = dict.fromkeys((*move.origin, *goal))
        lost = _gone(awaited, seen) if state.leader is not None else _never_led(state, seen)
        if back and lost:
            # The wait may never end, and a broker that is gone must not block a deletion.
            return _skip(Reason.ORIGINAL_BROKER_GONE, f"{outcome.message}; brokers {lost} are gone")
        return _wait(outcome.reason, outcome.message, started=state.replicas != move.planned_from)
    if back and (absent := _left_out_of_sync(move, state, outcome, seen)):
        # Kafka before 4.3 would not complete the step, and it would be cancelled: do not start it.
        return _skip(Reason.ORIGINAL_BROKER_GONE, f"brokers {absent} are gone and would stay replicas out of sync")
    if direction is Direction.REVERT and (behind := _behind_a_drop(outcome, state)):
        # Kafka would not complete the drop before, and what a revert finds in flight is cancelled.
        message = f"Kafka drops no replica until broker {behind[0]}, which stays, is in sync"
        return _wait(Reason.REPLICA_NOT_IN_SYNC, message, started=True)
    return _judge_call(move, state, direction, goal, outcome, rules)


def _judge_call(
    move: PartitionMove,
    state: PartitionState,
    direction: Direction,
    goal: Replicas,
    step: steps.Step,
    rules: steps.StepRules,
) -> PartitionStatus:
    """Whether the first call of the step may be sent now, or has to wait for a copy that is not in sync.

    Replicas above the replication factor are the run's only if it has sent the partition something.
    """
    by_others = is_by_others(move, state)
    call, pausable = step.calls[0], by_others or not _leads_to_rest(move, state, step, direction)
    start = move.planned_from if direction is Direction.FORWARD else move.target
    late = [b for b in goal if b in state.replicas and b not in start and b not in state.isr]
    if late and isinstance(call, steps.Alter) and state.isr - set(call.replicas):
        # The reassignment ended before metadata showed the copy in the ISR, or it left the ISR: drop nothing for it.
        message = f"broker {late[0]} has the copy but is not in sync; no in-sync replica is dropped before it is"
        return _wait(Reason.COPY_NOT_IN_SYNC, message, started=True, step=step.replicas, pausable=pausable)
    present, most = steps.Present(state.replicas, state.isr, state.leader), move.most
    bring_to_rest = pausable and not by_others and len(state.replicas) > most
    return PartitionStatus(
        MovePhase.READY,
        step=step.replicas,
        call=call,
        started=state.replicas != move.planned_from,
        leader_movement=steps.is_leader_movement(present, call),
        pausable=pausable,
        to_rest=steps.to_rest(present, goal, most, rules) if bring_to_rest else None,
    )


def _skip(reason: str, message: str) -> PartitionStatus:
    return PartitionStatus(MovePhase.SKIPPED, reason, message)


def _wait(
    reason: str, message: str, *, started: bool = False, step: Replicas = (), pausable: bool = False
) -> PartitionStatus:
    return PartitionStatus(MovePhase.WAITING, reason, message, step=step, started=started, pausable=pausable)


def _led_by_another(move: PartitionMove) -> bool:
    return move.origin_leader not in {None, move.origin[0]}


def _only_preferred_leader_missing(move: PartitionMove, state: PartitionState, seen: Observation) -> bool:
    """Whether the original replicas are back, and their preferred leader is gone while another one leads."""
    led = state.leader is not None and bool(state.isr)
    return led and set(state.replicas) == set(move.origin) and bool(_gone(move.origin[:1], seen))


def _gone(brokers: Iterable[BrokerId], seen: Observation) -> list[BrokerId]:
    """Those that are neither live nor restarting."""
    return [b for b in brokers if b not in seen.cluster.brokers and b not in seen.restarting]


def _never_led(state: PartitionState, seen: Observation) -> list[BrokerId]:
    """The replicas whose brokers are gone, if there is no leader and none restarts or is about to lead."""
    returning = (b in seen.restarting or (b in state.isr and b in seen.cluster.brokers) for b in state.replicas)
    return [] if state.leader is not None or any(returning) else _gone(state.replicas, seen)


def _behind_a_drop(step: steps.Step, state: PartitionState) -> list[BrokerId]:
    """The replicas out of sync that stay, if the step's first call only drops others."""
    call = step.calls[0]
    if not isinstance(call, steps.Alter) or call.until_in_sync or len(call.replicas) == len(state.replicas):
        return []
    return [b for b in call.replicas if b not in state.isr]


def _left_out_of_sync(
    move: PartitionMove, state: PartitionState, step: steps.Step, seen: Observation
) -> list[BrokerId]:
    """Original brokers that are gone, and that the step's first copy would leave in the list out of sync."""
    call = step.calls[0]
    if not isinstance(call, steps.Alter) or not call.until_in_sync:
        return []
    return [b for b in _gone(move.origin, seen) if b in call.replicas and b not in state.isr]


def _leads_to_rest(move: PartitionMove, state: PartitionState, step: steps.Step, direction: Direction) -> bool:
    """Whether the step may be sent during a pause.

    It may only drop replicas above the replication factor, elect a leader that a step has put first, or restore the
    order, which a null does not.
    """
    call = step.calls[0]
    if isinstance(call, steps.Elect):
        return direction is not Direction.FORWARD or (not move.elects and state.replicas != move.planned_from)
    if call.until_in_sync:
        return False
    same_brokers = set(call.replicas) == set(state.replicas)
    repairs_order = direction is not Direction.FORWARD and same_brokers and not _may_keep_order(move, state, direction)
    return repairs_order or len(state.replicas) > move.most


def _may_keep_order(move: PartitionMove, state: PartitionState, direction: Direction) -> bool:
    """Whether a paused rollback leaves the order: as the plan made or found it, or of a list that it only reordered."""
    without_copies = set(move.origin) == set(move.target)
    return direction is Direction.ROLLBACK and (without_copies or state.replicas in {move.target, move.planned_from})
