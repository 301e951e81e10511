"""From a resource to its open run and out again, as far as that needs no Kafka: finalizer, loading, teardown, closing.

Each step is stored before the next begins, and each begins by looking at what is stored.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Permanent, RebalanceError, Refused, Transient
from kafka_rebalance.kube.api_errors import Conflict
from kafka_rebalance.model.run import Origin, Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.backoff import lengthen
from kafka_rebalance.reconcile.act.run_records import RunRecords
from kafka_rebalance.reconcile.decide.direction import direction_of
from kafka_rebalance.reconcile.decide.judging import skipped_partitions
from kafka_rebalance.reconcile.decide.replanning import already_done, undo_ordered
from kafka_rebalance.reconcile.decide.run_once import completed_key, outlived
from kafka_rebalance.reconcile.decide.teardown import expired, lets_go
from kafka_rebalance.reconcile.report.progress_tracking import expected_rates
from kafka_rebalance.reconcile.state.memory import Planned
from kafka_rebalance.reconcile.state.rebalance import Rebalance, is_served
from kafka_rebalance.reconcile.state.record import end_of_run, opened_run_of

log = logging.getLogger(__name__)

_TERMINATING_SECONDS = 5.0
_HEIR_SECONDS = 60.0
"""How long a run that is let go waits for its plan, if the API server does not deliver it."""
_DAMAGED = {Reason.STORED_PLAN_MISSING, Reason.STORED_STATE_CORRUPT}


class Lifecycle(RunRecords):
    """Prepares each rebalance for a round and ends its run."""

    async def prepare(self, rebalance: Rebalance, *, connected: bool = True) -> None:
        """Load what is stored, begin a teardown. ``memory.problem`` says why that failed.

        ``connected`` False: Kafka cannot be reached, so only what needs no Kafka can end.
        """
        self._note_timeout(rebalance)
        desired, memory = rebalance.desired, rebalance.memory
        if memory.planning is not None and (rebalance.refusal or memory.planned_spec != desired.planning_hash):
            # While a plan is made, it is not recorded that the run rests. What others move then must not get into it.
            await self._stop_planning(rebalance)
            memory = rebalance.memory
        over = expired(rebalance, self._clock.now(), self._clock.monotonic(), connected=connected)
        let_go = desired.metadata.let_go_ordered or over
        unchanged = memory.prepared == desired.change_key and not (desired.deleting and let_go)
        if unchanged and self._clock.monotonic() < memory.retry_at:
            return
        if not unchanged:
            memory = replace(memory, problem=None, retry_at=float("-inf"))
        rebalance.memory = replace(memory, prepared=desired.change_key)
        async with self.problems_of(rebalance, "prepare"):
            if rebalance.desired.deleting:
                await self._end(rebalance, connected=connected)
                return
            await self._read(rebalance)
            if not rebalance.desired.has_finalizer:
                return
            if rebalance.record.open_run is not None:
                await self._load_plan(rebalance, rebalance.record.open_run)
            elif rebalance.may_begin and undo_ordered(rebalance):
                await self._reopen(rebalance)

    def has_write(self, rebalance: Rebalance) -> bool:
        """Whether the object itself is to be written before anything else is done for it (``write``)."""
        if rebalance.desired.deleting or self._clock.monotonic() < rebalance.memory.retry_at:
            return False
        return not rebalance.desired.has_finalizer or self._ended_write(rebalance) is not None

    async def write(self, rebalance: Rebalance) -> None:
        """Add the finalizer, or mark or delete the object of an ended run. Users can make such a write slow."""
        with _growing_pause(rebalance):
            if not rebalance.desired.has_finalizer:
                await self._resources.add_finalizer(rebalance)
            elif (ended := self._ended_write(rebalance)) is not None:
                await ended(rebalance)

    def _ended_write(self, rebalance: Rebalance) -> Callable[[Rebalance], Awaitable[None]] | None:
        """What is to be written because its run has ended."""
        if rebalance.record.open_run is not None or undo_ordered(rebalance) or not already_done(rebalance):
            return None
        if (key := completed_key(rebalance)) is not None and rebalance.memory.marked_completed != key:
            return self._mark_completed
        return self._resources.delete if outlived(rebalance, self._clock.now()) else None

    async def _mark_completed(self, rebalance: Rebalance) -> None:
        key = completed_key(rebalance)
        if key is not None:
            await self._resources.mark_completed(rebalance, key)
            rebalance.memory = replace(rebalance.memory, marked_completed=key)

    async def ended(self, rebalance: Rebalance) -> bool:
        """Whether its run has ended well: what happens to the cluster, or its last problem, does not concern it now."""
        await self._read(rebalance)
        if ended := already_done(rebalance) and not rebalance.desired.deleting:
            rebalance.memory = replace(rebalance.memory, problem=None)
        return ended

    async def close(
        self,
        rebalance: Rebalance,
        outcome: RunOutcome,
        successor: str | None = None,
        disk_peak: int | None = None,
        uncordoned: Collection[BrokerId] = (),
    ) -> None:
        """End the run; nothing of it is in flight. If it has sent something, it replaces the last success.

        ``uncordoned``: brokers whose cordon the ledger has from now on, and not the run.
        """
        run = rebalance.record.run
        if run is None:
            return
        at = await end_of_run(self._stores, successor, self._clock.now())
        kept = tuple(b for b in run.cordoned if b not in uncordoned)
        closed = replace(run, closed_at=at, outcome=outcome, successor=successor, disk_peak=disk_peak, cordoned=kept)
        closed = replace(closed, place_given_up=False, unsettled=())
        closed = replace(closed, last_success=None) if rebalance.record.may_have_sent else closed
        self._in_doubt(rebalance)
        await self._stores.runs.save(closed)
        rebalance.record = replace(rebalance.record, was_read=True)
        if closed.last_success is not run.last_success:
            await self._forget_older(rebalance, closed)
        if rebalance.desired.deleting:
            await self._resources.announce(rebalance, outcome)
        # Without an await from here on: a closed run whose plan is still loaded would be cancelled.
        rebalance.record = replace(rebalance.record, run=closed)
        log.info("%s: %s (%d partitions left alone)", rebalance.name, outcome, len(skipped_partitions(rebalance)))
        self._put_plan_away(rebalance)

    async def undone(self, rebalance: Rebalance, *, wholly: bool) -> None:
        """End an undo. The order to undo is removed first: it must not meet a later run with the same plan."""
        await self._resources.clear_undo(rebalance)
        await self.close(rebalance, RunOutcome.UNDONE if wholly else RunOutcome.ROLLED_BACK_PARTIALLY)

    async def remove_finalizer_and_records(self, rebalance: Rebalance) -> None:
        """Remove our finalizer. The records are deleted first if everything is back; otherwise undo needs them."""
        run = rebalance.record.run
        if run is None or run.to_undo.outcome in {RunOutcome.ROLLED_BACK, RunOutcome.UNDONE}:
            # What it inherited first: without a run of its own, it would be rolled back once more.
            await self._handed_over.use_up(await self._handed_over.handed_over_to(rebalance.uid))
            await self._stores.forget(rebalance.uid)
            rebalance.record = replace(rebalance.record, run=None)
        await self._remove_finalizer(rebalance)

    async def _remove_finalizer(self, rebalance: Rebalance) -> None:
        if rebalance.desired.has_finalizer:
            with _growing_pause(rebalance):
                await self._resources.remove_finalizer(rebalance)

    async def begin(self, rebalance: Rebalance, planned: Planned, rebalances: Mapping[str, Rebalance]) -> None:
        """Open the run of this plan, or go on with it in an open run. The plan is stored already.

        The record of the run is written last, with its present cordons, because the plan was made in parallel with the
        rounds. An order to undo that the plan supersedes is removed first: the new plan may have the same hash.
        Conflict as soon as the engine, with these ``rebalances``, does not have it any more: another engine may have
        begun a run since. The same if an earlier run, whose cordons or origins it has, was doubted since it was read.
        """

        def check() -> None:
            if not is_served(rebalance, rebalances):
                raise Conflict(f"another engine serves {rebalance.name} now, or none")
            if any(map(self._stores.runs.is_outdated, earlier)):
                raise Conflict(f"the cluster of {rebalance.name} has got another owner")

        before, uid, run = rebalance.record.run, rebalance.uid, planned.run
        earlier = (*planned.inherited_from, *((before,) if before is not None else ()))
        same = before is not None and before.run_id == run.run_id
        if before is not None and before.cluster_id == self._cluster_id:
            last_success = before.last_to_undo if same or run.started_at is None else None
            # The ledger has what a way back could not remove: a cordon that is there now may be of others.
            cordoned = before.cordoned if before.open or before.outcome is RunOutcome.SUCCEEDED else ()
            was_unproved = run.was_unproved or before.was_unproved
            run = replace(run, cordoned=cordoned, last_success=last_success, was_unproved=was_unproved)
        elif before is None and planned.inherited_from:
            run = replace(run, cordoned=await self._handed_over.own_cordons(uid))
        origins: Mapping[TopicPartition, Origin] = rebalance.record.origins if same else {}
        if before is not None and before.open and before.undo:
            await self._resources.clear_undo(rebalance)
        self._in_doubt(rebalance)
        theirs, new = planned.dirs_of_others, run.started_at is not None and not same
        if planned.origins.keys() != origins.keys() or theirs or new:
            kept = [origins.get(tp, origin) for tp, origin in planned.origins.items()]  # calls may have been sent since
            kept = [origin.without_log_dirs(theirs.get(origin.tp, ())) for origin in kept]
            origins = await self._stores.origins.replace(uid, run.run_id, kept)
        await self._stores.runs.save(run, check)
        check()
        await self._handed_over.use_up(planned.inherited_from)
        await self._forget_older(rebalance, run)
        opened = await asyncio.to_thread(opened_run_of, run, planned.plan, planned.ref, origins)
        self._put_plan_away(rebalance)
        rebalance.record = replace(rebalance.record, run=run, was_read=True, loaded_run=opened, origins=origins)
        rebalance.record = replace(rebalance.record, handed_over=None)
        self.expect(rebalance, expected_rates(opened, planned.model))

    async def _forget_older(self, rebalance: Rebalance, run: Run) -> None:
        """Delete plans and origins of the resource that no record names. The next call repeats what failed."""
        try:
            await self._stores.plans.delete(rebalance.uid, keep={run.plan_hash, run.to_undo.plan_hash})
            await self._stores.origins.delete(rebalance.uid, keep={run.run_id, run.to_undo.run_id})
        except RebalanceError as error:
            log.warning("%s: older plans are still stored: %s", rebalance.name, error.message)

    async def hand_over(self, old: Rebalance, rebalances: Mapping[str, Rebalance]) -> None:
        """Let the resource that takes over the closed run plan again, with the origins of that run."""
        run = old.record.run
        heir = rebalances.get(run.successor or "") if run is not None else None
        if heir is not None:
            await self._forget_plans(heir)
            heir.record = replace(heir.record, run=None)

    async def _reopen(self, rebalance: Rebalance) -> None:
        """Undo: the run that had succeeded goes back to its origins, with the same engine and limits.

        If the last run has sent nothing, the last success goes back instead, and is the run of the resource again.
        """
        before = rebalance.record.run
        if before is None or not await self._resources.undo_stands(rebalance):
            return
        sent = before.to_undo
        if sent.unproved:
            message = (
                f"the run with plan {sent.plan_hash} may have moved partitions of another cluster with the same id"
            )
            raise Refused(Reason.NOTHING_TO_UNDO, message)
        origins = await self._stores.origins.load(rebalance.uid, sent.run_id)
        if origins is None and sent.started_at is not None:
            message = f"the origins of plan {sent.plan_hash} are no longer stored: there is nothing to go back to"
            raise Refused(Reason.ORIGINS_EXPIRED, message)
        if not origins or not sent.started:
            message = f"the run with plan {sent.plan_hash} has sent no step: what moved was moved by others"
            raise Refused(Reason.NOTHING_TO_UNDO, message)
        run = replace(sent, closed_at=None, outcome=None, undo=True, place_given_up=True, unsettled=())
        run = replace(run, planning_hash=before.planning_hash, cordoned=before.cordoned)
        self._held.refuse(rebalance.uid)
        opened = await self._loaded(run)
        self._held.take(rebalance.uid, opened.plan)
        self._in_doubt(rebalance)
        await self._stores.runs.save(run)
        rebalance.record = replace(rebalance.record, run=run, was_read=True, loaded_run=opened, origins=opened.origins)

    async def _end(self, rebalance: Rebalance, *, connected: bool) -> None:
        """Start the deletion.

        A deletion that does not change Kafka needs no records, so damaged records do not block it.
        """
        try:
            if rebalance.memory.planning is not None:
                await self._forget_plans(rebalance)
            await self._read(rebalance)
            await self._tear_down(rebalance, connected=connected)
        except Permanent as damaged:
            await self._check_terminating(rebalance)
            if damaged.reason not in _DAMAGED or not self._lets_go(rebalance, connected=connected):
                raise
            if rebalance.desired.has_finalizer:
                where = self._stores.runs.how_to_see(rebalance.uid)
                log.warning("%s: finalizer removed, its records stay (%s): %s", rebalance.name, where, damaged.message)
                await self._resources.announce(rebalance, RunOutcome.ABANDONED)
                await self._remove_finalizer(rebalance)

    async def _tear_down(self, rebalance: Rebalance, *, connected: bool) -> None:
        if rebalance.record.run is None:
            self._in_doubt(rebalance)
            run = await self._handed_over.rebuilt(rebalance.desired)
            rebalance.record = replace(rebalance.record, run=run, was_read=True)
        run = rebalance.record.open_run
        if run is None:
            await self.remove_finalizer_and_records(rebalance)
            return
        if not run.started:
            # Partitions that moved since were moved by others; moving them back would undo their work.
            await self.close(rebalance, RunOutcome.ROLLED_BACK)
            await self.remove_finalizer_and_records(rebalance)
            return
        await self._check_terminating(rebalance)
        # If it is not known in which cluster it started, and its connection is refused, no engine will end it.
        nowhere = run.unproved and connected and not self._cluster_id
        if nowhere or self._lets_go(rebalance, connected=connected):
            if self._may_have_heir(rebalance):
                await self._seek_heir(rebalance, run)
                return
            heir = rebalance.assessment.successor if direction_of(rebalance) is not None else None
            await self.close(rebalance, RunOutcome.ABANDONED, heir.uid if heir is not None else None)
            await self.remove_finalizer_and_records(rebalance)
            return
        await self._load_plan(rebalance, run)

    def _may_have_heir(self, rebalance: Rebalance) -> bool:
        """Whether it is not known yet who continues with the run that is let go. Only an engine looks for that."""
        until = rebalance.memory.heir_sought_until
        unknown = rebalance.assessment.successor is None and (until is None or self._clock.monotonic() < until)
        return unknown and bool(self._cluster_id) and direction_of(rebalance) is not None

    async def _seek_heir(self, rebalance: Rebalance, run: Run) -> None:
        """Load the run: its heir is found in the same round, when all resources are prepared.

        A run that cannot be loaded ends without an heir. A failure that may pass is retried for a limited time.
        """
        if rebalance.memory.heir_sought_until is None:
            until = self._clock.monotonic() + _HEIR_SECONDS
            rebalance.memory = replace(rebalance.memory, heir_sought_until=until)
        with suppress(Permanent, Refused):
            await self._load_plan(rebalance, run)
        rebalance.memory = replace(rebalance.memory, heir_sought_until=float("-inf"))

    def _lets_go(self, rebalance: Rebalance, *, connected: bool) -> bool:
        return lets_go(rebalance, self._clock.now(), self._clock.monotonic(), connected=connected)

    def _note_timeout(self, rebalance: Rebalance) -> None:
        """Remember since when this process knows that ``rollback.timeout`` is over."""
        timed_out = rebalance.desired.timed_out(self._clock.now())
        if timed_out != (rebalance.memory.timed_out_at is not None):
            seen_at = self._clock.monotonic() if timed_out else None
            rebalance.memory = replace(rebalance.memory, timed_out_at=seen_at)

    async def _check_terminating(self, rebalance: Rebalance) -> None:
        """Whether the deletion is part of a larger one: of the namespace, or of our CRD."""
        now = self._clock.monotonic()
        if not rebalance.memory.terminating and now - rebalance.memory.terminating_checked_at >= _TERMINATING_SECONDS:
            namespace = rebalance.desired.metadata.namespace
            terminating = await self._resources.namespace_or_crd_terminating(REBALANCES, namespace)
            rebalance.memory = replace(rebalance.memory, terminating=terminating, terminating_checked_at=now)


@contextmanager
def _growing_pause(rebalance: Rebalance) -> Iterator[None]:
    """Double the pause with each failure in a row: a write to an object may take its time-out each time."""
    try:
        yield
    except Transient as error:
        lengthen(error, rebalance.memory.error)
        raise
