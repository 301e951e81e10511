"""From a request with load goals to the arrays of the search: what replicas use, shares, bands and limits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from kafka_rebalance.model.goals import Balance, LoadGoal, LoadResource
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.planning.load.array_types import Bools, Floats, Indices, Ints
from kafka_rebalance.planning.load.load_state import LoadArrays, disk_of
from kafka_rebalance.planning.load.replica_use import use_in_place, uses
from kafka_rebalance.planning.problem.encoding import Encoded
from kafka_rebalance.planning.problem.request import PlanRequest

_OF_LEADERS = (LoadResource.BYTES_OUT, LoadResource.LEADER_BYTES_IN)

UNLIMITED = 1e300

_TINY_TOTAL = 1e-6


@dataclass(frozen=True)
class LoadProblem:
    """The arrays, and what they were made of: ``fixed`` [B, R] is the use by partitions that do not move, in bytes or
    bytes per second; ``share`` [B, R] is 0 for brokers that are not eligible."""

    arrays: LoadArrays
    goals: tuple[LoadGoal, ...]
    fixed: Floats
    share: Floats


def load_problem(request: PlanRequest, encoded: Encoded) -> LoadProblem:
    """The problem of a request with load goals. Priorities of the goals are not in the weights yet."""
    instance, goals = encoded.instance, request.goals.load
    resources = tuple(goal.resource for goal in goals)
    size = instance.size.astype(np.float64)
    follows, leads = uses(encoded.partitions, resources, size, instance.rf)
    disk = resources.index(LoadResource.DISK) if LoadResource.DISK in resources else -1
    home_bytes = _home_bytes(encoded, size)
    staying = [p for p in request.partitions if p.pinned or not p.has_leader]
    fixed = use_in_place(staying, resources, encoded.brokers)
    total = (follows * instance.rf[:, None] + leads).sum(axis=0) + fixed[instance.eligible].sum(axis=0)
    capacity = _capacities(request.capacities, resources, encoded.brokers)
    share = _shares(total, capacity, instance.eligible)
    inverse = np.divide(1.0, share, out=np.zeros_like(share), where=share > 0)
    most = np.array([100 if goal.capacity_limit is None else goal.capacity_limit for goal in goals]) / 100
    limited = np.array([goal.capacity_limit is not None for goal in goals]) & (capacity > 0) & (share > 0)
    limit = np.where(limited, capacity * most * inverse, UNLIMITED)
    start = np.concatenate([[0], np.cumsum(instance.rf)]).astype(np.int64)
    whole = request.goals
    arrays = LoadArrays(
        start=start,
        partition=np.repeat(np.arange(len(size), dtype=np.int32), instance.rf),
        home_start=np.concatenate([[0], np.cumsum(instance.list_length)]).astype(np.int64),
        homes=instance.broker_of_slot.astype(np.int32),
        home_bytes=home_bytes,
        size=size,
        mean_size=float(size.mean()) or 1.0,
        follows=follows,
        leads=leads,
        disk=disk,
        inverse=inverse,
        band=1 + np.array([goal.band for goal in goals]) / 100,
        limit=limit,
        weight=np.ones(len(goals)),
        locked=np.zeros(len(goals), dtype=np.bool_),
        eligible=instance.eligible,
        group=instance.group.astype(np.int64),
        kind=instance.kind.astype(np.int64),
        room=np.ascontiguousarray(instance.rack_capacity, dtype=np.int64),
        topic=instance.topic.astype(np.int64),
        topic_start=np.searchsorted(instance.topic, np.arange(int(instance.topic[-1]) + 2)).astype(np.int64),
        by_topic=whole.balance is not Balance.TOTAL,
        keep_leaders=whole.counts and not leaders_matter(goals),
        keep_counts=whole.counts,
        most_bytes=UNLIMITED if whole.max_data_to_move is None else float(whole.max_data_to_move),
        most_moves=2**62 if whole.max_replica_moves is None else whole.max_replica_moves,
    )
    return LoadProblem(arrays, goals, fixed, share)


def leaders_matter(goals: Iterable[LoadGoal]) -> bool:
    """Whether the use of some resource depends on who leads."""
    return any(goal.resource in _OF_LEADERS for goal in goals)


def use_of(problem: LoadProblem, starts: Ints, lists: Indices, *, present: bool = False) -> Floats:
    """The use [B, R] of these lists, in bytes or bytes per second. ``present``: they are the homes."""
    a = problem.arrays
    partition = np.repeat(np.arange(len(a.size)), np.diff(starts))
    use = problem.fixed.copy()
    first = lists[starts[:-1]]
    for r in range(use.shape[1]):
        each = a.follows[partition, r]
        if r == a.disk:
            each = a.home_bytes if present else disk_of(a, lists)
        use[:, r] += np.bincount(lists, each, minlength=len(use))
        use[:, r] += np.bincount(first, a.leads[:, r], minlength=len(use))
    return use


def _home_bytes(encoded: Encoded, size: Floats) -> Floats:
    """What each present copy takes; a copy of unknown size takes as much as a new one."""
    instance = encoded.instance
    found = np.repeat(size, instance.list_length)
    for p, part in enumerate(encoded.partitions):
        if part.replica_bytes:
            begin = int(instance.start[p])
            found[begin : begin + len(part.replica_bytes)] = part.replica_bytes
    return found


def _capacities(
    known: Mapping[BrokerId, Mapping[LoadResource, int]],
    resources: tuple[LoadResource, ...],
    brokers: tuple[BrokerId, ...],
) -> Floats:
    """The capacities [B, R]; 0 where not known."""
    return np.array([[known.get(b, {}).get(r, 0) for r in resources] for b in brokers], dtype=np.float64)


def _shares(total: Floats, capacity: Floats, eligible: Bools) -> Floats:
    """Each eligible broker's part of the total, in proportion to capacity where all are known, else equal."""
    known = (capacity[eligible] > 0).all(axis=0)
    weight = np.where(known, capacity, 1.0) * eligible[:, None]
    # An unused resource has shares too, so that divisions by them are defined.
    share: Floats = np.maximum(total, _TINY_TOTAL) * weight / weight.sum(axis=0)
    return share
