"""Checks a plan of arrays by counting; shares no code with the planner."""

from typing import Any

import numpy as np

from benchmarks.clusters import NO_RACK, Cluster


def worth(given: Cluster, before: np.ndarray, after: np.ndarray) -> dict[str, Any]:
    """Quality of the lists [N] that replace ``before`` [N]: moves, spreads (maximum minus minimum), leaders, pairs."""
    brokers = len(given.racks)
    owner = np.repeat(np.arange(len(given.rf)), given.rf)
    start = np.cumsum(given.rf) - given.rf
    kept = np.isin(owner * brokers + after, owner * brokers + before, kind="sort")
    counts, led = np.bincount(after, minlength=brokers), np.bincount(after[start], minlength=brokers)
    paired = start[given.rf > 1]
    pairs = np.unique(after[paired] * brokers + after[paired + 1], return_counts=True)[1]
    return {
        "moves": int((~kept).sum()),
        "replicaSpread": int(np.ptp(counts[given.targets])),
        "leaderSpread": int(np.ptp(led[given.targets])),
        "leaderChanges": int((after[start] != before[start]).sum()),
        "mostPairs": int(pairs.max()),
        "pairSquares": int((pairs * pairs).sum()),
    }


def assert_rules(given: Cluster, after: np.ndarray) -> None:
    """Raises if a broker or rack holds two replicas of a partition, a broker is ineligible, or counts are uneven."""
    brokers, owner = len(given.racks), np.repeat(np.arange(len(given.rf)), given.rf)
    rack = np.where(given.racks == NO_RACK, brokers + np.arange(brokers), given.racks)
    if len(np.unique(owner * 2 * brokers + rack[after])) != len(after):
        raise AssertionError("two copies of a partition are on one broker or in one rack")
    if not given.targets[after].all():
        raise AssertionError("a copy is on a broker that may hold none")
    counts = np.bincount(after, minlength=brokers)
    names = np.unique(given.racks[given.targets])
    inside = [counts[given.targets & (given.racks == name)] for name in names]
    if any(np.ptp(of) > 1 for of in inside):
        raise AssertionError("brokers of one rack have uneven counts")
    # A rack may hold fewer replicas per broker than others only if it is full: it has one of every partition.
    highest = max(of.max() for of in inside)
    if any(highest - of.min() > 1 and of.sum() < len(given.rf) for of in inside):
        raise AssertionError("counts are uneven between racks")
