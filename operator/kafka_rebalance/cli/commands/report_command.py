"""kafka-rebalance report: a report of a plan or a run, as a web page or Markdown. Only reads.

Of a plan that `plan` would make, of a plan file, or of a KafkaRebalance: planned, running or finished, on the API
server or in the directory of `run`.
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import click

from kafka_rebalance.cli.commands.plan_command import OF_OUTPUT
from kafka_rebalance.cli.commands.plan_command import plan as plan_command
from kafka_rebalance.cli.commands.reported_plans import report_of_file, report_of_request
from kafka_rebalance.cli.commands.reported_runs import report_of_resource
from kafka_rebalance.cli.commands.served_reports import HOST, report_served
from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.cli.options.resource_lookup import ResourceScope, directory_option, record_options
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.model.cluster_file import parse_cluster
from kafka_rebalance.report.pages import html_page, markdown_page
from kafka_rebalance.report.report_contents import Report

_PAGES = {".html": html_page, ".md": markdown_page}


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which arguments and options are given. ``plan_options``: those of `plan`, except --cluster."""

    run: bool
    cluster: bool
    plan_file: bool
    plan_options: bool
    history: bool
    output: bool
    served: bool


_CONTRADICTIONS: tuple[tuple[Callable[[_Asked], bool], str], ...] = (
    (
        lambda asked: not (asked.run or asked.cluster),
        "give the NAME of a KafkaRebalance, or a --cluster file to plan for",
    ),
    (
        lambda asked: asked.plan_options and (asked.run or asked.plan_file),
        "the options of `plan` are only for a plan that is made now: omit NAME and --plan",
    ),
    (lambda asked: asked.run and asked.plan_file, "give NAME or --plan"),
    (
        lambda asked: asked.history and not asked.run,
        "--history is about a run: give the NAME of its KafkaRebalance",
    ),
    (lambda asked: asked.output and asked.served, "give one of --output and --serve"),
    (
        lambda asked: asked.served and not asked.run,
        "--serve is about a run: give the NAME of its KafkaRebalance",
    ),
    (lambda asked: not (asked.output or asked.served), "give --output or --serve"),
)
"""The first that holds is the usage error."""


def _page_file(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and value.suffix not in _PAGES:
        raise click.BadParameter(f"{value.name}: the name ends with {' or '.join(_PAGES)}")
    return value


@click.command("report")
@click.argument("name", required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_page_file,
    help="File to write: a self-contained web page (.html), or Markdown (.md).",
)
@click.option(
    "--serve",
    "port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Serve the page of a KafkaRebalance on this port of 127.0.0.1 instead, always up to date, until Ctrl-C.",
)
@click.option("--plan", "plan_file", type=click.File("rb"), help="Plan file from `plan -o json`, for --cluster.")
@click.option(
    "--history",
    metavar="URI",
    help="Lake with the steps of ended runs, a directory or s3:// URI: shows when they were carried out.",
)
@directory_option
@record_options
@without_collector()
def report(
    name: str | None,
    scope: ResourceScope,
    *,
    output: Path | None,
    port: int | None,
    plan_file: BinaryIO | None,
    history: str | None,
    cluster: BinaryIO | None,
    **given: Any,
) -> None:
    """Write a report: brokers before and after, copies between brokers, and the progress of the run.

    With NAME, of that KafkaRebalance; --cluster then adds the replicas that do not move. Without NAME, of the plan that
    `plan` makes with the same options, or of --plan.
    """
    asked = _Asked(
        run=name is not None,
        cluster=cluster is not None,
        plan_file=plan_file is not None,
        plan_options=any(value not in (None, ()) for value in given.values()),
        history=history is not None,
        output=output is not None,
        served=port is not None,
    )
    for contradicts, message in _CONTRADICTIONS:
        if contradicts(asked):
            raise click.UsageError(message)
    described = parsed("--cluster", cluster, parse_cluster) if name is not None and cluster is not None else None
    make = partial(report_of_resource, scope, name or "", described, history)
    if port is not None:
        asyncio.run(_serve(port, make))
    elif output is not None:
        if name is not None:
            found = asyncio.run(make())
        elif plan_file is not None and cluster is not None:
            found = report_of_file(cluster, plan_file, datetime.now(UTC))
        else:
            found = report_of_request(datetime.now(UTC), cluster=cluster, **given)
        output.write_text(_PAGES[output.suffix](found), encoding="utf-8")
        click.echo(f"{output} is written", err=True)


async def _serve(port: int, make: Callable[[], Awaitable[Report]]) -> None:
    """Serve until interrupted. The first report is made before the port opens, so that a wrong name fails at once."""
    await make()
    async with report_served(port, make):
        click.echo(f"http://{HOST}:{port}/ shows the report; Ctrl-C ends it", err=True)
        await asyncio.Event().wait()


def _optional(option: click.Parameter) -> click.Parameter:
    """--cluster is not needed with NAME."""
    found = copy.copy(option)
    found.required = False
    return found


# All options that define the plan.
report.params[1:1] = [_optional(option) for option in plan_command.params if option.name not in OF_OUTPUT]
