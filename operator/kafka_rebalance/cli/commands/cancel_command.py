"""kafka-rebalance cancel: deletes a KafkaRebalance, and says before what its deletion policy does.

The policy is written first and the deletion names the uid of what was read. So a command that is killed in between, or
whose answer is lost, can be repeated, and never deletes another resource that has got the same name.
"""

import asyncio

import click

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.execution_spec import DeletionPolicy
from kafka_rebalance.api.v1alpha1 import REBALANCES, KafkaRebalance, parse_rebalance
from kafka_rebalance.cli.options.confirmation import confirm, yes_option
from kafka_rebalance.cli.options.resource_lookup import (
    ResourceScope,
    changing,
    directory_option,
    find,
    namespace_options,
)
from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.kube.spec_changes import change
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_bytes

_WHAT_HAPPENS = {
    DeletionPolicy.ROLLBACK: "reassignments in flight are cancelled, and completed moves are moved back",
    DeletionPolicy.REVERT: "only reassignments in flight are cancelled; completed moves stay",
    DeletionPolicy.ABANDON: "nothing is cancelled: reassignments in flight finish under its throttle, which is then "
    "removed, and nothing is moved back",
}


@click.command("cancel")
@click.argument("name")
@directory_option
@namespace_options
@click.option(
    "--policy",
    type=click.Choice([policy.value for policy in DeletionPolicy]),
    help="Set spec.deletionPolicy first. [default: that of the resource]",
)
@yes_option
def cancel(name: str, scope: ResourceScope, *, policy: str | None, yes: bool) -> None:
    """Cancel KafkaRebalance NAME by deleting it, as its deletion policy says.

    While it is being deleted, --policy still changes the policy.
    """
    asyncio.run(_cancel(scope, name, DeletionPolicy(policy) if policy else None, yes=yes))


async def _cancel(scope: ResourceScope, name: str, policy: DeletionPolicy | None, *, yes: bool) -> None:
    async with changing(scope) as kube:
        seen = parse_rebalance(await find(kube, scope.namespace, name))
        wanted = policy or seen.spec.deletion_policy
        what = f"KafkaRebalance {scope.namespace}/{name}"
        if seen.metadata.deleting and wanted is seen.spec.deletion_policy:
            click.echo(f"{what} is already being deleted, with deletionPolicy {wanted.value}")
            return
        click.echo(f"{what}: {_consequence(seen, wanted)}")
        if not yes:
            confirm("Cancel it?")

        def decide(body: Json) -> Json | None:
            if body["metadata"]["uid"] != seen.metadata.uid:
                raise Refused(
                    Reason.ALREADY_THERE, f"{what} is gone, and another one has its name: nothing was changed"
                )
            same = parse_rebalance(body).spec.deletion_policy is wanted
            return None if same else {"spec": {"deletionPolicy": wanted.value}}

        await change(kube, REBALANCES, scope.namespace, name, decide)
        if not seen.metadata.deleting:
            await kube.delete_resource(REBALANCES, scope.namespace, name, seen.metadata.uid)
        click.echo(f"being deleted with deletionPolicy {wanted.value}; {scope.follow(name)}")


def _consequence(rebalance: KafkaRebalance, policy: DeletionPolicy) -> str:
    """What the deletion does, with what has been moved so far."""
    status = rebalance.status
    ready = find_condition(status.conditions, ConditionType.READY)
    if ready is not None and ready.status == "True":
        return f"it has ended ({ready.reason}); deleting it moves nothing. To move its partitions back, use undo"
    moving = find_condition(status.conditions, ConditionType.REBALANCING)
    if (moving is None or moving.status != "True") and status.progress is None:
        return "it has moved nothing so far; deleting it moves nothing"
    said = f"deletionPolicy {policy.value}: {_WHAT_HAPPENS[policy]}"
    if policy is DeletionPolicy.ROLLBACK and rebalance.spec.suspended:
        said += ", which waits for kafka-rebalance resume, because it is suspended"
    if (progress := status.progress) is None:
        return said
    done, total, in_flight = progress.partitions.completed, progress.partitions.total, status.current_batch_size
    moved = f"{format_bytes(progress.bytes.moved)} of {format_bytes(progress.bytes.total)} copied"
    return f"{said}. So far {done} of {total} partitions are at their targets, {in_flight} in flight, {moved}"
