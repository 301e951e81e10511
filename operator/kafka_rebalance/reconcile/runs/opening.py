"""Opening a run: queue and plan. ``reconcile.act.lifecycle`` stores it, ``reconcile.act.closing`` ends it.

Touches Kafka only to read.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Collection, Container, Iterable, Mapping
from dataclasses import replace

from kafka_rebalance.api.connection_resource import Capacity
from kafka_rebalance.api.planning_goals import planning_goals
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.api.spec_warnings import unmatched_patterns
from kafka_rebalance.api.v1alpha1 import planning_hash
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.execution.partition_status import PartitionMove
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaReader
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.planning.problem.goal_loads import needs_rates
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.act.started_runs import may_move_here
from kafka_rebalance.reconcile.decide.broker_capacities import broker_capacities
from kafka_rebalance.reconcile.decide.budget_used import spent_by
from kafka_rebalance.reconcile.decide.disk_capacity import refuse_overfull
from kafka_rebalance.reconcile.decide.queue_places import behind
from kafka_rebalance.reconcile.decide.replanning import wants_plan
from kafka_rebalance.reconcile.decide.superseding import as_if_cancelled, continued_copies, copies_of
from kafka_rebalance.reconcile.decide.teardown import as_rolled_back, moved_back
from kafka_rebalance.reconcile.observe.cluster_readings import known_ones
from kafka_rebalance.reconcile.report.progress_tracking import expected_rates
from kafka_rebalance.reconcile.runs.assignment_lists import AssignmentLists, lists_for, read_assignment
from kafka_rebalance.reconcile.runs.earlier_runs import inherited_from, moves_of, moves_to_keep
from kafka_rebalance.reconcile.runs.known_loads import known_loads, live_sizes, refuse_unknown_sizes
from kafka_rebalance.reconcile.runs.log_dir_plan import LogDirInputs, with_log_dirs
from kafka_rebalance.reconcile.runs.plan_request import (
    PlanInputs,
    make_plan,
    moved_by_others,
    refuse_stale,
    still_copied,
    with_earlier_moves,
)
from kafka_rebalance.reconcile.state.assessment import ContinuedCopies, QueuePlace, Replanning
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.memory import Planned
from kafka_rebalance.reconcile.state.rebalance import Rebalance, RebalanceView
from kafka_rebalance.reconcile.state.record import Stores, loaded_run_of
from kafka_rebalance.reconcile.state.selection import select

log = logging.getLogger(__name__)

_QUEUE = "queue"
_QUEUE_SECONDS = 2.0
_MODEL_SECONDS = 1.0
"""How long a round waits for a load model. Its store may hang, and nothing that moves depends on it."""
_MIN_INSYNC = "min.insync.replicas"

LoadModels = Callable[[str], Awaitable[LoadModel | None]]
"""Cluster id -> the pipeline's load model, None where there is none; RebalanceError if it may not be used."""
ConfiguredCapacity = Callable[[], Capacity | None]
"""What the cluster's KafkaConnection says of its brokers now."""


