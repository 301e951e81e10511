"""kafka-rebalance doctor: finds problems that a cluster does not recover from.

Each check is a function from the cluster to findings. Only reads, unless an option requests a repair.
"""

import asyncio
import sys

import click

from kafka_rebalance.cli.commands.leftover_throttles import leftover_throttles
from kafka_rebalance.cli.commands.permission_findings import permission_findings
from kafka_rebalance.cli.commands.wedged_reassignments import wedged_reassignments
from kafka_rebalance.cli.exit_codes import EXIT_NO
from kafka_rebalance.cli.options.connection_options import kafka_connection
from kafka_rebalance.cli.options.resource_lookup import ApiServer, api_server_options, connected
from kafka_rebalance.cli.tables.console import print_document
from kafka_rebalance.cli.tables.findings_table import Finding, document, print_findings
from kafka_rebalance.cli.tables.phrases import counted
from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.execution.ledger import Ledger
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import KafkaAdmin
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.reasons import Reason


@click.command("doctor")
@kafka_connection
@click.option("--cancel-wedged", is_flag=True, help="Cancel the stuck reassignments and no others.")
@click.option("--throttles", is_flag=True, help="Look for replication throttles that no reassignment needs any more.")
@click.option("--clear-throttles", is_flag=True, help="Remove these throttles, also those that others have set.")
@click.option(
    "--operator-namespace",
    metavar="NAMESPACE",
    help="Namespace of the operator's records: throttles that it has set are left to it. "
    "[default: kafka-rebalance; in a Pod, the Pod's]",
)
@api_server_options
@click.option("--no-operator", is_flag=True, help="No operator works on this cluster: no records are read.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def doctor(
    connection: ConnectionSettings,
    *,
    cancel_wedged: bool,
    throttles: bool,
    clear_throttles: bool,
    operator_namespace: str | None,
    server: ApiServer,
    no_operator: bool,
    output: str,
) -> None:
    """Find problems that a Kafka cluster does not recover from. Exits with 4 if any is left.

    Finds stuck reassignments: those that add and remove the same broker, which Kafka 4.3 never completes. And finds
    permissions in Kafka that the operator needs and the user of this command does not have. With
    --throttles it also finds replication throttles that no reassignment needs any more.
    """

    of_operator = 0

    async def examine() -> list[Finding]:
        admin = connect(connection)
        try:
            missing = await permission_findings(admin)  # what the operator would need
            try:
                found = await wedged_reassignments(admin, cancel=cancel_wedged)  # add and remove the same broker
            except RebalanceError as error:
                if missing and error.reason == Reason.KAFKA_AUTHORIZATION_FAILED:
                    return missing  # they say which permission that is
                raise
            if throttles or clear_throttles:

                async def ledger() -> Ledger:
                    nonlocal of_operator
                    read = Ledger() if no_operator else await _ledger_of(admin, operator_namespace, server)
                    of_operator = max(of_operator, read.counts["rate"] + read.counts["list"])
                    return read

                found += await leftover_throttles(admin, ledger, clear=clear_throttles)
            return [*found, *missing]
        finally:
            await admin.close()

    findings = asyncio.run(examine())
    if output == "json":
        print_document(document(findings), output)
    elif findings:
        print_findings(findings)
    else:
        more = ", and no throttle is left behind" if throttles or clear_throttles else ""
        click.echo(f"no problems found: no reassignment is stuck, no permission is missing{more}")
    if of_operator:
        click.echo(
            f"not checked: {counted(of_operator, 'throttle config')} that the operator has set. It may restore values "
            "that others have left behind: run this command again when the operator has nothing in progress",
            err=True,
        )
    if not all(found.mended for found in findings):
        sys.exit(EXIT_NO)


async def _ledger_of(admin: KafkaAdmin, operator_namespace: str | None, server: ApiServer) -> Ledger:
    """What the operator has set in this cluster, by its own record."""
    from kafka_rebalance.kube.ledger_store import LedgerStore
    from kafka_rebalance.reconcile.throttle.ledger_cache import stored_ledger

    cluster_id = (await admin.describe_cluster()).cluster_id
    async with connected(operator_namespace, server) as kube:
        ledger = await stored_ledger(LedgerStore(kube), cluster_id)
        if ledger is None:
            raise Permanent(
                Reason.THROTTLE_LEDGER_MISSING,
                f"namespace {kube.namespace} has no throttle ledger of cluster {cluster_id}: name the namespace of the "
                "operator's records with --operator-namespace, or use --no-operator if no operator works on it",
            )
    return ledger
