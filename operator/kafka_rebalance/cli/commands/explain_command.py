"""kafka-rebalance explain: explains why a plan moves what it moves. Takes the options of `plan`; works offline."""

import re
from typing import Any

import click
from rich.table import Table

from kafka_rebalance.cli.commands.plan_command import OF_OUTPUT, plan_options
from kafka_rebalance.cli.commands.plan_command import plan as plan_command
from kafka_rebalance.cli.explain import documents
from kafka_rebalance.cli.explain import sentences as words
from kafka_rebalance.cli.options.parsed_value import ParsedValue
from kafka_rebalance.cli.tables.console import plain_console, plain_table, print_document
from kafka_rebalance.cli.tables.load_table import load_table
from kafka_rebalance.cli.tables.log_dir_table import (
    log_dir_document,
    log_dir_sentences,
    log_dir_table,
    partition_log_dir_document,
    partition_log_dirs,
    partition_sentences,
)
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.rate_order import refuse_unordered
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.model.goals import Strategy
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.planning import PlanRequest
from kafka_rebalance.planning import plan as make_plan
from kafka_rebalance.planning.explain.accounts import Fit
from kafka_rebalance.planning.explain.curve import curve
from kafka_rebalance.planning.explain.explanation import Explanation
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_bytes

_PADDING = (0, 1)
_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>\d{1,10})")


def _parse_partition(text: str) -> TopicPartition:
    """``orders-3``: the name of a topic, which may contain hyphens, and a partition number."""
    found = _PARTITION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a topic-partition like orders-3")
    return TopicPartition(found["topic"], int(found["partition"]))


@click.command("explain")
@click.option("--partition", type=ParsedValue("topic-partition", _parse_partition), help="Explain this partition.")
@click.option("--broker", type=click.IntRange(min=0), metavar="ID", help="Explain the changes to this broker.")
@click.option(
    "--curve",
    "points",
    type=click.IntRange(2, 100),
    metavar="POINTS",
    help="Show the balance for this number of movement budgets.",
)
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
@without_collector()
def explain(
    *, partition: TopicPartition | None, broker: int | None, points: int | None, output: str, **given: Any
) -> None:
    """Explain why a plan moves what it moves: the whole plan, one partition or one broker.

    Takes the options of plan, makes the same plan and explains it.
    """
    if sum(about is not None for about in (partition, broker, points)) > 1:
        raise click.UsageError("give one of --partition, --broker and --curve")
    options = plan_options(**given)
    request = options.request
    if points:
        _check_curve(request)
    explained = Explanation(request, make_plan(request))
    refuse_unordered(explained.plan)
    dir_plans = options.log_dir_plans(explained.plan)
    if partition is not None:
        document = documents.of_partition(explained, explained.partition(partition))
        if dir_plans:
            moves = partition_log_dirs(dir_plans, partition)
            document["logDirs"] = partition_log_dir_document(moves)
            document["why"] += partition_sentences(moves)
        dir_plans = ()
    elif broker is not None:
        document = documents.of_broker(explained, explained.broker(broker))
        dir_plans = tuple(found for found in dir_plans if found.broker == broker)
    else:
        document = documents.of_plan(explained, log_dirs_move=any(found.moves for found in dir_plans))
        if points:
            document["why"] += words.of_curve(request, unknown_sizes=len(request.partitions) - len(options.sizes))
            document["curve"] = documents.of_curve(curve(request, points))
    if dir_plans:
        document["logDirs"] = log_dir_document(dir_plans)
        document["why"] += log_dir_sentences(dir_plans)
    if output == "table":
        _print(document)
        if explained.plan.load is not None and partition is None and broker is None:
            plain_console().print("", load_table(explained.plan.load))
        if dir_plans:
            plain_console().print("", log_dir_table(dir_plans))
    else:
        print_document(document, output)


_FIT_CELLS = {
    Fit.NOT_TARGET: "must not hold replicas",
    Fit.HELD: "holds a replica",
    Fit.CHOSEN: "gets a new replica",
    Fit.RACK_FULL: "its rack is full",
    Fit.TOPIC_FULL: "has its share of the topic",
    Fit.GETS_NOTHING: "allowed, gets no replicas",
    Fit.GETS_OTHERS: "allowed, gets other replicas",
}

# All options that define the plan.
explain.params[:0] = [option for option in plan_command.params if option.name not in OF_OUTPUT]


def _check_curve(request: PlanRequest) -> None:
    """The curve varies the movement budget, which only some plans have."""
    if request.strategy is not Strategy.MINIMAL_MOVEMENT:
        beyond = f"the strategy {request.strategy}"
    elif request.replication_factor is not None:
        beyond = "a replication factor"
    elif not request.goals.counts:
        raise Refused(Reason.NOT_EXPLAINED, "--curve is about counts, which --no-counts leaves free; omit one of them")
    else:
        return
    problem = f"--curve is not available with {beyond}, which has no movement budget"
    raise Refused(Reason.NOT_EXPLAINED, f"{problem}; omit --curve to explain the plan")


def _print(document: dict[str, Any]) -> None:
    console = plain_console()
    for sentence in document["why"]:
        console.print(sentence)
    rows = document.get("brokers", ())
    if rows:
        console.print("", _table(rows))
    if points := document.get("curve"):
        console.print("", _curve_table(points))


def _curve_table(points: list[dict[str, Any]]) -> Table:
    table = plain_table("MOVES", "REPLICAS PER BROKER", "SUM OF SQUARES", "DATA", "PROVED", padding=_PADDING)
    for point in points:
        spread, proved = point["spread"], "yes" if point["optimal"] else "no"
        counts = f"{spread['fewest']}-{spread['most']}"
        table.add_row(str(point["moves"]), counts, str(point["squares"]), format_bytes(point["dataBytes"]), proved)
    return table


def _table(rows: list[dict[str, Any]]) -> Table:
    columns = {"BROKER": "id", "RACK": "rack", "REPLICAS": ""}
    if "fit" in rows[0]:
        columns |= {"OF THE TOPIC": "topic"} if "topic" in rows[0] else {}
        columns |= {"FOR THIS PARTITION": "fit"}
    else:
        by_topic = "topics" in rows[0]
        columns |= {"SHARE": "share"} if not by_topic or any(row["share"] for row in rows) else {}
        columns |= {"TOPICS OUTSIDE SHARE": "topics"} if by_topic else {}
        columns |= {"LEAVE": "leaving", "ARRIVE": "arriving"}
    table = plain_table(*columns, padding=_PADDING)
    for row in rows:
        table.add_row(*(_cell(row, key) for key in columns.values()))
    return table


def _cell(row: dict[str, Any], key: str) -> str:
    value = row[key] if key else row
    if key in {"", "topic"}:
        return f"{value['before']} -> {value['after']}"
    if value is None:
        return "-"
    if key == "fit":
        return _FIT_CELLS[Fit(row[key])]
    if key == "topics":
        return f"{value['outsideBefore']} -> {value['outsideAfter']}"
    if key == "share":
        return f"{value['low']}" if value["low"] == value["high"] else f"{value['low']}-{value['high']}"
    return str(value)
