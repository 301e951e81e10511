"""The throttle of one Kafka cluster in each round of its engine: who claims what, and what its resources are told.

KafkaReassignmentThrottle holds for all that is reassigned, whoever started it (KIP-542): what others have started is
found by listing, throttled within a round and let go when it is done.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from kafka_rebalance.api.conditions import NO_CONNECTION_REASONS
from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, KafkaReassignmentThrottle
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_RATE, LEADER_RATE, Claim, Mode, Side
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaReader
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.decide.judging import moving
from kafka_rebalance.reconcile.decide.throttle_claims import (
    claim_name,
    claims_of,
    rates_of,
    ruling_throttle,
    throttle_claim_name,
)
from kafka_rebalance.reconcile.observe.foreign_reassignments import ForeignReassignments
from kafka_rebalance.reconcile.report.throttle_report import NOTHING_IN_FORCE, BrokerThrottleRow, SideRow, ThrottleView
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper
from kafka_rebalance.reconcile.throttle.throttle_lifecycle import ThrottleLifecycle, counting

log = logging.getLogger(__name__)

GHOST_SECONDS = 60.0
"""How often to ask whether resources without our finalizer are still there: a watch can miss their end."""


class ClusterThrottle:
    """All claims on one cluster, and the keeper that puts them in place."""

    def __init__(
        self, cluster_id: str, admin: KafkaReader, keeper: ThrottleKeeper, resources: Resources, clock: Clock
    ) -> None:
        self._cluster_id = cluster_id
        self._keeper = keeper
        self._resources = resources
        self._lifecycle = ThrottleLifecycle(resources, clock)
        self._clock = clock
        self._ghosts_looked_for_at = clock.monotonic()
        self._gone: set[str] = set()
        self.throttles: dict[str, KafkaReassignmentThrottle] = {}
        """The throttle resources of the cluster, by uid."""
        self.problem: Permanent | None = None
        """Why nothing can be throttled: the ledger is missing or damaged."""
        self._seen_any = False
        self._claims: dict[str, Claim] = {}
        self._others = ForeignReassignments(admin, clock.monotonic)

    @property
    def ruling(self) -> KafkaReassignmentThrottle | None:
        """The resource whose rates and limits hold: the oldest of which a deletion would wait for us."""
        return ruling_throttle(counting(self.throttles.values()))

    def see(self, throttles: Mapping[str, KafkaReassignmentThrottle]) -> None:
        """Take in these resources, except those that are known to be gone."""
        self.throttles.update({uid: throttle for uid, throttle in throttles.items() if uid not in self._gone})

    @property
    def ledger_empty(self) -> bool:
        """Whether nothing of ours is left on any broker or topic."""
        return self._keeper.ledger_empty

    async def nothing_left(self) -> bool:
        """Whether the ledger, read if it has not been, is empty. Raises what reading it raises."""
        await self._keeper.load()
        return self.ledger_empty

    @property
    def limits_others(self) -> bool:
        """Whether a resource holds for what others reassign."""
        return self.ruling is not None and self.ruling.spec.sets_rates

    @property
    def foreign(self) -> Mapping[TopicPartition, PartitionState]:
        """What others are reassigning under our throttle, as of the last look."""
        return self._others.foreign

    async def load(self, works: Iterable[RebalanceState], info: ClusterInfo) -> None:
        """Read the ledger once, have one before a run is opened, and our finalizer on the resource that rules."""
        self._seen_any = self._seen_any or bool(self.throttles)
        self.problem = None
        try:
            await self._keeper.load()
            await self._establish(list(works), info)
        except Permanent as error:
            # Nulls and repairs go on; what copies waits until somebody has looked after the ledger.
            log.warning("cluster %s: %s: %s", self._cluster_id, error.reason, error.message)
            self.problem = error
        else:
            await self._lifecycle.hold(self.throttles)

    async def _establish(self, works: list[RebalanceState], info: ClusterInfo) -> None:
        """Runs, and resources with our finalizer, are not without a ledger: a missing one was deleted."""
        open_runs = [work for work in works if work.run is not None and work.run.open]
        rating = [throttle for throttle in self.throttles.values() if throttle.spec.sets_rates]
        under_way = bool(open_runs) or any(throttle.metadata.held for throttle in rating)
        if under_way or rating or any(work.wants_plan for work in works):
            await self._keeper.establish(
                {*info.brokers, *(broker for work in open_runs if work.open for broker in work.open.brokers)},
                {topic for work in open_runs for topic in work.topics},
                under_way=under_way,
            )

    async def look(self, works: Iterable[RebalanceState], cluster: ClusterState) -> None:
        """Find what Kafka is reassigning and no rebalance speaks for: others', of resources not seen yet, or hidden."""
        if self.problem is not None or (self._idle(cluster.brokers) and not self.limits_others):
            self._others.forget()
            return
        in_flight = {tp for work in works for tp in moving(work) if work.open is not None and not work.finished}
        spoken_for = {tp for tp in in_flight if tp in cluster.partitions and cluster.partitions[tp].in_flight}
        await self._others.look(spoken_for, limited=self.limits_others)

    async def extend(
        self,
        works: Sequence[RebalanceState],
        cluster: ClusterState,
        submitted: Mapping[str, Mapping[TopicPartition, Replicas]],
    ) -> frozenset[tuple[str, str]] | None:
        """Put in place what everybody claims; returns the replicas of which it is not. ``submitted``: by uid.

        None: nothing may be copied now, for the ledger cannot be trusted. Who is blocked by a problem claims too: what
        is in flight for it goes on.
        """
        ruling = self.ruling
        for work in works:
            work.rates, work.rate_source = rates_of(work, ruling)
            work.throttle_problem = self.problem
        if self.problem is not None:
            return None
        foreign = self._others.foreign
        self._claims = claims_of(works, ruling, cluster, submitted, foreign)
        mode = Mode(ruling.spec.when_replication_throttled) if ruling is not None else Mode.ADDITIVE
        unclaimed = self._others.unclaimed
        uncovered = await self._keeper.extend(self._claims, cluster.brokers, mode, foreign, unclaimed)
        for work in works:
            brokers = work.open.brokers if work.open is not None else frozenset[BrokerId]()
            work.throttled_brokers = 0 if work.finished else self._keeper.brokers_in_place(brokers)
            work.bound_by = self._bound_by(work, brokers)
            work.throttle_refused = self._keeper.refusals(brokers)
            work.throttle_trouble = self._keeper.trouble or self._keeper.contested
        return uncovered

    async def shrink(self, info: ClusterInfo) -> None:
        """Take away what nobody claims any more, except from what is in flight unclaimed; then let resources go."""
        if self.problem is None and not self._idle(info.brokers):
            # Until a resource has been seen, the one that holds what others move may only not have come in yet.
            await self._keeper.shrink(info.brokers, self._others.unclaimed, let_others_go=self._seen_any)
        before = set(self.throttles)
        await self._lifecycle.let_go(self.throttles, lambda throttle: self._released(throttle, info))
        self._gone |= before - set(self.throttles)

    def _idle(self, alive: Collection[BrokerId]) -> bool:
        """Whether there is nothing to do before somebody claims something or a broker returns."""
        return self.ledger_empty or (not self._claims and self._keeper.left_for_later(alive))

    def restored(self, work: RebalanceState, info: ClusterInfo) -> bool:
        """Whether the throttle on what the rebalance moved reads as it did before, as far as others do not claim it."""
        if self.problem is not None:
            return False
        topics = {errand.tp.topic for errand in work.errands}
        brokers = {broker for errand in work.errands for broker in errand.known} & set(info.brokers)
        return self._keeper.restored(topics, brokers)

    async def report(self, traffic: Mapping[tuple[BrokerId, Side], int], problem: RebalanceError | None = None) -> None:
        """Tell each resource what became of it. ``problem``: why nothing is known of this round."""
        if problem is not None:
            await self._lifecycle.let_go(self.throttles, connected=problem.reason not in NO_CONNECTION_REASONS)
        ruling, view = self.ruling, self._view(traffic)
        look_for_ghosts = self._clock.monotonic() - self._ghosts_looked_for_at >= GHOST_SECONDS
        if look_for_ghosts:
            self._ghosts_looked_for_at = self._clock.monotonic()
        for uid, throttle in list(self.throttles.items()):
            why = problem or self.problem or self._lifecycle.problem_of(throttle)
            try:
                exists = await self._resources.report_throttle(throttle, self._cluster_id, ruling, view, why)
                if exists and look_for_ghosts and not throttle.metadata.held:
                    where = (throttle.metadata.namespace, throttle.metadata.name, uid, REASSIGNMENT_THROTTLES)
                    exists = await self._resources.exists(*where)
            except RebalanceError as error:
                log.warning("throttle %s: status not written: %s", throttle.metadata.name, error.message)
            else:
                if not exists:
                    self.throttles.pop(uid, None)
                    self._gone.add(uid)

    def _released(self, throttle: KafkaReassignmentThrottle, info: ClusterInfo) -> bool:
        """Whether the resource claims nothing any more, and what it alone had claimed is given back by live brokers."""
        if self.problem is not None:
            return False
        return throttle_claim_name(throttle) not in self._claims and self._keeper.given_back(info.brokers)

    def _view(self, traffic: Mapping[tuple[BrokerId, Side], int]) -> ThrottleView:
        """What all claims came to. ``traffic``: bytes per second that each broker sends and fetches for copies."""
        if self.problem is not None:
            return NOTHING_IN_FORCE
        brokers = sorted(frozenset[BrokerId]().union(*(claim.brokers for claim in self._claims.values())))
        return ThrottleView(
            rows=tuple(row for b in brokers if (row := self._row(b, traffic)) is not None),
            replicas=self._keeper.replicas if self._claims else 0,
            foreign=len(self.foreign),
            reverts=self._keeper.reverts,
            refused=self._keeper.refusals(),
            contested=self._keeper.contested,
            trouble=self._keeper.trouble or self._others.unreadable,
            ceilings=self._keeper.ceilings,
        )

    def _row(self, broker: BrokerId, traffic: Mapping[tuple[BrokerId, Side], int]) -> BrokerThrottleRow | None:
        found = self._keeper.in_place(broker)
        if not found:
            return None
        leader, follower = (
            SideRow(*found[name], traffic.get((broker, side))) if name in found else None
            for name, side in ((LEADER_RATE, Side.LEADER), (FOLLOWER_RATE, Side.FOLLOWER))
        )
        return BrokerThrottleRow(broker, leader, follower)

    def _bound_by(self, work: RebalanceState, brokers: Iterable[BrokerId]) -> str:
        """Whose lower rate binds on some of the brokers; empty where those in the status of the rebalance do."""
        own = {claim_name(work), f"the default of {claim_name(work)}"}
        binding = {claim for broker in brokers for _, claim in self._keeper.in_place(broker).values()}
        return min((claim for claim in binding - own if claim not in work.rate_source.split(", ")), default="")
