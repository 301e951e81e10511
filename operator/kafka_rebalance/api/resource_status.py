"""status of both resources: bounded in size for clusters of any size, and written by the operator only.

``as_patch`` returns a merge patch that *replaces* the status: None becomes null and removes the old value. The status
is for people and tools; the operator never bases a decision on it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field

from kafka_rebalance.api.fields import ApiModel, Timestamp

MAX_BATCH_ROWS = 20
MAX_PLAN_BROKERS = 20
MAX_OUTSIDE_ROWS = 20
MAX_SKIPPED_ROWS = 50
MAX_MESSAGE = 4096
MAX_CONDITIONS = 20

_ATOMIC = {"x-kubernetes-list-type": "atomic"}
Count = Annotated[int, Field(ge=0)]
ShortText = Annotated[str, Field(max_length=64)]
SourceName = Annotated[str, Field(max_length=512)]
TopicName = Annotated[str, Field(max_length=249)]
BrokerList = Annotated[tuple[int, ...], Field(max_length=200, json_schema_extra=_ATOMIC)]


class Condition(ApiModel):
    """One condition, as in metav1.Condition."""

    type: Annotated[str, Field(min_length=1, max_length=316)] = Field(description="Type of the condition.")
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown.")
    observed_generation: int = Field(default=-1, description="Generation of the spec that the condition is based on.")
    last_transition_time: Timestamp = Field(description="When the status of the condition last changed.")
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$")] = (
        Field(description="Reason, as one CamelCase word.")
    )
    message: Annotated[str, Field(max_length=MAX_MESSAGE)] = Field(default="", description="Explanation for people.")


class OverrideRow(ApiModel):
    """A setting that an annotation overrides for a time."""

    setting: ShortText = Field(description="The setting of the spec.")
    value: Annotated[str, Field(max_length=128)] = Field(description="The value in force.")
    until: Timestamp = Field(description="When the override expires and the spec applies again.")
    reason: Annotated[str, Field(max_length=200)] = Field(default="", description="The reason in the annotation.")


OverrideRows = Annotated[tuple[OverrideRow, ...], Field(max_length=4, json_schema_extra=_ATOMIC)]


class ResourceStatus(ApiModel):
    """The status fields of every resource."""

    # The status of a newer operator must not stop this one after a downgrade: unknown fields are ignored.
    model_config = ConfigDict(extra="ignore")

    observed_generation: int = Field(default=-1, description="Generation of the spec that this status is based on.")
    cluster_id: Annotated[str, Field(max_length=128)] | None = Field(
        default=None, description="Id of the Kafka cluster, as reported by the brokers."
    )
    conditions: Annotated[
        tuple[Condition, ...],
        Field(
            max_length=MAX_CONDITIONS,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = Field(default=(), description="Conditions. The reason of Ready is the state of the resource.")

    def as_patch(self) -> dict[str, Any]:
        """The body of a merge patch on /status that results in exactly this status."""
        return {"status": self.model_dump(mode="json", by_alias=True)}


class SpreadStatus(ApiModel):
    """Range of the replica counts of the brokers."""

    fewest: Count = Field(description="Replica count of the broker with the fewest, counting what is balanced.")
    most: Count = Field(description="Replica count of the broker with the most, counting what is balanced.")


class BrokerPlanRow(ApiModel):
    """Changes to one broker."""

    broker: Count = Field(description="Id of the broker.")
    replicas_in: Count = Field(description="Replicas that the broker gets.")
    replicas_out: Count = Field(description="Replicas that the broker gives up.")
    bytes_in: Count = Field(description="Bytes that the new replicas on the broker fetch.")
    bytes_out: Count = Field(description="Bytes of the replicas that the broker gives up.")
    leaders_in: Count = Field(description="Partitions whose preferred leader the broker becomes.")
    leaders_out: Count = Field(description="Partitions whose preferred leader the broker ceases to be.")


class ResourceLoadRow(ApiModel):
    """What the plan does to the use of one resource."""

    resource: ShortText = Field(description="Name of the resource.")
    peak_before: Count = Field(description="Highest use of a broker before the plan, in percent of its share.")
    peak_after: Count = Field(description="Highest use of a broker after the plan, in percent of its share.")
    peak_measured: Count | None = Field(
        default=None,
        description="Highest use of a broker as measured after the run, in percent of its share. The operator measures "
        "Disk at the end of a run that has succeeded; kafka-rebalance status --load-model shows the rates. Absent: not "
        "measured.",
    )
    outside_before: Count = Field(description="Number of brokers above the band before the plan.")
    outside_after: Count = Field(description="Number of brokers above the band after the plan.")

    def with_measured(self, peaks: Mapping[str, int]) -> Self:
        """The same row with the peak of its resource, if that was measured."""
        return self.model_copy(update={"peak_measured": peaks.get(self.resource, self.peak_measured)})


class OutsideRow(ApiModel):
    """A broker that stays above the band of a resource."""

    broker: Count = Field(description="Id of the broker.")
    resource: ShortText = Field(description="Name of the resource.")
    use: Count = Field(description="Use after the plan, in bytes or bytes per second.")
    allowed: Count = Field(description="What the band allows, in bytes or bytes per second.")
    reason: ShortText = Field(
        description="PartitionTooLarge, RackRule, MovementBudget, CapacityLimit, EvenCounts or NoExchangeFound."
    )


class LoadStatus(ApiModel):
    """What the plan does to the load of the brokers."""

    resources: Annotated[tuple[ResourceLoadRow, ...], Field(max_length=4, json_schema_extra=_ATOMIC)] = Field(
        description="The resources of goals.load, in order of priority."
    )
    data_lower_bound: Count = Field(
        description="Proven: no plan with replica counts as even and no more use above the bands copies fewer bytes."
    )
    gap: ShortText = Field(description="dataToMove divided by dataLowerBound, for example 1.13; 1.00 is minimal.")
    outside: Annotated[tuple[OutsideRow, ...], Field(max_length=MAX_OUTSIDE_ROWS, json_schema_extra=_ATOMIC)] = Field(
        default=(), description="Brokers that stay above a band; at most 20."
    )

    def with_measured(self, peaks: Mapping[str, int]) -> Self:
        """The same with these peaks by resource."""
        return self.model_copy(update={"resources": tuple(row.with_measured(peaks) for row in self.resources)})


class PlanStatus(ApiModel):
    """The current plan."""

    hash: Annotated[str, Field(max_length=80)] = Field(
        description="Hash of the changed partitions and of the brokers to decommission, for spec.approval.planHash."
    )
    ref: Annotated[str, Field(max_length=253)] | None = Field(
        default=None, description="Name of the index ConfigMap of the stored plan, in the operator's namespace."
    )
    partitions: Count = Field(description="Partitions that the plan changes.")
    replica_moves: Count = Field(description="Replicas to place on a broker that does not hold the partition.")
    lower_bound: Count = Field(
        description="Proven: no plan that balances as well as this one, for the partitions that were not in flight, "
        "has fewer replica moves. 0: nothing is proven. Generate and Assignment: the moves of exactly these lists."
    )
    optimal: bool = Field(
        description="true: replicaMoves is proven to be minimal; with a movement budget, also that no plan within it "
        "balances better. Always false for Generate and Assignment with moves."
    )
    before: SpreadStatus | None = Field(default=None, description="Replicas per broker before the plan.")
    after: SpreadStatus | None = Field(default=None, description="Replicas per broker after the plan.")
    budget_reached: bool | None = Field(
        default=None,
        description="true: maxReplicaMoves or maxDataToMove leaves imbalance that more moves would remove.",
    )
    reason: ShortText | None = Field(
        default=None, description="Why the plan is empty although the cluster is not balanced, as one CamelCase word."
    )
    leader_moves: Count = Field(description="Partitions whose preferred leader changes.")
    elections: Count = Field(
        default=0,
        description="Partitions whose replica list does not change and whose preferred leader is elected "
        "(PreferredLeaders).",
    )
    data_to_move: Count = Field(description="Bytes to copy to new replicas.")
    log_dir_moves: Count | None = Field(
        default=None, description="Replicas to move to another log dir of their broker. Absent: none."
    )
    data_between_log_dirs: Count | None = Field(
        default=None, description="Bytes to copy between log dirs. Absent: no replica moves between them."
    )
    load: LoadStatus | None = Field(
        default=None, description="What the plan does to the load of the brokers. Absent without goals.load."
    )
    data_source: ShortText | None = Field(
        default=None,
        description="Source of sizes and rates: LogDirs (the brokers alone) or LoadModel (the pipeline's, too).",
    )
    per_broker: Annotated[tuple[BrokerPlanRow, ...], Field(max_length=MAX_PLAN_BROKERS, json_schema_extra=_ATOMIC)] = (
        Field(default=(), description="Changes per broker, those with the most changes first; at most 20.")
    )
    per_broker_count: Count = Field(default=0, description="Number of brokers that the plan changes.")
    eta: ShortText | None = Field(
        default=None,
        description="Estimated duration of the whole plan at the current throttle: at least and at most, or at least.",
    )
    eta_source: ShortText | None = Field(
        default=None,
        description="Source of eta: History (earlier runs of the cluster; eight of ten end in the interval) or "
        "Throttle (the busiest broker at its rate: a lower bound).",
    )


class PartitionProgress(ApiModel):
    """Partitions of the plan by state."""

    total: Count = Field(description="Partitions of the plan.")
    completed: Count = Field(description="Partitions at their target.")
    in_flight: Count = Field(description="Partitions with a step in flight.")
    waiting: Count = Field(description="Partitions that wait for their next step.")
    skipped: Count = Field(default=0, description="Partitions that are skipped; see status.skipped.")


class ReplicaProgress(ApiModel):
    """Replica moves of the plan."""

    total: Count = Field(description="Replica moves of the plan.")
    completed: Count = Field(description="Replica moves whose new replica is in sync.")


class LogDirMoveProgress(ApiModel):
    """Moves between the log dirs of brokers."""

    total: Count = Field(description="Moves of the plan; skipped ones do not count.")
    completed: Count = Field(description="Moves whose replica is in its new log dir.")
    in_flight: Count = Field(description="Moves in progress.")


class StepProgress(ApiModel):
    """KIP-435's steps."""

    completed: Count = Field(
        description="Completed steps, computed from the original and the current replicas of each partition with the "
        "current parallelReplicaCount. Skipped partitions do not count."
    )
    in_flight: Count = Field(description="Steps in flight: at most one per partition.")


