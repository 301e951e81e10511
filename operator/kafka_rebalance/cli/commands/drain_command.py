"""kafka-rebalance drain: makes a KafkaRebalance that empties brokers. Sends nothing to Kafka."""

import click

from kafka_rebalance.cli.commands.rebalance_submission import checked_manifests, print_or_create
from kafka_rebalance.cli.commands.steps_command import BROKER_LIST
from kafka_rebalance.cli.files.manifests import of_brokers
from kafka_rebalance.cli.options.manifest_options import BASE, ManifestOptions, manifest_options
from kafka_rebalance.model.goals import Strategy
from kafka_rebalance.model.topology import Replicas


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
@manifest_options
def drain(
    brokers: Replicas, *, connection: str | None, bootstrap_servers: str | None, only: bool, wanted: ManifestOptions
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
    print_or_create(checked_manifests(request, of_brokers(request, brokers, (), ())), wanted)
