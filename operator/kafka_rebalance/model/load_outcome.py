"""What a plan does to the load of the brokers, and what is known of the bytes that this needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.topology import BrokerId

MOST_ROWS = 50
"""Number of brokers outside of their bands that a plan names."""


class OutsideReason(StrEnum):
    """Why a broker stays outside of a band.

    PartitionTooLarge: one of its partitions alone uses more than the band allows. The next four name the only
    obstacle to steps that were tried, in this order: the rack rule, the movement budget, the capacity limit of other
    brokers, even counts (of all topics or of each). NoExchangeFound: the search found no step; there may be one.
    """

    PARTITION_TOO_LARGE = "PartitionTooLarge"
    RACK_RULE = "RackRule"
    MOVEMENT_BUDGET = "MovementBudget"
    CAPACITY_LIMIT = "CapacityLimit"
    EVEN_COUNTS = "EvenCounts"
    NO_EXCHANGE_FOUND = "NoExchangeFound"


@dataclass(frozen=True, slots=True)
class ResourceBalance:
    """One resource, over the target brokers, in the unit of the resource (bytes, or bytes per second).

    ``shares``, ``before`` and ``after`` are by broker, in the order of ``LoadOutcome.brokers``. A broker's share is its
    part of the total, in proportion to the capacities if all are known. ``peak_before`` and ``peak_after``: the highest
    use of a broker in percent of its share. ``outside_before`` and ``outside_after``: brokers above the band.
    """

    resource: LoadResource
    band: int
    peak_before: float
    peak_after: float
    outside_before: int
    outside_after: int
    shares: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    def peak_of(self, used: Sequence[float]) -> int | None:
        """The highest of these uses by broker in percent of the broker's share of their total; None: nothing is used.

        That is how a prediction compares with what was measured, although the total has changed since.
        """
        total, shares = sum(used), sum(self.shares)
        if not total or not all(self.shares):
            return None
        return round(100 * max(use * shares / share for use, share in zip(used, self.shares, strict=True)) / total)


@dataclass(frozen=True, slots=True)
class OutsideBroker:
    """A broker that stays above the band of a resource: its use, what the band allows, and why."""

    broker: BrokerId
    resource: LoadResource
    use: int
    allowed: int
    reason: OutsideReason


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    """The resources in order of priority, the bytes that the plan copies, and a lower bound on them.

    The bound holds for plans with counts as even and at most the same use above the bands. Other plans may copy less.
    ``brokers`` are the target brokers. ``outside`` are those that stay above a band, at most ``MOST_ROWS``.
    """

    resources: tuple[ResourceBalance, ...]
    data: int
    data_lower_bound: int
    brokers: tuple[BrokerId, ...]
    outside: tuple[OutsideBroker, ...] = ()

    @property
    def gap(self) -> float:
        """The bytes divided by their bound; 1 is proved to be the least."""
        return self.data / self.data_lower_bound if self.data_lower_bound else float(self.data > 0) + 1.0

    @property
    def relieves(self) -> bool:
        """Whether fewer brokers are outside of some band than before."""
        return any(resource.outside_after < resource.outside_before for resource in self.resources)

    @property
    def within_bands(self) -> bool:
        """Whether no broker stays outside."""
        return not any(resource.outside_after for resource in self.resources)
