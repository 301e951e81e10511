"""The health gate: whether the cluster is healthy enough for a new step of any rebalance.

Pure. A chain of named checks; the first that fails closes the gate. A closed gate stops only new steps: reassignments
in flight continue, and a cancel is never held back. Checks of one partition are elsewhere: live targets in ``steps``,
disk capacity in ``schedule``.
"""

import heapq
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Change:
    """The latest change of the set of live brokers: how long ago it was seen, and which brokers joined and left."""

    seconds_ago: float
    joined: frozenset[BrokerId] = frozenset()
    left: frozenset[BrokerId] = frozenset()


@dataclass(frozen=True, slots=True)
class Vitals:
    """The health of the cluster as observed.

    ``partitions``: all of the cluster, or only the ``unhealthy`` ones, which is faster. ``min_insync``: the effective
    min.insync.replicas of their topics; absent: 1. ``membership_changed``: None before the first change. ``live``: the
    registered, unfenced brokers.
    """

    partitions: Mapping[TopicPartition, PartitionState]
    min_insync: Mapping[str, int]
    membership_changed: Change | None
    live: frozenset[BrokerId]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What one rebalance tolerates.

    ``max_unhealthy``: under-replicated partitions that are not exempt; ``settle_seconds``: how long the set of brokers
    must have been the same. ``given_up``: brokers that the spec decommissions; neither their missing replicas nor their
    leaving close the gate, or a dead broker could never be decommissioned.
    """

    max_unhealthy: int = 0
    settle_seconds: float = 60.0
    given_up: frozenset[BrokerId] = frozenset()


@dataclass(frozen=True, slots=True)
class Closed:
    """The check that failed, CamelCase, and what it found."""

    check: str
    message: str


def is_unhealthy(state: PartitionState) -> bool:
    """Whether the partition has no leader, or a replica out of sync that is not being added."""
    return not _complete(state) and bool(_lacking(state))


def unhealthy(partitions: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, PartitionState]:
    """The few that the gate checks: computed once for each reading, for all rebalances."""
    # As ``_complete``, which settles nearly all: a call for each of 200,000 would take most of the time.
    incomplete = [
        (tp, state)
        for tp, state in partitions.items()
        if state.leader is None or not state.isr.issuperset(state.replicas)
    ]
    return {tp: state for tp, state in incomplete if is_unhealthy(state)}


def gate(vitals: Vitals, exempt: Collection[TopicPartition], tolerance: Tolerance) -> Closed | None:
    """Why no new step may start; None: one may.

    ``exempt``, a set: what the rebalances of the cluster have in motion, which may lack replicas that we move. The rest
    of their plans must be as healthy as any other partition. A rollback does not ask: it restores the state before.
    """
    case = _Case(vitals, _not_exempt_lacking(vitals, exempt, tolerance), tolerance)
    return next((closed for check in _CHAIN if (closed := check(case)) is not None), None)


@dataclass(frozen=True, slots=True)
class _Case:
    """The input of the checks. ``lacking``: by partition not exempt, the replicas missing from the ISR."""

    vitals: Vitals
    lacking: Mapping[TopicPartition, frozenset[BrokerId]]
    tolerance: Tolerance


def _above_min_isr(case: _Case) -> Closed | None:
    """Every partition has a leader and at least min.insync.replicas in-sync replicas."""
    below = [tp for tp, missing in case.lacking.items() if _below_min_isr(case, tp, missing)]
    if not below:
        return None
    found = _describe(case, below, "offline or below min.insync.replicas")
    return Closed(Reason.BELOW_MIN_ISR, f"{found}: new steps wait until they are back")


def _replicated(case: _Case) -> Closed | None:
    """At most maxUnhealthy partitions are under-replicated."""
    tolerated = case.tolerance.max_unhealthy
    if len(case.lacking) <= tolerated:
        return None
    found = _describe(case, case.lacking, "under-replicated")
    return Closed(Reason.UNDER_REPLICATED, f"{found}: more than maxUnhealthy ({tolerated}), so new steps wait")


def _membership_settled(case: _Case) -> Closed | None:
    """No broker has joined or left recently: replicas and leaders would change by themselves."""
    change, settle = case.vitals.membership_changed, case.tolerance.settle_seconds
    if change is None or change.seconds_ago >= settle:
        return None
    moves = {"joined": change.joined, "left": change.left - case.tolerance.given_up}
    seen = [f"{_brokers(who)} {verb}" for verb, who in moves.items() if who]
    if not seen:
        return None
    # Without the seconds elapsed: the message must not change in every round.
    message = f"{' and '.join(seen)}: new steps wait until the set of brokers has been the same for {settle:g} s"
    return Closed(Reason.MEMBERSHIP_CHANGED, message)


_Check = Callable[[_Case], Closed | None]

_CHAIN: tuple[_Check, ...] = (
    _above_min_isr,  # producers may fail
    _replicated,  # closer to that
    _membership_settled,  # the cluster is changing by itself
)


def _not_exempt_lacking(
    vitals: Vitals, exempt: Collection[TopicPartition], tolerance: Tolerance
) -> dict[TopicPartition, frozenset[BrokerId]]:
    found: dict[TopicPartition, frozenset[BrokerId]] = {}
    shared: dict[frozenset[BrokerId], frozenset[BrokerId]] = {}  # with a rack down: one set, not 200,000 equal ones
    for tp, state in vitals.partitions.items():
        if not _complete(state) and tp not in exempt and (missing := _lacking(state, tolerance.given_up)):
            found[tp] = shared.setdefault(missing, missing)
    return found


def _in_sync(state: PartitionState) -> frozenset[BrokerId]:
    """None without a leader: without KIP-966's ELR the last replica stays in the ISR even if it is dead."""
    return frozenset() if state.leader is None else state.isr


