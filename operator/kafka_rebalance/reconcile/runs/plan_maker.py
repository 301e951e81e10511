"""Makes the plan of one rebalance from the current state of the cluster, and stores it.

Touches Kafka only to read. ``opening`` decides when a plan is made and opens its run.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from kafka_rebalance.api.connection_resource import Capacity
from kafka_rebalance.api.planning_goals import planning_goals
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.api.spec_warnings import unmatched_patterns
from kafka_rebalance.api.v1alpha1 import planning_hash
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.execution.partition_status import MovePhase
from kafka_rebalance.execution.rate_order import refuse_unordered
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaReader, LogDir
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.reassignment_file import Reassigned
from kafka_rebalance.model.run import Origin, Run, Spent
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.planning.problem.goal_loads import needs_rates
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.decide.broker_capacities import broker_capacities
from kafka_rebalance.reconcile.decide.budget_used import spent_by
from kafka_rebalance.reconcile.decide.cluster_ownership import owner_of
from kafka_rebalance.reconcile.decide.direction import copies_to_keep
from kafka_rebalance.reconcile.decide.disk_capacity import refuse_overfull
from kafka_rebalance.reconcile.decide.leaving_brokers import not_named, to_avoid
from kafka_rebalance.reconcile.decide.superseding import continued_copies, copies_of
from kafka_rebalance.reconcile.observe.cluster_readings import known_ones
from kafka_rebalance.reconcile.runs.assignment_lists import AssignmentLists, lists_for, read_assignment
from kafka_rebalance.reconcile.runs.draft_turns import DraftTurns
from kafka_rebalance.reconcile.runs.earlier_runs import (
    EarlierWork,
    earlier_work,
    held_before,
    moves_of,
    moves_to_keep,
    refuse_early,
    still_its_own,
    without_surplus_of,
)
from kafka_rebalance.reconcile.runs.known_loads import known_loads, live_sizes, refuse_unknown_sizes
from kafka_rebalance.reconcile.runs.log_dir_plan import LogDirInputs, dirs_of_others, log_dir_questions, with_log_dirs
from kafka_rebalance.reconcile.runs.plan_memory import DraftMemory
from kafka_rebalance.reconcile.runs.plan_request import (
    PlanInputs,
    from_lists_of,
    make_plan,
    refuse_outdated,
    still_copied,
    with_earlier_moves,
    without_those_of_others,
)
from kafka_rebalance.reconcile.runs.solving import draft_memory, run_log_dirs
from kafka_rebalance.reconcile.runs.starting_lists import Moves, Rollbacks, States, moved_back_by, planned_from
from kafka_rebalance.reconcile.state.assessment import ContinuedCopies
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.held_plans import HeldPlans
from kafka_rebalance.reconcile.state.inline_thread import in_thread
from kafka_rebalance.reconcile.state.memory import Planned
from kafka_rebalance.reconcile.state.namespace_turns import InlineTurns
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import Stores, loaded_run_of
from kafka_rebalance.reconcile.state.round_thread import off_the_loop
from kafka_rebalance.reconcile.state.selection import pinned_topics, select

log = logging.getLogger(__name__)

_MIN_INSYNC = "min.insync.replicas"

LoadModels = Callable[[str], Awaitable[LoadModel | None]]
"""Cluster id -> the pipeline's load model, None where there is none; RebalanceError if it may not be used."""
ConfiguredCapacity = Callable[[], Capacity | None]
"""The present capacities of the brokers in the KafkaConnection of the cluster; None: not configured."""
RunsToTakeOver = Callable[[str], Awaitable[list[Run]]]
"""Uid of a resource -> the runs that were handed over to it since its own was planned, the oldest first."""


@dataclass(frozen=True, slots=True)
class _PlanBasis:
    """The input of a plan.

    ``partitions``: all of the cluster, as from ``planned_from``; ``selected``: those of the spec. ``pinned``: the
    topics that stay. ``dirs``: the log dirs of the brokers that answered. ``origins``: those with which the run of the
    plan starts. ``former``: as of ``PlanInputs``.
    """

    partitions: States
    selected: States
    pinned: Collection[str]
    dirs: Mapping[BrokerId, tuple[LogDir, ...]]
    work: EarlierWork
    origins: Mapping[TopicPartition, Origin]
    former: Collection[BrokerId]


