"""Resources that cannot be parsed far enough to find their cluster. Their status says so, and they may be deleted."""

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
    parse_metadata,
)
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.resources import UNEXPECTED, Resources
from kafka_rebalance.reconcile.state.record import Stores

log = logging.getLogger(__name__)


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

    async def rebalance(self, body: Mapping[str, Any], error: Refused) -> None:
        """Never served, or without a readable connection.

        If it is being deleted, the finalizer is removed once no run is open, or by order.
        """
        await self._say_invalid(REBALANCES, body, error)
        try:
            metadata = parse_metadata(body)
            if metadata.deleting and metadata.held:
                run = await self._stores.runs.load(metadata.uid)
                if run is None or not run.open or metadata.let_go_ordered:
                    await self._resources.remove_unread_finalizer(metadata)
        except RebalanceError as failed:
            log.warning("finalizer of an unreadable rebalance not removed: %s", failed.message)

    async def throttle(self, body: Mapping[str, Any], error: Refused) -> None:
        """Never read before. If it is being deleted, the finalizer is removed: its cluster is not known."""
        await self._say_invalid(REASSIGNMENT_THROTTLES, body, error)
        try:
            metadata = parse_metadata(body)
            if metadata.deleting and metadata.held:
                await self._resources.remove_throttle_finalizer(metadata, wholly=False)
        except RebalanceError as failed:
            log.warning("finalizer of an unreadable throttle not removed: %s", failed.message)

    async def connection(self, body: Mapping[str, Any], error: Refused) -> None:
        """Never read before: no cluster is connected to for it."""
        await self._say_invalid(CONNECTIONS, body, error)

    async def failed(self, plural: str, body: Mapping[str, Any]) -> None:
        """Report an unexpected error on the resource. Nothing else is done, because the resource may be in use."""
        await self._say_invalid(plural, body, Transient(Reason.INTERNAL_ERROR, UNEXPECTED))

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
