"""The layer diagrams of docs/architecture.md, from the layer contracts; ``make docs-diagrams`` writes them."""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"


def layers() -> dict[str, list[list[str]]]:
    """The layers of each package, highest first; modules of one layer do not import each other."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return {
        container: [layer.split(" | ") for layer in contract["layers"]]
        for contract in contracts
        if contract["type"] == "layers"
        for container in contract["containers"]
    }


def diagram(rows: list[list[str]]) -> str:
    """A Mermaid flowchart with an arrow from each layer to the one below it."""
    arrows = [f"    {' & '.join(above)} --> {' & '.join(below)}" for above, below in pairwise(rows)]
    return "\n".join(["```mermaid", "flowchart TD", *arrows, "```"])


def written(page: str) -> str:
    """The page with all diagrams up to date; LookupError if the page has no place for one."""
    for container, rows in layers().items():
        begin, end = f"<!-- layers of {container}: begin -->", f"<!-- layers of {container}: end -->"
        if begin not in page or end not in page:
            raise LookupError(f"{PAGE.name} has no place for the layers of {container}")
        replacement = f"{begin}\n{diagram(rows)}\n{end}"
        page = re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _, new=replacement: new, page, flags=re.DOTALL)
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
