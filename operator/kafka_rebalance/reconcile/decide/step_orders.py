"""What is sent for the rebalances of one cluster together: the one place where all caps hold. Pure."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from kafka_rebalance.api.throttle_resource import ClusterLimits
from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.execution.disk_space import DiskSpace
from kafka_rebalance.execution.list_budget import ListBudget
from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.execution.schedule import Ceilings, Orders, RebalanceShare, schedule
from kafka_rebalance.model.topology import BrokerId, ClusterState, TopicPartition
from kafka_rebalance.reconcile.decide.direction import by_precedence, going_back
from kafka_rebalance.reconcile.state.rebalance import RebalanceView

WasIncomplete = Callable[[TopicPartition, BrokerId], bool]


def orders_for(
    running: Sequence[RebalanceView],
    cluster: ClusterState,
    ruling: KafkaReassignmentThrottle | None,
    disks: Mapping[BrokerId, DiskSpace],
    replica_bytes: ReplicaBytes,
    list_budget: ListBudget,
    incomplete: WasIncomplete = lambda _tp, _broker: False,
) -> dict[str, Orders]:
    """By uid: within each rebalance's own limits, and within those of the throttle resource over all of them.

    Rollbacks come first, then the higher priority, then the older resource. ``incomplete``: whether a replica was
    not on its disk, or not completely, when ``disks`` were read.
    """
    limits = ruling.spec.limits if ruling else ClusterLimits()
    ceilings = Ceilings(
        limits.parallel_partition_count, limits.parallel_leader_movements, limits.max_concurrent_replica_movements
    )
    first = by_precedence(running)
    shares = [
        RebalanceShare(
            r.assessment.statuses.by_partition,
            {m.tp: m.size_bytes for m in r.record.moves},
            r.desired.limits,
            {m.tp: m.origin if going_back(r) else m.target for m in r.record.moves},
            _kept_free(r, disks),
        )
        for r in first
    ]
    free = {broker: space.fullest for broker, space in disks.items()}
    for share in shares if free else ():
        for broker, size in _arrived_since(share, cluster, replica_bytes, incomplete):
            if broker in free:
                free[broker] -= size
    chosen = schedule(shares, cluster, ceilings, free, replica_bytes, list_budget)
    return {rebalance.desired.uid: orders for rebalance, orders in zip(first, chosen, strict=True)}


def _arrived_since(
    share: RebalanceShare, cluster: ClusterState, replica_bytes: ReplicaBytes, incomplete: WasIncomplete
) -> Iterator[tuple[BrokerId, int]]:
    """Brokers, and bytes that copies took there since the disks were read: these are not free any more."""
    for tp, status in share.statuses.items():
        state = cluster.partitions.get(tp)
        if state is None or not (status.started or status.phase is MovePhase.DONE):
            continue
        for broker in state.replicas:
            if broker in share.goals.get(tp, ()) and broker not in state.adding and incomplete(tp, broker):
                yield broker, max(0, share.sizes.get(tp, 0) - replica_bytes.get((tp, broker), 0))


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

    Partitions that are not in ``before`` needed no second look.
    """

    def holds(tp: TopicPartition) -> bool:
        return tp not in before or after[tp] == before[tp]

    return replace(
        orders,
        cancels=tuple(tp for tp in orders.cancels if holds(tp)),
        alters={tp: to for tp, to in orders.alters.items() if holds(tp)},
        elections=tuple(tp for tp in orders.elections if holds(tp)),
    )


def named_by(orders: Orders) -> Collection[TopicPartition]:
    """The partitions that the orders are about."""
    return (*orders.cancels, *orders.alters, *orders.elections)
