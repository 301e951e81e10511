"""What a start of a run without Kubernetes is to do: go on with the file, or roll back what the records say.

A rollback that has begun is ended by the next start, whatever its options: a deletion cannot be taken back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.api.execution_spec import DeletionPolicy
from kafka_rebalance.api.v1alpha1 import GROUP, PLANNING_FIELDS, REBALANCES, UNDO_ANNOTATION, parse_metadata
from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.directory_objects import DirectoryObjects
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.reasons import Reason

_ROLLBACK_ANNOTATION = f"{GROUP}/rollback-ordered"
"""On a resource with this annotation, the deletion policy of the file does not count: a rollback was ordered."""


@dataclass(frozen=True, slots=True)
class LocalOrder:
    """``back``: roll back. ``undo``: the hash of the plan whose run has succeeded and is to be undone first.

    ``cancelled``: only a command has deleted the resource, so its deletion policy applies.
    """

    back: bool = False
    undo: str = ""
    cancelled: bool = False

    def manifest(self, wanted: Mapping[str, Any], stored: Json | None) -> Mapping[str, Any]:
        """The resource to apply. A rollback keeps the planning fields of the stored resource."""
        if stored is None:
            return wanted
        if not self.back:
            ordered = _ROLLBACK_ANNOTATION in stored["metadata"].get("annotations", {})
            return _annotated(wanted, None) if ordered else wanted
        spec = {name: value for name, value in wanted["spec"].items() if name not in PLANNING_FIELDS}
        spec |= {name: value for name, value in stored["spec"].items() if name in PLANNING_FIELDS}
        if self.cancelled:
            return {**wanted, "spec": spec}
        spec["deletionPolicy"] = DeletionPolicy.ROLLBACK.value
        return {**_annotated(wanted, "ordered"), "spec": spec}

    async def give(self, kube: DirectoryObjects, namespace: str, name: str) -> None:
        """Order the undo, or the deletion of the resource."""
        body = await kube.get(REBALANCES, namespace, name) if self.back else None
        if body is None:
            return
        if self.undo:
            await kube.annotate(REBALANCES, namespace, name, body["metadata"]["uid"], {UNDO_ANNOTATION: self.undo})
        else:
            await kube.delete_resource(REBALANCES, namespace, name, body["metadata"]["uid"])


def _annotated(manifest: Mapping[str, Any], value: str | None) -> Mapping[str, Any]:
    annotations = {**manifest["metadata"].get("annotations", {}), _ROLLBACK_ANNOTATION: value}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}


async def order_of(kube: DirectoryObjects, namespace: str, name: str, *, back: bool) -> LocalOrder | None:
    """By the records; None: there is nothing to roll back. Refused if another rebalance has not ended."""
    await _check_others(kube, namespace, name)
    body = await kube.get(REBALANCES, namespace, name)
    if body is None:
        return None if back else LocalOrder()
    metadata = parse_metadata(body)
    run = await RunStore(kube).load(metadata.uid)
    begun = metadata.deleting or UNDO_ANNOTATION in metadata.annotations or (run is not None and run.undo)
    partially = run is not None and run.outcome is RunOutcome.ROLLED_BACK_PARTIALLY
    if not back and (not begun or partially):
        return LocalOrder()
    if metadata.deleting or run is None:
        ordered = back or _ROLLBACK_ANNOTATION in body["metadata"].get("annotations", {})
        return LocalOrder(back=True, cancelled=metadata.deleting and not ordered)
    return LocalOrder(back=True, undo=_undo(run, f"{namespace}/{name}"))


def _undo(run: Run, name: str) -> str:
    """The plan to undo; empty: a deletion is enough. Refused if the records do not allow it."""
    if run.open and run.last_success is not None:
        raise Refused(
            Reason.RUNNING,
            f"{name} has a new plan, which has sent nothing: to roll back the run before it, run once with the file as "
            "it was then",
        )
    if run.open or run.outcome is RunOutcome.UNDONE:
        return run.plan_hash if run.undo and run.open else ""
    if run.outcome is not RunOutcome.SUCCEEDED:
        raise Refused(
            Reason.NOT_SUCCEEDED,
            f"the run of {name} ended as {run.outcome}: kafka-rebalance undo --print shows the rest",
        )
    return run.plan_hash if run.to_undo.started else ""


async def _check_others(kube: DirectoryObjects, namespace: str, name: str) -> None:
    """A directory may have several rebalances, one after the other."""
    ended = {run.uid for run in await RunStore(kube).list_all() if not run.open}
    for body in await kube.list_resources(REBALANCES):
        metadata = parse_metadata(body)
        if (metadata.namespace, metadata.name) != (namespace, name) and metadata.uid not in ended:
            raise Refused(
                Reason.RUNNING,
                f"the records are of KafkaRebalance {metadata.namespace}/{metadata.name}, which has not ended: run its "
                "file to the end, or with --rollback, or use another directory",
            )
