"""kafka-rebalance snapshot: writes a live cluster to a file for plan. Only reads from Kafka."""

import asyncio
import gzip
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click

from kafka_rebalance.cli.options.connection_options import kafka_connection
from kafka_rebalance.cli.tables.phrases import counted
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import KafkaReader, LogDir
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.reassignment_file import ANY_DIR
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.decide.broker_capacities import broker_capacities
from kafka_rebalance.reconcile.runs.known_loads import known_loads, live_sizes


@click.command("snapshot")
@kafka_connection
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write; gzipped if its name ends in .gz. [default: stdout]",
)
def snapshot(connection: ConnectionSettings, output: Path | None) -> None:
    """Write the brokers, racks, replicas and sizes of a live cluster as JSON, for offline planning."""
    cluster, omitted = asyncio.run(_read(connection))
    text = json.dumps(cluster)
    if output is None:
        click.echo(text)
    elif output.suffix == ".gz":
        output.write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        output.write_text(text + "\n", encoding="utf-8")
    if omitted:
        what = counted(omitted, "partition is", "partitions are")
        click.echo(f"warning: {what} being reassigned and omitted: a plan from this file ignores them", err=True)


async def _read(connection: ConnectionSettings) -> tuple[dict[str, Any], int]:
    """The cluster, and how many partitions are left out because they are in flight."""
    admin = connect(connection)
    try:
        return await _cluster(admin)
    finally:
        await admin.close()


def _several(dirs: Mapping[BrokerId, Collection[LogDir]]) -> Mapping[BrokerId, Collection[LogDir]]:
    """The brokers with more than one log dir: the replicas of others have nowhere else to go."""
    return {broker: found for broker, found in dirs.items() if len(found) > 1}


def _log_dir(found: LogDir) -> dict[str, Any]:
    return {"path": found.path} | ({"size": found.total_bytes} if found.total_bytes > 0 else {})


async def _cluster(admin: KafkaReader) -> tuple[dict[str, Any], int]:
    info = await admin.describe_cluster()
    partitions = await admin.describe_partitions()
    dirs = await admin.log_dirs(tuple(info.brokers))
    sizes = known_loads(live_sizes(dirs), None, partitions).sizes
    disks = {b: of[LoadResource.DISK] for b, of in broker_capacities(None, info.brokers, dirs).items() if of}
    places = _several(dirs)
    at = {(b, tp): d.path for b, found in places.items() for d in found for tp in d.replica_bytes}
    cluster = {
        "brokers": [
            {"id": broker.id, "rack": broker.rack}
            | ({"capacity": {"disk": disks[b]}} if b in disks else {})
            | ({"logDirs": [_log_dir(found) for found in places[b]]} if b in places else {})
            for b, broker in sorted(info.brokers.items())
        ],
        "partitions": [
            {"topic": tp.topic, "partition": tp.partition, "replicas": list(state.replicas)}
            | ({"size": sizes[tp].new_copy} if tp in sizes else {})
            | ({"log_dirs": [at.get((b, tp), ANY_DIR) for b in state.replicas]} if places else {})
            # A partition in flight has additional replicas; without it here it is not planned.
            for tp, state in sorted(partitions.items())
            if not state.in_flight
        ],
    }
    return cluster, sum(state.in_flight for state in partitions.values())
