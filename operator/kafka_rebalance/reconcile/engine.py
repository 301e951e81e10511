"""One task per Kafka cluster: observe, decide, act, report; again and again while something is in flight.

The order within a tick is the safety argument: finalizer seen on the object, plan and origins stored, run opened,
throttle ledger written, throttle set, and only then a partition is submitted. Killed between any two of these and
started again, the next tick finds the same resource, the same stores and the same Kafka, and goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from kafka_rebalance.api.conditions import Reason
from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.execution.decide import Direction, Kind, Observation, Orders, choose, judge
from kafka_rebalance.execution.progress import measure, start_pace
from kafka_rebalance.execution.throttle import Claim, moving_brokers
from kafka_rebalance.kafka.ports import AlterCode, ClusterInfo, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId, ClusterState, TopicPartition
from kafka_rebalance.reconcile.claims import claim_of, rates_of, ruling_throttle
from kafka_rebalance.reconcile.lifecycle import Clock, Lifecycle
from kafka_rebalance.reconcile.opening import LoadModels, Runs, expected_seconds
from kafka_rebalance.reconcile.records import Stores
from kafka_rebalance.reconcile.report import waiting_summary
from kafka_rebalance.reconcile.resources import Resources
from kafka_rebalance.reconcile.throttling import ThrottleKeeper
from kafka_rebalance.reconcile.work import Work
from kafka_rebalance.units import format_duration

log = logging.getLogger(__name__)

BUSY_SECONDS = 0.5
UNSETTLED_SECONDS = 2.0
IDLE_SECONDS = 30.0
LOG_DIR_SECONDS = 2.0
_GONE_AFTER_READINGS = 5
_FAILURES_BEFORE_SAYING_SO = 3


class ClusterEngine:
    """Carries out all rebalances of one Kafka cluster."""

    def __init__(
        self,
        cluster_id: str,
        admin: KafkaAdmin,
        resources: Resources,
        stores: Stores,
        keeper: ThrottleKeeper,
        load_models: LoadModels,
        clock: Clock,
    ) -> None:
        self.cluster_id = cluster_id
        self.works: dict[str, Work] = {}
        self.throttles: dict[str, KafkaReassignmentThrottle] = {}
        self._admin = admin
        self._resources = resources
        self._stores = stores
        self._keeper = keeper
        self._clock = clock
        self._lifecycle = Lifecycle(resources, stores, clock)
        self._runs = Runs(admin, self._lifecycle, resources, stores, load_models, clock)
        self._unseen: set[str] | None = None
        self._woken = asyncio.Event()
        self._replica_bytes: dict[tuple[TopicPartition, BrokerId], int] = {}
        self._log_dirs_read_at = float("-inf")
        self._min_insync: dict[str, int] = {}
        self._min_insync_read_at: dict[str, float] = {}
        self._failures = 0

    def wake(self) -> None:
        """Something changed: do not wait for the next tick."""
        self._woken.set()

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            self._woken.clear()
            pause = await self.tick()
            try:
                await asyncio.wait_for(self._woken.wait(), pause)
            except TimeoutError:
                continue

    async def tick(self) -> float:
        """One round. Returns how many seconds may pass before the next."""
        try:
            pause = await self._tick()
        except RebalanceError as error:
            self._failures += 1
            log.warning("cluster %s: %s: %s", self.cluster_id, error.reason, error.message)
            if not isinstance(error, Transient) or self._failures >= _FAILURES_BEFORE_SAYING_SO:
                await self._say_problem(error)
            return min(error.retry_after if isinstance(error, Transient) else IDLE_SECONDS, UNSETTLED_SECONDS)
        except Exception:
            # A defect of ours in one round must not end the engine of a cluster; the next round starts from scratch.
            log.exception("cluster %s: unexpected error in this round", self.cluster_id)
            await self._say_problem(Transient(Reason.INTERNAL_ERROR, "unexpected error, see the operator's log"))
            return UNSETTLED_SECONDS
        self._failures = 0
        return pause

    async def _tick(self) -> float:
        works = sorted(self.works.values(), key=lambda work: work.age_key)
        for work in works:
            await self._lifecycle.prepare(work)
        await self._keeper.load()
        info = await self._admin.describe_cluster()
        for work in works:
            await self._runs.start(work, info, works)
        running = [work for work in works if work.open is not None and work.problem is None]
        claims = await self._carry_out(running, info) if running else {}
        if await self._all_accounted_for(works, running):
            await self._keeper.shrink(claims, info.brokers)
        await self._finish(running, claims, info)
        for work in works:
            if work not in running or work.open is None:
                await self._report(work, ClusterState(self.cluster_id, info.brokers))
        ruling = ruling_throttle(self.throttles.values())
        for throttle in self.throttles.values():
            await self._resources.report_throttle(throttle, self.cluster_id, ruling)
        return self._pause()

    def _pause(self) -> float:
        """Seconds until there may be something to do without anybody waking us."""
        if any(work.open is not None and work.problem is None for work in self.works.values()):
            return BUSY_SECONDS
        longest = IDLE_SECONDS if self._keeper.settled else UNSETTLED_SECONDS
        waiting = [w.retry_at for w in self.works.values() if w.problem is not None or w.queued_behind is not None]
        soonest = min(waiting, default=float("inf")) - self._clock.monotonic()
        return min(longest, max(BUSY_SECONDS, soonest))

    async def _carry_out(self, running: list[Work], info: ClusterInfo) -> dict[str, Claim]:
        """Observe, decide, throttle, submit, report. Returns the claims on the throttle that are in force."""
        cluster = await self._observe(running, info)
        frozen = any(throttle.spec.freeze for throttle in self.throttles.values())
        orders: dict[str, Orders] = {}
        for work in running:
            self._judge(work, cluster, paused=_hold_back(work, frozen=frozen) is not None)
            orders[work.uid] = self._choose(work, cluster)
        claims = self._claims(running, cluster, orders)
        covered = await self._keeper.extend(claims, info.brokers)
        for work in running:
            claim = claims.get(work.uid)
            work.throttled_brokers = len(claim.brokers & set(info.brokers)) if claim else 0
            await self._submit(work, _throttled_only(orders[work.uid], claim, covered), cluster)
            pause = _hold_back(work, frozen=frozen)
            self._follow(work, cluster, paused=pause is not None)
            await self._report(work, cluster, pause=pause, stalled=self._stalled(work))
        return claims

    async def _finish(self, running: list[Work], claims: Mapping[str, Claim], info: ClusterInfo) -> None:
        """End the runs that have arrived, once the throttle reads as it did before."""
        for work in running:
            if work.finished and self._keeper.restored(claims, info.brokers):
                await self._runs.finish(work, info)

    async def _all_accounted_for(self, works: list[Work], running: list[Work]) -> bool:
        """Whether every open run is among those whose claims are known: only then may a throttle be taken away.

        After a start the resources come in one by one, and what is in flight of those not seen yet must stay
        throttled.
        """
        if self._unseen is None:
            self._unseen = await self._runs.open_runs(self.cluster_id)
        self._unseen -= {work.uid for work in works if work.run_loaded}
        for uid in list(self._unseen):
            if not await self._runs.resource_exists(uid):
                self._unseen.discard(uid)
        loaded = all(work in running or (work.run_loaded and not (work.run and work.run.open)) for work in works)
        return loaded and not self._unseen

    async def _report(
        self, work: Work, cluster: ClusterState, *, pause: str | None = None, stalled: str | None = None
    ) -> None:
        exists = await self._resources.report(work, cluster, self._replica_bytes, pause=pause, stalled=stalled)
        if not exists:
            log.info("%s is gone", work.name)
            self.works.pop(work.uid, None)

    async def _observe(self, running: list[Work], info: ClusterInfo) -> ClusterState:
        topics = {errand.tp.topic for work in running for errand in work.errands}
        partitions = await self._admin.describe_partitions(topics)
        await self._read_min_insync(topics)
        for work in running:
            for errand in work.errands:
                if errand.tp in partitions:
                    work.absent.pop(errand.tp, None)
                else:
                    work.absent[errand.tp] += 1
        now = self._clock.monotonic()
        if now - self._log_dirs_read_at >= LOG_DIR_SECONDS and any(s.adding for s in partitions.values()):
            self._log_dirs_read_at = now
            self._replica_bytes = await self._read_replica_bytes(info)
        return ClusterState(self.cluster_id, info.brokers, partitions)

    async def _read_replica_bytes(self, info: ClusterInfo) -> dict[tuple[TopicPartition, BrokerId], int]:
        found: dict[tuple[TopicPartition, BrokerId], int] = {}
        for broker, dirs in (await self._admin.log_dirs(tuple(info.brokers))).items():
            for log_dir in dirs:
                for tp, size in log_dir.replica_bytes.items():
                    found[tp, broker] = size
        return found

    async def _read_min_insync(self, topics: Iterable[str]) -> None:
        """The effective value per topic, read again once a minute: it seldom changes, and each read costs a call."""
        now = self._clock.monotonic()
        due = [t for t in topics if now - self._min_insync_read_at.get(t, float("-inf")) > 60.0]
        if not due:
            return
        for topic, values in (await self._admin.topic_configs(due, ["min.insync.replicas"])).items():
            value = values["min.insync.replicas"].value
            self._min_insync[topic] = int(value) if value else 1
            self._min_insync_read_at[topic] = now

    def _judge(self, work: Work, cluster: ClusterState, *, paused: bool) -> None:
        direction = work.direction or Direction.FORWARD
        seen = Observation(
            cluster,
            self._min_insync,
            frozenset(tp for tp, count in work.absent.items() if count >= _GONE_AFTER_READINGS),
        )
        replicas = work.limits.parallel_replicas
        work.verdicts = {e.tp: judge(e, seen, direction, replicas, paused=paused) for e in work.errands}
        now = self._clock.now()
        flying = {tp for tp, v in work.verdicts.items() if v.kind is Kind.IN_FLIGHT}
        work.since = {tp: work.since.get(tp, now) for tp in flying}

    def _choose(self, work: Work, cluster: ClusterState) -> Orders:
        sizes = {errand.tp: errand.size_bytes for errand in work.errands}
        adding = {e.tp: len(cluster.partitions[e.tp].adding) for e in work.errands if e.tp in cluster.partitions}
        return choose(work.verdicts, sizes, work.limits, adding)

    def _claims(self, running: list[Work], cluster: ClusterState, orders: Mapping[str, Orders]) -> dict[str, Claim]:
        claims = {}
        for work in running:
            work.rates, work.rate_source = rates_of(work, self.throttles.values())
            if work.open is not None:
                work.eta_seconds = expected_seconds(work.open.plan, work.rates.leader, work.rates.follower)
            moving = frozenset[BrokerId]().union(
                *(moving_brokers((*e.origin, *e.planned_from), e.target) for e in work.errands)
            )
            if not work.finished and (work.rates.leader or work.rates.follower):
                claims[work.uid] = claim_of(work.rates, moving, work.errands, cluster, orders[work.uid].alters)
        return claims

    async def _submit(self, work: Work, orders: Orders, cluster: ClusterState) -> None:
        submitted = {**dict.fromkeys(orders.cancels), **orders.alters}
        if submitted:
            answers = await self._admin.alter_reassignments(submitted)
            self._log_answers(work, "alter", answers)
        # A leader movement is the reorder and the election after it: elect at once what has just been put in order.
        elections = [*orders.elections, *_reordered(orders, cluster)]
        if elections:
            self._log_answers(work, "elect", await self._admin.elect_preferred(elections))

    def _log_answers(self, work: Work, call: str, answers: Mapping[TopicPartition, AlterCode]) -> None:
        expected = {AlterCode.OK, AlterCode.ELECTION_NOT_NEEDED, AlterCode.NO_REASSIGNMENT_IN_PROGRESS}
        for tp, code in answers.items():
            if code not in expected:
                log.info("%s: %s of %s answered %s; looking again", work.name, call, tp, code)

    def _follow(self, work: Work, cluster: ClusterState, *, paused: bool) -> None:
        direction = work.direction or Direction.FORWARD
        work.progress = measure(work.errands, work.verdicts, cluster, self._replica_bytes, direction)
        now = self._clock.monotonic()
        if paused and not work.progress.partitions_in_flight:
            work.pace = None  # standing still is meant: the clock of the progress criterion begins anew
            return
        work.pace = work.pace.follow(work.progress, now) if work.pace else start_pace(work.progress, now)

    def _stalled(self, work: Work) -> str | None:
        """Bytes on disk, copies in sync or partitions done must advance within ``stallTimeout``; clears by itself."""
        timeout = work.rebalance.spec.execution.stall_timeout_seconds
        if work.pace is None or work.finished:
            return None
        stuck_for = self._clock.monotonic() - work.pace.advanced_at
        if stuck_for < timeout:
            return None
        waits = waiting_summary(work) or ", ".join(str(tp) for tp in list(work.since)[:5])
        return f"nothing advanced for {format_duration(stuck_for)}: {waits}"

    async def _say_problem(self, error: RebalanceError) -> None:
        for work in list(self.works.values()):
            if (
                work.open is None
                and work.run is not None
                and not work.run.open
                and not work.rebalance.metadata.deleting
            ):
                continue  # finished: what happens to the cluster now is not its concern
            before, work.problem = work.problem, work.problem or error
            try:
                await self._report(work, ClusterState(self.cluster_id, {}))
            except RebalanceError as failed:
                log.warning("%s: status not written: %s", work.name, failed.message)
            work.problem = before


def _hold_back(work: Work, *, frozen: bool) -> str | None:
    """Why no new step may start; None: they may. A freeze and a suspend hold back rollbacks too, but never a null."""
    if frozen:
        return Reason.FROZEN
    return Reason.SUSPENDED if work.rebalance.spec.execution.suspend else None


def _throttled_only(orders: Orders, claim: Claim | None, covered: frozenset[str]) -> Orders:
    """Without the partitions whose throttle is not in place yet: they wait for the next tick."""
    if claim is None:
        return orders
    needed = {t for side in (claim.leader_entries, claim.follower_entries) for t, items in side.items() if items}
    alters = {tp: replicas for tp, replicas in orders.alters.items() if tp.topic in covered or tp.topic not in needed}
    return Orders(orders.cancels, alters, orders.elections)


def _reordered(orders: Orders, cluster: ClusterState) -> list[TopicPartition]:
    """Partitions that were just given a new first replica which is in sync: a call without copies, done at once."""
    found = []
    for tp, replicas in orders.alters.items():
        state = cluster.partitions[tp]
        at_once = set(replicas) <= set(state.replicas)
        if at_once and replicas[0] != state.leader and state.leader in replicas and replicas[0] in state.isr:
            found.append(tp)
    return found
