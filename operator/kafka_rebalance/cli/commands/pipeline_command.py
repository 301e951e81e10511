"""kafka-rebalance pipeline: samples a live cluster into a lake, and computes load models from a lake.

Spark and Arrow come with the ``pipeline`` extra and are imported when a command runs.
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import click

from kafka_rebalance.cli.commands.compact_command import compact
from kafka_rebalance.cli.commands.durations_command import history
from kafka_rebalance.cli.commands.each_cluster import each_cluster
from kafka_rebalance.cli.commands.fleet_command import fleet
from kafka_rebalance.cli.commands.metrics_command import metrics_command
from kafka_rebalance.cli.options.connection_options import kafka_connection
from kafka_rebalance.cli.options.expected_cluster import check_cluster, cluster_id_option
from kafka_rebalance.cli.options.parsed_value import duration
from kafka_rebalance.cli.options.pipeline_extra import lake_store, require_extra
from kafka_rebalance.cli.options.spark_options import check_spark, clusters_option, spark_options
from kafka_rebalance.cli.tables.broker_load_lines import known_broker_loads, unknown_broker_loads
from kafka_rebalance.cli.tables.console import say
from kafka_rebalance.cli.tables.job_progress import job_progress
from kafka_rebalance.cli.tables.quality_lines import quality_lines, time_text
from kafka_rebalance.cli.tables.size_forecast_lines import known_forecasts, unknown_forecasts
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_bytes, format_rate

_NAMED = 5
"""The maximum number of skipped files that are named per cluster."""


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
@click.option(
    "--consumer-groups/--no-consumer-groups",
    default=True,
    show_default=True,
    help="Read what consumer groups have committed, for bytes out. Takes Describe on groups.",
)
@click.option(
    "--limit-as",
    metavar="NAME",
    help="Count the bytes as those of NAME, which may write a 32nd of the volume a day. [default: no limit]",
)
@cluster_id_option
def sample_command(
    connection: ConnectionSettings,
    lake: str,
    interval: int,
    count: int,
    limit_as: str | None,
    cluster_id: str | None,
    *,
    consumer_groups: bool,
) -> None:
    """Write the sizes and offsets of all partitions of a live cluster to a lake."""
    require_extra("pyarrow")
    sampling = _sample(connection, lake, interval, count, cluster_id, limit_as, consumer_groups=consumer_groups)
    asyncio.run(sampling)


@pipeline.command("windows")
@click.option("--lake", required=True, metavar="URI", help="Directory or URI with the samples, and for the windows.")
@clusters_option
@click.option(
    "--window",
    type=duration(minimum=3600),
    default="24h",
    show_default=True,
    help="Store the hours of this long before the newest sample.",
)
@click.option("--stream", is_flag=True, help="Follow new samples of all clusters until stopped.")
@click.option("--once", is_flag=True, help="With --stream: end when all samples that are there have been followed.")
@click.option(
    "--every", type=duration(minimum=1), default="1m", show_default=True, help="With --stream: how often to look."
)
@click.option(
    "--lateness",
    type=duration(minimum=0),
    default="10m",
    show_default=True,
    help="With --stream: how long to wait for late samples of an hour.",
)
@spark_options
def windows_command(
    lake: str,
    clusters: tuple[str, ...],
    window: int,
    every: int,
    lateness: int,
    master: str | None,
    remote: str | None,
    *,
    stream: bool,
    once: bool,
) -> None:
    """Store the windows of whole hours, so that load models need not compute them again."""
    if stream and clusters:
        raise click.UsageError("--stream follows all clusters of the lake: omit --cluster")
    if once and not stream:
        raise click.UsageError("--once is for --stream; without --stream the command ends anyway")
    if stream and remote:
        raise click.UsageError(
            "--stream computes each batch in this program, which a Spark Connect server cannot: run `pipeline windows` "
            "with --remote and without --stream each hour, or --stream with --master"
        )
    check_spark(master, remote)
    from kafka_rebalance.pipeline import spark_session
    from kafka_rebalance.pipeline.job_turns import JobTurns
    from kafka_rebalance.pipeline.lake import Lake, chosen_clusters
    from kafka_rebalance.pipeline.window_job import store_windows
    from kafka_rebalance.pipeline.windows_room import WindowsRoom

    with lake_store(lake):
        turns = JobTurns(Lake.open(lake), "windows")
        chosen = turns.in_order(chosen_clusters(lake, clusters))
    with lake_store(lake), spark_session.spark_session(master, remote) as spark:
        usable = partial(spark_session.answers, spark)
        if stream:
            from kafka_rebalance.pipeline.window_stream import follow

            interval = None if once else timedelta(seconds=every)
            left_out = set[str]()

            def each(some: Sequence[str], store: Callable[[str], None]) -> None:
                several = max(2, len(chosen))  # more clusters may come
                left_out.update(each_cluster(turns.in_order(some), store, several, begin=turns.begin, usable=usable))

            follow(spark, lake, timedelta(seconds=lateness), interval, _report_windows, each).awaitTermination()
            if left_out:
                raise Refused(Reason.NO_SAMPLES, f"no windows for {len(left_out)} clusters: {', '.join(left_out)}")
            return

        room = WindowsRoom(Lake.open(lake))

        def store(cluster_id: str) -> None:
            with job_progress(spark, f"cluster {cluster_id}"):
                outcome = store_windows(spark, lake, cluster_id, timedelta(seconds=window), datetime.now(UTC), room)
            _report_windows(outcome)

        failed = each_cluster(chosen, store, begin=turns.begin, usable=usable)
    if failed:
        raise Refused(Reason.NO_SAMPLES, f"no windows for {len(failed)} of {len(chosen)} clusters: {', '.join(failed)}")


@pipeline.command("load-model")
@click.option(
    "--lake",
    required=True,
    metavar="URI",
    help="Directory or URI with the samples; the load models are written there too.",
)
@clusters_option
@click.option(
    "--window",
    type=duration(minimum=1),
    default="24h",
    show_default=True,
    help="Use samples of this long before the newest one.",
)
@click.option("--broker-loads", is_flag=True, help="Also compute what each broker carries, and hot partitions.")
@click.option("--from-samples", is_flag=True, help="Compute everything from samples, also hours with stored windows.")
@spark_options
def load_model_command(
    lake: str,
    clusters: tuple[str, ...],
    window: int,
    master: str | None,
    remote: str | None,
    *,
    broker_loads: bool,
    from_samples: bool,
) -> None:
    """Compute a load model per cluster from the samples of a lake, with Spark."""
    check_spark(master, remote)
    from kafka_rebalance.pipeline import job, spark_session
    from kafka_rebalance.pipeline.job_turns import JobTurns
    from kafka_rebalance.pipeline.lake import Lake, chosen_clusters

    with lake_store(lake):
        turns = JobTurns(Lake.open(lake), "load-model")
        chosen = turns.in_order(chosen_clusters(lake, clusters))
    with lake_store(lake), spark_session.spark_session(master, remote) as spark:

        def build(cluster_id: str) -> None:
            started, covered = time.monotonic(), timedelta(seconds=window)
            with job_progress(spark, f"cluster {cluster_id}"):
                outcome = job.build(
                    spark,
                    lake,
                    cluster_id,
                    covered,
                    datetime.now(UTC),
                    use_stored=not from_samples,
                    by_broker=broker_loads,
                )
            _report(outcome, lake, time.monotonic() - started)

        usable = partial(spark_session.answers, spark)
        failed = each_cluster(chosen, build, begin=turns.begin, usable=usable)
    if failed:
        raise Refused(Reason.NO_SAMPLES, f"no model for {len(failed)} of {len(chosen)} clusters: {', '.join(failed)}")


@pipeline.command("quality")
@click.option("--lake", required=True, metavar="URI", help="Directory or URI with the samples.")
@clusters_option
@click.option(
    "--window", type=duration(minimum=1), default="24h", show_default=True, help="As for `pipeline load-model`."
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format.")
def quality_command(lake: str, clusters: tuple[str, ...], window: int, output: str) -> None:
    """Report how complete the samples of a lake are, and how sure the load models."""
    require_extra("pyarrow")
    from kafka_rebalance.pipeline.lake import Lake, chosen_clusters
    from kafka_rebalance.pipeline.quality import report

    opened = Lake.open(lake)
    with lake_store(lake):
        reports = [
            report(opened, cluster_id, timedelta(seconds=window), datetime.now(UTC))
            for cluster_id in chosen_clusters(lake, clusters)
        ]
    if output == "json":
        click.echo(json.dumps([each.to_json() for each in reports], indent=2))
        return
    for line in (line for each in reports for line in quality_lines(each)):
        say(line)


def _report(outcome: Any, lake: str, seconds: float) -> None:
    from kafka_rebalance.pipeline.partition_loads import Method
    from kafka_rebalance.storage.locations import without_credentials

    model = outcome.model
    stored = f" ({outcome.stored_hours} hours from stored windows)" if outcome.stored_hours else ""
    say(
        f"cluster {outcome.cluster_id}: {model.partitions} partitions, {format_bytes(model.size_bytes)} "
        f"(one replica each), in {format_rate(model.bytes_in_per_second)}, {outcome.samples} samples from "
        f"{time_text(outcome.start)} to {time_text(outcome.end)}{stored}, {seconds:.1f} s -> "
        f"{without_credentials(lake)}/{outcome.artefact}"
    )
    for line in known_forecasts(model):
        say(f"cluster {outcome.cluster_id}: size {line}")
    for line in known_broker_loads(model):
        say(f"cluster {outcome.cluster_id}: {line}")
    notes = [
        (model.methods.get(Method.UNKNOWN, 0), "partitions have no rate: see `kafka-rebalance pipeline quality`"),
        (outcome.partial_batches, "samples are incomplete: a broker did not answer"),
        (outcome.dropped_batches, "samples of a second sampler at the same time were left out"),
    ]
    for number, what in notes:
        if number:
            say(f"cluster {outcome.cluster_id}: {number} {what}", err=True)
    for line in unknown_forecasts(model):
        say(f"cluster {outcome.cluster_id}: size {line}", err=True)
    for line in unknown_broker_loads(model):
        say(f"cluster {outcome.cluster_id}: {line}", err=True)
    _report_skipped(outcome.cluster_id, outcome.skipped)


def _report_windows(outcome: Any) -> None:
    written = outcome.written
    span = f" from {time_text(written[0])} to {time_text(written[-1] + timedelta(hours=1))}" if written else ""
    say(
        f"cluster {outcome.cluster_id}: stored the windows of {len(written)} hours{span}, of {outcome.samples} "
        f"samples; {outcome.unchanged} hours were stored already"
    )
    _report_skipped(outcome.cluster_id, outcome.skipped)


def _report_skipped(cluster_id: str, skipped: Sequence[Any]) -> None:
    if skipped:
        say(f"cluster {cluster_id}: {len(skipped)} files were skipped", err=True)
    for file in skipped[:_NAMED]:
        say(f"  {file.name}: {file.why}", err=True)


async def _sample(
    connection: ConnectionSettings,
    lake: str,
    interval: float,
    count: int,
    cluster_id: str | None,
    limit_as: str | None,
    *,
    consumer_groups: bool,
) -> None:
    from kafka_rebalance.kafka.admin import connect
    from kafka_rebalance.pipeline.sampler import Sampler

    admin = connect(connection)
    sampler = Sampler(admin, consumer_groups=consumer_groups)
    try:
        await _sample_regularly(lambda: _one(sampler, lake, cluster_id, limit_as), interval, count)
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
            say(f"no sample ({error.reason}): {error.message}", err=True)
        taken += 1
    if not stored and last is not None:
        raise last


async def _one(sampler: Any, lake: str, cluster_id: str | None = None, limit_as: str | None = None) -> None:
    from kafka_rebalance.pipeline.sample_manifests import write_batch
    from kafka_rebalance.storage.locations import store_failed, without_credentials

    batch = await sampler.sample()
    check_cluster(batch.cluster_id, cluster_id)
    try:
        permit = partial(_claim, lake, limit_as) if limit_as else None
        manifest = await asyncio.to_thread(write_batch, lake, batch, permit)
    except OSError as error:
        raise store_failed(f"the sample was not stored in {without_credentials(lake)}", error) from error
    missing = f", no answer from brokers {', '.join(map(str, batch.missing_brokers))}" if batch.missing_brokers else ""
    size = format_bytes(manifest.size_bytes)
    if batch.commits_missing:
        say(
            f"{batch.sampled_at:%H:%M:%S} cluster {batch.cluster_id}: bytes out are not measured, because consumer "
            f"groups cannot be read ({batch.commits_missing}): permit Describe on all groups, read "
            "Prometheus with `pipeline metrics`, or use --no-consumer-groups",
            err=True,
        )
    say(f"{batch.sampled_at:%H:%M:%S} cluster {batch.cluster_id}: {manifest.rows} rows, {size}{missing}")


def _claim(lake: str, name: str, count: int) -> None:
    """Count the bytes of a sample. Transient (DailyLimit) if they are more than ``name`` has left that day."""
    from kafka_rebalance.storage.daily_bytes import claim_bytes, daily_share
    from kafka_rebalance.storage.locations import open_location

    location = open_location(lake)
    most = daily_share(location)
    if not claim_bytes(location, "samplers", name, datetime.now(UTC).date(), count, most):
        raise Transient(
            Reason.DAILY_LIMIT,
            f"the samples of {name} have reached the limit of {most / 2**20:.0f} MiB a day: use a longer --interval. "
            "Sampling continues after midnight UTC",
        )


pipeline.add_command(compact)
pipeline.add_command(fleet)
pipeline.add_command(metrics_command)
pipeline.add_command(history)
