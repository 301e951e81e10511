"""The output of the demo: sections with timings, the commands to type, tables, and counted checks.

It is coloured on a terminal and plain text in a pipe or a log.
"""

import os
import time
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_WIDTH_OF_PLAIN_TEXT = 140


class Screen:
    """Prints, records the time of each section, and counts the failed checks."""

    def __init__(self) -> None:
        plain = not os.isatty(1)
        self._console = Console(highlight=False, width=_WIDTH_OF_PLAIN_TEXT if plain else None)
        self._begun = time.monotonic()
        self._sections: list[tuple[str, float]] = []
        self.failed: list[str] = []

    @property
    def plain(self) -> bool:
        """Whether the output is not a terminal."""
        return not self._console.is_terminal

    def section(self, title: str, explanation: str) -> None:
        """Start a section; this ends the previous one."""
        self._sections.append((title, time.monotonic()))
        self._console.print()
        self._console.rule(f"[bold]{len(self._sections)}. {escape(title)}[/]", align="left")
        self._console.print(explanation, style="italic", markup=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """Print a line of text, with the seconds since the start of the demo."""
        self._console.print(f"[dim]{time.monotonic() - self._begun:5.0f} s[/]  {escape(text)}", soft_wrap=True)

    def command(self, line: str) -> None:
        """Print a command that runs now, as a user would type it."""
        self._console.print(f"\n[bold cyan]$ {escape(line)}[/]", soft_wrap=True)

    def output(self, text: str) -> None:
        """Print the output of a command."""
        self._console.print(text.rstrip(), markup=False, soft_wrap=True)

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; the first column is text, the others are numbers."""
        table = Table(title=title, title_justify="left", title_style="bold")
        for at, column in enumerate(head):
            table.add_column(column, justify="right" if at else "left")
        for row in rows:
            table.add_row(*row)
        self._console.print()
        self._console.print(table)

    def check(self, claim: str, *, holds: bool, otherwise: object = "") -> None:
        """Print whether a check passed; a failed check makes the demo fail."""
        if holds:
            self._console.print(f"[bold green]  ok   [/]{escape(claim)}", soft_wrap=True)
            return
        self.failed.append(claim)
        self._console.print(f"[bold red]FAILED [/]{escape(claim)}: {escape(str(otherwise))}", soft_wrap=True)

    def timings(self) -> None:
        """Print the duration of every section, the total, and the load of the machine."""
        ends = [begun for _, begun in self._sections[1:]] + [time.monotonic()]
        rows = [(title, f"{end - begun:.0f} s") for (title, begun), end in zip(self._sections, ends, strict=True)]
        load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
        self.table("Timings", ("section", "took"), [*rows, ("total", f"{time.monotonic() - self._begun:.0f} s")])
        self._console.print(f"load average of this machine (1, 5, 15 min): {load} on {os.cpu_count()} cores")
