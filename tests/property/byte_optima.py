"""The fewest bytes of any plan with given figures, by a constraint solver and without the planner's code."""

from __future__ import annotations

from dataclasses import dataclass

from ortools.sat.python import cp_model
from tests.property.planning_judge import rack_cap, target_racks

from kafka_rebalance.planning import PartitionInput, PlanRequest


@dataclass(frozen=True, slots=True)
class _Placements:
    """All placements of the request. ``on``: by partition and broker; ``over``: replicas above the rack rule."""

    model: cp_model.CpModel
    brokers: list[int]
    partitions: list[PartitionInput]
    on: dict[tuple[int, int], cp_model.IntVar]
    over: list[cp_model.IntVar]
    squares: list[cp_model.IntVar]

    @classmethod
    def of(cls, request: PlanRequest) -> _Placements:
        model, racks, brokers = cp_model.CpModel(), target_racks(request), sorted(request.targets)
        partitions = [p for p in request.partitions if p.has_leader]
        on = {(i, b): model.new_bool_var("") for i in range(len(partitions)) for b in brokers}
        over, squares = [], []
        for i, p in enumerate(partitions):
            rf = len(p.replicas)
            model.add(sum(on[i, b] for b in brokers) == rf)
            for rack in {r for r in racks.values() if r is not None}:
                over.append(model.new_int_var(0, rf, ""))
                model.add(over[-1] >= sum(on[i, b] for b in brokers if racks[b] == rack) - rack_cap(racks, rf))
        for b in brokers:
            count = model.new_int_var(0, len(partitions), "")
            squares.append(model.new_int_var(0, len(partitions) ** 2, ""))
            model.add(count == sum(on[i, b] for i in range(len(partitions))))
            model.add_multiplication_equality(squares[-1], [count, count])
        return cls(model, brokers, partitions, on, over, squares)

    @property
    def copies(self) -> list[tuple[int, cp_model.IntVar]]:
        """The size of each possible copy, and whether it is made."""
        rows = enumerate(self.partitions)
        return [(p.size_bytes, self.on[i, b]) for i, p in rows for b in self.brokers if b not in p.replicas]

    def fewest_bytes(self) -> int | None:
        """None if no placement meets the constraints."""
        self.model.minimize(sum(size * var for size, var in self.copies))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        return round(solver.objective_value) if solver.solve(self.model) == cp_model.OPTIMAL else None


def fewest_bytes(request: PlanRequest, violations: int, count_sumsq: int, moves: int) -> int:
    """The fewest bytes of a plan with these figures."""
    placements = _Placements.of(request)
    placements.model.add(sum(placements.over) == violations)
    placements.model.add(sum(placements.squares) == count_sumsq)
    placements.model.add(sum(var for _, var in placements.copies) == moves)
    best = placements.fewest_bytes()
    assert best is not None
    return best


def fewest_bytes_within(
    request: PlanRequest, violations: int, count_sumsq: int | None, most: dict[int, float]
) -> int | None:
    """The fewest bytes of a plan with these figures (``count_sumsq`` None: any) and no broker above ``most`` bytes."""
    placements = _Placements.of(request)
    for b in placements.brokers:
        used = sum(p.size_bytes * placements.on[i, b] for i, p in enumerate(placements.partitions))
        placements.model.add(used <= int(most[b]))
    placements.model.add(sum(placements.over) <= violations)
    if count_sumsq is not None:
        placements.model.add(sum(placements.squares) == count_sumsq)
    return placements.fewest_bytes()
