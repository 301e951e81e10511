"""kafka-rebalance freeze and unfreeze: set spec.freeze of a KafkaReassignmentThrottle, or an override of it.

It is KIP-236's guard of a cluster.
"""

import asyncio

import click

from kafka_rebalance.api.overrides import FREEZE_OVERRIDE
from kafka_rebalance.api.v1alpha1 import KINDS, REASSIGNMENT_THROTTLES
from kafka_rebalance.cli.options.override_options import (
    OverrideOrder,
    overridden_to,
    override_options,
    without_override,
)
from kafka_rebalance.cli.options.resource_lookup import ResourceScope, changing, directory_option, namespace_options
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kube.api_errors import NotFound
from kafka_rebalance.kube.objects import Json, KubeObjects
from kafka_rebalance.kube.spec_changes import change

_KIND = KINDS[REASSIGNMENT_THROTTLES]


@click.command("freeze")
@click.argument("name", required=False)
@directory_option
@namespace_options
@override_options
def freeze(name: str | None, scope: ResourceScope, *, override: OverrideOrder | None) -> None:
    """Freeze the Kafka cluster of KafkaReassignmentThrottle NAME: none of its rebalances submits a step.

    Steps in flight finish, and cancelling remains possible. NAME may be left out if the namespace has only one.
    """
    asyncio.run(_set(scope, name, override, frozen=True))


@click.command("unfreeze")
@click.argument("name", required=False)
@directory_option
@namespace_options
@override_options
def unfreeze(name: str | None, scope: ResourceScope, *, override: OverrideOrder | None) -> None:
    """Let the rebalances of KafkaReassignmentThrottle NAME continue after freeze, with or without --override."""
    asyncio.run(_set(scope, name, override, frozen=False))


async def _set(scope: ResourceScope, given: str | None, override: OverrideOrder | None, *, frozen: bool) -> None:
    def decide(body: Json) -> Json | None:
        if override is not None:
            return override.patch(FREEZE_OVERRIDE, {"freeze": frozen})
        patch: Json = {} if body["spec"].get("freeze", False) is frozen else {"spec": {"freeze": frozen}}
        if overridden_to(body, FREEZE_OVERRIDE, "freeze") is (not frozen):
            patch |= without_override(FREEZE_OVERRIDE)
        return patch or None

    async with changing(scope) as kube:
        name = given or await _only_one(kube, scope.namespace)
        changed = await change(kube, REASSIGNMENT_THROTTLES, scope.namespace, name, decide)
        effect = "no rebalance of its cluster submits a step" if frozen else "its rebalances go on"
        until = f" {override.end}" if override is not None else ""
        state = f"{'' if changed else 'already '}{'frozen' if frozen else 'not frozen'}{until}"
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
    frozen = [row["metadata"]["name"] for row in found if _frozen(row)]
    return sorted(other for other in frozen if other != name)


def _frozen(body: Json) -> bool:
    overridden = overridden_to(body, FREEZE_OVERRIDE, "freeze")
    return bool(body["spec"].get("freeze") if overridden is None else overridden)
