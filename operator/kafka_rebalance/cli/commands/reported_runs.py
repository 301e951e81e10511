"""Reports of KafkaRebalances: planned, running or finished."""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime

import click

from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
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
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.report.ready_state import ready_reason
from kafka_rebalance.report import plan_contents
from kafka_rebalance.report.report_contents import BeforeAfter, BrokerRow, Fact, Report
from kafka_rebalance.report.run_contents import course_of, next_command, run_facts
from kafka_rebalance.units import format_bytes

_NO_CLUSTER = ClusterFile((), ())


async def report_of_resource(
    scope: ResourceScope, name: str, cluster: ClusterFile | None, history: str | None
) -> Report:
    """Of a KafkaRebalance with its stored plan, or only from its status if the user may not read the plan."""
    async with reading(scope) as kube:
        body = await find_or_gone(kube, scope.namespace, name)
        rebalance = parse_rebalance(body)
        run, plan = await _stored(kube, rebalance, gone=GONE_AT in body)
    record = await asyncio.to_thread(_record, history, run) if history is not None and run is not None else None
    metadata, status = rebalance.metadata, rebalance.status
    ready = ready_reason(status)
    facts = [*([Fact("Kafka cluster", status.cluster_id)] if status.cluster_id else []), *run_facts(status)]
    report = Report(
        title=f"KafkaRebalance {metadata.namespace}/{metadata.name}",
        state=ready[0] if ready is not None else "Not seen by an operator yet",
        made_at=datetime.now(UTC),
        facts=[*facts, *_plan_of_status(status)],
        brokers=_of_status(status),
        whole_cluster=False,
        flows=(),
        partitions=None,
        command=next_command(metadata.name, metadata.namespace, status),
        course=course_of(status, record),
    )
    if plan is None:
        return report
    report = replace(report, facts=[*facts, *plan_contents.plan_facts_of(plan)])
    return _with_plan(
        report, plan, cluster if cluster is not None else _NO_CLUSTER, rebalance.spec.brokers.decommission
    )


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


def _of_status(status: KafkaRebalanceStatus) -> tuple[BrokerRow, ...]:
    """The changes of the brokers in the status, at most twenty."""
    rows = status.plan.per_broker if status.plan is not None else ()
    return tuple(
        BrokerRow(
            BrokerId(row.broker),
            None,
            target=True,
            replicas=BeforeAfter(row.replicas_out, row.replicas_in),
            leaders=BeforeAfter(row.leaders_out, row.leaders_in),
            size_bytes=BeforeAfter(row.bytes_out, row.bytes_in),
        )
        for row in sorted(rows, key=lambda row: row.broker)
    )


def _plan_of_status(status: KafkaRebalanceStatus) -> list[Fact]:
    plan = status.plan
    if plan is None:
        return []
    return [
        Fact("Replica moves", str(plan.replica_moves)),
        Fact("Data to copy", format_bytes(plan.data_to_move)),
        Fact("Partitions that change", str(plan.partitions)),
        Fact("Plan", plan.hash, code=True),
    ]
