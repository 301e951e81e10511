"""Rules about the end of a deletion: when a rollback only cancels, what is let go, and who continues."""

from tests.broken_rules.broken_rule import BrokenRule

TEARDOWN_RULES = (
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
    BrokenRule(
        "let-go-with-a-new-heir",
        "A run is let go when the resource that names it has its finalizer, and its record is read.",
        "reconcile/successions.py",
        "not any(may_continue_soon(new, old) for new in rebalances)",
        "True",
        ("tests/unit/reconcile/test_engine_let_go.py::test_the_other_one_is_created_at_the_same_time",),
    ),
    BrokenRule(
        "unknown-size-cancels-nothing",
        "A rollback of unknown size cancels no copy that leads back.",
        "reconcile/decide/teardown.py",
        "    waits = unknown and at_rest(rebalance)",
        "    waits = unknown",
        ("tests/unit/reconcile/test_engine_max_data.py::test_a_topic_is_missing_after_a_restart",),
    ),
    BrokenRule(
        "unknown-size-gives-up-its-place",
        "A rollback of unknown size keeps its place in the queue from no other rebalance when it is at rest.",
        "reconcile/decide/teardown.py",
        "    waits = unknown and at_rest(rebalance)",
        "    waits = False",
        ("tests/unit/reconcile/test_engine_max_data.py::test_others_go_on_when_it_is_at_rest",),
    ),
    BrokenRule(
        "unknown-size-begins-nothing",
        "A rollback of unknown size starts no step if `rollback.maxData` limits it.",
        "reconcile/decide/step_blocks.py",
        "    _unmeasured,\n",
        "",
        ("tests/unit/reconcile/test_engine_max_data.py::test_it_is_not_reported_when_the_deletion_begins",),
    ),
)
