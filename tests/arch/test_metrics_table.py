"""docs/metrics.md lists every metric."""

from tests.arch.metrics_table import PAGE, rows, written


def test_the_table_is_up_to_date():
    """`make docs-diagrams` updates it."""
    page = PAGE.read_text()
    assert len(rows()) > 30
    assert written(page) == page
