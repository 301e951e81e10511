"""kafka-rebalance undo: moves the partitions of a succeeded run back to their original replicas.

The operator does it, or `run`, under the limits and the throttle of the resource. This command checks that there is
something to undo, prints the cost and requests the undo by an annotation. ``--print`` prints a file for Kafka's own
tool instead.
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import (
    REBALANCES,
    UNDO_ANNOTATION,
    KafkaRebalance,
    parse_metadata,
    parse_rebalance,
    planning_hash,
)
from kafka_rebalance.cli.options.confirmation import confirm, yes_option
from kafka_rebalance.cli.options.resource_lookup import (
    ResourceScope,
    changing,
    directory_option,
    find,
    reading,
    record_options,
    stores,
)
from kafka_rebalance.errors import RebalanceError, Refused
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.kube.api_errors import NotFound
from kafka_rebalance.kube.objects import Json, KubeObjects
from kafka_rebalance.kube.spec_changes import change
from kafka_rebalance.model.plan import LogDirMove
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.record import PLAN_RETENTION, LoadedRun, loaded_run_of
from kafka_rebalance.units import format_bytes

_KEPT = {
    RunOutcome.SUCCEEDED,
    RunOutcome.ABANDONED,
    RunOutcome.REVERTED,
    RunOutcome.ROLLED_BACK_PARTIALLY,
    RunOutcome.TAKEN_OVER,
}
"""Outcomes after which partitions may differ from their origins, which are kept."""


@dataclass(frozen=True, slots=True)
class WayBack:
    """The cost of an undo. ``bytes_to_copy`` uses the sizes at planning time."""

    partitions: int
    copies: int
    bytes_to_copy: int
    leaders: int


@click.command("undo")
@click.argument("name", required=False)
@directory_option
@record_options
@click.option(
    "--print", "print_only", is_flag=True, help="Change nothing; print Kafka's reassignment JSON for the rollback."
)
@click.option("--uid", help="Instead of NAME, with --print: the uid of a deleted resource.")
@yes_option
def undo(name: str | None, scope: ResourceScope, *, print_only: bool, uid: str | None, yes: bool) -> None:
    """Undo KafkaRebalance NAME, which has succeeded: move its partitions back to their original replicas.

    The operator does it; with --records, kafka-rebalance run. To roll back a rebalance that is still running, use
    cancel.
    """
    if (name is None) == (uid is None):
        raise click.UsageError("give either NAME or --uid")
    if uid is not None:
        if not print_only:
            raise click.UsageError("--uid requires --print: only an existing resource can be undone")
        asyncio.run(_print_kept(uid, scope))
    elif name is not None:
        asyncio.run(_undo(scope, name, print_only=print_only, yes=yes))


async def _undo(scope: ResourceScope, name: str, *, print_only: bool, yes: bool) -> None:
    namespace = scope.namespace
    async with reading(scope) if print_only else changing(scope) as kube:
        try:
            body = await find(kube, namespace, name)
        except NotFound as error:
            raise NotFound(error.message + await _kept_under(kube, namespace, name)) from error
        rebalance = parse_rebalance(body)
        run = undoable(rebalance, await stores(kube).runs.load(rebalance.metadata.uid))
        done = await _load(kube, run.to_undo)
        if print_only:
            skipped = rebalance.status.skipped_count
            if skipped:
                click.echo(f"the run skipped {skipped} partitions (see its status): check their rows", err=True)
            click.echo(json.dumps(reassignment(done.moves, from_targets=True)))
            return
        request = {"metadata": {"annotations": {UNDO_ANNOTATION: run.plan_hash}}}

        def decide(body: Json) -> Json:
            metadata = parse_metadata(body)
            if metadata.uid != rebalance.metadata.uid or metadata.generation != rebalance.metadata.generation:
                raise Refused(Reason.NOT_SUCCEEDED, f"{namespace}/{name} was changed meanwhile: look at it again")
            if metadata.annotations.get(UNDO_ANNOTATION) == run.plan_hash:
                raise Refused(
                    Reason.ALREADY_ASKED, f"the undo of {namespace}/{name} is already requested: {_waits(scope)}"
                )
            return request

        decide(body)
        click.echo(_cost(rebalance, way_back(done.moves)))
        if between := _between_log_dirs(done):
            size = format_bytes(sum(move.size_bytes for move in between))
            click.echo(f"Replicas that return to their original log dirs: {len(between)}, {size} to copy.")
        if run.last_success is not None:
            click.echo(f"The last run has sent nothing: this undoes the one {_ended(run.last_success)}.")
        if not yes:
            confirm("Undo it?")
        await change(kube, REBALANCES, namespace, name, decide)
        click.echo(f"undo requested; {scope.follow(name)}")


async def _print_kept(uid: str, scope: ResourceScope) -> None:
    async with reading(scope) as kube:
        run = await stores(kube).runs.load(uid)
        done = await _load(kube, kept(uid, run, kube.namespace).to_undo)
    succeeded = done.run.outcome is RunOutcome.SUCCEEDED
    if not succeeded:
        click.echo(
            f"the run ended as {done.run.outcome}: some partitions may be rolled back already, so original_replicas "
            "is omitted",
            err=True,
        )
    click.echo(json.dumps(reassignment(done.moves, from_targets=succeeded)))


def _waits(scope: ResourceScope) -> str:
    if scope.server.directory is not None:
        return "run its file again with kafka-rebalance run"
    return "is its operator running?"


def undoable(rebalance: KafkaRebalance, run: Run | None) -> Run:
    """The run, if it is closed and has succeeded with the current spec; otherwise Refused says why not."""
    metadata, status = rebalance.metadata, rebalance.status
    name = f"{metadata.namespace}/{metadata.name}"
    if metadata.deleting:
        raise Refused(Reason.DELETING, f"{name} is being deleted: its deletionPolicy decides about the rollback")
    ready = find_condition(status.conditions, ConditionType.READY)
    state = f"{ready.reason}: {ready.message}" if ready else "no state reported yet"
    if run is None:
        if ready is not None and ready.reason == Reason.SUCCEEDED:
            raise _expired(name)
        raise Refused(Reason.NOT_SUCCEEDED, f"{name} has not moved anything ({state})")
    if run.open and run.undo:
        raise Refused(Reason.UNDOING, f"{name} is already being undone; follow it with kafka-rebalance watch")
    if run.open and run.started_at is None and run.last_success is not None:
        raise Refused(
            Reason.RUNNING,
            f"{name} has a new plan, which has sent nothing ({state}): to undo the run {_ended(run.last_success)}, "
            "edit the spec back to what it was then, and try again when Ready is True",
        )
    if run.open:
        raise Refused(Reason.RUNNING, f"{name} is still running ({state}): kafka-rebalance cancel rolls it back")
    if run.outcome is RunOutcome.UNDONE:
        raise Refused(Reason.ALREADY_UNDONE, f"{name} is already undone")
    if run.planning_hash != planning_hash(rebalance.spec):
        raise Refused(
            Reason.NOT_SUCCEEDED, f"the spec of {name} was changed after it succeeded, and a new plan is being made"
        )
    if run.outcome is not RunOutcome.SUCCEEDED or ready is None or ready.status != "True":
        raise Refused(Reason.NOT_SUCCEEDED, f"{name} has not succeeded ({state})")
    if status.plan is None or status.plan.hash != run.plan_hash:
        raise Refused(
            Reason.NOT_SUCCEEDED, f"the status of {name} does not show the plan of its last run yet; try again"
        )
    return run


def kept(uid: str, run: Run | None, operator_namespace: str) -> Run:
    """The run, if it is closed and its origins are kept; otherwise Refused says why not."""
    if run is None:
        raise _expired(f"uid {uid}", operator_namespace)
    name = f"{run.namespace}/{run.name} (uid {uid})"
    if run.open:
        raise Refused(Reason.RUNNING, f"{name} is still running")
    if run.outcome is RunOutcome.UNDONE:
        raise Refused(Reason.ALREADY_UNDONE, f"{name} is already undone")
    if run.to_undo.outcome not in _KEPT:
        raise Refused(Reason.NOT_SUCCEEDED, f"{name} ended as {run.outcome}: there is nothing to undo")
    return run


async def _load(kube: KubeObjects, run: Run) -> LoadedRun:
    """Plan and origins of a closed run. Refused where they no longer exist, or where nothing was moved."""
    records = stores(kube)
    stored = await records.plans.load(run.uid, run.plan_hash)
    origins = await records.origins.load(run.uid, run.run_id)
    name = f"{run.namespace}/{run.name}"
    if stored is None or (stored.plan.partitions and run.started_at is not None and origins is None):
        raise _expired(name, kube.namespace)
    done = loaded_run_of(run, stored.plan, stored.ref, origins or {}, back=True)
    if not _between_log_dirs(done) and all(move.origin == move.target for move in done.moves):
        raise Refused(Reason.NOTHING_TO_UNDO, f"the run of {name} moved nothing")
    if not run.started:
        raise Refused(Reason.NOTHING_TO_UNDO, f"the run of {name} submitted no step: other tools made the changes")
    return done


async def _kept_under(kube: KubeObjects, namespace: str, name: str) -> str:
    """The kept runs of deleted resources of that name, as text; empty where none can be read."""
    try:
        runs = [run for run in await stores(kube).runs.list_all() if (run.namespace, run.name) == (namespace, name)]
    except RebalanceError:
        return ""
    rows = [
        f"--print --uid {run.uid} ({run.outcome or 'open'}, started {run.opened_at:%Y-%m-%d %H:%M} UTC)" for run in runs
    ]
    return f"; kept runs of that name: {', '.join(rows)}" if rows else ""


def _between_log_dirs(done: LoadedRun) -> list[LogDirMove]:
    """The replicas that the run has moved between the log dirs of their brokers."""
    return [move for move in done.log_dirs if None not in {move.after, move.origin} and move.after != move.origin]


def way_back(moves: Iterable[PartitionMove]) -> WayBack:
    """The moves that restore the original replicas of every partition."""
    moved = [move for move in moves if move.origin != move.target]
    copies = [(move, len(set(move.origin) - set(move.target))) for move in moved]
    return WayBack(
        partitions=len(moved),
        copies=sum(count for _, count in copies),
        bytes_to_copy=sum(move.size_bytes * count for move, count in copies),
        leaders=sum(move.origin[0] != move.target[0] for move in moved),
    )


def reassignment(moves: Iterable[PartitionMove], *, from_targets: bool) -> dict[str, Any]:
    """Kafka's reassignment file that leads to the origins.

    ``original_replicas`` is KIP-236's: the replicas before the reassignment, which a cancellation restores. Here these
    are the targets of the run; they are included only if every partition reached its target (``from_targets``).
    """
    return {
        "version": 1,
        "partitions": [
            {"topic": move.tp.topic, "partition": move.tp.partition, "replicas": list(move.origin)}
            | ({"original_replicas": list(move.target)} if from_targets else {})
            for move in sorted(moves, key=lambda move: move.tp)
            if move.origin != move.target
        ],
    }


def _ended(run: Run) -> str:
    return f"that succeeded at {run.closed_at:%Y-%m-%d %H:%M} UTC"


def _cost(rebalance: KafkaRebalance, way: WayBack) -> str:
    name = f"{rebalance.metadata.namespace}/{rebalance.metadata.name}"
    return (
        f"{name}: {way.partitions} partitions return to their original replicas: {way.copies} replicas and "
        f"{format_bytes(way.bytes_to_copy)} to copy (sizes at planning time), {way.leaders} preferred leaders change. "
        "The execution limits and throttle of the resource apply."
    )


def _expired(what: str, operator_namespace: str | None = None) -> Refused:
    where = f"namespace {operator_namespace}" if operator_namespace else "the operator's namespace"
    return Refused(
        Reason.ORIGINS_EXPIRED,
        f"plan and origins of {what} are not in {where}: they are kept {PLAN_RETENTION.days} days after the end of a "
        "run, or as long as its resource exists (use --operator-namespace for another namespace)",
    )
