"""How long records outlive their resource: plan and origins of a success are kept for undo, then deleted."""

import asyncio
import logging
from dataclasses import replace
from datetime import datetime

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kube.store import LedgerStore
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.state.record import PLAN_RETENTION, Stores

log = logging.getLogger(__name__)

_EVERY_SECONDS = 6 * 3600.0


async def keep_swept(stores: Stores, resources: Resources, clock: Clock) -> None:
    """Sweep now and every few hours, until cancelled."""
    while True:
        try:
            await sweep(stores, resources, clock)
        except RebalanceError as error:
            log.warning("old records were not swept: %s", error.message)
        except Exception:
            log.exception("old records were not swept")
        await asyncio.sleep(_EVERY_SECONDS)


async def clean_up(stores: Stores, ledgers: LedgerStore) -> None:
    """Remove what a killed operator left half written. Only before an engine runs: it may be writing."""
    try:
        await stores.plans.clean()
        await stores.origins.clean()
        await ledgers.clean()
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
