"""How long records outlive their resource: plan and origins of a success are kept for undo, then deleted.

Their number is limited, because a user who may create and delete resources could fill etcd with their records.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from datetime import datetime

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.state.record import PLAN_RETENTION, Stores

log = logging.getLogger(__name__)

_EVERY_SECONDS = 6 * 3600.0
_LIMIT_EVERY_SECONDS = 60.0
MOST_KEPT = 50
"""Runs of a namespace whose resources are gone. The plan and the origins of each may have several MB."""


async def keep_swept(stores: Stores, resources: Resources, clock: Clock) -> None:
    """Sweep now and every few hours, until cancelled."""
    await _keep(lambda: sweep(stores, resources, clock), _EVERY_SECONDS, "old records were not swept")


async def keep_limited(stores: Stores, resources: Resources) -> None:
    """Limit the records now and every minute, until cancelled."""
    await _keep(lambda: limit(stores, resources), _LIMIT_EVERY_SECONDS, "the number of old records was not limited")


async def _keep(work: Callable[[], Awaitable[int]], seconds: float, failed: str) -> None:
    """Do it now and at this interval, until cancelled; a failure is logged with this text."""
    while True:
        try:
            await work()
        except RebalanceError as error:
            log.warning("%s: %s", failed, error.message)
        except Exception:
            log.exception(failed)
        await asyncio.sleep(seconds)


async def limit(stores: Stores, resources: Resources) -> int:
    """Forget the oldest runs whose resources are gone, above ``MOST_KEPT`` per namespace; how many they were.

    Open ones last: see ``sweep``. Plans without a run are forgotten too if their resource is gone.
    """
    found, opened = defaultdict[str, list[Run]](list), set[str]()
    for run in await stores.runs.list_all():
        found[run.namespace].append(run)
        opened.add(run.uid)
    forgotten = 0
    for namespace, runs in found.items():
        if len(runs) > MOST_KEPT:
            try:
                forgotten += await _limited(runs, stores, await resources.uids(namespace))
            except RebalanceError as error:
                log.warning("namespace %s: old records stay: %s", namespace, error.message)
    await _forget_unopened(stores, resources, opened)
    return forgotten


async def _forget_unopened(stores: Stores, resources: Resources, opened: Collection[str]) -> None:
    """Delete the plans of resources that were gone before their run was opened: no run leads to them.

    ``opened``: the uids of runs that are known already.
    """
    there: dict[str, Collection[str]] = {}
    for ref, uid in (await stores.plans.stored()).items():
        if uid in opened:
            continue
        try:
            namespace = await stores.plans.namespace_of(ref)
            # A run that cannot be read is an error here: its plan stays.
            if not namespace or await stores.runs.load(uid) is not None:
                continue
            if namespace not in there:  # read once: a namespace may have many such plans, and many large resources
                there[namespace] = await resources.uids(namespace)
            # A resource that was created since then has not been planned when this began.
            if uid not in there[namespace]:
                await stores.plans.delete(uid)
        except RebalanceError as error:
            log.warning("plan %s stays: %s", ref, error.message)


async def _limited(runs: Iterable[Run], stores: Stores, there: Collection[str]) -> int:
    """``there``: the uids of the resources that exist. A new resource may need the origins of a run handed over."""
    gone = [run for run in runs if run.uid not in there and run.successor not in there]
    gone.sort(key=lambda run: (run.open, run.closed_at or run.opened_at))
    forgotten = 0
    for run in gone[:-MOST_KEPT]:
        if await stores.runs.load(run.uid) == run:
            if run.open:
                _log_orphan(run, stores)
                log.warning("%s/%s: the records of run %s are deleted", run.namespace, run.name, run.run_id)
            await stores.forget(run.uid)
            forgotten += 1
    return forgotten


async def clean_up(stores: Stores, kube: KubeObjects) -> None:
    """Remove what a killed operator left half written. Only before an engine runs: it may be writing."""
    for store in (stores.plans, stores.origins, LedgerStore(kube)):
        try:
            await store.clean()
        except RebalanceError as error:
            log.warning("records left half written were not removed: %s", error.message)


async def sweep(stores: Stores, resources: Resources, clock: Clock) -> int:
    """Forget closed runs older than the retention whose resource is gone; how many they were.

    An open run without a resource is an orphan: its finalizer was taken away by something other than us. It is logged
    at each sweep and closed as abandoned when the retention is over. So its origins, with which everything can be moved
    back by hand, are kept twice as long as those of a success.
    """
    forgotten = 0
    for run in await stores.runs.list_all():
        try:
            forgotten += await _swept(run, stores, resources, clock)
        except RebalanceError as error:
            # If a namespace cannot be read, only its own records stay.
            log.warning("%s/%s: run %s was not swept: %s", run.namespace, run.name, run.run_id, error.message)
    return forgotten


async def _swept(run: Run, stores: Stores, resources: Resources, clock: Clock) -> bool:
    """Whether the run was forgotten."""
    overdue = clock.now() - (run.closed_at or run.opened_at) >= PLAN_RETENTION
    if not (run.open or overdue) or await resources.exists(run.namespace, run.name, run.uid):
        return False
    if run.successor is not None and await resources.has_uid(run.namespace, run.successor):
        return False  # the new resource may have no plan yet: only this run has the origins
    if await stores.runs.load(run.uid) != run:
        return False  # it has ended since it was listed, and its resource with it
    if not run.open:
        await stores.forget(run.uid)
        return True
    _log_orphan(run, stores)
    if overdue:
        await stores.runs.save(abandoned(run, clock.now()))
        log.warning("%s/%s: run %s was closed as %s", run.namespace, run.name, run.run_id, RunOutcome.ABANDONED)
    return False


def abandoned(run: Run, at: datetime) -> Run:
    """The record of an open run, closed without its cluster. If it has sent calls, no success is left to undo."""
    closed = replace(run, closed_at=at, outcome=RunOutcome.ABANDONED)
    return replace(closed, last_success=None) if run.started_at is not None else closed


def _log_orphan(run: Run, stores: Stores) -> None:
    cordoned = f" Brokers {', '.join(map(str, run.cordoned))} may still be cordoned by it." if run.cordoned else ""
    log.warning(
        "%s/%s: run %s, open since %s, has lost its resource (uid %s): its finalizer was not removed by this operator. "
        "Kafka finishes reassignments in flight, and nothing moves it back.%s Its plan and origins: %s",
        run.namespace,
        run.name,
        run.run_id,
        run.opened_at.isoformat(timespec="seconds"),
        run.uid,
        cordoned,
        stores.runs.how_to_see(run.uid),
    )
