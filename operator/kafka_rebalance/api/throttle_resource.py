"""spec and status of KafkaReassignmentThrottle: KIP-542's rates of one Kafka cluster, and KIP-236's freeze."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from kafka_rebalance.api.connection import KafkaSource
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
from kafka_rebalance.api.resource_status import Count, OverrideRows, ResourceStatus, ShortText, SourceName
from kafka_rebalance.execution.reassignment_throttle import Rates
from kafka_rebalance.model.repeated import repeated
from kafka_rebalance.model.topology import BrokerId

MAX_BROKER_ROWS = 50
_NO_SIDE = "set leaderRate, followerRate or both; -1 means unset"


class ClusterLimits(ApiModel):
    """KIP-435's limits for all rebalances of the cluster together. Absent: no limit."""

    parallel_partition_count: PositiveInt | None = Field(
        default=None,
        description="Maximum number of partitions in flight (KIP-435 reassignment.parallel.partition.count).",
    )
    parallel_leader_movements: PositiveInt | None = Field(
        default=None,
        description="Maximum number of partitions in flight whose leader changes (KIP-435 "
        "reassignment.parallel.leader.movements).",
    )
    max_concurrent_replica_movements: PositiveInt | None = Field(
        default=None,
        description="Maximum number of replicas being added (KIP-435 reassignment.max.concurrent.replica.movements).",
    )


class WhenReplicationThrottled(StrEnum):
    """How the rates combine with an existing replication throttle of a broker (KIP-542)."""

    ADDITIVE = "Additive"
    SEPARATE = "Separate"
    LOWEST = "Lowest"


class BrokerRateOverride(ApiModel):
    """Rates of one broker that override the general ones."""

    # An entry without a rate is a mistake: a misspelt field may have been pruned by the API server.
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
    if (twice := repeated(row.id for row in rows)) is not None:
        raise ValueError(f"names broker {twice} twice")
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

    kafka: KafkaSource = Field(description="Connection to the Kafka cluster. Immutable.")
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
        default=(), description="Rates of single brokers that override leaderRate and followerRate."
    )
    when_replication_throttled: WhenReplicationThrottled = Field(
        default=WhenReplicationThrottled.ADDITIVE,
        description="How the rates combine with an existing replication throttle of a broker (KIP-542). Additive: the "
        "sum of both rates limits replicated and reassigning replicas together. Separate: the reassignment rate does. "
        "Both refuse a reassignment rate above the replication rate. Lowest: the lower of the two rates applies.",
    )
    limits: ClusterLimits = Field(
        default=ClusterLimits(), description="Limits for all rebalances of the cluster together. Absent: no limits."
    )
    freeze: bool = Field(
        default=False,
        description="true: no rebalance of this cluster submits new steps. Cancelling remains possible (KIP-236).",
    )

    def rates_on(self, brokers: Iterable[BrokerId]) -> dict[BrokerId, Rates]:
        """Bytes per second that this resource allows each broker; None: unset on that side."""
        general = Rates(self.leader_rate, self.follower_rate)
        own = {
            row.id: Rates(_rate(row.leader_rate, general.leader), _rate(row.follower_rate, general.follower))
            for row in self.brokers
        }
        return {broker: own.get(broker, general) for broker in brokers}

    @property
    def sets_rates(self) -> bool:
        """Whether it limits any broker; otherwise only ``limits`` and ``freeze`` matter."""
        general = (self.leader_rate, self.follower_rate)
        own = (rate for row in self.brokers for rate in (row.leader_rate, row.follower_rate))
        return any(rate not in {None, UNSET} for rate in (*general, *own))


def _rate(own: int | None, general: int | None) -> int | None:
    if own is None:
        return general
    return None if own == UNSET else own


class ThrottledBroker(ApiModel):
    """The current limits of one broker, and the traffic under them."""

    id: BrokerNumber = Field(description="Id of the broker.")
    leader_rate: Count | None = Field(
        default=None,
        description="Current rate in Kafka for sending, in bytes per second. Absent: not limited by the operator.",
    )
    leader_claim: SourceName | None = Field(
        default=None, description="The resource that the rate comes from: the one with the lowest limit."
    )
    leader_bytes_per_second: Count | None = Field(
        default=None, description="Measured bytes per second that the broker sends to reassigning replicas."
    )
    leader_utilisation_percent: Count | None = Field(
        default=None, description="Percentage of leaderRate in use. Absent: unknown."
    )
    follower_rate: Count | None = Field(
        default=None,
        description="Current rate in Kafka for fetching, in bytes per second. Absent: not limited by the operator.",
    )
    follower_claim: SourceName | None = Field(
        default=None, description="The resource that the rate comes from: the one with the lowest limit."
    )
    follower_bytes_per_second: Count | None = Field(
        default=None, description="Measured bytes per second that the broker fetches for reassigning replicas."
    )
    follower_utilisation_percent: Count | None = Field(
        default=None, description="Percentage of followerRate in use. Absent: unknown."
    )


class ThrottleDisplay(ApiModel):
    """Text for the columns of kubectl get: one rate, a range from lowest to highest, or - if unset."""

    leader: ShortText = Field(
        description="Current rate for sending, for example 50.0 MiB/s; the rate in spec while none is set in Kafka."
    )
    follower: ShortText = Field(
        description="Current rate for fetching, for example 50.0 MiB/s; the rate in spec while none is set in Kafka."
    )


class KafkaReassignmentThrottleStatus(ResourceStatus):
    """Status of the limits."""

    brokers: Annotated[
        tuple[ThrottledBroker, ...],
        Field(max_length=MAX_BROKER_ROWS, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = Field(default=(), description="Throttled brokers by id; at most 50.")
    brokers_total: Count = Field(default=0, description="Number of throttled brokers.")
    throttled_replicas: Count = Field(default=0, description="Number of throttled reassigning replicas.")
    foreign_reassignments: Count = Field(
        default=0, description="Number of throttled partitions whose reassignment another tool started."
    )
    reverts: Count = Field(
        default=0, description="Number of times that another client changed the limits and the operator restored them."
    )
    overrides: OverrideRows = Field(default=(), description="Settings that annotations override now.")
    display: ThrottleDisplay | None = Field(default=None, description="Text for the columns of kubectl get.")