class ByteProgress(ApiModel):
    """Bytes of the plan."""

    total: Count = Field(description="Bytes to copy to new replicas and between log dirs.")
    moved: Count = Field(description="Bytes copied so far.")


class ProgressStatus(ApiModel):
    """Progress of the run."""

    percent: Annotated[int, Field(ge=0, le=100)] = Field(
        description="Percentage of the bytes copied; if there is nothing to copy, of the partitions completed. In a "
        "rollback or undo: progress of the rollback."
    )
    partitions: PartitionProgress = Field(description="Partitions of the plan by state.")
    replica_moves: ReplicaProgress = Field(description="Replica moves of the plan.")
    log_dir_moves: LogDirMoveProgress | None = Field(
        default=None,
        description="Moves between log dirs. In a rollback or undo: the moves that it reverses. Absent: none.",
    )
    steps: StepProgress | None = Field(
        default=None, description="KIP-435's steps. In a rollback or undo: those of the rollback."
    )
    bytes: ByteProgress = Field(description="Bytes of the plan.")
    rate: Count | None = Field(default=None, description="Recent copy rate in bytes per second.")
    estimated_completion: Timestamp | None = Field(
        default=None, description="Estimated time of completion at the recent rate."
    )
    started_at: Timestamp | None = Field(default=None, description="When the run submitted its first step.")
    above_replication_factor: Count = Field(
        default=0, description="Partitions that temporarily have more replicas than their replication factor."
    )


