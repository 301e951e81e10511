"""What the reader sees: sections with timings, commands as they could be typed, tables, and checks that are counted.

On a terminal it is coloured; in a pipe or a log the same text comes as plain lines.
"""

import os
import time
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_WIDTH_OF_PLAIN_TEXT = 140


class Screen:
    """Prints, keeps the time of each section, and remembers which checks failed."""

    def __init__(self) -> None:
        plain = not os.isatty(1)
        self._console = Console(highlight=False, width=_WIDTH_OF_PLAIN_TEXT if plain else None)
        self._begun = time.monotonic()
        self._sections: list[tuple[str, float]] = []
        self.failed: list[str] = []

    @property
    def plain(self) -> bool:
        """Whether nobody looks at a terminal."""
        return not self._console.is_terminal

    def section(self, title: str, explanation: str) -> None:
        """Begin a section; the one before has ended."""
        self._sections.append((title, time.monotonic()))
        self._console.print()
        self._console.rule(f"[bold]{len(self._sections)}. {escape(title)}[/]", align="left")
        self._console.print(explanation, style="italic", markup=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """A line of text, with the seconds since the demo began."""
        self._console.print(f"[dim]{time.monotonic() - self._begun:5.0f} s[/]  {escape(text)}", soft_wrap=True)

    def command(self, line: str) -> None:
        """A command that is run now, as a user would type it."""
        self._console.print(f"\n[bold cyan]$ {escape(line)}[/]", soft_wrap=True)

    def output(self, text: str) -> None:
        """What a command printed."""
        self._console.print(text.rstrip(), markup=False, soft_wrap=True)

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table; the first column is text, the others are figures."""
        table = Table(title=title, title_justify="left", title_style="bold")
        for at, column in enumerate(head):
            table.add_column(column, justify="right" if at else "left")
        for row in rows:
            table.add_row(*row)
        self._console.print()
        self._console.print(table)

    def check(self, claim: str, *, holds: bool, otherwise: object = "") -> None:
        """Say whether a claim holds; one that does not makes the demo fail."""
        if holds:
            self._console.print(f"[bold green]  ok   [/]{escape(claim)}", soft_wrap=True)
            return
        self.failed.append(claim)
        self._console.print(f"[bold red]FAILED [/]{escape(claim)}: {escape(str(otherwise))}", soft_wrap=True)

    def timings(self) -> None:
        """How long every section took, the total, and how busy the machine was."""
        ends = [begun for _, begun in self._sections[1:]] + [time.monotonic()]
        rows = [(title, f"{end - begun:.0f} s") for (title, begun), end in zip(self._sections, ends, strict=True)]
        load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
        self.table("Timings", ("section", "took"), [*rows, ("total", f"{time.monotonic() - self._begun:.0f} s")])
        self._console.print(f"load average of this machine (1, 5, 15 min): {load} on {os.cpu_count()} cores")
