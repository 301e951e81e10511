"""Reads the live cluster and has it planned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafka_rebalance.api.topics import TopicFilter
from kafka_rebalance.api.v1alpha1 import KafkaRebalanceSpec
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.decide import FOREIGN, WEDGED, Errand
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaAdmin
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.plan import Plan, PlannedPartition, SkippedPartition
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.planning.request import Goals, PartitionInput, PlanRequest, eligible_brokers
from kafka_rebalance.planning.request import RackAwareness as PlanningRackAwareness
from kafka_rebalance.reconcile.solving import solve


def select(
    spec: KafkaRebalanceSpec, partitions: Mapping[TopicPartition, PartitionState]
) -> dict[TopicPartition, PartitionState]:
    """The partitions that the spec's topic filter takes."""
    chosen = TopicFilter.of(spec.topics)
    topics = {topic for topic in {tp.topic for tp in partitions} if chosen.matches(topic)}
    return {tp: state for tp, state in partitions.items() if tp.topic in topics}


async def make_plan(
    spec: KafkaRebalanceSpec,
    info: ClusterInfo,
    selected: Mapping[TopicPartition, PartitionState],
    load: LoadModel,
) -> Plan:
    """A plan for the selected partitions as they are.

    Refused names what the cluster cannot give. Transient("ClusterUnhealthy") where a broker that holds replicas is
    away: it may just be restarting, and nobody said that it shall be emptied.
    """
    # A list that somebody else is just changing is no list to plan from: it has copies too many.
    resting = {tp: state for tp, state in selected.items() if not state.in_flight}
    busy = [
        SkippedPartition(tp, WEDGED if selected[tp].wedged else FOREIGN) for tp in sorted(selected.keys() - resting)
    ]
    holders = frozenset(b for state in resting.values() for b in state.replicas)
    live = tuple(sorted(info.brokers.values(), key=lambda broker: broker.id))
    include, decommission = _ids(spec.brokers.include), _ids(spec.brokers.decommission)
    targets = eligible_brokers(live, include, decommission, holders)
    away = holders - set(info.brokers) - decommission
    if away and not include:
        names = ", ".join(str(b) for b in sorted(away))
        names = f"broker {names} holds" if len(away) == 1 else f"brokers {names} hold"
        raise Transient(
            "ClusterUnhealthy",
            f"{names} replicas but not live; planned on their return. If gone for good: spec.brokers.decommission",
            retry_after=15,
        )
    request = PlanRequest(
        brokers=live,
        partitions=tuple(
            PartitionInput(tp, state.replicas, state.topic_id, load.size_bytes(tp), state.leader is not None)
            for tp, state in sorted(resting.items())
        ),
        targets=targets,
        goals=Goals(
            rack_awareness=PlanningRackAwareness(spec.goals.rack_awareness.value),
            leaders=spec.goals.leaders,
            follower_order=spec.goals.follower_order,
        ),
    )
    made = await solve(request)
    return replace(made, skipped=(*made.skipped, *busy))


def refuse_stale(earlier: Iterable[Errand], partitions: Mapping[TopicPartition, PartitionState]) -> None:
    """Transient("MetadataStale") while metadata still shows copies that a cancel has just taken back.

    Planned from such a list, the partition would keep a replica too many for ever.
    """
    for errand in earlier:
        state = partitions.get(errand.tp)
        if state is not None and len(state.replicas) > len(errand.origin) and set(state.replicas) <= errand.known:
            raise Transient("MetadataStale", f"{errand.tp} still shows {list(state.replicas)}; reading again", 1.0)


def with_earlier_errands(
    made: Plan, earlier: Iterable[Errand], partitions: Mapping[TopicPartition, PartitionState]
) -> Plan:
    """The plan plus the partitions that an earlier plan of the same run touched and this one leaves where they are."""
    planned = {p.tp for p in made.partitions}
    left = [
        PlannedPartition(e.tp, partitions[e.tp].replicas, partitions[e.tp].replicas, e.topic_id, e.size_bytes)
        for e in earlier
        if e.tp not in planned and e.tp in partitions
    ]
    return replace(made, partitions=tuple(sorted((*made.partitions, *left)))) if left else made


async def live_sizes(admin: KafkaAdmin, info: ClusterInfo) -> LoadModel:
    """Sizes from the brokers' log dirs: per partition the largest replica."""
    sizes: dict[TopicPartition, int] = {}
    for dirs in (await admin.log_dirs(tuple(info.brokers))).values():
        for log_dir in dirs:
            for tp, size in log_dir.replica_bytes.items():
                sizes[tp] = max(size, sizes.get(tp, 0))
    loads = {tp: PartitionLoad(size) for tp, size in sizes.items()}
    return LoadModel("LogDirs", None, loads, info.cluster_id)


def _ids(ids: Iterable[int]) -> frozenset[BrokerId]:
    return frozenset(BrokerId(i) for i in ids)
