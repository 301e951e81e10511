"""kafka-rebalance drain: makes a KafkaRebalance that empties brokers. Sends nothing to Kafka."""

import json
from typing import BinaryIO

import click

from kafka_rebalance.cli.commands.rebalance_submission import checked_manifests, print_or_create
from kafka_rebalance.cli.commands.steps_command import BROKER_LIST
from kafka_rebalance.cli.files.manifests import Manifest, of_brokers
from kafka_rebalance.cli.options.manifest_options import BASE, ManifestOptions, manifest_options
from kafka_rebalance.model.goals import Strategy
from kafka_rebalance.model.topology import Replicas
from kafka_rebalance.printable_text import printable


@click.command("drain")
@click.argument("brokers", type=BROKER_LIST)
@click.option("--connection", metavar="[NAMESPACE/]NAME", help="KafkaConnection of the cluster.")
@click.option(
    "--bootstrap-servers",
    "--bootstrap-server",
    "bootstrap_servers",
    metavar="HOST:PORT,…",
    help="Instead of a KafkaConnection: bootstrap brokers without TLS and credentials.",
)
@click.option("--only", is_flag=True, help="Move only what is on BROKERS: do not even the other brokers.")
@click.option(
    "--cluster",
    type=click.File("rb"),
    help="Cluster file of `snapshot`: warns if the plan overloads a broker, before anything is created.",
)
@manifest_options
def drain(
    brokers: Replicas,
    *,
    connection: str | None,
    bootstrap_servers: str | None,
    only: bool,
    cluster: BinaryIO | None,
    wanted: ManifestOptions,
) -> None:
    """Make a KafkaRebalance that empties BROKERS, for example 4,5, and evens the other brokers, with the fewest moves.

    Prints it for kubectl or Git; with --apply, creates it. The condition Drained reports when the brokers are empty.
    """
    base = wanted.read_base()
    spec = base.get("spec") or {}
    if (connection is not None) + (bootstrap_servers is not None) + ("kafka" in spec) != 1:
        raise click.UsageError(f"give one of --connection, --bootstrap-servers and spec.kafka in the file of {BASE}")
    if connection is not None:
        where, _, called = connection.rpartition("/")
        kafka = {"connectionRef": {"name": called, **({"namespace": where} if where else {})}}
        base = {**base, "spec": {**spec, "kafka": kafka}}
    if only:
        base = {**base, "spec": {**(base.get("spec") or {}), "strategy": Strategy.FORCED_MOVES_ONLY.value}}
    request = wanted.request(base, bootstrap_servers or connection or "")
    manifests = checked_manifests(request, of_brokers(request, brokers, (), ()))
    if cluster is not None:
        _warn(cluster, manifests[-1])
    print_or_create(manifests, wanted)


def _warn(cluster: BinaryIO, rebalance: Manifest) -> None:
    """Print the warnings of `plan` to stderr. Refused if there is no plan."""
    from kafka_rebalance.cli.commands.fleet_command import plan_as_alone  # imports the planner

    for warning in plan_as_alone(cluster.read(), json.dumps(rebalance).encode())["warnings"]:
        click.echo(printable(f"warning: {warning}"), err=True)
