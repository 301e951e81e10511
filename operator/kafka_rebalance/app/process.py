"""The operator's process: wait for the lease, then run the supervisor in this loop and the watch in a thread.

Probes are answered from the start, on standby too. The process ends by a signal, a failed watch or the loss of the
lease. It releases the lease last, when all requests under way have been answered, so that the next leader can start at
once.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from kafka_rebalance.app.allocator import return_freed_memory
from kafka_rebalance.app.fresh_pages import FreshPages
from kafka_rebalance.app.health import ProcessState, Stage
from kafka_rebalance.app.load_model_files import LoadModelFiles
from kafka_rebalance.app.metrics_port import metrics_served
from kafka_rebalance.app.observed_admin import observed
from kafka_rebalance.app.probes import served
from kafka_rebalance.app.report_access import ReportAccess
from kafka_rebalance.app.report_port import reports_served
from kafka_rebalance.app.resource_reports import ResourceReports
from kafka_rebalance.app.resource_watch import Watch
from kafka_rebalance.app.run_history_files import RunHistoryFiles
from kafka_rebalance.app.sample_files import SampleFiles
from kafka_rebalance.app.system_clock import SystemClock
from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.isolated.isolated_admin import IsolatedClients
from kafka_rebalance.kafka.ports import KafkaAdmin
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.kube.access_reviews import AccessReviews
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.lease import DURATION_SECONDS, LEASE_NAME, LeaseHolder
from kafka_rebalance.model.bulk import collect_rarely
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.owner_clients import ConnectAs
from kafka_rebalance.reconcile.supervisor import Supervisor
from kafka_rebalance.telemetry.exposition import SampleCollector, process_registry
from kafka_rebalance.telemetry.kafka_call_metrics import KafkaCallMetrics
from kafka_rebalance.telemetry.metric_families import Sample

log = logging.getLogger(__name__)

_LISTING_SECONDS = 2.0
_DISCOVERY_SECONDS = 10.0
"""How long kopf may overlook a kind that can be listed."""


_REPORT_REST = 4.0
"""Reports take at most a fifth of the time of one CPU."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of the command line.

    ``namespaces`` empty: watch all; ``own_namespace`` None: where it runs; ``health_port`` 0: serve no probes;
    ``metrics_port`` 0: serve no metrics; ``report_port`` 0: serve no reports; ``report_audience`` None: accept tokens
    for the API server. ``require_connections``: refuse inline connections. ``history``: the lake for the steps of ended
    runs; ``samples``: the lake for the samples of KafkaConnections.
    """

    identity: str
    namespaces: tuple[str, ...] = ()
    own_namespace: str | None = None
    load_models: str | None = None
    lease_seconds: int = DURATION_SECONDS
    health_port: int = 0
    require_connections: bool = False
    history: str | None = None
    metrics_port: int = 0
    report_port: int = 0
    report_audience: str | None = None
    samples: str | None = None


@dataclass
class _Parts:
    """What has been started so far, for the probes and the metrics."""

    lease: LeaseHolder
    registry: CollectorRegistry = field(default_factory=process_registry)
    stage: Stage = Stage.STANDBY
    supervisor: Supervisor | None = None
    watch: Watch | None = None

    def samples(self) -> Iterator[Sample]:
        """For the metrics. A standby has no clusters."""
        yield Sample("leader", (), self.lease.is_leader())
        if self.supervisor is not None:
            yield from self.supervisor.samples()

    def state(self) -> ProcessState:
        """For the probes."""
        return ProcessState(
            stage=self.stage,
            standby_age=self.lease.standby_age,
            is_leader=self.lease.is_leader(),
            watching=self.watch is not None and not self.watch.unwatched,
            watch_age=self.watch.age if self.watch else None,
            rounds=self.supervisor.rounds() if self.supervisor else {},
            failed_tasks=self.supervisor.failed_tasks if self.supervisor else (),
        )


async def run_operator(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT.

    Permanent("LeadershipLost") if another operator has taken over, Permanent("WatchEnded") if the API server can no
    longer be watched.
    """
    collect_rarely()
    return_freed_memory()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    clock = SystemClock()
    # A client of its own: writes to the lease pass no fence, and hanging calls of the engines do not delay renewals.
    kube = KubeClient.connect(settings.own_namespace)
    parts = _Parts(LeaseHolder(kube, LEASE_NAME, settings.identity, clock, settings.lease_seconds))
    parts.registry.register(SampleCollector(parts.samples))
    async with (
        served(settings.health_port, parts.state),
        metrics_served(settings.metrics_port, parts.registry),
        _reporting(settings, clock),
    ):
        acquiring = asyncio.create_task(parts.lease.acquire())
        await _first_of(stop.wait(), _ended(acquiring))
        if acquiring.done():
            acquiring.result()
        failure = None if stop.is_set() else await _lead(settings, parts, clock, stop)
        parts.stage = Stage.STOPPING
        await _cancelled(acquiring)
        await parts.lease.release()
        await kube.close()
    log.info("operator stopped")
    if failure is not None:
        raise failure


@contextlib.asynccontextmanager
async def _reporting(settings: Settings, clock: SystemClock) -> AsyncIterator[None]:
    """Serve reports, on standby too.

    Browsers do not delay other requests, because the reports have a separate client.
    """
    if not settings.report_port:
        yield
        return
    kube = KubeClient.connect(settings.own_namespace)
    access = ReportAccess(AccessReviews(kube, settings.report_audience), clock.monotonic)
    pages = FreshPages(ResourceReports(kube, settings.namespaces, clock.now).of, rest=_REPORT_REST)
    try:
        async with reports_served(settings.report_port, access, pages):
            yield
    finally:
        await kube.close()


