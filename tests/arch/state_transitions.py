"""What the table of states says of two states: which may follow which, directly or sooner or later."""

from __future__ import annotations

from kafka_rebalance.api.rebalance_states import FIRST, GROUPS, STATES, Node, StateGroup
from kafka_rebalance.reasons import Reason


def groups_of(reason: Reason) -> tuple[StateGroup, ...]:
    """The groups that a state is in, the innermost first."""
    found: list[StateGroup] = []
    group = STATES[reason].group
    while group is not None:
        found.append(group)
        group = GROUPS[group].parent
    return tuple(found)


def members_of(node: Node) -> tuple[Reason, ...]:
    """A state itself; the states of a group, those of the groups in it too."""
    if isinstance(node, Reason):
        return (node,)
    return tuple(reason for reason in STATES if node in groups_of(reason))


def transitions() -> tuple[tuple[Node | None, Node], ...]:
    """All of them as they are in the table: from None (no status yet), a state or a group."""
    first = [(None, node) for node in FIRST]
    grouped = [(group, node) for group, found in GROUPS.items() for node in found.followers]
    single = [(reason, node) for reason, state in STATES.items() for node in state.followers]
    return (*first, *single, *grouped)


def transition_between(before: Reason | None, after: Reason) -> tuple[tuple[Node | None, Node], ...]:
    """The rows of the table that allow ``after`` to follow ``before``; none: it may not."""
    sources: tuple[Node | None, ...] = (None,) if before is None else (before, *groups_of(before))
    targets: tuple[Node, ...] = (after, *groups_of(after))
    return tuple(row for row in transitions() if row[0] in sources and row[1] in targets)


def may_follow(before: Reason | None, after: Reason) -> bool:
    """Whether the next status may say ``after``. ``before`` None: there was no status."""
    return before == after or bool(transition_between(before, after))


def can_reach(before: Reason | None) -> frozenset[Reason]:
    """The states that may follow sooner or later, ``before`` included: what a problem may give way to."""
    found: set[Reason] = {before} if before is not None else set()
    edge: set[Reason | None] = {before}
    while edge:
        edge = {after for after in STATES if after not in found and any(may_follow(b, after) for b in edge)}
        found |= {after for after in edge if after is not None}
    return frozenset(found)
