"""The table of broken rules in docs/testing.md: ``make docs-diagrams`` writes it."""

import re

from tests.broken_rules.breaking import ROOT
from tests.broken_rules.rules import RULES

PAGE = ROOT / "docs" / "testing.md"
BEGIN, END = "<!-- broken rules: begin -->", "<!-- broken rules: end -->"


def table() -> str:
    """A row for each rule."""
    rows = [
        f"| {broken.rule} | `{broken.file}` | {', '.join(f'`{test}`' for test in broken.caught_by)} |"
        for broken in RULES
    ]
    return "\n".join(["| Rule | Broken in | Caught by |", "| --- | --- | --- |", *rows])


def written(page: str) -> str:
    """The page, with the table as it has to be; LookupError if the page has no place for it."""
    if BEGIN not in page or END not in page:
        raise LookupError(f"{PAGE.name} has no place for the table of broken rules")
    replacement = f"{BEGIN}\n{table()}\n{END}"
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: replacement, page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
