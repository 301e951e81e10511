"""Rules for KafkaConnections that were deleted and created again."""

from tests.broken_rules.broken_rule import BrokenRule

FORMER_CONNECTION_RULES = (
    BrokenRule(
        "former-settings",
        "The settings of a former KafkaConnection take no cluster for the one that was created again.",
        "reconcile/claim_checks.py",
        "if uids_of(connection) != before:",
        "if False:",
        ("tests/unit/reconcile/test_supervisor_created_again.py::test_the_former_settings_take_nothing",),
    ),
    BrokenRule(
        "former-client",
        "A client with the settings of a former KafkaConnection is not used for the one that was created again.",
        "reconcile/engines.py",
        "(running.owner, running.uid) != (owner, uid)",
        "running.owner != owner",
        ("tests/unit/reconcile/test_supervisor_created_again.py::test_the_former_client_is_used_no_more",),
    ),
    BrokenRule(
        "former-client-on-record",
        "A client with the settings on record is that of the KafkaConnection that had them, not of one created again.",
        "reconcile/claim_checks.py",
        "(connection.last.uid or None) if connection.kafka is None else exists",
        "exists",
        (
            "tests/unit/reconcile/test_supervisor_created_again.py::TestCreatedAgainUnreadable::test_its_own_settings_replace_the_client",
            "tests/unit/reconcile/test_supervisor_created_again.py::TestCreatedAgainUnreadable::test_it_can_be_read_while_the_other_server_is_asked",
        ),
    ),
    BrokenRule(
        "former-uid-on-record",
        "Settings on record that end work stay on record as those of the KafkaConnection that had them.",
        "reconcile/claim_checks.py",
        "edited=True, uid=connection.last.uid)",
        "edited=True, uid=standing.uid)",
        (
            "tests/unit/reconcile/test_supervisor_created_again.py::TestCreatedAgainUnreadable::test_its_own_settings_replace_the_client",
            "tests/unit/reconcile/test_supervisor_created_again.py::TestCreatedAgainUnreadable::test_the_settings_on_record_take_nothing_for_it",
        ),
    ),
    BrokenRule(
        "former-settings-forgotten",
        "Once the settings of a KafkaConnection have led to its cluster, former ones end no work there.",
        "reconcile/claim_checks.py",
        "if own is not None and connection.unfinished == cluster_id:",
        "if False:",
        (
            "tests/unit/reconcile/test_supervisor_created_again.py::TestDeletedAgain::test_after_it_was_created_with_another_address",
            "tests/unit/reconcile/test_supervisor_created_again.py::TestDeletedAgain::test_after_it_could_not_be_read",
        ),
    ),
)
