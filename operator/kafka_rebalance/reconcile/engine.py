"""One task per Kafka cluster: observe, decide, act, report; again and again while something is in flight.

The order within a tick is the safety argument: finalizer seen on the object, plan and origins stored, run opened,
throttle ledger written, throttle set, and only then a partition is submitted. Killed between any two of these and
started again, the next tick finds the same resource, the same stores and the same Kafka, and goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from kafka_rebalance.api.conditions import Reason
from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.execution.decide import Direction, Kind, Observation, judge
from kafka_rebalance.execution.progress import measure, start_pace
from kafka_rebalance.execution.schedule import Orders, choose
from kafka_rebalance.execution.throttle import Claim, moving_brokers
from kafka_rebalance.kafka.ports import AlterCode, ClusterInfo, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId, ClusterState, Replicas, TopicPartition
from kafka_rebalance.reconcile.claims import claim_of, rates_of, ruling_throttle
from kafka_rebalance.reconcile.lifecycle import Clock, Lifecycle
from kafka_rebalance.reconcile.observing import Observer
from kafka_rebalance.reconcile.opening import LoadModels, Runs, expected_seconds
from kafka_rebalance.reconcile.records import Stores
from kafka_rebalance.reconcile.report import waiting_summary
from kafka_rebalance.reconcile.resources import Resources
from kafka_rebalance.reconcile.throttling import ThrottleKeeper
from kafka_rebalance.reconcile.work import Work
from kafka_rebalance.units import format_duration

log = logging.getLogger(__name__)

BUSY_SECONDS = 0.5
SENT_SECONDS = 0.1
"""After a round that sent something: what needs no copy is done already, and small copies soon are."""
UNSETTLED_SECONDS = 2.0
IDLE_SECONDS = 30.0
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
        self._observer = Observer(admin, clock)
        self._woken = asyncio.Event()
        self._failures = 0
        self._sent = False

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
            return error.retry_after if isinstance(error, Transient) else IDLE_SECONDS
        except Exception:
            # A defect of ours in one round must not end the engine of a cluster; the next round starts from scratch.
            log.exception("cluster %s: unexpected error in this round", self.cluster_id)
            await self._say_problem(Transient(Reason.INTERNAL_ERROR, "unexpected error, see the operator's log"))
            return UNSETTLED_SECONDS
        self._failures = 0
        return pause

    async def _tick(self) -> float:
        self._sent = False
        works = sorted(self.works.values(), key=lambda work: work.age_key)
        for work in works:
            await self._lifecycle.prepare(work)
        await self._keeper.load()
        info = await self._admin.describe_cluster()
        for work in works:
            await self._runs.start(work, info, works)
        running = [work for work in works if work.open is not None and not work.blocked(self._clock.monotonic())]
        claims: dict[str, Claim] = {}
        seen = Observation(ClusterState(self.cluster_id, info.brokers))
        if running:
            seen = await self._observer.look([errand for work in running for errand in work.errands], info)
            claims = await self._carry_out(running, seen)
        if not self._keeper.settled:
            await self._keeper.shrink(claims, info.brokers, await self._in_flight_elsewhere(running, seen))
        await self._finish(running, claims, info)
        for work in works:
            if work not in running or work.open is None:
                await self._report(work, ClusterState(self.cluster_id, info.brokers))
        await self._report_throttles()
        return self._pause()

    def _pause(self) -> float:
        """Seconds until there may be something to do without anybody waking us."""
        now = self._clock.monotonic()
        if any(work.open is not None and not work.blocked(now) for work in self.works.values()):
            return SENT_SECONDS if self._sent else BUSY_SECONDS
        longest = IDLE_SECONDS if self._keeper.settled else UNSETTLED_SECONDS
        waiting = [w.retry_at for w in self.works.values() if w.problem is not None or w.queued_behind is not None]
        return min(longest, max(BUSY_SECONDS, min(waiting, default=float("inf")) - now))

    async def _carry_out(self, running: list[Work], seen: Observation) -> dict[str, Claim]:
        """Decide, send, report. Returns the claims on the throttle that are in force.

        What needs no copy (nulls, drops, new orders, elections) goes out at once, while what was just read still holds;
        copies go out when their throttle is in place.
        """
        frozen = any(throttle.spec.freeze for throttle in self.throttles.values())
        orders: dict[str, Orders] = {}
        for work in running:
            self._judge(work, seen, paused=_hold_back(work, frozen=frozen) is not None)
            orders[work.uid] = self._choose(work, seen.cluster)
        for work in running:
            await self._submit(work, _at_once(orders[work.uid], seen.cluster), seen.cluster)
        claims = self._claims(running, seen.cluster, orders)
        covered = await self._keeper.extend(claims, seen.cluster.brokers)
        for work in running:
            claim = claims.get(work.uid)
            work.throttled_brokers = self._keeper.brokers_in_place(claim) if claim else 0
            work.throttle_trouble = self._keeper.trouble
            await self._submit(work, _copies(orders[work.uid], seen.cluster, claim, covered), seen.cluster)
            pause = _hold_back(work, frozen=frozen)
            self._follow(work, seen.cluster, paused=pause is not None)
            await self._report(work, seen.cluster, pause=pause, stalled=self._stalled(work))
        return claims

    async def _finish(self, running: list[Work], claims: Mapping[str, Claim], info: ClusterInfo) -> None:
        """End the runs that have arrived, once the throttle on what they moved reads as it did before."""
        for work in running:
            topics = {errand.tp.topic for errand in work.errands}
            brokers = {broker for errand in work.errands for broker in errand.known} & set(info.brokers)
            if work.finished and self._keeper.restored(claims, topics, brokers):
                await self._runs.finish(work, info, list(self.works.values()))

    async def _in_flight_elsewhere(self, running: list[Work], seen: Observation) -> dict[TopicPartition, Replicas]:
        """What Kafka is reassigning although no claim speaks for it: of resources not seen yet, or not in metadata."""
        spoken_for = {errand.tp for work in running for errand in work.errands} & set(seen.cluster.partitions)
        listed = await self._admin.list_reassignments()
        return {tp: row.replicas for tp, row in listed.items() if tp not in spoken_for}

    async def _report(
        self, work: Work, cluster: ClusterState, *, pause: str | None = None, stalled: str | None = None
    ) -> None:
        """Tell the API server. That it does not listen holds up neither this work nor the others."""
        sizes = self._observer.replica_bytes
        try:
            exists = await self._resources.report(work, cluster, sizes, pause=pause, stalled=stalled)
        except RebalanceError as error:
            log.warning("%s: status not written: %s", work.name, error.message)
            return
        if not exists:
            log.info("%s is gone", work.name)
            self.works.pop(work.uid, None)

    async def _report_throttles(self) -> None:
        ruling = ruling_throttle(self.throttles.values())
        for throttle in list(self.throttles.values()):
            try:
                await self._resources.report_throttle(throttle, self.cluster_id, ruling)
            except RebalanceError as error:
                log.warning("throttle %s: status not written: %s", throttle.metadata.name, error.message)

    def _judge(self, work: Work, seen: Observation, *, paused: bool) -> None:
        direction = work.direction or Direction.FORWARD
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
        self._sent = self._sent or bool(orders.cancels or orders.alters or orders.elections)
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
        work.progress = measure(work.errands, work.verdicts, cluster, self._observer.replica_bytes, direction)
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
            if work.run is not None and not work.run.open and not work.rebalance.metadata.deleting:
                continue  # finished: what happens to the cluster now is not its concern
            before, work.problem = work.problem, work.problem or error
            try:
                await self._report(work, ClusterState(self.cluster_id, {}))
            except Exception:
                # The engine outlives even a status that cannot be built.
                log.exception("%s: status not written", work.name)
            finally:
                work.problem = before


def _hold_back(work: Work, *, frozen: bool) -> str | None:
    """Why no new step may start; None: they may. A freeze and a suspend hold back rollbacks too, but never a null."""
    if frozen:
        return Reason.FROZEN
    return Reason.SUSPENDED if work.rebalance.spec.execution.suspend else None


def _at_once(orders: Orders, cluster: ClusterState) -> Orders:
    """The part that copies nothing and is done inside the call."""
    alters = {tp: to for tp, to in orders.alters.items() if set(to) <= set(cluster.partitions[tp].replicas)}
    return Orders(orders.cancels, alters, orders.elections)


def _copies(orders: Orders, cluster: ClusterState, claim: Claim | None, covered: frozenset[str]) -> Orders:
    """The part that copies, without partitions whose throttle is not in place yet: they wait for the next tick."""
    alters = {tp: to for tp, to in orders.alters.items() if not set(to) <= set(cluster.partitions[tp].replicas)}
    if claim is None:
        return Orders(alters=alters)
    needed = {t for side in (claim.leader_entries, claim.follower_entries) for t, items in side.items() if items}
    return Orders(alters={tp: to for tp, to in alters.items() if tp.topic in covered or tp.topic not in needed})


def _reordered(orders: Orders, cluster: ClusterState) -> list[TopicPartition]:
    """Partitions that were just given a new first replica which is in sync: a call without copies, done at once."""
    found = []
    for tp, replicas in orders.alters.items():
        state = cluster.partitions[tp]
        at_once = set(replicas) <= set(state.replicas)
        if at_once and replicas[0] != state.leader and state.leader in replicas and replicas[0] in state.isr:
            found.append(tp)
    return found
