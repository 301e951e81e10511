"""kafka-rebalance pipeline metrics: reads what brokers report to Prometheus into a lake."""

import asyncio
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_rebalance.cli.options.connection_options import kafka_connection
from kafka_rebalance.cli.options.expected_cluster import check_cluster, cluster_id_option
from kafka_rebalance.cli.options.parsed_value import duration
from kafka_rebalance.cli.options.pipeline_extra import lake_store, require_extra
from kafka_rebalance.cli.tables.console import say
from kafka_rebalance.errors import Permanent
from kafka_rebalance.kafka.settings import ConnectionSettings, trusting
from kafka_rebalance.reasons import Reason

if TYPE_CHECKING:
    from kafka_rebalance.pipeline.metrics_reader import MetricQueries
    from kafka_rebalance.pipeline.prometheus import PrometheusServer

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("metrics")
@kafka_connection
@click.option("--lake", required=True, metavar="URI", help="Directory or s3://, gs:// or hdfs:// URI to write to.")
@click.option("--prometheus", "url", required=True, metavar="URL", help="Prometheus, or what has its HTTP API.")
@click.option("--token-file", type=_FILE, help="File with a bearer token.")
@click.option("--basic-auth-file", type=_FILE, help="File with USER:PASSWORD.")
@click.option("--ca-file", type=_FILE, help="PEM certificates of the CA. [default: those of the system]")
@click.option("--broker-label", default="instance", show_default=True, help="Label with the broker's id or host.")
@click.option("--bytes-in-query", metavar="PROMQL", help="Bytes per second that producers write, by topic and label.")
@click.option("--bytes-out-query", metavar="PROMQL", help="Bytes per second that consumers read, by topic and label.")
@click.option(
    "--window", type=duration(minimum=300), default="24h", show_default=True, help="How far back, the first time."
)
@cluster_id_option
def metrics_command(
    connection: ConnectionSettings,
    lake: str,
    url: str,
    token_file: Path | None,
    basic_auth_file: Path | None,
    ca_file: Path | None,
    broker_label: str,
    bytes_in_query: str | None,
    bytes_out_query: str | None,
    window: int,
    cluster_id: str | None,
) -> None:
    """Write the bytes in and out of each topic and broker, which Prometheus has, to a lake."""
    require_extra("pyarrow")
    from kafka_rebalance.pipeline import prometheus
    from kafka_rebalance.pipeline.metrics_reader import MetricQueries

    try:
        checked = prometheus.checked_url(url)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--prometheus") from error
    if token_file and basic_auth_file:
        raise click.UsageError("--token-file and --basic-auth-file exclude each other")
    server = prometheus.PrometheusServer(
        checked,
        _authorization(token_file, basic_auth_file),
        trusting(ca_file.read_text(encoding="utf-8")) if ca_file else None,
    )
    queries = MetricQueries(
        bytes_in_query or prometheus.default_query(prometheus.BYTES_IN, broker_label),
        bytes_out_query or prometheus.default_query(prometheus.BYTES_OUT, broker_label),
        broker_label,
    )
    asyncio.run(_read(connection, lake, server, queries, timedelta(seconds=window), cluster_id))


def _authorization(token_file: Path | None, basic_auth_file: Path | None) -> str:
    """The header; no error has what is in the files."""
    file = token_file or basic_auth_file
    if file is None:
        return ""
    text = file.read_text(encoding="utf-8", errors="replace").strip()
    if not text.isascii() or not text.isprintable() or not text or (basic_auth_file and ":" not in text):
        wanted = "USER:PASSWORD" if basic_auth_file else "a token"
        raise Permanent(Reason.METRICS_UNAVAILABLE, f"{file} does not have {wanted} in one line of ASCII")
    return f"Basic {b64encode(text.encode()).decode()}" if basic_auth_file else f"Bearer {text}"


async def _read(
    connection: ConnectionSettings,
    uri: str,
    server: "PrometheusServer",
    queries: "MetricQueries",
    window: timedelta,
    cluster_id: str | None,
) -> None:
    from kafka_rebalance.kafka.admin import connect
    from kafka_rebalance.pipeline.lake import Lake
    from kafka_rebalance.pipeline.metrics_reader import due, read_pieces, store_metrics

    admin = connect(connection)
    try:
        cluster = await admin.describe_cluster()
    finally:
        await admin.close()
    check_cluster(cluster.cluster_id, cluster_id)
    lake, name = Lake.open(uri), cluster.cluster_id
    with lake_store(uri):
        begin, end = await asyncio.to_thread(due, lake, name, window, datetime.now(UTC))
    rows, others = 0, set[str]()
    async for piece in read_pieces(server, queries, name, cluster.brokers, begin, end):
        with lake_store(uri):
            await asyncio.to_thread(store_metrics, lake, name, piece)
        rows += len(piece.rows)
        others |= piece.others
    windows = max(0, round((end - begin).total_seconds() / 300))
    say(f"cluster {name}: {windows} windows until {end:%Y-%m-%d %H:%M:%SZ}, {rows} rows")
    if windows and not rows:
        say(
            f"cluster {name}: the queries found no series in this time. Look at them in Prometheus; name others with "
            "--bytes-in-query and --bytes-out-query",
            err=True,
        )
    if others:
        say(f"cluster {name}: {len(others)} values of {queries.label} are no brokers of it, like {min(others)!r}")
