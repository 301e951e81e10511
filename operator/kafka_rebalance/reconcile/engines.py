"""The engine of each Kafka cluster, which works with the client of the cluster's owner.

Claims of one cluster id are processed one at a time, because the record of the owner and the running engine must agree.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Coroutine, Iterator
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaAdmin
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile import claim_checks
from kafka_rebalance.reconcile.act.claimed_server import Claimed
from kafka_rebalance.reconcile.act.cluster_owners import ClusterOwners
from kafka_rebalance.reconcile.act.cluster_work import Unfinished
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.act.started_runs import Started, started_here
from kafka_rebalance.reconcile.connection_book import ConnectionBook, NamedConnection
from kafka_rebalance.reconcile.decide.cluster_identity import servers_of
from kafka_rebalance.reconcile.engine import ClusterEngine
from kafka_rebalance.reconcile.engine_parts import EngineParts
from kafka_rebalance.reconcile.owner_clients import ConnectAs, OwnerClients
from kafka_rebalance.reconcile.report.engine_samples import cluster_samples, rebalance_samples
from kafka_rebalance.reconcile.report.run_recorder import RunHistory
from kafka_rebalance.reconcile.report.sampling_report import sampling_samples
from kafka_rebalance.reconcile.runs.plan_maker import LoadModels
from kafka_rebalance.reconcile.state.namespace_turns import AllInlineTurns
from kafka_rebalance.reconcile.state.record import Stores
from kafka_rebalance.reconcile.state.repeated_work import RepeatedWork
from kafka_rebalance.reconcile.throttle.ledger_cache import INLINE_BYTES
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper
from kafka_rebalance.reconcile.throttle_placing import all_placed
from kafka_rebalance.telemetry.metric_families import Sample

log = logging.getLogger(__name__)

_REMEMBER_SECONDS = 3600.0
_LAST_ROUND_SECONDS = 120.0
"""How long the new owner of a cluster waits for the last round of the former one's engine."""
_LATE_SECONDS = 15.0
"""After this time no request of a cancelled round, to Kafka or to the API server, is in progress."""


class Running(NamedTuple):
    """An engine with its task, the owner of its cluster, and the client. ``uid``: as ``Uids.settings``."""

    engine: ClusterEngine
    task: asyncio.Task[None]
    owner: Owner
    uid: str | None
    admin: KafkaAdmin


