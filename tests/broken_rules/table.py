"""The tables of broken rules in docs/testing.md: ``make docs-diagrams`` writes them."""

from tests.broken_rules.breaking import ROOT
from tests.broken_rules.noticed import SEARCHES, found
from tests.broken_rules.rules import RULES

PAGE = ROOT / "docs" / "testing.md"


def by_tests() -> str:
    """A row for each rule, with the tests that fail."""
    rows = [
        f"| {broken.rule} | `{broken.file}` | {', '.join(f'`{test}`' for test in broken.caught_by)} |"
        for broken in RULES
    ]
    return "\n".join(["| Rule | Broken in | Caught by |", "| --- | --- | --- |", *rows])


def by_seeds() -> str:
    """A row for each rule that simulated worlds notice, with the number of seeds up to the first that fails."""
    rules, results, rows = {broken.name: broken.rule for broken in RULES}, found(), []
    for search in SEARCHES:
        kind = f"`{search.kind.value}`" if search.kind.value else "usual"
        seeds = results[search.rule]["seed"] + 1 if search.rule in results else "not noticed yet"
        rows.append(f"| {search.finding} | {rules[search.rule]} | `{search.rule}` | {kind} | {seeds} |")
    head = "| Finding | Rule | Name | Worlds | Seeds until one fails |"
    return "\n".join([head, "| --- | --- | --- | --- | --- |", *rows])


def written(page: str) -> str:
    """The page, with the tables as they have to be; LookupError if the page has no place for one of them."""
    for name, rows in (("broken rules", by_tests()), ("simulated rules", by_seeds())):
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if begin not in page or end not in page:
            raise LookupError(f"{PAGE.name} has no place for the table of {name}")
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{rows}\n{end}{rest.partition(end)[2]}"
    return page


def write() -> None:
    """Write the tables into the page."""
    PAGE.write_text(written(PAGE.read_text()))


if __name__ == "__main__":
    write()
