"""kafka-rebalance steps: lists the steps from one assignment to another."""

from __future__ import annotations

import json

import click

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.steps import Alter, Call, Present, StepRules, all_steps
from kafka_rebalance.model.topology import Replicas, replicas_of
from kafka_rebalance.reasons import Reason

_MAX_INT32 = 2**31 - 1


class BrokerList(click.ParamType[Replicas]):
    """``0,1,2``: distinct broker ids, at least one."""

    name = "brokers"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Replicas:
        """The broker ids in the given order."""
        try:
            ids = [int(part) for part in str(value).split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of broker ids like 1,2,3", param, ctx)
        if len(set(ids)) != len(ids):
            self.fail(f"{value!r} names a broker twice", param, ctx)
        if outside := [b for b in ids if not 0 <= b <= _MAX_INT32]:
            self.fail(f"{outside[0]} is not between 0 and {_MAX_INT32}", param, ctx)
        return replicas_of(*ids)


@click.command("steps")
@click.option("--current", type=BrokerList(), required=True, help="Current replicas, preferred leader first.")
@click.option("--target", type=BrokerList(), required=True, help="Target replicas, preferred leader first.")
@click.option(
    "--parallel-replicas",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Replicas that one step replaces (KIP-435's R).",
)
@click.option("--isr", type=BrokerList(), help="In-sync replicas. [default: all of --current]")
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
    if not in_sync <= set(current):
        raise click.BadParameter("names brokers that are not in --current", param_hint="--isr")
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
