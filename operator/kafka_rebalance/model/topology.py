"""Brokers, partitions and their state in Kafka at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, NewType

from kafka_rebalance.model.bulk import made_in_bulk
from kafka_rebalance.model.kafka_version import KafkaVersion

BrokerId = NewType("BrokerId", int)
Replicas = tuple[BrokerId, ...]
"""An assignment of one partition: broker ids, the preferred leader first."""


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then by number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def internal(self) -> bool:
        """Whether the topic is Kafka's own (``__consumer_offsets`` and its like)."""
        return self.topic.startswith("__")


ReplicaKey = tuple[TopicPartition, BrokerId]
"""One replica: its partition and its broker."""


def replicas_of(*ids: int) -> Replicas:
    """Plain integers as an assignment."""
    return tuple(BrokerId(i) for i in ids)


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that is registered and not fenced; ``rack`` is None where none is configured."""

    id: BrokerId
    rack: str | None = None
    host: str = ""
    port: int = 0


@made_in_bulk
@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition as metadata and the listing of reassignments show it.

    ``replicas`` is the full present set, in preferred order; while a reassignment is in flight it includes ``adding``
    and ``removing``. ``isr`` comes from metadata. Only ``isr`` proves that a replica is in sync; an empty listing does
    not, because the two sources are not read at the same time.
    """

    tp: TopicPartition
    topic_id: str
    replicas: Replicas
    isr: frozenset[BrokerId]
    leader: BrokerId | None
    adding: Replicas = ()
    removing: Replicas = ()

    @property
    def in_flight(self) -> bool:
        """Whether a reassignment of this partition is listed."""
        return bool(self.adding or self.removing)

    @property
    def wedged(self) -> bool:
        """Whether the reassignment can never end: Kafka 4.3 adds and removes the same broker."""
        return bool(set(self.adding) & set(self.removing))


@dataclass(frozen=True, slots=True)
class ClusterState:
    """As last read: what moves in this round, the rest up to half a minute ago.

    ``brokers`` holds the live ones only; ``partitions`` those that were asked for. ``version`` None: not read.
    """

    cluster_id: str
    brokers: Mapping[BrokerId, Broker]
    partitions: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    version: KafkaVersion | None = None
