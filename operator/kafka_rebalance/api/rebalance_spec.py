"""spec of KafkaRebalance: the desired state.

A field exists only if something acts on it. No decisions are made here.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from kafka_rebalance.api.connection import KafkaSource
from kafka_rebalance.api.execution_spec import Approval, DeletionPolicy, Execution, Rollback, Throttle
from kafka_rebalance.api.fields import (
    MAX_INT32,
    ApiModel,
    BrokerSet,
    ByteCount,
    FewBrokers,
    ObjectName,
    Percentage,
    Regexes,
    Seconds,
    SecretKey,
    rule,
    rules,
)
from kafka_rebalance.api.log_dir_goals import LogDirGoals
from kafka_rebalance.model.goals import (
    MINIMUM_COVERAGE_SECONDS,
    Balance,
    LoadGoal,
    LoadResource,
    LoadStatistic,
    RackAwareness,
    Strategy,
)
from kafka_rebalance.model.repeated import repeated

_SIZES_HAVE_ONE_VALUE = "statistic and minimumCoverage are not allowed for Disk: sizes have only their latest value"


class OfflinePolicy(StrEnum):
    """How the plan treats a partition without a leader."""

    SKIP = "Skip"
    REFUSE = "Refuse"


class Topics(ApiModel):
    """Selects the topics, and pins some of them."""

    include: Regexes = Field(
        default=(),
        description="RE2 expressions for the topics to rebalance; each must match the whole name. Empty: all topics, "
        "including internal ones.",
    )
    exclude: Regexes = Field(
        default=(),
        description="RE2 expressions for the topics to leave out; each must match the whole name. Takes precedence "
        "over include.",
    )
    pinned: Regexes = Field(
        default=(),
        description="RE2 expressions for selected topics that must not move; each must match the whole name. Their "
        "replicas count: the other topics are balanced around them.",
    )


class ConfigMapKeyRef(ApiModel):
    """One key of a ConfigMap in the namespace of the resource."""

    name: ObjectName = Field(description="Name of a ConfigMap in the namespace of this resource.")
    key: SecretKey = Field(default="assignment.json", description="Key in the ConfigMap that holds the JSON.")


class Assignment(ApiModel):
    """The target assignment of the strategy Assignment."""

    config_map_ref: ConfigMapKeyRef = Field(
        description="ConfigMap key with Kafka's reassignment JSON. It is read when the plan is made. A change to the "
        "ConfigMap does not start a new plan; a reference to another ConfigMap does."
    )


class Brokers(ApiModel):
    """Selects the brokers that may hold replicas."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.include) || !has(self.decommission) || !self.decommission.exists(b, b in self.include)",
                "a broker cannot be in both include and decommission",
            )
        )
    )

    include: BrokerSet = Field(
        default=(), description="Ids of the brokers that may hold replicas. Empty: all live brokers."
    )
    decommission: FewBrokers = Field(
        default=(), description="Ids of the brokers to drain: they hold no replicas at the end."
    )

    @model_validator(mode="after")
    def _disjoint(self) -> Self:
        if set(self.include) & set(self.decommission):
            raise ValueError("a broker cannot be in both include and decommission")
        return self


