"""kafka-rebalance watch: follows one KafkaRebalance until it ends. Reads the resource only, not Kafka."""

import asyncio
import sys
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import REBALANCES, KafkaRebalance, parse_rebalance
from kafka_rebalance.cli.exit_codes import EXIT_NO
from kafka_rebalance.cli.options.resource_lookup import ResourceScope, connected, find, namespace_options
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.units import format_bytes, format_rate

_EVERY_SECONDS = 0.5
_BATCH_ROWS = 5


@click.command("watch")
@click.argument("name")
@namespace_options
@click.option("--until", type=click.IntRange(0, 100), help="Stop at this percentage.")
@click.option("--exit-on-stall", is_flag=True, help="Exit with 4 when the rebalance stalls.")
def watch(name: str, scope: ResourceScope, until: int | None, exit_on_stall: bool) -> None:
    """Follow KafkaRebalance NAME until it has succeeded, is undone or is deleted."""
    stuck = asyncio.run(_follow(scope, name, until, exit_on_stall=exit_on_stall))
    if stuck is not None:
        click.echo(f"stalled ({stuck[0]}): {stuck[1]}", err=True)
        sys.exit(EXIT_NO)


async def _follow(scope: ResourceScope, name: str, until: int | None, *, exit_on_stall: bool) -> tuple[str, str] | None:
    console = Console()
    last = ("", "")
    namespace = scope.namespace
    async with connected(server=scope.server) as kube:
        # A resource that does not exist at the start is a misspelt name, not the end of a deletion.
        body: Json | None = await find(kube, namespace, name)
        with Live(console=console, auto_refresh=False, transient=False) as live:
            while body is not None:
                seen = parse_rebalance(body)
                if console.is_terminal:
                    live.update(_screen(seen), refresh=True)
                else:
                    lines = (_why(seen), _line(seen))
                    for line, before in zip(lines, last, strict=True):
                        if line and line != before:
                            click.echo(line)
                    sys.stdout.flush()
                    last = lines
                if (ended := _ended(seen, until, exit_on_stall=exit_on_stall)) is not None:
                    return ended or None
                await asyncio.sleep(_EVERY_SECONDS)
                body = await kube.get(REBALANCES, namespace, name)
            if console.is_terminal:
                live.update(f"{namespace}/{name} is deleted", refresh=True)
            else:
                click.echo(f"{namespace}/{name} is deleted")
            return None


def _ended(seen: KafkaRebalance, until: int | None, *, exit_on_stall: bool) -> tuple[str, str] | tuple[()] | None:
    """None: not ended. Empty: ended well. Otherwise the reason and message of the stall."""
    status = seen.status
    if status.observed_generation != seen.metadata.generation:
        return None
    ready = find_condition(status.conditions, ConditionType.READY)
    stalled = find_condition(status.conditions, ConditionType.STALLED)
    if ready is not None and ready.status == "True":
        return ()
    if exit_on_stall and stalled is not None and stalled.status == "True":
        return stalled.reason, stalled.message
    if until is not None and status.progress is not None and status.progress.percent >= until:
        return ()
    return None


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
    return "  ".join(parts)


def _why(seen: KafkaRebalance) -> str:
    """The state with its message."""
    ready = find_condition(seen.status.conditions, ConditionType.READY)
    return f"{ready.reason}: {ready.message}" if ready is not None and ready.message else ""


def _screen(seen: KafkaRebalance) -> RenderableType:
    """Progress bar, figures, state, and the first rows of KIP-435's current batch."""
    progress = seen.status.progress
    bar = Table.grid()  # a bar alone does not end its line
    bar.add_row(ProgressBar(total=100, completed=progress.percent if progress else 0, width=60))
    return Group(bar, _line(seen), Text(_why(seen)), _batch(seen))


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
