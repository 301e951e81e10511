"""The optima of plans, without any of the planner's code: by an exact constraint solver, and by plain flows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from ortools.graph.python import min_cost_flow
from ortools.sat.python import cp_model
from tests.property.planning_judge import (
    Bought,
    Metrics,
    pinned_inputs,
    rack_cap,
    staying,
    target_racks,
    topic_levels,
)

from kafka_rebalance.model.goals import Balance, RackAwareness
from kafka_rebalance.model.topology import Replicas
from kafka_rebalance.planning import PlanRequest


def fewest_pair_squares(lists: Iterable[Replicas]) -> int:
    """The minimum sum of squared (leader, second) counts for these leaders, by a flow over every partition."""
    rows = [row for row in lists if len(row) > 1]
    pairs = sorted({(row[0], b) for row in rows for b in row[1:]})
    node = {pair: len(rows) + i for i, pair in enumerate(pairs)}
    solver, sink = min_cost_flow.SimpleMinCostFlow(), len(rows) + len(pairs)
    for p, row in enumerate(rows):
        solver.set_node_supply(p, 1)
        for b in row[1:]:
            solver.add_arc_with_capacity_and_unit_cost(p, node[row[0], b], 1, 0)
    for pair in pairs:
        for k in range(sum(pair[0] == row[0] and pair[1] in row[1:] for row in rows)):
            solver.add_arc_with_capacity_and_unit_cost(node[pair], sink, 1, 2 * k + 1)
    solver.set_node_supply(sink, -len(rows))
    assert solver.solve() == solver.OPTIMAL
    return int(solver.optimal_cost())


def optimum(request: PlanRequest, *, fewest_bytes: bool = False) -> Metrics:
    """The exact lexicographic optimum of all six levels, for tiny clusters; with the fewest bytes after the moves."""
    model = cp_model.CpModel()
    racks, brokers = target_racks(request), sorted(request.targets)
    partitions = [p for p in request.partitions if p.has_leader]
    on = {(i, b): model.new_bool_var("") for i in range(len(partitions)) for b in brokers}
    lead = {(i, b): model.new_bool_var("") for i in range(len(partitions)) for b in brokers}
    second = {
        (i, a, b): model.new_bool_var("") for i in range(len(partitions)) for a in brokers for b in brokers if a != b
    }
    over = []
    for i, p in enumerate(partitions):
        rf = len(p.replicas)
        model.add(sum(on[i, b] for b in brokers) == rf)
        model.add(sum(lead[i, b] for b in brokers) == 1)
        for rack in {r for r in racks.values() if r is not None}:
            beyond = model.new_int_var(0, rf, "")
            model.add(beyond >= sum(on[i, b] for b in brokers if racks[b] == rack) - rack_cap(racks, rf))
            over.append(beyond)
        for a in brokers:
            model.add(lead[i, a] <= on[i, a])
            seconds = sum(second[i, a, b] for b in brokers if b != a)
            model.add(seconds == lead[i, a] if rf > 1 else seconds == 0)
            model.add(sum(second[i, b, a] for b in brokers if b != a) <= on[i, a])

    def square(terms: list[cp_model.IntVar]) -> cp_model.IntVar:
        count = model.new_int_var(0, len(terms), "")
        squared = model.new_int_var(0, len(terms) ** 2, "")
        model.add(count == sum(terms))
        model.add_multiplication_equality(squared, [count, count])
        return squared

    everyone = range(len(partitions))
    stays = [lead[i, p.replicas[0]] for i, p in enumerate(partitions) if p.replicas[0] in request.targets]
    levels = {
        "rack_violations": sum(over),
        "count_sumsq": sum(square([on[i, b] for i in everyone]) for b in brokers),
        "moves": sum(on[i, b] for i, p in enumerate(partitions) for b in brokers if b not in p.replicas),
        "leader_sumsq": sum(square([lead[i, b] for i in everyone]) for b in brokers),
        "pair_sumsq": sum(square([second[i, a, b] for i in everyone]) for a in brokers for b in brokers if a != b),
        "leader_changes": len(partitions) - sum(stays),
    }
    order = list(levels)
    if request.goals.rack_awareness is RackAwareness.PREFERRED:
        order[:2] = reversed(order[:2])
    found = one_after_the_other(model, [levels[name] for name in order[:3]])
    if fewest_bytes:
        placed = ((i, p, b) for i, p in enumerate(partitions) for b in brokers if b not in p.replicas)
        one_after_the_other(model, [sum(p.size_bytes * on[i, b] for i, p, b in placed)])
    found += one_after_the_other(model, [levels[name] for name in order[3:]])
    return Metrics(**dict(zip(order, found, strict=True)))


def optimum_of_bytes(request: PlanRequest) -> Metrics:
    """The optimum with the fewest bytes after the moves."""
    return optimum(request, fewest_bytes=True)


def fewest_moves(request: PlanRequest, counts_above_racks: bool = False) -> tuple[int, int, int]:
    """(rack violations, sum of squared counts, moves): the exact optimum by one flow over every partition and broker.

    Nothing is aggregated, so it is slow and plain: partition -> rack or lone broker -> broker -> sink, with a cost
    for a replica above the rack's cap, square costs for a broker's replicas, and a cost for every new replica.
    """
    racks = target_racks(request)
    partitions = [p for p in request.partitions if p.has_leader and not p.pinned]
    held = Counter(b for replicas in staying(request) for b in replicas)
    factor = {p.tp: request.replication_factor or len(p.replicas) for p in partitions}
    moved = sum(factor.values())
    total = moved + sum(held.values())
    move, step = 1, total + 1
    over = step * (2 * total + 1) ** 2 if not counts_above_racks else step
    square = step if not counts_above_racks else step * (total + 1)
    flow = min_cost_flow.SimpleMinCostFlow()
    broker_node = {b: i + 1 for i, b in enumerate(sorted(request.targets))}
    node = len(broker_node)
    for p in partitions:
        node = source = node + 1
        flow.set_node_supply(source, factor[p.tp])
        for rack in {racks[b] or b for b in broker_node}:
            members = [b for b in broker_node if (racks[b] or b) == rack]
            cap = rack_cap(racks, factor[p.tp]) if isinstance(rack, str) else 1
            node += 1
            flow.add_arc_with_capacity_and_unit_cost(source, node, cap, 0)
            flow.add_arc_with_capacity_and_unit_cost(source, node, len(members), over)
            for b in members:
                flow.add_arc_with_capacity_and_unit_cost(node, broker_node[b], 1, 0 if b in p.replicas else move)
    flow.set_node_supply(0, -moved)
    for b, n in broker_node.items():
        for k in range(held[b], held[b] + len(partitions)):
            flow.add_arc_with_capacity_and_unit_cost(n, 0, 1, (2 * k + 1) * square)
    assert flow.solve() == flow.OPTIMAL
    rest, moves = divmod(flow.optimal_cost(), step)
    high, low = divmod(rest, (2 * total + 1) ** 2 if not counts_above_racks else total + 1)
    constant = sum(n * n for b, n in held.items() if b in request.targets)
    return (low, high + constant, moves) if counts_above_racks else (high, low + constant, moves)


def one_after_the_other(model: cp_model.CpModel, levels: Iterable[Any]) -> tuple[int, ...]:
    """The minimum of each level (an expression, or a constant), given those before it."""
    found = []
    for level in levels:
        if isinstance(level, int):
            found.append(level)
            continue
        model.minimize(level)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        assert solver.solve(model) == cp_model.OPTIMAL
        found.append(round(solver.objective_value))
        model.add(level == found[-1])
    return tuple(found)


def best_within_budget(request: PlanRequest) -> Bought:
    """The exact lexicographic optimum within the request's budget, for tiny clusters."""
    model, goals = cp_model.CpModel(), request.goals
    racks, partitions = target_racks(request), [p for p in request.partitions if p.has_leader and not p.pinned]
    fixed = Counter(b for p in pinned_inputs(request) for b in p.replicas)
    on = {
        (i, b): model.new_bool_var("")
        for i, p in enumerate(partitions)
        for b in sorted(request.targets | set(p.replicas))
    }
    over = []
    for i, p in enumerate(partitions):
        model.add(sum(var for (j, _), var in on.items() if j == i) == len(p.replicas))
        for rack in {r for r in racks.values() if r is not None}:
            beyond = model.new_int_var(0, len(p.replicas), "")
            held = sum(on[i, b] for b in racks if racks[b] == rack)
            model.add(beyond >= held - rack_cap(racks, len(p.replicas)))
            over.append(beyond)
    per_topic = goals.balance is Balance.PER_TOPIC
    cells: dict[tuple[str, int], list[cp_model.IntVar]] = defaultdict(list)
    for (i, b), var in on.items():
        if b in request.targets:
            cells[partitions[i].tp.topic if per_topic else "", b].append(var)
    squares = []
    for (_, b), held in cells.items():
        stays = 0 if per_topic else fixed[b]
        count = model.new_int_var(0, len(held) + stays, "")
        squared = model.new_int_var(0, (len(held) + stays) ** 2, "")
        model.add(count == stays + sum(held))
        model.add_multiplication_equality(squared, [count, count])
        squares.append(squared)
    new = [(i, var) for (i, b), var in on.items() if b not in partitions[i].replicas]
    if goals.max_replica_moves is not None:
        model.add(sum(var for _, var in new) <= goals.max_replica_moves)
    if goals.max_data_to_move is not None:
        model.add(sum(partitions[i].size_bytes * var for i, var in new) <= goals.max_data_to_move)
    stuck = sum(var for (_, b), var in on.items() if b not in request.targets)
    order = [stuck, sum(over), sum(squares), sum(var for _, var in new)]
    if goals.rack_awareness is RackAwareness.PREFERRED:
        order[1:3] = order[2], order[1]
    first, second, third, fourth = one_after_the_other(model, order)
    return first, second, third, fourth