class LoadGoalSpec(ApiModel):
    """A resource whose use is balanced over the brokers."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("self.name != 'Disk' || (!has(self.statistic) && !has(self.minimumCoverage))", _SIZES_HAVE_ONE_VALUE)
        )
    )

    name: LoadResource = Field(
        description="Disk: bytes of the replicas. BytesIn: bytes per second written to the replicas, by producers and "
        "by replication. BytesOut: bytes per second that leaders send, to consumers and (bytes in for each) to "
        "followers; what the moves themselves send is not counted. LeaderBytesIn: bytes per second that producers "
        "write to the leaders. All but Disk need a load model."
    )
    band: Percentage = Field(
        default=10,
        description="By how much a broker may exceed its share of the total, which is in proportion to its capacity.",
        json_schema_extra={"default": "10%"},
    )
    capacity_limit: Percentage = Field(
        default=80,
        description="The part of its capacity that no broker exceeds, on the way either. Without effect on brokers of "
        "unknown capacity.",
        json_schema_extra={"default": "80%"},
    )
    statistic: LoadStatistic | None = Field(
        default=None,
        description="The figure of a partition's rate over the window of the load model. Absent: P95. Not for Disk.",
    )
    minimum_coverage_seconds: Seconds | None = Field(
        default=None,
        validation_alias="minimumCoverage",
        serialization_alias="minimumCoverage",
        description="The time that the rate of a partition must cover; one that covers less counts as unknown. A short "
        "time is enough only for steady traffic. Absent: 15m. Not for Disk.",
    )

    @model_validator(mode="after")
    def _statistic_of_rates(self) -> Self:
        if self.name is LoadResource.DISK and (self.statistic or self.minimum_coverage_seconds):
            raise ValueError(_SIZES_HAVE_ONE_VALUE)
        return self

    def as_goal(self) -> LoadGoal:
        """The goal as the planner takes it."""
        return LoadGoal(
            self.name,
            self.band,
            self.capacity_limit,
            self.statistic or LoadStatistic.P95,
            self.minimum_coverage_seconds or MINIMUM_COVERAGE_SECONDS,
        )


def _each_resource_once(rows: tuple[LoadGoalSpec, ...]) -> tuple[LoadGoalSpec, ...]:
    if (twice := repeated(row.name for row in rows)) is not None:
        raise ValueError(f"names resource {twice} twice")
    return rows


class LoadGoalsSpec(ApiModel):
    """The load of the brokers as a goal."""

    resources: Annotated[
        tuple[LoadGoalSpec, ...],
        Field(
            min_length=1,
            max_length=4,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
        AfterValidator(_each_resource_once),
    ] = Field(description="The resources, in order of priority.")


_COUNTS_OR_LOAD = "counts cannot be false without load, or with minimumGain or a balance other than Total"


class GoalsSpec(ApiModel):
    """The goals of the plan."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.counts) || self.counts || "
                "(has(self.load) && self.balance == 'Total' && self.minimumGain == 0)",
                _COUNTS_OR_LOAD,
            )
        )
    )

    rack_awareness: RackAwareness = Field(
        default=RackAwareness.ENFORCED,
        description="Enforced: the replicas of a partition are spread over as many racks as possible. "
        "Preferred: they are, as far as the best replica balance allows. Disabled: racks are ignored.",
    )
    balance: Balance = Field(
        default=Balance.TOTAL,
        description="Total: every broker holds the same number of replicas, give or take one. PerTopic: the same "
        "number of replicas of each topic. Both: in total first, then per topic as far as the total allows.",
    )
    counts: bool = Field(
        default=True,
        description="Balance the number of replicas per broker. false, which requires load: counts are free, and only "
        "forced moves and those for the load goals are made.",
    )
    leaders: bool = Field(
        default=True, description="Balance the number of preferred leaders per broker. Copies no data."
    )
    follower_order: bool = Field(
        default=True,
        description="Spread the first followers of each broker's leaders evenly over the other brokers. Copies no "
        "data.",
    )
    load: LoadGoalsSpec | None = Field(
        default=None,
        description="Balance the load of the brokers as well. Racks and, unless counts is false, replica counts come "
        "first. Absent: load is not balanced.",
    )
    log_dirs: LogDirGoals | None = Field(
        default=None,
        description="Balance the log dirs of each broker by the bytes in them, and place new replicas there. Absent: "
        "replicas stay in their log dirs, and Kafka places new ones.",
    )
    max_replica_moves: Annotated[int, Field(ge=0, le=MAX_INT32)] | None = Field(
        default=None,
        description="Movement budget: maximum number of replica moves. The plan is the best one within it. Absent: no "
        "limit.",
    )
    max_data_to_move: ByteCount | None = Field(
        default=None,
        description="Movement budget: maximum number of bytes to copy. The plan is the best one within it. Absent: no "
        "limit.",
    )
    minimum_gain: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0,
        description="Minimum reduction of the fullest broker's replica count, in percent. A plan without forced moves "
        "that gains less is empty. 0: any gain is enough.",
    )

    @model_validator(mode="after")
    def _counts_or_load(self) -> Self:
        about_counts = self.balance is not Balance.TOTAL or self.minimum_gain
        if not self.counts and (self.load is None or about_counts):
            raise ValueError(_COUNTS_OR_LOAD)
        return self

    @property
    def disk_limit(self) -> int | None:
        """The percentage of its disks that no broker exceeds; None: all may be used."""
        rows = self.load.resources if self.load is not None else ()
        return next((row.capacity_limit for row in rows if row.name is LoadResource.DISK), None)


_ONLY_BALANCING = (
    "goals.balance, load, maxReplicaMoves, maxDataToMove and minimumGain require the strategy MinimalMovement"
)
_LISTS_FOR_ASSIGNMENT = "assignment is required with the strategy Assignment and not allowed with others"
_NO_COPIES = "replicationFactor is not allowed with the strategy PreferredLeaders, which copies nothing"
_ONLY_LOG_DIRS = (
    "the strategy LogDirs requires goals.logDirs, and does not allow replicationFactor and brokers.decommission"
)
_LEADERS_WANTED = "goals.leaders cannot be false with the strategy PreferredLeaders"


