"""The throttle of one Kafka cluster in each round of its engine: collects the claims, reports what is in force.

KafkaReassignmentThrottle applies to every reassignment of the cluster (KIP-542): those of other tools are found by
listing, throttled within a round, and released when they end.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from structlog.contextvars import bound_contextvars

from kafka_rebalance.api.conditions import NO_CONNECTION_REASONS
from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import Permanent, RebalanceError, without_traceback
from kafka_rebalance.execution.list_budget import ListBudget
from kafka_rebalance.execution.reassignment_throttle import (
    FOLLOWER_RATE,
    LEADER_RATE,
    REPLICATION_RATES,
    Claim,
    Mode,
    Side,
)
from kafka_rebalance.kafka.least_permissions import MissingPermission
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaReader
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.decide.judging import partitions_to_read
from kafka_rebalance.reconcile.decide.queue_places import may_plan
from kafka_rebalance.reconcile.decide.throttle_claims import (
    Claims,
    claim_name,
    claims_of,
    log_dir_claim_name,
    rates_of,
    throttle_asked_for,
    throttle_claim_name,
)
from kafka_rebalance.reconcile.observe.foreign_reassignments import ForeignReassignments
from kafka_rebalance.reconcile.observe.observer import Listed
from kafka_rebalance.reconcile.report.engine_samples import ThrottleFigures
from kafka_rebalance.reconcile.report.throttle_report import NOTHING_IN_FORCE, BrokerThrottleRow, SideRow, ThrottleView
from kafka_rebalance.reconcile.state.assessment import ThrottleFindings
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.round_thread import computed
from kafka_rebalance.reconcile.throttle.known_throttles import KnownThrottles
from kafka_rebalance.reconcile.throttle.left_cordons import cordons_of
from kafka_rebalance.reconcile.throttle.slices import many_move
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper
from kafka_rebalance.reconcile.throttle.throttle_lifecycle import ThrottleLifecycle
from kafka_rebalance.reconcile.throttle.throttle_statuses import ThrottleStatuses

log = logging.getLogger(__name__)

ReadSizes = Callable[[Mapping[TopicPartition, PartitionState], ClusterInfo], Awaitable[None]]
_NAMED = 3
_AWAY = NO_CONNECTION_REASONS | {Reason.OTHER_CLUSTER}
"""Problems after which nothing can be restored: the cluster does not answer, or was replaced by another one."""


@dataclass(frozen=True, slots=True)
class ThrottleRound:
    """What applying the claims came to. ``findings``: of each rebalance, by uid.

    ``uncovered``: replicas not yet throttled, as topic and ``partition:broker``; None: nothing may be copied now,
    because the ledger cannot be trusted. ``left_out``: partitions for which a list of throttled replicas has no room.
    """

    uncovered: frozenset[tuple[str, str]] | None
    left_out: frozenset[TopicPartition] = frozenset()
    findings: Mapping[str, ThrottleFindings] = field(default_factory=dict)


class ClusterThrottle:
    """All claims on one cluster, and the keeper that applies them."""

    def __init__(
        self,
        cluster_id: str,
        admin: KafkaReader,
        keeper: ThrottleKeeper,
        resources: Resources,
        clock: Clock,
        all_placed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._cluster_id = cluster_id
        self._admin = admin
        self._keeper = keeper
        self._resources = resources
        self._lifecycle = ThrottleLifecycle(resources, clock)
        self._clock = clock
        self.throttles = KnownThrottles(clock)
        """The throttle resources of the cluster, by uid."""
        self.problem: Permanent | None = None
        """Why nothing can be throttled: the ledger is missing or damaged."""
        self.missing_permissions: tuple[MissingPermission, ...] = ()
        """Missing permissions on the cluster, and on the topics that others reassign."""
        self._statuses = ThrottleStatuses(resources, cluster_id, clock)
        self._all_placed = all_placed
        self._seen_any = False
        self._made = Claims()
        """What was claimed last."""
        self._others = ForeignReassignments(admin, clock.monotonic)

    @property
    def _claims(self) -> Mapping[str, Claim]:
        """The claims in force, by name."""
        return self._made.by_name

    @property
    def ruling(self) -> KafkaReassignmentThrottle | None:
        """The resource whose rates and limits are in force: the oldest that has our finalizer or sets no rate."""
        return self.throttles.ruling

    def see(self, throttles: Mapping[str, KafkaReassignmentThrottle]) -> None:
        """Take in these resources, except those that are known to be gone."""
        self.throttles.see(throttles)

    @property
    def figures(self) -> ThrottleFigures:
        """For the metrics."""
        problem = self.problem.reason if self.problem is not None else ""
        keeper = self._keeper
        return ThrottleFigures(keeper.ledger_counts, keeper.reverts, bool(keeper.contested), len(self.foreign), problem)

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
        """Whether a resource sets rates for the reassignments of other tools."""
        return self.ruling is not None and self.ruling.spec.sets_rates

    @property
    def list_budget(self) -> ListBudget:
        """What is in the lists of throttled replicas."""
        return self._keeper.list_budget

    @property
    def unreported(self) -> bool:
        """Whether the last round had no time left for some statuses of throttle resources."""
        return bool(self._statuses.left)

    @property
    def foreign(self) -> Mapping[TopicPartition, PartitionState]:
        """Reassignments of other tools under our throttle, as last observed."""
        return self._others.foreign

    async def load(self, rebalances: Collection[Rebalance], info: ClusterInfo) -> None:
        """Read the ledger once, store an empty one before the first run, add our finalizer to the ruling resource.

        Overrides begin and end here.
        """
        self._seen_any = self._seen_any or bool(self.throttles) or self._all_placed()
        self.problem = None
        try:
            await self._keeper.load()
            await self._establish(rebalances, info)
        except Permanent as error:
            # Cancels and repairs go on; copies wait until somebody restores the ledger.
            log.warning("cluster %s: %s: %s", self._cluster_id, error.reason, error.message)
            self.problem = without_traceback(error)
        else:
            await self._lifecycle.add_finalizer(self.throttles)
        await self.throttles.follow_overrides()

    def refuse_start(self) -> None:
        """Raise why no run may start, if the ledger is not usable.

        If a run started before its ledger is stored, the ledger would count as deleted later.
        """
        if self.problem is not None:
            raise Permanent(self.problem.reason, f"no run starts without the throttle ledger: {self.problem.message}")

    def may_send(self, rebalance: Rebalance) -> bool:
        """Whether the run has started, or may start now."""
        run = rebalance.record.run
        return self.problem is None or (run is not None and run.started_at is not None)

    async def _establish(self, rebalances: Collection[Rebalance], info: ClusterInfo) -> None:
        """A missing one was deleted if a started run is open, or a resource that may have claimed has our finalizer."""
        opened = [rebalance.record for rebalance in rebalances if rebalance.record.open_run is not None]
        started = [record for record in opened if record.run is not None and record.run.started_at is not None]
        rating = self.throttles.rating
        under_way = bool(started) or any(t.metadata.held and self._may_have_claimed(t) for t in rating)
        if under_way or opened or rating or any(map(may_plan, rebalances)):
            await self._keeper.establish(
                {
                    *info.brokers,
                    *(broker for record in started if record.loaded_run for broker in record.loaded_run.brokers),
                },
                {topic for record in started for topic in record.topics},
                under_way=under_way,
            )

    async def look(self, rebalances: Iterable[Rebalance], cluster: ClusterState, listed: Listed | None = None) -> None:
        """Find reassignments of other tools, of resources not seen yet, or not readable. ``listed``: in this round."""
        if self.problem is not None or (self._idle(cluster.brokers) and not self.limits_others):
            self._others.forget()
            return
        copying = [
            r.assessment for r in rebalances if r.record.loaded_run is not None and not r.assessment.statuses.finished
        ]
        in_flight = {tp for assessment in copying for tp in partitions_to_read(assessment)}
        spoken_for = {tp for tp in in_flight if tp in cluster.partitions and cluster.partitions[tp].in_flight}
        await self._others.look(spoken_for, listed, limited=self.limits_others)

    async def keep(self, opened: Sequence[Rebalance], info: ClusterInfo, read_sizes: ReadSizes) -> ThrottleRound:
        """Apply the claims of the opened runs while none of them is served: what they have in flight goes on."""
        topics = {tp.topic for rebalance in opened for tp in partitions_to_read(rebalance.assessment)}
        partitions = await self._admin.describe_partitions(topics) if topics else {}
        cluster = ClusterState(self._cluster_id, info.brokers, partitions)
        await self.look(opened, cluster)
        if self.foreign:
            await read_sizes(self.foreign, info)
        return await self.apply_claims(opened, cluster, {})

    async def apply_claims(
        self,
        rebalances: Sequence[Rebalance],
        cluster: ClusterState,
        submitted: Mapping[str, Mapping[TopicPartition, Replicas]],
    ) -> ThrottleRound:
        """Apply all claims. ``submitted``: by uid.

        Rebalances with a problem claim too: their partitions in flight go on.
        """
        ruling = self.ruling
        found: dict[str, ThrottleFindings] = {}
        for rebalance in rebalances:
            rates, source = rates_of(throttle_asked_for(rebalance), ruling, rebalance.desired.throttle_setting)
            before = rebalance.assessment.throttle
            found[rebalance.uid] = replace(before, rates=rates, source=source, problem=self.problem)
        if self.problem is not None:
            return ThrottleRound(None, findings=found)
        foreign = self._others.foreign
        about = (rebalances, ruling, cluster, submitted, foreign, self._made)
        claims = self._made = await computed(claims_of, *about, many=many_move(rebalances, submitted, foreign))
        mode = Mode(ruling.spec.when_replication_throttled) if ruling is not None else Mode.ADDITIVE
        unaccounted = self._others.unaccounted
        with bound_contextvars(resource=", ".join(sorted(self._claims))):
            uncovered = await self._keeper.apply_claims(self._claims, cluster.brokers, mode, foreign, unaccounted)
        for rebalance in rebalances:
            wanted, finished = found[rebalance.uid], rebalance.assessment.finished
            run = rebalance.record.loaded_run
            brokers = (run.brokers if run is not None else frozenset()) | rebalance.assessment.log_dirs.to_throttle
            found[rebalance.uid] = replace(
                wanted,
                brokers=0 if finished else self._keeper.brokers_in_place(brokers),
                brokers_pending=0 if finished else self._keeper.brokers_pending(brokers, cluster.brokers),
                bound_by=self._bound_by(rebalance.desired, wanted.source, brokers),
                relieved=claims.moving[rebalance.uid].relieved if rebalance.uid in claims.moving else 0,
                left_out=self._left_out(rebalance, cluster),
                refused=self._keeper.refusals(brokers),
                not_allowed="" if wanted.rates.unlimited else self._keeper.not_allowed(brokers),
                trouble=self._keeper.trouble_with(rebalance.record.topics, brokers) or self._keeper.contested,
            )
        return ThrottleRound(uncovered, self._keeper.left_out.partitions, found)

    async def restore_finished(self, info: ClusterInfo, rebalances: Iterable[Rebalance] = ()) -> None:
        """Restore what no claim needs any more, except for partitions in flight that no claim names; release resources.

        The cordons of the open runs of ``rebalances`` stay.
        """
        if self.problem is None and not self._idle(info.brokers):
            # Before any resource was seen, the one that claims foreign reassignments may not have arrived yet.
            # While one claims them, a foreign reassignment without a claim is one that could not be read.
            unlimited = self._seen_any and not self.limits_others
            busy = await self._log_dirs_busy(info)
            unaccounted = self._others.unaccounted
            await self._keeper.restore_finished(
                info.brokers, unaccounted, release_foreign=unlimited, log_dirs_busy=busy
            )
            await self._keeper.remove_cordons(info.brokers, *cordons_of(rebalances))
        # One that has left meanwhile, as it may not use its connection, is not gone.
        ended = await self._lifecycle.remove_finalizers(self.throttles, lambda throttle: self._released(throttle, info))
        for uid in ended:
            self.throttles.remove_gone(uid)

    async def take_cordons(self, brokers: Collection[BrokerId]) -> None:
        """Record cordons of a run that is about to end, to be removed when the brokers are back."""
        if brokers:
            await self._keeper.take_cordons(brokers)

    @property
    def left_cordons(self) -> frozenset[BrokerId]:
        """The brokers with cordons of runs that have ended."""
        return self._keeper.left_cordons

    def log_dirs_throttled(self, brokers: Iterable[BrokerId]) -> frozenset[BrokerId]:
        """Those of the brokers that may copy between their log dirs now."""
        return frozenset() if self.problem is not None else self._keeper.log_dirs_throttled(brokers)

    async def _log_dirs_busy(self, info: ClusterInfo) -> frozenset[BrokerId]:
        """The brokers with an unclaimed rate between log dirs that still copy there, or did not answer.

        Such copies were abandoned, or belong to a resource that has not arrived since the start of the operator.
        """
        asked = self._keeper.unclaimed_log_dir_rates.intersection(info.brokers)
        found = await self._admin.log_dirs(asked) if asked else {}
        return frozenset(b for b in asked if b not in found or any(log_dir.future_bytes for log_dir in found[b]))

    def _idle(self, alive: Collection[BrokerId]) -> bool:
        """Whether there is nothing to do before a new claim or the return of a broker."""
        return self.ledger_empty or (not self._claims and self._keeper.waits_for_absent_brokers(alive))

    def restored(self, rebalance: Rebalance, info: ClusterInfo) -> bool:
        """Whether the configs of the rebalance's topics and brokers are restored, except what others claim."""
        if self.problem is not None:
            return False
        moves = rebalance.record.moves
        topics = {move.tp.topic for move in moves}
        brokers = {broker for move in moves for broker in move.known} & set(info.brokers)
        return self._keeper.restored(topics, brokers)

    async def report(self, traffic: Mapping[tuple[BrokerId, Side], int], problem: RebalanceError | None = None) -> None:
        """Write the status of each resource. ``problem``: why this round found out nothing."""
        if problem is not None:
            await self._lifecycle.remove_finalizers(self.throttles, connected=problem.reason not in _AWAY)
        ruling, view = self.ruling, self._view(traffic)
        why = {uid: problem or self.problem or self._lifecycle.problem_of(t) for uid, t in self.throttles.items()}
        await self._statuses.report(self.throttles, ruling, view, why)

    def _released(self, throttle: KafkaReassignmentThrottle, info: ClusterInfo) -> bool:
        """Whether the resource claims nothing any more, and live brokers have restored what it claimed."""
        if self.problem is not None:
            return not self._may_have_claimed(throttle)
        return throttle_claim_name(throttle) not in self._claims and self._keeper.all_restored(info.brokers)

    def _may_have_claimed(self, throttle: KafkaReassignmentThrottle) -> bool:
        """Whether it may have set anything here, by its last status: its connection may lead here only since then."""
        return throttle.status.cluster_id in {None, "", self._cluster_id}

    def _view(self, traffic: Mapping[tuple[BrokerId, Side], int]) -> ThrottleView:
        """The combined claims as applied. ``traffic``: bytes per second of copies, by broker and side."""
        if self.problem is not None:
            return replace(NOTHING_IN_FORCE, missing=self.missing_permissions)
        brokers = sorted(frozenset[BrokerId]().union(*(claim.brokers for claim in self._claims.values())))
        return ThrottleView(
            rows=tuple(row for b in brokers if (row := self._row(b, traffic)) is not None),
            replicas=self._keeper.replicas if self._claims else 0,
            foreign=len(self.foreign),
            reverts=self._keeper.reverts,
            refused=self._keeper.refusals(),
            not_allowed=self._keeper.not_allowed(),
            contested=self._keeper.contested,
            unlisted=self._unlisted(),
            trouble=self._keeper.trouble or self._others.unreadable,
            brakes=self._keeper.brakes,
            missing=self.missing_permissions,
        )

    def _left_out(self, rebalance: Rebalance, cluster: ClusterState) -> int:
        """The number of its partitions in flight that are not throttled at both ends, because a list is full."""
        run, states = rebalance.record.loaded_run, cluster.partitions
        mine = run.move_of if run is not None else {}
        return sum(tp in mine and tp in states and states[tp].in_flight for tp in self._keeper.left_out.partitions)

    def _unlisted(self) -> str:
        """The reassignments of other tools that are not throttled, because a list is full; empty: all are."""
        found = [
            f"{len(left)} {what}, of topic {', '.join(sorted({tp.topic for tp in left})[:_NAMED])}"
            for left, what in (
                (self._keeper.left_out.wholly & self.foreign.keys(), "at full speed"),
                (self._keeper.left_out.leader_side & self.foreign.keys(), "only where they arrive"),
            )
            if left
        ]
        return f"partitions that other tools move: {'; '.join(found)}" if found else ""

    def _row(self, broker: BrokerId, traffic: Mapping[tuple[BrokerId, Side], int]) -> BrokerThrottleRow | None:
        found = self._keeper.in_place(broker)
        if not found.keys() & set(REPLICATION_RATES):
            return None
        leader, follower = (
            SideRow(*found[name], traffic.get((broker, side))) if name in found else None
            for name, side in ((LEADER_RATE, Side.LEADER), (FOLLOWER_RATE, Side.FOLLOWER))
        )
        return BrokerThrottleRow(broker, leader, follower)

    def _bound_by(self, desired: Desired, source: str, brokers: Iterable[BrokerId]) -> str:
        """The claim whose lower rate binds on some of the brokers; empty where those in the rebalance's status do."""
        names = (claim_name(desired), log_dir_claim_name(desired))
        own = {*names, *(f"the default of {name}" for name in names)}
        binding = {claim for broker in brokers for _, claim in self._keeper.in_place(broker).values()}
        return min((claim for claim in binding - own if claim not in source.split(", ")), default="")
