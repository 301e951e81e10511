"""Opening a run: queue, plan, origins, run record. How it ends well is in ``reconcile.act.closing``.

Touches Kafka only to read.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Collection, Container, Iterable, Mapping
from dataclasses import replace

from kafka_rebalance.api.v1alpha1 import KafkaRebalanceSpec, planning_hash
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.execution.partition_status import Direction, PartitionMove
from kafka_rebalance.execution.queue_order import Place
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaReader
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.decide.budget_used import spent_by
from kafka_rebalance.reconcile.decide.disk_capacity import refuse_overfull
from kafka_rebalance.reconcile.decide.superseding import as_if_cancelled, copies_of, gone_on_with
from kafka_rebalance.reconcile.report.progress_tracking import expected_rates
from kafka_rebalance.reconcile.runs.assignment_lists import AssignmentLists, lists_for, read_assignment
from kafka_rebalance.reconcile.runs.live_planning import (
    PlanInputs,
    known_loads,
    make_plan,
    refuse_stale,
    refuse_unknown_sizes,
    with_earlier_errands,
)
from kafka_rebalance.reconcile.state.rebalance_state import KeptCopies, Planned, RebalanceState
from kafka_rebalance.reconcile.state.records import Stores, open_run
from kafka_rebalance.reconcile.state.selection import select

log = logging.getLogger(__name__)

_QUEUE_SECONDS = 2.0
_MIN_INSYNC = "min.insync.replicas"

LoadModels = Callable[[str], Awaitable[LoadModel | None]]
"""Cluster id -> the pipeline's load model, None where there is none that is fresh."""


