"""Resources that cannot be parsed far enough to find their cluster. Their status says so, and they may be deleted."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple

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
from kafka_rebalance.kube.api_errors import Conflict
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


class _Unread(NamedTuple):
    """A resource that is to be reported on and, if ``release``, released.

    Without an ``error``, its status has been written. ``before``: the conditions that it had.
    """

    plural: str
    about: ObjectMeta
    before: tuple[Condition, ...]
    error: RebalanceError | None
    release: bool

    @property
    def name(self) -> str:
        return f"{self.plural} {self.about.namespace}/{self.about.name}"


class UnreadableResources:
    """Reports on a resource why it cannot be read; removes its finalizer if it is being deleted.

    Users choose how many such resources they have and how often they edit them, and all clusters share the threads that
    call the API server. So only the newest state of each resource waits, and one task for each namespace handles one
    resource after the other. ``start`` starts a task.
    """

    def __init__(
        self,
        kube: KubeObjects,
        resources: Resources,
        stores: Stores,
        start: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
    ) -> None:
        self._kube = kube
        self._resources = resources
        self._stores = stores
        self._start = start
        self._clock = clock
        self._waiting: dict[str, dict[str, _Unread]] = {}
        """By namespace, then by uid in the order in which they began to wait. A namespace here has a task."""
        self._again: set[str] = set()
        """The uids of resources that are to be released again after a pause."""

    def rebalance(self, body: Mapping[str, Any], error: Refused) -> None:
        """Never served, or without a readable connection.

        If it is being deleted, the finalizer is removed once no run is open, or by order.
        """
        self._add(REBALANCES, body, error, release=True)

    def throttle(self, body: Mapping[str, Any], error: Refused) -> None:
        """Never read before. If it is being deleted, the finalizer is removed: its cluster is not known."""
        self._add(REASSIGNMENT_THROTTLES, body, error, release=True)

    def connection(self, body: Mapping[str, Any], error: Refused) -> None:
        """Never read before: no cluster is connected to for it."""
        self._add(CONNECTIONS, body, error, release=False)

    def failed(self, plural: str, body: Mapping[str, Any]) -> None:
        """Report an unexpected error on the resource. Nothing else is done, because the resource may be in use."""
        self._add(plural, body, Transient(Reason.INTERNAL_ERROR, UNEXPECTED), release=False)

    def _add(self, plural: str, body: Mapping[str, Any], error: RebalanceError, *, release: bool) -> None:
        """Replace what waits of this resource. Raises nothing, because the watch goes on."""
        try:
            about, before = parse_metadata(body), lenient_conditions(body.get("status"))
        except Refused:
            log.warning("%s without readable metadata: %s", plural, error.message)
        except Exception:
            log.exception("%s: unexpected error", plural)
        else:
            self._put(_Unread(plural, about, before, error, release))

    def _put(self, one: _Unread) -> None:
        namespace = one.about.namespace
        if namespace not in self._waiting:
            self._waiting[namespace] = {}
            self._start(self._handle_all(namespace))
        replaced = self._waiting[namespace].get(one.about.uid)
        release = one.release or (replaced is not None and replaced.release)
        self._waiting[namespace][one.about.uid] = one._replace(release=release)

    async def _handle_all(self, namespace: str) -> None:
        """Until none of the namespace waits."""
        waiting = self._waiting[namespace]
        try:
            while waiting:
                await self._handle(waiting.pop(next(iter(waiting))))
        finally:
            del self._waiting[namespace]

    async def _handle(self, one: _Unread) -> None:
        try:
            if one.error is not None:
                await self._say_invalid(one, one.error)
            if one.release:
                await self._release(one)
        except Exception:
            # An unexpected error about one resource must not stop the work for the others.
            log.exception("%s: unexpected error", one.name)

    async def _release(self, one: _Unread) -> None:
        """Remove the finalizer if it is to be removed. A failure is tried again, because no further event may come."""
        try:
            await self._release_as_it_is(one.plural, one.about)
        except RebalanceError as failed:
            log.warning("%s: finalizer not removed: %s", one.name, failed.message)
            if one.about.uid not in self._again:
                self._again.add(one.about.uid)
                self._start(self._release_again(one._replace(error=None)))

    async def _release_again(self, one: _Unread) -> None:
        try:
            await asyncio.sleep(_AGAIN_SECONDS)
        finally:
            self._again.discard(one.about.uid)
        if one.about.uid not in self._waiting.get(one.about.namespace, {}):
            self._put(one)

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

    async def _say_invalid(self, one: _Unread, error: RebalanceError) -> None:
        about = one.about
        conditions = summarise(
            one.before,
            ReadySummary.STUCK,
            error.reason,
            error.message,
            generation=about.generation,
            now=self._clock.now(),
        )
        if one.before == conditions:
            return  # our own write comes back as a change
        if not {condition.message for condition in conditions} <= {condition.message for condition in one.before}:
            log.warning("%s: %s", one.name, error.message)  # not at each edit
        status = _STATUSES[one.plural](observed_generation=about.generation, conditions=conditions)
        patch = {**status.as_patch(), "metadata": {"resourceVersion": about.resource_version}}
        try:
            await self._kube.patch_status(one.plural, about.namespace, about.name, patch)
        except Conflict:
            pass  # it has changed while it waited, and an event of the change comes
        except RebalanceError as failed:
            log.warning("%s: status not written: %s", one.name, failed.message)


def _is_readable(plural: str, body: Mapping[str, Any]) -> bool:
    try:
        Desired.of(body) if plural == REBALANCES else parse_deleted_throttle(body)
    except Refused:
        return False
    return True
