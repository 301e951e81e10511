"""The known load of partitions: sizes and produce rates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kafka_rebalance.model.topology import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """``size_bytes`` of one replica; ``bytes_in_per_second`` produced to the partition, None where not known.

    The mean is over ``covered_seconds`` of the model's window, the time between samples that could be compared;
    ``bytes_in_p95`` and ``bytes_in_max`` are of the same intervals. ``topic_id`` is empty where it was not measured.
    ``replica_bytes``: the sizes of the replicas whose brokers answered.
    """

    size_bytes: int
    bytes_in_per_second: float | None = None
    bytes_in_p95: float | None = None
    bytes_in_max: float | None = None
    covered_seconds: float = 0.0
    topic_id: str = ""
    replica_bytes: Mapping[BrokerId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadModel:
    """Loads by partition, and how fresh they are. ``source`` is LoadModel (the pipeline's) or LogDirs (read live).

    ``measured_at`` is the time of the newest sample, ``window_start`` that of the oldest one of ``samples``.
    """

    source: str
    measured_at: datetime | None
    partitions: Mapping[TopicPartition, PartitionLoad] = field(default_factory=dict)
    cluster_id: str | None = None
    window_start: datetime | None = None
    samples: int = 0

    def knows(self, tp: TopicPartition, topic_id: str) -> bool:
        """Whether the load is of this topic, not of an earlier one of the same name. An empty id matches any topic."""
        load = self.partitions.get(tp)
        return load is not None and (not load.topic_id or not topic_id or load.topic_id == topic_id)

    def size_bytes(self, tp: TopicPartition) -> int:
        """Bytes of one replica; 0 where nothing is known."""
        load = self.partitions.get(tp)
        return load.size_bytes if load else 0

    def bytes_in_per_second(self, tp: TopicPartition) -> float:
        """Bytes per second produced to the partition; 0 where nothing is known."""
        load = self.partitions.get(tp)
        return (load.bytes_in_per_second or 0.0) if load else 0.0
