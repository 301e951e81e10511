"""Rules about the end of a deletion: when a rollback only cancels, what is let go, and who continues."""

from tests.broken_rules.broken_rule import BrokenRule

TEARDOWN_RULES = (
    BrokenRule(
        "left-in-place-is-to-be-moved",
        "A rollback that waits for a decision is taken over only by a plan that moves all of its partitions.",
        "reconcile/decide/teardown.py",
        "    if assessment.teardown.barrier is not None:  # it only reverts",
        "    if False:  # it only reverts",
        (
            "tests/unit/reconcile/decide/test_teardown.py::TestSuccessors::test_what_a_rollback_that_may_not_go_on_leaves_in_place_has_to_be_moved_too",
        ),
    ),
    BrokenRule(
        "time-for-cancelling",
        "The time for cancelling begins when the operator sees that `rollback.timeout` is over.",
        "reconcile/decide/teardown.py",
        "return not connected or (memory.timed_out_at is not None and memory.timed_out_at < cancelling_since)",
        "return True",
        ("tests/unit/reconcile/test_engine_cut_short.py::test_the_operator_was_down_at_the_timeout",),
    ),
    BrokenRule(
        "time-for-cancelling-in-a-namespace",
        "The time for cancelling begins when the operator sees that the namespace is being deleted.",
        "reconcile/decide/teardown.py",
        "if memory.terminating and memory.terminating_checked_at < cancelling_since:",
        "if memory.terminating:",
        ("tests/unit/reconcile/test_engine_cut_short.py::test_its_namespace_is_deleted_too",),
    ),
    BrokenRule(
        "let-go-with-an-heir",
        "A run is let go when it is known who continues with its origins.",
        "reconcile/act/lifecycle.py",
        "            if self._may_have_heir(rebalance):",
        "            if False:",
        ("tests/unit/reconcile/test_engine_let_go.py::test_it_names_the_run",),
    ),
)
