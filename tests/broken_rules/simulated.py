"""Breaks rules, and looks for the first seed that notices: ``python -m tests.broken_rules.simulated [NAME...]``.

By hand; with names of rules or findings (``S1``), only these. ``--most N``: seeds that are tried, 200 if not given. It
stores what it has found, and writes the table in docs/testing.md. Exit code 1 if no seed notices one of the rules.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
from tests.broken_rules import noticed, table
from tests.broken_rules.breaking import PACKAGE, break_text, copy_of_the_tree
from tests.broken_rules.rules import RULES
from tests.simulation.world import Kind

_FAILED = re.compile(r"^seed (\d+) at [\d.]+ s: (.*)$", re.MULTILINE)


def main(names: list[str], most: int) -> int:
    """Break each rule that is named, or all of ``noticed``, and store the first seed that fails."""
    known, missed = {broken.name: broken for broken in RULES}, 0
    for search in noticed.SEARCHES:
        if names and not {search.rule, search.finding} & set(names):
            continue
        broken = known[search.rule]
        with copy_of_the_tree() as copy:
            file = copy / PACKAGE / broken.file
            file.write_text(break_text(broken, file.read_text()))
            failure = first_failure(copy, search.kind, most)
        if failure is None:
            click.echo(f"{search.rule}: none of {most} seeds {search.kind.value}")
            missed += 1
        else:
            noticed.note(search.rule, *failure)
            click.echo(f"{search.rule}: seed {failure[0]} {search.kind.value}: {failure[1]}")
    table.write()
    return 1 if missed else 0


def first_failure(copy: Path, kind: Kind, most: int) -> tuple[int, str] | None:
    """The first seed that fails in the copy, and what the judge says; None: no seed does."""
    command = [sys.executable, "-m", "tests.simulation", f"0-{most - 1}", "--stop", *kind.options]
    environment = {**os.environ, "PYTHONPATH": f"{copy / PACKAGE.parent}", "PYTHONHASHSEED": "0"}
    ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    failed = _FAILED.search(ran.stdout)
    if failed is not None:
        return int(failed[1]), failed[2]
    if ran.returncode:
        raise click.ClickException(f"the simulation ended with {ran.returncode}: {(ran.stdout + ran.stderr)[-2000:]}")
    return None


if __name__ == "__main__":
    given = sys.argv[1:]
    limit = int(given.pop(given.index("--most") + 1)) if "--most" in given else 200
    sys.exit(main([name for name in given if name != "--most"], limit))
