"""A rebalance without Kubernetes: the supervisor and the engine of the operator, with their objects in a directory.

The directory's lock is what the Lease is to the operator. The file of the user is applied at each start, as with
kubectl. So a killed run is continued by the same command, and an edited file acts as an edited resource.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import (
    CONNECTIONS,
    REASSIGNMENT_THROTTLES,
    REBALANCES,
    KafkaRebalance,
    parse_rebalance,
)
from kafka_rebalance.app.load_model_files import LoadModelFiles
from kafka_rebalance.app.local_order import LocalOrder, order_of
from kafka_rebalance.app.observed_admin import observed
from kafka_rebalance.app.run_history_files import RunHistoryFiles
from kafka_rebalance.app.system_clock import SystemClock
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.ports import KafkaAdmin
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.kube.change_requests import ChangeRequests
from kafka_rebalance.kube.directory_client import carry_out_waiting
from kafka_rebalance.kube.directory_objects import DirectoryObjects, GivenObjects
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.kube.record_files import RecordFiles
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import at_rest
from kafka_rebalance.reconcile.decide.step_blocks import STOPPED
from kafka_rebalance.reconcile.engine import ClusterEngine
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.supervisor import Supervisor
from kafka_rebalance.telemetry.kafka_call_metrics import KafkaCallMetrics

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
_TTL = "ttlSecondsAfterFinished"
"""Ignored here: without the resource, the next run would execute the file again."""
_RESTORE_LOOKS = 120
"""How often the end looks whether throttles are restored: a dead broker must not keep the run from ending."""
_REQUEST_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class LocalManifests:
    """The content of the file. ``others``: KafkaConnections and KafkaReassignmentThrottles, by plural."""

    rebalance: Mapping[str, Any]
    others: Sequence[tuple[str, Mapping[str, Any]]] = ()
    given: GivenObjects = field(default_factory=GivenObjects)

    @property
    def where(self) -> tuple[str, str]:
        """Namespace and name of the KafkaRebalance."""
        metadata = self.rebalance["metadata"]
        return metadata["namespace"], metadata["name"]


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """``back``: roll back what the records say. ``load_models`` and ``history``: as for the operator."""

    directory: Path
    back: bool = False
    load_models: str | None = None
    history: str | None = None


class End(Enum):
    """How a run ended."""

    DONE = auto()
    """Succeeded, nothing to do, or rolled back."""
    PARTIAL = auto()
    """Not everything could be rolled back."""
    AT_REST = auto()
    """Stopped at a rest point; the next start goes on."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended, and a sentence about it."""

    end: End
    message: str
    throttled: bool = False
    """Whether throttles are left that could not be removed."""


Show = Callable[[KafkaRebalance], None]
Connect = Callable[[ConnectionSettings, Fence], KafkaAdmin]


async def run_locally(
    settings: LocalSettings, manifests: LocalManifests, connect: Connect, stop: asyncio.Event, show: Show
) -> Ended:
    """Run to the end, or after ``stop`` to a rest point. ``show`` gets each state.

    Raises why nothing can be begun; what has begun goes on until it ends.
    """
    clock = SystemClock()
    kube = DirectoryObjects(await asyncio.to_thread(RecordFiles.to_write, settings.directory), clock.now)
    kube.given = manifests.given
    requests = ChangeRequests(settings.directory)
    try:
        await asyncio.to_thread(requests.open)
        await carry_out_waiting(kube, requests)  # requests to a killed run are applied before the file
        order = await order_of(kube, *manifests.where, back=settings.back)
        if order is None:
            return Ended(End.DONE, "nothing to roll back")
        await _apply(kube, manifests, order)
        async with _supervised(kube, settings, connect, clock) as supervisor, _taking(kube, requests):
            return await _LocalRun(kube, supervisor, manifests.where, order, stop, show).followed()
    finally:
        await kube.close()


async def _apply(kube: DirectoryObjects, manifests: LocalManifests, order: LocalOrder) -> None:
    """Make the objects those of the file, and give the order on them."""
    namespace, name = manifests.where
    kept = {(plural, other["metadata"]["namespace"], other["metadata"]["name"]) for plural, other in manifests.others}
    for plural in (CONNECTIONS, REASSIGNMENT_THROTTLES):
        for body in await kube.list_resources(plural):
            metadata = body["metadata"]
            where = (plural, metadata["namespace"], metadata["name"])
            if where not in kept:
                await kube.delete_resource(*where, metadata["uid"])
            elif "deletionTimestamp" in metadata:
                # A run deleted it at its end, and was killed before the configs were restored. A resource that is being
                # deleted limits nothing, so the file creates a new one. The ledger knows what is left to restore.
                await kube.patch_finalizers(*where, (), metadata["resourceVersion"])
    for plural, other in manifests.others:
        await kube.apply(plural, other)
    stored = await kube.get(REBALANCES, namespace, name)
    manifest = order.manifest(manifests.rebalance, stored)
    spec = {field: value for field, value in manifest["spec"].items() if field != _TTL}
    await kube.apply(REBALANCES, {**manifest, "spec": spec})
    await order.give(kube, namespace, name)


@contextlib.asynccontextmanager
async def _supervised(
    kube: DirectoryObjects, settings: LocalSettings, connect: Connect, clock: SystemClock
) -> AsyncIterator[Supervisor]:
    """The supervisor of the operator; what its watch would deliver comes from the directory."""
    fence = Fence(is_leader=lambda: True)
    history, calls = RunHistoryFiles(settings.history, settings.load_models), KafkaCallMetrics(CollectorRegistry())
    supervisor = Supervisor(
        kube,
        # The user's own file names all servers, so they are trusted.
        lambda connection, _: observed(connect(connection, fence), calls),
        LoadModelFiles(settings.load_models, clock.now),
        clock,
        history=history,
    )

    def seen(plural: str, body: Json, gone: bool) -> None:
        supervisor.seen(plural, body, deleted=gone)

    await supervisor.start()
    try:
        await supervisor.know(())
        kube.seen = seen
        yield supervisor
    finally:
        kube.seen = None
        await supervisor.stop()
        await fence.wait_until_idle()
        await supervisor.close_clients()
        await history.close()


