"""The health gate: whether the cluster as a whole can bear a new step of any rebalance.

A chain of named checks, each a pure function; the first that fails is the answer. A closed gate stops new steps only:
what is in flight goes on, and a null is never held back. What concerns one partition is judged where its step is:
whether its targets live in ``steps``, whether they have room in ``schedule``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Change:
    """The latest change of the set of live brokers: how long ago it was seen, and who came and went."""

    seconds_ago: float
    joined: frozenset[BrokerId] = frozenset()
    left: frozenset[BrokerId] = frozenset()


@dataclass(frozen=True, slots=True)
class Vitals:
    """What was read of the whole cluster.

    ``partitions`` are all of the cluster, or what ``unhealthy`` leaves of them, which is enough and quick.
    ``min_insync`` is the effective min.insync.replicas of the topics among those; absent: 1. ``membership_changed`` is
    None while no change has been seen. ``live`` are the registered, unfenced brokers.
    """

    partitions: Mapping[TopicPartition, PartitionState]
    min_insync: Mapping[str, int]
    membership_changed: Change | None
    live: frozenset[BrokerId]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What one rebalance puts up with.

    ``max_unhealthy`` under-replicated partitions of others; ``settle_seconds`` that the set of brokers must have been
    the same. ``given_up`` are brokers that the spec decommissions: the replicas that they lack are not waited for, and
    that they left is no change, or a dead broker could never be decommissioned.
    """

    max_unhealthy: int = 0
    settle_seconds: float = 60.0
    given_up: frozenset[BrokerId] = frozenset()


@dataclass(frozen=True, slots=True)
class Closed:
    """The check that failed, CamelCase, and what it saw."""

    check: str
    message: str


def is_unhealthy(state: PartitionState) -> bool:
    """Whether the partition has no leader, or a replica that is not just being added is out of sync."""
    return not _complete(state) and bool(_lacking(state))


def unhealthy(partitions: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, PartitionState]:
    """The few that the gate looks at: to be computed once for each reading, and shared by all rebalances."""
    return {tp: state for tp, state in partitions.items() if is_unhealthy(state)}


def gate(vitals: Vitals, ours: Collection[TopicPartition], tolerance: Tolerance) -> Closed | None:
    """Why no new step may start; None: one may.

    ``ours`` (with a quick ``in``) are the partitions of all our running rebalances of the cluster: they may lack what
    we are moving. A rebalance that goes back does not ask.
    """
    case = _Case(vitals, _foreign_lacking(vitals, ours, tolerance), tolerance)
    return next((closed for check in _CHAIN if (closed := check(case)) is not None), None)


@dataclass(frozen=True, slots=True)
class _Case:
    """What the checks look at. ``lacking``: by partition that is not ours, the replicas that should be in sync."""

    vitals: Vitals
    lacking: Mapping[TopicPartition, frozenset[BrokerId]]
    tolerance: Tolerance


def _foreign_above_min_isr(case: _Case) -> Closed | None:
    """No partition outside our set has fewer in-sync replicas than min.insync.replicas, or no leader."""
    below = [tp for tp, missing in case.lacking.items() if _below_min_isr(case, tp, missing)]
    if not below:
        return None
    found = _describe(case, below, "offline or below min.insync.replicas")
    return Closed(Reason.BELOW_MIN_ISR, f"{found}: new steps wait until they are back")


def _foreign_replicated(case: _Case) -> Closed | None:
    """Not more partitions outside our set are under-replicated than maxUnhealthy allows."""
    tolerated = case.tolerance.max_unhealthy
    if len(case.lacking) <= tolerated:
        return None
    found = _describe(case, case.lacking, "under-replicated")
    return Closed(Reason.UNDER_REPLICATED, f"{found}: more than maxUnhealthy ({tolerated}), so new steps wait")


def _membership_settled(case: _Case) -> Closed | None:
    """No broker has joined or left just now: replicas and leaders are about to change by themselves."""
    change, settle = case.vitals.membership_changed, case.tolerance.settle_seconds
    if change is None or change.seconds_ago >= settle:
        return None
    moves = {"joined": change.joined, "left": change.left - case.tolerance.given_up}
    seen = [f"{_brokers(who)} {verb}" for verb, who in moves.items() if who]
    if not seen:
        return None
    # Without the seconds that have passed: the message must not change with every tick.
    message = f"{' and '.join(seen)}: new steps wait until the set of brokers has been the same for {settle:g} s"
    return Closed(Reason.MEMBERSHIP_CHANGED, message)


_Check = Callable[[_Case], Closed | None]

_CHAIN: tuple[_Check, ...] = (
    _foreign_above_min_isr,  # someone cannot write
    _foreign_replicated,  # someone is nearer to that
    _membership_settled,  # the cluster is about to change by itself
)


def _foreign_lacking(
    vitals: Vitals, ours: Collection[TopicPartition], tolerance: Tolerance
) -> dict[TopicPartition, frozenset[BrokerId]]:
    found: dict[TopicPartition, frozenset[BrokerId]] = {}
    shared: dict[frozenset[BrokerId], frozenset[BrokerId]] = {}  # with a rack down: one set, not 200,000 equal ones
    for tp, state in vitals.partitions.items():
        if not _complete(state) and tp not in ours and (missing := _lacking(state, tolerance.given_up)):
            found[tp] = shared.setdefault(missing, missing)
    return found


def _in_sync(state: PartitionState) -> frozenset[BrokerId]:
    """Nobody where there is no leader: without KIP-966's ELR the last replica stays in the ISR, dead or not."""
    return frozenset() if state.leader is None else state.isr


def _complete(state: PartitionState) -> bool:
    """Whether every replica is in sync, also those being added: the quick answer for nearly all partitions."""
    return state.leader is not None and state.isr.issuperset(state.replicas)


def _lacking(state: PartitionState, given_up: frozenset[BrokerId] = frozenset()) -> frozenset[BrokerId]:
    """The replicas that should be in sync and are not: neither those being added nor those on a broker given up."""
    return frozenset(state.replicas).difference(state.adding, _in_sync(state), given_up)


def _below_min_isr(case: _Case, tp: TopicPartition, missing: frozenset[BrokerId]) -> bool:
    """Never more are demanded than would be there: two replicas with min.insync.replicas=3 were so before us."""
    state = case.vitals.partitions[tp]
    in_sync = _in_sync(state)
    if len(in_sync) >= case.vitals.min_insync.get(tp.topic, 1):
        return False
    return len(in_sync) < len(missing) + len(in_sync.difference(state.adding))


def _describe(case: _Case, found: Collection[TopicPartition], state: str) -> str:
    """How many, which for example, and on which brokers they lack a replica."""
    names = ", ".join(str(tp) for tp in heapq.nsmallest(_EXAMPLES, found))
    brokers = frozenset[BrokerId]().union(*{case.lacking[tp] for tp in found})
    by_life = {"not live": brokers - case.vitals.live, "live, not in sync": brokers & case.vitals.live}
    lacking = ", ".join(f"{_brokers(who)} ({how})" for how, who in by_life.items() if who)
    count = f"{len(found)} foreign {'partition is' if len(found) == 1 else 'partitions are'}"
    return f"{count} {state}: {names}{_more(found)}, lacking {lacking}"


def _brokers(ids: Collection[BrokerId]) -> str:
    names = ", ".join(str(b) for b in heapq.nsmallest(_EXAMPLES, ids))
    return f"{'broker' if len(ids) == 1 else 'brokers'} {names}{_more(ids)}"


def _more(found: Collection[object]) -> str:
    return f" and {len(found) - _EXAMPLES} more" if len(found) > _EXAMPLES else ""
