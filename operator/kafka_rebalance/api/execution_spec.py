"""How a rebalance is carried out and ended: the part of its spec that acts on the running one."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, model_validator

from kafka_rebalance.api.fields import MAX_INT32, ApiModel, ByteCount, PositiveInt, Rate, Seconds, rule, rules
from kafka_rebalance.execution.windows import Window


class DeletionPolicy(StrEnum):
    """What deleting a running rebalance does."""

    ROLLBACK = "Rollback"
    REVERT = "Revert"
    ABANDON = "Abandon"


class ApprovalPolicy(StrEnum):
    """Whether a person has to agree to the plan."""

    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


class MaxPerBroker(ApiModel):
    """Replica moves of one broker at once, those of other rebalances of the cluster included."""

    into: PositiveInt | None = Field(
        default=None,
        validation_alias="in",
        serialization_alias="in",
        description="Replicas that one broker may be fetching at once. Absent: no limit.",
    )
    out: PositiveInt | None = Field(
        default=None, description="Replicas that one broker may be the source of at once. Absent: no limit."
    )


def _five_fields(text: str) -> str:
    if not re.fullmatch(r"\S+( \S+){4}", text):
        raise ValueError(_FIVE_FIELDS)
    return text


_FIVE_FIELDS = "must be five cron fields with one blank between them: minute hour day-of-month month day-of-week"
Cron = Annotated[
    str,
    Field(max_length=100),
    AfterValidator(_five_fields),
    WithJsonSchema(
        {"type": "string", "maxLength": 100, **rules(rule(r"self.matches('^\\S+( \\S+){4}$')", _FIVE_FIELDS))}
    ),
]
ZoneName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_+/-]+$")]


class WindowSpec(ApiModel):
    """A time in which new steps may start."""

    cron: Cron = Field(
        description="When the window opens: minute, hour, day of month, month and day of week as in cron; names, "
        "ranges, lists and steps, and what a change of the clocks does, as in Debian's cron."
    )
    duration_seconds: Seconds = Field(
        validation_alias="duration", serialization_alias="duration", description="How long it stays open."
    )
    time_zone: ZoneName = Field(default="UTC", description="IANA time zone of the cron fields, like Europe/Berlin.")

    def as_rule(self) -> Window:
        """As the pure layer takes it, which finds out whether it can be read: one that cannot be is shut."""
        return Window(self.cron, self.duration_seconds, self.time_zone)


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
    max_per_broker: MaxPerBroker = Field(
        default=MaxPerBroker(),
        description="Replica moves of one broker at once, for the steps that this rebalance starts. Absent: no limit.",
    )
    windows: Annotated[
        tuple[WindowSpec, ...], Field(max_length=20, json_schema_extra={"x-kubernetes-list-type": "atomic"})
    ] = Field(
        default=(),
        description="New steps start only within one of these; what is in flight when it closes finishes. "
        "Empty: always.",
    )
    max_unhealthy: Annotated[int, Field(ge=0, le=MAX_INT32)] = Field(
        default=0,
        description="Under-replicated partitions outside this rebalance that are tolerated. With more of them no new "
        "step starts.",
    )
    broker_settle_seconds: Seconds = Field(
        default=60,
        validation_alias="brokerSettleTime",
        serialization_alias="brokerSettleTime",
        description="After a broker has joined or left, no new step starts for this long; a broker that is away for "
        "less counts as restarting.",
        json_schema_extra={"default": "1m"},
    )
    stall_timeout_seconds: Seconds = Field(
        default=900,
        validation_alias="stallTimeout",
        serialization_alias="stallTimeout",
        description="No progress of what is in flight for this long sets Stalled.",
        json_schema_extra={"default": "15m"},
    )


class Approval(ApiModel):
    """Whether the plan is carried out at once, and how much of it may drift away before it is made anew."""

    policy: ApprovalPolicy = Field(
        default=ApprovalPolicy.AUTOMATIC,
        description="Automatic: at once. Manual: when planHash is the hash in status.plan.",
    )
    plan_hash: Annotated[str, Field(max_length=80, pattern="^sha256:[0-9a-f]{64}$")] | None = Field(
        default=None, description="The plan that is approved."
    )
    drift_budget: Annotated[int, Field(ge=0, le=100)] = Field(
        default=10,
        description="Percent of the replica moves that may be lost to changes made by others. Partitions that are no "
        "longer what was planned leave the run; with more of the moves gone, a new plan is made.",
    )


class Rollback(ApiModel):
    """Bounds of the rollback that a deletion starts."""

    max_data: ByteCount | None = Field(
        default=None,
        description="More bytes than this are not moved back without a word: only what is in flight is cancelled, and "
        "the deletion waits until maxData is raised or deletionPolicy is changed. Absent: no limit.",
    )
    timeout_seconds: Seconds | None = Field(
        default=None,
        validation_alias="timeout",
        serialization_alias="timeout",
        description="After this long the deletion cancels what is in flight and lets go, whatever is not back. Absent: "
        "no limit.",
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
