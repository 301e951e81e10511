"""From a resource to its open run and out again, as far as that needs no Kafka: finalizer, loading, teardown, closing.

Each step is stored before the next begins, and each begins by looking at what is stored.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.execution.decide import Direction
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.reconcile.records import Stores, load_open_run
from kafka_rebalance.reconcile.resources import Resources
from kafka_rebalance.reconcile.work import Work

log = logging.getLogger(__name__)

_REFUSED_SECONDS = 15.0
_SOONEST_SECONDS = 0.5


class Clock(Protocol):
    """The two clocks."""

    def now(self) -> datetime:
        """Wall time, aware, for people and for the stores."""

    def monotonic(self) -> float:
        """Seconds, for intervals."""


class Lifecycle:
    """Prepares each work for a tick and ends its run."""

    def __init__(self, resources: Resources, stores: Stores, clock: Clock) -> None:
        self._resources = resources
        self._stores = stores
        self._clock = clock

    async def prepare(self, work: Work) -> None:
        """Load what is stored, hold the object, begin a teardown. ``work.problem`` says why nothing can be done."""
        if work.prepared == work.asked and self._clock.monotonic() < work.retry_at:
            return
        if work.prepared != work.asked:
            work.problem, work.queued_behind, work.retry_at = None, None, float("-inf")
        work.prepared = work.asked
        async with self.problems_of(work, "prepare"):
            if not work.run_loaded:
                work.run = await self._stores.runs.load(work.uid)
                work.run_loaded = True
            if work.rebalance.metadata.deleting:
                await self._tear_down(work)
            elif not work.held:
                await self._resources.hold(work)
            elif work.run is not None and work.run.open:
                await self._resume(work, work.run)

    @asynccontextmanager
    async def problems_of(self, work: Work, stage: str) -> AsyncIterator[None]:
        """What goes wrong for one resource is said on it and tried again later; the others go on.

        The problem of a stage stays on the status until the same stage has succeeded.
        """
        try:
            yield
        except RebalanceError as error:
            log.warning("%s: %s: %s", work.name, error.reason, error.message)
            self._note(work, stage, error)
        except Exception:
            log.exception("%s: unexpected error", work.name)
            self._note(work, stage, Transient("InternalError", "unexpected error, see the operator's log", 15.0))
        else:
            if work.problem_at == stage:
                work.problem, work.problem_at = None, ""

    def _note(self, work: Work, stage: str, error: RebalanceError) -> None:
        work.problem, work.problem_at = error, stage
        again = error.retry_after if isinstance(error, Transient) else _REFUSED_SECONDS
        work.retry_at = self._clock.monotonic() + max(again, _SOONEST_SECONDS)

    async def close(self, work: Work, outcome: RunOutcome) -> None:
        """The run is over; nothing of it is in flight."""
        if work.run is None:
            return
        closed = replace(work.run, closed_at=self._clock.now(), outcome=outcome)
        await self._stores.runs.save(closed)
        await self._resources.announce(work, outcome)
        work.run = closed
        skipped = work.open.plan.skipped if work.open else ()
        log.info("%s: %s (%d partitions left alone)", work.name, outcome, len(work.skipped) or len(skipped))
        work.close()

    async def let_go(self, work: Work) -> None:
        """Drop our finalizer. What is stored is forgotten first where everything is back; else it is kept for undo."""
        if work.run is None or work.run.outcome is RunOutcome.ROLLED_BACK:
            await self._stores.forget(work.uid)
            work.run = None
        if work.held:
            await self._resources.release(work)

    async def _resume(self, work: Work, run: Run) -> None:
        if work.open is None:
            work.open = await load_open_run(self._stores, run)
        work.superseding = run.planning_hash != work.planning_hash
        work.direction = Direction.REVERT if work.superseding else Direction.FORWARD

    async def _tear_down(self, work: Work) -> None:
        run = work.run
        if run is None or not run.open:
            await self.let_go(work)
            return
        direction = work.teardown_direction
        if direction is None:
            await self.close(work, RunOutcome.ABANDONED)
            await self.let_go(work)
            return
        if work.open is None:
            work.open = await load_open_run(self._stores, run)
        if work.direction is not direction:
            work.pace = None
        work.direction, work.superseding = direction, False
