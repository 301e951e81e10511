"""kafka-rebalance steps: lists the steps from one assignment to another."""

import json

import click

from kafka_rebalance.cli.options.parsed_value import ParsedValue
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.steps import Alter, Call, Present, StepRules, all_steps
from kafka_rebalance.model.json_shapes import MAX_INT32
from kafka_rebalance.model.repeated import repeated
from kafka_rebalance.model.topology import Replicas, replicas_of
from kafka_rebalance.reasons import Reason


def _parse_brokers(text: str) -> Replicas:
    """``0,1,2``: distinct broker ids in the given order, at least one."""
    try:
        ids = [int(part) for part in text.split(",")]
    except ValueError as wrong:
        raise ValueError(f"{text!r} is not a list of broker ids like 1,2,3") from wrong
    if (twice := repeated(ids)) is not None:
        raise ValueError(f"{text!r} names a broker twice: {twice}")
    if outside := [b for b in ids if not 0 <= b <= MAX_INT32]:
        raise ValueError(f"{outside[0]} is not between 0 and {MAX_INT32}")
    return replicas_of(*ids)


BROKER_LIST = ParsedValue("brokers", _parse_brokers)


@click.command("steps")
@click.option("--current", type=BROKER_LIST, required=True, help="Current replicas, preferred leader first.")
@click.option("--target", type=BROKER_LIST, required=True, help="Target replicas, preferred leader first.")
@click.option(
    "--parallel-replicas",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Replicas that one step replaces (KIP-435's R).",
)
@click.option("--isr", type=BROKER_LIST, help="In-sync replicas. [default: all of --current]")
@click.option(
    "--min-insync", type=click.IntRange(min=1), default=1, show_default=True, help="min.insync.replicas of the topic."
)
@click.option("--calls", is_flag=True, help="Print the requests to Kafka instead of the assignments.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def steps(
    current: Replicas,
    target: Replicas,
    parallel_replicas: int,
    isr: Replicas | None,
    min_insync: int,
    calls: bool,
    output: str,
) -> None:
    """Print the assignments from --current to --target, in order."""
    in_sync = frozenset(isr or current)
    if others := sorted(in_sync - set(current)):
        names = ", ".join(str(b) for b in others)
        raise click.BadParameter(f"brokers that are not in --current: {names}", param_hint="--isr")
    leader = next(b for b in current if b in in_sync)
    rules = StepRules(parallel_replicas, min(min_insync, max(len(current), len(target))))
    try:
        found = all_steps(Present(current, in_sync, leader), target, rules)
    except ValueError as wait:
        raise Refused(Reason.NO_WAY_FORWARD, str(wait)) from wait
    if calls:
        rows: list[object] = [_call(call) for step in found for call in step.calls]
    else:
        rows = [list(current), *(list(step.replicas) for step in found)]
    click.echo(json.dumps(rows) if output == "json" else "\n".join(json.dumps(row) for row in rows))


def _call(call: Call) -> dict[str, object]:
    if not isinstance(call, Alter):
        return {"elect": call.leader}
    row: dict[str, object] = {"alter": list(call.replicas)}
    if call.until_in_sync:
        row["until"] = f"{list(call.until_in_sync)} in the ISR"
    return row
