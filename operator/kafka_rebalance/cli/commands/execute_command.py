"""kafka-rebalance execute: KIP-6's step after the plan. The operator carries it out: small steps, throttled, undoable.

Prints what to apply, or applies it. Nothing is sent to Kafka: what is not in a KafkaRebalance nobody could suspend,
throttle or roll back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import BinaryIO

import click

from kafka_rebalance.api.v1alpha1 import parse_spec
from kafka_rebalance.api.validation import validate
from kafka_rebalance.cli.commands.steps_command import BrokerList
from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.cli.files.manifests import (
    ExecuteRequest,
    Manifest,
    lists_of,
    of_assignment,
    of_brokers,
    render,
    rollback,
    with_originals,
)
from kafka_rebalance.cli.files.rebalance_file import FileMetadata, read_rebalance, spec_of
from kafka_rebalance.cli.options.connection_options import kafka_connection
from kafka_rebalance.cli.options.resource_lookup import connected
from kafka_rebalance.errors import Refused
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.kube.submission import submit
from kafka_rebalance.model.cluster_file import parse_topics_to_move
from kafka_rebalance.model.reassignment_file import Reassigned, read_reassignment, render_assignment
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

_FILE = "--reassignment-json-file"
_BASE = "--rebalance"


def _checked(check: Callable[[str], object]) -> Callable[..., str | None]:
    """A callback that takes what ``check`` does not refuse, so that what is wrong is said of its option."""

    def callback(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
        try:
            if value is not None:
                check(value)
        except Refused as invalid:
            raise click.BadParameter(invalid.message) from invalid
        return value

    return callback


def _check_throttle(rate: str) -> None:
    parse_spec({"kafka": {"bootstrapServers": "kafka:9092"}, "throttle": {"leaderRate": rate}})


@click.command("execute")
@kafka_connection
@click.option(_FILE, "file", type=click.File("rb"), help="The lists to bring about: plan's JSON, or Kafka's.")
@click.option("--decommission-broker", "decommission", type=BrokerList(), help="Plan, and empty these brokers.")
@click.option("--broker-list", "--brokers", "include", type=BrokerList(), help="Plan, and use these brokers only.")
@click.option("--topics-to-move-json-file", "topics_file", type=click.File("rb"), help="Plan; Kafka's file of topics.")
@click.option("--throttle", callback=_checked(_check_throttle), help="Bytes/s per broker, like 50Mi or 50000000.")
@click.option(
    _BASE, "rebalance", type=click.File("rb"), help="A KafkaRebalance to begin with: credentials, execution, …."
)
@click.option(
    "--name",
    callback=_checked(lambda name: validate(FileMetadata, {"name": name}, "metadata")),
    help="Of the KafkaRebalance; made from what it asks for unless given.",
)
@click.option(
    "-n",
    "--namespace",
    callback=_checked(lambda name: validate(FileMetadata, {"namespace": name}, "metadata")),
    help="Of the KafkaRebalance.  [default: that of --rebalance, else default]",
)
@click.option("--apply", is_flag=True, help="Create it, instead of printing it.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def execute(
    connection: ConnectionSettings,
    *,
    file: BinaryIO | None,
    decommission: Replicas | None,
    include: Replicas | None,
    topics_file: BinaryIO | None,
    throttle: str | None,
    rebalance: BinaryIO | None,
    name: str | None,
    namespace: str | None,
    apply: bool,
    output: str,
) -> None:
    """Have the operator carry out a reassignment file; or plan with the fewest moves, and carry that out.

    Prints the KafkaRebalance that asks for it, for kubectl or Git; --apply creates it. For a file the present lists are
    printed first, as Kafka's tool does.
    """
    planning = decommission is not None or include is not None or topics_file is not None
    if (file is not None) == planning:
        raise click.UsageError(
            f"give either {_FILE}, or some of --decommission-broker, --broker-list and --topics-to-move-json-file"
        )
    base = parsed(_BASE, rebalance, read_rebalance) if rebalance else {}
    wanted = ExecuteRequest(namespace, name, connection.bootstrap_servers, base, throttle)
    if planning and wanted.spec.get("strategy") == "Assignment":
        raise click.BadParameter(f"its strategy is Assignment, which carries out lists: give {_FILE}", param_hint=_BASE)
    _check_connection(wanted, connection)
    if file is not None:
        rows, log_dirs = asyncio.run(_present(connection, parsed(_FILE, file, read_reassignment)))
        manifests = _checked_manifests(wanted, of_assignment(wanted, rows))
        # What is printed to be applied must not be mixed with what is printed to be read.
        click.echo(rollback(render_assignment(lists_of(rows), log_dirs)) + "\n", err=not apply)
    else:
        topics = parsed("--topics-to-move-json-file", topics_file, parse_topics_to_move) if topics_file else ()
        if topics_file and not topics:  # an empty topics.include means every topic
            raise Refused(Reason.NOTHING_TO_DO, "the file of --topics-to-move-json-file lists no topic")
        manifests = _checked_manifests(wanted, of_brokers(wanted, decommission or (), include or (), topics))
    if apply:
        asyncio.run(_apply(manifests))
    else:
        click.echo(render(manifests, output), nl=output == "json")


def _check_connection(wanted: ExecuteRequest, connection: ConnectionSettings) -> None:
    """What the resource will say of Kafka, where the options and not the file say it."""
    if "kafka" in wanted.spec:
        return
    if connection.security_protocol != "PLAINTEXT":
        raise click.UsageError("credentials are in Secrets: name these in the spec.kafka of a file for --rebalance")
    try:
        parse_spec({"kafka": {"bootstrapServers": wanted.bootstrap_servers}})
    except Refused as invalid:
        raise click.BadParameter(invalid.message, param_hint="--bootstrap-servers") from invalid


def _checked_manifests(wanted: ExecuteRequest, manifests: list[Manifest]) -> list[Manifest]:
    """Such as the API server would take."""
    try:
        spec_of(manifests[-1]["spec"])
    except ValueError as wrong:
        if wanted.base:
            raise click.BadParameter(f"{wrong} (with the options put in)", param_hint=_BASE) from wrong
        raise click.UsageError(str(wrong)) from wrong
    return manifests


async def _present(
    connection: ConnectionSettings, rows: Sequence[Reassigned]
) -> tuple[list[Reassigned], dict[tuple[TopicPartition, BrokerId], str]]:
    """The rows, checked against the live cluster, with what the partitions have now, and where on which broker."""
    if not rows:
        raise Refused(Reason.NOTHING_TO_DO, "the file lists no partition")
    admin = connect(connection)
    try:
        states = await admin.describe_partitions({row.tp.topic for row in rows})
        live = (await admin.describe_cluster()).brokers
        present = with_originals(rows, states, live)
        holding = {b for row in present for b in row.original or ()}
        dirs = await admin.log_dirs(sorted(holding & live.keys()))
        asked = {row.tp for row in present}
        return present, {
            (tp, b): of.path for b, each in dirs.items() for of in each for tp in asked & of.replica_bytes.keys()
        }
    finally:
        await admin.close()


async def _apply(manifests: list[Manifest]) -> None:
    *lists, rebalance = manifests
    async with connected(None) as kube:
        submitted = await submit(kube, rebalance, *lists)
    if submitted.no_dry_run:
        click.echo(f"the API server could not be asked before: {submitted.no_dry_run}", err=True)
    name, namespace = rebalance["metadata"]["name"], rebalance["metadata"]["namespace"]
    done = "created" if submitted.created else "is there already, and asks for just this"
    click.echo(f"KafkaRebalance {namespace}/{name} {done}; follow it with: kafka-rebalance watch {name} -n {namespace}")
