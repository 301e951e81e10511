"""kafka-rebalance operator: run the operator in the foreground."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from kafka_rebalance.telemetry.logs import configure_logging


@click.command("operator")
@click.option("--namespace", help="Watch this namespace only.")
@click.option("--all-namespaces", is_flag=True, help="Watch every namespace.")
@click.option("--own-namespace", help="Where plans, origins and ledgers are kept; where it runs, unless given.")
@click.option(
    "--load-models",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory with the pipeline's load models, one per cluster id.",
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning"]), default="info", show_default=True)
def operator(
    namespace: str | None, all_namespaces: bool, own_namespace: str | None, load_models: Path | None, log_level: str
) -> None:
    """Run the operator against the current kubeconfig, or the account of the Pod."""
    if bool(namespace) == all_namespaces:
        raise click.UsageError("give either --namespace or --all-namespaces")
    configure_logging(log_level)
    from kafka_rebalance.app.run import run_operator

    asyncio.run(run_operator(namespace, own_namespace, load_models))
