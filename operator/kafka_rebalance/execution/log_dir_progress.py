"""How far the copies between log dirs are, and how long they take at least. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_rebalance.model.topology import BrokerId


@dataclass(frozen=True, slots=True)
class LogDirProgress:
    """Copies between log dirs, and their bytes. Those of skipped replicas are left out."""

    total: int = 0
    completed: int = 0
    in_flight: int = 0
    bytes_total: int = 0
    bytes_moved: int = 0
    bytes_left: Mapping[BrokerId, int] = field(default_factory=dict)


def seconds_at_rate(bytes_left: Mapping[BrokerId, int], rate: int | None) -> float:
    """How long the copies of the busiest broker take at least at this rate, in bytes per second."""
    return max(bytes_left.values(), default=0) / rate if rate else 0.0
