"""Rules of plans: counts, racks, loads, budgets and their proofs."""

from tests.broken_rules.broken_rule import BrokenRule

PLANNING_RULES = (
    BrokenRule(
        "fair-counts",
        "The replica counts of the brokers are as even as the rack rule allows.",
        "planning/problem/balance.py",
        "sink, width, slope + 2 * instance.fixed_replicas[brokers][which])",
        "sink, width, 0 * slope)",
        (
            "tests/unit/planning/test_planner.py::TestBalance::test_replication_factors_may_differ",
            "tests/unit/planning/test_planner.py::TestBalance::test_brokers_far_from_the_average_are_fair_among_themselves",
        ),
    ),
    BrokenRule(
        "rack-cap",
        "A rack holds no more replicas of a partition than an even spread over the racks needs.",
        "planning/problem/instance.py",
        "rack_capacity = np.minimum(cap[:, None], group_size[None, :])",
        "rack_capacity = np.minimum(cap[:, None] + 1, group_size[None, :])",
        (
            "tests/unit/planning/test_planner.py::TestRackRule::test_more_replicas_than_racks",
            "tests/unit/planning/test_planner.py::TestRackRule::test_a_violation_in_the_input_is_repaired",
        ),
    ),
    BrokenRule(
        "certificate",
        "A plan is called optimal only if its moves equal a proven lower bound.",
        "planning/replicas/replica_sets.py",
        "ReplicaSets.with_bound(copies, bound)",
        "ReplicaSets.proved_fewest(copies)",
        ("tests/property/test_planning_core.py::TestFewestMoves::test_a_search_that_is_cut_short_tells_the_gap",),
    ),
    BrokenRule(
        "load-limit",
        "A plan that exceeds a capacity limit of goals.load is refused.",
        "planning/load/load_plan.py",
        "_check_limits(encoded, problem.goals, search, found)",
        "pass",
        ("tests/unit/planning/load/test_load_plan.py::test_a_capacity_limit_that_cannot_be_kept_is_refused",),
    ),
    BrokenRule(
        "load-band",
        "A broker above its band of a load goal gives away load until it is within.",
        "planning/load/load_state.py",
        "total += a.weight[r] * over * over",
        "total += 0 * a.weight[r] * over * over",
        ("tests/unit/planning/load/test_load_plan.py::test_a_large_partition_is_exchanged_for_a_small_one",),
    ),
    BrokenRule(
        "load-bound",
        "The lower bound of a plan by load is below the bytes of every plan that balances as well.",
        "planning/load/load_bound.py",
        "return math.ceil(least * (1 - 1e-9))",
        "return math.ceil(1.6 * least)",
        (
            "tests/property/test_planning_load.py::TestAgainstAllLists::test_excess_and_bytes",
            "tests/unit/planning/load/test_load_plan.py::test_a_large_partition_is_exchanged_for_a_small_one",
        ),
    ),
    BrokenRule(
        "even-leaders",
        "Preferred leaders are as even as the replica sets allow, also beside partitions that are not selected.",
        "planning/ordering/replica_order.py",
        "(slope + 2 * instance.fixed_leaders[which]) * w_leader)",
        "slope * w_leader)",
        ("tests/unit/planning/test_planner.py::TestSelection::test_leaders_are_even_with_those_of_pinned_partitions",),
    ),
    BrokenRule(
        "movement-budget",
        "A plan moves no more replicas than goals.maxReplicaMoves.",
        "planning/budget/movement_budget.py",
        "min(max(0, goals.max_replica_moves), most)",
        "min(max(0, goals.max_replica_moves) + 1, most)",
        ("tests/property/test_planning_budgets.py::TestPinned::test_moves_go_where_the_pinned_topic_is_not",),
    ),
)
