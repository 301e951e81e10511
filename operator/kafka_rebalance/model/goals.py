"""How targets are chosen: the choices of ``spec.strategy`` and ``spec.goals``, as the planner takes them too."""

from dataclasses import dataclass
from enum import StrEnum


class RackAwareness(StrEnum):
    """How the rack rule ranks.

    Enforced: above balance; violations are only those that no placement avoids. Preferred: below balance, above
    moves. Disabled: racks are not looked at.
    """

    ENFORCED = "Enforced"
    PREFERRED = "Preferred"
    DISABLED = "Disabled"


class Strategy(StrEnum):
    """How targets are chosen."""

    MINIMAL_MOVEMENT = "MinimalMovement"
    FORCED_MOVES_ONLY = "ForcedMovesOnly"
    GENERATE = "Generate"
    ASSIGNMENT = "Assignment"
    PREFERRED_LEADERS = "PreferredLeaders"
    LOG_DIRS = "LogDirs"


class Balance(StrEnum):
    """Over what replicas are counted: all selected partitions, those of each topic, or both at once."""

    TOTAL = "Total"
    PER_TOPIC = "PerTopic"
    BOTH = "Both"


class LoadResource(StrEnum):
    """What replicas use of a broker.

    Disk: bytes of its replicas. BytesIn: bytes per second written to its replicas, by producers and by replication.
    BytesOut: bytes per second sent by its leaders, to consumers and to followers. LeaderBytesIn: bytes per second
    that producers write to its leaders.
    """

    DISK = "Disk"
    BYTES_IN = "BytesIn"
    BYTES_OUT = "BytesOut"
    LEADER_BYTES_IN = "LeaderBytesIn"


class LoadStatistic(StrEnum):
    """Which figure of a partition's rate over the model's window counts. Sizes have only the latest value."""

    MEAN = "Mean"
    P50 = "P50"
    P95 = "P95"
    P99 = "P99"
    MAX = "Max"


MINIMUM_COVERAGE_SECONDS = 900
"""Three windows of five minutes."""


@dataclass(frozen=True, slots=True)
class LoadGoal:
    """One resource to be balanced: ``band`` and ``capacity_limit`` in percent.

    A broker is within its band if its use is at most ``band`` percent above its share of the total, in proportion to
    the capacities. ``capacity_limit``, percent of a broker's capacity, is never exceeded, on the way either; None: no
    limit. A rate that covers less than ``minimum_coverage_seconds`` counts as unknown.
    """

    resource: LoadResource
    band: int = 10
    capacity_limit: int | None = 80
    statistic: LoadStatistic = LoadStatistic.P95
    minimum_coverage_seconds: int = MINIMUM_COVERAGE_SECONDS
