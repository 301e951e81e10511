"""The resources on the API server: status, events and our finalizer. Says what was decided, decides nothing."""

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from kafka_rebalance.api.conditions import ReadySummary, summarise
from kafka_rebalance.api.connection_resource import KafkaConnectionStatus
from kafka_rebalance.api.resource_status import ResourceStatus
from kafka_rebalance.api.throttle_resource import KafkaReassignmentThrottleStatus
from kafka_rebalance.api.v1alpha1 import (
    COMPLETED_ANNOTATION,
    CONNECTIONS,
    FINALIZER,
    MOST_FINALIZERS,
    REASSIGNMENT_THROTTLES,
    REBALANCES,
    UNDO_ANNOTATION,
    KafkaConnection,
    KafkaReassignmentThrottle,
    ObjectMeta,
    parse_metadata,
    whole_finalizers,
)
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.kube.api_errors import Conflict, Forbidden
from kafka_rebalance.kube.objects import Json, KubeObjects
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.model.topology import ClusterState
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.judging import skipped_partitions
from kafka_rebalance.reconcile.report.connection_report import ConnectionState, build_connection_status
from kafka_rebalance.reconcile.report.ready_state import cordons_left, partitions_left, ready_reason
from kafka_rebalance.reconcile.report.rebalance_report import build_status
from kafka_rebalance.reconcile.report.status_cadence import due, may_be_overwritten
from kafka_rebalance.reconcile.report.throttle_report import (
    NOTHING_IN_FORCE,
    Inputs,
    ThrottleView,
    build_throttle_status,
    inputs_of,
)
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.rebalance import Rebalance

log = logging.getLogger(__name__)

KIND = "KafkaRebalance"
THROTTLE_KIND = "KafkaReassignmentThrottle"
CONNECTION_KIND = "KafkaConnection"
_NORMAL = {
    Reason.PLANNING,
    Reason.QUEUED,
    Reason.REBALANCING,
    Reason.ROLLING_BACK,
    Reason.REVERTING,
    Reason.UNDOING,
    Reason.UNDONE,
    Reason.TAKEN_OVER,
    Reason.OUTSIDE_WINDOW,
    Reason.AWAITING_APPROVAL,
    Reason.YIELDING,
    Reason.SUPERSEDED,
    Reason.SUCCEEDED,
    Reason.NOTHING_TO_DO,
    Reason.SUSPENDED,
    Reason.FROZEN,
    Reason.APPLIED,
    Reason.NOTHING_TO_THROTTLE,
    Reason.RESTORING,
    Reason.CONNECTED,
}
"""Transitions that are reported as normal events, not as warnings."""
UNEXPECTED = "unexpected error, see the operator's log"
"""The message of a resource about an unexpected error that concerns it."""
_ATTEMPTS = 5
_MISSED_FOR = timedelta(minutes=1)
"""How long the deletion of a KafkaConnection may go unnoticed where the watch had a gap."""
_BACK = "throttles, replicas and their order are as they were before the run"
_ENDS = {
    RunOutcome.ROLLED_BACK: _BACK,
    RunOutcome.ROLLED_BACK_PARTIALLY: f"{_BACK}, except for partitions that could not be restored",
    RunOutcome.REVERTED: "reassignments in flight are cancelled, and its throttles are removed",
    RunOutcome.UNDONE: "throttles, replicas and their order are as they were before the run that had succeeded",
    RunOutcome.TAKEN_OVER: "a new resource covers the same partitions and continues from here; nothing is moved back",
    RunOutcome.ABANDONED: "reassignments in flight finish under its throttle, which is then removed",
}
_GIVEN_BACK = "what it changed in Kafka is as it was before"
_LEFT_THERE = (
    "let go before everything it changed in Kafka was given back; the rest stays in the throttle ledger and is given "
    "back as soon as the cluster can be reached"
)


