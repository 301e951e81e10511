"""Rules for answers that are older than the last call, and for calls that Kafka executes late."""

from tests.broken_rules.broken_rule import BrokenRule

OLD_ANSWER_RULES = (
    BrokenRule(
        "late-call-of-the-run-before",
        "No rebalance starts while a call of one that wants the same partitions may still be executed.",
        "execution/queue_order.py",
        "if not o.claimant.at_rest or o.claimant.unanswered]",
        "if not o.claimant.at_rest]",
        ("tests/unit/reconcile/test_engine_late_calls.py::test_a_success_of_a_rebalance_with_a_higher_priority",),
    ),
    BrokenRule(
        "late-call-of-a-broker-that-hangs",
        "No run ends while a broker that hangs may have a call of it, up to a minute after the call.",
        "reconcile/decide/arrival_proof.py",
        "return now - memory.failed_at < HUNG_SECONDS and not memory.called.issubset(live)",
        "return False",
        ("tests/unit/reconcile/test_engine_late_calls.py::TestBrokerThatHangs::test_a_deletion_waits_for_it",),
    ),
    BrokenRule(
        "old-answer-forward",
        "Outdated metadata of a broker that was paused does not end a run that has sent no call.",
        "reconcile/decide/arrival_proof.py",
        "SECOND_READING_SECONDS if unproved else 0.0",
        "0.0",
        ("tests/unit/reconcile/test_engine_old_answers.py::TestForward::test_back_to_where_the_partitions_were",),
    ),
    BrokenRule(
        "old-answer-drifted",
        "One answer that shows a partition as changed by another tool ends no run and no rollback.",
        "reconcile/decide/arrival_proof.py",
        "status.reason in _CHANGED_BY_OTHERS",
        "False",
        (
            "tests/unit/reconcile/test_engine_old_answers.py::TestForward::test_as_if_another_tool_had_changed_the_partition",
            "tests/unit/reconcile/test_engine_old_answers.py::TestBack::test_deletion_as_if_another_tool_had_changed_a_partition",
        ),
    ),
    BrokenRule(
        "old-answer-origins",
        "One answer that shows a partition as moved by another tool takes no origin away when a run is planned again.",
        "reconcile/runs/plan_request.py",
        "if doubted := theirs - _elsewhere(sent, known):",
        "if doubted := frozenset[TopicPartition]():",
        ("tests/unit/reconcile/test_engine_old_answers.py::TestBack::test_to_the_origin_that_a_new_plan_keeps",),
    ),
    BrokenRule(
        "old-answer-plan",
        "A plan that moves nothing is made again if the rounds have read other lists or leaders.",
        "reconcile/runs/plan_maker.py",
        "refuse_outdated(selected, read, self._known())",
        "pass",
        ("tests/unit/reconcile/test_engine_old_answers.py::TestForward::test_a_plan_without_moves",),
    ),
    BrokenRule(
        "old-answer-back",
        "Outdated metadata does not end an undo or a deletion, because nothing can be moved back afterwards.",
        "reconcile/decide/arrival_proof.py",
        "CALL_SECONDS if wholly else SECOND_READING_SECONDS",
        "0.0",
        ("tests/unit/reconcile/test_engine_old_answers.py::TestBack::test_undo",),
    ),
    BrokenRule(
        "last-call-shown",
        "A partition is called again only after a reading that shows its last call.",
        "reconcile/act/submitting.py",
        "orders = orders_where(orders, lambda tp: self._last_calls.shown(tp, cluster))",
        "orders = orders_where(orders, lambda tp: self._last_calls.shown(tp, cluster) or True)",
        ("tests/unit/reconcile/test_engine_old_answers.py::TestNextCall::test_of_an_undo_in_small_steps",),
    ),
    BrokenRule(
        "contradicted-for-long",
        "Readings that contradict the last call of a partition are believed only after ten seconds of them.",
        "reconcile/act/last_calls.py",
        "first, latest = last.contradicted or (now, now)",
        "first, latest = (last.sent_at, now)",
        ("tests/unit/reconcile/act/test_last_calls.py::test_the_first_one_may_come_late",),
    ),
    BrokenRule(
        "end-beside-calls",
        "A run does not end in a round in which another rebalance has sent a call for one of its partitions.",
        "reconcile/rounds.py",
        "(arrived and not moved_since(rebalance, acting))",
        "arrived",
        (
            "tests/unit/reconcile/test_engine_unsent_runs.py::TestUndo::test_another_one_is_undone_while_the_success_is_proved",
        ),
    ),
    BrokenRule(
        "end-without-an-answer",
        "The stored end of a run counts when no engine has it any more, although in memory the run is open.",
        "reconcile/refused_resources.py",
        "if rebalance.record.open_run is not None and not (run is not None and run.open):",
        "if False:",
        (
            "tests/unit/reconcile/test_supervisor_outranking.py::TestOutranks::test_one_whose_end_was_recorded_without_an_answer",
        ),
    ),
)
