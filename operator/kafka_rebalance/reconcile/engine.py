"""One task per Kafka cluster: observe, decide, act, report; again and again while something is in flight.

The order within a tick is the safety argument: finalizer seen on the object, plan and origins stored, run opened,
throttle ledger written, throttle set, and only then a partition is submitted. Killed between any two of these and
started again, the next tick finds the same resource, the same stores and the same Kafka, and goes on from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from kafka_rebalance.api.conditions import NO_CONNECTION_REASONS
from kafka_rebalance.api.throttle_resource import ClusterLimits
from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Refused, Transient
from kafka_rebalance.execution.health_gate import Vitals
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation
from kafka_rebalance.execution.schedule import Ceilings, Orders, RebalanceShare, schedule
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaAdmin
from kafka_rebalance.model.topology import ClusterState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.closing import Closing
from kafka_rebalance.reconcile.act.cordoning import Cordons
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle, heed_spec
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.act.submitting import at_once, copies, submit
from kafka_rebalance.reconcile.decide.judging import judge_again, moving, notice_drift, still_meant
from kafka_rebalance.reconcile.decide.queue_places import ahead_of, give_places
from kafka_rebalance.reconcile.decide.requeue import IDLE_SECONDS, UNSETTLED_SECONDS, pause_after
from kafka_rebalance.reconcile.decide.step_blocks import Surroundings, hold_on
from kafka_rebalance.reconcile.decide.teardown import barrier_to_rollback, name_heirs
from kafka_rebalance.reconcile.observe.observer import Look, Observer
from kafka_rebalance.reconcile.report.progress_tracking import expected_seconds, follow, stalled
from kafka_rebalance.reconcile.runs.opening import LoadModels, Runs
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState
from kafka_rebalance.reconcile.state.records import Stores
from kafka_rebalance.reconcile.throttle.cluster_throttle import ClusterThrottle
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper

log = logging.getLogger(__name__)

_FAILURES_BEFORE_SAYING_SO = 3


class ClusterEngine:
    """Carries out all rebalances of one Kafka cluster."""

    def __init__(
        self,
        info: ClusterInfo,
        admin: KafkaAdmin,
        resources: Resources,
        stores: Stores,
        keeper: ThrottleKeeper,
        load_models: LoadModels,
        clock: Clock,
    ) -> None:
        self.cluster_id = info.cluster_id
        self._endpoints = _endpoints(info)
        self.works: dict[str, RebalanceState] = {}
        self._admin = admin
        self._resources = resources
        self._stores = stores
        self._throttle = ClusterThrottle(info.cluster_id, admin, keeper, resources, clock)
        self._clock = clock
        self._lifecycle = Lifecycle(resources, stores, clock)
        self._runs = Runs(admin, self._lifecycle, resources, stores, load_models, clock, self.wake)
        self._closing = Closing(admin, self._lifecycle, clock)
        self._observer = Observer(admin, clock)
        self._cordons = Cordons(admin, stores)
        self._woken = asyncio.Event()
        self._failures = 0
        self._sent = False
        self._round_began: float | None = None

    @property
    def round_seconds(self) -> float | None:
        """For how long the present round has been going on; None between two rounds."""
        return None if self._round_began is None else self._clock.monotonic() - self._round_began

    @property
    def throttles(self) -> dict[str, KafkaReassignmentThrottle]:
        """The throttle resources of the cluster, by uid."""
        return self._throttle.throttles

    def see_throttles(self, throttles: Mapping[str, KafkaReassignmentThrottle]) -> None:
        """Take in throttle resources of this cluster, by uid."""
        self._throttle.see(throttles)

    def check_same_cluster(self, info: ClusterInfo) -> None:
        """Refused("ClusterIdCollision") where the same id is told at entirely other endpoints: a copied disk, say."""
        if info.brokers and not self._endpoints & _endpoints(info):
            here, there = (", ".join(sorted(ends)[:3]) for ends in (self._endpoints, _endpoints(info)))
            message = f"cluster id {self.cluster_id} is told by brokers at {there}, but known from {here}"
            raise Refused(
                Reason.CLUSTER_ID_COLLISION, f"{message}; use the same listener, or give one of them another id"
            )

    def wake(self) -> None:
        """Something changed: do not wait for the next tick."""
        self._woken.set()

    async def run(self, named: Callable[[], bool]) -> None:
        """Tick until cancelled; or until nobody names the cluster (``named``) and nothing of ours is left there.

        Who calls it goes on without a turn of the loop after ``named`` has said no: nobody can come in between.
        """
        try:
            while named() or not await self._nothing_left() or named():
                self._woken.clear()
                self._round_began = self._clock.monotonic()
                pause = await self.tick()
                self._round_began = None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._woken.wait()
        finally:
            for work in self.works.values():
                if work.planning is not None:
                    work.planning.cancel()

    async def close(self) -> None:
        """Let go of the client."""
        await self._admin.close()

    async def _nothing_left(self) -> bool:
        """Whether no throttle of ours and no open run is on record; False where that cannot be read."""
        try:
            if not await self._throttle.nothing_left():
                return False
            runs = await self._stores.runs.list_all()
        except RebalanceError as error:
            log.warning("cluster %s: what is left there is not known: %s", self.cluster_id, error.message)
            return False
        except Exception:
            log.exception("cluster %s: unexpected error: what is left there is not known", self.cluster_id)
            return False
        return not any(run.open and run.cluster_id == self.cluster_id for run in runs)

    async def tick(self) -> float:
        """One round. Returns how many seconds may pass before the next."""
        try:
            pause = await self._tick()
        except RebalanceError as error:
            self._judge_all_anew()
            self._failures += 1
            log.warning("cluster %s: %s: %s", self.cluster_id, error.reason, error.message)
            if not isinstance(error, Transient) or self._failures >= _FAILURES_BEFORE_SAYING_SO:
                await self._say_problem(error)
            return error.retry_after if isinstance(error, Transient) else IDLE_SECONDS
        except Exception:
            # A defect of ours in one round must not end the engine of a cluster; the next round starts from scratch.
            self._judge_all_anew()
            log.exception("cluster %s: unexpected error in this round", self.cluster_id)
            await self._say_problem(Transient(Reason.INTERNAL_ERROR, "unexpected error, see the operator's log"))
            return UNSETTLED_SECONDS
        self._failures = 0
        return pause

    def _judge_all_anew(self) -> None:
        for work in self.works.values():
            work.judged_in = None

    async def _tick(self) -> float:
        self._sent = False
        works = sorted(self.works.values(), key=lambda work: work.age_key)
        for work in works:
            await self._lifecycle.prepare(work)
        info = await self._admin.describe_cluster()
        await self._throttle.load(works, info)
        self._endpoints |= _endpoints(info)
        self._observer.note_members(info)
        await self._open(works, info)
        running = [work for work in works if work.open is not None and not work.blocked(self._clock.monotonic())]
        cluster = ClusterState(self.cluster_id, info.brokers)
        if running:
            for work in works:
                if work not in running:
                    work.judged_in = None  # what changes meanwhile is not told to it
            vitals = await self._observer.vitals(info)
            look = await self._look(running, info)
            cluster = look.observation.cluster
            put_off = self._put_off(running)
            works = [work for work in works if work.uid not in put_off]
            running = [work for work in running if work.uid not in put_off]
            self._judge(running, look, vitals)
            for work in running:
                async with self._lifecycle.problems_of(work, "cordon"):
                    await self._cordons.keep(work, info.brokers)
            await self._carry_out(running, look)
        else:
            await self._throttle.look((), cluster)
            if self._throttle.foreign:
                await self._observer.read_sizes(self._throttle.foreign, info)
            await self._throttle.extend((), cluster, {})
        await self._throttle.shrink(info)
        await self._finish(running, info)
        for work in works:
            if work not in running or work.open is None:
                await self._report(work, ClusterState(self.cluster_id, info.brokers))
        await self._throttle.report(self._observer.traffic)
        return pause_after(
            self.works.values(),
            self._clock.monotonic(),
            sent=self._sent,
            settled=self._throttle.ledger_empty,
            limits_others=self._throttle.limits_others,
        )

    async def _open(self, works: list[RebalanceState], info: ClusterInfo) -> None:
        """Take over the plans that are made, and have those made whose turn it is."""
        for work in works:
            await self._runs.collect(work)
            await self._runs.recall(work, info.cluster_id)
        if any(work.open is not None or work.wants_plan for work in works):
            everything = await self._observer.everything()
            name_heirs(works, everything)
            give_places(works, everything, self._clock)
        for work in works:
            await self._runs.start(work, info, works)

    async def _look(self, running: list[RebalanceState], info: ClusterInfo) -> Look:
        if any(not work.verdicts for work in running):
            self._observer.expire()
        self._observer.note_away({b for work in running for e in work.errands for b in e.known}, info)
        errands = {errand.tp for work in running for errand in work.errands}
        moving_now = {tp for work in running for tp in moving(work)}
        return await self._observer.look(errands, moving_now, info, self._throttle.foreign)

    def _put_off(self, running: list[RebalanceState]) -> set[str]:
        """The uids of those that are being deleted since the round began: their surroundings may go too, say.

        That is looked at in the next round, which begins at once. Any other edit is heeded here, so that edits which
        keep coming hold nothing up.
        """
        for work in running:
            if work.deleted_since:
                work.judged_in = None
            elif work.prepared != work.asked and not work.rebalance.metadata.deleting:
                heed_spec(work)
        return {work.uid for work in running if work.deleted_since}

    def _judge(self, running: list[RebalanceState], look: Look, vitals: Vitals) -> None:
        """Where each rebalance goes, whether it may start something new, and how each of its partitions stands."""
        now = self._clock.now()
        opened = [work for work in self.works.values() if work.open is not None]
        ours = {errand.tp for work in opened for errand in work.errands}
        ours |= {tp for work in opened for tp in work.skipped}
        around = Surroundings(now, vitals, ours, self.throttles)
        for work in running:
            work.barrier = barrier_to_rollback(work, look.observation.cluster, now)
            heading = work.heading or Direction.REVERT
            if work.direction is not heading:
                work.direction, work.pace = heading, None
            work.hold = hold_on(work, around)
            self._judge_again(work, look.observation, look.changed)
            flying = {tp for tp, verdict in work.verdicts.items() if verdict.phase is MovePhase.IN_FLIGHT}
            work.since = {tp: work.since.get(tp, now) for tp in flying}
            notice_drift(work)

    def _judge_again(self, work: RebalanceState, seen: Observation, changed: Collection[TopicPartition]) -> None:
        restarting = self._observer.away(work.rebalance.spec.execution.broker_settle_seconds)
        ahead = ahead_of(work, self.works.values())
        judge_again(work, seen, work.direction or Direction.FORWARD, restarting, changed, ahead)

    async def _carry_out(self, running: list[RebalanceState], look: Look) -> None:
        """Choose, send, report.

        What needs no copy (nulls, drops, new orders, elections) goes out at once, while what was just read still holds;
        copies go out when their throttle is in place.
        """
        seen = look.observation
        orders = await self._confirmed(running, self._schedule(running, seen.cluster), look)
        for work in running:
            await self._submit(work, at_once(orders[work.uid], seen.cluster), seen.cluster)
        opened = [work for work in self.works.values() if work.open is not None]
        await self._throttle.look(opened, seen.cluster)
        submitted = {work.uid: orders[work.uid].alters for work in running}
        uncovered = await self._throttle.extend(opened, seen.cluster, submitted)
        for work in running:
            await self._submit(work, copies(orders[work.uid], seen.cluster, uncovered), seen.cluster)
            now = self._clock.monotonic()
            if work.open is not None:
                work.eta_seconds = expected_seconds(work.open.plan, work.rates)
            follow(work, seen.cluster, self._observer.replica_bytes, self._observer.produce_rates, now)
            if not work.deleted_since:  # judged before: how much goes back, and what holds that, is not known yet
                await self._report(work, seen.cluster, stalled=stalled(work, now))

    async def _confirmed(
        self, running: list[RebalanceState], orders: dict[str, Orders], look: Look
    ) -> dict[str, Orders]:
        """Look again at what was chosen on an older reading, and send only what is still meant."""
        stale = {work.uid: set(_named(orders[work.uid])) - look.fresh for work in running}
        again = await self._observer.refresh({tp for tps in stale.values() for tp in tps})
        for work in running:
            before = {tp: work.verdicts[tp] for tp in stale[work.uid]}
            self._judge_again(work, look.observation, again)
            meant = still_meant(orders[work.uid], before, work)
            if any(_named(meant)) and not await self._lifecycle.record_start(work):
                meant = Orders()
            orders[work.uid], work.sent = meant, frozenset(_named(meant))
        return orders

    def _schedule(self, running: list[RebalanceState], cluster: ClusterState) -> dict[str, Orders]:
        """The one place where all caps hold: each rebalance's own, and the throttle resource's over all of them."""
        ruling = self._throttle.ruling
        limits = ruling.spec.limits if ruling else ClusterLimits()
        ceilings = Ceilings(
            limits.parallel_partition_count, limits.parallel_leader_movements, limits.max_concurrent_replica_movements
        )
        first = sorted(running, key=lambda w: (not w.going_back, -w.rebalance.spec.priority, w.age_key))
        shares = [RebalanceShare(w.verdicts, {e.tp: e.size_bytes for e in w.errands}, w.limits) for w in first]
        chosen = schedule(shares, cluster, ceilings, self._observer.free_bytes, self._observer.replica_bytes)
        for work, orders in zip(first, chosen, strict=True):
            work.no_room = orders.no_room
        return {work.uid: orders for work, orders in zip(first, chosen, strict=True)}

    async def _finish(self, running: list[RebalanceState], info: ClusterInfo) -> None:
        """End the runs that have arrived, once the throttle on what they moved reads as it did before."""
        for work in running:
            if work.rests_but_for_kept or (work.finished and self._throttle.restored(work, info)):
                await self._closing.finish(work, info)

    async def _report(self, work: RebalanceState, cluster: ClusterState, *, stalled: str | None = None) -> None:
        """Tell the API server. That it does not listen holds up neither this work nor the others."""
        sizes = self._observer.replica_bytes
        try:
            exists = await self._resources.report(work, cluster, sizes, stalled=stalled)
        except RebalanceError as error:
            log.warning("%s: status not written: %s", work.name, error.message)
            return
        if not exists:
            log.info("%s is gone", work.name)
            self.works.pop(work.uid, None)

    async def _submit(self, work: RebalanceState, orders: Orders, cluster: ClusterState) -> None:
        self._sent = await submit(self._admin, work.name, orders, cluster) or self._sent

    async def _say_problem(self, error: RebalanceError) -> None:
        try:
            await self._throttle.report({}, error)
        except Exception:
            log.exception("cluster %s: status of its throttle resources not written", self.cluster_id)
        for work in list(self.works.values()):
            if work.run is not None and not work.run.open and not work.rebalance.metadata.deleting:
                continue  # finished: what happens to the cluster now is not its concern
            before, work.problem = work.problem, work.problem or error
            try:
                if work.rebalance.metadata.deleting and error.reason in NO_CONNECTION_REASONS:
                    await self._lifecycle.prepare(work, connected=False)
                await self._report(work, ClusterState(self.cluster_id, {}))
            except Exception:
                # The engine outlives even a status that cannot be built.
                log.exception("%s: status not written", work.name)
            finally:
                work.problem = before


def _named(orders: Orders) -> Iterable[TopicPartition]:
    return (*orders.cancels, *orders.alters, *orders.elections)


def _endpoints(info: ClusterInfo) -> frozenset[str]:
    return frozenset(f"{broker.host}:{broker.port}" for broker in info.brokers.values())
