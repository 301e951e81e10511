"""The planner chooses the plan that copies the fewest bytes among all plans with the fewest moves."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

from hypothesis import given
from ortools.sat.python import cp_model
from tests.property.planning_judge import check, rack_cap, target_racks
from tests.property.test_planning_properties import requests

from kafka_rebalance.model.goals import Balance
from kafka_rebalance.planning import PlanRequest, plan
from kafka_rebalance.planning.replicas import replica_sets as sets


def fewest_bytes(request: PlanRequest, violations: int, count_sumsq: int, moves: int) -> int:
    """The fewest bytes of a plan with these figures, by a constraint solver."""
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
    new = [(p.size_bytes, on[i, b]) for i, p in enumerate(partitions) for b in brokers if b not in p.replicas]
    model.add(sum(over) == violations)
    model.add(sum(squares) == count_sumsq)
    model.add(sum(var for _, var in new) == moves)
    model.minimize(sum(size * var for size, var in new))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


class TestFewestBytes:
    @given(requests(most_partitions=12))
    def test_the_flow_finds_the_fewest_bytes(self, request_: PlanRequest) -> None:
        """As many violations, counts and moves as without sizes, and no such plan copies less. The bound says so."""
        made = plan(request_)
        found = check(request_, made)
        best = fewest_bytes(request_, found.rack_violations, found.count_sumsq, found.moves)
        assert made.data_to_move_bytes == best
        assert made.certificate.data_lower_bound in (None, best)
        without = plan(replace(request_, partitions=tuple(replace(p, size_bytes=0) for p in request_.partitions)))
        assert found.moves == without.replica_moves
        assert without.certificate.data_lower_bound is None

    @given(requests(most_partitions=12))
    def test_the_method_for_large_clusters_never_undercuts_its_bound(self, request_: PlanRequest) -> None:
        """The bound is at most what the solver finds, which is at most what the plan copies."""
        with mock.patch.object(sets, "SMALL", 0):
            made = plan(request_)
        found = check(request_, made)
        best = fewest_bytes(request_, found.rack_violations, found.count_sumsq, found.moves)
        assert (made.certificate.data_lower_bound or 0) <= best <= made.data_to_move_bytes

    @given(requests(most_partitions=12))
    def test_topics_keep_their_moves(self, request_: PlanRequest) -> None:
        """Bytes decide only between plans with the same moves, and are at least their bound."""
        for balance in (Balance.PER_TOPIC, Balance.BOTH):
            asked = replace(request_, goals=replace(request_.goals, balance=balance))
            plain = replace(asked, partitions=tuple(replace(p, size_bytes=0) for p in asked.partitions))
            made = plan(asked)
            assert made.replica_moves == plan(plain).replica_moves
            assert made.rack_violations == plan(plain).rack_violations
            assert (made.certificate.data_lower_bound or 0) <= made.data_to_move_bytes
