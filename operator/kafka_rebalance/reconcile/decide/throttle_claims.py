"""Which throttle each resource claims: rates, their source, and the replicas that move now. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kafka_rebalance.api.execution_spec import Throttle
from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.execution.reassignment_throttle import (
    Claim,
    ClusterRates,
    Entries,
    Rates,
    brokers_to_throttle,
    entries_of,
    needs_relief,
    united,
)
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reconcile.decide.given_up_places import open_to_others
from kafka_rebalance.reconcile.decide.judging import partitions_to_read
from kafka_rebalance.reconcile.decide.queue_places import ahead_of
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.rebalance import Rebalance, RebalanceView

DEFAULT_RATE = 50 * 2**20
"""Bytes per second per broker and side, on brokers for which no resource sets a rate: full speed must be asked for."""


def throttle_asked_for(rebalance: RebalanceView) -> Throttle | None:
    """Its spec.throttle. None if it may not use its connection: its users may not set rates on these brokers."""
    return rebalance.desired.spec.throttle if rebalance.refusal is None else None


def rates_of(
    own: Throttle | None, resource: KafkaReassignmentThrottle | None, setting: str = "spec.throttle"
) -> tuple[ClusterRates, str]:
    """The rates that bind, and which setting those of most brokers come from.

    ``own`` is what the rebalance asks for, by ``setting``. The cluster's throttle resource holds for everything; a
    rebalance's own throttle can only be lower.
    """
    shared = general_rates_of(resource)
    mine, asked = _own_rates(own, shared)
    claim = Claim(mine, overrides={} if asked else _without_default(resource))
    bound = _lower(mine, shared)
    rates = ClusterRates(bound, {broker: _lower(claim.on(broker), row) for broker, row in _rows(resource).items()})
    source = throttle_claim_name(resource) if resource else ""
    if own is not None and own.of_reassignments:
        return rates, setting if bound == mine else f"{source}, below {setting}"
    return rates, source if shared != Rates() else "the default: no spec.throttle applies"


class _Row(NamedTuple):
    """The entries of one partition, and what they were found from.

    ``relieved``: those without the leaders' side, if a replica that stays is out of the ISR.
    """

    state: PartitionState
    wanted: Replicas
    destinations: frozenset[BrokerId]
    entries: Entries
    relieved: Entries | None


@dataclass(frozen=True, slots=True)
class Moving:
    """What is copied now or about to be: list entries, and how many partitions are relieved.

    ``rows`` and ``parts``, by topic, are kept for the next round: the entries of a topic stay the same value while
    nothing of it changes.
    """

    entries: Entries = field(default_factory=dict)
    relieved: int = 0
    rows: Mapping[TopicPartition, _Row] = field(default_factory=dict, compare=False)
    parts: Mapping[str, Sequence[Entries]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims in force by the name of their maker, and by uid what moves of a rebalance."""

    by_name: Mapping[str, Claim] = field(default_factory=dict)
    moving: Mapping[str, Moving] = field(default_factory=dict)


