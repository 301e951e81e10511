"""The exact flow over every partition, and leaders and seconds chosen together by another one: proved, and slow."""

from unittest import mock

import numpy as np

from benchmarks.clusters import Cluster
from kafka_rebalance.planning import planner
from kafka_rebalance.planning.planner import Solution, solve
from kafka_rebalance.planning.problem.request import Goals
from kafka_rebalance.planning.replicas import replica_sets as sets


def plan(given: Cluster) -> np.ndarray:
    """The lists after it: every level exact for the sets that the flow has chosen."""
    with mock.patch.object(planner, "EXACT_ORDER", len(given.lists)):
        return sets_by_flow(given).lists


def sets_by_flow(given: Cluster) -> Solution:
    """Only the replica sets by the flow; leaders and order as the planner has them at this size."""
    with mock.patch.object(sets, "SMALL", len(given.lists)):
        return solve(given.instance(), Goals())
