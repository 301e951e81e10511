"""What is stored of one rebalance: its run with plan and origins, and the partition moves that follow from them."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.progress import moves_to_lose
from kafka_rebalance.execution.rate_order import RateOrder, rate_order
from kafka_rebalance.execution.reassignment_throttle import moving_brokers
from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.bulk import kept_for_long
from kafka_rebalance.model.of_each import OfEach
from kafka_rebalance.model.plan import LogDirMove, Plan
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

PLAN_RETENTION = timedelta(days=30)
"""How long plan and origins of a run are kept after its end, if its resource is deleted."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The three stores that a rebalance needs. A plan is stored under its hash, which the run names."""

    plans: PlanStore
    origins: OriginStore
    runs: RunStore

    async def forget(self, uid: str) -> None:
        """Delete what is stored of a resource. The run goes last: as long as it exists, the deletion is repeated."""
        await self.plans.delete(uid)
        await self.origins.delete(uid)
        await self.runs.delete(uid)


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """A run with its plan, origins and partition moves; compared by identity. ``ref``: the plan's first ConfigMap.

    ``moves``: forward, those of the plan; in a rollback (``back``), those of the partitions with an origin, for which
    the run has sent an order. What others did to the rest is left alone.
    """

    run: Run
    plan: Plan
    ref: str
    origins: Mapping[TopicPartition, Origin]
    moves: tuple[PartitionMove, ...]
    move_of: Mapping[TopicPartition, PartitionMove]
    topics: frozenset[str]
    brokers: frozenset[BrokerId] = frozenset()
    """The brokers that it copies from or to."""
    back: bool = False
    log_dirs: tuple[LogDirMove, ...] = ()
    """The replicas of these partitions that move between log dirs, or whose log dir a rollback has to know."""

    def in_direction(self, origins: Mapping[TopicPartition, Origin], *, back: bool) -> "LoadedRun":
        """The same run in the given direction, with the origins recorded since; the run itself if nothing changes."""
        if self.goes(origins, back=back):
            return self
        return loaded_run_of(self.run, self.plan, self.ref, origins, back=back)

    def goes(self, origins: Mapping[TopicPartition, Origin], *, back: bool) -> bool:
        """Whether it has this direction and these origins already."""
        return self.back is back and (not back or self.origins is origins)

    def turned(self, origins: Mapping[TopicPartition, Origin], *, back: bool) -> "LoadedRun":
        """As ``in_direction``, with all that is derived from it: for a thread."""
        return _derived(self.in_direction(origins, back=back))

    @cached_property
    def partitions(self) -> AbstractSet[TopicPartition]:
        """Those of its moves."""
        return self.move_of.keys()

    @cached_property
    def sizes(self) -> Mapping[TopicPartition, int]:
        """Bytes of one replica of each partition, as planned."""
        return OfEach(self.move_of, "size_bytes")

    @cached_property
    def goals(self) -> Mapping[TopicPartition, Replicas]:
        """The list that each partition goes to forward."""
        return OfEach(self.move_of, "target")

    @cached_property
    def starts(self) -> Mapping[TopicPartition, Replicas]:
        """The list that each partition goes back to."""
        return OfEach(self.move_of, "origin")

    @cached_property
    def rate_order(self) -> RateOrder | None:
        """The order of the moves of the plan that is within the limits of rates; None: any order is."""
        return rate_order(self.plan)

    @cached_property
    def replica_moves(self) -> int:
        """How many replica moves other tools can void, see ``progress.lost_moves``."""
        return sum(map(moves_to_lose, self.moves))

    @property
    def known(self) -> Collection[BrokerId]:
        """The brokers on which the run may have put a partition."""
        return self._on_broker.keys()

    def concerned(self, brokers: Collection[BrokerId], topics: Collection[str]) -> set[TopicPartition]:
        """The partitions of these topics, and those that the run may have put on one of these brokers."""
        found = {tp for broker in brokers for tp in self._on_broker.get(broker, ())}
        return found | {move.tp for move in self.moves if move.tp.topic in topics} if topics else found

    def led_to(self, broker: BrokerId) -> Collection[TopicPartition]:
        """The partitions that have a replica on the broker in the end."""
        return self._led_to.get(broker, ())

    @cached_property
    def _led_to(self) -> Mapping[BrokerId, Collection[TopicPartition]]:
        found: defaultdict[BrokerId, list[TopicPartition]] = defaultdict(list)
        for move in self.moves:
            for broker in move.target:
                found[broker].append(move.tp)
        return dict(found)

    @cached_property
    def _on_broker(self) -> Mapping[BrokerId, Collection[TopicPartition]]:
        found: defaultdict[BrokerId, list[TopicPartition]] = defaultdict(list)
        for move in self.moves:
            tp, target, start, origin = move.tp, move.target, move.planned_from, move.origin
            for broker in target:
                found[broker].append(tp)
            for broker in start:
                if broker not in target:
                    found[broker].append(tp)
            for broker in () if origin is start else origin:
                if broker not in target and broker not in start:
                    found[broker].append(tp)
        return dict(found)

    @property
    def named(self) -> frozenset[TopicPartition]:
        """Every partition that the run has moved or that its plan names: each existed at some time."""
        return self.plan.about | self.origins.keys()


