"""Breaks rules, and looks for the first seed that notices: ``python -m tests.broken_rules.simulated [NAME...]``.

By hand; with names, only these rules. ``--most N``: seeds that are tried for each kind of world, 200 if not given. The
findings S1 to S8 are defects that the operator has had; each is put back by breaking a rule.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
from tests.broken_rules.breaking import PACKAGE, break_text, copy_of_the_tree
from tests.broken_rules.broken_rule import BrokenRule
from tests.broken_rules.rules import RULES
from tests.simulation.world import Kind

_FAILED = re.compile(r"^seed (\d+)( at|:) (.*)$", re.MULTILINE)

FINDINGS = {
    "S1": "one-owner",
    "S2": "list-budget",
    "S3": BrokenRule(
        "unreadable-topic",
        "A topic whose configs may not be described holds up only what moves it.",
        "reconcile/observe/min_insync_reader.py",
        "for topic in found.errors:",
        "for topic in found.or_raise().errors:",
        (),
    ),
    "S4": "sent-or-not",
    "S5": "drained-by-log-dirs",
    "S6": BrokenRule(
        "takes-over-what-it-moves",
        "A resource takes a rollback over only if its plan moves everything that the rollback would.",
        "reconcile/decide/teardown.py",
        "return moves.keys() <= {p.tp",
        "return True or moves.keys() <= {p.tp",
        (),
    ),
    "S7": BrokenRule(
        "two-listeners",
        "Two listeners of a cluster are the same cluster, although their addresses differ.",
        "reconcile/act/cluster_owners.py",
        "differs = contradiction(binding, server.brokers, seen)",
        'differs = "" if server.servers & binding.servers else "elsewhere"',
        (),
    ),
    "S8": "no-null-below-min-insync",
}
"""Findings of the first security and safety review, and the rules that prevent each."""
MORE = (
    "ledger-before-write", "in-flight-only-null", "origin-before-order", "throttle-before-copy", "parallel-partitions",
    "approved-plan", "recorded-start", "min-insync-replicas", "no-null-without-original", "second-look",
    "dead-original", "finalizer-first", "heir-waits", "fence", "lease-margin", "hidden-topic", "ordered-writes",
    "index-last", "log-dir-rollback", "log-dir-limit", "log-dir-rate-first", "log-dir-origin", "log-dirs-of-others",
)  # fmt: skip


def main(names: list[str], most: int) -> int:
    """Print the first seed that fails for each rule, in each kind of world that may notice it."""
    known = {broken.name: broken for broken in RULES}
    chosen = {finding: known.get(rule, rule) for finding, rule in FINDINGS.items()}
    chosen |= {name: known[name] for name in MORE}
    for label, broken in chosen.items():
        if not names or broken.name in names:
            click.echo(f"{label}: {broken.name}")
            with copy_of_the_tree() as copy:
                file = copy / PACKAGE / broken.file
                file.write_text(break_text(broken, file.read_text()))
                for kind in (Kind.LOG_DIRS,) if "log-dir" in broken.name else (Kind.MORE_FAULTS, Kind.USUAL):
                    click.echo(f"  {kind.name}: {first_failure(copy, kind, most)}")
    return 0


def first_failure(copy: Path, kind: Kind, most: int) -> str:
    """The first seed that fails in the copy, and the rule that it names."""
    command = [sys.executable, "-m", "tests.simulation", f"0-{most - 1}", "--stop", *kind.options]
    environment = {**os.environ, "PYTHONPATH": f"{copy / PACKAGE.parent}", "PYTHONHASHSEED": "0"}
    ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    found = _FAILED.search(ran.stdout)
    if found is None:
        return f"none of {most}" if ran.returncode == 0 else f"exit code {ran.returncode}: {ran.stderr[-500:]}"
    return f"seed {found[1]}: {found[3][:160]}"


if __name__ == "__main__":
    given = sys.argv[1:]
    limit = int(given.pop(given.index("--most") + 1)) if "--most" in given else 200
    sys.exit(main([name for name in given if name != "--most"], limit))