def best_by_topic(request: PlanRequest) -> tuple[int, ...]:
    """The exact lexicographic optimum of ``value_by_topic``, for tiny clusters."""
    model = cp_model.CpModel()
    racks, partitions = target_racks(request), [p for p in request.partitions if p.has_leader and not p.pinned]
    fixed = Counter(b for p in pinned_inputs(request) for b in p.replicas)
    on = {(i, b): model.new_bool_var("") for i in range(len(partitions)) for b in sorted(request.targets)}
    over = []
    for i, p in enumerate(partitions):
        model.add(sum(on[i, b] for b in racks) == len(p.replicas))
        for rack in {r for r in racks.values() if r is not None}:
            beyond = model.new_int_var(0, len(p.replicas), "")
            model.add(beyond >= sum(on[i, b] for b in racks if racks[b] == rack) - rack_cap(racks, len(p.replicas)))
            over.append(beyond)

    def square(terms: list[cp_model.IntVar], more: int = 0) -> cp_model.IntVar:
        most = len(terms) + more
        count = model.new_int_var(0, most, "")
        squared = model.new_int_var(0, most**2, "")
        model.add(count == more + sum(terms))
        model.add_multiplication_equality(squared, [count, count])
        return squared

    names = sorted({p.tp.topic for p in partitions})
    cells = {
        (t, b): [on[i, b] for i, p in enumerate(partitions) if p.tp.topic == t] for t in names for b in request.targets
    }
    totals = [square([on[i, b] for i in range(len(partitions))], fixed[b]) for b in sorted(request.targets)]
    moves = sum(var for (i, b), var in on.items() if b not in partitions[i].replicas)
    order = topic_levels(request, sum(over), sum(map(square, cells.values())), sum(totals), moves)
    return one_after_the_other(model, order)
