"""Balance of each topic: which brokers hold each partition, with the proof.

PerTopic decides racks, counts and moves of each topic independently; only ties are decided by even totals. Both
balances totals and topics together. Small clusters use the flow over every partition (``topic_placement``), as do
larger ones in which some partitions cannot meet the rack rule. The others get counts from an outline
(``topic_outline``), which are filled topic by topic.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from kafka_rebalance.model.goals import Balance, RackAwareness
from kafka_rebalance.planning.problem.balance import fair_counts
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.flow import even_square_sum, square_sum
from kafka_rebalance.planning.problem.instance import Instance, Ints
from kafka_rebalance.planning.replicas.construct import construct
from kafka_rebalance.planning.replicas.data_bound import data_bound
from kafka_rebalance.planning.replicas.exchange import GivenCounts
from kafka_rebalance.planning.replicas.fewer_bytes import fewer_bytes
from kafka_rebalance.planning.replicas.outline import Outline
from kafka_rebalance.planning.replicas.replica_sets import ReplicaSets, fewest_moves
from kafka_rebalance.planning.topics.topic_outline import outline_by_topic
from kafka_rebalance.planning.topics.topic_placement import place_by_topic

SMALL = 1_000
"""Number of replicas up to which the flow decides."""

MOST_CHOICES = 2_000_000
"""Number of (partition, broker) choices up to which the flow also decides when nothing else proves the fewest moves:
about a minute."""

MOST_CELLS = 20_000
"""Number of (topic, broker) cells up to which PerTopic evens totals over all topics at once: some seconds."""

_EFFORT = 200
"""Maximum number of searches for chains, for each topic."""


def balanced_by_topic(instance: Instance, balance: Balance) -> ReplicaSets:
    """The replica sets of the plan, for PerTopic and Both."""
    if not instance.topic[-1] and not instance.fixed_replicas.any():
        return fewest_moves(instance)
    odd = instance.rack_awareness is RackAwareness.PREFERRED or bool(instance.rack_excess.any())
    by_flow = odd and (balance is Balance.BOTH or _choices(instance) <= MOST_CHOICES)
    if by_flow or len(instance.broker_of_slot) <= SMALL:
        return _by_flow(instance, balance)
    if balance is Balance.PER_TOPIC and (odd or _cells(instance) > MOST_CELLS):
        return _each_alone(instance)
    found = _by_outline(instance, balance)
    if not found.certificate.optimal and balance is Balance.BOTH and _choices(instance) <= MOST_CHOICES:
        return _by_flow(instance, balance)
    return found


def uneven_topics(copies: Copies) -> list[int]:
    """The numbers of the topics that are less even than they could be alone."""
    instance = copies.instance
    brokers = int(instance.eligible.sum())
    uneven = []
    for number, (slots, part) in enumerate(_parts(instance)):
        squares = square_sum(np.bincount(copies.broker_of_slot[slots], minlength=instance.brokers).astype(np.int64))
        if squares > even_square_sum(len(part.broker_of_slot), brokers) and squares > square_sum(fair_counts(part)):
            uneven.append(number)
    return uneven


def _cells(instance: Instance) -> int:
    return (int(instance.topic[-1]) + 1) * int(instance.eligible.sum())


def _choices(instance: Instance) -> int:
    return len(instance.rf) * int(instance.eligible.sum())


def _by_flow(instance: Instance, balance: Balance) -> ReplicaSets:
    placed, proved, unit = place_by_topic(instance, balance)
    copies = Copies.placed(instance, placed)
    found = ReplicaSets.proved_fewest(copies) if proved else ReplicaSets.with_bound(copies, 0)
    return found.with_data_bound(copies.data(unit) if proved and unit else 0)


def _each_alone(instance: Instance) -> ReplicaSets:
    """Each topic alone, its spare copies on the brokers with the fewest copies so far."""
    broker_of, lower_bound = instance.broker_of_slot.copy(), 0
    totals = instance.fixed_replicas + np.bincount(broker_of, minlength=instance.brokers)
    for slots, part in _parts(instance):
        alone = fewest_moves(replace(part, tie_break=-totals))
        broker_of[slots] = alone.copies.broker_of_slot
        lower_bound += alone.certificate.lower_bound
        totals += alone.copies.counts() - np.bincount(part.broker_of_slot, minlength=instance.brokers)
    return _with_bounds(Copies.of_lists(instance, broker_of), lower_bound)


def _by_outline(instance: Instance, balance: Balance) -> ReplicaSets:
    plan = outline_by_topic(instance, balance)
    broker_of, lower_bound, met = instance.broker_of_slot.copy(), 0, True
    leaves = np.zeros(len(broker_of), dtype=np.bool_)
    leaves[plan.leaving] = True
    for (slots, part), target, bound in zip(_parts(instance), plan.targets, plan.lower_bounds.tolist(), strict=True):
        copies = _filled(part, Outline(target, np.flatnonzero(leaves[slots]), bound))
        missed = bool((copies.counts() != target).any())
        if balance is Balance.PER_TOPIC and (missed or copies.moves() > bound):
            alone = fewest_moves(part)
            lower_bound += alone.certificate.lower_bound
            copies = alone.copies if missed or alone.copies.moves() < copies.moves() else copies
        else:
            lower_bound, met = lower_bound + bound, met and not missed
        broker_of[slots] = copies.broker_of_slot
    copies = Copies.of_lists(instance, broker_of)
    return _with_bounds(copies, lower_bound) if met else ReplicaSets.unproved(copies)


def _with_bounds(copies: Copies, lower_bound: int) -> ReplicaSets:
    bound = data_bound(copies, lower_bound, fair_totals=False)
    return ReplicaSets.with_bound(copies, lower_bound).with_data_bound(bound)


def _filled(part: Instance, plan: Outline) -> Copies:
    """A topic's copies with the counts of its outline, and nearly always its moves."""
    if not len(plan.leaving) and (np.bincount(part.broker_of_slot, minlength=part.brokers) == plan.target).all():
        return Copies(part, plan.leaving)
    copies = construct(part, plan)
    if copies.moves() > plan.lower_bound or (copies.counts() != plan.target).any():
        GivenCounts(copies, plan.target).improve(_EFFORT)
    copies.tidy()
    return fewer_bytes(copies) if part.sizes_differ else copies


def _parts(instance: Instance) -> Iterator[tuple[slice, Instance]]:
    """Each topic's slots, and its partitions as an instance without fixed replicas."""
    first = np.flatnonzero(np.diff(instance.topic, prepend=-1))
    for begin, end in zip(first.tolist(), [*first[1:].tolist(), len(instance.rf)], strict=True):
        slots = slice(int(instance.start[begin]), int(instance.start[end - 1] + instance.rf[end - 1]))
        used, kind = np.unique(instance.kind[begin:end], return_inverse=True)
        yield slots, _part(instance, slice(begin, end), slots, used, kind.astype(np.int64))


def _part(instance: Instance, partitions: slice, slots: slice, used: Ints, kind: Ints) -> Instance:
    return replace(
        instance,
        rf=instance.rf[partitions],
        list_length=instance.rf[partitions],
        broker_of_slot=instance.broker_of_slot[slots],
        kind=kind,
        kinds=instance.kinds[used],
        rack_capacity=instance.rack_capacity[used],
        rack_excess=instance.rack_excess[used],
        topic=np.zeros(len(kind), dtype=np.int64),
        size=instance.size[partitions],
        fixed_replicas=np.zeros_like(instance.fixed_replicas),
    )
