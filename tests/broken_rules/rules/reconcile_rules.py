"""Rules of the control loop: records before orders, approvals, rollbacks, throttles and owners."""

from tests.broken_rules.broken_rule import BrokenRule

RECONCILE_RULES = (
    BrokenRule(
        "origin-before-order",
        "Nothing is sent for a partition before its origin is on record.",
        "reconcile/act/origin_records.py",
        "alters={tp: to for tp, to in orders.alters.items() if tp in allowed},",
        "alters=dict(orders.alters),",
        ("tests/unit/reconcile/test_engine_origins.py::TestRecord::test_nothing_is_sent_without_it",),
    ),
    BrokenRule(
        "heir-waits",
        "A resource that takes a run over sends nothing before that run is closed.",
        "reconcile/rounds.py",
        "queue = behind(queue, self.rebalances[heirs[rebalance.uid]].name)",
        "queue = replace(queue)",
        (
            "tests/unit/reconcile/test_engine_takeovers.py::TestOthers::test_the_one_that_takes_over_waits_until_the_other_has_ended",
        ),
    ),
    BrokenRule(
        "drained-by-log-dirs",
        "A broker is not drained while its log dirs hold a topic that is hidden from us.",
        "reconcile/decide/drain_proof.py",
        "for broker in leaving for log_dir in answers.get(broker, ()) for tp in log_dir.replica_bytes}",
        "for broker in () for log_dir in answers.get(broker, ()) for tp in log_dir.replica_bytes}",
        ("tests/unit/reconcile/observe/test_permission_probe.py::TestHidden::test_a_broker_is_not_taken_for_empty",),
    ),
    BrokenRule(
        "throttle-before-copy",
        "No copy starts before its throttle is in place.",
        "reconcile/act/submitting.py",
        " and tp not in waiting\n",
        "\n",
        (
            "tests/unit/reconcile/act/test_submitting.py::TestCopies::test_a_copy_waits_until_each_of_its_replicas_is_throttled",
        ),
    ),
    BrokenRule(
        "ledger-before-write",
        "The original value of a throttle config is stored before it is overwritten.",
        "reconcile/throttle/throttle_keeper.py",
        "await self._cache.save(with_foreign(",
        "self._cache.strike(with_foreign(",
        (
            "tests/unit/reconcile/throttle/test_cluster_throttle.py::TestOthers::test_after_a_restart_the_same_is_held",
            "tests/property/test_throttle_keeper.py::TestThrottleKeeper::test_everything_ends_as_it_was",
        ),
    ),
    BrokenRule(
        "insufficient-disk",
        "A plan that cannot fit on the disks is refused before it starts.",
        "reconcile/decide/disk_capacity.py",
        "growth[broker] > max(free, 0)",
        "growth[broker] > 2 * max(free, 0)",
        ("tests/unit/reconcile/decide/test_disk_capacity.py::TestRule::test_a_byte_more",),
    ),
    BrokenRule(
        "finalizer-first",
        "Nothing is planned while the finalizer is not on the resource.",
        "reconcile/decide/replanning.py",
        "if not desired.has_finalizer or not record.was_read or",
        "if not record.was_read or",
        ("tests/unit/reconcile/decide/test_replanning.py::TestWantsPlan::test_not_without_our_finalizer",),
    ),
    BrokenRule(
        "approved-plan",
        "With the approval policy Manual only the plan whose hash is approved is carried out.",
        "reconcile/decide/step_blocks.py",
        "if approval.plan_hash == opened.plan.hash:",
        "if approval.plan_hash is not None:",
        (
            "tests/unit/reconcile/decide/test_step_blocks.py::TestEachCheck::test_approval_names_the_hash_and_takes_only_that",
        ),
    ),
    BrokenRule(
        "second-look",
        "An order that was chosen on an older reading is sent only if a second look confirms it.",
        "reconcile/decide/step_orders.py",
        "return tp not in before or after[tp] == before[tp]",
        "return tp not in before or tp in after",
        (
            "tests/unit/reconcile/decide/test_step_orders.py::TestUnchangedOrders::test_an_order_of_which_the_second_look_says_otherwise_is_not_sent",
        ),
    ),
    BrokenRule(
        "drift-budget",
        "A new plan is made if others made more moves void than approval.driftBudget allows.",
        "reconcile/decide/replanning.py",
        "100 * lost <= rebalance.desired.spec.approval.drift_budget * total",
        "lost <= total",
        ("tests/unit/reconcile/test_engine_states.py::test_walk",),
    ),
    BrokenRule(
        "recorded-start",
        "No order is sent before the start of the run is recorded.",
        "reconcile/rounds.py",
        "if named_by(meant) and not await self._lifecycle.record_start(rebalance):",
        "if named_by(meant) and await self._lifecycle.record_start(rebalance) is None:",
        ("tests/unit/reconcile/test_engine_unsent_runs.py::TestDeletion::test_nothing_is_sent_that_is_not_on_record",),
    ),
    BrokenRule(
        "rollback-max-data",
        "A deletion that has to move back more than rollback.maxData waits.",
        "reconcile/decide/teardown.py",
        "if most is not None and back > most else None",
        "if most is not None and back > 2 * most else None",
        ("tests/unit/reconcile/decide/test_teardown.py::TestBarriers::test_more_than_max_data_waits_for_a_word",),
    ),
    BrokenRule(
        "one-owner",
        "A cluster with an open run belongs to the owner on record, even if another connects first after a restart.",
        "reconcile/decide/cluster_ownership.py",
        "    if holder.named or work:",
        "    if holder.named:",
        (
            "tests/unit/reconcile/test_supervisor_owners.py::TestAnotherNamespace::test_a_server_that_claims_the_id_first_after_a_restart",
            "tests/unit/reconcile/test_supervisor_owners.py::TestBinding::test_an_upgrade_in_mid_run",
        ),
    ),
    BrokenRule(
        "same-cluster",
        "A server is taken for a cluster with work only if it shows a broker and a topic that are on record.",
        "reconcile/act/cluster_owners.py",
        "        if differs:",
        "        if False:",
        ("tests/unit/reconcile/test_supervisor_owners.py::TestSameNamespace::test_a_server_without_the_topics",),
    ),
    BrokenRule(
        "permission-lost",
        "A rebalance that may no longer use its connection starts no new step.",
        "reconcile/decide/step_blocks.py",
        "    _refused,\n",
        "",
        (
            "tests/unit/reconcile/test_supervisor_connections.py::TestPermission::test_permission_that_is_lost_in_mid_run",
        ),
    ),
)
