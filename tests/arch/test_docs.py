"""References in the docs are valid: files, headings, tests, commands and make targets."""

import ast
import re
from pathlib import Path

import click
import pytest

from kafka_rebalance.cli.main import cli

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "operator" / "kafka_rebalance"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / ".github").rglob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "charts").rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
    ]
)
CURRENT = [page for page in PAGES if page.parent.name != "decisions" and page.name != "CHANGELOG.md"]
"""Decisions and the changelog are history: they refer to what existed at the time."""

_FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


def named(path):
    return str(path.relative_to(ROOT))


def prose(page):
    """The text without its code blocks."""
    return _FENCE.sub("", page.read_text())


def anchors(page):
    """The anchors of a page's headings, as GitHub generates them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in _HEADING.findall(prose(page))
    }


def links(page):
    return [link for link in _LINK.findall(prose(page)) if not re.match(r"[a-z]+:", link)]


def test_the_pages_are_found():
    """An empty list would make every other test here pass."""
    assert ROOT / "README.md" in PAGES
    assert ROOT / "docs" / "planning.md" in CURRENT
    assert links(ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    """Every relative link points to a file in the repository, and its anchor to a heading in it."""
    for link in links(page):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{named(page)}: {link}"
        assert target.is_relative_to(ROOT), f"{named(page)}: {link} leaves the repository"
        assert not anchor or anchor in anchors(target), f"{named(page)}: no heading for {link}"


def exists(code):
    """Whether a path in code style exists in the repository, as it is or relative to the package or the planner."""
    return any((root / code).exists() for root in (ROOT, PACKAGE, PACKAGE / "planning", *PACKAGE.glob("planning/*/")))


@pytest.mark.parametrize("page", CURRENT, ids=named)
class TestCode:
    def test_files_exist(self, page):
        """`tests/…`, `operator/…` or a module of the package (`reconcile/engine.py`); with `::` also the test."""
        for code in _CODE.findall(prose(page)):
            path, *names = code.split("::")
            if re.fullmatch(r"[\w/.-]+\.py", path):
                assert exists(path) or list((ROOT / "tests" / "contract").glob(path)), f"{named(page)}: {code}"
                if names and (ROOT / path).exists():
                    tree = ast.walk(ast.parse((ROOT / path).read_text()))
                    defined = {getattr(node, "name", None) for node in tree}
                    assert set(names) <= defined, f"{named(page)}: {code}"

    def test_commands_exist(self, page):
        """`kafka-rebalance NAME` and `make TARGET`, also in code blocks."""
        text = page.read_text()
        commands = cli.list_commands(click.Context(cli))
        for name in re.findall(r"(?:^|[`$ ])kafka-rebalance ([a-z][a-z-]*)(?=[ `\n])", text):
            assert name in commands, f"{named(page)}: kafka-rebalance {name}"
        targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        for name in re.findall(r"(?:^|`)(?:[A-Z_]+=\S+ )*make ([a-z][a-z0-9-]*)", text, re.MULTILINE):
            assert name in targets, f"{named(page)}: make {name}"


def test_the_glossary_has_each_term_once():
    """In alphabetical order, where readers look for it."""
    terms = re.findall(r"^\| \*\*(.+?)\*\*", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    assert len(terms) > 40
    assert terms == sorted(set(terms), key=str.casefold)