class KafkaRebalanceSpec(ApiModel):
    """The desired assignment, and how to reach it."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("(self.strategy == 'Assignment') == has(self.assignment)", _LISTS_FOR_ASSIGNMENT),
            rule("self.strategy != 'PreferredLeaders' || !has(self.replicationFactor)", _NO_COPIES),
            rule("self.strategy != 'PreferredLeaders' || self.goals.leaders", _LEADERS_WANTED),
            rule(
                "self.strategy != 'LogDirs' || (has(self.goals.logDirs) && !has(self.replicationFactor)"
                " && !(has(self.brokers) && has(self.brokers.decommission)))",
                _ONLY_LOG_DIRS,
            ),
            rule(
                "self.strategy == 'MinimalMovement' || (!has(self.goals.load) && !has(self.goals.maxReplicaMoves)"
                " && !has(self.goals.maxDataToMove) && self.goals.minimumGain == 0 && self.goals.balance == 'Total')",
                _ONLY_BALANCING,
            ),
        )
    )

    kafka: KafkaSource = Field(description="Connection to the Kafka cluster. Immutable.")
    strategy: Strategy = Field(
        default=Strategy.MINIMAL_MOVEMENT,
        description="How targets are chosen. MinimalMovement: the balanced assignment that moves the fewest replicas. "
        "ForcedMovesOnly: move only replicas on brokers that must not hold any, or that break the rack rule. "
        "Generate: a new assignment by the algorithm of Kafka's own tool. Assignment: the one in spec.assignment. "
        "PreferredLeaders: reorder replicas only; no data is copied. LogDirs: no replica leaves its broker; only "
        "goals.logDirs applies.",
    )
    topics: Topics = Field(default=Topics(), description="The topics to rebalance. Absent: all.")
    brokers: Brokers = Field(
        default=Brokers(), description="The brokers that may hold replicas. Absent: all live brokers."
    )
    replication_factor: Annotated[int, Field(ge=1, le=32767)] | None = Field(
        default=None,
        description="New replication factor of every selected partition. Absent: unchanged. Refused if it is less than "
        "min.insync.replicas.",
    )
    assignment: Assignment | None = Field(default=None, description="The target assignment of the strategy Assignment.")
    offline_policy: OfflinePolicy = Field(
        default=OfflinePolicy.SKIP,
        description="Skip: a partition without a leader is skipped and listed in status.skipped. Refuse: there is no "
        "plan while such a partition exists.",
    )
    goals: GoalsSpec = Field(default=GoalsSpec(), description="The goals of the plan.")
    suspend: bool = Field(
        default=False,
        description="true: submit no new steps. Steps in flight finish. The same as execution.suspend: either of the "
        "two suspends.",
    )
    execution: Execution = Field(
        default=Execution(), description="Limits and timing of the execution. Changes act on the running rebalance."
    )
    throttle: Throttle | None = Field(
        default=None,
        description="Throttle rates of this rebalance. Absent: those of the cluster's KafkaReassignmentThrottle; "
        "without one, 50Mi per second.",
    )
    deletion_policy: DeletionPolicy = Field(
        default=DeletionPolicy.ROLLBACK,
        description="The effect of deleting a running rebalance. Rollback: cancel reassignments in flight and move "
        "everything back. Revert: only cancel reassignments in flight. Abandon: delete at once; reassignments in "
        "flight finish under the throttle, which is then removed. May be changed while the resource is being deleted.",
    )
    approval: Approval = Field(default=Approval(), description="Whether the plan requires approval.")
    rollback: Rollback = Field(default=Rollback(), description="Limits of the rollback that a deletion starts.")
    priority: Annotated[int, Field(ge=-1000, le=1000)] = Field(
        default=0,
        description="If two rebalances have common partitions, the one with the higher priority goes first. A running "
        "one yields when its partitions complete their steps. Among waiting ones, each full hour of waiting adds 1.",
    )

    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=MAX_INT32)] | None = Field(
        default=None,
        description="The operator deletes the resource this many seconds after it has ended as Succeeded, NothingToDo "
        "or Undone, as for a Job. Nothing is moved back then. Absent: it stays.",
    )
    takes_over: ObjectName | None = Field(
        default=None,
        description="Name of a KafkaRebalance in this namespace. If that is deleted while it runs, its partitions are "
        "not moved back: this one continues from where they are, and its own deletion moves them back to where they "
        "were before both. Has no effect once this one has submitted a step. Absent: only a resource that was created "
        "within five minutes of the deletion and plans to move all these partitions takes over.",
    )

    @property
    def suspended(self) -> bool:
        """Whether no new step may start."""
        return self.suspend or self.execution.suspend

    @model_validator(mode="after")
    def _fields_of_the_strategy(self) -> Self:
        goals, strategy = self.goals, self.strategy
        if (strategy is Strategy.ASSIGNMENT) != (self.assignment is not None):
            raise ValueError(_LISTS_FOR_ASSIGNMENT)
        if strategy is Strategy.PREFERRED_LEADERS and self.replication_factor is not None:
            raise ValueError(_NO_COPIES)
        if strategy is Strategy.PREFERRED_LEADERS and not goals.leaders:
            raise ValueError(_LEADERS_WANTED)
        elsewhere = self.replication_factor is not None or self.brokers.decommission
        if strategy is Strategy.LOG_DIRS and (goals.log_dirs is None or elsewhere):
            raise ValueError(_ONLY_LOG_DIRS)
        limited = goals.max_replica_moves is not None or goals.max_data_to_move is not None
        balancing = limited or goals.minimum_gain or goals.balance is not Balance.TOTAL or goals.load is not None
        if strategy is not Strategy.MINIMAL_MOVEMENT and balancing:
            raise ValueError(_ONLY_BALANCING)
        return self