def _complete(state: PartitionState) -> bool:
    """Whether every replica is in sync, also those being added: a fast check that settles nearly all partitions."""
    return state.leader is not None and state.isr.issuperset(state.replicas)


def _lacking(state: PartitionState, given_up: frozenset[BrokerId] = frozenset()) -> frozenset[BrokerId]:
    """Replicas that should be in sync and are not, except those being added and those on given-up brokers."""
    return frozenset(state.replicas).difference(state.adding, _in_sync(state), given_up)


def _below_min_isr(case: _Case, tp: TopicPartition, missing: frozenset[BrokerId]) -> bool:
    """Require no more than there would be: two replicas with min.insync.replicas=3 were like that before us."""
    state = case.vitals.partitions[tp]
    in_sync = _in_sync(state)
    if len(in_sync) >= case.vitals.min_insync.get(tp.topic, 1):
        return False
    return len(in_sync) < len(missing) + len(in_sync.difference(state.adding))


def _describe(case: _Case, found: Collection[TopicPartition], state: str) -> str:
    """How many, a few names, and the brokers on which they lack a replica."""
    names = ", ".join(str(tp) for tp in heapq.nsmallest(_EXAMPLES, found))
    brokers = frozenset[BrokerId]().union(*{case.lacking[tp] for tp in found})
    by_life = {"not live": brokers - case.vitals.live, "live, not in sync": brokers & case.vitals.live}
    lacking = ", ".join(f"{_brokers(who)} ({how})" for how, who in by_life.items() if who)
    count = f"{len(found)} {'partition is' if len(found) == 1 else 'partitions are'}"
    return f"{count} {state}: {names}{_more(found)}, lacking {lacking}"


def _brokers(ids: Collection[BrokerId]) -> str:
    names = ", ".join(str(b) for b in heapq.nsmallest(_EXAMPLES, ids))
    return f"{'broker' if len(ids) == 1 else 'brokers'} {names}{_more(ids)}"


def _more(found: Collection[object]) -> str:
    return f" and {len(found) - _EXAMPLES} more" if len(found) > _EXAMPLES else ""
