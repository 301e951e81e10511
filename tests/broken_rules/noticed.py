"""Which simulated worlds notice that a rule is broken: what is searched, and what was found (``noticed.json``).

The findings S1 to S8 of the first safety review are defects that the operator has had. Each is put back by breaking the
rule that prevents it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.simulation.world import Kind

FOUND = Path(__file__).with_name("noticed.json")


@dataclass(frozen=True, slots=True)
class Search:
    """``rule``: the name of the rule that is broken. ``kind``: of the worlds. ``finding``: what it puts back."""

    rule: str
    kind: Kind
    finding: str = ""


SEARCHES = (
    Search("owner-in-place", Kind.MORE_FAULTS, "S1"),
    Search("list-budget", Kind.MORE_FAULTS, "S2"),
    Search("unreadable-topic", Kind.MORE_FAULTS, "S3"),
    Search("origin-at-the-first-call", Kind.OVERLAPPING, "S4"),
    Search("drained-by-log-dirs", Kind.MORE_FAULTS, "S5"),
    Search("takes-over-what-it-moves", Kind.OVERLAPPING, "S6"),
    Search("two-listeners", Kind.MORE_FAULTS, "S7"),
    Search("no-null-below-min-insync", Kind.OVERLAPPING, "S8"),
    Search("sent-or-not", Kind.OVERLAPPING),
    Search("in-flight-only-null", Kind.OVERLAPPING),
    Search("moved-by-others", Kind.OVERLAPPING),
    Search("origins-of-both", Kind.OVERLAPPING),
    Search("parallel-partitions", Kind.USUAL),
    Search("throttle-of-the-next-copies", Kind.USUAL),
    Search("approved-plan", Kind.MORE_FAULTS),
    Search("ledger-before-write", Kind.USUAL),
    Search("rate-from-before", Kind.USUAL),
    Search("log-dir-rollback", Kind.LOG_DIRS),
    Search("log-dir-limit", Kind.LOG_DIRS),
)


def found() -> dict[str, dict[str, Any]]:
    """By rule: the ``seed`` that failed first, and what the judge ``said``."""
    results: dict[str, dict[str, Any]] = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    return results


def note(rule: str, seed: int, said: str) -> None:
    """Store what was found for a rule."""
    results = {**found(), rule: {"seed": seed, "said": said}}
    FOUND.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