def claims_of(
    rebalances: Sequence[Rebalance],
    ruling: KafkaReassignmentThrottle | None,
    cluster: ClusterState,
    submitted: Mapping[str, Mapping[TopicPartition, Replicas]],
    foreign: Mapping[TopicPartition, PartitionState],
    before: Claims = Claims(),
) -> Claims:
    """What is claimed now. ``submitted``: by the uid of the rebalance; ``before``: the claims of the round before.

    The cluster's throttle resource claims everything that moves, including what others are moving.
    """
    shared = general_rates_of(ruling)
    claims: dict[str, Claim] = {}
    moving: dict[str, Moving] = {}
    for rebalance in rebalances:
        desired, opened, assessment = rebalance.desired, rebalance.record.loaded_run, rebalance.assessment
        if opened is None or assessment.statuses.finished:
            continue
        own, asked = _own_rates(throttle_asked_for(rebalance), shared)
        orders = submitted.get(desired.uid, {})
        mine = {*partitions_to_read(assessment), *orders}
        if rebalance.held_by is not None:
            # What it has not begun to move itself, others are moving.
            theirs = mine - rebalance.own_origins.keys() - orders.keys()
            foreign = {**foreign, **{tp: cluster.partitions[tp] for tp in theirs if tp in cluster.partitions}}
            mine -= theirs
        for other in ahead_of(rebalance, rebalances):
            of_other = other.record.loaded_run.partitions if other.record.loaded_run is not None else ()
            left = open_to_others(other)
            mine = {tp for tp in mine if tp not in of_other or tp in left}
        states = [(tp, cluster.partitions[tp]) for tp in sorted(mine) if tp in cluster.partitions]
        # A plan without copies names no brokers. If others move one of its partitions, a step may copy all the same.
        brokers = opened.brokers | _copying(states, orders)
        claim = Claim(own, brokers, overrides={} if asked else _without_default(ruling), asked=asked)
        kept = before.moving.get(desired.uid, Moving())
        copied = moving_now(states, orders, kept, relieve=_fetches_throttled(claim, ruling))
        moving[desired.uid] = copied
        claim = replace(claim, entries=copied.entries)
        if in_force(claim, blocked=assessment.step_block is not None or rebalance.memory.problem is not None):
            claims[claim_name(desired)] = claim
    if ruling is not None and ruling.spec.sets_rates and (claims or foreign):
        others = moving_now(foreign.items(), {}, relieve=_fetches_throttled(Claim(Rates()), ruling))
        parts = [*claims.values(), Claim(Rates(), _brokers(foreign.values()), others.entries)]
        claims[throttle_claim_name(ruling)] = Claim(
            shared,
            frozenset[BrokerId]().union(*(part.brokers for part in parts)),
            united(part.entries for part in parts),
            _rows(ruling),
        )
    for rebalance in rebalances:
        if (of_log_dirs := _log_dir_claim(rebalance)) is not None:
            claims[log_dir_claim_name(rebalance.desired)] = of_log_dirs
    return Claims(claims, moving)


def log_dir_rate_of(rebalance: RebalanceView) -> tuple[int | None, bool]:
    """The rate of copies between log dirs, None: unlimited, and whether a user asked for it; without that, the default.

    The cluster's throttle resource is about reassignments.
    """
    own = throttle_asked_for(rebalance)
    if own is None or (own.log_dir_rate is None and own.unlimited is None):
        return DEFAULT_RATE, False
    return own.log_dir_rate, True


def _log_dir_claim(rebalance: Rebalance) -> Claim | None:
    """The rate on the brokers that copy between their log dirs, or are about to; None: there are none."""
    assessment, (rate, asked) = rebalance.assessment, log_dir_rate_of(rebalance)
    blocked = assessment.step_block is not None or rebalance.memory.problem is not None
    if rebalance.record.loaded_run is None or (blocked and not assessment.log_dirs.moving):
        return None
    brokers = assessment.log_dirs.to_throttle
    return Claim(Rates(log_dirs=rate), brokers, asked=asked) if brokers else None


def moving_now(
    states: Iterable[tuple[TopicPartition, PartitionState]],
    submitted: Mapping[TopicPartition, Replicas],
    before: Moving = Moving(),
    *,
    relieve: Callable[[Iterable[BrokerId]], bool],
) -> Moving:
    """The entries of reassignments in flight and of those about to be submitted. ``before``: in the round before.

    ``relieve``: whether the followers' side of all these destinations is throttled, so that the leaders' side of a
    partition may go where it would slow down a replica that stays and is out of the ISR.
    """
    rows: dict[TopicPartition, _Row] = {}
    parts: defaultdict[str, list[Entries]] = defaultdict(list)
    relieved = 0
    for tp, state in states:
        wanted = state.replicas if state.adding else submitted.get(tp, ())
        row = before.rows.get(tp)
        if row is None or row.state is not state or row.wanted != wanted:
            row = _row_of(state, wanted)
        rows[tp] = row
        if not row.destinations:
            continue
        if row.relieved is not None and relieve(row.destinations):
            relieved += 1
            parts[tp.topic].append(row.relieved)
        else:
            parts[tp.topic].append(row.entries)
    changed = [part for topic, found in parts.items() if found != before.parts.get(topic) for part in found]
    again = united(changed)
    entries = {topic: again[topic] if topic in again else before.entries[topic] for topic in parts}
    return Moving(entries, relieved, rows, parts)


