"""Shows the progress of one KafkaRebalance while it is followed: redrawn on a terminal, otherwise a line per change."""

import sys
from types import TracebackType
from typing import Any, Self

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import KafkaRebalance
from kafka_rebalance.cli.tables.console import plain_console
from kafka_rebalance.printable_text import printable
from kafka_rebalance.units import format_bytes, format_rate

_BATCH_ROWS = 5


class ProgressScreen:
    """On stdout, while it is entered."""

    def __init__(self) -> None:
        self._console = plain_console()
        self._live = Live(console=self._console, auto_refresh=False, transient=False)
        self._last = ("", "")

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, seen: KafkaRebalance) -> None:
        """The state as it is now."""
        why = _why(seen)
        # The message says the state already, so figures are printed only if there are any.
        figures = _line(seen) if seen.status.progress is not None or not why else ""
        lines, before = (why, figures), self._last
        self._last = lines
        if self._console.is_terminal:
            self._live.update(_screen(seen), refresh=True)
            return
        for line, known in zip(lines, before, strict=True):
            if line and line != known:
                click.echo(printable(line))
        sys.stdout.flush()

    def end(self, text: str) -> None:
        """One last line in place of the progress, unless that says the same."""
        if text == self._last[0]:
            return
        if self._console.is_terminal:
            self._live.update(text, refresh=True)
        else:
            click.echo(printable(text))


def _line(seen: KafkaRebalance) -> str:
    """Progress in one line."""
    status = seen.status
    ready = find_condition(status.conditions, ConditionType.READY)
    parts = [f"{ready.reason if ready else 'Pending':<12}"]
    if (p := status.progress) is not None:
        parts += [
            f"{p.percent:3d}%",
            f"partitions {p.partitions.completed}/{p.partitions.total}",
            f"bytes {format_bytes(p.bytes.moved)}/{format_bytes(p.bytes.total)}",
            f"rate {format_rate(p.rate or 0)}",
            f"ETA {status.display.eta if status.display and status.display.eta else '-'}",
            f"batch {status.current_batch_size}",
        ]
    if status.display and status.display.throttle:
        parts.append(f"throttle {status.display.throttle}")
    return "  ".join(parts).rstrip()


def _why(seen: KafkaRebalance) -> str:
    """The state with its message."""
    ready = find_condition(seen.status.conditions, ConditionType.READY)
    return f"{ready.reason}: {ready.message}" if ready is not None and ready.message else ""


def _screen(seen: KafkaRebalance) -> RenderableType:
    """Progress bar, figures, state, and the first rows of KIP-435's current batch."""
    progress = seen.status.progress
    bar = Table.grid()  # a bar alone does not end its line
    bar.add_row(ProgressBar(total=100, completed=progress.percent if progress else 0, width=60))
    return Group(bar, _line(seen), _why(seen), _batch(seen))


def _batch(seen: KafkaRebalance) -> RenderableType:
    rows: tuple[Any, ...] = seen.status.current_batch[:_BATCH_ROWS]
    table = Table("partition", "now", "step", "target", "left", box=None, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(
            f"{row.topic}-{row.partition}",
            str(list(row.current)),
            str(list(row.step)),
            str(list(row.target)),
            format_bytes(row.bytes_remaining or 0),
        )
    return table
