"""kafka-rebalance doctor: what is wrong in a cluster and does not mend by itself.

Each check is a function from the cluster to findings. Reads only, unless an option orders a cure.
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
@click.option("--cancel-wedged", is_flag=True, help="Cancel the wedged reassignments, and no other ones.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def doctor(connection: ConnectionSettings, *, cancel_wedged: bool, output: str) -> None:
    """Look for what is wrong in a cluster and does not mend by itself; exit 1 when something is left.

    Reassignments that add and remove the same broker, which Kafka 4.3 keeps for ever.
    """
    findings = asyncio.run(_examine(connection, cancel_wedged=cancel_wedged))
    if output == "json":
        print_document(document(findings), output)
    elif findings:
        print_findings(findings)
    else:
        click.echo("nothing is wrong: no reassignment is wedged")
    if not all(found.mended for found in findings):
        sys.exit(EXIT_FOUND)


async def _examine(connection: ConnectionSettings, *, cancel_wedged: bool) -> list[Finding]:
    admin = connect(connection)
    try:
        return [
            *await wedged_reassignments(admin, cancel=cancel_wedged),  # adds and removes the same broker
        ]
    finally:
        await admin.close()
