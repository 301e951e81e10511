"""Writes the table of a benchmark between its two markers of a page in docs/."""

from pathlib import Path


def publish(text: str, page: Path | None, begin: str, end: str) -> None:
    """Replace the text between the markers; print it if there is no page."""
    if page is None:
        print(text)
        return
    head, _, rest = page.read_text().partition(begin)
    page.write_text(head + begin + "\n" + text + "\n" + end + rest.partition(end)[2])
