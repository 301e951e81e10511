"""What a plan knows of the limits of rates, so that its steps keep them on the way too, and not only at its end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.topology import BrokerId, TopicPartition


class RateKey(NamedTuple):
    """One rate of one broker."""

    broker: BrokerId
    resource: LoadResource


@dataclass(frozen=True)
class RateRoom:
    """Of the tight rates of brokers: those of which more may come to the broker than is free before the first step.

    All others are within their limits in any order of the steps. ``free``: bytes per second below the limit before the
    first step; 0 on a broker that is above its limit. ``rates``: bytes per second of the partitions of the plan that
    change the use of a tight rate: of each replica for BytesIn, else of the leader.
    """

    free: Mapping[RateKey, int]
    rates: Mapping[TopicPartition, Mapping[LoadResource, int]]
