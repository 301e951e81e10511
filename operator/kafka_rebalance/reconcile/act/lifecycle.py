"""From a resource to its open run and out again, as far as that needs no Kafka: finalizer, loading, teardown, closing.

Each step is stored before the next begins, and each begins by looking at what is stored.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run, RunOutcome
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState
from kafka_rebalance.reconcile.state.records import Stores, load_open_run

log = logging.getLogger(__name__)

_REFUSED_SECONDS = 15.0
_SOONEST_SECONDS = 0.5
_LOOK_AROUND_SECONDS = 5.0
_CANCEL_TIME = timedelta(minutes=2)
"""What cancelling gets after spec.rollback.timeout, before the finalizer goes whatever is left."""


class Lifecycle:
    """Prepares each work for a tick and ends its run."""

    def __init__(self, resources: Resources, stores: Stores, clock: Clock) -> None:
        self._resources = resources
        self._stores = stores
        self._clock = clock

    async def prepare(self, work: RebalanceState, *, connected: bool = True) -> None:
        """Load what is stored, hold the object, begin a teardown. ``work.problem`` says why nothing can be done.

        ``connected`` False: Kafka has not been reached, so only what needs no Kafka can end.
        """
        if work.rebalance.metadata.deleting and (work.let_go_ordered or self._expired(work, connected=connected)):
            work.prepared = ()
        if work.prepared == work.asked and self._clock.monotonic() < work.retry_at:
            return
        if work.prepared != work.asked:
            work.problem, work.retry_at = None, float("-inf")
        work.prepared = work.asked
        async with self.problems_of(work, "prepare"):
            if work.rebalance.metadata.deleting and work.planning is not None:
                await self._stop_planning(work)
            if not work.run_loaded:
                work.run = await self._stores.runs.load(work.uid)
                work.run_loaded = True
            if work.rebalance.metadata.deleting:
                await self._tear_down(work, connected=connected)
            elif not work.held:
                await self._resources.hold(work)
            elif work.run is not None and work.run.open:
                await self._resume(work, work.run)
            elif work.undo_ordered:
                await self._reopen(work)

    @asynccontextmanager
    async def problems_of(self, work: RebalanceState, stage: str) -> AsyncIterator[None]:
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
            self._note(work, stage, Transient(Reason.INTERNAL_ERROR, "unexpected error, see the operator's log", 15.0))
        else:
            if work.problem_at == stage:
                work.problem, work.problem_at = None, ""

    def _note(self, work: RebalanceState, stage: str, error: RebalanceError) -> None:
        work.problem, work.problem_at = error, stage
        again = error.retry_after if isinstance(error, Transient) else _REFUSED_SECONDS
        work.retry_at = self._clock.monotonic() + max(again, _SOONEST_SECONDS)

    async def record_start(self, work: RebalanceState) -> bool:
        """Before anything is sent: that the run starts is on record. False: it cannot be written, send nothing yet.

        What has moved before that was moved by others, and is not ours to undo.
        """
        if work.run is None or work.run.started_at is not None:
            return True
        run = replace(work.run, started_at=self._clock.now())
        async with self.problems_of(work, "record the start"):
            await self._stores.runs.save(run)
            work.run = run
        return work.run is run

    async def close(self, work: RebalanceState, outcome: RunOutcome, successor: str | None = None) -> None:
        """The run is over; nothing of it is in flight."""
        if work.run is None:
            return
        closed = replace(work.run, closed_at=self._clock.now(), outcome=outcome, successor=successor)
        await self._stores.runs.save(closed)
        if work.rebalance.metadata.deleting:
            await self._resources.announce(work, outcome)
        work.run = closed
        log.info("%s: %s (%d partitions left alone)", work.name, outcome, len(work.skipped))
        work.close()
        work.place = None

    async def undone(self, work: RebalanceState, *, wholly: bool) -> None:
        """What can be back is. The order to undo goes first: it must not meet a later run with the same plan."""
        await self._resources.clear_undo(work)
        await self.close(work, RunOutcome.UNDONE if wholly else RunOutcome.ROLLED_BACK_PARTIALLY)

    async def let_go(self, work: RebalanceState) -> None:
        """Drop our finalizer. What is stored is forgotten first where everything is back; else it is kept for undo."""
        if work.run is None or work.run.outcome in {RunOutcome.ROLLED_BACK, RunOutcome.UNDONE}:
            await self._stores.forget(work.uid)
            work.run = None
        if work.held:
            await self._resources.release(work)

    async def _resume(self, work: RebalanceState, run: Run) -> None:
        if work.open is None:
            work.open = await load_open_run(self._stores, run)
        heed_spec(work)

    async def _reopen(self, work: RebalanceState) -> None:
        """Undo: the run that had succeeded goes back to its origins, with the same engine and limits."""
        if work.run is None:
            return
        if not work.run.started:
            raise Refused(
                Reason.NOTHING_TO_UNDO, f"the run with plan {work.run.plan_hash} has sent no step; others moved it"
            )
        origins = await self._stores.origins.load(work.uid, work.run.run_id)
        if not origins:
            message = f"the origins of plan {work.run.plan_hash} are no longer stored: there is nothing to go back to"
            raise Refused(Reason.ORIGINS_EXPIRED, message)
        run = replace(work.run, closed_at=None, outcome=None, undo=True)
        opened = await load_open_run(self._stores, run)
        await self._stores.runs.save(run)
        work.run, work.open, work.progress, work.verdicts = run, opened, None, {}

    async def _stop_planning(self, work: RebalanceState) -> None:
        """A deletion does not wait for a plan. What it may have stored is read again."""
        if work.planning is not None:
            work.planning.cancel()
            await asyncio.wait([work.planning])
        work.planning, work.run_loaded = None, False
        work.close()

    async def _tear_down(self, work: RebalanceState, *, connected: bool) -> None:
        if work.run is None:
            work.run = await self._take_back(work)
        run = work.run
        if run is None or not run.open:
            await self.let_go(work)
            return
        if not run.started:
            # What has moved since was moved by others: to move it back would undo their work.
            await self.close(work, RunOutcome.ROLLED_BACK)
            await self.let_go(work)
            return
        await self._look_around(work)
        abandoned = work.heading is None or work.let_go_ordered or self._expired(work, connected=connected)
        if abandoned:
            await self.close(work, RunOutcome.ABANDONED)
            await self.let_go(work)
            return
        if work.open is None:
            work.open = await load_open_run(self._stores, run)
        work.replanning, work.settled, work.kept = None, False, None

    async def _look_around(self, work: RebalanceState) -> None:
        """Whether the deletion is part of a larger one: of the namespace, or of our CRD."""
        now = self._clock.monotonic()
        if not work.terminating and now - work.looked_around_at >= _LOOK_AROUND_SECONDS:
            work.terminating = await self._resources.goes_with_its_surroundings(work)
            work.looked_around_at = now

    def _expired(self, work: RebalanceState, *, connected: bool) -> bool:
        """Whether ``rollback.timeout`` ends it here: at once without Kafka, else when cancelling has had its time."""
        now = self._clock.now()
        begun = work.rebalance.metadata.deletion_timestamp
        if work.terminating and begun is not None and now - begun > _CANCEL_TIME:
            return True
        return work.timed_out(now if not connected else now - _CANCEL_TIME)

    async def _take_back(self, work: RebalanceState) -> Run | None:
        """A new resource took runs over and goes before it has a plan of its own: what they moved is rolled back."""
        taken = [run for run in await self._stores.runs.list_all() if run.successor == work.uid]
        partitions: dict[TopicPartition, PlannedPartition] = {}
        origins: list[Origin] = []
        for run in taken:
            opened = await load_open_run(self._stores, run)
            origins += opened.origins.values()
            for planned in opened.plan.partitions:
                partitions.setdefault(planned.tp, planned)
        if not partitions:
            return None
        plan = Plan(tuple(sorted(partitions.values())), Certificate(0, optimal=False))
        run = replace(
            taken[0], uid=work.uid, name=work.rebalance.metadata.name, run_id=uuid.uuid4().hex, plan_hash=plan.hash
        )
        run = replace(run, closed_at=None, outcome=None, successor=None, planning_hash=work.planning_hash)
        await self._stores.plans.save(work.uid, plan.hash, run.cluster_id, plan, self._clock.now())
        await self._stores.origins.append(work.uid, run.run_id, origins)
        await self._stores.runs.save(run)
        return run


def heed_spec(work: RebalanceState) -> None:
    """Put the plan of an open run aside where the spec asks for another one; take it up where it was edited back.

    Not while a plan is being made: it was begun from what the partitions are now, and is put aside when it is there.
    """
    if work.run is None or not work.run.open:
        return
    if work.run.planning_hash != work.planning_hash:
        work.replanning = Reason.SUPERSEDED
    elif work.replanning is Reason.SUPERSEDED and work.planning is None:
        work.replanning, work.settled, work.kept = None, False, None
