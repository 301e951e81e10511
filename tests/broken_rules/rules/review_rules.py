"""Rules that prevent the findings of the first safety review, as far as no other list has them."""

from tests.broken_rules.broken_rule import BrokenRule

REVIEW_RULES = (
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
    BrokenRule(
        "unread-connection-keeps-rates",
        "While a KafkaConnection cannot be read, the rates for reassignments of others stay.",
        "reconcile/throttle_placing.py",
        " and not isinstance(why, PermissionUnknown)\n",
        "\n",
        ("tests/unit/reconcile/test_supervisor_foreign_throttle.py::TestKept::test_its_connection_cannot_be_read",),
    ),
    BrokenRule(
        "given-up-place-on-record",
        "It is on record that a run lets others go first, before another one takes its place in the queue.",
        "reconcile/act/run_records.py",
        "            await self._save(rebalance, replace(before, place_given_up=True))",
        "            pass",
        (
            "tests/unit/reconcile/test_engine_given_up_places.py::test_the_copies_of_one_that_goes_on_are_its_own",
            "tests/unit/reconcile/act/test_lifecycle_places.py::test_a_place_that_is_given_up_is_recorded",
        ),
    ),
    BrokenRule(
        "given-up-place-first",
        "No other run gets the place before that is recorded.",
        "reconcile/decide/queue_places.py",
        "(late_call_possible(rebalance, now) or _unrecorded(rebalance))",
        "late_call_possible(rebalance, now)",
        (
            "tests/unit/reconcile/test_engine_given_up_places.py::test_one_that_waits_for_its_new_plan",
            "tests/unit/reconcile/decide/test_queue_places.py::TestPlaces::test_others_wait_until_it_is_recorded_that_the_place_is_given_up",
        ),
    ),
    BrokenRule(
        "given-up-place-of-a-superseded-run",
        "A run that waits for its new plan lets others go first, although nothing is left of its old plan.",
        "reconcile/decide/queue_places.py",
        "    ends = assessment.finished and assessment.replanning is None\n",
        "    ends = assessment.finished\n",
        (
            "tests/unit/reconcile/decide/test_given_up_places.py::TestRecord::test_a_superseded_one_that_waits_for_its_new_plan",
        ),
    ),
    BrokenRule(
        "given-up-place-by-two-readings",
        "Everything is read again before it is recorded that a run lets others go first.",
        "reconcile/rounds.py",
        " or r.memory.resting_since is not None for r in running",
        " for r in running",
        (
            "tests/unit/reconcile/test_engine_given_up_places.py::test_an_outdated_reading_does_not_show_that_it_is_at_rest",
        ),
    ),
    BrokenRule(
        "given-up-place-leaves-copies",
        "A run that lets others go first cancels nothing that is in flight.",
        "reconcile/decide/given_up_places.py",
        "(inputs.place_given_up and ends_without_us(",
        "(False and ends_without_us(",
        (
            "tests/unit/reconcile/test_engine_given_up_places.py::test_one_that_goes_on_before_the_other_resource_joins",
            "tests/unit/reconcile/decide/test_given_up_places.py::TestLeft::test_a_copy",
        ),
    ),
    BrokenRule(
        "given-up-place-reverts-nothing",
        "A run that lets others go first has nothing to revert.",
        "reconcile/decide/given_up_places.py",
        "    if inputs.place_given_up and inputs.direction is Direction.REVERT and",
        "    if False and",
        (
            "tests/unit/reconcile/test_engine_given_up_places.py::test_replicas_above_the_replication_factor_are_left_to_the_other_run",
            "tests/unit/reconcile/decide/test_given_up_places.py::TestLeft::test_there_is_nothing_to_revert",
        ),
    ),
    BrokenRule(
        "given-up-place-claims-what-it-left",
        "A rollback that waits for a decision comes after those that move its partitions meanwhile.",
        "reconcile/decide/queue_places.py",
        "left_alone(rebalance, for_good=True)",
        "left_alone(rebalance)",
        (
            "tests/unit/reconcile/decide/test_queue_places.py::TestPlaces::test_what_is_left_in_place_for_now_is_claimed",
        ),
    ),
    BrokenRule(
        "given-up-place-pauses-all",
        "A run that lets others go first drops no replica during a pause.",
        "reconcile/decide/judging.py",
        "if (inputs.rests or inputs.place_given_up) and",
        "if inputs.rests and",
        (
            "tests/unit/reconcile/decide/test_given_up_places.py::TestLeft::test_during_a_pause_also_a_replica_above_the_replication_factor",
        ),
    ),
    BrokenRule(
        "given-up-place-stays-left",
        "What was in flight when a run had its place again is left until it is at rest.",
        "reconcile/decide/judging.py",
        "        left_in_motion=left_to_others(rebalance, replace(seen, restarting=restarting)),\n",
        "",
        (
            "tests/unit/reconcile/test_engine_given_up_places.py::test_one_that_goes_on_before_the_other_resource_joins",
            "tests/unit/reconcile/decide/test_given_up_places.py::TestLeft::test_until_it_is_at_rest_when_the_run_has_sent_something",
        ),
    ),
    BrokenRule(
        "given-up-place-taken-again",
        "It is on record that a run goes on, before it sends something again.",
        "reconcile/act/run_records.py",
        "before.started_at is not None and not before.place_given_up)",
        "before.started_at is not None)",
        (
            "tests/unit/reconcile/test_engine_given_up_places.py::test_the_copies_of_one_that_goes_on_are_its_own",
            "tests/unit/reconcile/act/test_lifecycle_places.py::test_it_is_recorded_that_it_goes_on_before_its_next_call",
        ),
    ),
    BrokenRule(
        "given-up-place-of-an-undo",
        "A run that is opened again lets others go first.",
        "reconcile/act/lifecycle.py",
        "outcome=None, undo=True, place_given_up=True)",
        "outcome=None, undo=True)",
        ("tests/unit/reconcile/test_engine_given_up_places.py::test_an_undo_waits_for_its_place",),
    ),
    BrokenRule(
        "given-up-place-after-a-rest",
        "A run whose rest ends lets others go first.",
        "reconcile/act/run_records.py",
        "replace(before, rested=False, place_given_up=True)",
        "replace(before, rested=False)",
        ("tests/unit/reconcile/act/test_lifecycle_places.py::test_after_a_rest_it_lets_others_go_first",),
    ),
    BrokenRule(
        "given-up-place-holds-nothing",
        "A run that lets others go first does not hold its place after a start.",
        "reconcile/decide/queue_places.py",
        "    holds = moving and not gives_up_place and not rebalance.place_given_up\n",
        "    holds = moving and not gives_up_place\n",
        (
            "tests/unit/reconcile/decide/test_queue_places.py::TestPlaces::test_one_that_has_given_up_its_place_waits_after_a_start",
        ),
    ),
    BrokenRule(
        "given-up-place-at-rest",
        "A run that lets others go first is at rest, whatever moves its partitions.",
        "reconcile/decide/direction.py",
        "(run.started_at is None or run.place_given_up)",
        "run.started_at is None",
        ("tests/unit/reconcile/decide/test_given_up_places.py::TestLeft::test_it_is_at_rest_whatever_moves",),
    ),
    BrokenRule(
        "given-up-place-keeps-throttle",
        "What a run leaves to others in flight stays throttled.",
        "reconcile/decide/throttle_claims.py",
        "            left = open_to_others(other)\n",
        "            left = frozenset()\n",
        ("tests/unit/reconcile/test_engine_given_up_places.py::test_one_that_goes_on_before_the_other_resource_joins",),
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