class Runs:
    """Opens the runs of the cluster with this id. Plans are made beside the rounds: other rebalances go on."""

    def __init__(
        self,
        cluster_id: str,
        admin: KafkaReader,
        lifecycle: Lifecycle,
        resources: Resources,
        stores: Stores,
        load_models: LoadModels,
        capacity: ConfiguredCapacity,
        clock: Clock,
        wake: Callable[[], None],
        known: Callable[[], Mapping[TopicPartition, PartitionState]],
    ) -> None:
        self._cluster_id = cluster_id
        self._admin = admin
        self._lifecycle = lifecycle
        self._resources = resources
        self._stores = stores
        self._load_models = load_models
        self._capacity = capacity
        self._clock = clock
        self._wake = wake
        self._known = known
        self._reading: asyncio.Task[LoadModel | None] | None = None
        """The load model, while it is read for the expected rates."""

    async def start_planning(
        self,
        rebalance: Rebalance,
        info: ClusterInfo,
        rebalances: Collection[Rebalance],
        terminating: Collection[RebalanceView],
    ) -> QueuePlace:
        """Begin to plan if a plan is wanted and the queue allows it. Returns the place in the queue.

        ``terminating``: rollbacks that this one may take over. Only its plan says so, thus it does not wait for them.
        """
        queue = rebalance.assessment.queue
        if not wants_plan(rebalance):
            self._lifecycle.nothing_to_do(rebalance, _QUEUE)
            return _without_unseen(rebalance)
        if queue.unseen:
            queue = behind(queue, queue.unseen)
        due = self._clock.monotonic() >= rebalance.memory.retry_at
        if not due or (queue.waits and not queue.unseen and not terminating):
            return queue
        predecessor = next(
            (r for r in rebalances if r.record.loaded_run is not None and _hands_over(r, rebalance)), None
        )
        if predecessor is not None:
            # Its run has to be closed first: only then is it known what this one inherits.
            return behind(queue, predecessor.name)
        # A stage of its own: what was wrong with the last plan stays on the status until a plan has been made.
        async with self._lifecycle.problems_of(rebalance, _QUEUE):
            queue = replace(queue, unseen=await self._unseen(rebalance, rebalances) or "")
        problem = rebalance.memory.problem
        if queue.unseen:
            self._lifecycle.retry_in(rebalance, _QUEUE_SECONDS)
        elif problem is None or problem.stage != _QUEUE:
            # The spec is read once: an edit that comes in while we plan supersedes this plan.
            back = [move for old in terminating for move in moved_back(old).values()]
            task = asyncio.create_task(self._plan(rebalance, rebalance.desired.spec, info, back))
            task.add_done_callback(lambda _: self._wake())
            self._lifecycle.planning_begins(rebalance, task)
        return queue

    async def open_planned_run(self, rebalance: Rebalance) -> Replanning | None:
        """Begin the run of the plan that has been finished, if any.

        Returns why the rebalance is planned again: unchanged; None, if the plan is the new one; or with the copies that
        the new plan continues, if the others have to be cancelled before it is made.
        """
        replanning, task = rebalance.assessment.replanning, self._lifecycle.take_plan(rebalance)
        if task is None:
            return replanning
        async with self._lifecycle.problems_of(rebalance, "start"):
            made = await task
            if isinstance(made, Planned):
                await self._lifecycle.begin(rebalance, made)
                plan = made.plan
                log.info(
                    "%s: planned %d partitions, %d replica moves (lower bound %d)",
                    rebalance.name,
                    plan.changed,
                    plan.replica_moves,
                    plan.certificate.lower_bound,
                )
                return None
            if replanning is not None:
                return replace(replanning, ready=False, kept=made)
        return replanning

    async def _unseen(self, rebalance: Rebalance, rebalances: Collection[Rebalance]) -> str | None:
        """A rebalance whose open run may move anything: not loaded yet, or of a resource not seen since the start.

        A run of another cluster is never loaded here: it holds up its own rebalance only.
        """
        for other in rebalances:
            run = other.record.open_run
            holds_up = run is not None and (run.cluster_id == self._cluster_id or other is rebalance)
            if not other.record.was_read or (other.record.loaded_run is None and holds_up):
                return other.name
        seen = {other.uid for other in rebalances}
        for run in await self._stores.runs.list_all():
            unseen = run.open and run.cluster_id == self._cluster_id and run.uid not in seen
            if unseen and await may_move_here(run, self._stores, self._resources, self._admin):
                return f"{run.namespace}/{run.name}"
        return None

    async def _plan(
        self, rebalance: Rebalance, spec: KafkaRebalanceSpec, info: ClusterInfo, back: Collection[PartitionMove]
    ) -> Planned | ContinuedCopies:
        """Plan from the current state of the cluster, and store the plan.

        The round that takes it opens the run. Partitions that a rollback is moving ``back`` are planned from the target
        of that rollback. Nothing is stored while copies are in flight that the plan does not continue: they are
        cancelled first.
        """
        now = self._clock.now()  # what is handed over after this is not inherited by this plan
        read = await asyncio.to_thread(known_ones, await self._admin.describe_partitions(), self._known())
        flying = copies_of(rebalance, read, info.brokers)
        cancelled = {tp: as_if_cancelled(state) for tp, state in flying.items()}
        partitions = {**read, **cancelled} if flying else read
        partitions = {**partitions, **as_rolled_back(back, partitions)} if back else partitions
        before, opened = rebalance.record.open_run, rebalance.record.loaded_run
        # A run that has sent nothing has nothing to move back: a new plan is a new run.
        begun = before if before is not None and before.started_at is not None else None
        taken = await self._lifecycle.inheritance(rebalance.uid) if rebalance.record.run is None else []
        inherited, moves_before, dirs_before = await inherited_from(self._stores, taken)
        let_go = still_copied(moves_before, read)
        cancelled = {tp: as_if_cancelled(state) for tp, state in let_go.items()}
        partitions = {**partitions, **cancelled} if let_go else partitions
        origins = inherited if begun is None else rebalance.record.origins
        way_back = opened.in_direction(origins, back=True) if opened is not None and begun is not None else None
        sent = way_back.moves if way_back is not None else ()
        earlier_dirs = dirs_before | {d.key: d for d in (way_back.log_dirs if way_back is not None else ())}
        selected = await asyncio.to_thread(select, spec, partitions)
        theirs = moved_by_others(sent, partitions)
        origins = {tp: origin for tp, origin in origins.items() if tp not in theirs}
        earlier = (*(move for move in sent if move.tp not in theirs), *moves_of(inherited.values()))
        refuse_stale(earlier, partitions)
        await self._refuse_unseen({move.tp for move in earlier} - partitions.keys())
        goals, dirs = planning_goals(spec.goals), await self._admin.log_dirs(tuple(info.brokers))
        model = await self._load_model(needed=needs_rates(goals.load))
        loads = await asyncio.to_thread(known_loads, live_sizes(dirs), model, selected)
        refuse_unknown_sizes(goals, loads, selected)
        known = opened.in_direction(origins, back=False).moves if opened is not None else ()
        named = opened.named if opened is not None else None
        lists = await self._lists(rebalance.desired, spec, partitions, (*known, *moves_of(inherited.values())), named)
        min_insync = await self._min_insync(spec, selected)
        capacities = broker_capacities(self._capacity(), info.brokers, dirs)
        inputs = PlanInputs(lists, min_insync, spent_by(begun, sent, partitions), capacities)
        source = loads.source
        made = await make_plan(spec, info, selected, loads, inputs)
        del loads  # here and below: free the readings of a large cluster early
        kept = (*earlier, *await moves_to_keep(self._stores, rebalance, made))
        made = await asyncio.to_thread(with_earlier_moves, made, kept, partitions, let_go)
        topics = await asyncio.to_thread(_topics_of, partitions)
        unmatched = tuple(unmatched_patterns(spec.topics, topics))
        log_dirs = LogDirInputs(frozenset(info.brokers), dirs, selected, partitions, earlier_dirs)
        made = await asyncio.to_thread(with_log_dirs, made, spec, log_dirs)
        plan = replace(made, data_source=source, unmatched=unmatched)
        del made, log_dirs, dirs, read, selected, partitions
        # Computed once, off the event loop.
        await asyncio.to_thread(lambda: (plan.hash, plan.broker_changes, plan.replica_moves))
        continued = await self._continued_copies(rebalance, spec, info, plan, flying)
        if continued != flying.keys():
            return ContinuedCopies(planning_hash(spec), continued)
        await self._refuse_overfull(plan, info, continued | {move.tp for move in back}, spec.goals.disk_limit)
        run = Run(
            uid=rebalance.uid,
            namespace=rebalance.desired.metadata.namespace,
            name=rebalance.desired.metadata.name,
            cluster_id=self._cluster_id,
            run_id=begun.run_id if begun else uuid.uuid4().hex,
            planning_hash=planning_hash(spec),
            plan_hash=plan.hash,
            opened_at=begun.opened_at if begun else now,
            spent=inputs.spent,
            started_at=begun.started_at if begun else self._clock.now() if inherited else None,
        )
        ref = await self._stores.plans.save(run.uid, plan.hash, self._cluster_id, plan, self._clock.now())
        return Planned(run, plan, ref, origins, model, taken)

    async def load_expected_rates(self, rebalance: Rebalance) -> None:
        """After a restart, read what is produced to the partitions from the load model: plans are stored without it.

        This goes on beside the rounds if it takes long.
        """
        opened = rebalance.record.loaded_run
        if opened is None or rebalance.memory.expected_rates is not None:
            return
        if self._reading is None:
            self._reading = asyncio.create_task(self._load_model(needed=False))
            await asyncio.wait([self._reading], timeout=_MODEL_SECONDS)
        if self._reading.done():
            reading, self._reading = self._reading, None
            self._lifecycle.expect(rebalance, {})  # asked for once, even if that fails
            self._lifecycle.expect(rebalance, expected_rates(opened, reading.result()))

    async def _load_model(self, *, needed: bool) -> LoadModel | None:
        """None if there is none. One that may not be used is an error only if it is needed."""
        try:
            return await self._load_models(self._cluster_id)
        except RebalanceError as error:
            if needed:
                raise
            log.warning("the load model of cluster %s is not used: %s", self._cluster_id, error.message)
            return None

    async def _lists(
        self,
        desired: Desired,
        spec: KafkaRebalanceSpec,
        partitions: Mapping[TopicPartition, PartitionState],
        earlier: Iterable[PartitionMove],
        named: Container[TopicPartition] | None,
    ) -> AssignmentLists:
        """What the ConfigMap of the spec says now: it is not looked at again before the next plan."""
        if spec.assignment is None:
            return AssignmentLists()
        namespace, ref = desired.metadata.namespace, spec.assignment.config_map_ref
        text = await self._resources.config_map_key(namespace, ref.name, ref.key)
        source = f"key {ref.key!r} of ConfigMap {namespace}/{ref.name}"
        rows = await asyncio.to_thread(read_assignment, text, source)
        await self._refuse_unseen({row.tp for row in rows} - partitions.keys())
        return await asyncio.to_thread(lists_for, rows, partitions, earlier, named)

    async def _refuse_unseen(self, missing: Collection[TopicPartition]) -> None:
        """Transient("MetadataStale") where one of these is there: a broker that does not know a topic proves nothing.

        Left out of a plan, what the run has moved of it would neither be counted nor go back.
        """
        if not missing:
            return
        found = (await self._admin.describe_partitions({tp.topic for tp in missing})).or_raise()
        if not found.keys().isdisjoint(missing):
            raise Transient(Reason.METADATA_STALE, "not every broker reported all topics; reading again", 1.0)

    async def _continued_copies(
        self,
        rebalance: Rebalance,
        spec: KafkaRebalanceSpec,
        info: ClusterInfo,
        plan: Plan,
        copies: Mapping[TopicPartition, PartitionState],
    ) -> frozenset[TopicPartition]:
        """Which of the copies in flight the plan continues."""
        opened = rebalance.record.loaded_run
        if not copies or opened is None:
            return frozenset()
        part = replace(plan, partitions=tuple(p for p in plan.partitions if p.tp in copies))
        moves = loaded_run_of(opened.run, part, "", rebalance.record.origins).moves
        min_insync = await self._read_min_insync({tp.topic for tp in copies})
        return continued_copies(moves, copies, info.brokers, min_insync, spec.execution.parallel_replica_count)

    async def _refuse_overfull(
        self, plan: Plan, info: ClusterInfo, copies: Collection[TopicPartition], limit: int | None
    ) -> None:
        """If the free space is not known the plan is accepted: each copy is checked against the disks again."""
        if not plan.replica_moves:
            return
        try:
            dirs = await self._admin.log_dirs(tuple(info.brokers))
        except RebalanceError as error:
            log.warning("what is free on disk is not known: %s", error.message)
            return
        await asyncio.to_thread(refuse_overfull, plan, dirs, copies, limit)

    async def _min_insync(
        self, spec: KafkaRebalanceSpec, selected: Mapping[TopicPartition, PartitionState]
    ) -> dict[str, int]:
        """By topic, where the replication factor is to change; it must not fall below."""
        if spec.replication_factor is None:
            return {}
        return await self._read_min_insync({tp.topic for tp in selected})

    async def _read_min_insync(self, topics: Collection[str]) -> dict[str, int]:
        configs = (await self._admin.topic_configs(set(topics), [_MIN_INSYNC])).or_raise()
        return {topic: int(found[_MIN_INSYNC].value or 1) for topic, found in configs.items()}


def _topics_of(partitions: Iterable[TopicPartition]) -> set[str]:
    return {tp.topic for tp in partitions}


def _without_unseen(rebalance: RebalanceView) -> QueuePlace:
    """The place in the queue of a rebalance that plans nothing: it does not wait for runs that are not loaded.

    The queue has given a new place to an open run in this round; without one, the place is gone too.
    """
    queue = rebalance.assessment.queue
    if not queue.unseen:
        return queue
    return replace(queue, unseen="", place=queue.place if rebalance.record.loaded_run is not None else None)


def _hands_over(old: Rebalance, new: Rebalance) -> bool:
    successor = old.assessment.successor
    return successor is not None and successor.uid == new.uid