class BatchRow(ApiModel):
    """One partition in flight (a row of KIP-435's current batch)."""

    topic: TopicName = Field(description="Name of the topic.")
    partition: Count = Field(description="Number of the partition.")
    current: BrokerList = Field(description="Replicas before the step, preferred leader first.")
    step: BrokerList = Field(description="Target replicas of the step.")
    target: BrokerList = Field(description="Target replicas of the plan.")
    adding: BrokerList = Field(default=(), description="Replicas that Kafka is adding.")
    removing: BrokerList = Field(default=(), description="Replicas that Kafka will remove.")
    since: Timestamp | None = Field(default=None, description="When the step was submitted.")
    bytes_remaining: Count | None = Field(
        default=None, description="Bytes that the adding replicas have not fetched yet."
    )


class ThrottleStatus(ApiModel):
    """The current throttle."""

    leader_rate: Count | None = Field(default=None, description="Bytes per second that each broker may send.")
    follower_rate: Count | None = Field(default=None, description="Bytes per second that each broker may fetch.")
    log_dir_rate: Count | None = Field(
        default=None,
        description="Bytes per second between the log dirs of a broker. Absent: not throttled or not used.",
    )
    source: SourceName = Field(description="The setting that the rates come from.")
    bound_by: SourceName | None = Field(
        default=None,
        description="The setting with a lower limit that applies on some brokers instead. Absent: the rates apply on "
        "all.",
    )
    brokers: Count = Field(default=0, description="Number of brokers on which the throttle is set.")


