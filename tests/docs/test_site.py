"""The site of the documentation, built as `make docs` builds it."""

import logging
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from tests.docs.pages import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. Building fails on a link that leads nowhere, and on a page outside the navigation."""
    target = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(target))
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return target


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 50
    missing = [page for page in pages if not (site / page.with_name(_html(page.name))).exists()]
    assert missing == []


def test_the_examples_can_be_downloaded(site: Path) -> None:
    """Pages link to them."""
    for path in (ROOT / "examples").rglob("*.yaml"):
        assert (site / path.relative_to(ROOT)).read_bytes() == path.read_bytes()


def test_fonts_and_scripts_are_part_of_the_site(site: Path) -> None:
    """A page requests nothing from other hosts, except that Material loads the script that draws diagrams."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert 'src="http' not in text, page
        assert 'rel="stylesheet" href="http' not in text, page


def _html(name: str) -> str:
    return "index.html" if name == "README.md" else name.replace(".md", ".html")
