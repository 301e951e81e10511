"""kafka-rebalance run: carries out a KafkaRebalance from a file, without Kubernetes.

The first Ctrl-C lets it come to a rest point, the second one ends it at once; so does SIGTERM. Ending it at once is as
safe as killing it: the next start goes on from the records.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from kafka_rebalance.cli.commands.reported_runs import report_of_resource
from kafka_rebalance.cli.commands.served_reports import HOST, report_served
from kafka_rebalance.cli.exit_codes import EXIT_NO
from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.cli.options.connection_options import optional_kafka_connection
from kafka_rebalance.cli.options.log_options import log_options
from kafka_rebalance.cli.options.resource_lookup import ApiServer, ResourceScope
from kafka_rebalance.cli.tables.progress_screen import ProgressScreen
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.telemetry.logs import configure_logging

if TYPE_CHECKING:
    from kafka_rebalance.app.local_run import Ended, Show

_INTERRUPTED = 130
_CarryOut = Callable[[asyncio.Event, "Show"], Coroutine[Any, Any, "Ended"]]
"""Carries out a rebalance until the event is set, and shows each state."""


@click.command("run")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--records",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Directory with the records of the run, for it alone. Created if it does not exist.",
)
@click.option("--rollback", is_flag=True, help="Roll back what the records say, also after success.")
@optional_kafka_connection
@click.option("--load-models", metavar="URI", help="Directory or s3:// URI with the load models of the pipeline.")
@click.option("--history", metavar="URI", help="Lake, a directory or s3:// URI, that gets the steps of the ended run.")
@click.option(
    "--serve",
    "port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Serve the report of the run on this port of 127.0.0.1, always up to date, until it ends.",
)
@log_options(["debug", "info", "warning", "error"], "error")
def run(
    file: BinaryIO,
    *,
    records: Path,
    rollback: bool,
    connection: ConnectionSettings | None,
    load_models: str | None,
    history: str | None,
    port: int | None,
    log_level: str,
    log_format: str,
) -> None:
    """Carry out the KafkaRebalance in FILE to its end, without Kubernetes.

    Repeat the same command to go on after Ctrl-C, a crash or an edit of FILE.
    """
    # These import the planner and the clients of Kafka.
    from kafka_rebalance.app.local_run import LocalSettings, run_locally
    from kafka_rebalance.cli.files.run_manifests import read_manifests, with_bootstrap_servers
    from kafka_rebalance.kafka.admin import connect

    manifests = parsed("FILE", file, read_manifests)
    if connection is not None:
        manifests = with_bootstrap_servers(manifests, connection.bootstrap_servers)
    settings = LocalSettings(records, rollback, load_models, history)
    namespace, name = manifests.where
    scope = ResourceScope(ApiServer(directory=records), namespace)
    carry_out = partial(run_locally, settings, manifests, lambda named, fence: connect(connection or named, fence))

    async def with_report(screen: ProgressScreen) -> int:
        async with report_served(port or 0, partial(report_of_resource, scope, name, None, None)):
            if port is not None:
                click.echo(f"http://{HOST}:{port}/ shows the report until the run ends", err=True)
            return await _until_the_end(carry_out, screen)

    with ProgressScreen() as screen:
        configure_logging(log_level, as_json=log_format == "json")  # after the screen has replaced stderr
        code = asyncio.run(with_report(screen))
    sys.exit(code)


async def _until_the_end(carry_out: _CarryOut, screen: ProgressScreen) -> int:
    """Carry it out, or bring it to a rest point by a signal. Returns the exit code."""
    stop = asyncio.Event()
    running = asyncio.create_task(carry_out(stop, screen.show))
    _on_signals(stop, running)
    try:
        ended = await running
    except asyncio.CancelledError:
        return _INTERRUPTED
    screen.end(ended.message)
    if ended.throttled:
        click.echo(
            "throttles could not be removed from every broker and topic: run the same command again when all "
            "brokers answer",
            err=True,
        )
    return _exit_code(ended)


def _exit_code(ended: "Ended") -> int:
    from kafka_rebalance.app.local_run import End

    codes = {End.DONE: EXIT_NO if ended.throttled else 0, End.PARTIAL: EXIT_NO, End.AT_REST: _INTERRUPTED}
    return codes[ended.end]


def _on_signals(stop: asyncio.Event, running: asyncio.Task[object]) -> None:
    loop = asyncio.get_running_loop()

    def asked() -> None:
        if stop.is_set():
            click.echo("ending at once; run the same command again to go on", err=True)
            running.cancel()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
            return
        click.echo("stopping: steps in flight finish, no new one starts; Ctrl-C again ends at once", err=True)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked)
