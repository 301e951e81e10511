"""Ends the work of resources that may not or cannot use their connection, and reports why in their status.

This calls servers that may be slow, and that may belong to the user of a refused resource. So it runs in parallel with
the permitted resources, and each namespace has a lane for each cluster in which its refused resources have open runs: a
server that hangs delays only the runs in its own cluster. A lane handles the resources of a connection one after the
other, and at most two of all connections at a time: users may name any number of connections, and all clusters share
the threads that call the API server. A resource that is permitted meanwhile is placed when its work has ended, because
its records have one writer.
"""

import logging
from asyncio import Lock, Semaphore
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from kafka_rebalance.api.conditions import NO_CONNECTION_REASONS
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.model.run import Run
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.permissions import PermissionUnknown
from kafka_rebalance.reconcile.act.retention import abandoned
from kafka_rebalance.reconcile.act.started_answers import StartedAnswer, StartedAnswers
from kafka_rebalance.reconcile.act.started_runs import Started
from kafka_rebalance.reconcile.connection_book import NamedConnection
from kafka_rebalance.reconcile.engines import Engines
from kafka_rebalance.reconcile.state.record import Stores
from kafka_rebalance.reconcile.throttle.unconnected_resources import UnconnectedResources

log = logging.getLogger(__name__)

_WORKING_CONNECTION = {*NO_CONNECTION_REASONS, Reason.CLUSTER_CHANGED}
"""For these reasons nothing new is placed; what the owner's engine has goes on with the connection that it has."""
_AT_A_TIME = 2
"""Resources of a lane: the server that is asked about one of them may hang."""
_GONE_SECONDS = 30.0
"""How long all topics of an open run must be gone before it is given up: a broker that is behind may not know them."""


class Lane(NamedTuple):
    """The refused resources of a namespace with an open run in this cluster; no id: the others.

    An open run in a cluster without an engine is among the others.
    """

    namespace: str
    cluster_id: str = ""


