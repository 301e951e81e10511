"""kafka-rebalance list: the KafkaRebalances of a namespace, as kubectl lists them."""

import asyncio
from datetime import UTC, datetime

import click

from kafka_rebalance.api.v1alpha1 import GROUP, REBALANCES
from kafka_rebalance.cli.options.resource_lookup import (
    ResourceScope,
    all_namespaces_option,
    directory_option,
    namespace_options,
    reading,
)
from kafka_rebalance.cli.tables.console import print_document
from kafka_rebalance.cli.tables.resource_table import print_resources
from kafka_rebalance.kube.objects import Json


@click.command("list")
@directory_option
@namespace_options
@all_namespaces_option
@click.option(
    "-o", "--output", type=click.Choice(["table", "wide", "name", "json", "yaml"]), default="table", show_default=True
)
def list_rebalances(scope: ResourceScope, *, all_namespaces: bool, output: str) -> None:
    """List the KafkaRebalances of a namespace, or of all.

    JSON and YAML are the List that kubectl prints.
    """
    found = asyncio.run(_read(scope, None if all_namespaces else scope.namespace))
    if output == "name":
        for body in found:
            click.echo(f"kafkarebalance.{GROUP}/{body['metadata']['name']}")
    elif output in {"json", "yaml"}:
        print_document({"apiVersion": "v1", "kind": "List", "items": found}, output)
    elif found:
        print_resources(found, datetime.now(UTC), namespaces=all_namespaces, wide=output == "wide")
    else:
        where = "any namespace" if all_namespaces else f"namespace {scope.namespace}"
        click.echo(f"no KafkaRebalance in {where}", err=True)


async def _read(scope: ResourceScope, namespace: str | None) -> list[Json]:
    async with reading(scope) as kube:
        found = await kube.list_resources(REBALANCES, namespace)
    return sorted(found, key=lambda body: (body["metadata"]["namespace"], body["metadata"]["name"]))
