"""Assigns resources to the Kafka clusters they name, and keeps one engine per cluster running while one names it.

An engine works with the client of the cluster's owner, and a resource gets to it by a connection of that owner only.
Watch events are stored here and wake the engine. If a cluster cannot be reached, the resources that
name it say so and the connection is retried, while the engines of other clusters go on.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from kafka_rebalance.api.connection import KafkaSource
from kafka_rebalance.api.v1alpha1 import (
    CONNECTIONS,
    REASSIGNMENT_THROTTLES,
    REBALANCES,
    KafkaConnection,
    parse_connection,
    parse_metadata,
)
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.permissions import Permissions
from kafka_rebalance.reconcile.act.resources import UNEXPECTED, Resources
from kafka_rebalance.reconcile.act.retention import clean_up, keep_limited, keep_swept
from kafka_rebalance.reconcile.act.unreadable_resources import UnreadableResources
from kafka_rebalance.reconcile.admission import Admission
from kafka_rebalance.reconcile.connection_book import ConnectionBook, NamedConnection
from kafka_rebalance.reconcile.connection_retries import ConnectionRetries, Tried
from kafka_rebalance.reconcile.connection_samplers import ConnectionSamplers, SampleLake
from kafka_rebalance.reconcile.engines import Engines
from kafka_rebalance.reconcile.owner_clients import ConnectAs
from kafka_rebalance.reconcile.refused_resources import RefusedResources
from kafka_rebalance.reconcile.report.run_recorder import NO_HISTORY, RunHistory
from kafka_rebalance.reconcile.runs.plan_maker import LoadModels
from kafka_rebalance.reconcile.state.lasting_tasks import LastingTasks
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import Stores
from kafka_rebalance.reconcile.throttle.throttle_lifecycle import first_seen, requested_of, seen_again
from kafka_rebalance.reconcile.throttle.unconnected_resources import UnconnectedResources
from kafka_rebalance.reconcile.throttle_placing import follows, limited_by_unread, place_all, place_one_by_one
from kafka_rebalance.reconcile.unfinished_work import UnfinishedWork
from kafka_rebalance.telemetry.metric_families import Sample

log = logging.getLogger(__name__)

_LOOK_SECONDS = 15.0
"""How often a KafkaConnection is looked at while all is well: labels of namespaces and brokers change unseen."""
_LIMITS_SECONDS = 10.0
"""How long rebalances wait for known throttle resources of their owner whose cluster has not been reached yet."""


class Supervisor:
    """All engines of one operator. ``inline``: whether inline connections are accepted; ``lake``: for samples."""

    def __init__(
        self,
        kube: KubeObjects,
        connect: ConnectAs,
        load_models: LoadModels,
        clock: Clock,
        *,
        inline: bool = True,
        history: RunHistory = NO_HISTORY,
        lake: SampleLake | None = None,
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._resources = Resources(kube, clock.now)
        self._stores = Stores(PlanStore(kube), OriginStore(kube), RunStore(kube))
        self._unreadable = UnreadableResources(kube, self._resources, self._stores, self._in_background, clock)
        lifecycle = Lifecycle(self._resources, self._stores, clock)
        unconnected = UnconnectedResources(self._resources, lifecycle, clock)
        self._permissions = Permissions(kube, inline=inline)
        self._admission = Admission(self._permissions, self._stores.runs)
        self._book = ConnectionBook()
        self._engines = Engines(
            kube, connect, self._resources, self._stores, load_models, clock, self._book, self._begin_anew, history
        )
        self._refused = RefusedResources(
            self._engines, self._stores, unconnected, self._limits_known, self._hand_over, self._in_background, clock
        )
        self._all_known = asyncio.Event()
        self._all_known.set()
        self._unfinished = UnfinishedWork(self._engines, self._book, self._look_after, self._all_known)
        self._kinds: Mapping[str, Callable[..., None]] = {
            CONNECTIONS: self.connection_seen,
            REASSIGNMENT_THROTTLES: self.throttle_seen,
            REBALANCES: self.rebalance_seen,
        }
        self._lasting = LastingTasks()
        self._samplers = ConnectionSamplers(lake, self._engines, self._lasting, clock)
        self._background: set[asyncio.Task[None]] = set()

    @property
    def failed_tasks(self) -> tuple[str, ...]:
        """The tasks that must not end and did, but for engines, which ``rounds`` shows."""
        return self._lasting.failed

    def rounds(self) -> dict[str, float]:
        """By cluster id: seconds since a call of the round last ended; infinite if the task of the engine has ended."""
        return self._engines.rounds()

    def samples(self) -> tuple[Sample, ...]:
        """The metrics of all clusters and rebalances."""
        return tuple(self._engines.samples())

    def connection_of(self, uid: str) -> NamedConnection | None:
        """The connection that a rebalance names; None if the rebalance is not known."""
        return self._book.with_rebalance(uid)

    def seen(self, plural: str, body: dict[str, Any], *, deleted: bool) -> None:
        """A resource of this kind was created, changed or is gone.

        A failure is reported on the resource. It must not stop the watch or the start of the operator.
        """
        try:
            self._kinds[plural](body, deleted=deleted)
        except Exception:
            about = body.get("metadata", {})
            log.exception("%s %s/%s: unexpected error", plural, about.get("namespace"), about.get("name"))
            self._unreadable.failed(plural, body)

    def connection_seen(self, body: dict[str, Any], *, deleted: bool) -> None:
        """A KafkaConnection was created, changed or is gone."""
        try:
            metadata = parse_metadata(body)
        except Refused as error:
            self._unreadable.connection(body, error)
            return
        connection = self._book.of_owner(Owner(metadata.namespace, metadata.name))
        if connection.outdated(metadata, deleted=deleted):
            return
        before, connection.unread = connection.resource, None
        if deleted:
            self._resources.forget(metadata.uid)
        try:
            connection.resource = None if deleted else parse_connection(body)
        except Refused as error:
            if before is not None and before.metadata.uid == metadata.uid:
                connection.resource = before.model_copy(update={"metadata": metadata, "unread": error.message})
                connection.changed.set()
                return
            connection.resource, connection.unread = None, metadata  # the deletion of the former one was missed
            self._unreadable.connection(body, error)
            if before is None:
                return
        self._look_after(connection)
        resource = connection.resource
        if resource is not None and (before is None or before.metadata.uid != metadata.uid):
            connection.verified = None  # it may have been created again because its cluster was replaced
        elif before is not None and resource is not None and before.spec == resource.spec:
            return
        connection.changed.set()
        if connection.kafka != connection.verified:
            connection.begin_nothing(Transient(Reason.KAFKA_UNREACHABLE, "the settings of the connection are new"))

    def rebalance_seen(self, body: dict[str, Any], *, deleted: bool) -> None:
        """A KafkaRebalance was created, changed or is gone."""
        try:
            metadata = parse_metadata(body)
            known = self._book.with_rebalance(metadata.uid)
            if deleted:
                self._book.remove(REBALANCES, metadata)
                return
            if known is None or known.forgotten_if_gone(metadata.uid):
                if not self._book.outlived(metadata, REBALANCES):
                    self._enter(Rebalance.of(body))
                return
            rebalance = known.rebalances[metadata.uid]
            before = rebalance.desired
            rebalance.see(body)
        except Refused as error:
            self._unreadable.rebalance(body, error)
            return
        if rebalance.desired.spec.kafka != before.spec.kafka:
            known.forget(metadata.uid)
            self._enter(Rebalance(rebalance.desired))
        elif rebalance.desired.change_key != before.change_key:
            known.wake(metadata.uid)

    def throttle_seen(self, body: dict[str, Any], *, deleted: bool) -> None:
        """A KafkaReassignmentThrottle was created, changed or is gone."""
        try:
            metadata = parse_metadata(body)
            known, uid = self._book.with_throttle(metadata.uid), metadata.uid
            self._book.unread_throttles.pop(uid, None)
            if deleted or (metadata.deleting and not metadata.held):
                self._book.remove(REASSIGNMENT_THROTTLES, metadata)
                self._resources.forget(uid)
                return
            if known is None and self._book.outlived(metadata, REASSIGNMENT_THROTTLES):
                return
            before = known.throttles[uid] if known is not None else None
            throttle = first_seen(body) if before is None else seen_again(before, body)
        except Refused as error:
            self._book.unread_throttles |= limited_by_unread(body)
            self._unreadable.throttle(body, error)
            return
        if known is not None and before is not None and before.spec.kafka != throttle.spec.kafka:
            known.forget(uid)
            known = None
        connection = known or self._named_by(throttle.spec.kafka, metadata.namespace)
        self._book.enter_throttle(connection, throttle)
        if follows(connection, throttle):
            connection.place_throttles({uid: throttle}, connection.placed[uid])
        if before is None or requested_of(before) != requested_of(throttle):  # else our own status came back
            self._hand_over(connection, uid)
            connection.wake(uid)

    async def know(self, namespaces: Sequence[str]) -> None:
        """Take in all resources before any cluster is connected to. Raises what listing raises. Empty: all namespaces.

        Before that it is not known what names a cluster for its owner on record. Nothing may move before its limits
        are known either, so the throttle resources come before the rebalances.
        """
        found = [
            (plural, body)
            for plural in self._kinds
            for namespace in namespaces or (None,)
            for body in await self._kube.list_resources(plural, namespace)
        ]
        self._all_known.clear()
        for plural, body in found:
            self.seen(plural, body, deleted=False)
            await asyncio.sleep(0)  # thousands take seconds
        self._all_known.set()
        self._engines.end_bindings_soon()  # a list of all runs for each: nothing is seen until this returns

    async def start(self) -> None:
        """Before anything is seen: clean up, and start the background work. ``know`` has to follow."""
        self._all_known.clear()
        await clean_up(self._stores, self._kube)
        self._lasting.start("the removal of old records", keep_swept(self._stores, self._resources, self._clock))
        self._lasting.start("the limit on old records", keep_limited(self._stores, self._resources))
        self._lasting.start("the end of work that nothing names", self._unfinished.keep_ending())
        self._lasting.start("the renewal of what clusters are known by", self._engines.keep_remembering())

    async def stop(self) -> None:
        """End all engines at a safe point: between two calls. Reassignments in flight continue in Kafka."""
        await self._lasting.stop()
        for task in self._background:
            task.cancel()
        await self._engines.stop()
        await asyncio.gather(*self._background, return_exceptions=True)

    async def close_clients(self) -> None:
        """Close the clients of all engines, when no order is under way any more. Takes a bounded time."""
        await self._engines.close_clients()

    def _enter(self, rebalance: Rebalance) -> None:
        connection = self._named_by(rebalance.desired.spec.kafka, rebalance.desired.metadata.namespace)
        self._book.enter_rebalance(connection, rebalance)
        self._hand_over(connection, rebalance.uid)

    def _named_by(self, source: KafkaSource, namespace: str) -> NamedConnection:
        connection = self._book.of(source, namespace)
        self._look_after(connection)
        return connection

    def _look_after(self, connection: NamedConnection) -> None:
        """Start a task that connects, if none runs. An inline connection that has an engine needs no task."""
        idle = connection.task is None or connection.task.done()
        if idle and (connection.engine is None or connection.inline is None):
            name = f"the task that connects {connection.owner}"
            connection.task = self._lasting.start(name, self._establish(connection))

    def _begin_anew(self, connection: NamedConnection) -> None:
        """Its engine has been ended for another owner of the cluster."""
        connection.begin_anew()
        self._look_after(connection)

    def _hand_over(self, connection: NamedConnection, *uids: str) -> None:
        """Give the engine what it does not have yet; of many resources, only these ``uids``.

        A task of its own looks up which resources may use a KafkaConnection.
        """
        if connection.engine is not None and connection.inline is not None:
            chosen = connection.chosen_of(uids)
            if connection.may_move:
                for uid in chosen:
                    if uid in connection.rebalances:
                        connection.place(connection.rebalances[uid], connection.engine)
            throttles = {uid: connection.throttles[uid] for uid in chosen if uid in connection.throttles}
            place_one_by_one(connection, throttles, connection.engine)
        connection.changed.set()

    async def _establish(self, connection: NamedConnection) -> None:
        """Try until the cluster answers, then hand the resources to its engine; keep looking at a KafkaConnection."""
        retries = ConnectionRetries()
        await self._all_known.wait()
        while connection.needed:
            connection.changed.clear()
            problem = await self._lead_to_engine(connection, retries)
            if (engine := connection.engine) is not None and not connection.may_move:
                await place_all(connection, partial(self._settle, connection, problem))
                connection.tried.set()
                await self._limits_known(connection.owner)
                connection.may_move = connection.engine is engine  # else it was ended for another owner
            connection.tried.set()
            self._samplers.settle(connection)
            began = asyncio.get_running_loop().time()
            await self._settle(connection, problem)
            if problem is None and connection.inline is not None and connection.engine is not None:
                return
            await retries.wait(connection, _LOOK_SECONDS if problem is None else retries.seconds, began)
        # Nothing needs this connection any more; the next resource that names it starts anew.
        self._samplers.settle(connection)
        self._book.strike(connection)
        self._engines.end_bindings_soon()

    async def _lead_to_engine(self, connection: NamedConnection, retries: ConnectionRetries) -> RebalanceError | None:
        """Find the engine, unless it is known already. Returns why not; an engine that was known stays."""
        if connection.engine is not None and connection.verified == connection.kafka:
            return None
        settings = Tried.of(connection)
        if (problem := retries.early(settings)) is None:
            problem = await self._connected(connection)
            retries.note(settings, problem)
        return problem

    async def _connected(self, connection: NamedConnection) -> RebalanceError | None:
        kafka = connection.kafka
        try:
            self._permissions.check_inline(connection.inline)
            connection.engine = await self._engines.reached_by(connection)
        except RebalanceError as error:
            log.warning("%s: %s: %s", connection.name, error.reason, error.message)
            return error
        except Exception:
            log.exception("%s: unexpected error", connection.name)
            return Transient(Reason.INTERNAL_ERROR, UNEXPECTED)
        connection.verified = kafka
        return None

    async def _settle(self, connection: NamedConnection, problem: RebalanceError | None) -> None:
        """Hand over the resources that may use the connection; refuse the others.

        A resource that arrives meanwhile has set ``changed``, and the next call checks it.
        """
        try:
            judged = await self._admission.judge(connection, problem)
            if problem is None and connection.kafka != connection.verified:
                return  # edited meanwhile: ``changed`` is set, and the new settings are tried
            refusals = {uid: why for uid, why in judged.items() if why is not None}
            permitted = judged.keys() - refusals.keys()
            if (engine := connection.engine) is not None:
                throttles = {uid: t for uid, t in connection.throttles.items() if uid in permitted}
                refusals |= place_one_by_one(connection, throttles, engine)
                for uid, rebalance in list(connection.rebalances.items()):
                    if connection.may_move and uid in permitted:
                        connection.place(rebalance, engine)
            self._refused.refuse(connection, refusals)
            connection.begin_nothing(problem)
            resource = connection.resource
            if resource is not None and not await self._resources.report_connection(
                resource, connection.state(problem)
            ):
                self._missed(connection, resource)
        except RebalanceError as error:
            log.warning("%s: %s: %s", connection.name, error.reason, error.message)
        except Exception:
            # A defect that concerns one resource must not end the attempts to connect.
            log.exception("%s: unexpected error", connection.name)

    def _missed(self, connection: NamedConnection, gone: KafkaConnection) -> None:
        """The watch did not report that the KafkaConnection was deleted."""
        if connection.resource is gone:  # else it was created again meanwhile
            log.warning("%s: is gone", connection.name)
            connection.resource = None
            connection.changed.set()

    async def _limits_known(self, owner: Owner) -> None:
        """Return when every throttle resource of this owner has been handed to its engine, if its cluster answers soon.

        What one of them freezes or limits must not move before. Those of other owners limit nothing in its clusters.
        """
        waiting = [other.tried.wait() for other in self._book if other.owner == owner and other.throttles]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LIMITS_SECONDS):
                await asyncio.gather(*waiting)

    def _in_background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("unexpected error in the background", exc_info=error)