@dataclass(frozen=True, slots=True)
class _DraftPlan:
    """A plan that is not stored yet.

    ``flying``: the copies in flight of the plan before. ``spent``: the part of the movement budget that the run has
    used. ``model``: the load model that the plan was made with. ``back``: the moves of the rollbacks that it is planned
    after. ``info``: the brokers when the cluster was read.
    """

    plan: Plan
    flying: States
    work: EarlierWork
    origins: Mapping[TopicPartition, Origin]
    dirs_of_others: Mapping[TopicPartition, Collection[BrokerId]]
    spent: Spent
    model: LoadModel | None
    begun_at: datetime
    back: Moves
    info: ClusterInfo


class PlanMaker:
    """Makes the plans of the cluster with this id. ``known``: the partitions that the rounds have seen.

    ``turns``: those of an inline connection; None for a KafkaConnection.
    """

    def __init__(
        self,
        cluster_id: str,
        admin: KafkaReader,
        resources: Resources,
        stores: Stores,
        clock: Clock,
        *,
        load_models: LoadModels,
        capacity: ConfiguredCapacity,
        runs_to_take_over: RunsToTakeOver,
        known: Callable[[], States],
        turns: InlineTurns | None,
    ) -> None:
        self._cluster_id = cluster_id
        self._admin = admin
        self._resources = resources
        self._stores = stores
        self._load_models = load_models
        self._capacity = capacity
        self._clock = clock
        self._runs_to_take_over = runs_to_take_over
        self._known = known
        self._turns = turns
        self._thread_turn = turns.thread if turns is not None else None
        self._held = turns.plans if turns is not None else HeldPlans()
        self._drafts = DraftTurns()
        """A turn lasts from the reading of the cluster to the plan, or to the process that makes it."""

    async def make(
        self, rebalance: Rebalance, spec: KafkaRebalanceSpec, rollbacks: Callable[[], Rollbacks]
    ) -> Planned | ContinuedCopies:
        """Plan from the current state of the cluster, and store the plan.

        The round that takes it opens the run. Partitions that one of the ``rollbacks`` is moving back are planned from
        its target. They are asked for when the cluster is read, for which the plan may have to wait. Nothing is stored
        while copies are in flight that the plan does not continue: they are cancelled first.
        """
        drafting = partial(self._draft, rebalance, spec, rollbacks)
        draft = await self._drafts.draft(drafting, draft_memory(rebalance.desired.metadata.namespace))
        plan, flying, back, info = draft.plan, draft.flying, draft.back, draft.info
        # Computed once, off the event loop.
        await off_the_loop(lambda: (plan.hash, plan.broker_changes, plan.replica_moves))
        continued = await self._continued_copies(rebalance, spec, info, plan, flying)
        if continued != flying.keys():
            return ContinuedCopies(planning_hash(spec), continued)
        await off_the_loop(refuse_unordered, plan)
        await self._refuse_overfull(plan, info, continued | back.keys(), spec.goals.disk_limit)
        run = self._run_of(draft, rebalance, spec)
        made_at = self._clock.now()
        saving = self._stores.plans.save(run.uid, plan.hash, self._cluster_id, plan, made_at, run.namespace)
        ref = await _to_the_end(saving)
        return Planned(run, plan, ref, draft.origins, draft.model, draft.work.taken, draft.dirs_of_others)

    async def load_model(self, *, needed: bool) -> LoadModel | None:
        """The load model; None if there is none. A model that may not be used is an error only if it is ``needed``."""
        try:
            return await self._load_models(self._cluster_id)
        except RebalanceError as error:
            if needed:
                raise
            log.warning("the load model of cluster %s is not used: %s", self._cluster_id, error.message)
            return None

    async def _draft(
        self,
        rebalance: Rebalance,
        spec: KafkaRebalanceSpec,
        rollbacks: Callable[[], Rollbacks],
        memory: DraftMemory,
    ) -> _DraftPlan:
        """The plan with all that it keeps of earlier ones. The readings of a large cluster are freed on return.

        MemoryTaken as from `run_planner`.
        """
        self._held.refuse(rebalance.uid)
        begun_at = self._clock.now()  # what is handed over after this is not inherited by this plan
        back = await off_the_loop(moved_back_by, rollbacks())
        info = await self._admin.describe_cluster()
        read = await off_the_loop(known_ones, await self._admin.describe_partitions(), self._known())
        record, left_alone = rebalance.record, rebalance.assessment.statuses.within(MovePhase.SKIPPED)
        # Both of one moment: others may replace them during each await.
        flying = await off_the_loop(copies_of, record.moves, copies_to_keep(rebalance), read, info.brokers)
        work = await earlier_work(rebalance.uid, record, self._stores, self._runs_to_take_over)
        refuse_early(work.taken, self._clock.now())
        let_go = await off_the_loop(still_copied, work.taken_moves, work.left, read)
        partitions = await off_the_loop(planned_from, read, flying, back, let_go)
        origins, earlier, missing = await off_the_loop(still_its_own, work, partitions, self._known(), left_alone)
        await self._refuse_unseen(missing)
        namespace = rebalance.desired.metadata.namespace
        selected = await in_thread(lambda: select(spec, partitions), self._thread_turn, namespace)
        pinned: Collection[str] = ()
        if spec.topics.pinned:
            pinned = await in_thread(lambda: pinned_topics(spec, selected), self._thread_turn, namespace)

        def asked(tp: TopicPartition) -> int:
            return (spec.replication_factor or 0) if tp in selected and tp.topic not in pinned else 0

        surplus = await off_the_loop(without_surplus_of, work, earlier, partitions, asked, info.brokers)
        as_found = {**{tp: partitions[tp] for tp in surplus}, **let_go}
        partitions = {**partitions, **surplus} if surplus else partitions
        selected = {**selected, **{tp: surplus[tp] for tp in surplus if tp in selected}} if surplus else selected
        dirs = await self._admin.log_dirs(tuple(info.brokers))
        former = await off_the_loop(held_before, work, earlier)
        basis = _PlanBasis(partitions, selected, pinned, dirs, work, origins, former)
        made, spent, model = await self._solved(rebalance, spec, info, basis, memory)
        if not any(p.current != p.target or p.elects for p in made.partitions):
            await off_the_loop(refuse_outdated, selected, read, self._known())
        made = await off_the_loop(from_lists_of, made, as_found) if as_found else made
        made = await off_the_loop(with_earlier_moves, made, earlier, partitions, as_found)
        topics = await off_the_loop(_topics_of, partitions)
        unmatched = await in_thread(
            lambda: tuple(unmatched_patterns(spec.topics, topics)), self._thread_turn, namespace
        )
        made = replace(made, unmatched=unmatched)
        log_dirs = LogDirInputs(frozenset(info.brokers), dirs, selected, pinned, partitions, work.log_dirs)
        questions = await off_the_loop(log_dir_questions, made, spec, log_dirs)
        answers = await run_log_dirs(questions, self._turns, memory)
        plan = await off_the_loop(with_log_dirs, made, log_dirs, questions, answers)
        if kept := await moves_to_keep(self._stores, rebalance, plan):
            kept = await off_the_loop(without_those_of_others, kept, partitions, self._known())
            plan = await off_the_loop(with_earlier_moves, plan, kept, partitions, let_go)
        theirs = await off_the_loop(dirs_of_others, log_dirs)
        self._held.take(rebalance.uid, plan)
        return _DraftPlan(plan, flying, work, origins, theirs, spent, model, begun_at, back, info)

    async def _solved(
        self, rebalance: Rebalance, spec: KafkaRebalanceSpec, info: ClusterInfo, basis: _PlanBasis, memory: DraftMemory
    ) -> tuple[Plan, Spent, LoadModel | None]:
        """The planner's answer, what the run has spent of the budget, and the load model."""
        work, partitions, selected = basis.work, basis.partitions, basis.selected
        goals = planning_goals(spec.goals)
        model = await self.load_model(needed=needs_rates(goals.load))
        loads = await off_the_loop(lambda: known_loads(live_sizes(basis.dirs), model, selected))
        await off_the_loop(refuse_unknown_sizes, goals, loads, selected)
        lists = await self._lists(rebalance.desired, spec, basis)
        min_insync = await self._min_insync(spec, selected)
        capacities = broker_capacities(self._capacity(), info.brokers, basis.dirs)
        spent = await off_the_loop(spent_by, work.begun, work.sent, partitions)
        avoided = await off_the_loop(to_avoid, not_named(rebalance, info.brokers), partitions)
        inputs = PlanInputs(lists, min_insync, spent, capacities, basis.pinned, avoided, basis.former)
        # The turn is not held while the cluster is read: its servers could delay those of other namespaces.
        made = await make_plan(spec, info, selected, loads, inputs, self._turns, memory)
        return replace(made, data_source=loads.source), spent, model

    def _run_of(self, draft: _DraftPlan, rebalance: Rebalance, spec: KafkaRebalanceSpec) -> Run:
        """The run that is opened with the plan: the one that has begun, or a new one, in as much doubt as these."""
        begun, metadata, source = draft.work.begun, rebalance.desired.metadata, rebalance.desired.spec.kafka
        return Run(
            uid=rebalance.uid,
            namespace=metadata.namespace,
            name=metadata.name,
            cluster_id=self._cluster_id,
            run_id=begun.run_id if begun else uuid.uuid4().hex,
            planning_hash=planning_hash(spec),
            plan_hash=draft.plan.hash,
            opened_at=begun.opened_at if begun else draft.begun_at,
            spent=draft.spent,
            started_at=begun.started_at if begun else self._clock.now() if draft.work.inherited else None,
            unproved=draft.work.unproved and source.connection_ref is None,
            was_unproved=draft.work.was_unproved,
            owner=owner_of(source, metadata.namespace),
            rested=begun.rested if begun else False,
        )

    async def _lists(self, desired: Desired, spec: KafkaRebalanceSpec, basis: _PlanBasis) -> AssignmentLists:
        """What the ConfigMap of the spec says now: it is not looked at again before the next plan."""
        if spec.assignment is None:
            return AssignmentLists()
        namespace, ref = desired.metadata.namespace, spec.assignment.config_map_ref
        text = await self._resources.config_map_key(namespace, ref.name, ref.key)
        source = f"key {ref.key!r} of ConfigMap {namespace}/{ref.name}"
        rows = await off_the_loop(read_assignment, text, source)
        await self._refuse_unseen({row.tp for row in rows} - basis.partitions.keys())
        return await off_the_loop(_lists_for, rows, basis)

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
        origins = rebalance.record.origins
        min_insync = await self._read_min_insync({tp.topic for tp in copies})

        def continued() -> frozenset[TopicPartition]:
            part = replace(plan, partitions=tuple(p for p in plan.partitions if p.tp in copies))
            moves = loaded_run_of(opened.run, part, "", origins).moves
            return continued_copies(moves, copies, info.brokers, min_insync, spec.execution.parallel_replica_count)

        return await off_the_loop(continued)

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
        await off_the_loop(refuse_overfull, plan, dirs, copies, limit)

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


async def _to_the_end(saving: Coroutine[Any, Any, str]) -> str:
    """The result. A cancellation waits for the end, because requests under way are carried out all the same."""
    task = asyncio.create_task(saving)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _lists_for(rows: Iterable[Reassigned], basis: _PlanBasis) -> AssignmentLists:
    """The lists of a spec with an assignment, which names what the run has moved so far."""
    opened, inherited = basis.work.opened, moves_of(basis.work.inherited.values())
    known = opened.in_direction(basis.origins, back=False).moves if opened is not None else ()
    named = opened.named if opened is not None else None
    return lists_for(rows, basis.partitions, (*known, *inherited), named)


def _topics_of(partitions: Iterable[TopicPartition]) -> set[str]:
    return {tp.topic for tp in partitions}
