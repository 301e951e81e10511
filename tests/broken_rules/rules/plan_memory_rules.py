"""What memory plans for KafkaConnections leave to one another."""

from tests.broken_rules.broken_rule import BrokenRule

_MEMORY = "tests/unit/reconcile/runs/test_plan_memory.py"

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
)
