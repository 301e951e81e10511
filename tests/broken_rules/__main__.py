"""Breaks the rules that are named, or all: ``python -m tests.broken_rules [NAME...]``, by hand.

Each rule is broken in a copy of the repository. It is caught if every test that ``rules`` names for it fails there, and
passes in a copy in which nothing is broken. Exit code 1 if a rule is not caught.
"""

import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from tests.broken_rules.breaking import Outcome, break_rule, unbroken
from tests.broken_rules.rules import RULES

OUT = Console(soft_wrap=True)


def shown(outcome: Outcome) -> str:
    """Which tests failed, or why the rule counts as not caught."""
    return escape("\n".join([f"NOT CAUGHT: {outcome.trouble}"] if outcome.trouble else outcome.failures))


def main(names: list[str]) -> int:
    """Break the rules with these names; all where there is none."""
    if unknown := set(names) - {broken.name for broken in RULES}:
        OUT.print(f"no such rule: {', '.join(sorted(unknown))}")
        return 2
    chosen = [broken for broken in RULES if not names or broken.name in names]
    if trouble := unbroken(chosen):
        OUT.print(f"fails although nothing is broken: {escape(trouble)}")
        return 1
    table, caught = Table("Rule", Column("Caught by", overflow="fold"), "Seconds", show_lines=True), True
    for broken in chosen:
        outcome = break_rule(broken)
        caught &= not outcome.trouble
        table.add_row(broken.name, shown(outcome), f"{outcome.seconds:.0f}")
        OUT.print(f"{broken.name}: {shown(outcome)}", highlight=False)
    Console().print(table)
    return 0 if caught else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
