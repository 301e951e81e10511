"""kafka-rebalance pipeline: samples a live cluster into a lake, and computes load models from a lake.

Spark and Arrow come with the ``pipeline`` extra and are imported when a command runs.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from kafka_rebalance.cli.options.connection_options import kafka_connection
from kafka_rebalance.cli.options.parsed_value import duration
from kafka_rebalance.errors import Permanent, RebalanceError, Refused, Transient
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_bytes, format_rate


@click.group()
def pipeline() -> None:
    """Sample a cluster, and compute load models with Spark."""


@pipeline.command("sample")
@kafka_connection
@click.option("--lake", required=True, metavar="URI", help="Directory or s3://, gs:// or hdfs:// URI to write to.")
@click.option("--interval", type=duration(minimum=1), default="10s", show_default=True, help="Time between samples.")
@click.option(
    "--count", type=click.IntRange(min=0), default=1, show_default=True, help="Number of samples; 0: until stopped."
)
def sample_command(connection: ConnectionSettings, lake: str, interval: int, count: int) -> None:
    """Write the sizes and offsets of all partitions of a live cluster to a lake."""
    _require_extra("pyarrow")
    asyncio.run(_sample(connection, lake, interval, count))


@pipeline.command("load-model")
@click.option(
    "--lake",
    required=True,
    metavar="URI",
    help="Directory or URI with the samples; the load models are written there too.",
)
@click.option("--cluster", "clusters", multiple=True, metavar="ID", help="Only this cluster id. May be repeated.")
@click.option(
    "--window",
    type=duration(minimum=1),
    default="24h",
    show_default=True,
    help="Use samples of this long before the newest one.",
)
@click.option(
    "--master", default=None, metavar="URL", help="Spark master. [default: that of spark-submit, else local[*]]"
)
def load_model_command(lake: str, clusters: tuple[str, ...], window: int, master: str | None) -> None:
    """Compute a load model per cluster from the samples of a lake, with Spark."""
    _require_extra("pyarrow")
    _require_extra("pyspark")
    from kafka_rebalance.pipeline import job

    chosen = job.chosen_clusters(lake, clusters)
    failed: list[str] = []
    with job.spark_session(master) as spark:
        for cluster_id in chosen:
            started = time.monotonic()
            try:
                outcome = job.build(spark, lake, cluster_id, timedelta(seconds=window))
            except Refused as refused:
                if len(chosen) == 1:
                    raise
                failed.append(cluster_id)
                click.echo(f"cluster {cluster_id}: refused ({refused.reason}): {refused.message}", err=True)
                continue
            _report(outcome, lake, time.monotonic() - started)
    if failed:
        raise Refused(Reason.NO_SAMPLES, f"no model for {len(failed)} of {len(chosen)} clusters: {', '.join(failed)}")


def _report(outcome: Any, lake: str, seconds: float) -> None:
    from kafka_rebalance.pipeline.job import as_utc

    model = outcome.model
    size = format_bytes(sum(load.size_bytes for load in model.partitions.values()))
    rate = format_rate(sum(load.bytes_in_per_second or 0.0 for load in model.partitions.values()))
    click.echo(
        f"cluster {model.cluster_id}: {len(model.partitions)} partitions, {size} (one replica each), in {rate}, "
        f"{model.samples} samples from {as_utc(model.window_start)} to {as_utc(model.measured_at)}, "
        f"{seconds:.1f} s -> {lake.partition('?')[0].rstrip('/')}/{outcome.artefact}"
    )
    notes = [
        (outcome.unknown_rates, "partitions have no rate: fewer than two comparable samples"),
        (outcome.partial_batches, "samples are incomplete: a broker did not answer"),
        (outcome.missing_files, "samples were skipped: their file is missing or has another size"),
    ]
    for number, what in notes:
        if number:
            click.echo(f"cluster {model.cluster_id}: {number} {what}", err=True)


async def _sample(connection: ConnectionSettings, lake: str, interval: float, count: int) -> None:
    from kafka_rebalance.kafka.admin import connect

    admin = connect(connection)
    try:
        await _sample_regularly(lambda: _one(admin, lake), interval, count)
    finally:
        await admin.close()


async def _sample_regularly(take: Callable[[], Any], interval: float, count: int) -> None:
    """Sample at a fixed rate: a slow or failed sample does not delay the next. Raises the last error if all failed."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    taken = stored = 0
    last: RebalanceError | None = None
    while not count or taken < count:
        if taken:
            await asyncio.sleep(max(0.0, begin + taken * interval - loop.time()))
        try:
            await take()
            stored += 1
        except Transient as error:
            last = error
            click.echo(f"no sample ({error.reason}): {error.message}", err=True)
        taken += 1
    if not stored and last is not None:
        raise last


async def _one(admin: Any, lake: str) -> None:
    from kafka_rebalance.pipeline.lake import write_batch
    from kafka_rebalance.pipeline.sampler import sample

    batch = await sample(admin, lambda: datetime.now(UTC))
    manifest = await asyncio.to_thread(write_batch, lake, batch)
    missing = f", no answer from brokers {', '.join(map(str, batch.missing_brokers))}" if batch.missing_brokers else ""
    size = format_bytes(manifest.size_bytes)
    click.echo(f"{batch.sampled_at:%H:%M:%S} cluster {batch.cluster_id}: {manifest.rows} rows, {size}{missing}")


def _require_extra(module: str) -> None:
    try:
        __import__(module)
    except ImportError as error:
        raise Permanent(
            Reason.EXTRA_MISSING, f"{module} is not installed: pip install 'kafka-rebalance-operator[pipeline]'"
        ) from error
