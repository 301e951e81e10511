"""One round of an engine: observe, decide, act, report.

The order within a round is the safety argument: finalizer seen on the object, plan stored, run opened, brokers
cordoned, orders confirmed by a second look, the start recorded before the first order, throttle ledger written,
throttle set, the origin of each partition recorded before its first order, and only then a copy is submitted. If the
operator is killed between any two of these, the next round finds the same resource, stores and Kafka, and goes on from
there.

This module, ``sending`` and ``successions`` replace the ``assessment`` of a rebalance, with what decisions return.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from kafka_rebalance.api.conditions import NO_CONNECTION_REASONS
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.execution.health_gate import Vitals
from kafka_rebalance.execution.windows import WindowClock
from kafka_rebalance.kafka.least_permissions import MissingPermission, concerning
from kafka_rebalance.kafka.ports import ClusterInfo
from kafka_rebalance.model.topology import ClusterState
from kafka_rebalance.reconcile.act.closing import Closing
from kafka_rebalance.reconcile.act.judges import MANY, Judges, moves_many_in_dirs
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.log_dir_calls import LogDirCalls
from kafka_rebalance.reconcile.act.plan_order import places_of, takeovers
from kafka_rebalance.reconcile.act.rest_ends import RestEnds
from kafka_rebalance.reconcile.act.status_writes import StatusWrites
from kafka_rebalance.reconcile.act.turns import Turns
from kafka_rebalance.reconcile.decide.arrival_proof import moved_since
from kafka_rebalance.reconcile.decide.direction import deleted_meanwhile, direction_of, may_end_later
from kafka_rebalance.reconcile.decide.judging import exempt_from_health_gate, partitions_to_read
from kafka_rebalance.reconcile.decide.log_dir_decisions import with_log_dirs_judged
from kafka_rebalance.reconcile.decide.queue_places import behind, may_plan
from kafka_rebalance.reconcile.decide.replanning import (
    ended_unedited,
    only_kept_copies_in_flight,
    replanning_for_spec,
    wants_plan,
)
from kafka_rebalance.reconcile.decide.requeue import BUSY_SECONDS, requeue_after
from kafka_rebalance.reconcile.decide.rests import takes_part
from kafka_rebalance.reconcile.decide.step_blocks import BlockInputs, step_block_for
from kafka_rebalance.reconcile.decide.teardown import awaited_plans, teardown_of
from kafka_rebalance.reconcile.drained_brokers import DrainedBrokers
from kafka_rebalance.reconcile.engine_parts import EngineParts
from kafka_rebalance.reconcile.observe.observer import Look, Observer
from kafka_rebalance.reconcile.observe.permission_probe import PermissionProbe
from kafka_rebalance.reconcile.observe.selected_partitions import SelectedPartitions
from kafka_rebalance.reconcile.report.progress_tracking import advance_of
from kafka_rebalance.reconcile.report.run_recorder import INLINE_STEPS, MAX_STEPS, RunRecorder
from kafka_rebalance.reconcile.runs.opening import Runs
from kafka_rebalance.reconcile.runs.plan_maker import PlanMaker
from kafka_rebalance.reconcile.sending import Sending
from kafka_rebalance.reconcile.state.pauses import with_pauses
from kafka_rebalance.reconcile.state.rebalance import Rebalance, RebalanceView, is_served, opened_of
from kafka_rebalance.reconcile.state.round_thread import computed
from kafka_rebalance.reconcile.successions import choose_successors, waiting_for_heirs
from kafka_rebalance.reconcile.throttle.cluster_throttle import ClusterThrottle

log = logging.getLogger(__name__)


class Rounds:
    """The rounds of one cluster's engine. ``rebalances`` and the throttle resources are added and removed outside."""

    def __init__(self, parts: EngineParts, wake: Callable[[], None]) -> None:
        info, admin, resources, stores, clock = parts.info, parts.admin, parts.resources, parts.stores, parts.clock
        self.rebalances: dict[str, Rebalance] = {}
        self.throttle = ClusterThrottle(info.cluster_id, admin, parts.keeper, resources, clock, parts.throttles_placed)
        self.info = info
        """The cluster as last read."""
        self.stopped = False
        """Whether no new step may start, because the process is about to end."""
        self._cluster_id, self._admin, self._clock = info.cluster_id, admin, clock
        self._lifecycle = Lifecycle(resources, stores, clock, info.cluster_id, parts.on_record, parts.held_plans)
        self._lifecycle.live = info.brokers
        self._permissions = PermissionProbe(admin, clock)
        self._observer = Observer(admin, clock, self._permissions)
        plans = PlanMaker(
            info.cluster_id,
            admin,
            resources,
            stores,
            clock,
            load_models=parts.load_models,
            capacity=parts.capacity,
            runs_to_take_over=self._lifecycle.inheritance,
            known=self._observer.known,
            turns=parts.turns,
        )
        self._runs = Runs(
            info.cluster_id, admin, self._lifecycle, resources, stores, plans, clock, wake, self.throttle.refuse_start
        )
        turn = parts.turns.thread if parts.turns else None
        self._closing = Closing(admin, self._lifecycle, clock, self.throttle.take_cordons, self._observer.expire, turn)
        self._judges = Judges(self._lifecycle, self._observer, self.rebalances, clock)
        self._log_dirs = LogDirCalls(admin, self.rebalances, self._lifecycle, stores, clock)
        self.windows, self._turns, self._selected = WindowClock(), Turns(clock), SelectedPartitions(turn)
        self._rest_ends = RestEnds(admin, self._lifecycle, self._observer, self._turns, clock)
        self._statuses = StatusWrites(resources, self.rebalances, self._observer, self._turns, clock)
        self._drained = DrainedBrokers(self._observer, self._statuses, clock)
        self._sending = Sending(
            admin, self.rebalances, self.throttle, self._lifecycle, stores, self._observer, self._judges,
            self._log_dirs, self._turns, self._drained, clock,
        )  # fmt: skip
        self._awaited, self._heirs = dict[str, str](), frozenset[str]()  # heirs of runs that are still open, by uid
        self._recorder = RunRecorder(info.cluster_id, clock, parts.history, INLINE_STEPS if parts.turns else MAX_STEPS)

    async def next_round(self) -> float:
        """Prepare what is stored; observe, decide, act and report what runs; then close what has ended.

        Returns how many seconds may pass before the next round.
        """
        self._turns.left = False
        rebalances = sorted(self.rebalances.values(), key=lambda r: r.desired.age_key)
        info = await self._prepare_all(rebalances)
        await self._look_at_permissions(rebalances)
        await self._rest_ends.end(rebalances, info)
        await self._drained.note(rebalances)
        await self._plan(rebalances)
        running = [r for r in rebalances if takes_part(r, self._clock.monotonic())]
        members = ClusterState(self._cluster_id, info.brokers, version=info.version)
        sent, cluster, acting = False, members, list[Rebalance]()
        if running:
            self._judges.begin_round()
            vitals, look = await self._observer.vitals(info), await self._observe(running, info)
            running = await self._judge_beforehand(running, look)
            postponed = set(deleted_meanwhile(running))
            running = await self._replan_for_edits(running)
            running, rebalances = ([r for r in some if r not in postponed] for some in (running, rebalances))
            running = acting = await self._decide(running, look, vitals)
            sent, cluster = await self._sending.act(running, look, info), look.observation.cluster
            running = await self._report_running(running, cluster)
        else:
            await self._keep_throttle(info)
        await self.throttle.restore_finished(info, self.rebalances.values())
        await self._close(running, info, cluster, acting)
        self._recorder.keep_ended()
        reported = {r for r in running if r.record.loaded_run is not None}
        resting = [r for r in rebalances if r not in reported]
        for r, in_time in self._statuses.in_turn("report", resting):
            await asyncio.sleep(0)  # each status is a slice of its own
            if is_served(r, self.rebalances):
                await self._statuses.report(r, members, in_time=in_time)
        await self.throttle.report(self._observer.sizes.traffic)
        pause = requeue_after(
            self.rebalances.values(),
            self._clock.monotonic(),
            sent=sent,
            sent_at=self._sending.sent_at,
            ledger_empty=self.throttle.ledger_empty,
            limits_others=self.throttle.limits_others,
        )
        return min(pause, BUSY_SECONDS) if self._turns.left or self.throttle.unreported else pause

    @property
    def missing_permissions(self) -> tuple[MissingPermission, ...]:
        """What the client is not permitted to do, as of the last answer."""
        return self._permissions.missing

    async def _each(
        self, rebalances: Iterable[Rebalance], stage: str, work: Callable[[Rebalance], Awaitable[None]]
    ) -> list[Rebalance]:
        """Run ``work`` for each; returns those without a failure, which is reported only on its own resource."""
        done = []
        async for rebalance in with_pauses(rebalances):
            async with self._lifecycle.problems_of(rebalance, stage):
                await work(rebalance)
                done.append(rebalance)
        return done

    async def _prepare_all(self, rebalances: list[Rebalance]) -> ClusterInfo:
        """Finalizers, records and the throttle ledger are in place before anything is planned or sent.

        The records of a resource are read even if its overrides are invalid, because other plans wait for them.
        """

        async def look_at(rebalance: Rebalance) -> None:
            rebalance.look_at(self._clock.now())

        self._lifecycle.begin_round()
        await self._each(rebalances, "look at overrides", look_at)
        await self._each(self._turns.after_others("end", rebalances, may_end_later), "begin the round", self._prepare)
        if waiting := waiting_for_heirs(rebalances):
            await choose_successors(self._lifecycle, rebalances)
            await self._each(waiting, "let go", self._prepare)
        await self._write_objects(rebalances)
        info = self.info = await self._admin.describe_cluster()
        self._lifecycle.live, self._lifecycle.partitions = info.brokers, self._observer.known()
        for rebalance in rebalances:
            self._lifecycle.note_live(rebalance)
        await self.throttle.load(rebalances, info)
        self._observer.members.note(info)
        return info

    async def _write_objects(self, rebalances: list[Rebalance]) -> None:
        """Add finalizers, mark what has ended. Nothing is planned for a resource before its turn has come."""
        stage = "write the object"
        to_write = [rebalance for rebalance in rebalances if self._lifecycle.has_write(rebalance)]
        uids = {rebalance.uid for rebalance in to_write}
        for rebalance in rebalances:
            if rebalance.uid not in uids:
                self._lifecycle.nothing_to_do(rebalance, stage)
        await self._each(self._turns.of(stage, to_write), stage, self._lifecycle.write)

    async def _prepare(self, rebalance: Rebalance, *, connected: bool = True) -> None:
        """Load what is stored, and put the plan aside if the spec asks for another one."""
        opened = rebalance.record.open_run
        await self._lifecycle.prepare(rebalance, connected=connected)
        if opened is not None and rebalance.record.open_run is None:
            await self._lifecycle.hand_over(rebalance, self.rebalances)
        rebalance.assessment = rebalance.assessment.about(rebalance.record.loaded_run)
        if not rebalance.memory.blocked(self._clock.monotonic()):
            rebalance.assessment = replace(rebalance.assessment, replanning=replanning_for_spec(rebalance))
        await self._judges.turn(rebalance, direction_of(rebalance))
        rebalance.assessment = self._judges.in_direction(rebalance, direction_of(rebalance))

    async def _look_at_permissions(self, rebalances: list[Rebalance]) -> None:
        """The affected resources report missing permissions, even if this round fails because of them."""
        working = {r async for r in with_pauses(rebalances) if r.record.loaded_run is not None or wants_plan(r)}
        await self._permissions.look({topic for r in working for topic in r.record.topics})
        missing = self._permissions.missing
        async for rebalance in with_pauses(rebalances):
            found = concerning(missing, rebalance.record.topics) if rebalance in working else ()
            rebalance.assessment = replace(rebalance.assessment, missing_permissions=found)
        self.throttle.missing_permissions = concerning(missing, {tp.topic for tp in self.throttle.foreign})

    async def _plan(self, rebalances: list[Rebalance]) -> None:
        """Open the runs of finished plans, assign the places in the queue, and begin the plans whose turn it is."""

        async def open_planned(rebalance: Rebalance) -> None:
            before = rebalance.record.loaded_run
            replanning = await self._runs.open_planned_run(rebalance, self.rebalances)
            rebalance.assessment = replace(rebalance.assessment, replanning=replanning)
            if rebalance.record.loaded_run is not before:
                rebalance.assessment = rebalance.assessment.about(rebalance.record.loaded_run)
                rebalance.assessment = replace(rebalance.assessment, replanning=replanning_for_spec(rebalance))
            await self._runs.load_expected_rates(rebalance)

        async def begin(rebalance: Rebalance) -> None:
            queue = await self._runs.start_planning(rebalance, rebalances, terminating.get(rebalance.uid, ()))
            rebalance.assessment = replace(rebalance.assessment, queue=queue)

        await self._each(rebalances, "open the run", open_planned)
        await self._each(opened_of(self.rebalances), "record the place", self._lifecycle.record_place)
        terminating, self._awaited, self._heirs = dict[str, list[RebalanceView]](), {}, frozenset()
        if any(r.record.loaded_run is not None or wants_plan(r) for r in rebalances):
            everything = await self._observer.everything()
            await self._selected.read(filter(may_plan, rebalances), everything)
            former = await choose_successors(self._lifecycle, rebalances)
            # Without a pause between these: after an edit, what is not selected may want a plan.
            selected, now = self._selected.of([r for r in rebalances if may_plan(r)], everything), self._clock.now()
            places = await places_of(rebalances, selected, now, self._clock.monotonic())
            self._heirs = frozenset(former)
            async for rebalance in with_pauses(rebalances):
                queue = places.get(rebalance.uid, rebalance.assessment.queue)
                queue = behind(queue, former[rebalance.uid]) if rebalance.uid in former else queue
                rebalance.assessment = replace(rebalance.assessment, queue=queue)
            terminating = await takeovers(rebalances, selected)
            self._awaited = awaited_plans(rebalances, terminating, now)
        await self._each(rebalances, "begin to plan", begin)

    async def _observe(self, running: list[Rebalance], info: ClusterInfo) -> Look:
        """Read what moves, and everything if a run has just begun, or before it is recorded that it lets others go."""
        if any(not r.assessment.statuses.judged or r.memory.resting_since is not None for r in running):
            self._observer.expire()
        runs = [r.record.loaded_run for r in running if r.record.loaded_run is not None]
        self._observer.members.note_away({broker for run in runs for broker in run.known}, info)
        to_read = {tp for r in running for tp in partitions_to_read(r.assessment)}
        planned = runs[0].partitions if len(runs) == 1 else frozenset().union(*(run.partitions for run in runs))
        look = await self._observer.look(planned, to_read, info, self.throttle.foreign)
        return replace(look, log_dirs=await self._log_dirs.read(running))

    async def _judge_beforehand(self, running: list[Rebalance], look: Look) -> list[Rebalance]:
        many = moves_many_in_dirs(running)

        async def judge(rebalance: Rebalance) -> None:
            rebalance.assessment = await self._judges.judged_beforehand(rebalance, direction_of(rebalance), look)
            if many:
                rebalance.assessment = await self._judges.log_dirs_judged(rebalance, look.log_dirs, many=True)

        return await self._each(running, "judge", judge)

    async def _replan_for_edits(self, running: list[Rebalance]) -> list[Rebalance]:
        """Follow the edits that arrived during this round, so that frequent edits hold up nothing."""

        async def replan(rebalance: Rebalance) -> None:
            edited = rebalance.memory.prepared != rebalance.desired.change_key
            if edited and not rebalance.desired.deleting:
                rebalance.assessment = replace(rebalance.assessment, replanning=replanning_for_spec(rebalance))

        return await self._each(running, "follow the edit", replan)

    async def _decide(self, running: list[Rebalance], look: Look, vitals: Vitals) -> list[Rebalance]:
        """Where each rebalance goes, whether it may start new steps, and the status of its partitions."""
        now, opened = self._clock.now(), opened_of(self.rebalances)
        unhealthy, partitions = vitals.partitions, look.observation.cluster.partitions
        moving = frozenset(tp for r in opened for tp in exempt_from_health_gate(r, unhealthy, partitions))
        block_inputs = BlockInputs(
            now, vitals, moving, self.throttle.throttles, self._awaited, self.windows, stopped=self.stopped
        )
        many_in_dirs = moves_many_in_dirs(running)

        async def decide(rebalance: Rebalance) -> None:
            await asyncio.sleep(0)  # each is a slice of its own
            await self._judges.turn(rebalance, direction_of(rebalance))
            rebalance.assessment = self._judges.in_direction(rebalance, direction_of(rebalance))
            if not many_in_dirs:  # they were judged beforehand
                rebalance.assessment = with_log_dirs_judged(rebalance, look.log_dirs)
            teardown = teardown_of(rebalance, look.observation, self._observer.sizes.replica_bytes, now)
            rebalance.assessment = replace(rebalance.assessment, teardown=teardown)
            rebalance.assessment = replace(rebalance.assessment, step_block=step_block_for(rebalance, block_inputs))
            await self._sending.judge(rebalance, look)

        return await self._each(running, "decide", decide)

    async def _keep_throttle(self, info: ClusterInfo) -> None:
        """While no rebalance runs, of what other tools reassign, and of runs that wait after a problem: these go on."""
        opened = opened_of(self.rebalances)
        applied = await self.throttle.keep(opened, info, self._observer.read_sizes)
        for rebalance in opened:
            rebalance.assessment = replace(rebalance.assessment, throttle=applied.findings[rebalance.uid])

    async def _report_running(self, running: list[Rebalance], cluster: ClusterState) -> list[Rebalance]:
        """Write the status of what runs, before it may be closed: a closed run has no numbers any more.

        What waits for its turn keeps the numbers that were built now.
        """
        now, sizes, durations = self._clock.monotonic(), self._observer.sizes, self._recorder.durations()

        async def measure(rebalance: Rebalance) -> None:
            await asyncio.sleep(0)  # what was done before, what has moved and the status are slices of their own
            about = rebalance, cluster, sizes.replica_bytes, sizes.produce_rates, now, durations
            advance = await computed(advance_of, *about, many=len(rebalance.assessment.statuses.few) >= MANY)
            rebalance.assessment = replace(rebalance.assessment, advance=advance)
            await asyncio.sleep(0)
            self._recorder.follow(rebalance, cluster, sizes.replica_bytes)
            if not rebalance.assessment.finished:
                rebalance.assessment = replace(rebalance.assessment, drain=None)  # it has to be proved again

        measured = await self._each(running, "measure", measure)
        for rebalance, in_time in self._statuses.in_turn("report what runs", measured):
            await asyncio.sleep(0)
            await self._statuses.report_judged(rebalance, cluster, in_time=in_time)
        return measured

    async def _close(
        self, running: list[Rebalance], info: ClusterInfo, cluster: ClusterState, acting: list[Rebalance]
    ) -> None:
        """End the runs that have arrived, once the throttle on what they moved is restored.

        ``acting``: the rebalances that may have sent something in this round.
        """

        async def close(rebalance: Rebalance) -> None:
            if rebalance.desired.deleted_since(rebalance.memory.prepared) or rebalance.waits_at_rest:
                return  # the statuses belong to an outdated request or to a rest: the next round judges again
            if not (finished := rebalance.assessment.finished):
                self._closing.wait_anew(rebalance)
            if restored := self.throttle.restored(rebalance, info):
                await self._lifecycle.record_rest(rebalance, cluster.partitions)
            if self._drained.may_be_filled_late(rebalance, self.rebalances.values()):
                return
            if rebalance.uid in self._heirs and rebalance.record.moves:
                return  # once it has ended, it could not take over any more, and the other run would roll back
            if only_kept_copies_in_flight(rebalance) or (finished and restored and not moved_since(rebalance, acting)):
                assessment = await self._closing.finish(rebalance, info)
                rebalance.assessment = assessment.about(rebalance.record.loaded_run)
                await self._lifecycle.hand_over(rebalance, self.rebalances)
                await self._drained.report(rebalance, cluster)

        self._closing.begin_round(running)
        await self._each(self._turns.of("close", running), "close", close)

    def forget(self) -> None:
        """Free the readings after the last round, also those in a reference cycle (``model.bulk.kept_for_long``)."""
        self._observer.forget()
        self._selected.end()
        self._closing.begin_round(())

    async def report_problem(self, error: RebalanceError) -> None:
        """Say on every resource why nothing is known of this round."""
        try:
            await self.throttle.report({}, error)
        except Exception:
            log.exception("cluster %s: status of its throttle resources not written", self._cluster_id)
        concerned = [rebalance for rebalance in self.rebalances.values() if not ended_unedited(rebalance)]
        for rebalance, in_time in self._statuses.in_turn("report a problem", concerned):
            await asyncio.sleep(0)  # each status is a slice of its own
            try:
                if in_time and rebalance.desired.deleting and error.reason in NO_CONNECTION_REASONS:
                    await self._prepare(rebalance, connected=False)
                await self._statuses.report(rebalance, ClusterState(self._cluster_id, {}), error, in_time=in_time)
            except Exception:
                # The engine goes on even if a status cannot be built.
                log.exception("%s: status not written", rebalance.name)
