"""kafka-rebalance doctor: finds problems that a cluster does not recover from.

Each check is a function from the cluster to findings. Only reads, unless an option requests a repair.
"""

from __future__ import annotations

import asyncio
import sys

import click

from kafka_rebalance.cli.commands.wedged_reassignments import wedged_reassignments
from kafka_rebalance.cli.options.connection_options import kafka_connection
from kafka_rebalance.cli.tables.console import print_document
from kafka_rebalance.cli.tables.findings_table import Finding, document, print_findings
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.settings import ConnectionSettings

EXIT_FOUND = 1


@click.command("doctor")
@kafka_connection
@click.option("--cancel-wedged", is_flag=True, help="Cancel the stuck reassignments and no others.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def doctor(connection: ConnectionSettings, *, cancel_wedged: bool, output: str) -> None:
    """Find problems that a Kafka cluster does not recover from. Exits with 1 if any is left.

    Finds stuck reassignments: those that add and remove the same broker, which Kafka 4.3 never completes.
    """
    findings = asyncio.run(_examine(connection, cancel_wedged=cancel_wedged))
    if output == "json":
        print_document(document(findings), output)
    elif findings:
        print_findings(findings)
    else:
        click.echo("no problems found: no reassignment is stuck")
    if not all(found.mended for found in findings):
        sys.exit(EXIT_FOUND)


async def _examine(connection: ConnectionSettings, *, cancel_wedged: bool) -> list[Finding]:
    admin = connect(connection)
    try:
        return [
            *await wedged_reassignments(admin, cancel=cancel_wedged),  # add and remove the same broker
        ]
    finally:
        await admin.close()
