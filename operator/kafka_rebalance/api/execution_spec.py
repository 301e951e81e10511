"""How a rebalance is executed and ended: the part of the spec whose changes act on a running rebalance."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from kafka_rebalance.api.fields import MAX_INT32, ApiModel, ByteCount, Form, PositiveInt, Rate, Seconds, rule, rules
from kafka_rebalance.execution.windows import MACROS, Window


class DeletionPolicy(StrEnum):
    """What deleting a running rebalance does."""

    ROLLBACK = "Rollback"
    REVERT = "Revert"
    ABANDON = "Abandon"


class ApprovalPolicy(StrEnum):
    """Whether the plan requires approval."""

    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


BETWEEN_LOG_DIRS = 5
"""How many replicas a broker copies between its log dirs where the spec does not say: one disk serves all of them."""


class MaxPerBroker(ApiModel):
    """Concurrent moves per broker, including those of other rebalances of the cluster."""

    into: PositiveInt | None = Field(
        default=None,
        validation_alias="in",
        serialization_alias="in",
        description="Maximum number of replicas that one broker fetches at the same time. Absent: no limit.",
    )
    out: PositiveInt | None = Field(
        default=None,
        description="Maximum number of replicas that are copied from one broker at the same time. Absent: no limit.",
    )
    between_log_dirs: PositiveInt | None = Field(
        default=None,
        description="Maximum number of replicas that one broker copies between its log dirs at the same time. Absent: "
        f"{BETWEEN_LOG_DIRS}.",
    )


Cron = Annotated[
    str,
    Field(max_length=100),
    Form(
        rf"{'|'.join(MACROS)}|\S+( \S+){{4}}",
        "must be five cron fields separated by single spaces (minute hour day-of-month month day-of-week), or "
        f"{', '.join(MACROS)}",
    ),
]
ZoneName = Annotated[
    str,
    Field(min_length=1, max_length=64),
    Form("[A-Za-z0-9_+/-]+", "must be the IANA name of a time zone, like Europe/Berlin"),
]


PlanHash = Annotated[
    str,
    Field(max_length=80),
    Form("sha256:[0-9a-f]{64}", "must be a hash as in status.plan.hash: sha256: and 64 hexadecimal digits"),
]


class WindowSpec(ApiModel):
    """A recurring period in which new steps may start."""

    cron: Cron = Field(
        description="When the window opens, as five cron fields: minute, hour, day of month, month, day of week. "
        "Names, ranges, lists, steps and changes to and from daylight saving time work as in Debian's cron. Also "
        f"{', '.join(MACROS)}."
    )
    duration_seconds: Seconds = Field(
        validation_alias="duration", serialization_alias="duration", description="How long the window stays open."
    )
    time_zone: ZoneName = Field(
        default="UTC", description="IANA time zone of the cron fields, for example Europe/Berlin."
    )

    def as_rule(self) -> Window:
        """The window as a value of the execution layer, which validates the fields: an invalid window is closed."""
        return Window(self.cron, self.duration_seconds, self.time_zone)


class Execution(ApiModel):
    """Limits and timing of the execution. Changes act on the running rebalance from the next step on."""

    suspend: bool = Field(
        default=False, description="true: submit no new steps. Steps in flight finish. The same as spec.suspend."
    )
    parallel_replica_count: PositiveInt = Field(
        default=1,
        description="Replicas of one partition that one step replaces (KIP-435 reassignment.parallel.replica.count).",
    )
    parallel_partition_count: PositiveInt = Field(
        default=100,
        description="Maximum number of partitions in flight (KIP-435 reassignment.parallel.partition.count).",
    )
    parallel_leader_movements: PositiveInt = Field(
        default=20,
        description="Maximum number of partitions in flight whose leader changes (KIP-435 "
        "reassignment.parallel.leader.movements).",
    )
    max_concurrent_replica_movements: PositiveInt | None = Field(
        default=None,
        description="Maximum number of replicas being added, over all partitions (KIP-435 "
        "reassignment.max.concurrent.replica.movements). Absent: no limit.",
    )
    max_per_broker: MaxPerBroker = Field(
        default=MaxPerBroker(),
        description="Maximum number of concurrent moves per broker, checked before this rebalance starts a step. Moves "
        "of other rebalances count.",
    )
    windows: Annotated[
        tuple[WindowSpec, ...], Field(max_length=20, json_schema_extra={"x-kubernetes-list-type": "atomic"})
    ] = Field(
        default=(),
        description="New steps start only while one of these windows is open. Steps in flight finish after it closes. "
        "Empty: steps start at any time.",
    )
    max_unhealthy: Annotated[int, Field(ge=0, le=MAX_INT32)] = Field(
        default=0,
        description="Health gate: number of under-replicated partitions outside this rebalance that are tolerated. "
        "While there are more, no new step starts.",
    )
    broker_settle_seconds: Seconds = Field(
        default=60,
        validation_alias="brokerSettleTime",
        serialization_alias="brokerSettleTime",
        description="No new step starts for this long after a broker joined or left. A broker that has been away for "
        "less time counts as restarting.",
        json_schema_extra={"default": "1m"},
    )
    stall_timeout_seconds: Seconds = Field(
        default=900,
        validation_alias="stallTimeout",
        serialization_alias="stallTimeout",
        description="Partitions in flight that make no progress for this long set the condition Stalled.",
        json_schema_extra={"default": "15m"},
    )


_HASH_WITHOUT_MANUAL = "requires policy: Manual; with Automatic, the plan is executed without approval"


class Approval(ApiModel):
    """Whether the plan requires approval, and how much drift it tolerates."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("!has(self.planHash) || self.policy == 'Manual'", _HASH_WITHOUT_MANUAL, fieldPath=".planHash")
        )
    )

    policy: ApprovalPolicy = Field(
        default=ApprovalPolicy.AUTOMATIC,
        description="Automatic: the plan is executed at once. Manual: it is executed when planHash equals "
        "status.plan.hash.",
    )
    plan_hash: PlanHash | None = Field(
        default=None, description="Hash of the approved plan, from status.plan.hash. Requires policy: Manual."
    )
    drift_budget: Annotated[int, Field(ge=0, le=100)] = Field(
        default=10,
        description="Percentage of the replica moves that may become invalid because others change the cluster. "
        "Partitions that differ from what was planned leave the run. Above this percentage, a new plan is made.",
    )

    @field_validator("plan_hash")
    @classmethod
    def _with_manual(cls, plan_hash: str | None, found: ValidationInfo) -> str | None:
        # An invalid policy is not among the data; its own error says enough.
        if plan_hash is not None and found.data.get("policy") is ApprovalPolicy.AUTOMATIC:
            raise ValueError(_HASH_WITHOUT_MANUAL)
        return plan_hash


