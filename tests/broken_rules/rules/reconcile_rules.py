"""The rules of the project that ``python -m tests.broken_rules`` breaks, one at a time, and the tests that catch each.

``find`` is the text that holds the rule and occurs once in its file; with ``replacement`` in its place the code still
runs, and the rule no longer holds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """``file`` is a path inside the package; ``caught_by`` are tests of `make test`, each of which fails."""

    name: str
    rule: str
    file: str
    find: str
    replacement: str
    caught_by: tuple[str, ...]


RULES = (
    BrokenRule(
        "fair-counts",
        "The replica counts of the brokers are as even as the rack rule allows.",
        "planning/problem/balance.py",
        "sink, width, slope + 2 * instance.fixed_replicas[brokers][which])",
        "sink, width, 0 * slope)",
        (
            "tests/unit/planning/test_planner.py::TestBalance::test_replication_factors_may_differ",
            "tests/unit/planning/test_planner.py::TestBalance::test_brokers_far_from_the_average_are_fair_among_themselves",
        ),
    ),
    BrokenRule(
        "rack-cap",
        "A rack holds no more replicas of a partition than an even spread over the racks needs.",
        "planning/problem/instance.py",
        "rack_capacity = np.minimum(cap[:, None], group_size[None, :])",
        "rack_capacity = np.minimum(cap[:, None] + 1, group_size[None, :])",
        (
            "tests/unit/planning/test_planner.py::TestRackRule::test_more_replicas_than_racks",
            "tests/unit/planning/test_planner.py::TestRackRule::test_a_violation_in_the_input_is_repaired",
        ),
    ),
    BrokenRule(
        "certificate",
        "A plan is called optimal only if its moves equal a proven lower bound.",
        "planning/replicas/replica_sets.py",
        "ReplicaSets.with_bound(copies, bound)",
        "ReplicaSets.proved_fewest(copies)",
        ("tests/property/test_planning_core.py::TestFewestMoves::test_a_search_that_is_cut_short_tells_the_gap",),
    ),
    BrokenRule(
        "load-limit",
        "A plan that exceeds a capacity limit of goals.load is refused.",
        "planning/load/load_plan.py",
        "_check_limits(encoded, problem.goals, search, found)",
        "pass",
        ("tests/unit/planning/load/test_load_plan.py::test_a_capacity_limit_that_cannot_be_kept_is_refused",),
    ),
    BrokenRule(
        "load-band",
        "A broker above its band of a load goal gives away load until it is within.",
        "planning/load/load_state.py",
        "total += a.weight[r] * over * over",
        "total += 0 * a.weight[r] * over * over",
        ("tests/unit/planning/load/test_load_plan.py::test_a_large_partition_is_exchanged_for_a_small_one",),
    ),
    BrokenRule(
        "load-bound",
        "The lower bound of a plan by load is below the bytes of every plan that balances as well.",
        "planning/load/load_bound.py",
        "return math.ceil(least * (1 - 1e-9))",
        "return math.ceil(1.6 * least)",
        (
            "tests/property/test_planning_load.py::TestAgainstAllLists::test_excess_and_bytes",
            "tests/unit/planning/load/test_load_plan.py::test_a_large_partition_is_exchanged_for_a_small_one",
        ),
    ),
    BrokenRule(
        "even-leaders",
        "Preferred leaders are as even as the replica sets allow, also beside partitions that are not selected.",
        "planning/ordering/replica_order.py",
        "(slope + 2 * instance.fixed_leaders[which]) * w_leader)",
        "slope * w_leader)",
        ("tests/unit/planning/test_planner.py::TestSelection::test_leaders_are_even_with_those_of_pinned_partitions",),
    ),
    BrokenRule(
        "movement-budget",
        "A plan moves no more replicas than goals.maxReplicaMoves.",
        "planning/budget/movement_budget.py",
        "min(max(0, goals.max_replica_moves), most)",
        "min(max(0, goals.max_replica_moves) + 1, most)",
        ("tests/property/test_planning_budgets.py::TestPinned::test_moves_go_where_the_pinned_topic_is_not",),
    ),
    BrokenRule(
        "min-insync-replicas",
        "No step leaves fewer replicas in sync than min.insync.replicas.",
        "execution/steps.py",
        "in_sync = (present.isr | set(added)) - set(dropped)",
        "in_sync = present.isr | set(added)",
        (
            "tests/property/test_steps.py::TestAnyMove::test_replicas_and_in_sync_ones_never_fall_below_what_was_there",
            "tests/unit/execution/test_partition_status.py::TestAtRest::test_a_replication_factor_is_not_lowered_below_min_insync",
        ),
    ),
    BrokenRule(
        "in-flight-only-null",
        "A partition in flight is sent nothing but null.",
        "execution/partition_status.py",
        "    if state.in_flight:\n        return _judge_in_flight(",
        "    if state.wedged:\n        return _judge_in_flight(",
        (
            "tests/unit/execution/test_partition_status.py::TestInFlight::test_a_goal_that_differs_is_cancelled_first",
            "tests/unit/execution/test_partition_status.py::TestInFlight::test_going_back_cancels_what_is_in_flight",
        ),
    ),
    BrokenRule(
        "no-null-without-original",
        "A reassignment is cancelled only while one of the original replicas is in sync (KIP-236).",
        "execution/cancellation.py",
        "if not left:",
        "if not before:",
        ("tests/unit/execution/test_partition_status.py::TestInFlight::test_a_null_needs_an_original_in_sync",),
    ),
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
        "sent-or-not",
        "Changes that others made to a partition before its first call count as theirs.",
        "execution/first_call.py",
        "if state.replicas in {call, cancelled} or",
        "if state.replicas or",
        (
            "tests/unit/execution/test_first_call.py::test_what_the_partition_shows",
            "tests/unit/reconcile/test_engine_origins.py::TestFirstCall::test_what_others_moved_before_it_was_sent_is_theirs",
        ),
    ),
    BrokenRule(
        "no-null-below-min-insync",
        "A cancellation leaves min.insync.replicas in sync, or all that were if those are fewer.",
        "execution/cancellation.py",
        "if len(left) < min(min_insync, len(isr)):",
        "if len(left) < 1:",
        (
            "tests/unit/execution/test_partition_status.py::TestInFlight::test_a_null_leaves_min_insync_replicas_in_sync",
            "tests/unit/cli/commands/test_doctor_command.py::TestCancelling::test_nothing_is_brought_below_min_insync_replicas",
        ),
    ),
    BrokenRule(
        "parallel-partitions",
        "No more partitions are in flight than parallelPartitionCount (KIP-435).",
        "execution/schedule.py",
        "self.partitions >= self.caps.parallel_partitions:",
        "self.partitions > self.caps.parallel_partitions:",
        ("tests/unit/execution/test_schedule.py::TestLimits::test_never_more_than_p_partitions",),
    ),
    BrokenRule(
        "health-gate",
        "No new step starts while more partitions are under-replicated than maxUnhealthy.",
        "execution/health_gate.py",
        "if len(case.lacking) <= tolerated:",
        "if len(case.lacking) <= tolerated + 1:",
        ("tests/unit/execution/test_health_gate.py::TestUnderReplicated::test_more_than_max_unhealthy_close",),
    ),
    BrokenRule(
        "age-displaces-nobody",
        "A rebalance that runs is displaced by a higher priority, never by age alone.",
        "execution/queue_order.py",
        "return mine.priority > theirs.priority and self.effective_priority > holder.effective_priority",
        "return self.effective_priority > holder.effective_priority",
        ("tests/unit/execution/test_queue_order.py::TestPreemption::test_age_alone_displaces_nobody",),
    ),
    BrokenRule(
        "dead-original",
        "A rollback adds no replica on an original broker that is dead.",
        "execution/rollback.py",
        "gone = [b for b in origin if b not in alive and (b not in present or (above and b not in state.isr))]",
        "gone = [b for b in origin if b not in alive and above and b not in state.isr]",
        ("tests/unit/execution/test_rollback.py::TestRollbackTarget::test_a_dead_original_is_never_added_back",),
    ),
    BrokenRule(
        "lowest-rate-binds",
        "Of several rates for one side of a broker the lowest is in force.",
        "execution/reassignment_throttle.py",
        "claim, least = min(asked.items(),",
        "claim, least = max(asked.items(),",
        ("tests/unit/execution/test_reassignment_throttle.py::TestTable::test_the_lowest_claim_binds_and_is_named",),
    ),
    BrokenRule(
        "believed-at-second-reading",
        "A rate that somebody else set is believed only when it was read twice.",
        "execution/rate_state.py",
        "if state.doubt is None or state.doubt.value != value:",
        "if state.doubt is not None and state.doubt.value != value:",
        ("tests/unit/execution/test_rate_state.py::TestReadWhileClaimed::test_another_value_for_the_first_time",),
    ),
    BrokenRule(
        "planning-hash",
        "A change of spec.replicationFactor makes a new plan.",
        "api/v1alpha1.py",
        '"goals", "replication_factor", "assignment"',
        '"goals", "assignment"',
        ("tests/unit/api/test_v1alpha1.py::TestPlanningHash::test_another_plan",),
    ),
    BrokenRule(
        "transition-time",
        "lastTransitionTime of a condition changes only with its status.",
        "api/conditions.py",
        "before.last_transition_time if before and unchanged else now.replace(microsecond=0)",
        "now.replace(microsecond=0)",
        ("tests/unit/api/test_conditions.py::TestSetCondition::test_time_stays_while_the_status_does",),
    ),
    BrokenRule(
        "strict-types",
        "A spec is validated as strictly as the schema of the CRD: a string is no number.",
        "api/validation.py",
        "strict=True, by_alias=True",
        "strict=False, by_alias=True",
        ("tests/unit/api/test_validation.py::test_refuses_what_the_api_server_refuses",),
    ),
    BrokenRule(
        "fence",
        "Only the holder of the Lease sends orders to Kafka.",
        "kafka/fencing.py",
        "        self.check()\n        task = asyncio",
        "        task = asyncio",
        ("tests/unit/kafka/test_fencing.py::TestFence::test_orders_are_refused_without_the_lease",),
    ),
    BrokenRule(
        "redacted-password",
        "No error message contains the password.",
        "kafka/settings.py",
        "for secret in (self.password, self.client_key_pem):",
        "for secret in (self.client_key_pem,):",
        ("tests/unit/kafka/test_settings.py::TestSecrets::test_errors",),
    ),
    BrokenRule(
        "plaintext-password",
        "A password or token is sent without TLS only if the resource allows it explicitly.",
        "api/connection.py",
        "and sasl.mechanism.sends_secret and",
        "and False and",
        ("tests/unit/api/test_validation.py::test_refuses_what_the_api_server_refuses",),
    ),
    BrokenRule(
        "token-redirect",
        "The credentials of an OAuth client are sent to no other address than its token endpoint.",
        "kafka/oauth_tokens.py",
        '"allow_redirects": False',
        '"allow_redirects": True',
        ("tests/unit/kafka/test_oauth_tokens.py::TestFailures::test_refused",),
    ),
    BrokenRule(
        "missing-right",
        "A missing permission in Kafka is reported as such, and not as an unreachable cluster.",
        "kafka/confluent.py",
        "if error.code() in AUTHORIZATION:",
        "if error.code() in ():",
        ("tests/contract/test_reading.py::TestRefusals::test_rights",),
    ),
    BrokenRule(
        "hidden-topic",
        "A topic that Kafka hides from us is not taken for deleted.",
        "execution/partition_status.py",
        "if move.tp.topic in seen.forbidden:",
        "if ():",
        (
            "tests/unit/execution/test_partition_status.py::TestLeftAlone::test_a_topic_that_we_may_not_read_is_not_deleted",
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
        "index-last",
        "The index of a stored record is written after all its shards, so that a crash leaves the old content.",
        "kube/blobs.py",
        """\
        for shard, piece in zip(shards, pieces, strict=bool(shards)):
            await self._write_shard(shard, piece, {**labels, KIND_LABEL: f"{self._kind}-shard", _BLOB_LABEL: name})
        index = _index(name, labels, content, shards, attributes)
        if not shards:
            index["binaryData"] = {_PAYLOAD: _encode(payload)}
        await self._put(index, expected)
