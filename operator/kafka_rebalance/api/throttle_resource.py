"""spec and status of KafkaReassignmentThrottle: KIP-542's rates for one Kafka cluster, and KIP-236's freeze."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from kafka_rebalance.api.connection import Kafka
from kafka_rebalance.api.fields import (
    UNSET,
    ApiModel,
    BrokerNumber,
    PositiveInt,
    RateOrUnset,
    RateOverride,
    rule,
    rules,
)
from kafka_rebalance.api.resource_status import Count, ResourceStatus, ShortText, SourceName
from kafka_rebalance.execution.reassignment_throttle import Rates
from kafka_rebalance.model.topology import BrokerId

MAX_BROKER_ROWS = 50
_NO_SIDE = "set leaderRate, followerRate or both: -1 is unset"


class ClusterLimits(ApiModel):
    """KIP-435's limits over all rebalances of the cluster together. Absent: no ceiling."""

    parallel_partition_count: PositiveInt | None = Field(
        default=None,
        description="Partitions in flight at once (KIP-435 reassignment.parallel.partition.count).",
    )
    parallel_leader_movements: PositiveInt | None = Field(
        default=None,
        description="Partitions in flight at once whose leader changes (KIP-435 "
        "reassignment.parallel.leader.movements).",
    )
    max_concurrent_replica_movements: PositiveInt | None = Field(
        default=None,
        description="Replicas being added at once (KIP-435 reassignment.max.concurrent.replica.movements).",
    )


class WhenReplicationThrottled(StrEnum):
    """What becomes of a replication throttle that a broker has already (KIP-542)."""

    ADDITIVE = "Additive"
    SEPARATE = "Separate"


class BrokerRateOverride(ApiModel):
    """The rates of one broker, where they differ from the general ones."""

    # An entry without a side is a slip: a misspelt field may have been pruned before anybody could refuse it.
    model_config = ConfigDict(json_schema_extra=rules(rule("has(self.leaderRate) || has(self.followerRate)", _NO_SIDE)))

    id: BrokerNumber = Field(description="Id of the broker.")
    leader_rate: RateOverride | None = Field(
        default=None,
        description="Bytes per second that this broker may send to reassigning replicas. Absent: the general rate. "
        "-1: unset on this broker.",
    )
    follower_rate: RateOverride | None = Field(
        default=None,
        description="Bytes per second that this broker may fetch for reassigning replicas. Absent: the general rate. "
        "-1: unset on this broker.",
    )

    @model_validator(mode="after")
    def _some_side(self) -> Self:
        if self.leader_rate is None and self.follower_rate is None:
            raise ValueError(_NO_SIDE)
        return self


def _each_broker_once(rows: tuple[BrokerRateOverride, ...]) -> tuple[BrokerRateOverride, ...]:
    if len({row.id for row in rows}) != len(rows):
        raise ValueError("names a broker twice")
    return rows


BrokerOverrides = Annotated[
    tuple[BrokerRateOverride, ...],
    Field(
        max_length=1000,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
    ),
    AfterValidator(_each_broker_once),
]


