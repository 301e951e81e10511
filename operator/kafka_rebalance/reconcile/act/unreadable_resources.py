"""Resources that cannot be parsed far enough to find their cluster. Their status says so, and they may be deleted."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_rebalance.api.conditions import ReadySummary, summarise
from kafka_rebalance.api.connection_resource import KafkaConnectionStatus
from kafka_rebalance.api.resource_status import Condition, KafkaRebalanceStatus, ResourceStatus
from kafka_rebalance.api.throttle_resource import KafkaReassignmentThrottleStatus
from kafka_rebalance.api.v1alpha1 import (
    CONNECTIONS,
    REASSIGNMENT_THROTTLES,
    REBALANCES,
    ObjectMeta,
    lenient_conditions,
    parse_deleted_throttle,
    parse_metadata,
)
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.resources import UNEXPECTED, Resources
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.record import Stores

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 15.0
"""How long to wait after a finalizer could not be removed."""
_STATUSES: Mapping[str, type[ResourceStatus]] = {
    CONNECTIONS: KafkaConnectionStatus,
    REASSIGNMENT_THROTTLES: KafkaReassignmentThrottleStatus,
    REBALANCES: KafkaRebalanceStatus,
}


class UnreadableResources:
    """Reports on a resource why it cannot be read; removes its finalizer if it is being deleted."""

    def __init__(self, kube: KubeObjects, resources: Resources, stores: Stores, clock: Clock) -> None:
        self._kube = kube
        self._resources = resources
        self._stores = stores
        self._clock = clock
        self._to_release: set[str] = set()
        """The uids of resources that have changed, or whose finalizer could not be removed."""
        self._releasing: set[str] = set()
        """The uids of resources that a task looks after."""

    async def rebalance(self, body: Mapping[str, Any], error: Refused) -> None:
        """Never served, or without a readable connection.

        If it is being deleted, the finalizer is removed once no run is open, or by order.
        """
        await self._say_invalid(REBALANCES, body, error)
        await self._release(REBALANCES, body)

    async def throttle(self, body: Mapping[str, Any], error: Refused) -> None:
        """Never read before. If it is being deleted, the finalizer is removed: its cluster is not known."""
        await self._say_invalid(REASSIGNMENT_THROTTLES, body, error)
        await self._release(REASSIGNMENT_THROTTLES, body)

    async def connection(self, body: Mapping[str, Any], error: Refused) -> None:
        """Never read before: no cluster is connected to for it."""
        await self._say_invalid(CONNECTIONS, body, error)

    async def failed(self, plural: str, body: Mapping[str, Any]) -> None:
        """Report an unexpected error on the resource. Nothing else is done, because the resource may be in use."""
        await self._say_invalid(plural, body, Transient(Reason.INTERNAL_ERROR, UNEXPECTED))

    async def _release(self, plural: str, body: Mapping[str, Any]) -> None:
        """Remove the finalizer if it is to be removed. A failure is tried again, because no further event may come."""
        try:
            about = parse_metadata(body)
        except Refused:
            return  # it is in the log
        self._to_release.add(about.uid)
        if about.uid in self._releasing:
            return
        self._releasing.add(about.uid)
        try:
            while about.uid in self._to_release:
                self._to_release.discard(about.uid)
                try:
                    await self._release_as_it_is(plural, about)
                except RebalanceError as failed:
                    where = f"{about.namespace}/{about.name}"
                    log.warning("%s %s: finalizer not removed: %s", plural, where, failed.message)
                    self._to_release.add(about.uid)
                    await asyncio.sleep(_AGAIN_SECONDS)
        finally:
            self._releasing.discard(about.uid)

    async def _release_as_it_is(self, plural: str, about: ObjectMeta) -> None:
        """Read it again: it may be gone by now, or readable, and then an engine has it."""
        body = await self._kube.get(plural, about.namespace, about.name)
        if body is None or body["metadata"]["uid"] != about.uid or _is_readable(plural, body):
            return
        metadata = parse_metadata(body)
        if not (metadata.deleting and metadata.held):
            return
        if plural == REASSIGNMENT_THROTTLES:
            await self._resources.remove_throttle_finalizer(metadata, wholly=False)
            return
        run = await self._stores.runs.load(metadata.uid)
        if run is None or not run.open or metadata.let_go_ordered:
            await self._resources.remove_unread_finalizer(metadata)

    async def _say_invalid(self, plural: str, body: Mapping[str, Any], error: RebalanceError) -> None:
        try:
            metadata = parse_metadata(body)
        except Refused:
            log.warning("%s without readable metadata: %s", plural, error.message)
            return
        log.warning("%s %s/%s: %s", plural, metadata.namespace, metadata.name, error.message)
        before = lenient_conditions(body.get("status"))
        await self._say(plural, metadata, before, error)

    async def _say(self, plural: str, metadata: ObjectMeta, before: Iterable[Condition], error: RebalanceError) -> None:
        conditions = summarise(
            before,
            ReadySummary.STUCK,
            error.reason,
            error.message,
            generation=metadata.generation,
            now=self._clock.now(),
        )
        status = _STATUSES[plural](observed_generation=metadata.generation, conditions=conditions)
        if tuple(before) == conditions:
            return  # our own write comes back as a change
        try:
            await self._kube.patch_status(plural, metadata.namespace, metadata.name, status.as_patch())
        except RebalanceError as failed:
            log.warning("%s/%s: status not written: %s", metadata.namespace, metadata.name, failed.message)


def _is_readable(plural: str, body: Mapping[str, Any]) -> bool:
    try:
        Desired.of(body) if plural == REBALANCES else parse_deleted_throttle(body)
    except Refused:
        return False
    return True
