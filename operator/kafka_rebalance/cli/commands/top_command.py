"""kafka-rebalance top: the rebalances in motion, refreshed each second. Reads the resources only, not Kafka."""

import asyncio
from dataclasses import asdict
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.live import Live

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES, parse_rebalance, parse_throttle
from kafka_rebalance.cli.options.resource_lookup import (
    ResourceScope,
    all_namespaces_option,
    directory_option,
    namespace_options,
    reading,
)
from kafka_rebalance.cli.tables.console import plain_console, plain_table, print_document
from kafka_rebalance.cli.tables.motion import Motion, motion_of
from kafka_rebalance.cli.tables.phrases import ids
from kafka_rebalance.cli.tables.rate_notes import notes_on
from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.api_errors import Forbidden, NotFound
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.units import format_bytes, format_rate

_EVERY_SECONDS = 1.0
_MOST_ROWS = 20


@click.command("top")
@directory_option
@namespace_options
@all_namespaces_option
@click.option("--once", is_flag=True, help="Print it once. [default: if stdout is not a terminal]")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="JSON and YAML are printed once.",
)
def top(scope: ResourceScope, *, all_namespaces: bool, once: bool, output: str) -> None:
    """Show which rebalances, brokers and partitions are in motion, and how fast. Ends with Ctrl-C."""
    asyncio.run(_show(scope, None if all_namespaces else scope.namespace, once=once, output=output))


async def _show(scope: ResourceScope, namespace: str | None, *, once: bool, output: str) -> None:
    console = plain_console()
    async with reading(scope) as kube:
        if output != "table":
            print_document(_document(await _motion(kube, namespace)), output)
        elif once or not console.is_terminal:
            console.print(_screen(await _motion(kube, namespace)))
        else:
            with Live(console=console, auto_refresh=False, screen=True) as live:
                while True:
                    live.update(_screen(await _motion(kube, namespace)), refresh=True)
                    await asyncio.sleep(_EVERY_SECONDS)


async def _motion(kube: KubeObjects, namespace: str | None) -> Motion:
    """Throttle resources that cannot be read are ignored: they only add the measured rates."""
    rebalances = []
    for body in await kube.list_resources(REBALANCES, namespace):
        try:
            rebalances.append(parse_rebalance(body))
        except Refused as unreadable:
            click.echo(f"{body['metadata']['namespace']}/{body['metadata']['name']}: {unreadable.message}", err=True)
    try:
        throttles = [parse_throttle(body) for body in await kube.list_resources(REASSIGNMENT_THROTTLES, namespace)]
    except (Forbidden, NotFound, Refused):
        throttles = []
    return motion_of(rebalances, throttles)


def _screen(motion: Motion) -> RenderableType:
    if not motion.rebalances:
        return "nothing is in motion; kafka-rebalance list shows rebalances that wait or have ended"
    overview = plain_table("REBALANCE", "STATE", "PROGRESS", "RATE", "ETA", "IN FLIGHT")
    for seen in motion.rebalances:
        ready = find_condition(seen.status.conditions, ConditionType.READY)
        progress, display = seen.status.progress, seen.status.display
        overview.add_row(
            f"{seen.metadata.namespace}/{seen.metadata.name}",
            ready.reason if ready is not None else "-",
            f"{progress.percent}%" if progress is not None else "-",
            format_rate(progress.rate) if progress is not None and progress.rate is not None else "-",
            (display.eta if display is not None else None) or "-",
            str(seen.status.current_batch_size),
        )
    brokers = plain_table("BROKER", "FETCHES", "LEFT", "FETCHES/S", "SENDS/S")
    for row in motion.brokers:
        rates = (row.fetches_per_second, row.sends_per_second)
        shown = ("-" if rate is None else format_rate(rate) for rate in rates)
        brokers.add_row(str(row.id), str(row.fetches), format_bytes(row.left), *shown)
    partitions = plain_table("TOPIC-PARTITION", "CURRENT", "ADDING", "LEFT", "REBALANCE")
    for part in motion.partitions[:_MOST_ROWS]:
        left = "-" if part.left is None else format_bytes(part.left)
        partitions.add_row(part.partition, ids(part.current), ids(part.adding) or "-", left, part.rebalance)
    more = motion.unlisted + max(0, len(motion.partitions) - _MOST_ROWS)
    if more:
        partitions.add_row(f"… {more} more: status NAME --batch")
    notes = list(notes_on(motion))
    return Group(overview, "", brokers, "", partitions, *(("", *notes) if notes else ()))


def _document(motion: Motion) -> dict[str, Any]:
    """The same for programs."""
    return {
        "rebalances": [f"{seen.metadata.namespace}/{seen.metadata.name}" for seen in motion.rebalances],
        "brokers": [asdict(row) for row in motion.brokers],
        "partitions": [asdict(row) for row in motion.partitions],
        "unlisted": motion.unlisted,
    }
