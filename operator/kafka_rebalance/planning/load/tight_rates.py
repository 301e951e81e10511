"""Which rates of brokers are tight in a plan: steps in a wrong order could bring the broker above a limit."""

import numpy as np

from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.rate_room import RateKey, RateRoom
from kafka_rebalance.planning.load.array_types import Bools, Floats, Indices, Ints
from kafka_rebalance.planning.load.load_problem import UNLIMITED, LoadProblem
from kafka_rebalance.planning.load.load_state import at_home
from kafka_rebalance.planning.problem.encoding import Encoded

_ROUNDING = 1e-6
"""Bytes per second, of limits that are computed in percent."""

_Places = tuple[Ints, Ints]
"""Partitions, and a broker of each."""


def tight_rates(problem: LoadProblem, encoded: Encoded, present: Floats, lists: Indices) -> RateRoom | None:
    """The tight rates of a plan with these lists; None: any order is within the limits.

    ``present`` [B, R]: the use before. A partition on its way counts on its old and its new brokers, its old and its
    new leader. The end of the plan always has room: the search has accepted it.
    """
    a, brokers = problem.arrays, len(encoded.brokers)
    free, rates = dict[RateKey, int](), dict[int, dict[LoadResource, int]]()
    for r, goal in enumerate(problem.goals):
        limited = a.eligible & (a.limit[:, r] < UNLIMITED)
        if goal.resource is LoadResource.DISK or not limited.any():
            continue
        limit = np.where(limited, a.limit[:, r] * problem.share[:, r], np.inf)
        room = np.floor(np.maximum(limit - present[:, r], 0) + _ROUNDING)
        each = np.rint(a.follows[:, r] + a.leads[:, r])  # one of the two is 0
        of_leaders = goal.resource is not LoadResource.BYTES_IN
        partition, broker = _coming_leaders(problem, lists) if of_leaders else _coming_replicas(problem, lists)
        comes = np.bincount(broker, each[partition], minlength=brokers)
        if (comes <= room).all():
            continue
        old, old_broker = (
            _leaving_leaders(problem, lists) if of_leaders else _leaving_replicas(problem, lists, partition)
        )
        leaves = np.bincount(old_broker, each[old], minlength=brokers)
        room = np.maximum(room, comes - leaves)
        tight: Bools = comes > room
        free |= {RateKey(encoded.brokers[b], goal.resource): int(room[b]) for b in np.flatnonzero(tight).tolist()}
        for p in np.unique(np.concatenate([partition[tight[broker]], old[tight[old_broker]]])).tolist():
            rates.setdefault(p, {})[goal.resource] = int(each[p])
    return RateRoom(free, {encoded.partitions[p].tp: rates[p] for p in sorted(rates)}) if free else None


def _coming_leaders(problem: LoadProblem, lists: Indices) -> _Places:
    now, then = _leaders(problem, lists)
    moved = np.flatnonzero(now != then)
    return moved, then[moved]


def _leaving_leaders(problem: LoadProblem, lists: Indices) -> _Places:
    now, then = _leaders(problem, lists)
    moved = np.flatnonzero(now != then)
    return moved, now[moved]


def _leaders(problem: LoadProblem, lists: Indices) -> _Places:
    a = problem.arrays
    return a.homes[a.home_start[:-1]].astype(np.int64), lists[a.start[:-1]].astype(np.int64)


def _coming_replicas(problem: LoadProblem, lists: Indices) -> _Places:
    new = ~at_home(problem.arrays, lists)
    return problem.arrays.partition[new].astype(np.int64), lists[new].astype(np.int64)


def _leaving_replicas(problem: LoadProblem, lists: Indices, moved: Ints) -> _Places:
    """Of partitions that also get a replica."""
    a = problem.arrays
    some = np.zeros(len(a.size), dtype=np.bool_)
    some[moved] = True
    home = np.repeat(np.arange(len(a.size)), np.diff(a.home_start))
    here, there = np.flatnonzero(some[home]), np.flatnonzero(some[a.partition])
    brokers = len(a.eligible)
    kept = a.partition[there].astype(np.int64) * brokers + lists[there]
    gone = here[~np.isin(home[here] * brokers + a.homes[here], kept)]
    return home[gone], a.homes[gone].astype(np.int64)
