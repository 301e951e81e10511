"""For small clusters: the best plan within a movement budget, by a constraint solver with a fixed amount of work.

With a limit on all moves the optimum of the flow need not be integer, and a limit in bytes is a knapsack. When the
outline's bound is not met and the cluster is small this decides level by level, starting from the best plan found
(decision 16). The result does not depend on the machine's speed.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.planning.problem.copies import Copies

SMALL = 300
"""Number of (partition, broker) choices up to which it is used: 50 partitions on 6 brokers."""

EFFORT = 0.5
"""The solver's deterministic time per level, about seconds."""


def exactly(found: Copies, moves: int, data: int | None) -> Copies | None:
    """The proved best within ``moves`` and ``data`` bytes (None: no limit); None if it is too much work."""
    instance = found.instance
    if len(instance.rf) * int(instance.eligible.sum()) > SMALL:
        return None
    return _Model(found, moves, data).solve()


class _Model:
    """Boolean variables: partition p is on broker b."""

    def __init__(self, found: Copies, moves: int, data: int | None) -> None:
        from ortools.sat.python import cp_model

        self._cp = cp_model
        self._model = cp_model.CpModel()
        instance = self._instance = found.instance
        self._brokers: list[int] = np.flatnonzero(instance.eligible).tolist()
        homes = set(zip(instance.partition_of_slot.tolist(), instance.broker_of_slot.tolist(), strict=True))
        choices = homes | {(p, b) for p in range(len(instance.rf)) for b in self._brokers}
        self._on = {key: self._model.new_bool_var("") for key in sorted(choices)}
        for p, rf in enumerate(instance.rf.tolist()):
            self._model.add(sum(var for key, var in self._on.items() if key[0] == p) == rf)
        new = [(key, var) for key, var in self._on.items() if key not in homes]
        self._moves = sum(var for _, var in new)
        self._model.add(self._moves <= moves)
        if data is not None:
            size: list[int] = instance.size.tolist()
            self._model.add(sum(size[p] * var for (p, _), var in new) <= min(data, sum(size) * len(self._brokers)))
        replica_sets = set(zip(instance.partition_of_slot.tolist(), found.broker_of_slot.tolist(), strict=True))
        for key, var in self._on.items():
            self._model.add_hint(var, key in replica_sets)

    def solve(self) -> Copies | None:
        """Optimise level by level, most important first."""
        instance = self._instance
        stuck = sum(var for (_, b), var in self._on.items() if not instance.eligible[b])
        levels = [stuck, self._violations(), sum(map(self._square, self._brokers)), self._moves]
        if instance.rack_awareness is RackAwareness.PREFERRED:
            levels[1:3] = levels[2], levels[1]
        solver = self._cp.CpSolver()
        solver.parameters.num_workers = 1  # several workers race, and the result would not be deterministic
        solver.parameters.random_seed = 0
        solver.parameters.max_deterministic_time = EFFORT
        for level in levels:
            if isinstance(level, int):
                continue
            self._model.minimize(level)
            if solver.solve(self._model) != self._cp.OPTIMAL:
                return None
            self._model.add(level <= round(solver.objective_value))
        chosen = [key for key, var in self._on.items() if solver.boolean_value(var)]
        partition_of, broker_of = np.array(chosen, dtype=np.int64).T
        return Copies.placed(instance, (partition_of, broker_of))

    def _violations(self) -> Any:
        instance, found = self._instance, []
        for p, g in np.ndindex(*instance.partition_capacity.shape):
            members = [b for b in self._brokers if instance.group[b] == g]
            beyond = len(members) - int(instance.partition_capacity[p, g])
            if beyond > 0:
                over = self._model.new_int_var(0, beyond, "")
                self._model.add(sum(self._on[p, b] for b in members) - int(instance.partition_capacity[p, g]) <= over)
                found.append(over)
        return sum(found)

    def _square(self, broker: int) -> Any:
        """The square of the broker's count, above that of what stays, as a sum of odd numbers 1 + 3 + 5 ..."""
        fixed = int(self._instance.fixed_replicas[broker])
        chosen = [var for (_, b), var in self._on.items() if b == broker]
        steps = [self._model.new_bool_var("") for _ in chosen]
        self._model.add(sum(steps) == sum(chosen))
        for before, after in pairwise(steps):
            self._model.add_implication(after, before)
        return sum((2 * (fixed + k) + 1) * step for k, step in enumerate(steps))
