"""kafka-rebalance diff: what the plan of a KafkaRebalance changes, for each broker and each partition.

The changes of brokers come from the status of the resource. The changes of partitions come from the stored plan.
"""

import asyncio

import click

from kafka_rebalance.api.v1alpha1 import KafkaRebalance, parse_rebalance
from kafka_rebalance.cli.options.resource_lookup import (
    ResourceScope,
    directory_option,
    find,
    reading,
    record_options,
    stores,
)
from kafka_rebalance.cli.tables.console import print_document
from kafka_rebalance.cli.tables.planned_changes import planned_document, print_partitions, print_planned
from kafka_rebalance.errors import RebalanceError, Refused
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.model.plan import PlannedPartition
from kafka_rebalance.reasons import Reason


@click.command("diff")
@click.argument("name")
@directory_option
@record_options
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def diff(name: str, scope: ResourceScope, *, output: str) -> None:
    """Show what the plan of KafkaRebalance NAME changes: per broker, and per partition.

    The partitions are in the operator's records. Without the right to read these, only brokers are shown.
    """
    rebalance, partitions = asyncio.run(_read(scope, name))
    if output != "table":
        print_document(planned_document(rebalance.status, partitions), output)
        return
    print_planned(rebalance)
    if partitions is not None:
        print_partitions(partitions)


async def _read(scope: ResourceScope, name: str) -> tuple[KafkaRebalance, list[PlannedPartition] | None]:
    async with reading(scope) as kube:
        rebalance = parse_rebalance(await find(kube, scope.namespace, name))
        return rebalance, await _partitions(kube, rebalance)


async def _partitions(kube: KubeObjects, rebalance: KafkaRebalance) -> list[PlannedPartition] | None:
    """The changed partitions in order; None where the stored plan cannot be read."""
    metadata, plan = rebalance.metadata, rebalance.status.plan
    if plan is None:
        raise Refused(
            Reason.NO_PLAN, f"{metadata.namespace}/{metadata.name} has no plan yet: kafka-rebalance status says why"
        )
    try:
        stored = await stores(kube).plans.load(metadata.uid, plan.hash)
    except RebalanceError as hidden:
        click.echo(f"partitions are not shown: {hidden.message}", err=True)
        return None
    if stored is None:
        click.echo(
            f"partitions are not shown: namespace {kube.namespace} has no plan {plan.hash}: name the namespace of the "
            "operator's records with --operator-namespace",
            err=True,
        )
        return None
    changed = (p for p in stored.plan.partitions if p.current != p.target or p.elects)
    return sorted(changed, key=lambda p: p.tp)
