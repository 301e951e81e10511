"""kafka-rebalance pipeline fleet: plans many clusters with Spark, each exactly as ``plan`` plans it alone."""

import io
from collections.abc import Sequence
from contextlib import redirect_stderr
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.cli.files.rebalance_file import read_spec
from kafka_rebalance.cli.options.spark_options import check_spark, master_option
from kafka_rebalance.cli.tables.console import plain_console, plain_table, print_document
from kafka_rebalance.errors import Permanent, Refused
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.printable_text import printable
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_bytes

if TYPE_CHECKING:
    from kafka_rebalance.pipeline.fleet import FleetResult

_HEADERS = ("CLUSTER", "BROKERS", "PARTITIONS", "REPLICAS", "MOVES", "BOUND", "TO COPY", "HASH")


@click.command("fleet")
@click.option(
    "--snapshots",
    required=True,
    metavar="PLACE",
    help="Directory or URI with cluster files of snapshot, *.json or *.json.gz; its last part may be a pattern with *.",
)
@click.option("--rebalance", type=click.File("rb"), help="KafkaRebalance file with topics, brokers and goals.")
@click.option("--plans", metavar="PLACE", help="Directory or URI for the plans, one file CLUSTER.json for each.")
@master_option
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def fleet(snapshots: str, rebalance: BinaryIO | None, plans: str | None, master: str | None, output: str) -> None:
    """Plan many clusters in one Spark job, each as `plan` does."""
    check_spark(master)
    from kafka_rebalance.pipeline.fleet import find_snapshots, plan_each
    from kafka_rebalance.pipeline.spark_session import spark_session
    from kafka_rebalance.storage.locations import store_failed

    try:
        directory, found = find_snapshots(snapshots)
    except OSError as error:
        raise store_failed("the snapshots cannot be listed", error) from error
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint="--snapshots") from wrong
    if not found:
        raise click.BadParameter("no *.json or *.json.gz is there: see `snapshot`", param_hint="--snapshots")
    spec = parsed("--rebalance", rebalance, _checked) if rebalance is not None else None
    with spark_session(master) as spark:
        results = plan_each(spark, directory, found, partial(plan_as_alone, rebalance=spec), plans)
    if output == "table":
        _print(results)
    else:
        rows = [{"cluster": r.cluster, "error": r.error or None, **(r.document or {})} for r in results]
        print_document({"clusters": rows}, output)
    failed = [result.cluster for result in results if result.document is None]
    if failed:
        names = ", ".join(failed[:10]) + (", …" if len(failed) > 10 else "")
        raise Permanent(
            Reason.PLANS_MISSING, f"{len(failed)} of {len(results)} clusters have no plan: {names}; see their errors"
        )


def _checked(rebalance: bytes) -> bytes:
    read_spec(rebalance)  # so that an invalid one is said once, not by every task
    return rebalance


@without_collector()
def plan_as_alone(cluster: bytes, rebalance: bytes | None) -> dict[str, Any]:
    """What ``plan --cluster … --rebalance … -o json`` prints, with its warnings and the size of the cluster."""
    from kafka_rebalance.cli.commands.plan_command import OF_OUTPUT, plan, plan_options, planned

    given = (option for option in plan.params if option.name not in {"cluster", "rebalance", *OF_OUTPUT})
    no_options: dict[str, Any] = {option.name: () if getattr(option, "multiple", False) else None for option in given}
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            options = plan_options(
                cluster=io.BytesIO(cluster),
                rebalance=io.BytesIO(rebalance) if rebalance is not None else None,
                **no_options,
            )
            document = planned(options, everything=False).document
    except click.UsageError as wrong:
        raise Refused(Reason.CLUSTER_FILE_INVALID, wrong.format_message()) from wrong
    request = options.request
    document["clusterSize"] = {"brokers": len(request.brokers), "partitions": len(request.partitions)}
    document["warnings"] = [line.removeprefix("warning: ") for line in said.getvalue().splitlines()]
    return document


def _print(results: Sequence["FleetResult"]) -> None:
    table = plain_table(*_HEADERS, padding=(0, 2, 0, 0))
    for result in results:
        if result.document is None:
            continue
        summary, size = result.document["summary"], result.document["clusterSize"]
        spread = [summary.get(when) for when in ("before", "after")]
        replicas = " -> ".join(f"{s['fewest']}-{s['most']}" if s else "?" for s in spread)
        table.add_row(
            result.cluster,
            str(size["brokers"]),
            str(size["partitions"]),
            replicas,
            str(summary["replicaMoves"]),
            f"{summary['lowerBound']}{'' if summary['optimal'] else ' (not proved)'}",
            format_bytes(summary["dataToMove"]) + (" or more" if summary["sizesUnknown"] else ""),
            summary["hash"],
        )
    if table.row_count:
        plain_console().print(table)
    for result in results:
        for warning in result.document["warnings"] if result.document else ():
            click.echo(printable(f"{result.cluster}: warning: {warning}"), err=True)
        if result.error:
            click.echo(printable(f"{result.cluster}: {result.error}", kept="\n"), err=True)