@dataclass(frozen=True, slots=True)
class EndedRun:
    """What the status shows of a closed run: why its plan was empty, how many partitions were skipped.

    ``run``: its record as it was closed; it may not be stored any more.
    """

    why_empty: str
    left_alone: int
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """What is stored of one resource, as last read or written.

    ``was_read``: whether the store has been read, and, if it has no run, also the annotation of the resource. ``run``
    is the newest version of the run's record; that in ``loaded_run`` is as it was when the run was loaded. ``origins``:
    what each partition of the open run was before it was first sent something; ``loaded_run`` has those of when it was
    loaded or turned. ``ended`` is of the last run that this process has closed. ``handed_over``: the number of runs
    that were handed over to the resource and whose origins it has not stored yet; None: not counted since it was read.
    """

    run: Run | None = None
    was_read: bool = False
    loaded_run: LoadedRun | None = None
    origins: Mapping[TopicPartition, Origin] = field(default_factory=dict)
    ended: EndedRun | None = None
    handed_over: int | None = None

    @property
    def open_run(self) -> Run | None:
        """The run while it is open; its plan may not be loaded yet."""
        return self.run if self.run is not None and self.run.open else None

    @property
    def may_have_sent(self) -> bool:
        """Whether the run may have sent a call for a partition. True for a started run until it is loaded."""
        started = self.run is not None and self.run.started_at is not None
        return started and (self.loaded_run is None or bool(self.origins))

    @property
    def plan_hash(self) -> str:
        """The hash of the run's plan; empty without a run."""
        return self.run.plan_hash if self.run is not None else ""

    @property
    def moves(self) -> tuple[PartitionMove, ...]:
        """The partition moves of the open run; none without one."""
        return self.loaded_run.moves if self.loaded_run else ()

    @property
    def topics(self) -> frozenset[str]:
        """The topics of the open run."""
        return self.loaded_run.topics if self.loaded_run else frozenset()


async def load_open_run(stores: Stores, run: Run) -> LoadedRun:
    """The run with its stored plan and origins.

    Permanent("StoredPlanMissing" or "StoredStateCorrupt") if someone deleted the plan, or the origins of a run that has
    started: these are stored, even if empty, before its first call.
    """
    stored = await stores.plans.load(run.uid, run.plan_hash)
    if stored is None:
        raise Permanent(
            Reason.STORED_PLAN_MISSING,
            f"the stored plan {run.plan_hash} of {run.namespace}/{run.name} is gone from the operator's namespace; "
            "nothing is submitted without it. Set deletionPolicy to Abandon and delete the resource to let go",
        )
    origins = await load_origins(stores, run)
    return await asyncio.to_thread(opened_run_of, run, stored.plan, stored.ref, origins)


async def load_origins(stores: Stores, run: Run) -> Mapping[TopicPartition, Origin]:
    """Of an open run, or of one that was handed over. Permanent("StoredStateCorrupt") as for ``load_open_run``."""
    origins = await stores.origins.load(run.uid, run.run_id)
    if origins is None and run.started_at is not None:
        raise StoredStateCorrupt(
            f"the origins of the run of {run.namespace}/{run.name} are gone from the operator's namespace, so it is "
            "not known where its partitions were. Set deletionPolicy to Abandon and delete the resource to let go"
        )
    return origins or {}


def opened_run_of(run: Run, plan: Plan, ref: str, origins: Mapping[TopicPartition, Origin]) -> LoadedRun:
    """The run with all that is derived from its plan: of a large plan that takes seconds, so call it in a thread."""
    with kept_for_long(len(plan.partitions)):
        return _derived(loaded_run_of(run, plan, ref, origins))


