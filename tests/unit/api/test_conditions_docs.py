"""docs/conditions.md explains every reason that a resource can show, so that no new reason is left undocumented."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from kafka_rebalance.reasons import Reason

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "operator" / "kafka_rebalance"
TEXT = (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8")
REFUSALS = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8").partition("## Refusals")[2].partition("\n## ")[0]
ON_RESOURCES = ("kafka", "kube", "reconcile", "planning")
NOT_ON_RESOURCES = {
    "kube/access.py",
    "kube/lease.py",
    "kube/spec_changes.py",
    "kube/submission.py",
    "reconcile/act/retirement.py",
    "planning/explain/explanation.py",
}
ONLY_OF_SAMPLES = {Reason.CONSUMPTION_UNKNOWN}
RAISED = {"Permanent", "Refused", "Transient", "__init__"}


def reasons() -> Iterator[str]:
    """The reasons of the errors that are shown on a resource."""
    for package in ON_RESOURCES:
        for path in sorted((PACKAGE / package).rglob("*.py")):
            if str(path.relative_to(PACKAGE)) in NOT_ON_RESOURCES:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                first = node.args[0]
                if name in RAISED and isinstance(first, ast.Attribute) and getattr(first.value, "id", "") == "Reason":
                    yield Reason[first.attr]


def test_there_are_such_reasons() -> None:
    """Guards against a search that finds nothing."""
    assert {"SecretNotFound", "KafkaUnreachable", "InsufficientBrokers", "Conflict"} <= set(reasons())


def test_each_reason_is_explained() -> None:
    """Either on that page or among the planner's refusals, which the page links to."""
    shown = set(reasons()) - ONLY_OF_SAMPLES
    assert {reason for reason in shown if f"`{reason}`" not in TEXT and f"`{reason}`" not in REFUSALS} == set()
