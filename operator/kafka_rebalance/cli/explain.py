"""kafka-rebalance explain: why a plan moves what it moves, and nothing else. Takes what `plan` takes; asks nobody."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Any

import click
import yaml
from rich.console import Console
from rich.table import Column, Table

from kafka_rebalance.cli import explain_words as words
from kafka_rebalance.cli.plan import asked_for
from kafka_rebalance.cli.plan import plan as plan_command
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.planning import Balance, PlanRequest, Strategy
from kafka_rebalance.planning import plan as make_plan
from kafka_rebalance.planning.curve import curve
from kafka_rebalance.planning.explain import BrokerAccount, Explanation, PartitionAccount, Share
from kafka_rebalance.units import format_bytes

_UNLIMITED = 10**6
_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>\d{1,10})")


class _Partition(click.ParamType[TopicPartition]):
    """``orders-3``: the name of a topic, which may have hyphens itself, and a number."""

    name = "topic-partition"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> TopicPartition:
        found = _PARTITION.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is not a topic-partition like orders-3", param, ctx)
        return TopicPartition(found["topic"], int(found["partition"]))


@click.command("explain")
@click.option("--partition", type=_Partition(), metavar="TOPIC-PARTITION", help="Explain this one.")
@click.option("--broker", type=click.IntRange(min=0), metavar="ID", help="Explain what this one gives and gets.")
@click.option("--curve", "points", type=click.IntRange(2, 100), metavar="POINTS", help="What balance costs in moves.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
@without_collector()
def explain(
    *, partition: TopicPartition | None, broker: int | None, points: int | None, output: str, **given: Any
) -> None:
    """Say why a plan moves what it moves: of the whole plan, of a partition or of a broker.

    Takes the options of plan, and explains the plan that it makes of them.
    """
    if sum(asked is not None for asked in (partition, broker, points)) > 1:
        raise click.UsageError("give one of --partition, --broker and --curve")
    request = asked_for(**given).request
    _check_explained(request)
    if points and (request.strategy is not Strategy.MINIMAL_MOVEMENT or request.replication_factor is not None):
        raise Refused("NotExplained", "there is a curve for MinimalMovement without a replication factor only")
    explained = Explanation(request, make_plan(request))
    if partition is not None:
        document = _partition(explained, explained.partition(partition))
    elif broker is not None:
        document = _broker(explained, explained.broker(broker))
    else:
        document = _whole(explained)
        if points:
            document["curve"] = [asdict(point) for point in curve(request, points)]
    if output == "json":
        click.echo(json.dumps(document))
    elif output == "yaml":
        click.echo(yaml.safe_dump(document, sort_keys=False), nl=False)
    else:
        _print(document)


# Whatever can be planned can be explained.
explain.params[:0] = [option for option in plan_command.params if option.name not in {"everything", "output"}]


def _check_explained(request: PlanRequest) -> None:
    """Shares and counts are those of one total; nothing is said of plans that count otherwise."""
    goals = request.goals
    told = {
        f"goals.balance {goals.balance}": goals.balance is not Balance.TOTAL,
        "a movement budget": goals.limited,
        "a minimum gain": goals.minimum_gain > 0,
        "pinned topics": any(p.pinned for p in request.partitions),
    }
    if beyond := [what for what, asked in told.items() if asked]:
        raise Refused("NotExplained", f"plans with {beyond[0]} are not explained")


def _whole(explained: Explanation) -> dict[str, Any]:
    made = explained.plan
    return {
        "plan": {
            "hash": made.hash,
            "replicaMoves": made.replica_moves,
            "lowerBound": made.lower_bound,
            "optimal": made.optimal,
            "leaderMoves": made.leader_moves,
            "partitionsChanged": made.changed,
            "rackViolations": made.rack_violations,
        },
        "why": [*words.of_plan(explained)],
        "brokers": [_account(account) for account in explained.brokers],
    }


def _broker(explained: Explanation, account: BrokerAccount) -> dict[str, Any]:
    b = account.broker
    return {
        "broker": _account(account),
        "why": words.of_broker(explained, account),
        "leaving": [
            {"topic": gone.tp.topic, "partition": gone.tp.partition, "why": gone.why.value}
            for gone in explained.departures
            if gone.broker == b
        ],
        "arriving": [
            {"topic": p.tp.topic, "partition": p.tp.partition} for p in explained.plan.partitions if b in p.added
        ],
    }


def _partition(explained: Explanation, account: PartitionAccount) -> dict[str, Any]:
    racks = {b.id: b.rack for b in explained.request.brokers}
    return {
        "partition": {
            "topic": account.tp.topic,
            "partition": account.tp.partition,
            "current": list(account.current),
            "target": list(account.target),
        },
        "why": words.of_partition(explained, account),
        "leaving": [{"broker": gone.broker, "why": gone.why.value} for gone in account.leaving],
        "arriving": list(account.arriving),
        "leaderChange": account.led.value if account.led else None,
        "brokers": [
            {"id": b, "rack": racks[b], "fit": fit.value, "before": of.before, "after": of.after}
            for b, fit in account.fits.items()
            for of in (explained.broker(b),)
        ],
    }


def _account(account: BrokerAccount) -> dict[str, Any]:
    return {
        "id": account.broker,
        "rack": account.rack,
        "mayHold": account.target,
        "before": account.before,
        "after": account.after,
        "share": _share(account.share),
        "leaving": sum(account.leaving.values()),
        "leavingBecause": {why.value: count for why, count in sorted(account.leaving.items())},
        "arriving": account.arriving,
        "leadersBefore": account.led_before,
        "leadersAfter": account.led_after,
    }


def _share(share: Share | None) -> dict[str, Any] | None:
    return (
        None
        if share is None
        else {"low": share.low, "high": share.high, "replicas": share.replicas, "brokers": share.brokers}
    )


def _print(document: dict[str, Any]) -> None:
    # What is piped is searched or stored: there no width cuts or folds a line. Names are data, never markup.
    width = None if Console().file.isatty() else _UNLIMITED
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    for sentence in document["why"]:
        console.print(sentence)
    rows = document.get("brokers", ())
    if rows:
        console.print("", _table(rows))
    if points := document.get("curve"):
        console.print("", _curve_table(points))


def _curve_table(points: list[dict[str, Any]]) -> Table:
    table = Table(*("MOVES", "REPLICAS PER BROKER", "SUM OF SQUARES", "DATA", "PROVED"), box=None)
    for point in points:
        spread, proved = point["spread"], "yes" if point["optimal"] else "no"
        counts = f"{spread['fewest']}-{spread['most']}"
        table.add_row(str(point["moves"]), counts, str(point["squares"]), format_bytes(point["data_bytes"]), proved)
    return table


def _table(rows: list[dict[str, Any]]) -> Table:
    if "fit" in rows[0]:
        columns = {"BROKER": "id", "RACK": "rack", "REPLICAS": "", "FOR THIS PARTITION": "fit"}
    else:
        columns = {"BROKER": "id", "RACK": "rack", "REPLICAS": "", "SHARE": "share", "LEAVE": "leaving"}
        columns |= {"ARRIVE": "arriving"}
    table = Table(*(Column(header, overflow="fold") for header in columns), box=None)
    for row in rows:
        table.add_row(*(_cell(row, key) for key in columns.values()))
    return table


def _cell(row: dict[str, Any], key: str) -> str:
    if not key:
        return f"{row['before']} -> {row['after']}"
    value = row[key]
    if isinstance(value, dict):
        return f"{value['low']}" if value["low"] == value["high"] else f"{value['low']}-{value['high']}"
    return "-" if value is None else str(value)
