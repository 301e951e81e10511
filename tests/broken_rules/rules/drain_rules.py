"""Rules of decommissions: cordons, and brokers that stay empty."""

from tests.broken_rules.broken_rule import BrokenRule

DRAIN_RULES = (
    BrokenRule(
        "approved-cordon",
        "The hash of a plan, which an approval names, covers the brokers to empty, which are cordoned.",
        "model/plan.py",
        "if not self.decommission:",
        "if self is not None:",
        (
            "tests/unit/model/test_plan.py::TestHash::test_it_covers_the_brokers_to_empty",
            "tests/unit/reconcile/test_engine_cordons.py::test_no_broker_that_an_edit_adds_after_the_approval",
        ),
    ),
    BrokenRule(
        "cordon-of-an-edit",
        "A spec that was edited during a round cordons nothing before it has a plan.",
        "reconcile/act/cordoning.py",
        "if run.planning_hash != desired.planning_hash:",
        "if False:",
        ("tests/unit/reconcile/act/test_cordoning.py::test_not_by_a_spec_that_was_edited_in_this_round",),
    ),
    BrokenRule(
        "late-cordon",
        "A cordon stays on record while a call that sets it may still be carried out.",
        "reconcile/act/cordoning.py",
        "(done - late)",
        "done",
        (
            "tests/unit/reconcile/test_engine_cordons.py::test_a_call_without_an_answer_that_is_executed_late",
            "tests/unit/reconcile/test_engine_cordons.py::test_a_call_that_is_executed_late_after_an_edit",
        ),
    ),
    BrokenRule(
        "late-cordon-of-a-dead-broker",
        "No run ends while a call may still set a cordon on a dead broker.",
        "reconcile/act/closing.py",
        "late = any(now - at < CALL_SECONDS for broker, at in unanswered.items() if broker in left)",
        "late = False",
        ("tests/unit/reconcile/test_engine_cordons.py::test_a_call_without_an_answer_to_a_broker_that_dies",),
    ),
    BrokenRule(
        "cordon-of-the-dead",
        "The cordon of a dead broker is in the throttle ledger before its run ends.",
        "reconcile/act/closing.py",
        "await self._keep_cordons(_to_uncordon(rebalance))",
        "pass",
        (
            "tests/unit/reconcile/test_engine_cordons.py::test_it_is_in_the_ledger_before_the_run_ends",
            "tests/unit/reconcile/test_engine_cordons.py::test_after_an_undo",
        ),
    ),
    BrokenRule(
        "cordon-of-a-success",
        "A success leaves the cordons of brokers that are kept to the throttle ledger.",
        "reconcile/act/closing.py",
        "await self._keep_cordons(left)",
        "pass",
        ("tests/unit/reconcile/test_engine_cordons.py::test_an_edit_that_keeps_the_broker",),
    ),
    BrokenRule(
        "cordon-under-way",
        "After a restart, a call that cordons a broker may still be executed, even if the run has sent nothing else.",
        "reconcile/act/run_records.py",
        "if run.started:\n",
        "if run.started_at is not None:\n",
        ("tests/unit/reconcile/test_engine_cordons.py::test_a_call_that_was_under_way_when_the_operator_was_killed",),
    ),
    BrokenRule(
        "drained-stays-empty",
        "No plan that is older than the proof fills a broker that another rebalance empties or has drained.",
        "reconcile/decide/leaving_brokers.py",
        "return leaving.keys() - (drained - empty)",
        "return set()",
        (
            "tests/unit/reconcile/test_engine_leaving_brokers.py::test_an_older_plan_is_made_again_without_a_drained_broker",
            "tests/unit/reconcile/test_engine_leaving_brokers.py::test_an_older_plan_is_made_again_while_the_broker_is_drained",
        ),
    ),
    BrokenRule(
        "drained-no-more",
        "`Drained` is False before another rebalance moves replicas to the broker.",
        "reconcile/sending.py",
        "await self._drained.before_filling(running, meant, look.observation.cluster)",
        "False",
        ("tests/unit/reconcile/test_engine_leaving_brokers.py::test_what_fills_it_is_said_before_it_is_sent",),
    ),
    BrokenRule(
        "drained-and-late-calls",
        "No broker is proved empty while calls of others without an answer may fill it.",
        "reconcile/rounds.py",
        "self._drained.may_be_filled_late(rebalance, self.rebalances.values())",
        "False",
        ("tests/unit/reconcile/test_engine_leaving_brokers.py::test_a_call_that_fills_it_while_it_is_proved_empty",),
    ),
    BrokenRule(
        "drained-by-readings",
        "`Drained` becomes False if readings show replicas on the broker.",
        "reconcile/sending.py",
        "        await self._drained.look(cluster)\n",
        "",
        ("tests/unit/reconcile/test_engine_leaving_brokers.py::test_a_topic_that_was_created_on_the_broker",),
    ),
)
