"""For small clusters: among equally good replica sets, those that allow the most even leaders and pairs.

Several placements often have the fewest moves, and their choice limits how even leaders and pairs can be. Sets and
order together are no flow, so small clusters use a constraint solver (decision 16), with a fixed amount of work: the
result does not depend on the machine's speed. It must not change the rack rule, counts, moves or
bytes.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.planning.problem.flow import even_square_sum, square_sum
from kafka_rebalance.planning.problem.instance import Instance
from kafka_rebalance.planning.problem.request import Goals
from kafka_rebalance.planning.replicas.placement import Placed

SMALL = 800
"""Number of (partition, leader, second) choices up to which it is used: 25 partitions on 6 brokers."""

EFFORT = 0.5
"""The solver's deterministic time per level, about seconds."""

_CHANGES = 2
"""The level whose bound depends on another level."""

Score = tuple[int, int, int]
"""Sum of squared leader counts, of squared (leader, second) counts, and leader changes: smaller is better."""


def score(instance: Instance, lists: Sequence[Sequence[int]], goals: Goals) -> Score:
    """The score of ordered lists."""
    leaders = Counter(row[0] for row in lists)
    pairs = Counter((row[0], row[1]) for row in lists if len(row) > 1)
    changes = sum(row[0] != first for row, first in zip(lists, _first(instance), strict=True))
    pair_sum = sum(n * n for n in pairs.values()) if goals.follower_order else 0
    return sum(n * n for n in leaders.values()), pair_sum, changes


def better_replica_sets(
    instance: Instance, placed: Placed, lists: Sequence[Sequence[int]], goals: Goals
) -> Placed | None:
    """Replica sets as fair as ``placed``, with as many moves, whose best order beats ``lists``; None if there are none.

    Also None if the cluster is not small, has fixed replicas, or ``lists`` meets the bounds that hold for any sets.
    """
    brokers = int(instance.eligible.sum())
    if not goals.leaders or len(instance.rf) * brokers * (brokers - 1) > SMALL or instance.fixed_replicas.any():
        return None
    present = set(zip(instance.partition_of_slot.tolist(), instance.broker_of_slot.tolist(), strict=True))
    if present == set(zip(placed[0].tolist(), placed[1].tolist(), strict=True)):
        return None  # nothing moves, so there is no choice
    have, bound = score(instance, lists, goals), _bounds(instance, goals)
    if have == bound:
        return None
    return _TiebreakModel(instance, placed, lists, goals).improve(have, bound)


def _first(instance: Instance) -> list[int]:
    """Each partition's present leader."""
    found: list[int] = instance.broker_of_slot[instance.position == 0].tolist()
    return found


