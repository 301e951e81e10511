"""Planning by load against rules that are recounted, and against a constraint solver."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from ortools.sat.python import cp_model
from tests.property.load_judge import check_load, use
from tests.property.planning_judge import check, rack_cap, result, target_racks
from tests.property.test_planning_properties import requests

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import LoadGoal, LoadResource
from kafka_rebalance.planning import PlanRequest, plan
from kafka_rebalance.reasons import Reason


@st.composite
def load_requests(draw: st.DrawFn, most_partitions: int = 14, most_brokers: int = 6) -> PlanRequest:
    """Skewed sizes and rates, some resources, and capacities of some brokers."""
    base = draw(requests(most_partitions=most_partitions, most_brokers=most_brokers))
    resources = draw(st.lists(st.sampled_from(LoadResource), min_size=1, max_size=4, unique=True))
    goals = tuple(LoadGoal(resource, draw(st.sampled_from([0, 10, 30]))) for resource in resources)
    amount = st.integers(0, 40)
    partitions = tuple(
        replace(p, size_bytes=draw(amount), loads=tuple(float(draw(amount)) for _ in goals)) for p in base.partitions
    )
    capacities = {}
    if draw(st.booleans()):
        capacities = {b: {r: draw(st.integers(50, 400)) for r in resources} for b in sorted(base.targets)}
    return replace(base, partitions=partitions, goals=replace(base.goals, load=goals), capacities=capacities)


def plain(request: PlanRequest) -> PlanRequest:
    return replace(request, goals=replace(request.goals, load=()))


class TestRules:
    @given(load_requests())
    def test_hard_rules_hold(self, request_: PlanRequest) -> None:
        """Racks, counts and limits: no more violations than the count plan, the same counts, no limit exceeded."""
        without = plan(plain(request_))
        try:
            made = plan(request_)
        except Refused as refused:
            if refused.reason != Reason.CAPACITY_LIMIT_EXCEEDED:
                raise
            return
        check(request_, made)
        counts = Counter(b for row in result(request_, without).values() for b in row)
        check_load(request_, made, counts if made.certificate.lower_bound or not without.replica_moves else None)
        assert made.rack_violations <= without.rack_violations
        assert plan(request_) == made

    @given(load_requests())
    def test_the_outcome_is_that_of_the_lists(self, request_: PlanRequest) -> None:
        """Use before and after, and the bytes, are those of a recount; the bound is below the bytes."""
        request_ = replace(request_, capacities={})
        made = plan(request_)
        if made.load is None:
            assert not any(p.has_leader for p in request_.partitions)
            return
        assert made.load.data == made.data_to_move_bytes
        assert made.load.data_lower_bound <= made.load.data
        for lists, name in (({}, "before"), (result(request_, made), "after")):
            found = use(request_, lists)
            for row in made.load.resources:
                told = dict(zip(made.load.brokers, getattr(row, name), strict=True))
                assert all(abs(told[b] - found[b, row.resource]) <= 1 for b in told)

    @given(load_requests())
    def test_no_more_is_outside_than_with_counts_alone(self, request_: PlanRequest) -> None:
        """The first resource, which ranks highest, is never further above its band than in the count plan."""
        request_ = replace(request_, capacities={})
        made, without = plan(request_), plan(plain(request_))
        if made.load is None:
            return
        first = made.load.resources[0]
        ceiling = {b: s * (1 + first.band / 100) for b, s in zip(made.load.brokers, first.shares, strict=True)}
        above = [
            sum(max(0.0, found[b, first.resource] - most) for b, most in ceiling.items())
            for found in (use(request_, result(request_, each)) for each in (made, without))
        ]
        assert above[0] <= above[1] + 1 + 1e-3 * sum(first.shares)


def fewest_bytes_within(request: PlanRequest, violations: int, count_sumsq: int, most: dict[int, float]) -> int | None:
    """The fewest bytes of a plan with these figures and no broker above ``most`` bytes, by a constraint solver."""
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
        model.add(sum(p.size_bytes * on[i, b] for i, p in enumerate(partitions)) <= int(most[b]))
    model.add(sum(over) <= violations)
    model.add(sum(squares) == count_sumsq)
    model.minimize(
        sum(p.size_bytes * on[i, b] for i, p in enumerate(partitions) for b in brokers if b not in p.replicas)
    )
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return round(solver.objective_value) if solver.solve(model) == cp_model.OPTIMAL else None


class TestAgainstTheSolver:
    @given(load_requests(most_partitions=10))
    def test_the_bound_is_below_the_optimum(self, request_: PlanRequest) -> None:
        """Where the plan brings every disk within its band, the optimum lies between the bound and the plan."""
        partitions = tuple(replace(p, loads=()) for p in request_.partitions if p.has_leader)
        goals = replace(request_.goals, load=(LoadGoal(LoadResource.DISK, 30),))
        request_ = replace(request_, partitions=partitions, goals=goals, capacities={})
        made = plan(request_)
        if made.load is None or not made.load.within_bands:
            return
        total = sum(p.size_bytes * len(p.replicas) for p in partitions)
        most = {b: 1.3 * total / len(request_.targets) + 1e-9 for b in request_.targets}
        figures = check(request_, made)
        best = fewest_bytes_within(request_, figures.rack_violations, figures.count_sumsq, most)
        assert best is not None
        assert made.load.data_lower_bound <= best <= made.load.data
