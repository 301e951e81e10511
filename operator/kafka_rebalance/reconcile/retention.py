"""How long what is stored outlives its resource: plan and origins of a success are kept for undo, then forgotten."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kube.store import LedgerStore
from kafka_rebalance.reconcile.lifecycle import Clock
from kafka_rebalance.reconcile.records import Stores
from kafka_rebalance.reconcile.resources import Resources

log = logging.getLogger(__name__)

PLAN_RETENTION = timedelta(days=30)
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

    An open run is never forgotten: its origins are what a rollback needs.
    """
    forgotten = 0
    for run in await stores.runs.list_all():
        if run.closed_at is None or clock.now() - run.closed_at < PLAN_RETENTION:
            continue
        if not await resources.exists(run.namespace, run.name, run.uid):
            await stores.forget(run.uid)
            forgotten += 1
    return forgotten
