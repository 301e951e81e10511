"""The states of a KafkaRebalance, and which state may follow which: one table for the operator, the docs and the tests.

The state is the reason of Ready. It is not stored: each round computes it from the spec, the stored run and the
cluster. A transition therefore relates one written status to the next one; what ends within a round is not seen.

A reason that is not in the table is a problem (KafkaUnreachable, InsufficientBrokers, Stalled, ...): it may interrupt
any state, and the rebalance needs help or retries. Afterwards the state is one that the interrupted state can reach.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kafka_rebalance.api.conditions import ReadySummary
from kafka_rebalance.reasons import Reason


class StateGroup(StrEnum):
    """States that have transitions in common; ``GROUPS`` says what else they have in common."""

    WAITING = "Waiting"
    HELD_BACK = "HeldBack"
    MOVING = "Moving"
    REPLANNING = "Replanning"
    DELETING = "Deleting"
    ENDED = "Ended"


Node = Reason | StateGroup
"""One end of a transition; a group stands for each of its states."""


@dataclass(frozen=True, slots=True)
class ReadyState:
    """One state; what it reports is said by its reason. ``followers``: in addition to those of its groups."""

    summary: ReadySummary
    group: StateGroup | None = None
    followers: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupOfStates:
    """What the states of a group have in common. ``parent``: the group that this one is part of."""

    meaning: str
    followers: tuple[Node, ...]
    parent: StateGroup | None = None


_DONE, _IN_PROGRESS, _STUCK = ReadySummary.DONE, ReadySummary.IN_PROGRESS, ReadySummary.STUCK

FIRST: tuple[Node, ...] = (Reason.PLANNING, Reason.QUEUED, StateGroup.ENDED)
"""The states of a first status. Ended: the resource had ended before it was restored from a backup."""

_UNDONE_NEXT: tuple[Node, ...] = (
    Reason.UNDOING,
    StateGroup.HELD_BACK,
    Reason.SUPERSEDED,
    StateGroup.DELETING,
)
"""The undo was held back, superseded or deleted in its first round."""

STATES: Mapping[Reason, ReadyState] = {
    Reason.PLANNING: ReadyState(
        _IN_PROGRESS,
        # Ended: the spec was edited back before the plan was there. Deleting: deleted in the round that began the run.
        followers=(StateGroup.WAITING, StateGroup.MOVING, StateGroup.REPLANNING, StateGroup.DELETING, StateGroup.ENDED),
    ),
    Reason.AWAITING_APPROVAL: ReadyState(_IN_PROGRESS, StateGroup.WAITING),
    Reason.CLUSTER_UNHEALTHY: ReadyState(_IN_PROGRESS, StateGroup.WAITING),
    Reason.QUEUED: ReadyState(_IN_PROGRESS, StateGroup.HELD_BACK),
    Reason.YIELDING: ReadyState(_IN_PROGRESS, StateGroup.HELD_BACK),
    Reason.SUSPENDED: ReadyState(_IN_PROGRESS, StateGroup.HELD_BACK),
    Reason.FROZEN: ReadyState(_IN_PROGRESS, StateGroup.HELD_BACK),
    Reason.OUTSIDE_WINDOW: ReadyState(_IN_PROGRESS, StateGroup.HELD_BACK),
    Reason.REBALANCING: ReadyState(_IN_PROGRESS, StateGroup.MOVING, (Reason.SUCCEEDED, Reason.NOTHING_TO_DO)),
    Reason.THROTTLE_TOO_LOW: ReadyState(_STUCK, StateGroup.MOVING),
    # Undoing: an undo was superseded, and the spec was edited back.
    Reason.SUPERSEDED: ReadyState(_IN_PROGRESS, StateGroup.REPLANNING, (Reason.UNDOING,)),
    Reason.DRIFTED: ReadyState(_IN_PROGRESS, StateGroup.REPLANNING),
    Reason.UNDOING: ReadyState(
        _IN_PROGRESS,
        followers=(
            StateGroup.HELD_BACK,
            Reason.SUPERSEDED,
            StateGroup.DELETING,
            Reason.UNDONE,
            Reason.ROLLED_BACK_PARTIALLY,
        ),
    ),
    Reason.ROLLING_BACK: ReadyState(_IN_PROGRESS, StateGroup.DELETING),
    Reason.REVERTING: ReadyState(_IN_PROGRESS, StateGroup.DELETING),
    Reason.TAKEN_OVER: ReadyState(_IN_PROGRESS, StateGroup.DELETING),
    Reason.ROLLBACK_TOO_LARGE: ReadyState(_STUCK, StateGroup.DELETING),
    Reason.SUCCEEDED: ReadyState(_DONE, StateGroup.ENDED, _UNDONE_NEXT),
    # Undoing: the run before this one has moved something.
    Reason.NOTHING_TO_DO: ReadyState(_DONE, StateGroup.ENDED, _UNDONE_NEXT),
    Reason.UNDONE: ReadyState(_DONE, StateGroup.ENDED),
    Reason.ROLLED_BACK_PARTIALLY: ReadyState(_STUCK, StateGroup.ENDED),
}

GROUPS: Mapping[StateGroup, GroupOfStates] = {
    StateGroup.WAITING: GroupOfStates(
        "A plan is stored or wanted, and no new step starts now.",
        # Planning: a run was handed over to it, and its own plan is dropped. The last two: nothing had to start.
        (
            Reason.PLANNING,
            StateGroup.WAITING,
            StateGroup.MOVING,
            StateGroup.REPLANNING,
            StateGroup.DELETING,
            Reason.SUCCEEDED,
            Reason.NOTHING_TO_DO,
        ),
    ),
    StateGroup.HELD_BACK: GroupOfStates(
        "The reason holds back an undo as well.",
        (Reason.UNDOING, Reason.UNDONE, Reason.ROLLED_BACK_PARTIALLY),
        parent=StateGroup.WAITING,
    ),
    StateGroup.MOVING: GroupOfStates(
        "Steps towards the targets are submitted or in flight.",
        (StateGroup.MOVING, StateGroup.WAITING, StateGroup.REPLANNING, StateGroup.DELETING),
    ),
    StateGroup.REPLANNING: GroupOfStates(
        "The plan is given up: reassignments in flight are cancelled where needed, and a new plan is made.",
        (StateGroup.REPLANNING, StateGroup.WAITING, StateGroup.MOVING, StateGroup.DELETING),
    ),
    StateGroup.DELETING: GroupOfStates(
        "The resource is being deleted, and its run is still open.",
        # The policy, the limit and the successor are those of now, and each of them may change.
        (StateGroup.DELETING,),
    ),
    StateGroup.ENDED: GroupOfStates(
        "The run is closed. Nothing happens until the user edits, undoes or deletes.",
        (Reason.PLANNING, Reason.QUEUED),
    ),
}


def summary_of(reason: Reason) -> ReadySummary:
    """How Ready, Reconciling and Stalled go together in this state; a problem is stuck."""
    state = STATES.get(reason)
    return _STUCK if state is None else state.summary