class RefusedResources:
    """``limits_known`` waits for the throttle resources of an owner; ``hand_over`` places what may use a connection."""

    def __init__(
        self,
        engines: Engines,
        stores: Stores,
        unconnected: UnconnectedResources,
        limits_known: Callable[[Owner], Awaitable[None]],
        hand_over: Callable[[NamedConnection], None],
        start: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
    ) -> None:
        self._engines = engines
        self._stores = stores
        self._unconnected = unconnected
        self._limits_known = limits_known
        self._hand_over = hand_over
        self._start = start
        self._clock = clock
        self._working: WeakValueDictionary[Lane, Semaphore] = WeakValueDictionary()
        self._handling: WeakValueDictionary[str, Lock] = WeakValueDictionary()
        """By uid: a resource may be added to another lane while it is being handled."""
        self._sorting: set[NamedConnection] = set()
        """Those whose refused resources are being added to their lanes."""
        self._lanes: dict[tuple[NamedConnection, str], dict[Lane, dict[str, None]]] = {}
        """By connection and namespace: the lanes that are worked on, and the uids that wait in each, in order."""
        self._gone_since: dict[str, float] = {}
        """By uid, when all topics of an open run were first seen to be gone."""
        self._answers = StartedAnswers(clock.monotonic)

    def refuse(self, connection: NamedConnection, refusals: dict[str, RebalanceError]) -> None:
        """From now on these may not use the connection, by uid, and the others may. Nothing new starts for them."""
        connection.refusals = refusals
        for uid in refusals.keys() & connection.placed.keys():
            if isinstance(refusals[uid], PermissionUnknown):
                continue  # nothing ends before it is known
            if uid in connection.throttles:
                connection.leave(uid)
            elif not _goes_on(connection, refusals[uid]):
                connection.place(connection.rebalances[uid], connection.placed[uid], refusals[uid])
        if connection not in self._sorting and any(map(connection.has, refusals)):
            self._sorting.add(connection)
            self._start(self._sort(connection))

    async def _sort(self, connection: NamedConnection) -> None:
        """Add the refused resources to their lanes, until none has been refused anew meanwhile."""
        told = None
        try:
            while connection.refusals is not told:
                told = connection.refusals
                clusters = await self._clusters_of_open_runs()
                for uid in filter(connection.has, told):
                    self._add(connection, Lane(connection.metadata_of(uid).namespace, clusters.get(uid, "")), uid)
        finally:
            self._sorting.discard(connection)

    async def _clusters_of_open_runs(self) -> dict[str, str]:
        """By uid, the id of the cluster of each open run, if it has an engine."""
        try:
            runs = await self._stores.runs.list_all()
        except RebalanceError as error:
            log.warning("which runs are open is not known: %s", error.message)
            return {}
        return {run.uid: run.cluster_id for run in runs if run.open and self._engines.get(run.cluster_id) is not None}

    def _add(self, connection: NamedConnection, lane: Lane, uid: str) -> None:
        """This resource waits in the lane of the cluster that its open run is in by now, and in no other one.

        One that waits there keeps its place, and one that has been handled comes after those that wait.
        """
        lanes = self._lanes.setdefault((connection, lane.namespace), {})
        for other, waiting in lanes.items():
            if other != lane:
                waiting.pop(uid, None)
        if lane not in lanes:
            lanes[lane] = {}
            self._start(self._tell_each(connection, lane))
        lanes[lane].setdefault(uid)

    async def _tell_each(self, connection: NamedConnection, lane: Lane) -> None:
        """Handle the resources that wait in a lane, until none waits."""
        lanes = self._lanes[connection, lane.namespace]
        waiting = lanes[lane]
        working = self._working.setdefault(lane, Semaphore(_AT_A_TIME))
        try:
            while waiting:
                async with working:
                    if waiting:
                        uid = next(iter(waiting))
                        del waiting[uid]
                        await self._tell_alone(connection, uid)
        finally:
            del lanes[lane]
            if not lanes:
                del self._lanes[connection, lane.namespace]

    async def _tell_alone(self, connection: NamedConnection, uid: str) -> None:
        async with self._handling.setdefault(uid, Lock()):
            connection.busy.add(uid)
            try:
                await self._tell(connection, uid)
            finally:
                connection.busy.discard(uid)
        if uid not in connection.refusals or not connection.has(uid):
            self._hand_over(connection)

    async def _tell(self, connection: NamedConnection, uid: str) -> None:
        try:
            unknown = await self._end_started_work(connection, uid) if uid in connection.rebalances else None
            why = connection.refusals.get(uid)
            if why is not None and uid not in connection.placed:
                await self._unconnected.report(connection.rebalances, connection.throttles, {uid: unknown or why})
        except RebalanceError as error:
            log.warning("%s: %s: %s", connection.name, error.reason, error.message)
        except Exception:
            # An unexpected error about one resource must not stop the work for the others.
            log.exception("%s: unexpected error", connection.name)

    async def _end_started_work(self, connection: NamedConnection, uid: str) -> RebalanceError | None:
        """End an open run in the engine of its cluster, if this engine runs and the run started there with permission.

        Nothing new starts there, except for the owner's own rebalances, which continue. Returns the error if it is not
        known where the run started.
        """
        run = await self._stores.runs.load(uid)
        running = self._engines.get(run.cluster_id) if run is not None and run.open else None
        answer, here = None, False
        if run is not None and running is not None:
            here = connection.placed.get(uid) is running.engine
            if not here:
                ask = partial(self._engines.started, run, connection.owner, running)
                answer = await self._answers.of(run, connection.owner, running.engine, ask)
                here = answer.started is Started.HERE
            if here:
                await self._limits_known(running.owner)
        rebalance, why = connection.rebalances.get(uid), connection.refusals.get(uid)
        if rebalance is None or why is None:
            return None  # permitted or gone meanwhile
        if isinstance(why, PermissionUnknown):
            return None
        if run is None or running is None or not here:
            connection.leave(uid)
            if rebalance.record.open_run is not None and not (run is not None and run.open):
                connection.read_again(uid)  # the end is stored, although its write got no answer
            if run is not None and self._nothing_is_left(run, answer):
                await self._give_up(connection, run)
        elif self._engines.get(run.cluster_id) is running:
            served = connection.placed.get(uid) is running.engine and rebalance.refusal is None
            # An inline connection that is edited is another one: its settings are those that the run began with.
            owned = connection.inline is not None and connection.owner == running.owner
            goes_on = (served or owned) and _goes_on(connection, why)
            connection.busy.discard(uid)
            connection.place(rebalance, running.engine, None if goes_on else why)
        return None if answer is None else answer.unknown

    def _nothing_is_left(self, run: Run, answer: StartedAnswer | None) -> bool:
        """Whether all topics that the run moves have been gone for a while, between two answers of the brokers."""
        if answer is None or answer.started is not Started.UNKNOWN:
            self._gone_since.pop(run.uid, None)
            return False
        return answer.at - self._gone_since.setdefault(run.uid, answer.at) >= _GONE_SECONDS

    async def _give_up(self, connection: NamedConnection, run: Run) -> None:
        """End an open run that has nothing left to move, and may have started at a server that only claimed the id.

        Its end in the owner's cluster would remove cordons of others. The brokers that it has cordoned stay cordoned.
        """
        del self._gone_since[run.uid]
        log.warning(
            "%s/%s: run %s is abandoned: it may not use its connection, all topics that it moves are gone, and the "
            "cluster where it started is not known. Brokers that it has cordoned: %s",
            run.namespace,
            run.name,
            run.run_id,
            ", ".join(map(str, run.cordoned)) or "none",
        )
        await self._stores.runs.save(replace(abandoned(run, self._clock.now()), cordoned=()))
        connection.read_again(run.uid)


def _goes_on(connection: NamedConnection, why: RebalanceError) -> bool:
    return connection.kafka is not None and why.reason in _WORKING_CONNECTION