class Resources:
    """Writes to our objects. A write that would change nothing is not sent."""

    def __init__(self, kube: KubeObjects, now: Callable[[], datetime]) -> None:
        self._kube = kube
        self._now = now
        self._connections_written: dict[str, tuple[KafkaConnectionStatus, datetime]] = {}
        self._throttles_written: dict[str, tuple[KafkaReassignmentThrottleStatus, datetime, Inputs]] = {}
        """By uid, the status, when it was written, and what it was built from."""
        self._throttles_certain: set[str] = set()
        """The uids of those whose last written status no earlier write can replace any more."""

    async def add_finalizer(self, rebalance: Rebalance) -> None:
        """Put our finalizer on the object. Nothing is planned before it has been seen there."""
        before = rebalance.desired
        _take_in(rebalance, before, await self._set_finalizers(REBALANCES, before.metadata, _with_ours))

    async def remove_finalizer(self, rebalance: Rebalance) -> None:
        """Take our finalizer away; those of others stay."""
        before = rebalance.desired
        _take_in(rebalance, before, await self._set_finalizers(REBALANCES, before.metadata, _without_ours))

    async def remove_unread_finalizer(self, about: ObjectMeta) -> None:
        """Remove our finalizer from a rebalance that cannot be parsed."""
        await self._set_finalizers(REBALANCES, about, _without_ours)

    async def add_throttle_finalizer(self, about: ObjectMeta) -> Json | None:
        """Put our finalizer on a throttle resource; as it is now, None: it is gone."""
        return await self._set_finalizers(REASSIGNMENT_THROTTLES, about, _with_ours)

    async def remove_throttle_finalizer(self, about: ObjectMeta, *, wholly: bool) -> None:
        """Take our finalizer away from a throttle resource, and say whether everything was given back."""
        await self._set_finalizers(REASSIGNMENT_THROTTLES, about, _without_ours)
        self._throttles_written.pop(about.uid, None)
        reason, message = (Reason.RESTORED, _GIVEN_BACK) if wholly else (RunOutcome.ABANDONED, _LEFT_THERE)
        await self._event(THROTTLE_KIND, about, reason, message, warning=not wholly)

    async def clear_undo(self, rebalance: Rebalance) -> None:
        """Remove the annotation that asked for the undo."""
        await self._annotate(rebalance, UNDO_ANNOTATION, None)

    async def undo_stands(self, rebalance: Rebalance) -> bool:
        """Whether the undo request still exists. The watch may deliver its removal late."""
        seen = rebalance.desired.metadata
        body = _if_same(await self._kube.get(REBALANCES, seen.namespace, seen.name), seen)
        ordered = seen.annotations.get(UNDO_ANNOTATION)
        return body is not None and parse_metadata(body).annotations.get(UNDO_ANNOTATION) == ordered

    async def mark_completed(self, rebalance: Rebalance, key: str) -> None:
        """Annotate the resource as executed. A backup keeps the annotation."""
        await self._annotate(rebalance, COMPLETED_ANNOTATION, key)

    async def delete(self, rebalance: Rebalance) -> None:
        """Delete the resource, as a user would; it waits for our finalizer as usual.

        Does nothing if the resource has changed since it was seen, because an edit may request a new run. The next
        round has the new version.
        """
        metadata = rebalance.desired.metadata
        where = (REBALANCES, metadata.namespace, metadata.name)
        with contextlib.suppress(Conflict):
            await self._kube.delete_resource(*where, metadata.uid, metadata.resource_version)

    async def exists(self, namespace: str, name: str, uid: str, plural: str = REBALANCES) -> bool:
        """Whether this resource, and not another of its name, still exists."""
        body = await self._kube.get(plural, namespace, name)
        return body is not None and body["metadata"]["uid"] == uid

    async def has_uid(self, namespace: str, uid: str) -> bool:
        """Whether a KafkaRebalance of the namespace has this uid, whatever its name."""
        return uid in await self.uids(namespace)

    async def uids(self, namespace: str) -> set[str]:
        """The uids of all KafkaRebalances of the namespace."""
        return {body["metadata"]["uid"] for body in await self._kube.list_resources(REBALANCES, namespace)}

    async def config_map_key(self, namespace: str, name: str, key: str) -> str:
        """One key of a ConfigMap. Transient("ConfigMapNotFound") if the key or the ConfigMap is missing."""
        data = await self._kube.read_config_map(namespace, name)
        if key not in data:
            raise Transient(
                Reason.CONFIG_MAP_NOT_FOUND, f"ConfigMap {namespace}/{name} has no key {key!r}", retry_after=15
            )
        return data[key]

    async def namespace_or_crd_terminating(self, plural: str, namespace: str) -> bool:
        """Whether the namespace or the CRD of these resources is being deleted; no, if we may not look."""
        try:
            return await self._kube.terminating(plural, namespace)
        except Forbidden:
            return False

    async def announce(self, rebalance: Rebalance, outcome: RunOutcome) -> None:
        """One event for the end of a teardown: the object is gone before a status could be read."""
        if outcome is not RunOutcome.SUCCEEDED:
            left = partitions_left(skipped_partitions(rebalance))
            message = _ENDS[outcome] + left + cordons_left(rebalance.record.run, outcome)
            warning = outcome is RunOutcome.ROLLED_BACK_PARTIALLY
            await self._event(KIND, rebalance.desired.metadata, outcome, message, warning=warning)

    async def report(
        self,
        rebalance: Rebalance,
        cluster: ClusterState,
        replica_bytes: ReplicaBytes,
        problem: RebalanceError | None = None,
        *,
        write: bool = True,
    ) -> bool:
        """Write the status if it is due, and an event if Ready's reason changed. False: it is gone.

        The status of a resource that only finalizers of others keep stays as it is: its run has ended. Without
        ``write``, the status is only built, and nothing is sent.
        """
        now, metadata = self._now(), rebalance.desired.metadata
        if metadata.deleting and not metadata.held:
            return not write or await self.exists(metadata.namespace, metadata.name, metadata.uid)
        status = build_status(rebalance, cluster, replica_bytes, now=now, problem=problem)
        written, written_at = rebalance.memory.written, rebalance.memory.written_at
        again = rebalance.memory.status_in_doubt and not may_be_overwritten(written_at, now)
        rebalance.memory = replace(rebalance.memory, built=status)
        if not write or (written is not None and not again and not due(written, status, written_at, now)):
            return True
        before, in_doubt = written or rebalance.desired.status, rebalance.memory.status_in_doubt
        # Without an answer, the status is not known.
        rebalance.memory = replace(rebalance.memory, written=None, status_in_doubt=True)
        exists = await self._patch_status(REBALANCES, metadata, status.as_patch())
        in_doubt = in_doubt and (written is None or not again)
        rebalance.memory = replace(rebalance.memory, written=status, written_at=now, status_in_doubt=in_doubt)
        if exists:
            await self._tell_transition(KIND, metadata, before, status)
        return exists

    async def report_failure(self, rebalance: Rebalance) -> bool:
        """Report that the status cannot be built. The rest of the status does not change. False: it was not written."""
        rebalance.memory = replace(rebalance.memory, written=None)  # the next status must be written in any case
        return await self._say_failed(REBALANCES, rebalance.desired.metadata, rebalance.desired.status)

    async def report_throttle_failure(self, throttle: KafkaReassignmentThrottle) -> bool:
        """Like ``report_failure``, for a throttle resource."""
        self._throttles_written.pop(throttle.metadata.uid, None)
        return await self._say_failed(REASSIGNMENT_THROTTLES, throttle.metadata, throttle.status)

    async def _say_failed(self, plural: str, about: ObjectMeta, before: ResourceStatus) -> bool:
        stuck, reason, now = ReadySummary.STUCK, Reason.INTERNAL_ERROR, self._now()
        message = f"{UNEXPECTED}; trying again"
        conditions = summarise(before.conditions, stuck, reason, message, generation=about.generation, now=now)
        if conditions == before.conditions:
            return True  # our own write came back as a change
        said = ResourceStatus(observed_generation=about.generation, conditions=conditions)
        patch = said.model_dump(mode="json", by_alias=True, include={"observed_generation", "conditions"})
        try:
            await self._patch_status(plural, about, {"status": patch})
        except RebalanceError as error:
            log.warning("%s/%s: status not written: %s", about.namespace, about.name, error.message)
            return False
        return True

    async def report_throttle(
        self,
        throttle: KafkaReassignmentThrottle,
        cluster_id: str,
        ruling: KafkaReassignmentThrottle | None,
        view: ThrottleView = NOTHING_IN_FORCE,
        problem: RebalanceError | None = None,
    ) -> bool:
        """As ``report``, for a throttle resource: whether its limits are in force. Its ``freeze`` always is."""
        metadata, now = throttle.metadata, self._now()
        written, written_at, built_from = self._throttles_written.get(metadata.uid, (None, now, ()))
        before = written or throttle.status
        throttle = throttle.model_copy(update={"status": before})
        inputs = inputs_of(throttle, ruling, view, cluster_id=cluster_id, problem=problem)
        if written is not None and inputs == built_from:
            status = written
            # The next round compares with the newest objects: identical ones are compared fastest.
            self._throttles_written[metadata.uid] = written, written_at, inputs
        else:
            status = build_throttle_status(throttle, ruling, view, cluster_id=cluster_id, now=now, problem=problem)
        in_doubt = metadata.uid not in self._throttles_certain
        again = in_doubt and not may_be_overwritten(written_at, now)
        if written is not None and not again and not due(written, status, written_at, now):
            return True
        self._throttles_written.pop(metadata.uid, None)
        self._throttles_certain.discard(metadata.uid)
        if not await self._patch_status(REASSIGNMENT_THROTTLES, metadata, status.as_patch()):
            return False
        self._throttles_written[metadata.uid] = status, now, inputs
        if again or not in_doubt:
            self._throttles_certain.add(metadata.uid)
        await self._tell_transition(THROTTLE_KIND, metadata, before, status)
        return True

    def forget(self, uid: str) -> None:
        """Forget what was written to this throttle resource or KafkaConnection, which is gone."""
        self._throttles_written.pop(uid, None)
        self._throttles_certain.discard(uid)
        self._connections_written.pop(uid, None)

    async def report_connection(self, connection: KafkaConnection, state: ConnectionState) -> bool:
        """Write the status of a KafkaConnection if it says anything new, and an event if Ready's reason changed.

        False: it is gone. Once a minute the status is written as it is, because a deletion may be missed.
        """
        metadata, now = connection.metadata, self._now()
        written, written_at = self._connections_written.get(metadata.uid, (None, now))
        before = written or connection.status
        connection = connection.model_copy(update={"status": before})
        status = build_connection_status(connection, state, now=now)
        if written is not None and status == before and timedelta(0) <= now - written_at < _MISSED_FOR:
            return True
        self._connections_written.pop(metadata.uid, None)
        if not await self._patch_status(CONNECTIONS, metadata, status.as_patch()):
            return False
        self._connections_written[metadata.uid] = status, now
        await self._tell_transition(CONNECTION_KIND, metadata, before, status)
        return True

    async def _patch_status(self, plural: str, about: ObjectMeta, patch: Json) -> bool:
        """Write the status of this resource. False if it is gone, also if another has its name.

        Its deletion may be complete although the removal of the finalizer got no answer, and another one of its name
        may have been created since. The API server ignores a uid in the patch, so the patch names the version.
        """
        where = (plural, about.namespace, about.name)
        if about.deleting:
            body = _if_same(await self._kube.get(*where), about)
            if body is None:
                return False
            patch = {**patch, "metadata": {"resourceVersion": body["metadata"]["resourceVersion"]}}
        return await self._kube.patch_status(*where, patch)

    async def _tell_transition(
        self, kind: str, about: ObjectMeta, before: ResourceStatus, after: ResourceStatus
    ) -> None:
        old, new = ready_reason(before), ready_reason(after)
        if new is None or (old is not None and old[0] == new[0]):
            return
        reason, message = new
        await self._event(kind, about, reason, message, warning=reason not in _NORMAL)

    async def _event(self, kind: str, about: ObjectMeta, reason: str, message: str, *, warning: bool) -> None:
        try:
            await self._kube.create_event(kind, about, str(reason), message, warning=warning)
        except RebalanceError as error:
            # An event is news, not state: losing one must hold up nothing.
            log.warning("%s/%s: event %s not written: %s", about.namespace, about.name, reason, error.message)

    async def _annotate(self, rebalance: Rebalance, annotation: str, value: str | None) -> None:
        """Nothing if the resource is gone, also if another has its name."""
        metadata = rebalance.desired.metadata
        await self._kube.annotate(REBALANCES, metadata.namespace, metadata.name, metadata.uid, {annotation: value})

    async def _set_finalizers(
        self, plural: str, about: ObjectMeta, change: Callable[[Sequence[str]], list[str]]
    ) -> Json | None:
        """Change them on the object as it is now. Returns the object, None: it is gone.

        Conflict if another writer is faster several times. This is not left to the next round: what made the object
        newer (our own status, for instance) may not wake the engine.
        """
        where, seen, there = (plural, about.namespace, about.name), about, about.finalizers
        problem = Conflict(f"{about.namespace}/{about.name} has more finalizers than are known")
        for attempt in range(_ATTEMPTS):
            if attempt or len(there) < MOST_FINALIZERS:  # all of them are known
                try:
                    body = await self._kube.patch_finalizers(*where, change(there), seen.resource_version)
                    return _if_same(body, about)
                except Conflict as conflict:
                    problem = conflict
            body = _if_same(await self._kube.get(*where), about)
            if body is None:
                return None
            seen, there = parse_metadata(body), whole_finalizers(body)
            if seen.deleting is not about.deleting or change(there) == list(there):
                return body  # decided for what it was, or done already
        raise problem


def _with_ours(there: Sequence[str]) -> list[str]:
    return list(there) if FINALIZER in there else [*there, FINALIZER]


def _without_ours(there: Sequence[str]) -> list[str]:
    return [name for name in there if name != FINALIZER]


def _if_same(body: Json | None, about: ObjectMeta) -> Json | None:
    """The body, if it is of the same object: another of that name may have been created since."""
    return body if body is not None and body["metadata"]["uid"] == about.uid else None


def _take_in(rebalance: Rebalance, before: Desired, body: Json | None) -> None:
    """Update the rebalance by what was read, if the object is still there.

    A version that the watch has brought meanwhile may be newer than our answer, and stays.
    """
    if body is not None and rebalance.desired is before:
        rebalance.see(body)