class SkippedRow(ApiModel):
    """A skipped partition."""

    topic: TopicName = Field(description="Name of the topic.")
    partition: Count = Field(description="Number of the partition.")
    reason: ShortText = Field(description="Reason, as one CamelCase word.")


class Display(ApiModel):
    """Text for the columns of kubectl get."""

    progress: ShortText | None = Field(default=None, description="Percentage done, for example 37%.")
    moved: ShortText | None = Field(
        default=None, description="Bytes copied of the bytes to copy, for example 1.2 GiB/3.4 GiB."
    )
    eta: ShortText | None = Field(
        default=None,
        description="Estimated time left, from the full throttle rate to the recent rate, for example 12m-25m.",
    )
    throttle: ShortText | None = Field(default=None, description="Current throttle, for example 50.0 MiB/s.")


class KafkaRebalanceStatus(ResourceStatus):
    """Status of a rebalance."""

    plan: PlanStatus | None = Field(default=None, description="The current plan.")
    progress: ProgressStatus | None = Field(default=None, description="Progress of the run.")
    current_batch: Annotated[tuple[BatchRow, ...], Field(max_length=MAX_BATCH_ROWS, json_schema_extra=_ATOMIC)] = Field(
        default=(), description="Partitions in flight; at most 20."
    )
    current_batch_size: Count = Field(default=0, description="Number of partitions in flight.")
    throttle: ThrottleStatus | None = Field(default=None, description="The current throttle.")
    overrides: OverrideRows = Field(default=(), description="Settings that annotations override now.")
    completed_at: Timestamp | None = Field(
        default=None, description="When the last run ended. Absent while a run is open, and before the first one."
    )
    skipped: Annotated[tuple[SkippedRow, ...], Field(max_length=MAX_SKIPPED_ROWS, json_schema_extra=_ATOMIC)] = Field(
        default=(), description="Skipped partitions; at most 50."
    )
    skipped_count: Count = Field(default=0, description="Number of skipped partitions.")
    display: Display | None = Field(default=None, description="Text for the columns of kubectl get.")