async def _lead(settings: Settings, parts: _Parts, clock: SystemClock, stop: asyncio.Event) -> BaseException | None:
    """Lead until the end; returns why it ended, unless by a signal. Nothing is under way then."""
    keeping = asyncio.create_task(parts.lease.keep())
    fence = Fence(parts.lease.is_leader)
    kube = KubeClient.connect(settings.own_namespace, before_write=fence.check)
    history = RunHistoryFiles(settings.history, settings.load_models)
    samples = SampleFiles(settings.samples, fence.check, clock.now) if settings.samples else None
    isolated = IsolatedClients()
    parts.supervisor = supervisor = Supervisor(
        kube,
        _clients(isolated, fence, KafkaCallMetrics(parts.registry)),
        LoadModelFiles(settings.load_models, clock.now),
        clock,
        inline=not settings.require_connections,
        history=history,
        lake=samples,
    )
    parts.stage = Stage.LEADING
    await supervisor.start()
    await _watch(settings.namespaces, parts, supervisor, stop, keeping)
    parts.stage = Stage.STOPPING
    await supervisor.stop()
    await fence.wait_until_idle()
    await supervisor.close_clients()
    await isolated.close()
    await kube.close()
    await history.close()
    if samples is not None:
        await samples.close()
    lost = keeping.exception() if keeping.done() else None
    await _cancelled(keeping)
    if stop.is_set():
        return None
    return lost or Permanent(Reason.WATCH_ENDED, "the API server can no longer be watched; see the log above")


def _clients(isolated: IsolatedClients, fence: Fence, calls: KafkaCallMetrics) -> ConnectAs:
    """The servers of a KafkaConnection are trusted. Any other server might crash the process of its client."""

    def connected(connection: ConnectionSettings, owner: Owner) -> KafkaAdmin:
        if owner.connection:
            return observed(connect(connection, fence), calls)
        return observed(isolated.connect(connection, fence, owner.namespace), calls)

    return connected


async def _watch(
    namespaces: Sequence[str],
    parts: _Parts,
    supervisor: Supervisor,
    stop: asyncio.Event,
    keeping: asyncio.Task[None],
) -> None:
    """Watch until a signal, the loss of the lease (``keeping`` ends) or a failure; after the loss of a CRD, again."""

    def seen(plural: str, body: dict[str, Any], deleted: bool) -> None:
        supervisor.seen(plural, body, deleted=deleted)

    while True:
        await _first_of(_listed(namespaces, supervisor), stop.wait(), _ended(keeping))
        if stop.is_set() or keeping.done():
            return
        parts.watch = watch = Watch(namespaces, seen)
        watch.start()
        await _first_of(
            _log_when_ready(watch, namespaces),
            _overlooking(watch, namespaces, supervisor),
            stop.wait(),
            watch.failed.wait(),
            _ended(keeping),
        )
        # Stopped before the supervisor: what it sees after that would start engines again.
        await watch.stop()
        parts.watch = None
        if stop.is_set() or keeping.done() or (watch.failed.is_set() and not watch.kind_gone):
            return
        if watch.kind_gone:
            log.warning("a CRD was deleted: watching again when every kind can be listed")


async def _listed(namespaces: Sequence[str], supervisor: Supervisor) -> None:
    """Wait until every kind can be listed in each namespace, and let the supervisor know all resources.

    The watch delivers the kinds in any order, one resource after another.
    """
    logged = ""
    while True:
        try:
            await supervisor.know(namespaces)
        except RebalanceError as error:
            if error.message != logged:
                log.warning("not watching yet: %s: %s", error.reason, error.message)
                logged = error.message
            await asyncio.sleep(_LISTING_SECONDS)
        else:
            return


async def _log_when_ready(watch: Watch, namespaces: Sequence[str]) -> None:
    """Log once that kopf watches every kind; then wait until cancelled."""
    await watch.ready.wait()
    log.info("operator ready: watching %s", ", ".join(namespaces) or "all namespaces")
    await asyncio.Event().wait()


async def _overlooking(watch: Watch, namespaces: Sequence[str], supervisor: Supervisor) -> None:
    """Wait until kopf does not watch a kind that can be listed.

    kopf reads the API server's discovery when it starts, and with the permission to watch CRDs at each of their events.
    The discovery may list a kind after both.
    """
    while True:
        before = watch.overlooked
        await asyncio.sleep(_DISCOVERY_SECONDS)
        overlooked = before & watch.overlooked
        if overlooked and await _take_in_again(namespaces, supervisor):
            names = ", ".join(sorted(overlooked))
            log.warning("not watching %s: the API server's discovery did not list it; reading it again", names)
            return


async def _take_in_again(namespaces: Sequence[str], supervisor: Supervisor) -> bool:
    """List all resources again for the supervisor. False: a kind cannot be listed."""
    try:
        await supervisor.know(namespaces)
    except RebalanceError:
        return False  # kopf waits for the CRD, or ends
    return True


async def _first_of(*waits: Coroutine[Any, Any, Any]) -> None:
    """Wait for the first one, and raise what it raised."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for task in done:
        task.result()


async def _ended(task: asyncio.Task[Any]) -> None:
    """Wait for the end of the task, without its result. Cancelling the wait does not cancel the task."""
    await asyncio.wait({task})


async def _cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
