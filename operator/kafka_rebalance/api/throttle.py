"""spec and status of KafkaReassignmentThrottle: KIP-542's rates for one Kafka cluster, and KIP-236's freeze."""

from __future__ import annotations

from pydantic import Field

from kafka_rebalance.api.connection import Kafka
from kafka_rebalance.api.fields import ApiModel, PositiveInt, RateOrUnset
from kafka_rebalance.api.status import ResourceStatus


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
    limits: ClusterLimits = Field(
        default=ClusterLimits(), description="Ceilings over all rebalances of the cluster together. Absent: none."
    )
    freeze: bool = Field(
        default=False,
        description="true: no rebalance of this cluster submits a new step. Cancelling remains possible (KIP-236).",
    )


class KafkaReassignmentThrottleStatus(ResourceStatus):
    """What became of the limits."""
