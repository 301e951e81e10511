"""kafka-rebalance watch: follows one KafkaRebalance until it ends. Reads the resource only, not Kafka."""

import asyncio
import sys

import click

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import REBALANCES, KafkaRebalance, parse_rebalance
from kafka_rebalance.cli.exit_codes import EXIT_NO
from kafka_rebalance.cli.options.resource_lookup import (
    ResourceScope,
    directory_option,
    find,
    namespace_options,
    reading,
)
from kafka_rebalance.cli.tables.progress_screen import ProgressScreen
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.printable_text import printable
from kafka_rebalance.reasons import Reason

_EVERY_SECONDS = 0.5


@click.command("watch")
@click.argument("name")
@directory_option
@namespace_options
@click.option("--until", type=click.IntRange(0, 100), help="Stop at this percentage.")
@click.option("--exit-on-stall", is_flag=True, help="Exit with 4 when the rebalance stalls.")
def watch(name: str, scope: ResourceScope, until: int | None, exit_on_stall: bool) -> None:
    """Follow KafkaRebalance NAME until it has succeeded, is undone, also in part, or is deleted."""
    stuck = asyncio.run(_follow(scope, name, until, exit_on_stall=exit_on_stall))
    if stuck is not None:
        how = "undone in part" if stuck[0] == Reason.ROLLED_BACK_PARTIALLY else "stalled"
        click.echo(f"{how} ({stuck[0]}): {printable(stuck[1])}", err=True)
        sys.exit(EXIT_NO)


async def _follow(scope: ResourceScope, name: str, until: int | None, *, exit_on_stall: bool) -> tuple[str, str] | None:
    namespace = scope.namespace
    async with reading(scope) as kube:
        # A resource that does not exist at the start is a misspelt name, not the end of a deletion.
        body: Json | None = await find(kube, namespace, name)
        with ProgressScreen() as screen:
            while body is not None:
                seen = parse_rebalance(body)
                screen.show(seen)
                if (ended := _ended(seen, until, exit_on_stall=exit_on_stall)) is not None:
                    return ended or None
                await asyncio.sleep(_EVERY_SECONDS)
                body = await kube.get(REBALANCES, namespace, name)
            screen.end(f"{namespace}/{name} is deleted")
            return None


def _ended(seen: KafkaRebalance, until: int | None, *, exit_on_stall: bool) -> tuple[str, str] | tuple[()] | None:
    """None: not ended. Empty: ended well. Otherwise the reason and message of the stall, or of an undo in part."""
    status = seen.status
    if status.observed_generation != seen.metadata.generation:
        return None
    ready = find_condition(status.conditions, ConditionType.READY)
    stalled = find_condition(status.conditions, ConditionType.STALLED)
    if ready is not None and ready.status == "True":
        return ()
    if ready is not None and ready.reason == Reason.ROLLED_BACK_PARTIALLY:
        return ready.reason, ready.message
    if exit_on_stall and stalled is not None and stalled.status == "True":
        return stalled.reason, stalled.message
    if until is not None and status.progress is not None and status.progress.percent >= until:
        return ()
    return None
