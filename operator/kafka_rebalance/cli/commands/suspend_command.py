"""kafka-rebalance suspend and resume: set spec.execution.suspend of a KafkaRebalance."""

import asyncio

import click

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.cli.options.resource_lookup import ResourceScope, connected, namespace_options
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.kube.spec_changes import change


@click.command("suspend")
@click.argument("name")
@namespace_options
def suspend(name: str, scope: ResourceScope) -> None:
    """Suspend KafkaRebalance NAME: no new step starts. Steps in flight finish."""
    asyncio.run(_set(scope, name, suspended=True))


@click.command("resume")
@click.argument("name")
@namespace_options
def resume(name: str, scope: ResourceScope) -> None:
    """Resume KafkaRebalance NAME after suspend."""
    asyncio.run(_set(scope, name, suspended=False))


async def _set(scope: ResourceScope, name: str, *, suspended: bool) -> None:
    def decide(body: Json) -> Json | None:
        now = (body["spec"].get("execution") or {}).get("suspend", False)
        return None if now is suspended else {"spec": {"execution": {"suspend": suspended}}}

    async with connected(server=scope.server) as kube:
        changed = await change(kube, REBALANCES, scope.namespace, name, decide)
    state = "suspended: no new step starts, steps in flight finish" if suspended else "not suspended: it goes on"
    click.echo(f"KafkaRebalance {scope.namespace}/{name} is {'' if changed else 'already '}{state}")
