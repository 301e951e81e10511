"""The operator's process: wait for the lease; then the supervisor in this loop and the watch in its thread.

Probes are answered from the first moment, by a process that waits too.

It ends by a signal, by a watch that cannot go on, or by the loss of the lease. The lease is given up last: after all
that was under way has been answered, so that the next can begin at once.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.app.health import Pulse, Stage
from kafka_rebalance.app.load_model_files import LoadModelFiles
from kafka_rebalance.app.probes import served
from kafka_rebalance.app.resource_watch import Watch
from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.lease import DURATION_SECONDS, LEASE_NAME, LeaseHolder
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.supervisor import Supervisor

log = logging.getLogger(__name__)

# Linux's monotonic clock stands still while the machine is suspended, and a lease does not.
_INTERVALS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_LISTING_SECONDS = 2.0


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """Wall time, aware."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds, for intervals; goes on while the process is stopped or the machine suspended."""
        return time.clock_gettime(_INTERVALS)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says.

    ``namespaces`` empty: watch all; ``own_namespace`` None: where it runs; ``health_port`` 0: answer no probes.
    """

    identity: str
    namespaces: tuple[str, ...] = ()
    own_namespace: str | None = None
    load_model_dir: Path | None = None
    lease_seconds: int = DURATION_SECONDS
    health_port: int = 0


@dataclass
class _Parts:
    """What has been made so far, for the probes."""

    lease: LeaseHolder
    stage: Stage = Stage.WAITING
    supervisor: Supervisor | None = None
    watch: Watch | None = None
    watching: bool = False

    def pulse(self) -> Pulse:
        """How it is now."""
        return Pulse(
            stage=self.stage,
            look_age=self.lease.look_age,
            holds_lease=self.lease.is_leader(),
            watching=self.watching,
            watch_age=self.watch.age if self.watch else None,
            rounds=self.supervisor.rounds() if self.supervisor else {},
        )


async def run_operator(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT.

    Permanent("LeadershipLost") where another operator has taken over, Permanent("WatchEnded") where watching is not
    possible any more.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    clock = SystemClock()
    # A client of its own: writes of the lease pass no fence, and hanging calls of the engines do not hold renewals up.
    kube = KubeClient.connect(settings.own_namespace)
    parts = _Parts(LeaseHolder(kube, LEASE_NAME, settings.identity, clock, settings.lease_seconds))
    async with served(settings.health_port, parts.pulse):
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


async def _lead(settings: Settings, parts: _Parts, clock: SystemClock, stop: asyncio.Event) -> BaseException | None:
    """Act until the end; when this returns, nothing is under way. Why it ended, unless by a signal."""
    keeping = asyncio.create_task(parts.lease.keep())
    fence = Fence(parts.lease.is_leader)
    kube = KubeClient.connect(settings.own_namespace, before_write=fence.check)
    parts.supervisor = supervisor = Supervisor(
        kube,
        lambda connection: connect(connection, fence),
        LoadModelFiles(settings.load_model_dir, clock.now),
        clock,
    )

    def seen(plural: str, body: dict[str, Any], deleted: bool) -> None:
        note = supervisor.rebalance_seen if plural == REBALANCES else supervisor.throttle_seen
        note(body, deleted=deleted)

    watch = Watch(settings.namespaces, seen)
    parts.stage = Stage.LEADING
    await supervisor.start()
    await _first_of(_listed(kube, settings.namespaces, supervisor), stop.wait(), _ended(keeping))
    if not stop.is_set() and not keeping.done():
        parts.watch = watch
        watch.start()
        await _first_of(watch.ready(), stop.wait(), _ended(keeping))
    if not stop.is_set() and not keeping.done():
        parts.watching = True
        where = ", ".join(settings.namespaces) or "all namespaces"
        log.info("operator ready: watching %s", where)
    await _first_of(stop.wait(), watch.failed.wait(), _ended(keeping))
    parts.stage = Stage.STOPPING
    # The watch first: what it sees after the supervisor has stopped would start engines anew.
    await watch.stop()
    await supervisor.stop()
    await fence.wait_until_idle()
    await kube.close()
    lost = keeping.exception() if keeping.done() else None
    await _cancelled(keeping)
    if stop.is_set():
        return None
    return lost or Permanent(Reason.WATCH_ENDED, "the API server can no longer be watched, see the log above")


async def _listed(kube: KubeClient, namespaces: Sequence[str], supervisor: Supervisor) -> None:
    """Return once both kinds can be listed in each of them. kopf calls itself ready before it has asked for anything.

    Nor does it notice kinds that are installed after its start where it may not list the CRDs. The throttle resources
    are known then: the watch brings both kinds in any order, and nothing is to move before its limits are known.
    """
    told = ""
    while True:
        try:
            for namespace in namespaces or (None,):
                await kube.check_listed(REBALANCES, namespace)
            await supervisor.know_throttles(namespaces)
        except RebalanceError as error:
            if error.message != told:
                log.warning("not watching yet: %s: %s", error.reason, error.message)
                told = error.message
            await asyncio.sleep(_LISTING_SECONDS)
        else:
            return


async def _first_of(*waits: Coroutine[Any, Any, Any]) -> None:
    tasks = [asyncio.create_task(wait) for wait in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


async def _ended(task: asyncio.Task[Any]) -> None:
    """Wait for it, whatever comes of it; whoever waits may be cancelled without the task."""
    await asyncio.wait({task})


async def _cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