def _derived(found: LoadedRun) -> LoadedRun:
    """Asks for each value once: it is kept where it is computed."""
    plan = found.plan
    _ = found.partitions, found.sizes, found.goals, found.replica_moves, found.known, found.rate_order
    _ = plan.hash, plan.changed, plan.elections, plan.replica_moves, plan.leader_moves, plan.data_to_move_bytes
    _ = plan.bytes_copied, plan.broker_changes
    return found


async def end_of_run(stores: Stores, successor: str | None, now: datetime) -> datetime:
    """When a run ends that is handed over to this resource: never before the present run of that one was planned.

    A run inherits what ended after it was planned. The clocks of two operators may differ, and each may be set back.
    Transient if that run has started or ended, as in this round: it inherits nothing any more.
    """
    heir = await stores.runs.load(successor) if successor is not None else None
    if heir is not None and (heir.started_at is not None or not heir.open):
        message = f"{heir.namespace}/{heir.name}, which was to continue, has begun or ended a run of its own"
        raise Transient(Reason.CONFLICT, message, retry_after=1.0)
    return now if heir is None else max(now, heir.opened_at)


def on_record(tp: TopicPartition, topic_id: str, origins: Mapping[TopicPartition, Origin]) -> Origin | None:
    """The origin of a partition; None: the run has sent nothing for this partition of this topic."""
    origin = origins.get(tp)
    if origin is None or (origin.topic_id and topic_id and origin.topic_id != topic_id):
        return None
    return origin


def as_recorded(origins: Mapping[TopicPartition, Origin], move: PartitionMove) -> PartitionMove:
    """The move with its origin as it is on record now: origins are added, and given up, while the run goes on."""
    origin = on_record(move.tp, move.topic_id, origins)
    if origin is None:
        return replace(move, on_record=False, first_call=())
    return replace(move, origin=origin.replicas, origin_leader=origin.leader, first_call=origin.first_call)


def without(
    origins: Mapping[TopicPartition, Origin], gone: Mapping[Origin, Origin | None]
) -> dict[TopicPartition, Origin]:
    """The origins without those that are ``gone``, each of which has what counts instead; None: nothing does."""
    tps = {row.tp for row in gone}
    kept = {tp: origin for tp, origin in origins.items() if tp not in tps}
    return kept | {row.tp: row for row in gone.values() if row is not None}


def loaded_run_of(
    run: Run, plan: Plan, ref: str, origins: Mapping[TopicPartition, Origin], *, back: bool = False
) -> LoadedRun:
    """The run with its partition moves; during a rollback (``back``), with the moves that have an origin."""
    found = ((p, on_record(p.tp, p.topic_id, origins) if origins else None) for p in plan.partitions)
    moves = tuple(
        PartitionMove(
            p.tp,
            p.topic_id,
            origin.replicas if origin is not None else p.current,
            p.current,
            p.target,
            p.size_bytes,
            origin.leader if origin is not None else None,
            p.elects,
            origin.first_call if origin is not None else (),
        )
        for p, origin in found
        if origin is not None or not back
    )
    brokers: set[BrokerId] = set()
    known = brokers.issuperset
    for m in moves:
        if not (known(m.target) and known(m.origin) and (m.planned_from is m.origin or known(m.planned_from))):
            lists = m.origin, m.planned_from, m.target
            # A replica that the plan only drops is copied by a rollback, and by a later plan that wants it again.
            brokers |= moving_brokers(lists, (m.target, m.origin) if back else (m.target,))
    return LoadedRun(
        run,
        plan,
        ref,
        origins,
        moves,
        {m.tp: m for m in moves},
        frozenset(m.tp.topic for m in moves),
        frozenset(brokers),
        back,
        _log_dirs_back(plan, origins) if back else plan.log_dirs,
    )


def _log_dirs_back(plan: Plan, origins: Mapping[TopicPartition, Origin]) -> tuple[LogDirMove, ...]:
    """The replicas that a rollback may move: those that the run or a reassignment moves.

    Each returns to the log dir in which the run found it. Earlier moves of other tools are not undone.
    """
    if not plan.log_dirs:
        return ()
    topic_ids, found = {p.tp: p.topic_id for p in plan.partitions}, []
    for move in plan.log_dirs:
        origin = on_record(move.tp, topic_ids.get(move.tp, ""), origins)
        if origin is None:
            continue
        left = dict(origin.log_dirs) if origin.log_dirs is not None else None
        if left is None or move.origin is None:
            found.append(move)
        elif move.broker in left:
            found.append(replace(move, origin=left[move.broker]))
        elif None in {move.before, move.after}:
            found.append(replace(move, origin=move.before or move.origin))
    return tuple(found)
