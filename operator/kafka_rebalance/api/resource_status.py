"""status of both resources: small and bounded whatever the size of the cluster, written by the operator alone.

``as_patch`` gives a merge patch that *replaces* the status: a None becomes null and removes what was there. The status
is for people and tools; the operator never takes a decision from one that it reads back.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from kafka_rebalance.api.fields import ApiModel, Timestamp

MAX_BATCH_ROWS = 20
MAX_PLAN_BROKERS = 20
MAX_SKIPPED_ROWS = 50
MAX_MESSAGE = 4096

_ATOMIC = {"x-kubernetes-list-type": "atomic"}
Count = Annotated[int, Field(ge=0)]
ShortText = Annotated[str, Field(max_length=64)]
SourceName = Annotated[str, Field(max_length=512)]
TopicName = Annotated[str, Field(max_length=249)]
BrokerList = Annotated[tuple[int, ...], Field(max_length=200, json_schema_extra=_ATOMIC)]


class Condition(ApiModel):
    """One condition, as in metav1.Condition."""

    type: Annotated[str, Field(min_length=1, max_length=316)] = Field(description="What the condition is about.")
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown.")
    observed_generation: int = Field(default=-1, description="Generation of the spec that the condition is about.")
    last_transition_time: Timestamp = Field(description="When the status last changed.")
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$")] = (
        Field(description="Why, in one CamelCase word.")
    )
    message: Annotated[str, Field(max_length=MAX_MESSAGE)] = Field(default="", description="Why, for a person.")


class ResourceStatus(ApiModel):
    """What every resource reports."""

    # A status written by a newer operator must not stop this one: what is not known is left out.
    model_config = ConfigDict(extra="ignore")

    observed_generation: int = Field(default=-1, description="Generation of the spec that this status is about.")
    cluster_id: Annotated[str, Field(max_length=128)] | None = Field(
        default=None, description="Id of the Kafka cluster, as the brokers tell it."
    )
    conditions: Annotated[
        tuple[Condition, ...],
        Field(
            max_length=20,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = Field(default=(), description="Conditions; the reason of Ready is the state.")

    def as_patch(self) -> dict[str, Any]:
        """The body of a merge patch on /status that leaves exactly this status behind."""
        return {"status": self.model_dump(mode="json", by_alias=True)}


class SpreadStatus(ApiModel):
    """How far apart brokers are."""

    fewest: Count = Field(description="The fewest replicas that a broker holds of what is balanced.")
    most: Count = Field(description="The most replicas that a broker holds of what is balanced.")


class BrokerPlanRow(ApiModel):
    """What the plan does to one broker."""

    broker: Count = Field(description="Id of the broker.")
    replicas_in: Count = Field(description="Replicas that it gets.")
    replicas_out: Count = Field(description="Replicas that it gives up.")
    bytes_in: Count = Field(description="Bytes that its new replicas have to fetch.")
    bytes_out: Count = Field(description="Bytes of the replicas that it gives up.")
    leaders_in: Count = Field(description="Partitions whose preferred leader it becomes.")
    leaders_out: Count = Field(description="Partitions whose preferred leader it is no more.")


class PlanStatus(ApiModel):
    """The plan being carried out."""

    hash: Annotated[str, Field(max_length=80)] = Field(description="Hash of the changed partitions.")
    ref: Annotated[str, Field(max_length=253)] | None = Field(
        default=None, description="ConfigMap in the operator's namespace that the stored plan begins with."
    )
    partitions: Count = Field(description="Partitions that change.")
    replica_moves: Count = Field(description="Replicas placed on a broker that did not hold the partition.")
    lower_bound: Count = Field(
        description="Moves that no plan that does what the strategy asks can be below. Of Generate and Assignment: the "
        "moves that these very lists need."
    )
    optimal: bool = Field(description="Whether replicaMoves is proved to be the optimum.")
    before: SpreadStatus | None = Field(default=None, description="The brokers' replicas before the plan.")
    after: SpreadStatus | None = Field(default=None, description="The same after it: what imbalance remains.")
    budget_reached: bool | None = Field(
        default=None,
        description="True where maxReplicaMoves or maxDataToMove left imbalance that more moves would mend.",
    )
    reason: ShortText | None = Field(
        default=None, description="Why the plan is empty, where the cluster is not just as asked for, in one word."
    )
    leader_moves: Count = Field(description="Partitions whose preferred leader changes.")
    elections: Count = Field(
        default=0, description="Partitions whose list stays, and whose preferred leader is elected (PreferredLeaders)."
    )
    data_to_move: Count = Field(description="Bytes that new replicas have to fetch.")
    data_source: ShortText | None = Field(
        default=None, description="Where the sizes come from: LoadModel (the pipeline's) or LogDirs (read live)."
    )
    per_broker: Annotated[tuple[BrokerPlanRow, ...], Field(max_length=MAX_PLAN_BROKERS, json_schema_extra=_ATOMIC)] = (
        Field(default=(), description="What each broker gets and gives up, those that change most first; the first 20.")
    )
    per_broker_count: Count = Field(default=0, description="Number of brokers that get or give up anything.")
    eta: ShortText | None = Field(default=None, description="Expected duration at the throttle in force.")


class PartitionProgress(ApiModel):
    """Partitions of the plan by what became of them."""

    total: Count = Field(description="Partitions of the plan.")
    completed: Count = Field(description="Partitions at their target.")
    in_flight: Count = Field(description="Partitions with a step under way.")
    waiting: Count = Field(description="Partitions that wait for their next step.")
    skipped: Count = Field(default=0, description="Partitions left alone; see skipped.")


class ReplicaProgress(ApiModel):
    """Replica moves of the plan."""

    total: Count = Field(description="Replicas to be placed on a new broker.")
    completed: Count = Field(description="Those that are in sync there.")


class StepProgress(ApiModel):
    """KIP-435's steps."""

    completed: Count = Field(
        description="Steps that lie behind the partitions: counted from where each began and where it is, in steps of "
        "the parallelReplicaCount of now. Partitions that are left alone do not count."
    )
    in_flight: Count = Field(description="Steps under way: at most one of each partition.")