def _row_of(state: PartitionState, wanted: Replicas) -> _Row:
    sources, destinations = brokers_to_throttle(state, wanted)
    if not destinations:
        return _Row(state, wanted, destinations, {}, None)
    relieved = entries_of(state.tp, frozenset(), destinations) if needs_relief(state, wanted) else None
    return _Row(state, wanted, destinations, entries_of(state.tp, sources, destinations), relieved)


def claim_name(desired: Desired) -> str:
    """The name of a rebalance's claim, independent of its rates: an emergency brake remembers it."""
    return f"KafkaRebalance {desired.name}"


def log_dir_claim_name(desired: Desired) -> str:
    """The name of its claim on the rates between log dirs."""
    return f"{claim_name(desired)}, log dirs"


def throttle_claim_name(ruling: KafkaReassignmentThrottle) -> str:
    """The name of a throttle resource's claim."""
    return f"KafkaReassignmentThrottle {ruling.metadata.namespace}/{ruling.metadata.name}"


def in_force(claim: Claim, *, blocked: bool) -> bool:
    """Whether the claim is in force: a blocked rebalance that copies nothing must not slow down other traffic."""
    return not blocked or claim.copies


def ruling_throttle(throttles: Iterable[KafkaReassignmentThrottle]) -> KafkaReassignmentThrottle | None:
    """Two resources for one cluster: the older wins."""
    return min(
        (t for t in throttles if not t.metadata.deleting),
        key=lambda t: (str(t.metadata.creation_timestamp), t.metadata.uid),
        default=None,
    )


def general_rates_of(ruling: KafkaReassignmentThrottle | None) -> Rates:
    """What the cluster's throttle resource asks for on brokers that it does not name."""
    return Rates(ruling.spec.leader_rate, ruling.spec.follower_rate) if ruling else Rates()


def _rows(ruling: KafkaReassignmentThrottle | None) -> dict[BrokerId, Rates]:
    """The rates on the brokers that the cluster's throttle resource names."""
    return ruling.spec.rates_on(BrokerId(row.id) for row in ruling.spec.brokers) if ruling else {}


def _without_default(ruling: KafkaReassignmentThrottle | None) -> dict[BrokerId, Rates]:
    """What the default asks for on brokers for which the resource sets a rate: nothing."""
    return {broker: Rates() for broker, rates in _rows(ruling).items() if rates != Rates()}


def _fetches_throttled(own: Claim, ruling: KafkaReassignmentThrottle | None) -> Callable[[Iterable[BrokerId]], bool]:
    """Whether on each of some brokers the followers' side has a rate, of the rebalance's claim or the resource."""

    def are(brokers: Iterable[BrokerId]) -> bool:
        given = set(brokers)
        shared = ruling.spec.rates_on(given) if ruling is not None else {}
        return all(own.on(b).follower is not None or shared.get(b, Rates()).follower is not None for b in given)

    return are


def _own_rates(own: Throttle | None, shared: Rates) -> tuple[Rates, bool]:
    """The rates of the rebalance itself, and whether a user asked for them; without that, the default."""
    if own is not None and own.of_reassignments:
        return Rates(own.leader_rate, own.follower_rate), True
    return (Rates(DEFAULT_RATE, DEFAULT_RATE), False) if shared == Rates() else (Rates(), True)


def _copying(
    states: Iterable[tuple[TopicPartition, PartitionState]], orders: Mapping[TopicPartition, Replicas]
) -> frozenset[BrokerId]:
    """The brokers between which these partitions are copied, now or by these orders."""
    found = set[BrokerId]()
    for tp, state in states:
        target = orders.get(tp, ())
        if state.adding or not set(target) <= set(state.replicas):
            found.update(state.replicas, target)
    return frozenset(found)


def _brokers(states: Iterable[PartitionState]) -> frozenset[BrokerId]:
    return frozenset(broker for state in states for broker in state.replicas)


def _lower(one: Rates, other: Rates) -> Rates:
    return Rates(_least(one.leader, other.leader), _least(one.follower, other.follower))


def _least(one: int | None, other: int | None) -> int | None:
    rates = [rate for rate in (one, other) if rate is not None]
    return min(rates) if rates else None
