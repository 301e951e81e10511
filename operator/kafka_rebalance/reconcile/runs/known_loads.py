"""What is known of the partitions' load: sizes read live, and what the pipeline's load model adds.

A model is up to a day old, so a live size always wins. The model gives rates, and sizes where a broker did not answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import LogDir
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.planning.problem.request import Goals
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.observe.cluster_readings import sizes_in

LiveSizes = Mapping[BrokerId, Mapping[TopicPartition, int]]
"""Bytes of each replica, by the brokers that answered."""


class PartitionSize(NamedTuple):
    """Bytes that a new copy takes, and those of each present replica, in the order of the partition's replicas."""

    new_copy: int
    replica_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KnownLoads:
    """``sizes`` lacks partitions of unknown size; ``model`` None: none that could be used."""

    sizes: Mapping[TopicPartition, PartitionSize] = field(default_factory=dict)
    model: LoadModel | None = None

    @property
    def source(self) -> str:
        """LogDirs (the brokers alone) or LoadModel (sizes that the brokers do not report come from the model)."""
        return self.model.source if self.model is not None else "LogDirs"


def live_sizes(answered: Mapping[BrokerId, tuple[LogDir, ...]]) -> LiveSizes:
    """From the log dirs of the brokers that answered."""
    return {broker: sizes_in(dirs) for broker, dirs in answered.items()}


@without_collector()
def known_loads(
    live: LiveSizes, model: LoadModel | None, partitions: Mapping[TopicPartition, PartitionState]
) -> KnownLoads:
    """What is known of these partitions."""
    sizes = {}
    on_brokers: dict[BrokerId, Callable[[TopicPartition], Any]] = {broker: of.get for broker, of in live.items()}
    nothing = dict[TopicPartition, Any]().get
    for tp, state in partitions.items():
        replicas, leader = state.replicas, state.leader
        each = tuple([on_brokers.get(b, nothing)(tp) for b in replicas])
        if leader in replicas and None not in each:  # as of most partitions
            sizes[tp] = PartitionSize(each[replicas.index(leader)], each)
            continue
        here = {b: live[b][tp] for b in state.replicas if b in live and tp in live[b]}
        stored = None
        if model is not None and len(here) < len(state.replicas):
            stored = model.load_of(tp, state.topic_id)
        new_copy = _new_copy(state, here)
        if new_copy is None and stored is not None:
            new_copy = stored.size_bytes
        if new_copy is None:
            new_copy = max(here.values(), default=None)
        if new_copy is None:
            continue
        earlier = stored.replica_bytes if stored is not None else {}
        sizes[tp] = PartitionSize(new_copy, tuple(here.get(b, earlier.get(b, new_copy)) for b in state.replicas))
    return KnownLoads(sizes, model)


def _new_copy(state: PartitionState, here: Mapping[BrokerId, int]) -> int | None:
    """The leader's size, which is what a new replica copies; else that of the largest replica in sync."""
    if state.leader is not None and state.leader in here:
        return here[state.leader]
    return max((size for broker, size in here.items() if broker in state.isr), default=None)


def refuse_unknown_sizes(goals: Goals, loads: KnownLoads, partitions: Mapping[TopicPartition, PartitionState]) -> None:
    """Transient("SizesUnknown") if a goal needs sizes and that of a partition is not known.

    One without a leader is not moved, and its brokers may be gone for good.
    """
    by_disk = any(goal.resource is LoadResource.DISK for goal in goals.load)
    if goals.max_data_to_move is None and not by_disk:
        return
    unknown = sorted(tp for tp, state in partitions.items() if state.leader is not None and tp not in loads.sizes)
    if unknown:
        examples = ", ".join(str(tp) for tp in unknown[:5])
        needs = "goals.maxDataToMove" if goals.max_data_to_move is not None else "goals.load by Disk"
        message = f"no broker reports the size of {len(unknown)} partitions ({examples}), which {needs} needs"
        raise Transient(Reason.SIZES_UNKNOWN, message, retry_after=15)
