"""What to send to Kafka now, for one rebalance: a pure function of what was observed.

``judge`` looks at each partition by itself (is it done, in flight, ready for a call, or waiting, and for what);
``execution.schedule`` picks what may be sent. Both look only at the present, so the answer after a crash
is the answer that would have been given without it. Three rules come from real brokers: a partition in flight is sent
nothing but null, copies are made before old ones go, and the order changes only in the call after which we elect.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kafka_rebalance.execution.rollback import Skip, rollback_target
from kafka_rebalance.execution.steps import (
    Alter,
    Call,
    Elect,
    Present,
    Step,
    StepRules,
    Wait,
    is_leader_movement,
    next_step,
)
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason


class Direction(StrEnum):
    """Where a run is going."""

    FORWARD = "Forward"  # to the plan's targets
    ROLLBACK = "Rollback"  # back to the origins
    REVERT = "Revert"  # only what is in flight goes back


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """One partition's way: where it was before the run, the list the plan was made from, and where the plan wants it.

    ``origin`` and ``planned_from`` differ only where an earlier plan of the same run was superseded half way.
    ``origin_leader`` led the partition when the origin was recorded; None where that is not known. ``elects``: the list
    stays, and its first replica is to be elected. Where the list stays and nobody is, the partition is only remembered.
    """

    tp: TopicPartition
    topic_id: str
    origin: Replicas
    planned_from: Replicas
    target: Replicas
    size_bytes: int = 0
    origin_leader: BrokerId | None = None
    elects: bool = False

    @property
    def fewest(self) -> int:
        """No step of ours leaves fewer replicas than this: a shorter list is somebody else's doing."""
        return min(len(self.origin), len(self.planned_from), len(self.target))

    @property
    def known(self) -> frozenset[BrokerId]:
        """Every broker on which the run can have put the partition; a replica elsewhere is somebody else's doing."""
        return frozenset((*self.origin, *self.planned_from, *self.target))


class MovePhase(StrEnum):
    """What a partition's status is."""

    DONE = "Done"
    IN_FLIGHT = "InFlight"
    READY = "Ready"
    WAITING = "Waiting"
    SKIPPED = "Skipped"


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """How one partition stands. ``step`` is the list it is being brought to, ``call`` what would be sent now.

    ``reason`` and ``message`` say what it waits for, in flight too, or why it is left alone.
    """

    phase: MovePhase
    reason: str = ""
    message: str = ""
    step: Replicas = ()
    call: Call | None = None
    cancel: bool = False
    started: bool = False
    leader_movement: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """What was read in this tick.

    ``gone`` are partitions that several readings in a row did not show: deleted. ``min_insync`` is the effective
    value per topic; without it no drop can be judged. ``restarting`` are brokers that are not live but have been away
    only for a moment.
    """

    cluster: ClusterState
    min_insync: Mapping[str, int] = field(default_factory=dict)
    gone: Collection[TopicPartition] = ()
    restarting: Collection[BrokerId] = ()


def judge(
    move: PartitionMove, seen: Observation, direction: Direction, parallel_replicas: int, *, paused: bool = False
) -> PartitionStatus:
    """How the partition stands, and what would be the next call. ``paused``: only what leads to a rest point."""
    state = seen.cluster.partitions.get(move.tp)
    if state is None:
        if move.tp in seen.gone:
            return PartitionStatus(MovePhase.SKIPPED, Reason.TOPIC_DELETED, "the partition no longer exists")
        return PartitionStatus(
            MovePhase.WAITING, Reason.METADATA_MISSING, "no broker told about the partition; asking again"
        )
    if move.topic_id and state.topic_id and state.topic_id != move.topic_id:
        return PartitionStatus(
            MovePhase.SKIPPED, Reason.TOPIC_RECREATED, "the topic was deleted and created anew since the plan"
        )
    if state.in_flight:
        return _judge_in_flight(move, state, seen, direction)
    if not set(state.replicas) <= move.known:
        return PartitionStatus(
            MovePhase.SKIPPED, Reason.DRIFTED, f"its replicas {list(state.replicas)} are neither old nor planned ones"
        )
    if len(state.replicas) < move.fewest:
        message = f"its replicas {list(state.replicas)} are fewer than any step of ours leaves: someone changed them"
        return PartitionStatus(MovePhase.SKIPPED, Reason.DRIFTED, message)
    if direction is Direction.FORWARD and move.elects and state.replicas != move.target:
        return PartitionStatus(
            MovePhase.SKIPPED, Reason.DRIFTED, f"its list {list(state.replicas)} is not the one planned from"
        )
    if direction is Direction.FORWARD and not move.elects and move.origin == move.planned_from == move.target:
        return PartitionStatus(MovePhase.DONE)  # an earlier plan wanted something of it, and has not done it
    return _judge_at_rest(move, state, seen, direction, parallel_replicas, paused=paused)