""",
        """\
        index = _index(name, labels, content, shards, attributes)
        if not shards:
            index["binaryData"] = {_PAYLOAD: _encode(payload)}
        await self._put(index, expected)
        for shard, piece in zip(shards, pieces, strict=bool(shards)):
            await self._write_shard(shard, piece, {**labels, KIND_LABEL: f"{self._kind}-shard", _BLOB_LABEL: name})
""",
        ("tests/kube/test_stores.py::TestKilledBetweenWrites::test_saving_a_plan",),
    ),
    BrokenRule(
        "content-hash",
        "A stored record whose content is not what was written is never used.",
        "kube/blobs.py",
        "if hashlib.sha256(payload).hexdigest() != expected:",
        "if not payload:",
        ("tests/unit/kube/test_blobs.py::test_content_that_was_not_written_is_never_read",),
    ),
    BrokenRule(
        "lease-margin",
        "The leader stops acting before its Lease ends.",
        "kube/lease.py",
        "self._valid_until = sent + self._duration - self._margin",
        "self._valid_until = sent + self._duration",
        ("tests/unit/kube/test_lease.py::TestHolding::test_counts_from_before_the_renewal_was_sent",),
    ),
    BrokenRule(
        "list-budget",
        "No append makes a list of throttled replicas longer than its budget.",
        "execution/list_budget.py",
        "return bytes_of(set(items) - self.counted) <= self.free",
        "return True",
        (
            "tests/property/test_list_budget.py::TestFitting::test_no_append_exceeds_the_budget",
            "tests/unit/execution/test_list_budget.py::TestWhatFits::test_a_thousand_partitions_of_four_digit_brokers",
            "tests/unit/reconcile/test_engine_throttled_lists.py::TestRebalance::test_a_large_topic_moves_completely",
        ),
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
        "disk-order",
        "Copies to nearly full brokers never wait for one another for ever.",
        "execution/schedule.py",
        "usage.reserved = reservations(",
        "_ = reservations(",
        ("tests/property/test_disk_room.py::TestAnyInterleaving::test_room_at_every_moment",),
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
        "live-sizes-win",
        "A size that a broker reports wins over that of the load model.",
        "reconcile/runs/known_loads.py",
        "new_copy = _new_copy(state, here)",
        "new_copy = None",
        ("tests/unit/reconcile/runs/test_known_loads.py::TestThePlan::test_counts_live_bytes",),
    ),
    BrokenRule(
        "stale-load-model",
        "A load model older than the allowed age is not used.",
        "model/load_artifact.py",
        "if age > max_age:",
        "if age > 2 * max_age:",
        ("tests/unit/model/test_load_artifact.py::TestFreshness::test_older_is_refused_with_the_numbers",),
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
        "leader-size",
        "The size of a partition is that of its leader, also while a larger replica exists.",
        "pipeline/partition_loads.py",
        "F.coalesce(of_leader, largest)",
        "largest",
        ("tests/pipeline/test_job.py::TestDirtySamples::test_sizes_are_of_each_replica",),
    ),
    BrokenRule(
        "another-epoch",
        "No rate is computed across a change of leader, which may have cut the log.",
        "pipeline/rate_windows.py",
        '(F.col("lead") - F.col("lead_0")).isin(0, _NEXT_EPOCH)',
        'F.col("lead").isNotNull()',
        ("tests/pipeline/test_job.py::TestDirtySamples::test_give_the_numbers_worked_out_by_hand",),
    ),
    BrokenRule(
        "deleted-between-answers",
        "The growth of a log is not what came in if a segment was deleted between the answers of the sample before.",
        "pipeline/rate_windows.py",
        '(F.coalesce("start_00", "start_0") == F.col("start_0"))',
        "F.lit(True)",
        ("tests/pipeline/test_job.py::TestDirtySamples::test_give_the_numbers_worked_out_by_hand",),
    ),
    BrokenRule(
        "all-groups",
        "Bytes out are not computed from some of the consumer groups as if they were all.",
        "pipeline/sampler.py",
        "if found.errors:",
        "if not found and found.errors:",
        ("tests/unit/pipeline/test_sampler.py::TestCommits::test_a_group_that_cannot_be_read_leaves_none",),
    ),
    BrokenRule(
        "sent-by-leaders",
        "What followers sent to consumers is not divided among the partitions of leaders.",
        "pipeline/metric_windows.py",
        "_PLACED = 0.99",
        "_PLACED = 0.0",
        ("tests/pipeline/test_job.py::TestDirtySamples::test_bytes_out_are_what_groups_read",),
    ),
    BrokenRule(
        "prometheus-redirects",
        "The credentials for Prometheus are sent to no other address than the one that was named.",
        "pipeline/prometheus.py",
        '"allow_redirects": False',
        '"allow_redirects": True',
        ("tests/unit/pipeline/test_prometheus.py::TestQuery::test_credentials_do_not_follow_redirects",),
    ),
    BrokenRule(
        "stored-windows",
        "Stored windows are used only if no other sample of their hour is there.",
        "pipeline/coverage.py",
        " and _has_all(hour, there.manifests)",
        "",
        ("tests/unit/pipeline/test_coverage.py::TestCoverage::test_a_late_sample_makes_its_hour_open",),
    ),
    BrokenRule(
        "future-samples",
        "A sample from the future does not end the window of a load model.",
        "pipeline/sample_manifests.py",
        "past = [name for name in names if _stamp(name) <= latest]",
        "past = names",
        ("tests/unit/pipeline/test_sample_manifests.py::TestReading::test_a_batch_from_the_future_is_not_the_newest",),
    ),
    BrokenRule(
        "sample-hash",
        "A file of samples is used only if its bytes are those that were written.",
        "pipeline/sample_manifests.py",
        "if digest == manifest.sha256:",
        "if digest is not None:",
        (
            "tests/unit/pipeline/test_sample_manifests.py::TestReading::test_damaged_and_expired_files_cost_only_themselves",
        ),
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
            "tests/unit/reconcile/test_supervisor_owners.py::TestKafkaConnection::test_permission_that_is_lost_in_mid_run",
        ),
    ),
    BrokenRule(
        "released-lease",
        "An operator that stops gives up the Lease, so that the standby leads at once.",
        "app/process.py",
        "        await parts.lease.release()\n",
        "",
        ("e2e/test_two_operators.py::TestTwo::test_one_acts_and_hands_over",),
    ),
)
"""In the order of the layers."""
