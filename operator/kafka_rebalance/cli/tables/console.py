"""Prints tables and structured documents on stdout."""

import json
from enum import StrEnum
from typing import Any

import click
import yaml
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from kafka_rebalance.printable_text import printable

_UNLIMITED = 10**6


class _PlainConsole(Console):
    def render_str(self, text: str, **options: Any) -> Text:
        """Every string becomes text here, also a cell of a table, before its width is measured."""
        return super().render_str(printable(text, kept="\n"), **options)


def plain_console() -> Console:
    """A console for stdout that takes names as data, not as markup or as sequences that control the terminal.

    Piped output is searched or stored, so no line of it is cut or folded at a width.
    """
    width = None if _at_terminal() else _UNLIMITED
    return _PlainConsole(width=width, highlight=False, markup=False, emoji=False)


def _at_terminal() -> bool:
    return Console().file.isatty()


def plain_table(*headers: str, padding: tuple[int, ...] = (0, 3, 0, 0)) -> Table:
    """A table without lines. Cells are folded: an ellipsis would hide the number of a partition or a broker."""
    return Table(*(Column(header, overflow="fold") for header in headers), box=None, padding=padding)  # type: ignore[arg-type]


class _ReasonDumper(yaml.SafeDumper):
    """Prints a Reason, say, as the text that it is."""


_ReasonDumper.add_multi_representer(StrEnum, lambda dumper, value: dumper.represent_str(str(value)))


def say(line: str, *, err: bool = False) -> None:
    """One line on stdout or stderr, in which names of servers control no terminal."""
    click.echo(printable(line), err=err)


def print_document(document: dict[str, Any], output: str) -> None:
    """As ``json`` or ``yaml``."""
    if output == "json":
        click.echo(json.dumps(document))
    else:
        click.echo(yaml.dump(document, Dumper=_ReasonDumper, sort_keys=False), nl=False)
