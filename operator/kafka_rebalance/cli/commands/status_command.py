"""kafka-rebalance status: shows a KafkaRebalance; with --batch, all of its partitions in flight.

The status of a resource is bounded and lists at most 20 partitions in flight. The whole batch is computed from the
stored plan and the reassignments that Kafka lists. Only reads.
"""

import asyncio
from datetime import UTC, datetime

import click

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import KafkaRebalance, parse_rebalance
from kafka_rebalance.cli.options.resource_lookup import ResourceScope, connected, find, record_options, stores
from kafka_rebalance.cli.tables.console import print_document
from kafka_rebalance.cli.tables.current_batch import Batch, batch_of, direction_of, response
from kafka_rebalance.cli.tables.status_table import print_batch, print_summary
from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import KafkaReader
from kafka_rebalance.kube.client import Json, KubeClient
from kafka_rebalance.model.topology import ClusterState
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.observe.connections import connection_of, resolve
from kafka_rebalance.reconcile.state.record import LoadedRun, load_open_run


@click.command("status")
@click.argument("name")
@record_options
@click.option("--batch", is_flag=True, help="Show all partitions in flight, from the stored plan and from Kafka.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def status(name: str, scope: ResourceScope, *, batch: bool, output: str) -> None:
    """Show the progress of KafkaRebalance NAME, and what it waits for.

    JSON and YAML are the status of the resource; with --batch, they have the format of KIP-435's response.
    """
    if batch:
        found, on_disk = asyncio.run(_read_batch(scope, name, sizes=output == "table"))
        print_document(response(found), output) if output != "table" else print_batch(found, on_disk)
        return
    body = asyncio.run(_read(scope, name))
    if output == "table":
        print_summary(parse_rebalance(body), datetime.now(UTC))
    else:
        print_document(body.get("status") or {}, output)


async def _read(scope: ResourceScope, name: str) -> Json:
    async with connected(scope.records, scope.server) as kube:
        return await find(kube, scope.namespace, name)


async def _read_batch(scope: ResourceScope, name: str, *, sizes: bool) -> tuple[Batch, ReplicaBytes]:
    async with connected(scope.records, scope.server) as kube:
        rebalance = parse_rebalance(await find(kube, scope.namespace, name))
        opened = await _open_run(kube, rebalance)
        if opened is None:
            return Batch(), {}
        try:
            return await _ask_kafka(kube, rebalance, opened, sizes=sizes)
        except RebalanceError as error:
            raise Permanent(
                error.reason,
                f"{error.message} (--batch connects to Kafka from here, with spec.kafka; without --batch only the "
                "resource is read)",
            ) from error


async def _open_run(kube: KubeClient, rebalance: KafkaRebalance) -> LoadedRun | None:
    records = stores(kube)
    metadata = rebalance.metadata
    run = await records.runs.load(metadata.uid)
    if run is not None:
        return await load_open_run(records, run) if run.open else None
    moving = find_condition(rebalance.status.conditions, ConditionType.REBALANCING)
    if moving is not None and moving.status == "True":
        raise Permanent(
            Reason.RUN_NOT_FOUND,
            f"{metadata.namespace}/{metadata.name} is running, but namespace {kube.namespace} has no record of it: "
            "use --operator-namespace",
        )
    return None


async def _ask_kafka(
    kube: KubeClient, rebalance: KafkaRebalance, opened: LoadedRun, *, sizes: bool
) -> tuple[Batch, ReplicaBytes]:
    kafka, namespace = await connection_of(rebalance.spec.kafka, rebalance.metadata.namespace, kube)
    admin = connect(await resolve(kafka, namespace, kube))
    try:
        info = await admin.describe_cluster()
        if info.cluster_id != opened.run.cluster_id:
            raise Permanent(
                Reason.OTHER_CLUSTER,
                f"{kafka.bootstrap_servers} connects to cluster {info.cluster_id} from here, but the "
                f"plan is for {opened.run.cluster_id}",
            )
        direction = direction_of(rebalance, opened.run)
        moves = opened.turned(opened.origins, back=direction is not Direction.FORWARD).moves
        partitions = (await admin.describe_partitions({move.tp.topic for move in moves})).or_raise()
        cluster = ClusterState(info.cluster_id, info.brokers, partitions)
        replicas = rebalance.spec.execution.parallel_replica_count
        batch = batch_of(moves, cluster, direction, replicas)
        return batch, await _on_disk(admin, batch) if sizes else {}
    finally:
        await admin.close()


async def _on_disk(admin: KafkaReader, batch: Batch) -> ReplicaBytes:
    """Bytes of the replicas being added; brokers that do not answer are absent."""
    copying = {broker for row in batch.current for broker in row.adding}
    log_dirs = await admin.log_dirs(copying) if copying else {}
    return {
        (tp, broker): size
        for broker, dirs in log_dirs.items()
        for log_dir in dirs
        for tp, size in log_dir.replica_bytes.items()
    }
