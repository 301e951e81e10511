"""Opening a run and ending it well: queue, plan, origins, run record; success, and proof that a broker is empty.

Touches Kafka only to read.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping

from kafka_rebalance.api.v1alpha1 import KafkaRebalanceSpec, planning_hash
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.decide import Direction
from kafka_rebalance.execution.progress import seconds_at_throttle
from kafka_rebalance.execution.rollback import ORIGINAL_BROKER_GONE, PREFERRED_LEADER_GONE
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaAdmin
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.run import Origin, Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reconcile.lifecycle import Clock, Lifecycle
from kafka_rebalance.reconcile.planning import live_sizes, make_plan, refuse_stale, select, with_earlier_errands
from kafka_rebalance.reconcile.records import OpenRun, Stores, open_run
from kafka_rebalance.reconcile.resources import Resources
from kafka_rebalance.reconcile.work import Work

log = logging.getLogger(__name__)

_QUEUE_SECONDS = 2.0

LoadModels = Callable[[str], Awaitable[LoadModel | None]]
"""Cluster id -> the pipeline's load model, None where there is none that is fresh."""


class Runs:
    """Opens and finishes the runs of one cluster."""

    def __init__(
        self,
        admin: KafkaAdmin,
        lifecycle: Lifecycle,
        resources: Resources,
        stores: Stores,
        load_models: LoadModels,
        clock: Clock,
    ) -> None:
        self._admin = admin
        self._lifecycle = lifecycle
        self._resources = resources
        self._stores = stores
        self._load_models = load_models
        self._clock = clock

    async def start(self, work: Work, info: ClusterInfo, works: Collection[Work]) -> None:
        """Plan and open a run, unless one is open, has succeeded for this spec, or another rebalance goes first."""
        if not work.held or work.rebalance.metadata.deleting or work.open is not None:
            return
        if not work.run_loaded or self._clock.monotonic() < work.retry_at:
            return
        run = work.run
        if run is not None and run.planning_hash == work.planning_hash and run.outcome is RunOutcome.SUCCEEDED:
            return  # one-shot: drift after success moves nothing
        async with self._lifecycle.problems_of(work, "start"):
            await self._plan_unless_queued(work, info, works)

    async def finish(self, work: Work, info: ClusterInfo, works: Collection[Work]) -> None:
        """Every partition has arrived or is left alone, and the throttle has been taken away: close the run."""
        if work.open is None:
            return
        async with self._lifecycle.problems_of(work, "finish"):
            if work.superseding:
                await self._plan_unless_queued(work, info, works)
            elif work.direction is not Direction.FORWARD:
                await self._lifecycle.close(work, _outcome(work))
                await self._lifecycle.let_go(work)
            else:
                await self._prove_drained(work)
                await self._lifecycle.close(work, RunOutcome.SUCCEEDED)

    async def _plan_unless_queued(self, work: Work, info: ClusterInfo, works: Collection[Work]) -> None:
        spec = work.rebalance.spec  # taken once: an edit that comes in while we plan supersedes this plan
        partitions = await self._admin.describe_partitions()
        selected = select(spec, partitions)
        work.queued_behind = await self._holder(work, set(selected), works, info.cluster_id)
        if work.queued_behind is None:
            await self._plan(work, spec, info, partitions, selected)
        elif work.open is not None:
            raise Transient("Queued", f"waits for {work.queued_behind}, which moves some of the same partitions", 2.0)
        else:
            work.retry_at = self._clock.monotonic() + _QUEUE_SECONDS

    async def _resource_exists(self, run: Run) -> bool:
        return await self._resources.exists(run.namespace, run.name, run.uid)

    async def _holder(
        self, work: Work, wanted: set[TopicPartition], works: Collection[Work], cluster_id: str
    ) -> str | None:
        """Who moves some of the same partitions.

        An open run that is not loaded, or whose resource we have not seen yet (after a start), holds everything.
        """
        for other in works:
            if other is work:
                continue
            unknown = not other.run_loaded or (other.open is None and other.run is not None and other.run.open)
            if unknown or (other.open is not None and other.holds(wanted)):
                return other.name
        seen = {other.uid for other in works}
        for run in await self._stores.runs.list_all():
            unseen = run.open and run.cluster_id == cluster_id and run.uid not in seen
            if unseen and await self._resource_exists(run):
                return f"{run.namespace}/{run.name}"
        return None

    async def _plan(
        self,
        work: Work,
        spec: KafkaRebalanceSpec,
        info: ClusterInfo,
        partitions: Mapping[TopicPartition, PartitionState],
        selected: Mapping[TopicPartition, PartitionState],
    ) -> None:
        """Plan from what the cluster is now; store plan and origins, then open the run, in this order."""
        before = work.run if work.run is not None and work.run.open else None
        earlier = work.errands
        refuse_stale(earlier, partitions)
        load = await self._load(info)
        made = await make_plan(spec, info, selected, load)
        plan = with_earlier_errands(made, earlier, partitions)
        run = Run(
            uid=work.uid,
            namespace=work.rebalance.metadata.namespace,
            name=work.rebalance.metadata.name,
            cluster_id=info.cluster_id,
            run_id=before.run_id if before else uuid.uuid4().hex,
            planning_hash=planning_hash(spec),
            plan_hash=plan.hash,
            opened_at=before.opened_at if before else self._clock.now(),
        )
        ref = await self._stores.plans.save(work.uid, plan.hash, info.cluster_id, plan, self._clock.now())
        origins = [Origin(p.tp, p.topic_id, p.current) for p in plan.partitions]
        stored = await self._stores.origins.append(work.uid, run.run_id, origins)
        await self._stores.runs.save(run)
        self._begin(work, open_run(run, plan, ref, stored), load)

    def _begin(self, work: Work, opened: OpenRun, load: LoadModel) -> None:
        work.close()
        work.run, work.open, work.direction = opened.run, opened, Direction.FORWARD
        work.verdicts, work.progress, work.drained = {}, None, None
        work.data_source = load.source
        log.info(
            "%s: planned %d partitions, %d replica moves (lower bound %d)",
            work.name,
            opened.plan.changed,
            opened.plan.replica_moves,
            opened.plan.lower_bound,
        )

    async def _load(self, info: ClusterInfo) -> LoadModel:
        """The pipeline's load model where there is one, else sizes read live."""
        model = await self._load_models(info.cluster_id)
        return model if model is not None else await live_sizes(self._admin, info)

    async def _prove_drained(self, work: Work) -> None:
        """Decommission: what a leaving broker still holds, over all topics, read from Kafka and not from the plan."""
        leaving = {BrokerId(b) for b in work.rebalance.spec.brokers.decommission}
        if not leaving:
            return
        holding = [await self._held_by(leaving) for _ in range(2)]
        left = holding[0] | holding[1]
        work.drained = not left
        names = ", ".join(str(b) for b in sorted(leaving))
        examples = ", ".join(str(tp) for tp in sorted(left)[:5])
        work.drain_message = (
            f"brokers {names} still hold replicas of {len(left)} partitions: {examples}"
            if left
            else f"brokers {names} held no replica at two readings"
        )

    async def _held_by(self, leaving: set[BrokerId]) -> set[TopicPartition]:
        partitions = await self._admin.describe_partitions()
        return {tp for tp, state in partitions.items() if leaving & set(state.replicas)}


def _outcome(work: Work) -> RunOutcome:
    """How a teardown that has come to its end ended."""
    if work.direction is Direction.REVERT:
        return RunOutcome.REVERTED
    partially = any(v.reason in {ORIGINAL_BROKER_GONE, PREFERRED_LEADER_GONE} for v in work.verdicts.values())
    return RunOutcome.ROLLED_BACK_PARTIALLY if partially else RunOutcome.ROLLED_BACK


def expected_seconds(plan: Plan, leader_rate: int | None, follower_rate: int | None) -> float | None:
    """How long the copies take at least: the fullest pipe at the throttle. Sources are taken to be the old leaders."""
    into: dict[BrokerId, int] = {}
    out_of: dict[BrokerId, int] = {}
    for p in plan.partitions:
        for broker in p.added:
            into[broker] = into.get(broker, 0) + p.size_bytes
            out_of[p.current[0]] = out_of.get(p.current[0], 0) + p.size_bytes
    return seconds_at_throttle(into, out_of, leader_rate, follower_rate)
