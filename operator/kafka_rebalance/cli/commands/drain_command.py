"""kafka-rebalance drain: makes a KafkaRebalance that empties brokers. Sends nothing to Kafka."""

import asyncio
from typing import BinaryIO

import click

from kafka_rebalance.api.validation import validate
from kafka_rebalance.cli.commands.rebalance_submission import checked_manifests, create
from kafka_rebalance.cli.commands.steps_command import BROKER_LIST
from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.cli.files.manifests import ExecuteRequest, of_brokers, render
from kafka_rebalance.cli.files.rebalance_file import FileMetadata, read_rebalance
from kafka_rebalance.cli.options.rate_option import checked, checked_rate
from kafka_rebalance.cli.options.resource_lookup import ApiServer, api_server_options
from kafka_rebalance.model.topology import Replicas

_BASE = "--rebalance"


@click.command("drain")
@click.argument("brokers", type=BROKER_LIST)
@api_server_options
@click.option("--connection", metavar="[NAMESPACE/]NAME", help="KafkaConnection of the cluster.")
@click.option(
    "--bootstrap-servers",
    "--bootstrap-server",
    "bootstrap_servers",
    metavar="HOST:PORT,…",
    help="Instead of a KafkaConnection: bootstrap brokers without TLS and credentials.",
)
@click.option(
    _BASE,
    "rebalance",
    type=click.File("rb"),
    help="KafkaRebalance file whose spec, labels and annotations are the base.",
)
@click.option("--throttle", callback=checked_rate("--throttle"), help="Throttle rate per broker: 50Mi.")
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
@click.option("--apply", is_flag=True, help="Create the KafkaRebalance instead of printing it.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def drain(
    brokers: Replicas,
    server: ApiServer,
    *,
    connection: str | None,
    bootstrap_servers: str | None,
    rebalance: BinaryIO | None,
    throttle: str | None,
    name: str | None,
    namespace: str | None,
    apply: bool,
    output: str,
) -> None:
    """Make a KafkaRebalance that empties BROKERS, for example 4,5, with the fewest moves.

    Prints it for kubectl or Git; with --apply, creates it. The condition Drained reports when the brokers are empty.
    """
    base = parsed(_BASE, rebalance, read_rebalance) if rebalance else {}
    spec = base.get("spec") or {}
    if (connection is not None) + (bootstrap_servers is not None) + ("kafka" in spec) != 1:
        raise click.UsageError(f"give one of --connection, --bootstrap-servers and spec.kafka in the file of {_BASE}")
    if connection is not None:
        where, _, called = connection.rpartition("/")
        kafka = {"connectionRef": {"name": called, **({"namespace": where} if where else {})}}
        base = {**base, "spec": {**spec, "kafka": kafka}}
    servers = bootstrap_servers or connection or ""
    wanted = ExecuteRequest(namespace, name, servers, base, throttle, default_namespace=server.namespace)
    manifests = checked_manifests(wanted, of_brokers(wanted, brokers, (), ()), _BASE)
    if apply:
        asyncio.run(create(manifests, server))
    else:
        click.echo(render(manifests, output), nl=output == "json")