def _judge_in_flight(
    move: PartitionMove, state: PartitionState, seen: Observation, direction: Direction
) -> PartitionStatus:
    adding = set(state.adding)
    if not set(state.replicas) <= move.known:
        if state.wedged:
            message = "someone else's reassignment adds and removes the same broker, which does not end by itself"
            return PartitionStatus(
                MovePhase.WAITING,
                Reason.WEDGED_REASSIGNMENT,
                f"{message}: kafka-rebalance doctor --cancel-wedged ends it",
            )
        return PartitionStatus(
            MovePhase.WAITING, Reason.FOREIGN_REASSIGNMENT, "someone else is reassigning the partition"
        )
    goal = move.target if direction is Direction.FORWARD else move.origin
    # Going back, a broker that is gone is not waited for, neither its copy nor its return: a deletion would never end.
    awaited = adding - state.isr or set(state.replicas) - set(state.removing) - state.isr
    hopeless = direction is Direction.ROLLBACK and not awaited.isdisjoint(_gone(move, seen))
    if adding <= set(goal) and not state.wedged and not hopeless and direction is not Direction.REVERT:
        step = tuple(b for b in state.replicas if b not in state.removing)
        leads_away = bool(state.leader is not None and step[:1] != (state.leader,))
        reason, message = _what_the_copy_lacks(state, seen)
        return PartitionStatus(
            MovePhase.IN_FLIGHT, reason, message, step=step, started=True, leader_movement=leads_away
        )
    before = [b for b in state.replicas if b not in adding]
    if not state.isr.intersection(before):
        # KIP-236: with all of them out of sync a null would throw away the only live copy; KRaft refuses it too.
        return PartitionStatus(
            MovePhase.WAITING, Reason.CANCEL_IMPOSSIBLE, f"none of the replicas {before} is in sync", started=True
        )
    return PartitionStatus(MovePhase.READY, Reason.CANCELLING, cancel=True, started=True)


def _what_the_copy_lacks(state: PartitionState, seen: Observation) -> tuple[str, str]:
    """Why a copy in flight does not get on by itself, reason and message; empty where nothing is missing."""
    if state.leader is None:
        return (
            Reason.NO_LEADER,
            "the partition has no leader to copy from; the copy goes on when one of its replicas returns",
        )
    away = [b for b in state.adding if b not in seen.cluster.brokers]
    if away:
        message = f"broker {away[0]}, which is getting a copy, is not registered or is fenced; it goes on on its return"
        return Reason.TARGET_BROKER_UNAVAILABLE, message
    late = [b for b in state.replicas if b not in state.isr and b not in state.removing]
    if late and state.isr.issuperset(state.adding):
        return (
            Reason.REPLICA_NOT_IN_SYNC,
            f"the copy is there; Kafka ends the step when broker {late[0]}, which stays, is in sync",
        )
    return "", ""


