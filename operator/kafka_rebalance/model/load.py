"""What is known about how much a partition holds and takes in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kafka_rebalance.model.topology import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """``size_bytes`` of one replica (the largest seen); ``bytes_in_per_second`` produced to the partition."""

    size_bytes: int
    bytes_in_per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class LoadModel:
    """Loads by partition, and how fresh they are. ``source`` is LoadModel (the pipeline's) or LogDirs (read live)."""

    source: str
    measured_at: datetime | None
    partitions: Mapping[TopicPartition, PartitionLoad] = field(default_factory=dict)
    cluster_id: str | None = None

    def size_bytes(self, tp: TopicPartition) -> int:
        """Bytes of one replica; 0 where nothing is known."""
        load = self.partitions.get(tp)
        return load.size_bytes if load else 0

    def bytes_in_per_second(self, tp: TopicPartition) -> float:
        """Bytes per second produced to the partition; 0 where nothing is known."""
        load = self.partitions.get(tp)
        return load.bytes_in_per_second if load else 0.0
