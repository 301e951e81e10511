"""What balance costs: from the moves that have to be to the whole plan, how even so many moves make a cluster.

Leaders and the order of followers cost no data, so they are left out. A budget among the goals is not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_rebalance.model.plan import Spread
from kafka_rebalance.planning.budget import Purchases, trimmed
from kafka_rebalance.planning.copies import Copies
from kafka_rebalance.planning.encoding import build
from kafka_rebalance.planning.instance import Instance
from kafka_rebalance.planning.planner import replica_sets, spread_of
from kafka_rebalance.planning.request import Balance, Goals, PlanRequest, RackAwareness
from kafka_rebalance.planning.trim import data_of, squares_of, topic_squares_of


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """After so many replica ``moves``: the fewest and most replicas of a target broker, the sum of the target brokers'
    squared counts (PerTopic: of each topic's), the bytes that were fetched; ``optimal``: proved to be the best."""

    moves: int
    spread: Spread
    squares: int
    data_bytes: int
    optimal: bool


def curve(request: PlanRequest, points: int = 11) -> tuple[CurvePoint, ...]:
    """From the moves that have to be (copies on brokers that may hold nothing, avoidable rack violations) to the whole
    plan, in up to ``points`` (two at least) even steps. Raises Refused where the request contradicts itself."""
    encoded = build(request)
    if not encoded.partitions:
        return (CurvePoint(0, Spread(0, 0), 0, 0, optimal=True),)
    instance, goals = encoded.instance, request.goals
    sets = replica_sets(instance, goals)
    full = Copies.of_lists(instance, sets.copies.holder)
    whole = full.moves()
    last = _point(full, goals, optimal=whole == sets.lower_bound)
    forced = min(forced_moves(instance), whole)
    parts = max(2, points) - 1
    steps = sorted({forced + (whole - forced) * i // parts for i in range(parts)} - {whole})
    purchases = Purchases(instance, full) if goals.balance is Balance.TOTAL and steps else None
    found = [purchases.within(k) if purchases else trimmed(full, Goals(balance=goals.balance), k) for k in steps]
    return (*(_point(bought.copies, goals, optimal=bought.proved) for bought in found), last)


def forced_moves(instance: Instance) -> int:
    """How many copies have to leave where they are, whatever the counts (Preferred racks force nothing)."""
    stays = instance.eligible[instance.holder]
    departing = len(stays) - int(stays.sum())
    if instance.rack_awareness is RackAwareness.PREFERRED:
        return departing
    groups = len(instance.group_size)
    cell = instance.owner[stays].astype(np.int64) * groups + instance.group[instance.holder[stays]]
    cell, held = np.unique(cell, return_counts=True)
    owner, group = cell // groups, cell % groups
    room = instance.room_of[instance.kind[owner], group]
    beyond = np.bincount(owner, np.maximum(held - room, 0), minlength=len(instance.rf))
    return departing + int(np.maximum(beyond - instance.excess, 0).sum())


def _point(copies: Copies, goals: Goals, *, optimal: bool) -> CurvePoint:
    squares = topic_squares_of if goals.balance is Balance.PER_TOPIC else squares_of
    spread = spread_of(copies.instance, copies.holder)
    return CurvePoint(copies.moves(), spread, squares(copies), data_of(copies), optimal)
