"""kafka-rebalance operator: runs the operator in the foreground."""

import asyncio
import secrets
import signal
import socket
import sys
from collections.abc import Callable

import click

from kafka_rebalance.cli.options.log_options import log_options
from kafka_rebalance.cli.options.namespace_scope import watched_namespaces
from kafka_rebalance.cli.options.parsed_value import duration
from kafka_rebalance.telemetry.logs import configure_logging


def _own_name() -> str:
    """A new identity for each process, so that a restart waits until the lease of its predecessor has expired."""
    return f"{socket.gethostname()}-{secrets.token_hex(4)}"


def _port_option(option: str, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(option, type=click.IntRange(0, 65535), default=0, show_default="0: none", help=text)


@click.command("operator")
@watched_namespaces
@click.option(
    "--own-namespace",
    help="Namespace of plans, origins, ledgers and the lease. Among operators with the same namespace, one leads "
    "and the others are on standby. [default: the namespace of this Pod]",
)
@click.option(
    "--identity",
    envvar="POD_NAME",
    show_envvar=True,
    default=_own_name,
    show_default="the host's name and a random suffix",
    help="Holder identity in the lease. It must be unique: a process takes over a lease with its own identity at once.",
)
@click.option(
    "--lease-duration",
    "lease_seconds",
    type=duration(minimum=3),
    default="30s",
    show_default=True,
    help="A standby takes over when the lease was not renewed for this long.",
)
@click.option(
    "--load-models",
    metavar="URI",
    help="Directory or s3:// URI with the load models of the pipeline, one per cluster id.",
)
@click.option(
    "--history",
    metavar="URI",
    help="Lake, a directory or s3:// URI, that gets the steps of each run that has ended. [default: none]",
)
@click.option(
    "--samples",
    metavar="URI",
    help="Lake, a directory or s3:// URI, for the samples of KafkaConnections with spec.sampling. [default: none]",
)
@_port_option("--health-port", "Port for GET /livez and GET /readyz, which answer 200, or 503 with the reasons.")
@_port_option("--metrics-port", "Port for GET /metrics, in the formats of Prometheus.")
@click.option(
    "--report-port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="0: none",
    help="Port for GET /namespaces/NAMESPACE/kafkarebalances/NAME, the live report of a KafkaRebalance. Requests need "
    "the bearer token of a user who may get it.",
)
@click.option(
    "--report-audience",
    metavar="AUDIENCE",
    help="Accept only tokens for this audience on --report-port. [default: tokens for the API server]",
)
@click.option(
    "--require-connections",
    is_flag=True,
    help="Accept connections from KafkaConnections only: a resource with an inline connection is refused.",
)
@log_options(["debug", "info", "warning"], "info")
def operator(
    namespaces: tuple[str, ...],
    own_namespace: str | None,
    identity: str,
    lease_seconds: int,
    load_models: str | None,
    history: str | None,
    samples: str | None,
    health_port: int,
    metrics_port: int,
    report_port: int,
    report_audience: str | None,
    require_connections: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Run the operator with the current kubeconfig, or the service account of the Pod."""
    # The imports take seconds, and process 1 of a container ignores signals without a handler.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    configure_logging(log_level, as_json=log_format == "json")
    from kafka_rebalance.app.process import Settings, run_operator

    settings = Settings(
        identity,
        namespaces,
        own_namespace,
        load_models,
        lease_seconds,
        health_port,
        require_connections,
        history,
        metrics_port,
        report_port,
        report_audience,
        samples,
    )
    asyncio.run(run_operator(settings))
