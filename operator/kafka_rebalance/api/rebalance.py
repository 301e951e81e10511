"""spec of KafkaRebalance: what a person asks for.

A field is here only if something acts on it. No decision is taken here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from kafka_rebalance.api.connection import Kafka
from kafka_rebalance.api.execution import Approval, DeletionPolicy, Execution, Rollback, Throttle
from kafka_rebalance.api.fields import (
    ApiModel,
    BrokerSet,
    FewBrokers,
    Regexes,
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
    approval: Approval = Field(default=Approval(), description="Whether a person has to agree to the plan.")
    rollback: Rollback = Field(default=Rollback(), description="Bounds of the rollback that a deletion starts.")
    priority: Annotated[int, Field(ge=-1000, le=1000)] = Field(
        default=0,
        description="Of two rebalances that want the same partitions the higher goes first. A running one gives way "
        "at its next rest points. Each whole hour of waiting counts as one more among those that wait.",
    )
