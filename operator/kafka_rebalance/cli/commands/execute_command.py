"""kafka-rebalance execute: KIP-6's step after the plan. The operator executes it in small, throttled steps.

Prints a KafkaRebalance, or creates it. Sends nothing to Kafka: only a KafkaRebalance can be suspended, throttled and
rolled back.
"""

import asyncio
from collections.abc import Sequence
from typing import BinaryIO

import click

from kafka_rebalance.cli.commands.rebalance_submission import checked_manifests, print_or_create
from kafka_rebalance.cli.commands.steps_command import BROKER_LIST
from kafka_rebalance.cli.files import manifests as objects
from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.cli.options.connection_options import kafka_connection
from kafka_rebalance.cli.options.manifest_options import BASE, ManifestOptions, manifest_options
from kafka_rebalance.errors import Refused
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.cluster_file import parse_topics_to_move
from kafka_rebalance.model.reassignment_file import Reassigned, read_reassignment, render_assignment
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.printable_text import printable
from kafka_rebalance.reasons import Reason

_FILE = "--reassignment-json-file"


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
@manifest_options
def execute(
    connection: ConnectionSettings,
    *,
    file: BinaryIO | None,
    decommission: Replicas | None,
    include: Replicas | None,
    topics_file: BinaryIO | None,
    wanted: ManifestOptions,
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
    request = wanted.request(wanted.read_base(), connection.bootstrap_servers)
    if planning and request.spec.get("strategy") == "Assignment":
        raise click.BadParameter(f"its strategy is Assignment: give {_FILE}", param_hint=BASE)
    _check_connection(request, connection)
    if file is not None:
        given = parsed(_FILE, file, read_reassignment)
        _warn_of_log_dirs(given)
        rows, log_dirs = asyncio.run(_present(connection, given))
        manifests = checked_manifests(request, objects.of_assignment(request, rows))
        # stdout is for the manifests if they are printed.
        current = render_assignment(((row.tp, row.original or ()) for row in rows), log_dirs)
        click.echo(objects.rollback(current) + "\n", err=not wanted.apply)
    else:
        topics = parsed("--topics-to-move-json-file", topics_file, parse_topics_to_move) if topics_file else ()
        if topics_file and not topics:  # an empty topics.include would select all topics
            raise Refused(Reason.NOTHING_TO_DO, "the file of --topics-to-move-json-file lists no topic")
        manifests = checked_manifests(request, objects.of_brokers(request, decommission or (), include or (), topics))
    print_or_create(manifests, wanted)


def _warn_of_log_dirs(rows: Sequence[Reassigned]) -> None:
    named = [row.tp for row in rows if row.names_log_dir]
    if named:
        click.echo(
            f"warning: the log_dirs of {len(named)} partitions are ignored, for example of {printable(str(named[0]))}: "
            "the operator moves replicas between brokers only; when it is done, run kafka-reassign-partitions.sh "
            "--execute with the same file",
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
