"""The exact flow over all partitions, with an exact order of leaders and second replicas: proven optimal, but slow."""

from unittest import mock

import numpy as np

from benchmarks.clusters import Cluster
from kafka_rebalance.planning import planner
from kafka_rebalance.planning.planner import Solution, solve_instance
from kafka_rebalance.planning.problem.request import Goals
from kafka_rebalance.planning.replicas import replica_sets as sets


def plan(given: Cluster) -> np.ndarray:
    """Replica lists after the plan; every objective level is exact for the replica sets that the flow selects."""
    with mock.patch.object(planner, "EXACT_ORDER", len(given.lists)):
        return sets_by_flow(given).lists


def sets_by_flow(given: Cluster) -> Solution:
    """Uses the flow for the replica sets only; leaders and order are planned as usual for this cluster size."""
    with mock.patch.object(sets, "SMALL", len(given.lists)):
        return solve_instance(given.instance(), Goals())
