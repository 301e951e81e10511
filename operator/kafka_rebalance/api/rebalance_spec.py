"""spec of KafkaRebalance: what a person asks for.

A field is here only if something acts on it. No decision is taken here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from kafka_rebalance.api.connection import Kafka
from kafka_rebalance.api.execution_spec import Approval, DeletionPolicy, Execution, Rollback, Throttle
from kafka_rebalance.api.fields import (
    MAX_INT32,
    ApiModel,
    BrokerSet,
    ByteCount,
    FewBrokers,
    ObjectName,
    Regexes,
    SecretKey,
    disjoint,
    rule,
    rules,
)
from kafka_rebalance.model.goals import Balance, RackAwareness, Strategy


class OfflinePolicy(StrEnum):
    """What a partition without a leader means for the plan."""

    SKIP = "Skip"
    REFUSE = "Refuse"


class Topics(ApiModel):
    """Which topics may be touched, and which of them stay as they are all the same."""

    include: Regexes = Field(
        default=(), description="RE2 expressions that match whole topic names. Empty: every topic, internal ones too."
    )
    exclude: Regexes = Field(default=(), description="RE2 expressions that match whole topic names. Wins over include.")
    pinned: Regexes = Field(
        default=(),
        description="RE2 expressions that match whole topic names. Those selected stay as they are, and count: the "
        "others are balanced around them.",
    )


class ConfigMapKeyRef(ApiModel):
    """One key of a ConfigMap in the namespace of the resource."""

    name: ObjectName = Field(description="Name of a ConfigMap in the namespace of this resource.")
    key: SecretKey = Field(default="assignment.json", description="Key in the ConfigMap that holds the JSON.")


class Assignment(ApiModel):
    """The lists of the strategy Assignment."""

    config_map_ref: ConfigMapKeyRef = Field(
        description="Kafka's reassignment JSON. It is read when the plan is made: a change of the ConfigMap alone does "
        "not plan anew, naming another one does."
    )


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


class GoalsSpec(ApiModel):
    """What a good assignment is, beyond equal replica counts."""

    rack_awareness: RackAwareness = Field(
        default=RackAwareness.ENFORCED,
        description="Enforced: the replicas of a partition are spread over racks wherever possible. "
        "Preferred: as far as the fairest counts allow. Disabled: racks are ignored.",
    )
    balance: Balance = Field(
        default=Balance.TOTAL,
        description="Total: every broker holds the same number of replicas, give or take one. PerTopic: of each topic. "
        "Both: in total, and of each topic as far as that allows.",
    )
    leaders: bool = Field(default=True, description="Spread preferred leaders evenly. Costs no data.")
    follower_order: bool = Field(
        default=True, description="Spread the first followers of each broker's leaders evenly. Costs no data."
    )
    max_replica_moves: Annotated[int, Field(ge=0, le=MAX_INT32)] | None = Field(
        default=None, description="A run moves at most so many replicas: the best within that. Absent: no limit."
    )
    max_data_to_move: ByteCount | None = Field(
        default=None, description="A run copies at most so many bytes: the best within that. Absent: no limit."
    )
    minimum_gain: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0,
        description="Percent of the fullest broker's replicas. A plan that forces nothing and takes less than that off "
        "it is empty. 0: any gain will do.",
    )


_ONLY_BALANCING = "goals.balance, maxReplicaMoves, maxDataToMove and minimumGain are for the strategy MinimalMovement"
_LISTS_FOR_ASSIGNMENT = "assignment is needed by the strategy Assignment, and by no other"
_NO_COPIES = "replicationFactor needs copies, and the strategy PreferredLeaders makes none"
_LEADERS_WANTED = "goals.leaders: false leaves the strategy PreferredLeaders nothing to do"


class KafkaRebalanceSpec(ApiModel):
    """What shall be where, and how to get there."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("(self.strategy == 'Assignment') == has(self.assignment)", _LISTS_FOR_ASSIGNMENT),
            rule("self.strategy != 'PreferredLeaders' || !has(self.replicationFactor)", _NO_COPIES),
            rule("self.strategy != 'PreferredLeaders' || self.goals.leaders", _LEADERS_WANTED),
            rule(
                "self.strategy == 'MinimalMovement' || (!has(self.goals.maxReplicaMoves)"
                " && !has(self.goals.maxDataToMove) && self.goals.minimumGain == 0 && self.goals.balance == 'Total')",
                _ONLY_BALANCING,
            ),
        )
    )

    kafka: Kafka = Field(description="The Kafka cluster. Cannot be changed.")
    strategy: Strategy = Field(
        default=Strategy.MINIMAL_MOVEMENT,
        description="MinimalMovement: of all balanced assignments the one that moves the fewest replicas. "
        "ForcedMovesOnly: only what is broken: replicas on brokers that shall hold none, or against the rack rule. "
        "Generate: anew, by the rule of Kafka's own tool. Assignment: the lists of spec.assignment. "
        "PreferredLeaders: only the order within lists; no data moves.",
    )
    topics: Topics = Field(default=Topics(), description="Which topics may be touched. Absent: all.")
    brokers: Brokers = Field(default=Brokers(), description="Which brokers may hold replicas. Absent: all live ones.")
    replication_factor: Annotated[int, Field(ge=1, le=32767)] | None = Field(
        default=None,
        description="Replicas that each selected partition shall have. Absent: as many as it has. Refused where it "
        "would fall below min.insync.replicas.",
    )
    assignment: Assignment | None = Field(default=None, description="The lists of the strategy Assignment.")
    offline_policy: OfflinePolicy = Field(
        default=OfflinePolicy.SKIP,
        description="Skip: a partition without a leader is left alone and named. Refuse: nothing is planned meanwhile.",
    )
    goals: GoalsSpec = Field(default=GoalsSpec(), description="What a good assignment is.")
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

    @model_validator(mode="after")
    def _fields_of_the_strategy(self) -> Self:
        goals, strategy = self.goals, self.strategy
        if (strategy is Strategy.ASSIGNMENT) != (self.assignment is not None):
            raise ValueError(_LISTS_FOR_ASSIGNMENT)
        if strategy is Strategy.PREFERRED_LEADERS and self.replication_factor is not None:
            raise ValueError(_NO_COPIES)
        if strategy is Strategy.PREFERRED_LEADERS and not goals.leaders:
            raise ValueError(_LEADERS_WANTED)
        limited = goals.max_replica_moves is not None or goals.max_data_to_move is not None
        balancing = limited or goals.minimum_gain or goals.balance is not Balance.TOTAL
        if strategy is not Strategy.MINIMAL_MOVEMENT and balancing:
            raise ValueError(_ONLY_BALANCING)
        return self
