"""Reports of KafkaRebalances, with the records that the user may read."""

import asyncio
from datetime import UTC, datetime

import click

from kafka_rebalance.api.v1alpha1 import KafkaRebalance, parse_rebalance
from kafka_rebalance.cli.options.gone_rebalances import find_or_gone
from kafka_rebalance.cli.options.resource_lookup import ResourceScope, reading, stores
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kube.directory_objects import GONE_AT
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.model.cluster_file import ClusterFile
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.run_record import RunRecord
from kafka_rebalance.report.report_contents import Report
from kafka_rebalance.report.resource_contents import NO_CLUSTER, contents_of, report_of


async def report_of_resource(
    scope: ResourceScope, name: str, cluster: ClusterFile | None, history: str | None
) -> Report:
    """The report of a KafkaRebalance with its stored plan, or from its status if the plan may not be read."""
    async with reading(scope) as kube:
        body = await find_or_gone(kube, scope.namespace, name)
        rebalance = parse_rebalance(body)
        run, plan = await _stored(kube, rebalance, gone=GONE_AT in body)
    record = await asyncio.to_thread(_record, history, run) if history is not None and run is not None else None
    contents = contents_of(plan, cluster if cluster is not None else NO_CLUSTER) if plan is not None else None
    return report_of(rebalance, contents, datetime.now(UTC), options=scope.options, record=record)


async def _stored(kube: KubeObjects, rebalance: KafkaRebalance, *, gone: bool) -> tuple[Run | None, Plan | None]:
    """The run and its plan; None where they cannot be read, or there is none."""
    metadata, shown = rebalance.metadata, rebalance.status.plan
    try:
        run = await stores(kube).runs.load(metadata.uid)
        stored = await stores(kube).plans.load(metadata.uid, shown.hash) if shown is not None else None
    except RebalanceError as hidden:
        click.echo(f"partitions are not shown: {hidden.message}", err=True)
        return None, None
    if shown is not None and stored is None and gone:
        click.echo("partitions are not shown: the plan of a run that was rolled back is not kept", err=True)
    elif shown is not None and stored is None:
        click.echo(
            f"partitions are not shown: namespace {kube.namespace} has no plan {shown.hash}: name the namespace of the "
            "operator's records with --operator-namespace",
            err=True,
        )
    return run, stored.plan if stored is not None else None


def _record(history: str, run: Run) -> RunRecord | None:
    """The steps of the run, from the lake."""
    from kafka_rebalance.storage.locations import open_location
    from kafka_rebalance.storage.run_history import read_run

    found = read_run(open_location(history), run.cluster_id, run.run_id)
    if found is None:
        click.echo(f"steps are not shown: {history} has no record of run {run.run_id}", err=True)
    return found