def _bounds(instance: Instance, goals: Goals) -> Score:
    """Lower bounds for any sets; the last one only if leaders are as even as the first one says."""
    brokers = int(instance.eligible.sum())
    pairs = int((instance.rf > 1).sum()) if goals.follower_order else 0
    current = Counter(_first(instance))
    most = -(-len(instance.rf) // brokers)
    leaders = even_square_sum(len(instance.rf), brokers)
    surplus = sum(max(0, n - most) if instance.eligible[b] else n for b, n in current.items())
    return leaders, even_square_sum(pairs, max(1, brokers * (brokers - 1))), surplus


class _TiebreakModel:
    """Boolean variables: partition p is on broker b, is led by b, has (a, b) as its first pair."""

    def __init__(self, instance: Instance, placed: Placed, lists: Sequence[Sequence[int]], goals: Goals) -> None:
        from ortools.sat.python import cp_model

        self._cp = cp_model
        self._model = cp_model.CpModel()
        self._instance, self._goals = instance, goals
        self._brokers: list[int] = np.flatnonzero(instance.eligible).tolist()
        partitions = range(len(instance.rf))
        new = self._model.new_bool_var
        self._on = {(p, b): new("") for p in partitions for b in self._brokers}
        self._leads = {(p, b): new("") for p in partitions for b in self._brokers}
        self._pair = {
            (p, a, b): new("")
            for p in partitions
            if instance.rf[p] > 1 and goals.follower_order
            for a in self._brokers
            for b in self._brokers
            if a != b
        }
        self._tie_choices_together()
        self._hold_upper_levels(placed)
        self._hint(lists)

    def _tie_choices_together(self) -> None:
        model, brokers = self._model, self._brokers
        for p, rf in enumerate(self._instance.rf.tolist()):
            model.add(sum(self._on[p, b] for b in brokers) == rf)
            model.add_exactly_one(self._leads[p, b] for b in brokers)
            for b in brokers:
                model.add_implication(self._leads[p, b], self._on[p, b])
            if (p, *brokers[:2]) not in self._pair:
                continue
            for a in brokers:
                others = [b for b in brokers if b != a]
                model.add(sum(self._pair[p, a, b] for b in others) == self._leads[p, a])
                model.add(sum(self._pair[p, b, a] for b in others) + self._leads[p, a] <= self._on[p, a])

    def _hold_upper_levels(self, placed: Placed) -> None:
        """Keep rack violations, the sum of squared counts, moves, and their bytes."""
        instance, model = self._instance, self._model
        partition_of, broker_of = placed
        violations: list[Any] = []
        if instance.rack_awareness is not RackAwareness.DISABLED:
            for p, g in np.ndindex(*instance.partition_capacity.shape):
                members = [b for b in self._brokers if instance.group[b] == g]
                beyond = len(members) - int(instance.partition_capacity[p, g])
                if beyond > 0:
                    over = model.new_int_var(0, beyond, "")
                    model.add(sum(self._on[p, b] for b in members) - int(instance.partition_capacity[p, g]) <= over)
                    violations.append(over)
            model.add(sum(violations) <= instance.violations(broker_of.astype(np.int32)))
        counts = np.bincount(broker_of, minlength=instance.brokers).astype(np.int64)
        squares = [self._square([self._on[p, b] for p in range(len(instance.rf))]) for b in self._brokers]
        model.add(sum(squares) <= square_sum(counts))
        present = set(zip(instance.partition_of_slot.tolist(), instance.broker_of_slot.tolist(), strict=True))
        moved = [var for key, var in self._on.items() if key not in present]
        moves = sum(key not in present for key in zip(partition_of.tolist(), broker_of.tolist(), strict=True))
        model.add(sum(moved) <= moves)
        if instance.sizes_differ:
            size: list[int] = instance.size.tolist()
            placed_at = zip(partition_of.tolist(), broker_of.tolist(), strict=True)
            data = sum(size[p] for p, b in placed_at if (p, b) not in present)
            model.add(sum(size[p] * var for (p, b), var in self._on.items() if (p, b) not in present) <= data)

    def _square(self, chosen: list[Any]) -> Any:
        """The square of the number chosen, as a sum of odd numbers 1 + 3 + 5 …"""
        steps = [self._model.new_bool_var("") for _ in chosen]
        self._model.add(sum(steps) == sum(chosen))
        for before, after in pairwise(steps):
            self._model.add_implication(after, before)
        return sum((2 * k + 1) * step for k, step in enumerate(steps))

    def _hint(self, lists: Sequence[Sequence[int]]) -> None:
        for (p, b), var in self._on.items():
            self._model.add_hint(var, b in lists[p])
        for (p, b), var in self._leads.items():
            self._model.add_hint(var, b == lists[p][0])
        for (p, a, b), var in self._pair.items():
            self._model.add_hint(var, [a, b] == list(lists[p][:2]))

    def improve(self, have: Score, bound: Score) -> Placed | None:
        """Optimise level by level; the sets of the last improvement, None if no level improved."""
        partitions = range(len(self._instance.rf))
        pairs = [(a, b) for a in self._brokers for b in self._brokers if a != b] if self._pair else []
        first = _first(self._instance)
        levels = [
            sum(self._square([self._leads[p, b] for p in partitions]) for b in self._brokers),
            sum(self._square([self._pair[p, a, b] for p in partitions if (p, a, b) in self._pair]) for a, b in pairs),
            sum(1 - self._leads[p, b] if (p, b) in self._leads else 1 for p, b in enumerate(first)),
        ]
        found: Placed | None = None
        reached = list(have)
        for level, expression in enumerate(levels):
            if isinstance(expression, int):
                continue
            # The bound on changes holds only for the most even leaders.
            floor = bound[level] if level < _CHANGES or reached[0] == bound[0] else 0
            self._model.add(expression >= floor)
            if found is not None or reached[level] > floor:
                value = self._minimise(expression)
                if value is None:
                    return found
                if found is not None or value < reached[level]:
                    found = self._set_table()
                reached[level] = value
            self._model.add(expression <= reached[level])
        return found

    def _minimise(self, expression: Any) -> int | None:
        self._model.minimize(expression)
        self._solver = self._cp.CpSolver()
        self._solver.parameters.num_workers = 1  # several workers race, and the result would not be deterministic
        self._solver.parameters.random_seed = 0
        self._solver.parameters.max_deterministic_time = EFFORT
        status = self._solver.solve(self._model)
        return round(self._solver.objective_value) if status in (self._cp.OPTIMAL, self._cp.FEASIBLE) else None

    def _set_table(self) -> Placed:
        chosen = sorted(key for key, var in self._on.items() if self._solver.boolean_value(var))
        partition_of, broker_of = zip(*chosen, strict=True)
        return np.array(partition_of, dtype=np.int64), np.array(broker_of, dtype=np.int64)
