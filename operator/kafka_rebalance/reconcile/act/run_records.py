"""The stored run of each rebalance: when it is read, what is loaded for it, and when both are forgotten.

A rebalance's ``record`` and ``memory`` are replaced in this package only, the record right after each write to the
store.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Refused
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.handed_over_runs import HandedOverRuns
from kafka_rebalance.reconcile.act.problems import Problems
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.decide.arrival_proof import (
    HUNG_SECONDS,
    SECOND_READING_SECONDS,
    has_come_to_rest,
    late_call_possible,
    may_hang,
    unsettled_topics,
)
from kafka_rebalance.reconcile.decide.cluster_ownership import owner_of
from kafka_rebalance.reconcile.decide.judging import skipped_partitions
from kafka_rebalance.reconcile.decide.queue_places import is_to_give_up_place
from kafka_rebalance.reconcile.decide.run_once import restored_run
from kafka_rebalance.reconcile.decide.teardown import uncounted_successors
from kafka_rebalance.reconcile.state.assessment import ContinuedCopies
from kafka_rebalance.reconcile.state.held_plans import HeldPlans
from kafka_rebalance.reconcile.state.memory import Planned
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import EndedRun, LoadedRun, Stores, load_open_run, without

log = logging.getLogger(__name__)

_START = "record the start"


class RunRecords(Problems):
    """Reads the runs of the rebalances, and loads the open ones.

    ``cluster_id``: of the engine's cluster, only its runs are loaded; empty: no engine has the rebalances, so none is.
    ``on_record``: brokers of the cluster that were live before. ``held``: counts the plans in memory.
    """

    def __init__(
        self,
        resources: Resources,
        stores: Stores,
        clock: Clock,
        cluster_id: str = "",
        on_record: Collection[BrokerId] = (),
        held: HeldPlans | None = None,
    ) -> None:
        super().__init__(clock)
        self._resources = resources
        self._stores = stores
        self._cluster_id = cluster_id
        self.live: Collection[BrokerId] = ()
        """The live brokers of the cluster as last read."""
        self.partitions: Mapping[TopicPartition, PartitionState] = {}
        """The partitions of the cluster as last read."""
        self._on_record = on_record
        self._held = held or HeldPlans()
        self._handed_over = HandedOverRuns(stores, clock, cluster_id)

    def begin_round(self) -> None:
        """What was listed in the round before is outdated."""
        self._handed_over.begin_round()

    async def _read(self, rebalance: Rebalance) -> None:
        if not self._known(rebalance):
            stored = await self._stores.runs.load(rebalance.uid)
            if stored is not None and (stored.open or rebalance.record.run is not None):
                # Writes without an answer, also those of an earlier process, are refused from now on.
                await self._stores.runs.save(stored)
            run = stored or restored_run(rebalance.desired, self._cluster_id)
            if stored is not None and await self.inheritance(rebalance.uid):
                run = None  # its plan was made before it was known what it inherits
            self._put_plan_away(rebalance)  # of what was read before
            was_read = stored is not None or bool(self._cluster_id)
            rebalance.record = replace(rebalance.record, run=run, was_read=was_read, handed_over=None)
            if run is not None:
                rebalance.memory = replace(rebalance.memory, problem=None)  # a problem of its start or end is over

    def _known(self, rebalance: Rebalance) -> bool:
        """Whether the record is read. The annotation of a resource counts only in one Kafka cluster."""
        run = rebalance.record.run
        elsewhere = run is not None and run.restored and self._cluster_id not in {"", run.cluster_id}
        outdated = run is not None and self._stores.runs.is_outdated(run)
        return rebalance.record.was_read and not elsewhere and not outdated

    async def inheritance(self, uid: str) -> list[Run]:
        """The runs that were handed over to the resource since its own was planned, the oldest first."""
        return await self._handed_over.inheritance(uid)

    async def count_handed_over(self, rebalances: Collection[Rebalance]) -> None:
        """Count the runs that were handed over to those that may take over a rollback. If that fails, none is known."""
        uncounted = uncounted_successors(rebalances)
        if not uncounted:
            return
        try:
            counts = Counter(run.successor for run in await self._stores.runs.list_all())
        except RebalanceError as error:
            log.warning("how many runs were handed over is not known: %s", error.message)
            return
        for rebalance in rebalances:
            if rebalance.uid in uncounted:
                rebalance.record = replace(rebalance.record, handed_over=counts[rebalance.uid])

    async def _load_plan(self, rebalance: Rebalance, run: Run) -> None:
        if not self._cluster_id:
            return
        if run.cluster_id != self._cluster_id:
            rebalance.record = replace(rebalance.record, loaded_run=None, origins={})
        if rebalance.record.loaded_run is None:
            # With permission it continues, whichever server it started at. An inline connection leads anywhere.
            spec, namespace = rebalance.desired.spec, rebalance.desired.metadata.namespace
            permitted = rebalance.refusal is None and owner_of(spec.kafka, namespace).connection
            unproved = run.unproved and not permitted
            opened = await self._loaded(replace(run, unproved=unproved))
            if run.unproved and rebalance.refusal is None:
                await self._stores.runs.go_on(opened.run)
            self._held.note(rebalance.uid, opened.plan)
            rebalance.record = replace(rebalance.record, run=opened.run, loaded_run=opened, origins=opened.origins)
            if run.started:
                self.note_unanswered(rebalance, self._on_record)

    async def _loaded(self, run: Run) -> LoadedRun:
        """Refused("OtherCluster") if it moved partitions of another cluster: its orders must not get here."""
        if run.cluster_id != self._cluster_id:
            raise Refused(
                Reason.OTHER_CLUSTER,
                f"spec.kafka leads to Kafka cluster {self._cluster_id}, but the run moved partitions of cluster "
                f"{run.cluster_id}: delete the resource, and create one with a connection to that cluster",
            )
        return await load_open_run(self._stores, run)

    def no_start(self, rebalance: Rebalance) -> None:
        """Nothing is to be sent now, so no start has to be recorded."""
        self.nothing_to_do(rebalance, _START)

    async def record_start(self, rebalance: Rebalance, *, begins: bool) -> bool:
        """Before anything is sent, record that the run starts, or that it goes on after it has given up its place.

        From then on it may be the run that moves its partitions, but not if it only cancels (not ``begins``). False: it
        could not be recorded, or the run still rests: send nothing yet. Earlier moves were made by others and are not
        ours to undo. The last success stays: all may be held back.
        """
        before = rebalance.record.run
        if before is None or (before.started_at is not None and not before.place_given_up):
            self.no_start(rebalance)
            return not rebalance.rests
        if before.started_at is not None:
            if not begins:
                return not rebalance.rests
            run = replace(before, place_given_up=False, unsettled=())
            async with self.problems_of(rebalance, _START):
                await self._save(rebalance, run)
            return rebalance.record.run is run and not rebalance.rests
        run = replace(before, started_at=self._clock.now())
        async with self.problems_of(rebalance, _START):
            # Store an empty record, so that an undo can distinguish it from a record that is gone. An earlier version
            # recorded origins when it planned: others may have moved the partitions since.
            origins = await self._stores.origins.replace(rebalance.uid, run.run_id, ())
            rebalance.record = replace(rebalance.record, origins=origins)
            await self._save(rebalance, run)
        return rebalance.record.run is run

    async def record_rest(self, rebalance: Rebalance, partitions: Mapping[TopicPartition, PartitionState]) -> None:
        """Record that the run has ``rested``, if it has by this reading. Its throttle is removed."""
        before, now = rebalance.record.open_run, self._clock.monotonic()
        if before is not None and has_come_to_rest(rebalance, partitions, now):
            await self._save(rebalance, replace(before, rested=True))

    async def record_place(self, rebalance: Rebalance) -> None:
        """Record that the run has given up its place in the queue. A second reading has to show that it is at rest.

        What may be in flight all the same is recorded too. Nothing is written while the record is in doubt, because the
        end of the run may be there.
        """
        before = rebalance.record.open_run if rebalance.record.was_read else None
        since, now = rebalance.memory.resting_since, self._clock.monotonic()
        if before is None or not is_to_give_up_place(rebalance, now):
            since = None
        elif since is None:
            since = now
        elif now - since >= SECOND_READING_SECONDS:
            unsettled = tuple(sorted(unsettled_topics(rebalance, self.partitions)))
            await self._save(rebalance, replace(before, place_given_up=True, unsettled=unsettled))
        if since != rebalance.memory.resting_since:
            rebalance.memory = replace(rebalance.memory, resting_since=since)

    async def end_rest(self, rebalance: Rebalance, theirs: Mapping[Origin, Origin | None]) -> None:
        """Strike ``theirs`` off the record, as ``OriginStore.give_up`` does, then record that the run does not rest.

        What an earlier call could not strike off is struck off first, even if others do not move it any more.
        """
        if (before := rebalance.record.run) is None:
            return
        if theirs:
            rebalance.record = replace(rebalance.record, origins=without(rebalance.record.origins, theirs))
        await self._stores.origins.give_up(rebalance.uid, before.run_id, theirs)
        await self._save(rebalance, replace(before, rested=False, place_given_up=True, unsettled=()))

    async def _save(self, rebalance: Rebalance, run: Run) -> None:
        self._in_doubt(rebalance)
        await self._stores.runs.save(run)
        rebalance.record = replace(rebalance.record, run=run, was_read=True)

    def set_direction(self, rebalance: Rebalance, *, back: bool) -> None:
        """Set the moves of the open run: those of the plan, or during a rollback those with a call.

        The deletion of a run that rests because its connection is refused moves nothing.
        """
        if (record := rebalance.record).loaded_run is not None:
            turned = record.loaded_run.in_direction(rebalance.origins_back, back=back)
            if turned is not record.loaded_run:
                rebalance.record = replace(record, loaded_run=turned)

    def expect(self, rebalance: Rebalance, rates: Mapping[TopicPartition, float]) -> None:
        """Remember the rates (bytes per second) at which partitions of the open run are produced to."""
        rebalance.memory = replace(rebalance.memory, expected_rates=rates)

    def planning_begins(self, rebalance: Rebalance, task: asyncio.Task[Planned | ContinuedCopies]) -> None:
        """A plan is being made beside the rounds."""
        rebalance.memory = replace(rebalance.memory, planning=task, planned_spec=rebalance.desired.planning_hash)

    def take_plan(self, rebalance: Rebalance) -> asyncio.Task[Planned | ContinuedCopies] | None:
        """The task that has finished a plan; None: there is none, it is not done, or its plan was given up."""
        task, given_up = rebalance.memory.planning, not rebalance.memory.planned_spec
        if task is None or not task.done():
            return None
        rebalance.memory = replace(rebalance.memory, planning=None)
        return None if given_up or task.cancelled() else task

    def note_attempt(self, rebalance: Rebalance, failed_for: str) -> None:
        """No plan could be made, or even be begun, for the spec with this planning hash; empty: one was made."""
        memory = rebalance.memory
        before = memory.failed_plans if memory.failed_spec == failed_for else 0
        rebalance.memory = replace(memory, failed_spec=failed_for, failed_plans=before + 1 if failed_for else 0)

    async def make_room(self, rebalance: Rebalance) -> None:
        """Drop the plan that is still being made. Another rebalance is to have the place in the queue."""
        if rebalance.memory.planning is not None and not rebalance.memory.planning.done():
            await self._stop_planning(rebalance)

    async def _stop_planning(self, rebalance: Rebalance) -> None:
        """Drop the plan that is being made, or that waits to be opened. The open run stays as it is."""
        if (task := rebalance.memory.planning) is not None:
            give_up_plan(rebalance)
            await asyncio.wait([task])
        rebalance.memory = replace(rebalance.memory, planning=None)

    async def _forget_plans(self, rebalance: Rebalance) -> None:
        """Drop the plan of the open run and the one being made. The next round reads again what is stored."""
        await self._stop_planning(rebalance)
        self._put_plan_away(rebalance)
        rebalance.record = replace(rebalance.record, was_read=False)

    def _put_plan_away(self, rebalance: Rebalance) -> None:
        """Forget the state of the open run, except the values that the status still shows."""
        if (opened := rebalance.record.loaded_run) is not None:
            why = opened.plan.reason or (Reason.BUDGET_REACHED if opened.plan.imbalance is not None else "")
            ended = EndedRun(why, len(skipped_partitions(rebalance)), rebalance.record.run)
            rebalance.record = replace(rebalance.record, loaded_run=None, origins={}, ended=ended)
        memory = replace(rebalance.memory, cordons_done=frozenset(), expected_rates=None, empty_since=None)
        # Without the plan, no heir is found: one that was let go loads it again.
        sought = None if memory.heir_sought_until == float("-inf") else memory.heir_sought_until
        rebalance.memory = replace(memory, uncordoning_since=None, unseen_since=None, heir_sought_until=sought)

    def note_unanswered(
        self, rebalance: Rebalance, others: Collection[BrokerId] = (), *, between_log_dirs: bool = False
    ) -> None:
        """A call of the run has failed without an answer, or may have been sent by an earlier process.

        It may be in a live broker, or in one of ``others``: which ones were live for that process is not known.
        """
        memory, now = rebalance.memory, self._clock.monotonic()
        earlier = memory.called if now - memory.failed_at < HUNG_SECONDS else frozenset[BrokerId]()
        called = earlier.union(self.live, others)
        of_lists = memory.list_unanswered_at if between_log_dirs else now
        memory = replace(memory, unanswered_at=now, list_unanswered_at=of_lists, failed_at=now, called=called)
        rebalance.memory = memory

    def note_live(self, rebalance: Rebalance) -> None:
        """The live brokers were read. One that hangs and has a call of the run may pass it on when it continues."""
        now = self._clock.monotonic()
        if may_hang(memory := rebalance.memory, self.live, now):
            of_lists = now if memory.list_unanswered_at > float("-inf") else memory.list_unanswered_at
            rebalance.memory = replace(memory, unanswered_at=now, list_unanswered_at=of_lists)

    def late_call_possible(self, rebalance: Rebalance) -> bool:
        """Whether Kafka may still execute a call of the run that got no answer, or that an earlier process sent."""
        return late_call_possible(rebalance, self._clock.monotonic())

    def _in_doubt(self, rebalance: Rebalance) -> None:
        """Writes follow that begin, reopen or end a run. If one of them fails, what was carried out is read again.

        A run that has begun inherits nothing more: begun again, it would lose the origins that it took over.
        """
        rebalance.record = replace(rebalance.record, was_read=False)


def give_up_plan(rebalance: Rebalance) -> None:
    """End the task that makes a plan, if there is one. Its plan is not opened, also if it is finished."""
    task = rebalance.memory.planning
    if task is not None and not task.cancelling():
        task.cancel()
    rebalance.memory = replace(rebalance.memory, planned_spec="")
