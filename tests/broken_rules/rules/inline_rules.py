"""Limits of inline connections: what their servers may claim, and what a plan for them may take."""

from tests.broken_rules.broken_rule import BrokenRule

_LARGE = "tests/unit/kafka/isolated/test_reply_format.py::TestLargeClusters"
_PLANNER = "tests/unit/reconcile/runs/test_solving.py::TestProcess"
_MATCHING = "tests/unit/reconcile/state/test_inline_thread.py"

INLINE_RULES = (
    BrokenRule(
        "most-brokers",
        "An inline connection is refused if its servers claim more than 1,500 brokers.",
        "kafka/isolated/largest_cluster.py",
        "if len(answer.brokers) > _MOST_BROKERS:",
        "if False:",
        (f"{_LARGE}::test_are_refused", f"{_LARGE}::test_are_not_read_either"),
    ),
    BrokenRule(
        "longest-replica-list",
        "An inline connection is refused if its servers claim more than 100 replicas of a partition.",
        "kafka/isolated/largest_cluster.py",
        "if longest > _LONGEST_LIST:",
        "if False:",
        (f"{_LARGE}::test_are_refused", f"{_LARGE}::test_are_not_read_either"),
    ),
    BrokenRule(
        "answer-limits-checked",
        "The operator checks these limits itself: it does not trust the process of the client.",
        "kafka/isolated/reply_format.py",
        "        check_size(part)\n        check_names",
        "        check_names",
        (f"{_LARGE}::test_are_not_read_either",),
    ),
    BrokenRule(
        "longest-piece",
        "A piece of an answer that is longer than 2 MiB is not parsed.",
        "kafka/isolated/reply_format.py",
        "if len(content) > LONGEST_PIECE:",
        "if False:",
        ("tests/unit/kafka/isolated/test_reply_format.py::TestPieces::test_that_are_too_long_are_not_parsed",),
    ),
    BrokenRule(
        "longest-answer",
        "All pieces of an answer count for the limit of its length.",
        "kafka/isolated/frames.py",
        "if count > LONGEST_ANSWER:",
        "if False:",
        ("tests/unit/kafka/isolated/test_reply_format.py::TestAnswers::test_all_pieces_count",),
    ),
    BrokenRule(
        "planner-memory",
        "A process that plans for an inline connection has limited memory.",
        "reconcile/runs/solving.py",
        "            _limit_memory(most)",
        "            pass",
        (f"{_PLANNER}::test_has_limited_memory",),
    ),
    BrokenRule(
        "planner-time",
        "A process that plans for an inline connection has limited time.",
        "reconcile/runs/solving.py",
        "async with asyncio.timeout(_LONGEST_SECONDS):",
        "async with asyncio.timeout(None):",
        (f"{_PLANNER}::test_has_limited_time",),
    ),
    BrokenRule(
        "hard-plans",
        "A plan that long replica lists make hard is made in a process.",
        "reconcile/runs/solving.py",
        "return longest < _LONG_LIST and",
        "return",
        (f"{_PLANNER}::test_plans_few_partitions_that_are_hard",),
    ),
    BrokenRule(
        "one-turn-for-all",
        "One plan at a time is made in a process for all inline connections.",
        "reconcile/state/namespace_turns.py",
        "partial(self._process.of, namespace)",
        "partial(NamespaceTurns().of, namespace)",
        ("tests/unit/reconcile/test_supervisor_planning.py::test_all_inline_connections_wait_for_one_another",),
    ),
    BrokenRule(
        "turn-of-namespace",
        "A namespace with many inline connections delays a plan of another namespace by one plan.",
        "reconcile/state/namespace_turns.py",
        "async with self._of_namespace[namespace], self._working:",
        "async with self._working:",
        (f"{_PLANNER}::test_waits_for_its_turn", f"{_MATCHING}::test_namespaces_take_turns"),
    ),
    BrokenRule(
        "turns-of-matching",
        "A namespace with many slow matches of topics delays those of another namespace by one match.",
        "reconcile/state/inline_thread.py",
        "async with turn():",
        "if True:",
        (f"{_MATCHING}::test_namespaces_take_turns",),
    ),
)
