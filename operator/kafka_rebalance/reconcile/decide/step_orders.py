"""What is sent for the rebalances of one cluster together: the one place where all caps hold. Pure."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from kafka_rebalance.api.throttle_resource import ClusterLimits
from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.execution.copy_order import BytesInOut
from kafka_rebalance.execution.disk_space import DiskSpace
from kafka_rebalance.execution.limits import Ceilings
from kafka_rebalance.execution.list_budget import ListBudget
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.rate_order import held_back
from kafka_rebalance.execution.ready_calls import ReadyCalls
from kafka_rebalance.execution.schedule import Orders, RebalanceShare, schedule
from kafka_rebalance.model.rate_room import RateKey
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, TopicPartition
from kafka_rebalance.reconcile.decide.direction import by_precedence, going_back
from kafka_rebalance.reconcile.observe.cluster_readings import DiskReading
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import LoadedRun


def choice_for(
    running: Sequence[RebalanceView],
    cluster: ClusterState,
    ruling: KafkaReassignmentThrottle | None,
    on_disks: DiskReading,
    list_budget: ListBudget,
    *,
    copying: bool = True,
) -> Callable[[], dict[str, Orders]]:
    """What finds the orders, by uid. It looks at nothing that may change, so that it can be asked in a thread.

    Within each rebalance's own limits, and within those of the throttle resource over all of them.

    Rollbacks come first, then the higher priority, then the older resource. ``copying`` False: only calls that copy
    nothing.
    """
    limits = ruling.spec.limits if ruling else ClusterLimits()
    ceilings = Ceilings(
        limits.parallel_partition_count, limits.parallel_leader_movements, limits.max_concurrent_replica_movements
    )
    first = [r for r in by_precedence(running) if r.record.loaded_run is not None]
    shares = [
        RebalanceShare(
            r.assessment.statuses.by_partition,
            run.sizes,
            r.desired.limits,
            run.starts if going_back(r) else run.goals,
            _kept_free(r, on_disks.space),
            r.assessment.statuses.notable,
            _ready(r),
            coming=_coming(r),
            waiting=_waiting(r),
            held=_held(r, run, cluster),
        )
        for r in first
        if (run := r.record.loaded_run) is not None
    ]
    free = {broker: space.fullest for broker, space in on_disks.space.items()} if copying else {}
    for share in shares if free else ():
        for broker, size in _arrived_since(share, cluster, on_disks):
            if broker in free:
                free[broker] -= size
    uids = [rebalance.desired.uid for rebalance in first]
    nothing = {rebalance.desired.uid: Orders() for rebalance in first if _is_held_unsent(rebalance)}

    def chosen() -> dict[str, Orders]:
        sizes, in_flight = on_disks.replica_bytes, on_disks.in_flight
        found = schedule(shares, cluster, ceilings, free, sizes, list_budget, in_flight, copying=copying)
        return dict(zip(uids, found, strict=True)) | nothing

    return chosen


def _is_held_unsent(rebalance: RebalanceView) -> bool:
    """Whether it may start no step and has sent nothing: what looks like a step of its plan was begun by others."""
    run = rebalance.record.run
    return rebalance.assessment.step_block is not None and run is not None and run.started_at is None


def _ready(rebalance: RebalanceView) -> ReadyCalls | None:
    """The calls that are ready now; None: to be found."""
    statuses, ready = rebalance.assessment.statuses, rebalance.assessment.judgement.ready
    return ready.of_pause() if ready is not None and statuses.paused else ready


def _coming(rebalance: RebalanceView) -> Mapping[BrokerId, int] | None:
    """Bytes that may come to each broker at most; None: not known for where it goes in the end."""
    tally = rebalance.assessment.judgement.tally
    if tally is None or (tally.direction is Direction.FORWARD) is going_back(rebalance):
        return None
    return tally.coming


def _waiting(rebalance: RebalanceView) -> BytesInOut | None:
    """Bytes that are still to be copied and are not in flight; None: not known for its direction."""
    tally = rebalance.assessment.judgement.tally
    if tally is None or (tally.direction is Direction.FORWARD) is going_back(rebalance):
        return None
    return tally.waiting


def _held(rebalance: RebalanceView, run: LoadedRun, cluster: ClusterState) -> Mapping[TopicPartition, RateKey]:
    """The partitions that may not begin now because of the limit of a rate."""
    judgement = rebalance.assessment.judgement
    if run.rate_order is None or judgement.direction is None:
        return {}
    no_room = rebalance.assessment.no_room.keys() | rebalance.assessment.list_full
    statuses, direction = judgement.statuses.by_partition, judgement.direction
    return held_back(run.rate_order, statuses, cluster.partitions, direction, no_room)


def _arrived_since(
    share: RebalanceShare, cluster: ClusterState, on_disks: DiskReading
) -> Iterator[tuple[BrokerId, int]]:
    """Brokers, and bytes that copies took there since the disks were read: these are not free any more."""
    for tp in on_disks.recent:
        status, state = share.statuses.get(tp), cluster.partitions.get(tp)
        if status is None or state is None or not (status.started or status.phase is MovePhase.DONE):
            continue
        goal = share.goals.get(tp, ())
        for broker in state.replicas:
            if broker in goal and broker not in state.adding and on_disks.was_incomplete(tp, broker):
                yield broker, max(0, share.sizes.get(tp, 0) - on_disks.replica_bytes.get((tp, broker), 0))


def _kept_free(rebalance: RebalanceView, disks: Mapping[BrokerId, DiskSpace]) -> dict[BrokerId, int]:
    """What copies leave usable for the limit of the load goal. A rollback needs all available room."""
    limit = rebalance.desired.spec.goals.disk_limit
    if limit is None or going_back(rebalance):
        return {}
    return {broker: kept for broker, space in disks.items() if (kept := space.kept_free(limit))}


def unchanged_orders(
    orders: Orders, before: Mapping[TopicPartition, PartitionStatus], after: Mapping[TopicPartition, PartitionStatus]
) -> Orders:
    """The orders for partitions whose status is the same after a second look as it was ``before``.

    Topics are read as a whole, so the second look also shows partitions that needed none.
    """
    return orders_where(orders, lambda tp: after[tp] == before[tp])


def orders_within(orders: Orders, tps: Collection[TopicPartition]) -> Orders:
    """The orders for these partitions."""
    return orders_where(orders, lambda tp: tp in tps)


def orders_without(orders: Orders, tps: Collection[TopicPartition]) -> Orders:
    """The orders for all other partitions."""
    return orders_where(orders, lambda tp: tp not in tps)


def named_by(orders: Orders) -> Collection[TopicPartition]:
    """The partitions that the orders are about."""
    return (*orders.cancels, *orders.alters, *orders.elections)


def may_lessen_isr(orders: Orders, partitions: Mapping[TopicPartition, PartitionState]) -> set[TopicPartition]:
    """Those that may have fewer replicas in sync afterwards: a null gives up copies, a list may leave more out."""
    found = set(orders.cancels)
    for tp, replicas in orders.alters.items():
        if (state := partitions.get(tp)) is not None and state.isr.difference(replicas):
            after = state.isr.intersection(replicas).union(set(replicas).difference(state.replicas))
            if len(after) < len(state.isr):
                found.add(tp)
    return found


def changed_since(
    orders: Orders,
    before: Mapping[TopicPartition, PartitionState],
    now: Mapping[TopicPartition, PartitionState],
) -> set[TopicPartition]:
    """The partitions of the orders that differ from the reading by which these were chosen, or could not be read.

    The ISR counts only for orders that give up a replica in sync: others cannot make it worse.
    """
    nulls, found = set(orders.cancels), set()
    for tp in named_by(orders):
        then, state = before[tp], now.get(tp)
        if state is None or then.topic_id not in {"", state.topic_id}:
            found.add(tp)
            continue
        stay = set(then.replicas) - set(then.adding) if tp in nulls else set(orders.alters.get(tp, then.replicas))
        same = (then.replicas, then.adding, then.removing) == (state.replicas, state.adding, state.removing)
        if not same or _gives_up_more(stay, then.isr, state.isr):
            found.add(tp)
    return found


def _gives_up_more(stay: AbstractSet[BrokerId], before: AbstractSet[BrokerId], now: AbstractSet[BrokerId]) -> bool:
    """Whether fewer replicas would ``stay`` in sync than by the ISR ``before``, or more in sync would be given up."""
    given_up = now - stay
    return bool(given_up) and (len(now & stay) < len(before & stay) or len(given_up) > len(before - stay))


def further_called(rebalance: RebalanceView, orders: Orders, called: Collection[TopicPartition]) -> bool:
    """Whether a call of the round may be followed by another one: not all were the last ones of their partitions."""
    run = rebalance.record.loaded_run
    if run is None:
        return False
    goals = run.starts if going_back(rebalance) else run.goals
    return any(orders.alters.get(tp) != goals.get(tp) for tp in called)


def orders_where(orders: Orders, holds: Callable[[TopicPartition], bool]) -> Orders:
    """The orders for the partitions of which this holds."""
    return replace(
        orders,
        cancels=tuple(tp for tp in orders.cancels if holds(tp)),
        alters={tp: to for tp, to in orders.alters.items() if holds(tp)},
        elections=tuple(tp for tp in orders.elections if holds(tp)),
    )
