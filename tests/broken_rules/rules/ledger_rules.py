"""Rules for the throttle ledger, and for what needs it."""

from tests.broken_rules.broken_rule import BrokenRule

LEDGER_RULES = (
    BrokenRule(
        "ledger-before-a-run",
        "No run begins before the throttle ledger is stored.",
        "reconcile/throttle/cluster_throttle.py",
        "if self.problem is not None:\n            raise",
        "if self.problem is None and self.problem is not None:\n            raise",
        ("tests/unit/reconcile/test_engine_first_ledger.py::test_the_first_one_is_refused",),
    ),
    BrokenRule(
        "ledger-before-a-start",
        "A run that is open sends its first call only while the throttle ledger is stored.",
        "reconcile/throttle/cluster_throttle.py",
        "return self.problem is None or (run is not None and run.started_at is not None)",
        "return self.problem is None or run is not None",
        ("tests/unit/reconcile/test_engine_first_ledger.py::test_deleted_and_refused_before_the_first_step",),
    ),
    BrokenRule(
        "ledger-before-a-plan",
        "No plan is made while the throttle ledger is not stored.",
        "reconcile/runs/opening.py",
        "                self._refuse_start()\n            queue",
        "                pass\n            queue",
        ("tests/unit/reconcile/test_engine_first_ledger.py::test_the_first_one_is_refused",),
    ),
    BrokenRule(
        "ledger-before-a-cordon",
        "A run that may not start without the throttle ledger cordons no broker.",
        "reconcile/sending.py",
        "served, may_start=may_start)",
        "served)",
        ("tests/unit/reconcile/test_engine_first_ledger.py::test_no_broker_is_cordoned_before_the_run_may_start",),
    ),
    BrokenRule(
        "struck-entries-are-stored",
        "Entries that were taken out of a list are struck off the stored ledger too.",
        "reconcile/throttle/ledger_cache.py",
        "self._ledger, self._in_doubt = ledger, True",
        "self._ledger = ledger",
        (
            "tests/unit/reconcile/throttle/test_throttle_keeper_struck_entries.py::TestEntriesTakenOut::test_what_others_add_later_is_theirs",
        ),
    ),
)
