"""kafka-rebalance undo: back to where everything was before a run that has succeeded (design section 7).

The operator moves it back, under the resource's own limits and throttle; this command checks that there is something
to undo, says what it costs and asks for it by an annotation. ``--print`` leaves it to Kafka's own tool instead.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import REBALANCES, UNDO_ANNOTATION, KafkaRebalance, parse_rebalance, planning_hash
from kafka_rebalance.cli.options.resource_lookup import connected, find, namespace_options, stores
from kafka_rebalance.errors import RebalanceError, Refused
from kafka_rebalance.execution.partition_status import PartitionMove
from kafka_rebalance.kube.api_errors import NotFound
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.retention import PLAN_RETENTION
from kafka_rebalance.reconcile.state.record import OpenRun, open_run
from kafka_rebalance.units import format_bytes

_KEPT = {
    RunOutcome.SUCCEEDED,
    RunOutcome.ABANDONED,
    RunOutcome.REVERTED,
    RunOutcome.ROLLED_BACK_PARTIALLY,
    RunOutcome.TAKEN_OVER,
}
"""Ends after which something may be elsewhere than before the run, and its origins are kept."""


@dataclass(frozen=True, slots=True)
class WayBack:
    """What an undo takes. ``bytes_to_copy`` counts sizes as they were when the run was planned."""

    partitions: int
    copies: int
    bytes_to_copy: int
    leaders: int


@click.command("undo")
@click.argument("name", required=False)
@namespace_options
@click.option("--print", "print_only", is_flag=True, help="Change nothing; print the way back as Kafka's JSON.")
@click.option("--uid", help="Instead of NAME, for --print: of a resource that is gone.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def undo(
    name: str | None,
    namespace: str,
    operator_namespace: str | None,
    *,
    print_only: bool,
    uid: str | None,
    yes: bool,
) -> None:
    """Move everything back to where it was before KafkaRebalance NAME, which has succeeded.

    A rebalance that is still running is undone by deleting it.
    """
    if (name is None) == (uid is None):
        raise click.UsageError("give either NAME or --uid")
    if uid is not None:
        if not print_only:
            raise click.UsageError(
                "--uid is for --print: without the resource there is nothing that the operator acts on"
            )
        asyncio.run(_print_kept(uid, operator_namespace))
    elif name is not None:
        asyncio.run(_undo(namespace, name, operator_namespace, print_only=print_only, yes=yes))


async def _undo(namespace: str, name: str, operator_namespace: str | None, *, print_only: bool, yes: bool) -> None:
    async with connected(operator_namespace) as kube:
        try:
            rebalance = parse_rebalance(await find(kube, namespace, name))
        except NotFound as error:
            raise NotFound(error.message + await _kept_under(kube, namespace, name)) from error
        done = await _load(kube, undoable(rebalance, await stores(kube).runs.load(rebalance.metadata.uid)))
        if print_only:
            skipped = rebalance.status.skipped_count
            if skipped:
                click.echo(f"the run left {skipped} partitions alone (see its status): check these rows", err=True)
            click.echo(json.dumps(reassignment(done.moves, from_targets=True)))
            return
        if rebalance.metadata.annotations.get(UNDO_ANNOTATION) == done.run.plan_hash:
            raise Refused(
                Reason.ALREADY_ASKED, f"the undo of {namespace}/{name} has been asked for: is its operator running?"
            )
        click.echo(_cost(rebalance, way_back(done.moves)))
        if not yes:
            _confirm()
        if not await kube.annotate(REBALANCES, namespace, name, {UNDO_ANNOTATION: done.run.plan_hash}):
            raise NotFound(f"KafkaRebalance {namespace}/{name} has just been deleted")
        click.echo(f"undo asked for; follow it with: kafka-rebalance watch {name} -n {namespace}")


async def _print_kept(uid: str, operator_namespace: str | None) -> None:
    async with connected(operator_namespace) as kube:
        run = await stores(kube).runs.load(uid)
        done = await _load(kube, kept(uid, run, kube.namespace))
    succeeded = done.run.outcome is RunOutcome.SUCCEEDED
    if not succeeded:
        click.echo(
            f"the run ended as {done.run.outcome}, so some partitions may be back already, and where the others are is "
            "not known: original_replicas is left out",
            err=True,
        )
    click.echo(json.dumps(reassignment(done.moves, from_targets=succeeded)))


def undoable(rebalance: KafkaRebalance, run: Run | None) -> Run:
    """The run to undo, which is closed and has succeeded for the present spec; else Refused says why not."""
    metadata, status = rebalance.metadata, rebalance.status
    name = f"{metadata.namespace}/{metadata.name}"
    if metadata.deleting:
        raise Refused(
            Reason.DELETING, f"{name} is being deleted: what becomes of a running one is up to its deletionPolicy"
        )
    ready = find_condition(status.conditions, ConditionType.READY)
    state = f"{ready.reason}: {ready.message}" if ready else "nothing has been reported yet"
    if run is None:
        if ready is not None and ready.reason == Reason.SUCCEEDED:
            raise _expired(name)
        raise Refused(Reason.NOT_SUCCEEDED, f"{name} has not moved anything ({state})")
    if run.open and run.undo:
        raise Refused(Reason.UNDOING, f"{name} is being undone already; follow it with kafka-rebalance watch")
    if run.open:
        raise Refused(
            Reason.RUNNING, f"{name} is still running ({state}): deleting it cancels it and moves everything back"
        )
    if run.outcome is RunOutcome.UNDONE:
        raise Refused(Reason.ALREADY_UNDONE, f"{name} has been undone")
    if run.planning_hash != planning_hash(rebalance.spec):
        raise Refused(
            Reason.NOT_SUCCEEDED, f"the spec of {name} was changed after its success, and is being planned anew"
        )
    if run.outcome is not RunOutcome.SUCCEEDED or ready is None or ready.status != "True":
        raise Refused(Reason.NOT_SUCCEEDED, f"{name} has not succeeded ({state})")
    if status.plan is None or status.plan.hash != run.plan_hash:
        raise Refused(Reason.NOT_SUCCEEDED, f"the status of {name} does not name the plan of its last run; look again")
    return run


def kept(uid: str, run: Run | None, operator_namespace: str) -> Run:
    """A closed run whose origins were kept, whatever became of its resource; else Refused says why not."""
    if run is None:
        raise _expired(f"uid {uid}", operator_namespace)
    name = f"{run.namespace}/{run.name} (uid {uid})"
    if run.open:
        raise Refused(Reason.RUNNING, f"{name} is still running")
    if run.outcome is RunOutcome.UNDONE:
        raise Refused(Reason.ALREADY_UNDONE, f"{name} has been undone")
    if run.outcome not in _KEPT:
        raise Refused(Reason.NOT_SUCCEEDED, f"{name} ended as {run.outcome}: there is nothing to move back")
    return run


async def _load(kube: KubeClient, run: Run) -> OpenRun:
    """Plan and origins of a closed run. Refused where they are gone, or where nothing was moved."""
    records = stores(kube)
    stored = await records.plans.load(run.uid, run.plan_hash)
    origins = await records.origins.load(run.uid, run.run_id)
    name = f"{run.namespace}/{run.name}"
    if stored is None or (stored.plan.partitions and not origins):
        raise _expired(name, kube.namespace)
    done = open_run(run, stored.plan, stored.ref, origins)
    if all(move.origin == move.target for move in done.moves):
        raise Refused(Reason.NOTHING_TO_UNDO, f"the run of {name} did not have to move anything")
    if not run.started:
        raise Refused(Reason.NOTHING_TO_UNDO, f"the run of {name} has sent no step: what moved was moved by others")
    return done


async def _kept_under(kube: KubeClient, namespace: str, name: str) -> str:
    """Runs of resources of that name that are gone, for the person who looks for one; empty where none can be read."""
    try:
        runs = [run for run in await stores(kube).runs.list_all() if (run.namespace, run.name) == (namespace, name)]
    except RebalanceError:
        return ""
    rows = [
        f"--print --uid {run.uid} ({run.outcome or 'open'}, begun {run.opened_at:%Y-%m-%d %H:%M} UTC)" for run in runs
    ]
    return f"; what is kept of such: {', '.join(rows)}" if rows else ""


def way_back(errands: Iterable[PartitionMove]) -> WayBack:
    """What has to move for every partition to have its original list again."""
    moved = [errand for errand in errands if errand.origin != errand.target]
    copies = [(errand, len(set(errand.origin) - set(errand.target))) for errand in moved]
    return WayBack(
        partitions=len(moved),
        copies=sum(count for _, count in copies),
        bytes_to_copy=sum(errand.size_bytes * count for errand, count in copies),
        leaders=sum(errand.origin[0] != errand.target[0] for errand in moved),
    )


def reassignment(errands: Iterable[PartitionMove], *, from_targets: bool) -> dict[str, Any]:
    """Kafka's reassignment file that leads to the origins.

    ``original_replicas`` is KIP-236's: what a partition has before the reassignment, and what cancelling it leads back
    to. Here that is the target of the run, and only told where the run left every partition there (``from_targets``).
    """
    return {
        "version": 1,
        "partitions": [
            {"topic": errand.tp.topic, "partition": errand.tp.partition, "replicas": list(errand.origin)}
            | ({"original_replicas": list(errand.target)} if from_targets else {})
            for errand in sorted(errands, key=lambda errand: errand.tp)
            if errand.origin != errand.target
        ],
    }


def _cost(rebalance: KafkaRebalance, way: WayBack) -> str:
    return (
        f"{rebalance.metadata.namespace}/{rebalance.metadata.name}: {way.partitions} partitions go back to where they "
        f"were before it: {way.copies} replicas and {format_bytes(way.bytes_to_copy)} to copy (sizes as planned with), "
        f"{way.leaders} preferred leaders change. Its execution limits and throttle apply."
    )


def _confirm() -> None:
    try:
        agreed = click.confirm("Undo it?")
    except click.Abort:  # the end of a pipe as well
        click.echo()
        agreed = False
    if not agreed:
        raise Refused(Reason.NOT_CONFIRMED, "nothing was changed; --yes answers beforehand")


def _expired(what: str, operator_namespace: str | None = None) -> Refused:
    where = f"namespace {operator_namespace}" if operator_namespace else "the operator's namespace"
    return Refused(
        Reason.ORIGINS_EXPIRED,
        f"plan and origins of {what} are not in {where}: they are kept {PLAN_RETENTION.days} days after the end of a "
        "run, or as long as its resource exists (--operator-namespace says where to look)",
    )
