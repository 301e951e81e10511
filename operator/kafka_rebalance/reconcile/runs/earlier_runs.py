"""What a new plan takes over from earlier runs: of other resources, and of the resource itself."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.rollback import without_surplus
from kafka_rebalance.kafka.ports import CALL_SECONDS
from kafka_rebalance.model.plan import LogDirMove, Plan
from kafka_rebalance.model.run import Origin, Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, PartitionState, ReplicaKey, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.inheritance import Inheritance
from kafka_rebalance.reconcile.runs.plan_request import is_above, moved_by_others, refuse_stale
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import LoadedRun, Record, Stores, load_origins, loaded_run_of
from kafka_rebalance.reconcile.state.round_thread import off_the_loop


@dataclass(frozen=True, slots=True)
class EarlierWork:
    """What was done for a resource before its new plan: by its open run, and by the runs that it takes over.

    ``opened``: the open run with its plan; ``begun``: the same if it has sent anything, and then the new plan continues
    it; ``sent``: its moves, as a rollback has them. ``taken``: the runs that are taken over; ``inherited``,
    ``taken_moves`` and ``left``: their origins, what they have moved, and what they may have left in flight, as of an
    ``Inheritance``. ``origins``: those that are on record for the run of the new plan.
    ``log_dirs``: what all these runs have moved between log dirs.
    """

    opened: LoadedRun | None
    begun: Run | None
    sent: Collection[PartitionMove]
    taken: Sequence[Run]
    inherited: Mapping[TopicPartition, Origin]
    taken_moves: Mapping[TopicPartition, PartitionMove]
    left: Collection[TopicPartition]
    origins: Mapping[TopicPartition, Origin]
    log_dirs: Mapping[ReplicaKey, LogDirMove]

    @property
    def unproved(self) -> bool:
        """Whether one of these runs may have started at a server that only claimed the id of the cluster."""
        return any(run.unproved for run in (*self.taken, self.begun) if run is not None)

    @property
    def was_unproved(self) -> bool:
        """Whether one of these runs was ``unproved`` once."""
        return any(run.was_unproved for run in (*self.taken, self.begun) if run is not None)


async def earlier_work(
    uid: str, record: Record, stores: Stores, runs_to_take_over: Callable[[str], Awaitable[Sequence[Run]]]
) -> EarlierWork:
    """What was done before a new plan. A resource takes over runs (by its uid) only if it has had none itself."""
    opened, before = record.loaded_run, record.open_run
    # A run that has sent nothing has nothing to move back: a new plan is a new run.
    begun = before if before is not None and before.started_at is not None else None
    taken = await runs_to_take_over(uid) if record.run is None else ()
    inherited = await inherited_from(stores, taken)
    origins = inherited.origins if begun is None else record.origins
    way_back = None
    if opened is not None and begun is not None:
        way_back = await off_the_loop(opened.in_direction, origins, back=True)
    own_dirs = {move.key: move for move in way_back.log_dirs} if way_back is not None else {}
    return EarlierWork(
        opened=opened,
        begun=begun,
        sent=way_back.moves if way_back is not None else (),
        taken=taken,
        inherited=inherited.origins,
        taken_moves=inherited.moves,
        left=inherited.left,
        origins=origins,
        log_dirs={**inherited.log_dirs, **own_dirs},
    )


def still_its_own(
    work: EarlierWork,
    partitions: Mapping[TopicPartition, PartitionState],
    known: Mapping[TopicPartition, PartitionState],
    left_alone: Collection[TopicPartition],
) -> tuple[dict[TopicPartition, Origin], tuple[PartitionMove, ...], set[TopicPartition]]:
    """The origins and moves that a new plan keeps, and the partitions of these that were not read.

    Without those that others have moved since, or move now, also if a run that is taken over had moved them. Raises
    what ``moved_by_others`` and ``refuse_stale`` raise, for which ``left_alone`` is.
    """
    theirs = set(moved_by_others((*work.sent, *work.taken_moves.values()), partitions, known))
    for tp in work.inherited.keys() - work.left:
        if (state := partitions.get(tp)) is not None and state.in_flight:
            theirs.add(tp)  # nothing of the run was in flight when it ended
    origins = {tp: origin for tp, origin in work.origins.items() if tp not in theirs}
    earlier = tuple(m for m in (*work.sent, *moves_of(work.inherited.values())) if m.tp not in theirs)
    refuse_stale(earlier, partitions, known, left_alone)
    return origins, earlier, {move.tp for move in earlier} - partitions.keys()


def without_surplus_of(
    work: EarlierWork,
    earlier: Iterable[PartitionMove],
    partitions: Mapping[TopicPartition, PartitionState],
    asked: Callable[[TopicPartition], int],
    alive: Collection[BrokerId],
) -> dict[TopicPartition, PartitionState]:
    """The partitions that steps of these runs have left above their replication factors, as if brought back to them.

    The planner takes the length of a list for the replication factor, unless the spec asks for another one (``asked``;
    0: not for this partition). A revert cannot always drop what is too much, for example beside dead brokers, and a run
    that is let go drops nothing.
    """
    found = {}
    for move in earlier:
        state, last = partitions.get(move.tp), work.taken_moves.get(move.tp, move)
        if state is None or state.in_flight or state.topic_id != move.topic_id or not is_above(last, state):
            continue
        found[move.tp] = without_surplus(state, max(last.most, move.most, asked(move.tp)), alive)
    return found


def held_before(work: EarlierWork, earlier: Iterable[PartitionMove]) -> frozenset[BrokerId]:
    """The brokers on which these runs may have put partitions. Of one that is taken over, not only the origins."""
    return frozenset(broker for move in (*earlier, *work.taken_moves.values()) for broker in move.known)


def refuse_early(taken: Iterable[Run], now: datetime) -> None:
    """Transient("MetadataStale") while Kafka may still execute a call of a run that was let go.

    No run that ends otherwise leaves such calls. Nobody would undo a call that the plan does not see.
    """
    for run in taken:
        if run.outcome is RunOutcome.ABANDONED and run.closed_at is not None:
            # Clocks may be set back: then it does not wait for long.
            left = CALL_SECONDS - abs(now - run.closed_at).total_seconds()
            if left > 0:
                message = f"Kafka may still execute calls of {run.namespace}/{run.name}, which was let go"
                raise Transient(Reason.METADATA_STALE, message, left)


async def inherited_from(stores: Stores, taken: Iterable[Run]) -> Inheritance:
    """What a resource inherits of these runs, the oldest first. A deletion leads back to before them.

    Permanent("StoredStateCorrupt") if someone deleted the origins of one.
    """
    found = Inheritance()
    for run in taken:
        origins = await load_origins(stores, run)
        stored = await stores.plans.load(run.uid, run.plan_hash)
        opened = None
        if stored is not None:
            opened = await off_the_loop(loaded_run_of, run, stored.plan, stored.ref, origins, back=True)
        found = await off_the_loop(found.followed_by, origins, opened)
    return found


async def moves_to_keep(stores: Stores, rebalance: RebalanceView, plan: Plan) -> Collection[PartitionMove]:
    """The moves of the last success, as an undo has them, if the new plan has the hash of its plan and replaces it."""
    run = rebalance.record.run.last_to_undo if rebalance.record.run is not None else None
    if run is None or run.plan_hash != await asyncio.to_thread(lambda: plan.hash):
        return ()
    stored = await stores.plans.load(run.uid, run.plan_hash)
    origins = await stores.origins.load(run.uid, run.run_id)
    if stored is None or not origins:
        return ()
    return (await off_the_loop(loaded_run_of, run, stored.plan, stored.ref, origins, back=True)).moves


def moves_of(origins: Iterable[Origin]) -> Iterable[PartitionMove]:
    """Partitions that another run has touched, as it found them."""
    return (PartitionMove(o.tp, o.topic_id, o.replicas, o.replicas, o.replicas) for o in origins)
