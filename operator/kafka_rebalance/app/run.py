"""The operator's process: the supervisor in this loop, the watch in its thread, until a signal comes."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.app.load_models import LoadModelFiles
from kafka_rebalance.app.watch import Watch
from kafka_rebalance.errors import Permanent
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.reconcile.supervisor import Supervisor

log = logging.getLogger(__name__)


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """Wall time, aware."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds, for intervals."""
        return time.monotonic()


async def run_operator(namespace: str | None, own_namespace: str | None, load_model_dir: Path | None) -> None:
    """Run until SIGTERM or SIGINT. Permanent("WatchEnded") where watching is not possible any more."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    kube = KubeClient.connect(own_namespace)
    clock = SystemClock()
    supervisor = Supervisor(kube, connect, LoadModelFiles(load_model_dir, clock.now), clock)

    def seen(plural: str, body: dict[str, Any], deleted: bool) -> None:
        note = supervisor.rebalance_seen if plural == REBALANCES else supervisor.throttle_seen
        note(body, deleted=deleted)

    watch = Watch(namespace, seen)
    await supervisor.start()
    watch.start()
    await _first_of(watch.ready(), stop.wait())
    log.info("operator ready: watching %s", f"namespace {namespace}" if namespace else "all namespaces")
    await _first_of(stop.wait(), watch.failed.wait())
    await supervisor.stop()
    await watch.stop()
    await kube.close()
    log.info("operator stopped")
    if watch.failed.is_set() and not stop.is_set():
        raise Permanent("WatchEnded", "the API server can no longer be watched, see the log above")


async def _first_of(*waits: Coroutine[Any, Any, Any]) -> None:
    tasks = [asyncio.create_task(wait) for wait in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