def _judge_at_rest(
    move: PartitionMove,
    state: PartitionState,
    seen: Observation,
    direction: Direction,
    parallel_replicas: int,
    *,
    paused: bool,
) -> PartitionStatus:
    alive = frozenset(seen.cluster.brokers)
    goal: Replicas | Skip | Wait = move.target
    start = move.planned_from
    if direction is not Direction.FORWARD:
        revert = direction is Direction.REVERT
        goal = rollback_target(
            move.origin, move.target, state, alive, restarting=seen.restarting, only_in_flight=revert
        )
        start = move.target
    if isinstance(goal, Skip):
        return PartitionStatus(MovePhase.SKIPPED, goal.reason, goal.message)
    if isinstance(goal, Wait):
        return PartitionStatus(MovePhase.WAITING, goal.reason, goal.message, started=True)
    if direction is not Direction.FORWARD and state.replicas == move.origin and _led_by_another(move):
        return PartitionStatus(
            MovePhase.DONE
        )  # as it was before the run: its preferred replica did not lead then either
    if direction is not Direction.FORWARD and _leader_is_all_that_lacks(move, state, seen):
        if state.replicas == move.origin:
            message = f"the replicas are back, but broker {move.origin[0]}, which led them, is gone"
            return PartitionStatus(MovePhase.SKIPPED, Reason.PREFERRED_LEADER_GONE, message)
        # Put back in order all the same: Kafka elects it when it returns, as it would have done before the run.
        return PartitionStatus(
            MovePhase.READY, step=move.origin, call=Alter(move.origin), started=True, leader_movement=True
        )
    min_insync = seen.min_insync.get(move.tp.topic)
    if min_insync is None:
        return PartitionStatus(
            MovePhase.WAITING, Reason.METADATA_MISSING, "no broker told min.insync.replicas; asking again"
        )
    grown = direction is not Direction.FORWARD and len(goal) < min(len(move.target), len(state.replicas))
    if grown and len(goal) < min_insync:
        message = f"min.insync.replicas is {min_insync}: nobody could produce with {len(goal)} replicas"
        return PartitionStatus(MovePhase.SKIPPED, Reason.BELOW_MIN_INSYNC_REPLICAS, message)
    # Never more are demanded than there would be: one replica with min.insync.replicas=2 was so before us.
    min_insync = min(min_insync, max(len(move.origin), len(goal)))
    rules = StepRules(parallel_replicas, min_insync, alive)
    present = Present(state.replicas, state.isr, state.leader)
    started = state.replicas != move.planned_from
    outcome = next_step(present, goal, rules)
    if outcome is None:
        return PartitionStatus(MovePhase.DONE)
    if isinstance(outcome, Wait) and direction is not Direction.FORWARD and _gone(move, seen):
        # What it waits for may never come: a broker that is gone does not hold up a deletion.
        return PartitionStatus(
            MovePhase.SKIPPED, Reason.ORIGINAL_BROKER_GONE, f"{outcome.message}; brokers {_gone(move, seen)} are gone"
        )
    if isinstance(outcome, Wait):
        return PartitionStatus(MovePhase.WAITING, outcome.reason, outcome.message, started=started)
    if direction is not Direction.FORWARD and (absent := _left_out_of_sync(move, state, outcome, seen)):
        # 3.9 would not end the step, and what is not ended is cancelled: neither is begun.
        return PartitionStatus(
            MovePhase.SKIPPED, Reason.ORIGINAL_BROKER_GONE, f"brokers {absent} are gone, and stay replicas meanwhile"
        )
    if paused and not _leads_to_rest(move, state, outcome, direction):
        return PartitionStatus(
            MovePhase.WAITING, Reason.PAUSED, "no new step is started now", step=outcome.replicas, started=started
        )
    call = outcome.calls[0]
    late = [b for b in goal if b in state.replicas and b not in start and b not in state.isr]
    if late and isinstance(call, Alter) and state.isr - set(call.replicas):
        # The listing was empty before metadata showed the copy in the ISR, or it fell out again: nothing goes for it.
        message = f"broker {late[0]} has the copy but is not in sync; no in-sync replica is dropped before it is"
        return PartitionStatus(MovePhase.WAITING, Reason.COPY_NOT_IN_SYNC, message, step=outcome.replicas, started=True)
    return PartitionStatus(
        MovePhase.READY,
        step=outcome.replicas,
        call=call,
        started=started,
        leader_movement=is_leader_movement(present, call),
    )


def _led_by_another(move: PartitionMove) -> bool:
    return move.origin_leader not in {None, move.origin[0]}


def _leader_is_all_that_lacks(move: PartitionMove, state: PartitionState, seen: Observation) -> bool:
    """Whether the original set is back and its preferred leader is gone, while another one leads."""
    led = state.leader is not None and bool(state.isr)
    return led and set(state.replicas) == set(move.origin) and move.origin[0] in _gone(move, seen)


def _gone(move: PartitionMove, seen: Observation) -> list[BrokerId]:
    """Originals that are not live, and not just restarting."""
    return [b for b in move.origin if b not in seen.cluster.brokers and b not in seen.restarting]


def _left_out_of_sync(move: PartitionMove, state: PartitionState, step: Step, seen: Observation) -> list[BrokerId]:
    """Originals that are gone and that the copy which is to be begun leaves in the list, out of sync."""
    call = step.calls[0]
    if not isinstance(call, Alter) or not call.until_in_sync:
        return []
    return [b for b in _gone(move, seen) if b in call.replicas and b not in state.isr]


def _leads_to_rest(move: PartitionMove, state: PartitionState, step: Step, direction: Direction) -> bool:
    """Whether a pause lets the step pass.

    It may only drop what is above the replication factor, elect a leader that a step has put first, or repair the order
    that a null did not restore.
    """
    call = step.calls[0]
    if isinstance(call, Elect):
        return not (move.elects and direction is Direction.FORWARD)
    if call.until_in_sync:
        return False
    repairs_order = direction is not Direction.FORWARD and set(call.replicas) == set(state.replicas)
    return repairs_order or len(state.replicas) > max(len(move.origin), len(move.target))
