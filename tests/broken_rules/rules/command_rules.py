"""Rules of the commands that change resources."""

from tests.broken_rules.broken_rule import BrokenRule

COMMAND_RULES = (
    BrokenRule(
        "undo-present-spec",
        "undo is refused where the spec was changed after the success.",
        "cli/commands/undo_command.py",
        "if run.planning_hash != planning_hash(rebalance.spec):",
        "if run.planning_hash is None:",
        ("tests/unit/cli/commands/test_undo_command.py::TestRefusals::test_refused",),
    ),
    BrokenRule(
        "approval-of-what-was-seen",
        "`approve` approves no plan that was made after the one that it has shown.",
        "cli/commands/approve_command.py",
        "            approvable(parse_rebalance(body), plan.hash)\n",
        "",
        (
            "tests/unit/cli/commands/test_approve_command.py::TestRefused::test_a_plan_that_changed_while_somebody_read_it",
        ),
    ),
    BrokenRule(
        "deletion-of-what-was-seen",
        "`cancel` deletes no other resource that has got the same name.",
        "cli/commands/cancel_command.py",
        '            if body["metadata"]["uid"] != seen.metadata.uid:',
        "            if False:",
        ("tests/unit/cli/commands/test_cancel_command.py::TestDoesNotDelete::test_another_one_of_that_name",),
    ),
    BrokenRule(
        "rates-before-the-end",
        "Rates are shown as measured after a run only from samples that are all later than its end.",
        "cli/tables/measured_rates.py",
        "model.window_start < run.closed_at",
        "model.measured_at is None",
        ("tests/unit/cli/commands/test_status_command_load_model.py::TestRefused::test_a_model_of_another_time",),
    ),
    BrokenRule(
        "limits-after-a-kill",
        "A KafkaReassignmentThrottle in the file applies, even if a killed run has started to delete it.",
        "app/local_run.py",
        '            elif "deletionTimestamp" in metadata:',
        "            elif False:",
        (
            "tests/unit/app/test_local_run.py::TestKilledAtTheEnd::test_the_next_run_has_the_rates_of_the_file",
            "tests/unit/app/test_local_run.py::TestKilledAtTheEnd::test_freeze_in_the_file_counts",
        ),
    ),
)