class KafkaReassignmentThrottleSpec(ApiModel):
    """Limits of all reassignment traffic of one Kafka cluster."""

    kafka: Kafka = Field(description="The Kafka cluster. Cannot be changed.")
    leader_rate: RateOrUnset = Field(
        default=None,
        description="Bytes per second that each broker may send to reassigning replicas (KIP-542 "
        "leader.reassignment.throttled.rate). Absent or -1: unset.",
    )
    follower_rate: RateOrUnset = Field(
        default=None,
        description="Bytes per second that each broker may fetch for reassigning replicas (KIP-542 "
        "follower.reassignment.throttled.rate). Absent or -1: unset.",
    )
    brokers: BrokerOverrides = Field(
        default=(), description="Brokers whose rates differ from leaderRate and followerRate."
    )
    when_replication_throttled: WhenReplicationThrottled = Field(
        default=WhenReplicationThrottled.ADDITIVE,
        description="What holds on a broker that has a replication throttle already (KIP-542). Additive: its rate and "
        "ours are added up, for what was throttled before and what is reassigned together. Separate: the lower of the "
        "two holds for all of that. A rate of ours above its is refused either way.",
    )
    limits: ClusterLimits = Field(
        default=ClusterLimits(), description="Ceilings over all rebalances of the cluster together. Absent: none."
    )
    freeze: bool = Field(
        default=False,
        description="true: no rebalance of this cluster submits a new step. Cancelling remains possible (KIP-236).",
    )

    def rates_on(self, brokers: Iterable[BrokerId]) -> dict[BrokerId, Rates]:
        """Bytes per second that this resource allows each of the brokers; None: unset on that side."""
        general = Rates(self.leader_rate, self.follower_rate)
        own = {
            row.id: Rates(_rate(row.leader_rate, general.leader), _rate(row.follower_rate, general.follower))
            for row in self.brokers
        }
        return {broker: own.get(broker, general) for broker in brokers}

    @property
    def sets_rates(self) -> bool:
        """Whether it limits any broker at all; otherwise it is there for ``limits`` or ``freeze``."""
        general = (self.leader_rate, self.follower_rate)
        own = (rate for row in self.brokers for rate in (row.leader_rate, row.follower_rate))
        return any(rate not in {None, UNSET} for rate in (*general, *own))


def _rate(own: int | None, general: int | None) -> int | None:
    if own is None:
        return general
    return None if own == UNSET else own


class ThrottledBroker(ApiModel):
    """What limits reassignments on one broker now, and what they take."""

    id: BrokerNumber = Field(description="Id of the broker.")
    leader_rate: Count | None = Field(
        default=None, description="Bytes per second in force in Kafka, sending side. Absent: not limited by us."
    )
    leader_claim: SourceName | None = Field(default=None, description="Whose limit that is: the lowest of all.")
    leader_bytes_per_second: Count | None = Field(
        default=None, description="Bytes per second that it sends to reassigning replicas, as measured."
    )
    leader_utilisation_percent: Count | None = Field(
        default=None, description="Share of leaderRate that is used. Absent: not known."
    )
    follower_rate: Count | None = Field(
        default=None, description="Bytes per second in force in Kafka, fetching side. Absent: not limited by us."
    )
    follower_claim: SourceName | None = Field(default=None, description="Whose limit that is: the lowest of all.")
    follower_bytes_per_second: Count | None = Field(
        default=None, description="Bytes per second that it fetches for reassigning replicas, as measured."
    )
    follower_utilisation_percent: Count | None = Field(
        default=None, description="Share of followerRate that is used. Absent: not known."
    )


class ThrottleDisplay(ApiModel):
    """Ready-made text for the columns of kubectl get: one rate, from lowest to highest, or - where unset."""

    leader: ShortText = Field(
        description="Sending side, like 50.0 MiB/s: what is in force; while nothing is, what the spec asks for."
    )
    follower: ShortText = Field(
        description="Fetching side, like 50.0 MiB/s: what is in force; while nothing is, what the spec asks for."
    )


class KafkaReassignmentThrottleStatus(ResourceStatus):
    """What became of the limits."""

    brokers: Annotated[
        tuple[ThrottledBroker, ...],
        Field(max_length=MAX_BROKER_ROWS, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = Field(default=(), description="Brokers on which reassignments are limited, by id; the first 50.")
    brokers_total: Count = Field(default=0, description="Number of brokers on which reassignments are limited.")
    throttled_replicas: Count = Field(default=0, description="Reassigning replicas that are limited.")
    foreign_reassignments: Count = Field(
        default=0, description="Reassignments of others among them, by partitions: no KafkaRebalance started them."
    )
    reverts: Count = Field(default=0, description="How often somebody undid the limits, and they were put back.")
    display: ThrottleDisplay | None = Field(default=None, description="Text for the columns of kubectl get.")