class ByteProgress(ApiModel):
    """Bytes of the plan."""

    total: Count = Field(description="Bytes that new replicas have to fetch.")
    moved: Count = Field(description="Bytes that they hold.")


class ProgressStatus(ApiModel):
    """How far it is."""

    percent: Annotated[int, Field(ge=0, le=100)] = Field(
        description="Share of the bytes; of the partitions where nothing is to be copied. Back: of the way back."
    )
    partitions: PartitionProgress = Field(description="Partitions by what became of them.")
    replica_moves: ReplicaProgress = Field(description="Replica moves.")
    # Not in statuses that earlier versions have written.
    steps: StepProgress | None = Field(default=None, description="KIP-435's steps. Back: of the way back.")
    bytes: ByteProgress = Field(description="Bytes.")
    rate: Count | None = Field(default=None, description="Bytes per second, lately.")
    estimated_completion: ShortText | None = Field(default=None, description="When it will be done at the pace seen.")
    started_at: Timestamp | None = Field(
        default=None, description="When the run submitted its first step; absent until then."
    )
    above_replication_factor: Count = Field(
        default=0, description="Partitions that have more replicas than their replication factor for now."
    )


class BatchRow(ApiModel):
    """One partition in flight (a row of KIP-435's current batch)."""

    topic: TopicName = Field(description="Topic.")
    partition: Count = Field(description="Partition.")
    current: BrokerList = Field(description="Replicas before the step, preferred leader first.")
    step: BrokerList = Field(description="Replicas that the step asked for.")
    target: BrokerList = Field(description="Replicas at the end.")
    adding: BrokerList = Field(default=(), description="Brokers that Kafka is adding.")
    removing: BrokerList = Field(default=(), description="Brokers that Kafka will remove.")
    since: Timestamp | None = Field(default=None, description="When the step was submitted.")
    bytes_remaining: Count | None = Field(
        default=None, description="Bytes that the adding brokers still have to fetch."
    )


class ThrottleStatus(ApiModel):
    """The throttle in force."""

    leader_rate: Count | None = Field(default=None, description="Bytes per second per broker, sending side.")
    follower_rate: Count | None = Field(default=None, description="Bytes per second per broker, fetching side.")
    source: SourceName = Field(description="Which setting the rates come from.")
    bound_by: SourceName | None = Field(
        default=None,
        description="Whose lower limit binds on some of these brokers. Absent: nobody's; the rates are in force.",
    )
    brokers: Count = Field(default=0, description="Brokers on which it is applied.")


class SkippedRow(ApiModel):
    """A partition that is left alone."""

    topic: TopicName = Field(description="Topic.")
    partition: Count = Field(description="Partition.")
    reason: ShortText = Field(description="Why, in one CamelCase word.")


class Display(ApiModel):
    """Ready-made text for the columns of kubectl get."""

    progress: ShortText | None = Field(default=None, description="Percent done, like 37%.")
    moved: ShortText | None = Field(default=None, description="Bytes moved of bytes to move, like 1.2 GiB/3.4 GiB.")
    eta: ShortText | None = Field(default=None, description="Time left, from at best to at this pace, like 12m-25m.")
    throttle: ShortText | None = Field(default=None, description="Throttle in force, like 50.0 MiB/s.")


class KafkaRebalanceStatus(ResourceStatus):
    """How far a rebalance is."""

    plan: PlanStatus | None = Field(default=None, description="The plan being carried out.")
    progress: ProgressStatus | None = Field(default=None, description="How far it is.")
    current_batch: Annotated[tuple[BatchRow, ...], Field(max_length=MAX_BATCH_ROWS, json_schema_extra=_ATOMIC)] = Field(
        default=(), description="Partitions in flight; the first 20."
    )
    current_batch_size: Count = Field(default=0, description="Number of partitions in flight.")
    throttle: ThrottleStatus | None = Field(default=None, description="The throttle in force.")
    skipped: Annotated[tuple[SkippedRow, ...], Field(max_length=MAX_SKIPPED_ROWS, json_schema_extra=_ATOMIC)] = Field(
        default=(), description="Partitions that are left alone; the first 50."
    )
    skipped_count: Count = Field(default=0, description="Number of partitions that are left alone.")
    display: Display | None = Field(default=None, description="Text for the columns of kubectl get.")
