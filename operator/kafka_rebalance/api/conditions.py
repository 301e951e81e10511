"""Condition types, and the only functions that write conditions.

There is no stored phase: the reason of Ready is computed each round from the spec, the stored plan and the cluster.
No clock here: ``now`` is an argument.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import Enum, StrEnum

from kafka_rebalance.api.resource_status import MAX_CONDITIONS, MAX_MESSAGE, Condition
from kafka_rebalance.reasons import Reason


class ConditionType(StrEnum):
    """The types, in the order of the list in the status."""

    READY = "Ready"
    """Reports the state as its reason; True when the desired state is reached."""
    RECONCILING = "Reconciling"
    """Reports that the operator is working, or waits for something that needs no intervention (kstatus)."""
    STALLED = "Stalled"
    """Reports that the resource needs intervention (kstatus); never True together with Reconciling."""
    PLANNED = "Planned"
    """Reports that a plan for this spec is stored."""
    REBALANCING = "Rebalancing"
    """Reports that steps are being submitted or are in flight; False while a run waits at rest."""
    THROTTLE_APPLIED = "ThrottleApplied"
    """Reports that every broker that the rebalance uses accepted the rate."""
    SUCCEEDED = "Succeeded"
    """Reports that every partition of the plan was read back at its target."""
    APPROVED = "Approved"
    """Reports that spec.approval.planHash is the hash of the stored plan."""
    DRAINED = "Drained"
    """Reports that the brokers to decommission were read back without a replica."""
    REACHABLE = "Reachable"
    """Reports that the brokers of a KafkaConnection answer with its credentials."""
    VERSION_RECORDED = "VersionRecorded"
    """Reports that the behaviour of the cluster's Kafka version is on record; holds nothing back."""
    SPEC_WARNING = "SpecWarning"
    """Reports that settings are probably mistakes; absent if there are none."""
    OVERRIDDEN = "Overridden"
    """Reports that annotations override settings of the spec for a time; absent if there are none."""
    PERMITTED = "Permitted"
    """False while a permission in Kafka is known to be missing, and absent otherwise."""
    SAMPLING = "Sampling"
    """Reports that the last sample of the cluster was stored; absent without spec.sampling."""


NO_CONNECTION_REASONS = frozenset(
    {
        Reason.KAFKA_UNREACHABLE,
        Reason.KAFKA_CLIENT_ENDED,
        Reason.KAFKA_AUTHENTICATION_FAILED,
        Reason.TOKEN_UNAVAILABLE,
        Reason.SECRET_NOT_FOUND,
        Reason.CONNECTION_NOT_FOUND,
    }
)
"""Problems that prevent any request to Kafka, as opposed to a request that failed."""


class ReadySummary(Enum):
    """The only combinations of the statuses of Ready, Reconciling and Stalled."""

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
    """The conditions with this one set, in a fixed order. Those of other controllers come last, up to the maximum.

    ``status`` None is Unknown. ``lastTransitionTime`` changes only with the status.
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
        message=message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…",
    )
    found = sorted(others.values(), key=lambda c: (_ORDER.get(c.type, len(_ORDER)), c.type))  # type: ignore[call-overload]
    return tuple(found[:MAX_CONDITIONS])


def summarise(
    conditions: Iterable[Condition], ready: ReadySummary, reason: str, message: str, *, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Set Ready, Reconciling and Stalled together, so that they never contradict each other."""
    result = tuple(conditions)
    kinds = (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)
    for kind, status in zip(kinds, ready.value, strict=True):
        result = set_condition(result, kind, status == "True", reason, message, generation=generation, now=now)
    return result


def warn(
    conditions: Iterable[Condition], warnings: Sequence[tuple[str, str]], *, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Set SpecWarning with these reasons and messages, the first one's reason; without any, remove it."""
    if not warnings:
        return remove_condition(conditions, ConditionType.SPEC_WARNING)
    message = "; ".join(message for _, message in warnings)
    kind = ConditionType.SPEC_WARNING
    return set_condition(conditions, kind, True, warnings[0][0], message, generation=generation, now=now)


def overridden(
    conditions: Iterable[Condition],
    in_force: Sequence[str],
    problems: Sequence[str],
    *,
    generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """Set Overridden: True with the overrides in force, False if annotations cannot be read, else absent."""
    if not in_force and not problems:
        return remove_condition(conditions, ConditionType.OVERRIDDEN)
    message = "; ".join([*in_force, *(f"{problem}; it has no effect" for problem in problems)])
    reason = Reason.OVERRIDDEN if in_force else Reason.OVERRIDE_INVALID
    kind = ConditionType.OVERRIDDEN
    return set_condition(conditions, kind, bool(in_force), reason, message, generation=generation, now=now)


def remove_condition(conditions: Iterable[Condition], kind: ConditionType) -> tuple[Condition, ...]:
    """The conditions without this one."""
    return tuple(condition for condition in conditions if condition.type != kind)


def find_condition(conditions: Iterable[Condition], kind: ConditionType) -> Condition | None:
    """The condition of this type, if set."""
    return next((condition for condition in conditions if condition.type == kind), None)
