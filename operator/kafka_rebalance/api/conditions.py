"""Condition types, their reasons, and the one setter that writes conditions.

There is no stored phase: the reason of Ready is computed each time from the spec, the stored plan and the cluster.
No clock here: ``now`` is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import Enum, StrEnum

from kafka_rebalance.api.resource_status import MAX_MESSAGE, Condition


class ConditionType(StrEnum):
    """The types, in the order in which they are written."""

    READY = "Ready"
    """Reports the state in one word, as its reason; True when what was asked for is done."""
    RECONCILING = "Reconciling"
    """Reports that the operator is working, or waits for something that will come by itself (kstatus)."""
    STALLED = "Stalled"
    """Reports that it will not go on without help (kstatus); never True together with Reconciling."""
    PLANNED = "Planned"
    """Reports that a plan for this spec is stored."""
    REBALANCING = "Rebalancing"
    """Reports that steps are being submitted or are in flight."""
    THROTTLE_APPLIED = "ThrottleApplied"
    """Reports that the throttle in force was read back from the brokers."""
    SUCCEEDED = "Succeeded"
    """Reports that every partition of the plan was read back at its target."""
    APPROVED = "Approved"
    """Reports that the stored plan is the one that spec.approval.planHash names."""
    DRAINED = "Drained"
    """Reports that the brokers to decommission were read back without a replica."""


class Reason(StrEnum):
    """Why a condition has its status; as the reason of Ready, the state."""

    QUEUED = "Queued"
    """Reports that another rebalance of the same cluster goes first."""
    PLANNING = "Planning"
    """Reports that the cluster is being read and a plan made."""
    PLANNED = "Planned"
    """Reports that the plan is stored."""
    REBALANCING = "Rebalancing"
    """Reports that steps are being submitted or are in flight."""
    SUSPENDED = "Suspended"
    """Reports that spec.execution.suspend holds new steps back."""
    OUTSIDE_WINDOW = "OutsideWindow"
    """Reports that none of spec.execution.windows is open; the message says when the next one opens."""
    AWAITING_APPROVAL = "AwaitingApproval"
    """Reports that spec.approval.policy is Manual and planHash is not the hash of the stored plan."""
    APPROVED = "Approved"
    """Reports that spec.approval.planHash is the hash of the stored plan."""
    YIELDING = "Yielding"
    """Reports that a rebalance of higher priority wants the same partitions: this one comes to rest and lets it by."""
    FROZEN = "Frozen"
    """Reports that a KafkaReassignmentThrottle with freeze holds new steps back."""
    CLUSTER_UNHEALTHY = "ClusterUnhealthy"
    """Reports that the health gate holds new steps back."""
    SUCCEEDED = "Succeeded"
    """Reports that every partition of the plan is at its target."""
    NOTHING_TO_DO = "NothingToDo"
    """Reports that the cluster already was as asked for."""
    STALLED = "Stalled"
    """Reports that what is in flight made no progress within spec.execution.stallTimeout."""
    THROTTLE_TOO_LOW = "ThrottleTooLow"
    """Reports that more is produced to what moves than the throttle lets through, so it can never finish."""
    DRIFTED = "Drifted"
    """Reports that others changed more of the plan than spec.approval.driftBudget: a new plan is being made."""
    ROLLBACK_TOO_LARGE = "RollbackTooLarge"
    """Reports that the rollback would move more than spec.rollback.maxData, and waits for a word."""
    TAKEN_OVER = "TakenOver"
    """Reports that another resource covers the same partitions and goes on from here; nothing is moved back."""
    UNDOING = "Undoing"
    """Reports that a run that had succeeded is being moved back to where it began."""
    UNDONE = "Undone"
    """Reports that a run that had succeeded has been moved back to where it began."""
    ROLLING_BACK = "RollingBack"
    """Reports that partitions are being moved back to where they were before the run."""
    REVERTING = "Reverting"
    """Reports that only what is in flight is being cancelled."""
    ROLLED_BACK = "RolledBack"
    """Reports that every partition is back where it was before the run."""
    ROLLED_BACK_PARTIALLY = "RolledBackPartially"
    """Reports that some partitions could not be moved back; the message names them."""
    CANCEL_IMPOSSIBLE = "CancelImpossible"
    """Reports that Kafka would refuse the cancel now: all originals and all new replicas are offline."""
    SUPERSEDED = "Superseded"
    """Reports that the planning part of the spec changed and the plan in flight is being replaced."""
    APPLIED = "Applied"
    """Reports that the throttle was read back from the brokers."""
    PENDING = "Pending"
    """Reports that something has not been read back yet."""
    UNLIMITED = "Unlimited"
    """Reports that the spec asks for full speed, so no throttle is set."""
    RESTORED = "Restored"
    """Reports that the throttle was removed and what was there before is back."""
    DRAINED = "Drained"
    """Reports that the decommissioned brokers hold no replica."""
    NOT_DRAINED = "NotDrained"
    """Reports that a decommissioned broker still holds replicas."""
    CONFLICTED = "Conflicted"
    """Reports that an older KafkaReassignmentThrottle of the same cluster is in force instead."""
    NOTHING_TO_THROTTLE = "NothingToThrottle"
    """Reports that nothing is being reassigned, so no broker has a rate of ours."""
    REPLICATION_THROTTLE_LOWER = "ReplicationThrottleLower"
    """Reports that a rate exceeds the replication throttle of a broker, which KIP-542 calls a configuration error."""
    CONTESTED = "Contested"
    """Reports that somebody keeps undoing the throttle; the message names who it may be."""
    THROTTLE_LEDGER_DAMAGED = "ThrottleLedgerDamaged"
    """Reports that the record of what to restore cannot be read; nothing is guessed."""
    RESTORING = "Restoring"
    """Reports that the resource is being deleted and what it changed in Kafka is being given back."""
    INVALID_SPEC = "InvalidSpec"
    """Reports that the spec cannot be read; the message names the field."""
    KAFKA_UNREACHABLE = "KafkaUnreachable"
    """Reports that no broker answered; tried again."""
    KAFKA_AUTHENTICATION_FAILED = "KafkaAuthenticationFailed"
    """Reports that the brokers refused the credentials."""
    KAFKA_AUTHORIZATION_FAILED = "KafkaAuthorizationFailed"
    """Reports that the brokers accepted the credentials but refused the call."""
    SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105 - a reason, no secret
    """Reports that a Secret that the spec names, or a key in it, is not there."""
    INSUFFICIENT_BROKERS = "InsufficientBrokers"
    """Reports that fewer brokers may be used than a partition has replicas."""
    INSUFFICIENT_DISK = "InsufficientDisk"
    """Reports that more would come to a broker than leaves it and is free on its disks."""
    UNKNOWN_BROKER = "UnknownBroker"
    """Reports that the spec names a broker that the cluster does not have."""
    OFFLINE_PARTITIONS = "OfflinePartitions"
    """Reports that partitions have no leader, and the spec asks to plan nothing meanwhile."""
    ASSIGNMENT_INVALID = "AssignmentInvalid"
    """Reports that the lists of strategy Assignment cannot be read; the message names ConfigMap and place."""
    SIZES_UNKNOWN = "SizesUnknown"
    """Reports that no broker tells the size of partitions, and the spec bounds the bytes to move; tried again."""
    ORIGINAL_REPLICAS_DIFFER = "OriginalReplicasDiffer"
    """Reports that a partition has other replicas than the lists of strategy Assignment were made for (KIP-236)."""
    API_SERVER_UNREACHABLE = "ApiServerUnreachable"
    """Reports that the Kubernetes API server did not answer; tried again."""
    INTERNAL_ERROR = "InternalError"
    """Reports an error of the operator itself; tried again, details in its log."""


NO_CONNECTION_REASONS = frozenset(
    {Reason.KAFKA_UNREACHABLE, Reason.KAFKA_AUTHENTICATION_FAILED, Reason.SECRET_NOT_FOUND}
)
"""Problems with which no request can be sent to Kafka, as opposed to a request that failed."""


class ReadySummary(Enum):
    """How Ready, Reconciling and Stalled go together; no other combination exists."""

    DONE = ("True", "False", "False")
    IN_PROGRESS = ("False", "True", "False")
    STUCK = ("False", "False", "True")


_ORDER = {name: place for place, name in enumerate(ConditionType)}


def set_condition(
    conditions: Iterable[Condition],
    kind: ConditionType,
    status: bool | None,
    reason: str,
    message: str,
    *,
    generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """The conditions with this one set, in their fixed order.

    ``status`` None is Unknown. ``lastTransitionTime`` stays while the status does.
    """
    others = {condition.type: condition for condition in conditions}
    before = others.get(kind)
    text = {True: "True", False: "False", None: "Unknown"}[status]
    unchanged = before is not None and before.status == text
    others[kind] = Condition(
        type=kind,
        status=text,  # type: ignore[arg-type]
        observed_generation=generation,
        last_transition_time=before.last_transition_time if before and unchanged else now.replace(microsecond=0),
        reason=str(reason),
        message=_cut(message),
    )
    return tuple(sorted(others.values(), key=lambda c: (_ORDER.get(c.type, len(_ORDER)), c.type)))  # type: ignore[call-overload]


def summarise(
    conditions: Iterable[Condition], verdict: ReadySummary, reason: str, message: str, *, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Set Ready, Reconciling and Stalled together, so that they never contradict each other."""
    result = tuple(conditions)
    kinds = (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)
    for kind, status in zip(kinds, verdict.value, strict=True):
        result = set_condition(result, kind, status == "True", reason, message, generation=generation, now=now)
    return result


def remove_condition(conditions: Iterable[Condition], kind: ConditionType) -> tuple[Condition, ...]:
    """The conditions without this one: it no longer applies."""
    return tuple(condition for condition in conditions if condition.type != kind)


def find_condition(conditions: Iterable[Condition], kind: ConditionType) -> Condition | None:
    """The condition of this type, if set."""
    return next((condition for condition in conditions if condition.type == kind), None)


def _cut(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
