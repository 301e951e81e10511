"""kafka-rebalance freeze and unfreeze: set spec.freeze of a KafkaReassignmentThrottle, KIP-236's guard of a cluster."""

import asyncio

import click

from kafka_rebalance.api.v1alpha1 import KINDS, REASSIGNMENT_THROTTLES
from kafka_rebalance.cli.options.resource_lookup import ResourceScope, connected, namespace_options
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kube.api_errors import NotFound
from kafka_rebalance.kube.objects import Json, KubeObjects
from kafka_rebalance.kube.spec_changes import change

_KIND = KINDS[REASSIGNMENT_THROTTLES]


@click.command("freeze")
@click.argument("name", required=False)
@namespace_options
def freeze(name: str | None, scope: ResourceScope) -> None:
    """Freeze the Kafka cluster of KafkaReassignmentThrottle NAME: none of its rebalances submits a step.

    Steps in flight finish, and cancelling remains possible. NAME may be left out if the namespace has only one.
    """
    asyncio.run(_set(scope, name, frozen=True))


@click.command("unfreeze")
@click.argument("name", required=False)
@namespace_options
def unfreeze(name: str | None, scope: ResourceScope) -> None:
    """Let the rebalances of KafkaReassignmentThrottle NAME continue after freeze."""
    asyncio.run(_set(scope, name, frozen=False))


async def _set(scope: ResourceScope, given: str | None, *, frozen: bool) -> None:
    def decide(body: Json) -> Json | None:
        return None if body["spec"].get("freeze", False) is frozen else {"spec": {"freeze": frozen}}

    async with connected(server=scope.server) as kube:
        name = given or await _only_one(kube, scope.namespace)
        changed = await change(kube, REASSIGNMENT_THROTTLES, scope.namespace, name, decide)
        effect = "no rebalance of its cluster submits a step" if frozen else "its rebalances go on"
        state = f"{'' if changed else 'already '}{'frozen' if frozen else 'not frozen'}"
        click.echo(f"{_KIND} {scope.namespace}/{name} is {state}: {effect}")
        if not frozen and (others := await _still_freezing(kube, scope.namespace, name)):
            click.echo(f"still frozen, which counts if it is the same cluster: {', '.join(others)}", err=True)


async def _only_one(kube: KubeObjects, namespace: str) -> str:
    names = sorted(found["metadata"]["name"] for found in await kube.list_resources(REASSIGNMENT_THROTTLES, namespace))
    if not names:
        raise NotFound(
            f"namespace {namespace} has no {_KIND}: create one for the cluster, with spec.kafka as in its rebalances "
            "and freeze: true"
        )
    if len(names) > 1:
        raise click.UsageError(f"namespace {namespace} has several: name one of {', '.join(names)}")
    return str(names[0])


async def _still_freezing(kube: KubeObjects, namespace: str, name: str) -> list[str]:
    """The others of the namespace with freeze: each of them counts for its cluster. None where they are hidden."""
    try:
        found = await kube.list_resources(REASSIGNMENT_THROTTLES, namespace)
    except RebalanceError:
        return []
    frozen = [row["metadata"]["name"] for row in found if row["spec"].get("freeze")]
    return sorted(other for other in frozen if other != name)
