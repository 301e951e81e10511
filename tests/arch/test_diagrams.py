"""docs/architecture.md shows the dependencies that import-linter enforces."""

from tests.arch.diagrams import PAGE, layers, written


def test_the_diagrams_are_up_to_date():
    """`make docs-diagrams` updates them."""
    page = PAGE.read_text()
    assert written(page) == page


def test_every_package_is_described():
    """A diagram of names alone does not show where a rule belongs."""
    page = PAGE.read_text()
    assert layers()
    for rows in layers().values():
        for package in (package for row in rows for package in row):
            assert f"| `{package}`" in page or f", `{package}`" in page, package