class Engines:
    """All engines. ``evicted`` is called for each connection whose engine was ended for an owner that outranks it."""

    def __init__(
        self,
        kube: KubeObjects,
        connect: ConnectAs,
        resources: Resources,
        stores: Stores,
        load_models: LoadModels,
        clock: Clock,
        book: ConnectionBook,
        evicted: Callable[[NamedConnection], None],
        history: RunHistory,
    ) -> None:
        self._kube = kube
        self._resources = resources
        self._stores = stores
        self._load_models = load_models
        self._clock = clock
        self._book = book
        self._evicted = evicted
        self._history = history
        self._owners = ClusterOwners(kube, stores, resources, book.owner_named_by, book.limited_in, clock.now)
        self._inline_turns = AllInlineTurns()
        self.clients = OwnerClients(kube, connect, self._owners, book, self._inline_turns.of)
        """The clients of the owners of clusters."""
        self._running: dict[str, Running] = {}
        # Without those that nobody waits for: any server may claim any number of ids.
        self._claims: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing: set[asyncio.Task[None]] = set()
        self._ending = RepeatedWork(self.end_bindings)

    def get(self, cluster_id: str) -> Running | None:
        """The engine of the cluster, if it runs."""
        return self._running.get(cluster_id)

    def rounds(self) -> dict[str, float]:
        """By cluster id: seconds since a call of the round last ended; infinite if the task of the engine has ended."""
        found = {
            key: math.inf if running.task.done() else running.engine.silent_seconds
            for key, running in self._running.items()
        }
        return {key: seconds for key, seconds in found.items() if seconds is not None}

    def samples(self) -> Iterator[Sample]:
        """The metrics of all clusters, and of the rebalances that name them."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        for running in self._running.values():
            yield from cluster_samples(running.engine.figures)
        for connection in self._book:
            if connection.engine is not None and connection.sampling is not None:
                yield from sampling_samples(connection.engine.cluster_id, connection.sampling)
            for uid, rebalance in connection.rebalances.items():
                engine = connection.placed.get(uid)
                cluster_id = engine.cluster_id if engine is not None else connection.cluster_id
                windows = engine.windows if engine is not None else None
                yield from rebalance_samples(cluster_id, rebalance, now, monotonic, windows)

    async def stop(self) -> None:
        """End all engines at a safe point: between two calls."""
        tasks = [*(running.task for running in self._running.values()), *self._closing]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close_clients(self) -> None:
        """Close the clients of all engines, when no order is under way any more."""
        await asyncio.gather(*(_close(running.engine, cluster_id) for cluster_id, running in self._running.items()))

    async def reached_by(self, connection: NamedConnection) -> ClusterEngine:
        """The engine of the cluster that the connection leads to, which is bound to the connection's owner.

        Raises why it cannot be reached, Refused if the cluster belongs to another owner or is another one.
        """
        # It may be edited, or created again, while its server is asked.
        on_record, uids, own = connection.on_record, claim_checks.uids_of(connection), connection.resource
        settings, secrets = await self.clients.settings(connection)
        admin = self.clients.connect(settings, connection.owner)
        try:
            info = await admin.describe_cluster()
            claim_checks.check_same_object(connection, uids)
            claim_checks.check_unfinished(connection, info.cluster_id)
            connection.led_to = connection.led_to.then(connection.resource, info.cluster_id)
            former = await self._let_go_of_others(connection, info.cluster_id)
            connection.cluster_id = info.cluster_id
            server = Claimed(info, admin, servers_of(settings.bootstrap_servers), on_record, secrets)
            claim = partial(self._claim, connection, uids, settings, server, admin, former)
            try:
                engine, mine = await server.judged(claim)
            except Refused as differs:
                if differs.reason != Reason.CLUSTER_ID_COLLISION or not await self._renewed(info.cluster_id):
                    raise
                engine, mine = await server.judged(claim)
        except BaseException:
            await admin.close()
            raise
        if not mine:
            # Without an await: the claim is over, and the engine may be ended for another owner from now on.
            self._in_background(_close(admin, info.cluster_id))
        claim_checks.forget_last_settings(connection, own, info.cluster_id)
        if former:
            self.end_bindings_soon()
        return engine

    async def started(self, run: Run, owner: Owner, running: Running) -> Started:
        """Whether the run started in the cluster of this engine, with a connection of ``owner``.

        Raises the error if this is not known.
        """
        try:
            if not run.unproved and await self._owners.has_recognised(owner, run.cluster_id):
                return Started.HERE
            return await started_here(self._stores, run, running.admin)
        except RebalanceError as error:
            message = f"it is not known whether the open run started in Kafka cluster {run.cluster_id}: {error.message}"
            raise Transient(error.reason, message) from error

    def end_bindings_soon(self) -> None:
        """``end_bindings`` in the background. All who ask meanwhile share the next look: users may ask without end."""
        self._in_background(self._ending.ask())

    async def end_bindings(self) -> None:
        """End the bindings whose cluster no resource names any more and has no work of ours.

        A binding that cannot be read or written now stays as it is.
        """
        try:
            await self.unfinished()
        except RebalanceError as error:
            log.warning("bindings of clusters stay on record: %s", error.message)

    async def unfinished(self) -> list[Unfinished]:
        """The clusters in which throttles or cordons of ours are in place, and which have no engine.

        Removes the bindings of clusters without work if no resource names them. Raises the errors of the stores.
        """
        found = []
        for binding in await self._owners.bound():
            if (cluster_id := binding.cluster_id) in self._running:
                continue  # a claim of it may wait for a slow round, and the other clusters do not wait for that
            async with self._one_claim(cluster_id):
                named = partial(self._book.names_for, cluster_id)
                if cluster_id not in self._running and await self._owners.end_unless(cluster_id, named):
                    found.append(self._owners.unfinished(binding))
        return found

    async def keep_remembering(self) -> None:
        """Every hour, update the ids of brokers and topics in each binding, by which a cluster is recognised.

        Empty throttle ledgers of clusters without a binding are deleted: earlier versions deleted only the binding.
        """
        while True:
            await asyncio.sleep(_REMEMBER_SECONDS)
            for cluster_id in list(self._running):
                try:
                    await self._renewed(cluster_id)
                except Exception:
                    log.exception("cluster %s: its brokers and topics on record are not updated", cluster_id)
            try:
                await self._forget_ledgers()
            except Exception:
                log.exception("empty throttle ledgers stay on record")

    async def _forget_ledgers(self) -> None:
        for cluster_id in await self._owners.left_ledgers():
            async with self._one_claim(cluster_id):
                if cluster_id not in self._running:
                    await self._owners.forget_ledger(cluster_id)

    def _one_claim(self, cluster_id: str) -> asyncio.Lock:
        """Held while this cluster id is claimed."""
        return self._claims.setdefault(cluster_id, asyncio.Lock())

    async def _renewed(self, cluster_id: str) -> bool:
        """Store the brokers and topics that the owner's client sees now; returns whether that succeeded.

        Topics on record may have been created again. Must not be called while the cluster is claimed: the owner's
        brokers may be down.
        """
        running = self._running.get(cluster_id)
        if running is None:
            return False
        try:
            server = Claimed(await running.admin.describe_cluster(), running.admin)
            await server.judged(partial(self._remember, running, server))
        except RebalanceError as error:
            log.warning("cluster %s: its brokers and topics on record are not updated: %s", cluster_id, error.message)
            return False
        return True

    async def _remember(self, running: Running, server: Claimed) -> None:
        """Unless the cluster has got another owner while its former one was asked."""
        cluster_id = server.info.cluster_id
        async with self._one_claim(cluster_id):
            if self._running.get(cluster_id) is running:
                await self._owners.remember(server)

    async def _claim(
        self,
        connection: NamedConnection,
        uids: claim_checks.Uids,
        settings: ConnectionSettings,
        server: Claimed,
        admin: KafkaAdmin,
        former: Collection[Binding],
    ) -> tuple[ClusterEngine, bool]:
        """The engine, and whether it was begun with this client."""
        cluster_id = server.info.cluster_id
        async with self._one_claim(cluster_id):
            claim_checks.check_same_object(connection, uids)
            is_running = cluster_id in self._running
            claimant = claim_checks.claimant(connection, self._book.standing(connection.owner, cluster_id), former)
            evict = partial(self._evict_others, cluster_id, connection.owner, uids.settings)
            bound = await self._owners.claim(claimant, server, self._book.standing, running=is_running, evict=evict)
            await evict()
            running = self._running.get(cluster_id)
            if running is None:
                connection.engine = self._begin(connection, uids, settings, server.info, admin, bound.brokers)
            else:
                connection.engine = running.engine
            return connection.engine, running is None

    async def _let_go_of_others(self, connection: NamedConnection, cluster_id: str) -> list[Binding]:
        """End the engines of the KafkaConnection's former clusters: refused while there is work; returns these.

        They stay on record, as it may not get the new cluster.
        """
        if not connection.owner.connection:
            return []
        former = [b for b in await self._owners.bound() if b.owner == connection.owner and b.cluster_id != cluster_id]
        for binding in former:
            async with self._one_claim(binding.cluster_id):
                await self._refuse_with_work(binding, cluster_id)
                running = self._running.get(binding.cluster_id)
                if running is not None:
                    async with running.engine.between_rounds:  # the last one may have opened a run
                        await self._refuse_with_work(binding, cluster_id)
                        running.engine.retire()
                    await self._evict(running)
        return former

    async def _refuse_with_work(self, former: Binding, cluster_id: str) -> None:
        work = await self._owners.work_in(former.cluster_id)
        claim_checks.check_nothing_left(former, work, cluster_id, self._owners.without_us(former))

    def _begin(
        self,
        connection: NamedConnection,
        uids: claim_checks.Uids,
        settings: ConnectionSettings,
        info: ClusterInfo,
        admin: KafkaAdmin,
        on_record: frozenset[BrokerId],
    ) -> ClusterEngine:
        admin = self.clients.lasting(connection, settings, info.cluster_id, admin)
        owner = connection.owner
        most = None if owner.connection else INLINE_BYTES
        ledgers = LedgerStore(self._kube, owner)
        keeper = ThrottleKeeper(info.cluster_id, admin, ledgers, self._clock.monotonic, most=most)
        parts = EngineParts(
            info=info,
            admin=admin,
            resources=self._resources,
            stores=self._stores,
            keeper=keeper,
            load_models=self._load_models,
            capacity=partial(self._book.capacity_of, owner),
            clock=self._clock,
            history=self._history,
            on_record=on_record,
            throttles_placed=partial(all_placed, self._book, owner, info.cluster_id),
            turns=None if owner.connection else self._inline_turns.of(owner.namespace),
        )
        engine = ClusterEngine(parts)
        task = asyncio.create_task(self._keep(engine))
        self._running[info.cluster_id] = Running(engine, task, connection.owner, uids.settings, admin)
        log.info("cluster %s: connected at %s", info.cluster_id, settings.bootstrap_servers)
        return engine

    async def _keep(self, engine: ClusterEngine) -> None:
        """Run it for as long as it is needed, then forget it; a later resource that names the cluster starts anew.

        There is no await between the last look at the resources and forgetting the engine.
        """
        await engine.run(lambda: self._book.names(engine))
        self._running.pop(engine.cluster_id, None)
        if not engine.retired:
            for connection in self._book:
                if connection.engine is engine:
                    connection.engine, connection.unfinished = None, ""
                    if connection.inline is not None:
                        self._book.strike(connection)
            log.info("cluster %s: nothing names it any more, and nothing of ours is left there", engine.cluster_id)
            self.end_bindings_soon()
        self._in_background(_close(engine, engine.cluster_id))

    async def _evict_others(self, cluster_id: str, owner: Owner, uid: str | None) -> None:
        """Also that of an earlier KafkaConnection with the same name: its client may be of other servers."""
        running = self._running.get(cluster_id)
        if running is not None and (running.owner, running.uid) != (owner, uid):
            await self._evict(running)

    async def _evict(self, running: Running) -> None:
        """End an engine between two rounds, or between two calls of a round that does not end.

        The engine of the new owner continues its work.
        """
        cluster_id = running.engine.cluster_id
        log.info("cluster %s: no longer operated with %s", cluster_id, running.owner)
        running.engine.retire()
        _, late = await asyncio.wait([running.task], timeout=_LAST_ROUND_SECONDS)
        if late:
            log.warning("cluster %s: its last round with %s did not end: cancelled", cluster_id, running.owner)
            running.task.cancel()
            await asyncio.wait(late)
            await asyncio.sleep(_LATE_SECONDS)
            self._in_background(_close(running.engine, cluster_id))
        self._running.pop(cluster_id, None)
        for connection in self._book:
            if running.engine in connection.engines:
                self._evicted(connection)

    def _in_background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _close(client: ClusterEngine | KafkaAdmin, cluster_id: str) -> None:
    try:
        await client.close()
    except RebalanceError as error:
        log.warning("cluster %s: its client was not closed: %s", cluster_id, error.message)
