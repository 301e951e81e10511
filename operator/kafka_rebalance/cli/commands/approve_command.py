"""kafka-rebalance approve: approves the plan of a KafkaRebalance with approval policy Manual.

The hash comes from the status, so that only the right to read and to patch the resource is needed. The operator
executes a plan only if the approved hash is its own, so an approval never applies to a plan that was not reviewed.
"""

import asyncio

import click

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.execution_spec import ApprovalPolicy
from kafka_rebalance.api.resource_status import PlanStatus
from kafka_rebalance.api.v1alpha1 import REBALANCES, KafkaRebalance, parse_rebalance
from kafka_rebalance.cli.options.confirmation import confirm, yes_option
from kafka_rebalance.cli.options.resource_lookup import (
    ResourceScope,
    changing,
    directory_option,
    find,
    namespace_options,
)
from kafka_rebalance.cli.tables.planned_changes import print_planned
from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.kube.spec_changes import change
from kafka_rebalance.reasons import Reason


@click.command("approve")
@click.argument("name")
@directory_option
@namespace_options
@click.option("--plan-hash", metavar="HASH", help="Approve only this plan, for example the one that was reviewed.")
@yes_option
def approve(name: str, scope: ResourceScope, *, plan_hash: str | None, yes: bool) -> None:
    """Approve the plan of KafkaRebalance NAME, whose approval policy is Manual.

    Prints the plan and asks. Refuses if the operator has made another plan meanwhile.
    """
    asyncio.run(_approve(scope, name, plan_hash, yes=yes))


async def _approve(scope: ResourceScope, name: str, plan_hash: str | None, *, yes: bool) -> None:
    async with changing(scope) as kube:
        seen = parse_rebalance(await find(kube, scope.namespace, name))
        plan = approvable(seen, plan_hash)
        if seen.spec.approval.plan_hash == plan.hash:
            click.echo(f"plan {plan.hash} of {scope.namespace}/{name} is already approved")
            return
        print_planned(seen)
        if not yes:
            confirm("Approve it?")

        def decide(body: Json) -> Json:
            approvable(parse_rebalance(body), plan.hash)
            return {"spec": {"approval": {"planHash": plan.hash}}}

        await change(kube, REBALANCES, scope.namespace, name, decide)
        click.echo(f"approved; {scope.follow(name)}")


def approvable(rebalance: KafkaRebalance, expected: str | None = None) -> PlanStatus:
    """The plan that waits for approval, or is approved already; otherwise Refused says why there is none.

    ``expected``: the hash that it must have.
    """
    metadata, status = rebalance.metadata, rebalance.status
    name = f"{metadata.namespace}/{metadata.name}"
    if metadata.deleting:
        raise Refused(Reason.DELETING, f"{name} is being deleted: there is nothing to approve")
    if rebalance.spec.approval.policy is not ApprovalPolicy.MANUAL:
        raise Refused(
            Reason.NOTHING_TO_APPROVE,
            f"{name} has spec.approval.policy Automatic: its plan is executed without approval. Set policy: Manual",
        )
    ready = find_condition(status.conditions, ConditionType.READY)
    state = f"{ready.reason}: {ready.message}" if ready else "no operator has processed it yet"
    if status.plan is None or status.observed_generation != metadata.generation:
        raise Refused(
            Reason.NOTHING_TO_APPROVE,
            f"{name} has no plan for its current spec yet ({state}): try again when the state is AwaitingApproval",
        )
    if ready is not None and ready.status == "True":
        raise Refused(Reason.NOTHING_TO_APPROVE, f"{name} has ended ({state})")
    if expected not in {None, status.plan.hash}:
        raise Refused(
            Reason.PLAN_CHANGED,
            f"the plan of {name} is {status.plan.hash} now, not {expected}: review it with kafka-rebalance diff "
            f"{metadata.name} -n {metadata.namespace}, and approve that one",
        )
    return status.plan
