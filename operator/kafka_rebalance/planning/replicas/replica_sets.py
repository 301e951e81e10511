"""Which brokers hold each partition: the fewest moves at the fairest counts, with the proof.

Small clusters use the flow over every partition (``placement``). Larger ones get a fast construction, which is optimal
when it makes no more moves than the kept-in-place bound (``outline``); otherwise chains of exchanges improve it until
no negative one is left, which is also a proof. If that takes too long the flow decides, up to a size. Effort is
counted and never timed, so the same cluster has the same plan on every machine.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.model.plan import Certificate
from kafka_rebalance.planning.problem.balance import fair_counts
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.cycles import MOST_BROKERS
from kafka_rebalance.planning.problem.flow import square_sum
from kafka_rebalance.planning.problem.instance import Instance, Ints
from kafka_rebalance.planning.replicas.construct import construct
from kafka_rebalance.planning.replicas.data_bound import data_bound
from kafka_rebalance.planning.replicas.exchange import CopyExchanges
from kafka_rebalance.planning.replicas.fewer_bytes import fewer_bytes
from kafka_rebalance.planning.replicas.outline import outline
from kafka_rebalance.planning.replicas.placement import place

SMALL = 1_000
"""Number of replicas up to which the flow is as fast; it chooses best among equally good placements."""

_WITH_SIZES = 10
"""Where sizes differ, up to this many times as many replicas: in some tenths of a second the flow also finds the fewest
bytes."""

EXACT = 60_000
"""Number of replicas up to which the plan is always proved: 20,000 partitions of three replicas."""

_EFFORT = 2_000
"""Maximum number of searches for chains; each takes some brokers x brokers steps."""


@dataclass(frozen=True)
class ReplicaSets:
    """Which brokers hold each partition, and what is proved of their moves."""

    copies: Copies
    certificate: Certificate

    def with_data_bound(self, least: int) -> Self:
        """The same copies. No placement that is as fair with so few moves copies fewer bytes than ``least``."""
        known = self.copies.instance.sizes_differ
        return replace(self, certificate=replace(self.certificate, data_lower_bound=least if known else None))

    @classmethod
    def proved_fewest(cls, copies: Copies) -> Self:
        """The fairest placement there is, proved to make the fewest moves."""
        return cls.with_bound(copies, copies.moves())

    @classmethod
    def with_bound(cls, copies: Copies, bound: int) -> Self:
        """The fairest placement there is. None that is as fair makes fewer moves than ``bound``."""
        return cls(copies, Certificate.of(copies.moves(), bound))

    @classmethod
    def unproved(cls, copies: Copies) -> Self:
        """A placement without a proof: there may be a fairer one."""
        return cls(copies, Certificate(0, optimal=False))


def fewest_moves(instance: Instance, *, bound_data: bool = True) -> ReplicaSets:
    """The replica sets of the plan. ``bound_data``: with a lower bound on its bytes, which takes a second for a million
    partitions."""
    fair = fair_counts(instance)
    if len(instance.broker_of_slot) <= SMALL * (_WITH_SIZES if instance.sizes_differ else 1):
        return _by_flow(instance, fair)
    return _fast(instance, fair, bound_data=bound_data) or _by_flow(instance, fair)


def _by_flow(instance: Instance, fair: Ints) -> ReplicaSets:
    placed, unit = place(instance, fair)
    copies = Copies.placed(instance, placed)
    return ReplicaSets.proved_fewest(copies).with_data_bound(max(copies.data(unit), data_bound(copies, copies.moves())))


def _fast(instance: Instance, fair: Ints, *, bound_data: bool) -> ReplicaSets | None:
    """None if the fast way does not support the rules of the instance, or did not finish."""
    if instance.rack_awareness is RackAwareness.PREFERRED:
        strict = replace(instance, rack_awareness=RackAwareness.ENFORCED)
        if square_sum(strict.fixed_replicas + fair_counts(strict)) != square_sum(strict.fixed_replicas + fair):
            return None  # balance and racks conflict: violations must be minimised
        instance = strict
    if instance.rack_excess.any() or int(instance.eligible.sum()) > MOST_BROKERS:
        return None
    if _nothing_to_do(instance, fair):
        return ReplicaSets.proved_fewest(Copies(instance, np.zeros(0, dtype=np.int64)))
    plan = outline(instance, fair)
    copies = construct(instance, plan)
    met = copies.moves() == plan.lower_bound and bool((copies.counts() == plan.target).all())
    proved = met or CopyExchanges(copies).improve(_EFFORT)
    as_fair = square_sum(instance.fixed_replicas + copies.counts()) == square_sum(instance.fixed_replicas + fair)
    if not proved and (len(instance.broker_of_slot) <= EXACT or not as_fair):
        return None
    copies.tidy()
    copies = fewer_bytes(copies) if instance.sizes_differ else copies
    if proved:
        found = ReplicaSets.proved_fewest(copies)
        return found.with_data_bound(data_bound(copies, copies.moves())) if bound_data else found
    # With fixed replicas an outline can be fairer than any placement; its moves then are no bound.
    reached = square_sum(instance.fixed_replicas + plan.target) == square_sum(instance.fixed_replicas + fair)
    bound = plan.lower_bound if reached else 0
    found = ReplicaSets.with_bound(copies, bound)
    return found.with_data_bound(data_bound(copies, bound)) if bound_data else found


def _nothing_to_do(instance: Instance, fair: Ints) -> bool:
    """Whether all copies may stay: on eligible brokers, with fair counts and no rack violation."""
    counts = np.bincount(instance.broker_of_slot, minlength=instance.brokers)
    fixed = instance.fixed_replicas
    if counts[~instance.eligible].any() or square_sum(fixed + counts) != square_sum(fixed + fair):
        return False
    return not len(instance.overfull(instance.broker_of_slot)[0])