@contextlib.asynccontextmanager
async def _taking(kube: DirectoryObjects, requests: ChangeRequests) -> AsyncIterator[None]:
    """Apply the requests of commands while the context is open. Afterwards commands lock the directory themselves."""

    async def take() -> None:
        while True:
            try:
                await carry_out_waiting(kube, requests)
            except RebalanceError as error:
                log.warning("the change of a command is delayed: %s", error.message)
            await asyncio.sleep(_REQUEST_LOOK_SECONDS)

    taking = asyncio.create_task(take())
    try:
        yield
    finally:
        taking.cancel()
        await asyncio.wait([taking])


class _LocalRun:
    """Follows one rebalance to its end."""

    def __init__(
        self,
        kube: DirectoryObjects,
        supervisor: Supervisor,
        where: tuple[str, str],
        order: LocalOrder,
        stop: asyncio.Event,
        show: Show,
    ) -> None:
        self._kube = kube
        self._supervisor = supervisor
        self._namespace, self._name = where
        self._order = order
        self._stop = stop
        self._show = show
        self._uid = ""
        self._engine: ClusterEngine | None = None

    async def followed(self) -> Ended:
        """Look at it twice a second until it has ended."""
        while True:
            body = await self._kube.get(REBALANCES, self._namespace, self._name)
            if body is None:
                return await self._tidied(await self._gone())
            seen = parse_rebalance(body)
            self._uid = seen.metadata.uid
            if (connection := self._supervisor.connection_of(self._uid)) is not None:
                self._engine = connection.engine or self._engine
            self._show(seen)
            try:
                ended = await self._ended(seen)
            except RebalanceError:
                await self._tidied(Ended(End.AT_REST, ""))
                raise
            if ended is not None:
                return await self._tidied(ended)
            if self._stop.is_set():
                if self._engine is not None:
                    self._engine.stop_steps()
                if await self._rests():
                    return await self._tidied(Ended(End.AT_REST, "stopped at a rest point: run it again to go on"))
            await self._pause()

    async def _pause(self) -> None:
        """Until the next look, or until it is to stop."""
        waits = asyncio.sleep(_LOOK_SECONDS) if self._stop.is_set() else self._stop.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                await waits

    async def _gone(self) -> Ended:
        """The records are kept if not everything is as it was."""
        run = await RunStore(self._kube).load(self._uid)
        if run is None or not run.to_undo.started:
            return Ended(End.DONE, "rolled back: replicas and throttles are as before the run")
        message = f"ended as {run.outcome}: what is left shows kafka-rebalance undo --print --uid {run.uid}"
        return Ended(End.PARTIAL, message)

    async def _ended(self, seen: KafkaRebalance) -> Ended | None:
        """None: it goes on. Raises what prevents the start of a run, unless that passes."""
        ready = find_condition(seen.status.conditions, ConditionType.READY)
        if ready is None or ready.observed_generation != seen.metadata.generation:
            return None
        if ready.reason == Reason.ROLLED_BACK_PARTIALLY:
            return Ended(End.PARTIAL, ready.message)
        if ready.status == "True":
            if not self._order.back:
                return Ended(End.DONE, f"{ready.reason}: {ready.message}")
            if ready.reason == Reason.UNDONE:  # what is on record of it goes, too
                await self._kube.delete_resource(REBALANCES, self._namespace, self._name, seen.metadata.uid)
            return None
        problem = self._problem(seen.metadata.uid)
        if problem is None or isinstance(problem, Transient) or seen.metadata.deleting:
            return None
        run = await RunStore(self._kube).load(seen.metadata.uid)
        if run is None or not run.open:
            raise problem
        return None

    def _problem(self, uid: str) -> RebalanceError | None:
        connection = self._supervisor.connection_of(uid)
        if connection is None:
            return None
        rebalance = connection.rebalances[uid]
        return connection.refusals.get(uid) or rebalance.refusal or rebalance.memory.error

    async def _rests(self) -> bool:
        """Whether nothing of it is in flight, and the last round could begin nothing."""
        run = await RunStore(self._kube).load(self._uid)
        if run is None or not run.open:
            return True
        if self._engine is None:
            return False
        async with self._engine.between_rounds:
            rebalance = self._engine.rebalances.get(self._uid)
            return rebalance is not None and _begins_nothing(rebalance)

    async def _tidied(self, ended: Ended) -> Ended:
        """Take back the cluster's throttle, which is only for this run, and wait until every config is restored."""
        for body in await self._kube.list_resources(REASSIGNMENT_THROTTLES):
            metadata = body["metadata"]
            await self._kube.delete_resource(
                REASSIGNMENT_THROTTLES, metadata["namespace"], metadata["name"], metadata["uid"]
            )
        for _ in range(_RESTORE_LOOKS):
            if self._engine is None or not self._engine.holds_throttles:
                return ended
            await asyncio.sleep(_LOOK_SECONDS)
        return replace(ended, throttled=True)


def _begins_nothing(rebalance: RebalanceView) -> bool:
    """Between two rounds: whether the last one found it at rest and was not allowed to begin a step."""
    return rebalance.assessment.step_block == STOPPED and at_rest(rebalance)
