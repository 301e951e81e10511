"""kafka-rebalance history: the finished runs on record, those of deleted resources included.

The records are ConfigMaps in the operator's namespace. Without the right to list them, the resources that have ended
are listed instead.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import click

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.fields import format_time
from kafka_rebalance.api.v1alpha1 import REBALANCES, lenient_conditions
from kafka_rebalance.cli.options.gone_rebalances import all_gone
from kafka_rebalance.cli.options.resource_lookup import (
    ResourceScope,
    all_namespaces_option,
    directory_option,
    reading,
    record_options,
    stores,
)
from kafka_rebalance.cli.tables.console import plain_console, plain_table, print_document
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.model.run import Run
from kafka_rebalance.units import format_duration


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """One run that has ended. ``started``: None if it has submitted no step, or if that is not known."""

    namespace: str
    name: str
    uid: str
    outcome: str
    plan_hash: str
    started: datetime | None
    ended: datetime

    def as_json(self) -> Json:
        """The row for programs; an unknown time is null."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "outcome": self.outcome,
            "planHash": self.plan_hash,
            "startedAt": format_time(self.started) if self.started else None,
            "completedAt": format_time(self.ended),
        }


@click.command("history")
@click.argument("name", required=False)
@directory_option
@record_options
@all_namespaces_option
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def history(name: str | None, scope: ResourceScope, *, all_namespaces: bool, output: str) -> None:
    """List the finished runs on record, the latest first, also those of deleted KafkaRebalances.

    With NAME, those of KafkaRebalances of that name.
    """
    rows = asyncio.run(_read(scope, None if all_namespaces else scope.namespace, name))
    if output != "table":
        print_document({"runs": [row.as_json() for row in rows]}, output)
    elif rows:
        _print(rows, namespaces=all_namespaces)
    else:
        click.echo("no finished run is on record", err=True)


async def _read(scope: ResourceScope, namespace: str | None, name: str | None) -> list[FinishedRun]:
    async with reading(scope) as kube:
        try:
            rows = [row for run in await stores(kube).runs.list_all() for row in _of_record(run)]
            known = {row.uid for row in rows}
            rows += [row for row in _of_resources(await all_gone(kube)) if row.uid not in known]
        except Forbidden as hidden:
            click.echo(f"only resources that exist are listed, for their status: {hidden.message}", err=True)
            rows = list(_of_resources(await kube.list_resources(REBALANCES, namespace)))
    chosen = (row for row in rows if namespace in {None, row.namespace} and name in {None, row.name})
    return sorted(chosen, key=lambda row: (row.ended, row.uid), reverse=True)


def _of_record(run: Run) -> list[FinishedRun]:
    """The run if it has ended, and the success that an undo would lead back from."""
    return [
        FinishedRun(run.namespace, run.name, run.uid, ended.outcome, ended.plan_hash, ended.started_at, ended.closed_at)
        for ended in (run, run.last_success)
        if ended is not None and ended.closed_at is not None and ended.outcome is not None
    ]


def _of_resources(bodies: Iterable[Json]) -> Iterator[FinishedRun]:
    for body in bodies:
        metadata, status = body["metadata"], body.get("status") or {}
        ready = find_condition(lenient_conditions(status), ConditionType.READY)
        if ready is not None and ready.status == "True":
            started = (status.get("progress") or {}).get("startedAt")
            yield FinishedRun(
                metadata["namespace"],
                metadata["name"],
                metadata["uid"],
                ready.reason,
                (status.get("plan") or {}).get("hash", ""),
                datetime.fromisoformat(started) if started else None,
                ready.last_transition_time,
            )


def _print(rows: list[FinishedRun], *, namespaces: bool) -> None:
    table = plain_table(*(["NAMESPACE"] if namespaces else []), "NAME", "OUTCOME", "ENDED", "TOOK", "UID")
    for row in rows:
        took = format_duration((row.ended - row.started).total_seconds()) if row.started else "-"
        cells = (row.name, row.outcome, format_time(row.ended), took, row.uid)
        table.add_row(*([row.namespace] if namespaces else []), *cells)
    plain_console().print(table)
