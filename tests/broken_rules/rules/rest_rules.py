"""What a run leaves to others while its namespace is not permitted, and what it takes over afterwards."""

from tests.broken_rules.broken_rule import BrokenRule

REST_RULES = (
    BrokenRule(
        "undo-rests",
        "An undo that may start no step moves no leader.",
        "execution/partition_status.py",
        "direction is not Direction.FORWARD and same_brokers and not _may_keep_order(move, state, direction)",
        "direction is not Direction.FORWARD and same_brokers",
        ("tests/unit/reconcile/test_supervisor_undo_permission.py::TestRefused::test_an_undo_under_way_rests",),
    ),
    BrokenRule(
        "rested-claims-nothing",
        "A run that rests because its connection is refused claims nothing that moves.",
        "reconcile/state/rebalance.py",
        "return _NONE if self.rests else self.record.origins",
        "return self.record.origins",
        (
            "tests/unit/reconcile/test_supervisor_rest.py::test_a_deletion_leaves_what_others_move_back",
            "tests/unit/reconcile/test_supervisor_rest.py::test_nothing_is_throttled_for_it",
            "tests/unit/reconcile/test_supervisor_rest.py::test_a_replication_factor_that_others_raise_stays",
        ),
    ),
    BrokenRule(
        "waiting-is-at-rest",
        "A partition that waits between two steps does not keep a run without permission from coming to rest.",
        "reconcile/decide/arrival_proof.py",
        "unknown or (status.started and state is not None and state.in_flight)",
        "unknown or status.started",
        (
            "tests/unit/reconcile/decide/test_arrival_proof.py::TestComingToRest::test_a_partition_between_two_steps_may_wait_for_ever",
        ),
    ),
    BrokenRule(
        "rest-is-not-taken-over",
        "A run at rest is not taken over before its rest has ended.",
        "reconcile/decide/teardown.py",
        "old.desired.deleting and not old.rests",
        "old.desired.deleting",
        ("tests/unit/reconcile/test_supervisor_rest.py::test_it_is_not_taken_over",),
    ),
    BrokenRule(
        "others-between-two-runs",
        "What is in flight when a taken-over run is planned again was begun by others, unless that run was let go.",
        "reconcile/runs/earlier_runs.py",
        "for tp in work.inherited.keys() - work.left:",
        "for tp in frozenset[TopicPartition]():",
        ("tests/unit/reconcile/test_engine_inherited_origins.py::test_in_flight_before_the_plan_of_the_new_one",),
    ),
    BrokenRule(
        "others-before-a-deletion",
        "What others move is not of a resource that has taken over and is deleted without a plan.",
        "reconcile/act/handed_over_runs.py",
        "rested=not inherited.left",
        "rested=False",
        ("tests/unit/reconcile/test_engine_inherited_origins.py::test_in_flight_before_the_plan_of_the_new_one",),
    ),
    BrokenRule(
        "rest-ends-without-theirs",
        "What others move when a rested run is permitted again is struck off its record before it sends anything.",
        "reconcile/decide/rests.py",
        "if state.in_flight or len(state.replicas) > max(_sizes(row, run)):",
        "if not state.replicas:",
        (
            "tests/unit/reconcile/test_supervisor_rest.py::test_what_others_move_back_stays_theirs_with_permission",
            "tests/unit/reconcile/test_supervisor_rest.py::test_a_replication_factor_that_others_raise_stays_with_permission",
        ),
    ),
    BrokenRule(
        "rest-ends-on-a-new-reading",
        "What others move is read anew when a rested run is permitted again.",
        "reconcile/act/rest_ends.py",
        "        self._observer.expire()\n",
        "",
        ("tests/unit/reconcile/act/test_rest_ends.py::test_everything_is_read_anew",),
    ),
    BrokenRule(
        "rest-ends-without-dead-brokers",
        "Log dirs of a broker that is down when a rested run is permitted again are struck off its record.",
        "reconcile/decide/rests.py",
        "if broker not in log_dirs.brokers or (",
        "if (",
        (
            "tests/unit/reconcile/decide/test_rests.py::TestMovedByOthers::test_the_log_dir_of_a_broker_that_is_down",
            "tests/unit/reconcile/test_supervisor_rest_log_dirs.py::test_a_broker_that_comes_back_after_the_end_of_the_rest",
        ),
    ),
    BrokenRule(
        "nothing-before-the-rest-ends",
        "A run that is permitted again takes no part in a round before the end of its rest is on record.",
        "reconcile/decide/rests.py",
        "not rebalance.memory.blocked(now) and not rebalance.waits_at_rest",
        "not rebalance.memory.blocked(now)",
        ("tests/unit/reconcile/decide/test_rests.py::TestTakesPart::test_not_before_its_rest_has_ended",),
    ),
    BrokenRule(
        "heir-ends-after-the-other",
        "A run that is to take another one over does not end before it.",
        "reconcile/rounds.py",
        "if rebalance.uid in self._heirs and rebalance.record.moves:",
        "if False:",
        ("tests/unit/reconcile/test_engine_takeovers.py::test_the_new_one_does_not_end_before_it_has_taken_over",),
    ),
)
