"""Which throttle a rebalance needs: its rates, where they come from, and the replicas that move now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.execution.decide import Errand, entries_to_throttle
from kafka_rebalance.execution.throttle import Claim, Rates, entries_of
from kafka_rebalance.model.topology import BrokerId, ClusterState, Replicas, TopicPartition
from kafka_rebalance.reconcile.work import Work

DEFAULT_RATE = 50 * 2**20
"""Bytes per second per broker and side where nobody said anything: full speed must be asked for."""


def rates_of(work: Work, throttles: Iterable[KafkaReassignmentThrottle]) -> tuple[Rates, str]:
    """The rates that bind, and which setting they come from.

    The cluster's throttle resource holds for everything; a rebalance's own throttle can only be lower.
    """
    own = work.rebalance.spec.throttle
    resource = ruling_throttle(throttles)
    shared = Rates(resource.spec.leader_rate, resource.spec.follower_rate) if resource else Rates()
    source = f"KafkaReassignmentThrottle {resource.metadata.namespace}/{resource.metadata.name}" if resource else ""
    if own is None:
        if shared.leader is None and shared.follower is None:
            return Rates(DEFAULT_RATE, DEFAULT_RATE), "the default: spec.throttle is not set"
        return shared, source
    mine = Rates(own.leader_rate, own.follower_rate)
    bound = Rates(_least(mine.leader, shared.leader), _least(mine.follower, shared.follower))
    return bound, "spec.throttle" if bound == mine else f"{source}, below spec.throttle"


def claim_of(
    rates: Rates,
    brokers: frozenset[BrokerId],
    errands: Iterable[Errand],
    cluster: ClusterState,
    submitted: Mapping[TopicPartition, Replicas],
) -> Claim:
    """The claim for what is in flight and what is about to be submitted."""
    leaders: dict[str, frozenset[str]] = {}
    followers: dict[str, frozenset[str]] = {}
    for errand in errands:
        state = cluster.partitions.get(errand.tp)
        if state is None:
            continue
        wanted = state.replicas if state.adding else submitted.get(errand.tp, ())
        sources, destinations = entries_to_throttle(state, wanted)
        if not destinations:
            continue
        leader_side, follower_side = entries_of(errand.tp, sources, destinations)
        topic = errand.tp.topic
        leaders[topic] = leaders.get(topic, frozenset()) | leader_side
        followers[topic] = followers.get(topic, frozenset()) | follower_side
    return Claim(rates, brokers, leaders, followers)


def binds(claim: Claim, *, held: bool) -> bool:
    """Whether the claim is in force: that of a rebalance which is held back and copies nothing slows nobody down."""
    return not held or bool(claim.leader_entries or claim.follower_entries)


def ruling_throttle(throttles: Iterable[KafkaReassignmentThrottle]) -> KafkaReassignmentThrottle | None:
    """Two resources for one cluster: the older wins."""
    return min(
        (t for t in throttles if not t.metadata.deleting),
        key=lambda t: (str(t.metadata.creation_timestamp), t.metadata.uid),
        default=None,
    )


def _least(one: int | None, other: int | None) -> int | None:
    rates = [rate for rate in (one, other) if rate is not None]
    return min(rates) if rates else None
