"""kafka-rebalance suspend and resume: set spec.execution.suspend of a KafkaRebalance, or an override of it."""

import asyncio

import click

from kafka_rebalance.api.overrides import SUSPEND_OVERRIDE
from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.cli.options.override_options import (
    OverrideOrder,
    overridden_to,
    override_options,
    without_override,
)
from kafka_rebalance.cli.options.resource_lookup import (
    ResourceScope,
    changing,
    directory_option,
    namespace_options,
    warn_if_ended,
)
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.kube.spec_changes import change

_EFFECTS = {True: ("suspended", "no new step starts, steps in flight finish"), False: ("not suspended", "it goes on")}


@click.command("suspend")
@click.argument("name")
@directory_option
@namespace_options
@override_options
def suspend(name: str, scope: ResourceScope, *, override: OverrideOrder | None) -> None:
    """Suspend KafkaRebalance NAME: no new step starts. Steps in flight finish."""
    asyncio.run(_set(scope, name, override, suspended=True))


@click.command("resume")
@click.argument("name")
@directory_option
@namespace_options
@override_options
def resume(name: str, scope: ResourceScope, *, override: OverrideOrder | None) -> None:
    """Resume KafkaRebalance NAME after suspend, with or without --override."""
    asyncio.run(_set(scope, name, override, suspended=False))


async def _set(scope: ResourceScope, name: str, override: OverrideOrder | None, *, suspended: bool) -> None:
    seen: Json = {}

    def decide(body: Json) -> Json | None:
        nonlocal seen
        seen = body
        if override is not None:
            return override.patch(SUSPEND_OVERRIDE, {"suspend": suspended})
        patch = _patch_of_spec(body["spec"], suspended=suspended)
        if overridden_to(body, SUSPEND_OVERRIDE, "suspend") is (not suspended):
            patch |= without_override(SUSPEND_OVERRIDE)
        return patch or None

    async with changing(scope) as kube:
        changed = await change(kube, REBALANCES, scope.namespace, name, decide)
    until = f" {override.end}" if override is not None else ""
    state, effect = _EFFECTS[suspended]
    click.echo(f"KafkaRebalance {scope.namespace}/{name} is {'' if changed else 'already '}{state}{until}: {effect}")
    warn_if_ended(seen)


def _patch_of_spec(spec: Json, *, suspended: bool) -> Json:
    """The patch that suspends or resumes; empty if nothing changes. Either of the two fields suspends."""
    at_top, in_execution = spec.get("suspend", False), (spec.get("execution") or {}).get("suspend", False)
    if (at_top or in_execution) is suspended:
        return {}
    if suspended:
        return {"spec": {"execution": {"suspend": True}}}
    off: Json = {"suspend": False} if at_top else {}
    return {"spec": off | ({"execution": {"suspend": False}} if in_execution else {})}