class Rollback(ApiModel):
    """Limits of the rollback that a deletion starts."""

    max_data: ByteCount | None = Field(
        default=None,
        description="Maximum number of bytes that a rollback copies. A larger rollback only cancels reassignments "
        "in flight; the deletion then waits until maxData is raised or deletionPolicy is changed. Absent: no limit.",
    )
    timeout_seconds: Seconds | None = Field(
        default=None,
        validation_alias="timeout",
        serialization_alias="timeout",
        description="After this time the deletion cancels reassignments in flight and completes, even if partitions "
        "are not rolled back. Absent: no limit.",
    )


_ONE_OF = "set either unlimited or at least one of leaderRate, followerRate and logDirRate"


class Throttle(ApiModel):
    """Throttle rates of this rebalance, in bytes per second per broker. Changes act on running transfers."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "(has(self.unlimited) ? 1 : 0)"
                " + (has(self.leaderRate) || has(self.followerRate) || has(self.logDirRate) ? 1 : 0) == 1",
                _ONE_OF,
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
    log_dir_rate: Rate | None = Field(
        default=None,
        description="Bytes per second that each broker may copy between its log dirs "
        "(replica.alter.log.dirs.io.max.bytes.per.second). A lower rate of the broker holds. Absent: 50Mi, unless "
        "unlimited is set. If only this is set, the rates of reassignments are as without throttle.",
    )
    unlimited: Literal[True] | None = Field(default=None, description="true: no throttle.")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        rates = (self.leader_rate, self.follower_rate, self.log_dir_rate)
        if (self.unlimited is not None) == any(rate is not None for rate in rates):
            raise ValueError(_ONE_OF)
        return self

    @property
    def of_reassignments(self) -> bool:
        """Whether it says at which rate replicas are copied between brokers."""
        return self.unlimited is not None or self.leader_rate is not None or self.follower_rate is not None
