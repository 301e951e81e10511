"""Rules that prevent the findings of the first safety review, as far as no other list has them."""

from tests.broken_rules.broken_rule import BrokenRule

REVIEW_RULES = (
    BrokenRule(
        "unread-connection-keeps-rates",
        "While a KafkaConnection cannot be read, the rates for reassignments of others stay.",
        "reconcile/throttle_placing.py",
        " and not isinstance(why, PermissionUnknown)\n",
        "\n",
        ("tests/unit/reconcile/test_supervisor_foreign_throttle.py::TestKept::test_its_connection_cannot_be_read",),
    ),
    BrokenRule(
        "owner-in-place",
        "An inline connection gets no cluster that the resources of another namespace lead to.",
        "reconcile/decide/cluster_ownership.py",
        "    if holder.named or (work and not confirmed) or running:",
        "    if False:",
        (
            "tests/unit/reconcile/test_supervisor_owners.py::TestAnotherNamespace::test_a_server_that_claims_the_id",
            "tests/unit/reconcile/test_supervisor_owners.py::TestAnotherNamespace::test_right_credentials_are_no_permission",
        ),
    ),
    BrokenRule(
        "unreadable-topic",
        "A topic whose configs may not be described holds up only the partitions of that topic.",
        "reconcile/observe/min_insync_reader.py",
        "for topic in found.errors:",
        "for topic in found.or_raise().errors:",
        (
            "tests/unit/reconcile/observe/test_min_insync_reader.py::test_a_topic_that_may_not_be_described_holds_up_no_other_one",
        ),
    ),
    BrokenRule(
        "origin-at-the-first-call",
        "The origin of a partition is recorded at its first call, not when it is planned.",
        "reconcile/act/origin_records.py",
        "            rows = {**_in_flight(rebalance, cluster), **due}\n",
        "            moves = [m for m in rebalance.record.moves if m.tp not in rebalance.record.origins]\n"
        "            planned = {m.tp: Origin(m.tp, m.topic_id, m.planned_from, m.planned_from[0]) for m in moves}\n"
        "            rows = {**_in_flight(rebalance, cluster), **planned, **due}\n",
        (
            "tests/unit/reconcile/test_engine_origins.py::TestAfterTheFirstStep::test_a_deletion_leaves_what_was_never_touched",
        ),
    ),
    BrokenRule(
        "takes-over-what-it-moves",
        "A resource takes a rollback over only if its plan moves everything that the rollback would.",
        "reconcile/decide/teardown.py",
        "return bool(sets.moved_back(old)) and sets",
        "return bool(sets.moved_back(old)) or sets",
        (
            "tests/unit/reconcile/decide/test_teardown.py::TestSuccessors::test_one_whose_plan_leaves_a_partition_does_not",
        ),
    ),
    BrokenRule(
        "two-listeners",
        "Two listeners of a cluster are the same cluster, although their addresses differ.",
        "reconcile/act/claim_refusals.py",
        "differs = contradiction(binding, server.brokers, seen)",
        'differs = "" if server.servers & binding.servers else "elsewhere"',
        ("tests/unit/reconcile/test_supervisor_owners.py::TestSameNamespace::test_two_listeners",),
    ),
    BrokenRule(
        "drained-before-the-next-calls",
        "`Drained` is written before the next calls, which may put a replica on the broker.",
        "reconcile/rounds.py",
        "                await self._drained.report(rebalance, cluster)\n",
        "",
        ("tests/unit/reconcile/test_engine_drained.py::test_another_rebalance_moves_a_replica_there_after_the_proof",),
    ),
)
