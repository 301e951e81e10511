"""spec of KafkaRebalance: what a person asks for.

A field is here only if something acts on it. No decision is taken here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from kafka_rebalance.api.connection import Kafka
from kafka_rebalance.api.fields import (
    MAX_INT32,
    ApiModel,
    BrokerSet,
    FewBrokers,
    PositiveInt,
    Rate,
    Regexes,
    Seconds,
    disjoint,
    rule,
    rules,
)


class Strategy(StrEnum):
    """How targets are chosen."""

    MINIMAL_MOVEMENT = "MinimalMovement"


class RackAwareness(StrEnum):
    """What the racks of the brokers mean for a plan."""

    ENFORCED = "Enforced"
    PREFERRED = "Preferred"
    DISABLED = "Disabled"


class Balance(StrEnum):
    """Over what replicas are counted."""

    TOTAL = "Total"


class DeletionPolicy(StrEnum):
    """What deleting a running rebalance does."""

    ROLLBACK = "Rollback"
    REVERT = "Revert"
    ABANDON = "Abandon"


class Topics(ApiModel):
    """Which topics may be touched."""

    include: Regexes = Field(
        default=(), description="RE2 expressions that match whole topic names. Empty: every topic, internal ones too."
    )
    exclude: Regexes = Field(default=(), description="RE2 expressions that match whole topic names. Wins over include.")


class Brokers(ApiModel):
    """Which brokers may hold replicas."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.include) || !has(self.decommission) || !self.decommission.exists(b, b in self.include)",
                "a broker cannot be in include and in decommission at once",
            )
        )
    )

    include: BrokerSet = Field(
        default=(), description="Ids of the brokers that shall hold replicas. Empty: every live broker."
    )
    decommission: FewBrokers = Field(default=(), description="Ids of brokers that shall hold nothing at the end.")

    @model_validator(mode="after")
    def _disjoint(self) -> Self:
        if not disjoint(self.include, self.decommission):
            raise ValueError("a broker cannot be in include and in decommission at once")
        return self


class Goals(ApiModel):
    """What a good assignment is, beyond equal replica counts."""

    rack_awareness: RackAwareness = Field(
        default=RackAwareness.ENFORCED,
        description="Enforced: the replicas of a partition are spread over racks wherever possible. "
        "Preferred: as far as the fairest counts allow. Disabled: racks are ignored.",
    )
    balance: Balance = Field(
        default=Balance.TOTAL, description="Total: every broker holds the same number of replicas, give or take one."
    )
    leaders: bool = Field(default=True, description="Spread preferred leaders evenly. Costs no data.")
    follower_order: bool = Field(
        default=True, description="Spread the first followers of each broker's leaders evenly. Costs no data."
    )


class Execution(ApiModel):
    """How fast it may go. Changes act on the running rebalance from the next step on."""

    suspend: bool = Field(default=False, description="Submit no new steps. What is in flight finishes.")
    parallel_replica_count: PositiveInt = Field(
        default=1,
        description="Replicas of one partition replaced per step (KIP-435 reassignment.parallel.replica.count).",
    )
    parallel_partition_count: PositiveInt = Field(
        default=100,
        description="Partitions in flight at once (KIP-435 reassignment.parallel.partition.count).",
    )
    parallel_leader_movements: PositiveInt = Field(
        default=20,
        description="Partitions in flight at once whose leader changes (KIP-435 "
        "reassignment.parallel.leader.movements).",
    )
    max_concurrent_replica_movements: PositiveInt = Field(
        default=MAX_INT32,
        description="Replicas being added at once, over all partitions (KIP-435 "
        "reassignment.max.concurrent.replica.movements).",
    )
    stall_timeout_seconds: Seconds = Field(
        default=900,
        validation_alias="stallTimeout",
        serialization_alias="stallTimeout",
        description="No progress of what is in flight for this long sets Stalled.",
        json_schema_extra={"default": "15m"},
    )


class Throttle(ApiModel):
    """Rates of the moving replicas, in bytes per second per broker. Changes act on running transfers."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "(has(self.unlimited) ? 1 : 0) + (has(self.leaderRate) || has(self.followerRate) ? 1 : 0) == 1",
                "set either unlimited or at least one of leaderRate and followerRate",
            )
        )
    )

    leader_rate: Rate | None = Field(
        default=None,
        description="Bytes per second that each broker may send to reassigning replicas (KIP-542 "
        "leader.reassignment.throttled.rate).",
    )
    follower_rate: Rate | None = Field(
        default=None,
        description="Bytes per second that each broker may fetch for reassigning replicas (KIP-542 "
        "follower.reassignment.throttled.rate).",
    )
    unlimited: Literal[True] | None = Field(default=None, description="true: move at full speed.")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.unlimited is not None) == (self.leader_rate is not None or self.follower_rate is not None):
            raise ValueError("set either unlimited or at least one of leaderRate and followerRate")
        return self


class KafkaRebalanceSpec(ApiModel):
    """What shall be where, and how to get there."""

    kafka: Kafka = Field(description="The Kafka cluster. Cannot be changed.")
    strategy: Strategy = Field(
        default=Strategy.MINIMAL_MOVEMENT,
        description="MinimalMovement: of all balanced assignments the one that moves the fewest replicas.",
    )
    topics: Topics = Field(default=Topics(), description="Which topics may be touched. Absent: all.")
    brokers: Brokers = Field(default=Brokers(), description="Which brokers may hold replicas. Absent: all live ones.")
    goals: Goals = Field(default=Goals(), description="What a good assignment is.")
    execution: Execution = Field(
        default=Execution(), description="How fast it may go. Changes act on the running rebalance."
    )
    throttle: Throttle | None = Field(
        default=None,
        description="Rates of the moving replicas. Absent: those of the cluster's KafkaReassignmentThrottle, "
        "and 50Mi where there is none.",
    )
    deletion_policy: DeletionPolicy = Field(
        default=DeletionPolicy.ROLLBACK,
        description="What deleting a running rebalance does. Rollback: cancel, and move everything back. "
        "Revert: cancel only what is in flight. Abandon: let go at once; what is in flight finishes under its "
        "throttle, which goes with it. May be changed while the deletion runs.",
    )
