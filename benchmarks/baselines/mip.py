"""A mixed-integer program: a variable per partition and broker, constraints for counts and racks. Sets only."""

import numpy as np
from ortools.linear_solver import pywraplp

from benchmarks.clusters import Cluster

SECONDS = 60
"""Time limit; the best solution so far is returned."""


def plan(given: Cluster) -> np.ndarray | None:
    """Replica lists with the fewest moves; kept replicas keep their positions. None: no solution in time."""
    solver = pywraplp.Solver.CreateSolver("SCIP")
    solver.SetTimeLimit(SECONDS * 1000)
    brokers, partitions = np.flatnonzero(given.targets).tolist(), len(given.rf)
    lists = np.split(given.lists, np.cumsum(given.rf)[:-1])
    on = {(p, b): solver.BoolVar("") for p in range(partitions) for b in brokers}
    low, more = divmod(len(given.lists), len(brokers))
    for p, rf in enumerate(given.rf.tolist()):
        solver.Add(solver.Sum([on[p, b] for b in brokers]) == rf)
        for rack in np.unique(given.racks).tolist():
            solver.Add(solver.Sum([on[p, b] for b in brokers if given.racks[b] == rack]) <= 1)
    for b in brokers:
        count = solver.Sum([on[p, b] for p in range(partitions)])
        solver.Add(count >= low)
        solver.Add(count <= low + bool(more))
    solver.Maximize(solver.Sum([on[p, b] for p in range(partitions) for b in lists[p].tolist() if (p, b) in on]))
    if solver.Solve() not in (solver.OPTIMAL, solver.FEASIBLE):
        return None
    return np.concatenate(
        [
            _ordered(lists[p].tolist(), [b for b in brokers if on[p, b].solution_value() > 0.5])
            for p in range(partitions)
        ]
    )


def _ordered(before: list[int], after: list[int]) -> list[int]:
    new = iter([b for b in after if b not in before])
    return [b if b in after else next(new) for b in before]