class Runs:
    """Opens the runs of one cluster. Plans are made beside the ticks: other rebalances go on meanwhile."""

    def __init__(
        self,
        admin: KafkaReader,
        lifecycle: Lifecycle,
        resources: Resources,
        stores: Stores,
        load_models: LoadModels,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._admin = admin
        self._lifecycle = lifecycle
        self._resources = resources
        self._stores = stores
        self._load_models = load_models
        self._clock = clock
        self._wake = wake

    async def start(self, work: RebalanceState, info: ClusterInfo, works: Collection[RebalanceState]) -> None:
        """Begin to plan where a plan is wanted and the queue allows it."""
        if work.unseen:
            work.place = Place(runs=False, behind=work.unseen, position=1)
        due = self._clock.monotonic() >= work.retry_at
        if not work.wants_plan or not due or (work.queued and not work.unseen):
            return
        predecessor = next((other for other in works if other.open is not None and other.heir == work.uid), None)
        if predecessor is not None:
            # Its run has to be closed first: only then is it known what this one inherits.
            work.place = Place(runs=False, behind=predecessor.name, position=1)
            return
        # A stage of its own: what was wrong with the last plan stays on the status until a plan has been made.
        async with self._lifecycle.problems_of(work, "queue"):
            work.unseen = await self._unseen(works, info.cluster_id) or ""
        if work.unseen:
            work.retry_at = self._clock.monotonic() + _QUEUE_SECONDS
        elif work.problem_at != "queue":
            # The spec is taken once: an edit that comes in while we plan supersedes this plan.
            work.planning = asyncio.create_task(self._plan(work, work.rebalance.spec, info))
            work.planning.add_done_callback(lambda _: self._wake())

    async def collect(self, work: RebalanceState) -> None:
        """Take over the plan that has been made meanwhile."""
        if work.planning is None or not work.planning.done():
            return
        task, work.planning = work.planning, None
        async with self._lifecycle.problems_of(work, "start"):
            made = await task
            if isinstance(made, Planned):
                self._begin(work, made)
            else:
                work.kept, work.settled = made, False  # the rest is cancelled, then planned from what is there

    async def _unseen(self, works: Collection[RebalanceState], cluster_id: str) -> str | None:
        """Whose open run may be moving anything: not loaded yet, or of a resource we have not seen since the start."""
        for other in works:
            if not other.run_loaded or (other.open is None and other.run is not None and other.run.open):
                return other.name
        seen = {other.uid for other in works}
        for run in await self._stores.runs.list_all():
            unseen = run.open and run.cluster_id == cluster_id and run.uid not in seen
            if unseen and await self._resources.exists(run.namespace, run.name, run.uid):
                return f"{run.namespace}/{run.name}"
        return None

    async def _plan(self, work: RebalanceState, spec: KafkaRebalanceSpec, info: ClusterInfo) -> Planned | KeptCopies:
        """Plan from what the cluster is now; store plan and origins, then open the run, in this order.

        Nothing is stored while copies are in flight that the plan does not go on with: they are cancelled first.
        """
        partitions = await self._admin.describe_partitions()
        flying = copies_of(work, partitions, info.brokers)
        partitions = {**partitions, **{tp: as_if_cancelled(state) for tp, state in flying.items()}}
        selected = select(spec, partitions)
        before = work.run if work.run is not None and work.run.open else None
        inherited = await self._inherited(work)
        earlier = (*work.errands, *_errands_of(inherited.values()))
        refuse_stale(earlier, partitions)
        await self._refuse_unseen({errand.tp for errand in earlier} - partitions.keys())
        load = await known_loads(await self._load_models(info.cluster_id), self._admin, info, selected)
        refuse_unknown_sizes(spec.goals, load, selected)
        named = work.open.named if work.open is not None else None
        lists = await self._lists(work, spec, partitions, earlier, named)
        asked = PlanInputs(lists, await self._min_insync(spec, selected), spent_by(before, work.errands, partitions))
        made = await make_plan(spec, info, selected, load, asked)
        plan = replace(with_earlier_errands(made, earlier, partitions), data_source=load.source)
        kept = await self._gone_on_with(work, spec, info, plan, flying)
        if kept != flying.keys():
            return KeptCopies(planning_hash(spec), kept)
        await self._refuse_overfull(plan, info, kept)
        await asyncio.to_thread(lambda: (plan.hash, plan.broker_changes))  # computed once, off the event loop
        run = Run(
            uid=work.uid,
            namespace=work.rebalance.metadata.namespace,
            name=work.rebalance.metadata.name,
            cluster_id=info.cluster_id,
            run_id=before.run_id if before else uuid.uuid4().hex,
            planning_hash=planning_hash(spec),
            plan_hash=plan.hash,
            opened_at=before.opened_at if before else self._clock.now(),
            cordoned=work.run.cordoned if work.run else (),
            spent=asked.spent,
            started_at=before.started_at if before else self._clock.now() if inherited else None,
        )
        ref = await self._stores.plans.save(work.uid, plan.hash, info.cluster_id, plan, self._clock.now())
        found = (Origin(p.tp, p.topic_id, p.current, partitions[p.tp].leader) for p in plan.partitions)
        stored = await self._stores.origins.append(work.uid, run.run_id, [*inherited.values(), *found])
        await self._stores.runs.save(run)
        await self._forget_older(work, run)
        if before is not None and before.undo:
            await self._resources.clear_undo(work)
        return Planned(open_run(run, plan, ref, stored), load)

    async def recall(self, work: RebalanceState, cluster_id: str) -> None:
        """After a restart: what is produced to what moves, by the pipeline's load model. No plan is stored with it."""
        if work.open is None or work.expected_rates is not None:
            return
        work.expected_rates = {}  # asked for once, whatever comes of it
        loads = await self._load_models(cluster_id)
        if loads is not None:
            work.expected_rates = expected_rates(work.open, loads)

    async def _lists(
        self,
        work: RebalanceState,
        spec: KafkaRebalanceSpec,
        partitions: Mapping[TopicPartition, PartitionState],
        earlier: Iterable[PartitionMove],
        named: Container[TopicPartition] | None,
    ) -> AssignmentLists:
        """What the ConfigMap of the spec says now: it is not looked at again before the next plan."""
        if spec.assignment is None:
            return AssignmentLists()
        namespace, ref = work.rebalance.metadata.namespace, spec.assignment.config_map_ref
        text = await self._resources.config_map_key(namespace, ref.name, ref.key)
        source = f"key {ref.key!r} of ConfigMap {namespace}/{ref.name}"
        rows = await asyncio.to_thread(read_assignment, text, source)
        await self._refuse_unseen({row.tp for row in rows} - partitions.keys())
        return await asyncio.to_thread(lists_for, rows, partitions, earlier, named)

    async def _refuse_unseen(self, missing: Collection[TopicPartition]) -> None:
        """Transient("MetadataStale") where one of these is there: a broker that does not know a topic proves nothing.

        Left out of a plan, what the run has moved of it would neither be counted nor go back.
        """
        if missing and not (await self._admin.describe_partitions({tp.topic for tp in missing})).keys().isdisjoint(
            missing
        ):
            raise Transient(Reason.METADATA_STALE, "not every broker told about all topics; reading again", 1.0)

    async def _gone_on_with(
        self,
        work: RebalanceState,
        spec: KafkaRebalanceSpec,
        info: ClusterInfo,
        plan: Plan,
        copies: Mapping[TopicPartition, PartitionState],
    ) -> frozenset[TopicPartition]:
        """Which of the copies in flight the plan goes on with."""
        if not copies or work.open is None:
            return frozenset()
        part = replace(plan, partitions=tuple(p for p in plan.partitions if p.tp in copies))
        errands = open_run(work.open.run, part, "", work.open.origins).errands
        min_insync = await self._read_min_insync({tp.topic for tp in copies})
        return gone_on_with(errands, copies, info.brokers, min_insync, spec.execution.parallel_replica_count)

    async def _refuse_overfull(self, plan: Plan, info: ClusterInfo, copies: Collection[TopicPartition]) -> None:
        """Where nobody tells what is free, the work goes on: each copy is held against the disks again."""
        if not plan.replica_moves:
            return
        try:
            dirs = await self._admin.log_dirs(tuple(info.brokers))
        except RebalanceError as error:
            log.warning("what is free on disk is not known: %s", error.message)
            return
        refuse_overfull(plan, dirs, copies)

    async def _min_insync(
        self, spec: KafkaRebalanceSpec, selected: Mapping[TopicPartition, PartitionState]
    ) -> dict[str, int]:
        """By topic, where the replication factor is to change; it must not fall below."""
        if spec.replication_factor is None:
            return {}
        return await self._read_min_insync({tp.topic for tp in selected})

    async def _read_min_insync(self, topics: Collection[str]) -> dict[str, int]:
        configs = await self._admin.topic_configs(set(topics), [_MIN_INSYNC])
        return {topic: int(found[_MIN_INSYNC].value or 1) for topic, found in configs.items()}

    async def _forget_older(self, work: RebalanceState, run: Run) -> None:
        """Plans and origins of the resource that no record names any more. Left behind, they go with the next."""
        try:
            await self._stores.plans.delete(work.uid, keep=run.plan_hash)
            await self._stores.origins.delete(work.uid, keep=run.run_id)
        except RebalanceError as error:
            log.warning("%s: older plans are still stored: %s", work.name, error.message)

    async def _inherited(self, work: RebalanceState) -> dict[TopicPartition, Origin]:
        """The origins of runs that this new resource has taken over: a deletion leads back to before them."""
        if work.run is not None:
            return {}
        found: dict[TopicPartition, Origin] = {}
        for run in await self._stores.runs.list_all():
            if run.successor == work.uid:
                # The older run was there first.
                found = await self._stores.origins.load(run.uid, run.run_id) | found
        return found

    def _begin(self, work: RebalanceState, planned: Planned) -> None:
        work.close()
        opened = planned.opened
        work.run, work.open, work.direction = opened.run, opened, Direction.FORWARD
        work.verdicts, work.progress, work.drained = {}, None, None
        work.expected_rates = expected_rates(opened, planned.loads)
        if opened.run.planning_hash != work.planning_hash:
            work.replanning = Reason.SUPERSEDED
        log.info(
            "%s: planned %d partitions, %d replica moves (lower bound %d)",
            work.name,
            opened.plan.changed,
            opened.plan.replica_moves,
            opened.plan.certificate.lower_bound,
        )


def _errands_of(origins: Iterable[Origin]) -> Iterable[PartitionMove]:
    """Partitions that another run has touched, as it found them."""
    return (PartitionMove(o.tp, o.topic_id, o.replicas, o.replicas, o.replicas) for o in origins)
