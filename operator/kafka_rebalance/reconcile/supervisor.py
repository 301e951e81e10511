"""Assigns resources to the Kafka clusters they name, and keeps one engine per cluster running while one names it.

Watch events are stored here and wake the engine; nothing is decided. If a cluster cannot be reached, the resources that
name it say so and the connection is retried, while the engines of other clusters go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_rebalance.api.conditions import NO_CONNECTION_REASONS
from kafka_rebalance.api.connection import Kafka
from kafka_rebalance.api.v1alpha1 import (
    REASSIGNMENT_THROTTLES,
    KafkaReassignmentThrottle,
    parse_metadata,
)
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.kafka.credential_rotation import Connect, Source, rotating
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.store import LedgerStore, OriginStore, PlanStore, RunStore
from kafka_rebalance.model.topology import ClusterState
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.act.retention import clean_up, keep_swept
from kafka_rebalance.reconcile.act.unreadable_resources import UnreadableResources
from kafka_rebalance.reconcile.engine import ClusterEngine
from kafka_rebalance.reconcile.observe.connections import resolve
from kafka_rebalance.reconcile.runs.opening import LoadModels
from kafka_rebalance.reconcile.state.lasting_tasks import LastingTasks
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import Stores
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper
from kafka_rebalance.reconcile.throttle.throttle_lifecycle import ThrottleLifecycle, asked_of, first_seen, seen_again

log = logging.getLogger(__name__)

_FIRST_RETRY_SECONDS = 2.0
_LAST_RETRY_SECONDS = 60.0
_LIMITS_SECONDS = 10.0
"""How long rebalances wait for known throttle resources whose cluster has not been reached yet."""


@dataclass
class _Connection:
    """All resources with the same spec.kafka in the same namespace.

    ``tried``: its throttles have been handed to their engine, or could not be. ``may_move``: so have those of all
    others, and its rebalances may be handed over.
    """

    kafka: Kafka
    namespace: str
    rebalances: dict[str, Rebalance] = field(default_factory=dict)
    throttles: dict[str, KafkaReassignmentThrottle] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    tried: asyncio.Event = field(default_factory=asyncio.Event)
    may_move: bool = False

    @property
    def source(self) -> Source:
        """Namespace (Secrets are read there) and spec.kafka as JSON."""
        return self.namespace, self.kafka.model_dump_json(by_alias=True)

    engine: ClusterEngine | None = None


class Supervisor:
    """All engines of one operator."""

    def __init__(self, kube: KubeClient, connect: Connect, load_models: LoadModels, clock: Clock) -> None:
        self._kube = kube
        self._connect = connect
        self._load_models = load_models
        self._clock = clock
        self._resources = Resources(kube, clock.now)
        self._stores = Stores(PlanStore(kube), OriginStore(kube), RunStore(kube))
        self._lifecycle = Lifecycle(self._resources, self._stores, clock)
        self._unreadable = UnreadableResources(kube, self._resources, self._stores, clock)
        self._throttle_lifecycle = ThrottleLifecycle(self._resources, clock)
        self._connections: dict[Source, _Connection] = {}
        self._engines: dict[str, tuple[ClusterEngine, asyncio.Task[None]]] = {}
        self._lasting = LastingTasks()
        self._background: set[asyncio.Task[None]] = set()

    @property
    def failed_tasks(self) -> tuple[str, ...]:
        """The tasks that must not end and did, but for engines, which ``rounds`` shows."""
        return self._lasting.failed

    def rounds(self) -> dict[str, float]:
        """By cluster id, how many seconds its engine's present round has taken; infinite: the engine has ended."""
        running = {
            key: math.inf if task.done() else engine.round_seconds for key, (engine, task) in self._engines.items()
        }
        return {key: seconds for key, seconds in running.items() if seconds is not None}

    def rebalance_seen(self, body: dict[str, Any], *, deleted: bool) -> None:
        """A KafkaRebalance was created, changed or is gone."""
        try:
            metadata = parse_metadata(body)
            known = next((c for c in self._connections.values() if metadata.uid in c.rebalances), None)
            if deleted:
                if known is not None:
                    known.rebalances.pop(metadata.uid)
                    self._forget(known, metadata.uid)
                return
            if known is None:
                rebalance = Rebalance.of(body)
                connection = self._connection(rebalance.desired.spec.kafka, metadata.namespace)
                connection.rebalances[rebalance.uid] = rebalance
                self._hand_over(connection)
                return
            rebalance = known.rebalances[metadata.uid]
            before = rebalance.desired.change_key
            rebalance.see(body)
        except Refused as error:
            self._in_background(self._unreadable.rebalance(body, error))
            return
        if rebalance.desired.change_key != before:
            self._wake(known)

    def throttle_seen(self, body: dict[str, Any], *, deleted: bool) -> None:
        """A KafkaReassignmentThrottle was created, changed or is gone."""
        try:
            metadata = parse_metadata(body)
            uid = metadata.uid
            known = next((c for c in self._connections.values() if uid in c.throttles), None)
            if deleted or (metadata.deleting and not metadata.held):
                if known is not None:
                    known.throttles.pop(uid)
                    self._forget(known, uid)
                return
            before = known.throttles[uid] if known is not None else None
            throttle = first_seen(body) if before is None else seen_again(before, body)
        except Refused as error:
            self._in_background(self._unreadable.throttle(body, error))
            return
        connection = known or self._connection(throttle.spec.kafka, metadata.namespace)
        connection.throttles[uid] = throttle
        if before is None or asked_of(before) != asked_of(throttle):
            self._hand_over(connection)
        elif connection.engine is not None:
            connection.engine.see_throttles({uid: throttle})  # our own status came back: no reason to wake

    async def know_throttles(self, namespaces: Sequence[str]) -> None:
        """Take in all throttle resources, before any rebalance. Raises what listing raises. Empty: all namespaces."""
        for namespace in namespaces or (None,):
            for body in await self._kube.list_resources(REASSIGNMENT_THROTTLES, namespace):
                self.throttle_seen(body, deleted=False)

    async def start(self) -> None:
        """Before anything is seen: clean up, and start the background work."""
        await clean_up(self._stores, LedgerStore(self._kube))
        self._lasting.start("the removal of old records", keep_swept(self._stores, self._resources, self._clock))

    async def stop(self) -> None:
        """End all engines at a safe point: between two calls. What is in flight goes on in Kafka."""
        await self._lasting.stop()
        tasks = [task for _, task in self._engines.values()]
        tasks += self._background
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close_clients(self) -> None:
        """Close the clients of all engines, when no order is under way any more. Takes a bounded time."""
        await asyncio.gather(*(_close(engine) for engine, _ in self._engines.values()))

    def _connection(self, kafka: Kafka, namespace: str) -> _Connection:
        connection = _Connection(kafka, namespace)
        if connection.source not in self._connections:
            self._connections[connection.source] = connection
            self._lasting.start(f"the task that connects namespace {namespace}", self._establish(connection))
        return self._connections[connection.source]

    def _hand_over(self, connection: _Connection) -> None:
        """Give the engine what it does not have yet."""
        connection.changed.set()
        if connection.engine is not None:
            if connection.may_move:
                connection.engine.rebalances.update(connection.rebalances)
            connection.engine.see_throttles(connection.throttles)
            connection.engine.wake()

    def _wake(self, connection: _Connection | None) -> None:
        if connection is not None:
            connection.changed.set()
            if connection.engine is not None:
                connection.engine.wake()

    def _forget(self, connection: _Connection, uid: str) -> None:
        if connection.engine is not None:
            connection.engine.rebalances.pop(uid, None)
            connection.engine.throttles.pop(uid, None)
        self._wake(connection)

    async def _establish(self, connection: _Connection) -> None:
        """Try until the cluster answers, then hand its resources to the cluster's engine."""
        pause = _FIRST_RETRY_SECONDS
        while connection.rebalances or connection.throttles:
            connection.changed.clear()
            try:
                connection.engine = await self._engine(connection)
            except RebalanceError as error:
                connection.tried.set()
                log.warning("%s: %s: %s", connection.kafka.bootstrap_servers, error.reason, error.message)
                await self._say_unconnected(connection, error)
            except Exception:
                connection.tried.set()
                log.exception("%s: unexpected error", connection.kafka.bootstrap_servers)
                unexpected = Transient(Reason.INTERNAL_ERROR, "unexpected error, see the operator's log")
                await self._say_unconnected(connection, unexpected)
            else:
                self._hand_over(connection)
                connection.tried.set()
                await self._limits_known()
                connection.may_move = True
                self._hand_over(connection)
                return
            try:
                async with asyncio.timeout(pause):
                    await connection.changed.wait()
            except TimeoutError:
                pause = min(2 * pause, _LAST_RETRY_SECONDS)
        # No resource names this cluster any more; the next one that does starts anew.
        self._connections = {key: other for key, other in self._connections.items() if other is not connection}

    async def _limits_known(self) -> None:
        """Return when every throttle resource has been handed to its engine, if its cluster answers soon.

        After a start they arrive one by one: what one of them freezes or limits must not move before.
        """
        waiting = [other.tried.wait() for other in self._connections.values() if other.throttles]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LIMITS_SECONDS):
                await asyncio.gather(*waiting)

    async def _engine(self, connection: _Connection) -> ClusterEngine:
        settings = await resolve(connection.kafka, connection.namespace, self._kube)
        admin = self._connect(settings)
        try:
            info = await admin.describe_cluster()
        except BaseException:
            await admin.close()
            raise
        if info.cluster_id in self._engines:
            await admin.close()
            known = self._engines[info.cluster_id][0]
            known.check_same_cluster(info)
            return known
        used = (connection.source, settings)
        admin = rotating(admin, used, info.cluster_id, self._connect, lambda: self._settings_now(info.cluster_id))
        keeper = ThrottleKeeper(info.cluster_id, admin, LedgerStore(self._kube))
        engine = ClusterEngine(info, admin, self._resources, self._stores, keeper, self._load_models, self._clock)
        self._engines[info.cluster_id] = (engine, asyncio.create_task(self._keep(engine)))
        log.info("cluster %s: connected at %s", info.cluster_id, connection.kafka.bootstrap_servers)
        return engine

    async def _keep(self, engine: ClusterEngine) -> None:
        """Run it for as long as it is needed, then forget it; a later resource that names the cluster starts anew.

        There is no await between the last look at the resources and forgetting the engine.
        """
        await engine.run(lambda: self._named(engine))
        del self._engines[engine.cluster_id]
        self._connections = {key: other for key, other in self._connections.items() if other.engine is not engine}
        log.info("cluster %s: no resource names it any more, and nothing of ours is left there", engine.cluster_id)
        self._in_background(_close(engine))

    def _named(self, engine: ClusterEngine) -> bool:
        """Whether a resource names the engine's cluster, including resources not handed over yet."""
        coming = (other for other in self._connections.values() if other.engine is engine and not other.may_move)
        return bool(engine.rebalances or engine.throttles) or any(coming)

    async def _settings_now(self, cluster_id: str) -> dict[Source, ConnectionSettings]:
        """The present settings of all connections to the cluster; those whose Secrets are gone are left out."""
        found = {}
        for connection in list(self._connections.values()):
            here = connection.engine is not None and connection.engine.cluster_id == cluster_id
            if here and (connection.rebalances or connection.throttles):
                with contextlib.suppress(RebalanceError):
                    found[connection.source] = await resolve(connection.kafka, connection.namespace, self._kube)
        return found

    async def _say_unconnected(self, connection: _Connection, error: RebalanceError) -> None:
        """Report it on every resource; remove finalizers of deleted ones that need nothing from Kafka."""
        for rebalance in list(connection.rebalances.values()):
            try:
                if rebalance.desired.deleting:
                    await self._lifecycle.prepare(rebalance, connected=error.reason not in NO_CONNECTION_REASONS)
                await self._resources.report(rebalance, ClusterState("", {}), {}, error)
            except RebalanceError as failed:
                log.warning("%s: status not written: %s", rebalance.name, failed.message)
            except Exception:
                # A defect that concerns one resource must not end the attempts to connect.
                log.exception("%s: status not written", rebalance.name)
        await self._throttle_lifecycle.remove_finalizers(connection.throttles, connected=False)
        for uid, throttle in list(connection.throttles.items()):
            metadata = throttle.metadata
            where = (metadata.namespace, metadata.name, uid)
            try:
                # A missed deletion would otherwise keep the attempts to connect going for ever.
                if await self._resources.exists(*where, REASSIGNMENT_THROTTLES):
                    await self._resources.report_throttle(throttle, "", None, problem=error)
                else:
                    connection.throttles.pop(uid, None)
            except RebalanceError as failed:
                log.warning("throttle %s: status not written: %s", throttle.name, failed.message)
            except Exception:
                log.exception("throttle %s: status not written", throttle.name)

    def _in_background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("unexpected error in the background", exc_info=error)


async def _close(engine: ClusterEngine) -> None:
    try:
        await engine.close()
    except RebalanceError as error:
        log.warning("cluster %s: its client was not closed: %s", engine.cluster_id, error.message)
