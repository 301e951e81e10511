"""What plans for KafkaConnections wait for, and what they keep from others meanwhile."""

from tests.broken_rules.broken_rule import BrokenRule

_MEMORY = "tests/unit/reconcile/runs/test_plan_memory.py"
_IN_A_PROCESS = "tests/unit/reconcile/test_engine_planning.py::TestInAProcess"
_FAILED = "tests/unit/reconcile/test_engine_failed_plans.py"
_QUEUE = "tests/unit/execution/test_queue_order.py::TestWhilePlansAreMade"
_DRAFTS = "tests/unit/reconcile/runs/test_draft_turns.py"
_SHARED = (
    "tests/unit/reconcile/test_engine_planning.py"
    "::test_a_plan_that_waits_for_one_in_another_cluster_keeps_nobody_waiting"
)

PLAN_MEMORY_RULES = (
    BrokenRule(
        "used-memory-counts-once",
        "What the process of a plan uses is not subtracted a second time from what is free.",
        "reconcile/runs/plan_memory.py",
        "(used_bytes(self.pid) if self.pid is not None else 0)",
        "0",
        (f"{_MEMORY}::test_what_a_process_uses_counts_once",),
    ),
    BrokenRule(
        "memory-of-a-process",
        "What the process of a plan uses is looked up while it runs.",
        "reconcile/runs/solving.py",
        "    grant.pid = process.pid",
        "    pass",
        ("tests/unit/reconcile/runs/test_solving.py::TestProcess::test_what_it_uses_counts_once",),
    ),
    BrokenRule(
        "memory-for-another-plan",
        "A plan leaves memory for a plan of another namespace, where there is enough for two.",
        "reconcile/runs/plan_memory.py",
        "min(int(_FREE_SHARE * left), beside_another)",
        "int(_FREE_SHARE * left)",
        (f"{_MEMORY}::test_what_a_process_uses_counts_once",),
    ),
    BrokenRule(
        "memory-is-looked-at-again",
        "A plan that waits for memory gets what is freed by others than plans.",
        "reconcile/runs/plan_memory.py",
        "async with asyncio.timeout(_LOOK_SECONDS):",
        "async with asyncio.timeout(None):",
        (f"{_MEMORY}::test_memory_that_others_free",),
    ),
    BrokenRule(
        "memory-in-turn",
        "A plan that does not wait takes no memory before those that wait.",
        "reconcile/runs/plan_memory.py",
        "if not wait and (self._asking[namespace] or self._looking.total()):",
        "if not wait and self._asking[namespace]:",
        (f"{_MEMORY}::test_first_come_first_served",),
    ),
    BrokenRule(
        "no-wait-in-the-turn-of-a-cluster",
        "A plan that waits for its namespace or for memory does not keep the others of its cluster waiting.",
        "reconcile/runs/plan_memory.py",
        "grant = self._grant or await self._take(wait=False)",
        "grant = self._grant or await self._take(wait=True)",
        (_SHARED, f"{_DRAFTS}::test_others_of_the_cluster_go_on_while_one_waits_for_memory"),
    ),
    BrokenRule(
        "process-without-the-turn-of-the-cluster",
        "A plan that is made in a process does not keep the others of its cluster waiting.",
        "reconcile/runs/plan_memory.py",
        "        await self._end_turn()\n",
        "",
        (f"{_DRAFTS}::test_others_of_the_cluster_go_on_while_a_process_plans",),
    ),
    BrokenRule(
        "turns-of-a-cluster-by-namespace",
        "Many plans of a namespace delay those of other namespaces in the cluster by one plan.",
        "reconcile/runs/draft_turns.py",
        "self._turns.of(memory.namespace)",
        "self._turns.of('')",
        (f"{_DRAFTS}::test_many_of_a_namespace_delay_others_by_one",),
    ),
    BrokenRule(
        "displaced-while-planning",
        "A plan that is being made does not keep its place from a rebalance with a higher priority.",
        "reconcile/runs/opening.py",
        "queue.place.yields and not terminating:",
        "False:",
        (f"{_IN_A_PROCESS}::test_a_higher_priority_does_not_wait_for_a_plan",),
    ),
    BrokenRule(
        "displaced-by-failing-plans",
        "A rebalance whose plans fail does not have the plan of another one given up again and again.",
        "execution/queue_order.py",
        "mine.failed and theirs.planning",
        "False",
        (
            f"{_FAILED}::test_a_plan_is_given_up_three_times",
            f"{_QUEUE}::test_one_that_could_not_be_planned_waits_for_it",
        ),
    ),
    BrokenRule(
        "one-failed-plan",
        "A plan that fails once, for a reason that passes, leaves a rebalance its priority.",
        "reconcile/state/memory.py",
        "self.failed_plans >= _OFTEN",
        "self.failed_plans",
        (f"{_FAILED}::test_a_failure_that_passes",),
    ),
    BrokenRule(
        "displaced-by-one-that-may-not-start",
        "A rebalance that may not start does not have the plan of another one given up again and again.",
        "reconcile/runs/opening.py",
        "self._lifecycle.note_attempt(rebalance, rebalance.desired.planning_hash)",
        "pass",
        (f"{_FAILED}::test_no_plan_is_given_up_for_one_that_may_not_start",),
    ),
    BrokenRule(
        "edited-after-a-failed-plan",
        "A rebalance whose plan has failed is planned at once if it is edited, before others of lower priority.",
        "reconcile/state/memory.py",
        "self.failed_spec == planning_hash and",
        "self.failed_spec and",
        (f"{_FAILED}::test_an_edit_of_its_spec_is_planned_at_once",),
    ),
    BrokenRule(
        "edited-while-planning",
        "A plan that is being made for an earlier spec is given up.",
        "reconcile/act/lifecycle.py",
        "memory.planned_spec != desired.planning_hash",
        "False",
        (f"{_IN_A_PROCESS}::test_an_edit_is_planned_at_once",),
    ),
    BrokenRule(
        "plan-given-up-in-mid-round",
        "A round does not open the plan of a resource that has left the engine, and does not end with its task.",
        "reconcile/act/run_records.py",
        "return None if given_up or task.cancelled() else task",
        "return task",
        ("tests/unit/reconcile/test_supervisor_left_while_planning.py::test_in_the_middle_of_a_round",),
    ),
    BrokenRule(
        "brokers-of-the-draft",
        "A plan that has waited is made with the brokers that are live then.",
        "reconcile/runs/plan_maker.py",
        "        info = await self._admin.describe_cluster()\n",
        "        info = self._info = getattr(self, '_info', None) or await self._admin.describe_cluster()\n",
        (f"{_IN_A_PROCESS}::test_the_brokers_are_those_of_its_beginning",),
    ),
)
