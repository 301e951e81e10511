"""kafka-rebalance execute: KIP-6's step after the plan. The operator executes it in small, throttled steps.

Prints a KafkaRebalance, or creates it. Sends nothing to Kafka: only a KafkaRebalance can be suspended, throttled and
rolled back.
"""

import asyncio
from collections.abc import Sequence
from typing import BinaryIO

import click

from kafka_rebalance.api.validation import validate
from kafka_rebalance.cli.commands.rebalance_submission import checked_manifests, create
from kafka_rebalance.cli.commands.steps_command import BROKER_LIST
from kafka_rebalance.cli.files import manifests as objects
from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.cli.files.rebalance_file import FileMetadata, read_rebalance
from kafka_rebalance.cli.options.connection_options import kafka_connection
from kafka_rebalance.cli.options.rate_option import checked, checked_rate
from kafka_rebalance.cli.options.resource_lookup import ApiServer, api_server_options
from kafka_rebalance.errors import Refused
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.cluster_file import parse_topics_to_move
from kafka_rebalance.model.reassignment_file import Reassigned, read_reassignment, render_assignment
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

_FILE = "--reassignment-json-file"
_BASE = "--rebalance"


@click.command("execute")
@kafka_connection
@click.option(
    _FILE, "file", type=click.File("rb"), help="Target assignment: Kafka's reassignment JSON, or the output of plan."
)
@click.option("--decommission-broker", "decommission", type=BROKER_LIST, help="Brokers to drain.")
@click.option(
    "--broker-list",
    "--brokers",
    "include",
    type=BROKER_LIST,
    help="Brokers that may hold replicas. [default: all live brokers]",
)
@click.option(
    "--topics-to-move-json-file",
    "topics_file",
    type=click.File("rb"),
    help="Topics to rebalance, in Kafka's format. [default: all]",
)
@click.option(
    "--throttle",
    callback=checked_rate("--throttle"),
    help="Throttle rate per broker in bytes per second, for example 50Mi.",
)
@click.option(
    _BASE,
    "rebalance",
    type=click.File("rb"),
    help="KafkaRebalance file whose spec, labels and annotations are the base.",
)
@click.option(
    "--name",
    callback=checked(lambda name: validate(FileMetadata, {"name": name}, ""), "name"),
    help="Name of the KafkaRebalance. [default: derived from its content]",
)
@click.option(
    "-n",
    "--namespace",
    callback=checked(lambda name: validate(FileMetadata, {"namespace": name}, ""), "namespace"),
    help="Namespace of the KafkaRebalance. [default: that of --rebalance, else of the context]",
)
@api_server_options
@click.option("--apply", is_flag=True, help="Create the KafkaRebalance instead of printing it.")
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
    server: ApiServer,
    apply: bool,
    output: str,
) -> None:
    """Execute a reassignment file, or a plan with the fewest moves, as a KafkaRebalance.

    Prints the KafkaRebalance for kubectl or Git; with --apply, creates it. For a reassignment file the current
    assignment is printed first, as Kafka's tool does, to be saved for a rollback.
    """
    planning = decommission is not None or include is not None or topics_file is not None
    if (file is not None) == planning:
        raise click.UsageError(
            f"give either {_FILE} or some of --decommission-broker, --broker-list and --topics-to-move-json-file"
        )
    base = parsed(_BASE, rebalance, read_rebalance) if rebalance else {}
    wanted = objects.ExecuteRequest(
        namespace, name, connection.bootstrap_servers, base, throttle, default_namespace=server.namespace
    )
    if planning and wanted.spec.get("strategy") == "Assignment":
        raise click.BadParameter(f"its strategy is Assignment: give {_FILE}", param_hint=_BASE)
    _check_connection(wanted, connection)
    if file is not None:
        given = parsed(_FILE, file, read_reassignment)
        _warn_of_log_dirs(given)
        rows, log_dirs = asyncio.run(_present(connection, given))
        manifests = checked_manifests(wanted, objects.of_assignment(wanted, rows), _BASE)
        # stdout is for the manifests if they are printed.
        current = render_assignment(((row.tp, row.original or ()) for row in rows), log_dirs)
        click.echo(objects.rollback(current) + "\n", err=not apply)
    else:
        topics = parsed("--topics-to-move-json-file", topics_file, parse_topics_to_move) if topics_file else ()
        if topics_file and not topics:  # an empty topics.include would select all topics
            raise Refused(Reason.NOTHING_TO_DO, "the file of --topics-to-move-json-file lists no topic")
        planned = objects.of_brokers(wanted, decommission or (), include or (), topics)
        manifests = checked_manifests(wanted, planned, _BASE)
    if apply:
        asyncio.run(create(manifests, server))
    else:
        click.echo(objects.render(manifests, output), nl=output == "json")


def _warn_of_log_dirs(rows: Sequence[Reassigned]) -> None:
    named = [row.tp for row in rows if row.names_log_dir]
    if named:
        click.echo(
            f"warning: the log_dirs of {len(named)} partitions are ignored, for example of {named[0]}: the operator "
            "moves replicas between brokers only; when it is done, run kafka-reassign-partitions.sh --execute with the "
            "same file",
            err=True,
        )


def _check_connection(wanted: objects.ExecuteRequest, connection: ConnectionSettings) -> None:
    """Check the connection of the resource where the options define it, not the file."""
    if "kafka" in wanted.spec:
        return
    if connection.security_protocol != "PLAINTEXT":
        raise click.UsageError("credentials must be in Secrets: refer to them in spec.kafka of the file of --rebalance")


async def _present(
    connection: ConnectionSettings, rows: Sequence[Reassigned]
) -> tuple[list[Reassigned], dict[tuple[TopicPartition, BrokerId], str]]:
    """The rows with their current replicas, checked against the live cluster, and the log directories of these."""
    if not rows:
        raise Refused(Reason.NOTHING_TO_DO, "the file lists no partition")
    admin = connect(connection)
    try:
        states = (await admin.describe_partitions({row.tp.topic for row in rows})).or_raise()
        live = (await admin.describe_cluster()).brokers
        present = objects.with_originals(rows, states, live)
        holding = {b for row in present for b in row.original or ()}
        dirs = await admin.log_dirs(sorted(holding & live.keys()))
        wanted = {row.tp for row in present}
        return present, {
            (tp, b): of.path for b, each in dirs.items() for of in each for tp in wanted & of.replica_bytes.keys()
        }
    finally:
        await admin.close()
