"""The resources of kafkarebalance.dev/v1alpha1, and how to parse what the API server sends.

Nothing here talks to the API server.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Self, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from kafka_rebalance.api.connection import KafkaSource
from kafka_rebalance.api.connection_resource import KafkaConnectionSpec, KafkaConnectionStatus
from kafka_rebalance.api.fields import ApiModel, Timestamp
from kafka_rebalance.api.overrides import MAX_TEXT, OVERRIDES, OverrideInForce, overridden_throttle
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.api.resource_status import Condition, KafkaRebalanceStatus, ResourceStatus
from kafka_rebalance.api.throttle_resource import KafkaReassignmentThrottleSpec, KafkaReassignmentThrottleStatus
from kafka_rebalance.api.topic_patterns import check_expressions
from kafka_rebalance.api.validation import validate

GROUP = "kafkarebalance.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
REBALANCES = "kafkarebalances"
CONNECTIONS = "kafkaconnections"
REASSIGNMENT_THROTTLES = "kafkareassignmentthrottles"
KINDS = {
    REBALANCES: "KafkaRebalance",
    CONNECTIONS: "KafkaConnection",
    REASSIGNMENT_THROTTLES: "KafkaReassignmentThrottle",
}
"""The kinds by plural."""
FINALIZER = f"{GROUP}/rollback"
"""The operator's own. It must differ from the finalizer of kopf, which kopf removes where it does not need it."""
UNDO_ANNOTATION = f"{GROUP}/undo"
"""Undoes a succeeded run. The value is the hash of its plan, so that it cannot undo another one."""
COMPLETED_ANNOTATION = f"{GROUP}/completed"
"""Written by the operator when a run has ended, so that the resource is not executed again after it is restored."""
PLANNING_FIELDS = frozenset(
    {"strategy", "topics", "brokers", "goals", "replicationFactor", "assignment", "offlinePolicy"}
)
"""The fields of the spec of a KafkaRebalance that decide what is planned."""
LET_GO_ANNOTATION = f"{GROUP}/let-go"
"""``true`` on a resource that is being deleted: remove the finalizer at once (Kafka no longer exists)."""
MOST_FINALIZERS = 20
"""How many of an object are kept."""
_ANNOTATIONS = (UNDO_ANNOTATION, COMPLETED_ANNOTATION, LET_GO_ANNOTATION, *OVERRIDES)


def own_annotations(found: Any) -> Any:
    """The annotations that the operator reads, cut behind the longest valid text. All may have 256 KiB together."""
    if not isinstance(found, dict):
        return found
    own = {name: found[name] for name in _ANNOTATIONS if name in found}
    return {name: text[: MAX_TEXT + 1] if isinstance(text, str) else text for name, text in own.items()}


def few_finalizers(found: Any) -> Any:
    """At most `MOST_FINALIZERS`, ours first if there are more: an object may have 170,000."""
    if not isinstance(found, list) or len(found) < MOST_FINALIZERS:
        return found
    ours = [FINALIZER] if FINALIZER in found else []
    others = (name for name in found if name != FINALIZER)
    return [*ours, *islice(others, MOST_FINALIZERS - len(ours))]


def _as_tuple(found: Any) -> Any:
    """For a strict model."""
    return tuple(few_finalizers(found)) if isinstance(found, list) else found


class ObjectMeta(ApiModel):
    """The metadata that the operator needs; the rest is ignored."""

    model_config = ConfigDict(extra="ignore")

    name: str
    namespace: str
    uid: str
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    finalizers: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()
    """All of them if they are fewer than `MOST_FINALIZERS`."""
    annotations: Annotated[dict[str, str], BeforeValidator(own_annotations)] = Field(default_factory=dict)

    @property
    def created(self) -> str:
        """For comparing; the API server counts in seconds."""
        return self.creation_timestamp.isoformat() if self.creation_timestamp is not None else ""

    @property
    def deleting(self) -> bool:
        """Whether the object is being deleted and waits for its finalizers."""
        return self.deletion_timestamp is not None

    @property
    def held(self) -> bool:
        """Whether the object has our finalizer."""
        return FINALIZER in self.finalizers

    @property
    def let_go_ordered(self) -> bool:
        """Whether a person ordered the deletion to complete at once."""
        return self.annotations.get(LET_GO_ANNOTATION) == "true"


class KafkaConnection(ApiModel):
    """A Kafka cluster: how to connect, and which namespaces may."""

    model_config = ConfigDict(extra="ignore")

    metadata: ObjectMeta
    spec: KafkaConnectionSpec = Field(description="How to connect, and which namespaces may use the connection.")
    status: KafkaConnectionStatus = Field(default=KafkaConnectionStatus(), description="Status of the connection.")
    unread: str = ""
    """Why the newest spec is invalid; ``spec`` is then the last valid one. Empty: ``spec`` is the newest."""


class KafkaRebalance(ApiModel):
    """A rebalance of one Kafka cluster."""

    model_config = ConfigDict(extra="ignore")

    metadata: ObjectMeta
    spec: KafkaRebalanceSpec = Field(description="The desired assignment, and how to reach it.")
    status: KafkaRebalanceStatus = Field(default=KafkaRebalanceStatus(), description="Status of the rebalance.")


class KafkaReassignmentThrottle(ApiModel):
    """Limits of all reassignment traffic of one Kafka cluster."""

    model_config = ConfigDict(extra="ignore")

    metadata: ObjectMeta
    spec: KafkaReassignmentThrottleSpec = Field(description="Limits of all reassignment traffic of one Kafka cluster.")
    status: KafkaReassignmentThrottleStatus = Field(
        default=KafkaReassignmentThrottleStatus(), description="Status of the limits."
    )
    unread: str = ""
    """Why the newest spec is invalid; ``spec`` is then the last valid one. Empty: ``spec`` is the newest."""
    given: KafkaReassignmentThrottleSpec | None = None
    """The spec without overrides, if ``spec`` has some. None: they are the same."""
    overrides: tuple[OverrideInForce, ...] = ()
    """The overrides in ``spec``."""
    override_problems: tuple[str, ...] = ()
    """Annotations that cannot be read."""

    def as_of(self, now: datetime) -> Self:
        """The resource with the overrides that are in force at this time."""
        given = self.given or self.spec
        found = overridden_throttle(given, self.metadata.annotations, now)
        if (found.spec, found.in_force, found.problems) == (self.spec, self.overrides, self.override_problems):
            return self
        changed = {"overrides": found.in_force, "override_problems": found.problems}
        return self.model_copy(update={"spec": found.spec, "given": given, **changed})

    @property
    def name(self) -> str:
        """``namespace/name``, for people."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


_Model = TypeVar("_Model", bound=ApiModel)


def whole_finalizers(body: Mapping[str, Any]) -> tuple[str, ...]:
    """All finalizers of an object as the API server returns it; ``ObjectMeta`` has some."""
    return tuple(body["metadata"].get("finalizers") or ())


def parse_metadata(body: Mapping[str, Any]) -> ObjectMeta:
    """The metadata alone: enough to report that the spec is invalid."""
    return validate(ObjectMeta, body.get("metadata", {}), "metadata")


def parse_rebalance(body: Mapping[str, Any]) -> KafkaRebalance:
    """A KafkaRebalance as the API server sends it. Refused("InvalidSpec") names the field.

    Expressions for topics are not compiled, which may take seconds: ``TopicFilter`` refuses those that are invalid.
    """
    return KafkaRebalance(
        metadata=parse_metadata(body),
        spec=validate(KafkaRebalanceSpec, body.get("spec", {}), "spec"),
        status=_lenient(KafkaRebalanceStatus, body.get("status")),
    )


def parse_spec(spec: Any) -> KafkaRebalanceSpec:
    """The spec of a KafkaRebalance alone. Refused("InvalidSpec") names the field, also of invalid expressions."""
    found = validate(KafkaRebalanceSpec, spec, "spec")
    check_expressions(found.topics)
    return found


def parse_connection(body: Mapping[str, Any]) -> KafkaConnection:
    """A KafkaConnection as the API server sends it. Refused("InvalidSpec") names the field."""
    return KafkaConnection(
        metadata=parse_metadata(body),
        spec=validate(KafkaConnectionSpec, body.get("spec", {}), "spec"),
        status=_lenient(KafkaConnectionStatus, body.get("status")),
    )


def parse_throttle(body: Mapping[str, Any]) -> KafkaReassignmentThrottle:
    """A KafkaReassignmentThrottle as the API server sends it. Refused("InvalidSpec") names the field."""
    return KafkaReassignmentThrottle(
        metadata=parse_metadata(body),
        spec=validate(KafkaReassignmentThrottleSpec, body.get("spec", {}), "spec"),
        status=_lenient(KafkaReassignmentThrottleStatus, body.get("status")),
    )


def parse_throttle_again(body: Mapping[str, Any], before: KafkaReassignmentThrottle) -> KafkaReassignmentThrottle:
    """As ``parse_throttle``, but reuses the spec and ``unread`` of ``before`` if the resource has the same generation.

    The generation grows with each change of the spec and with a deletion, and not with others.
    """
    metadata = parse_metadata(body)
    if (metadata.uid, metadata.generation) != (before.metadata.uid, before.metadata.generation):
        return parse_throttle(body)
    return KafkaReassignmentThrottle(
        metadata=metadata,
        spec=before.given or before.spec,
        status=_lenient(KafkaReassignmentThrottleStatus, body.get("status")),
        unread=before.unread,
    )


def parse_deleted_throttle(body: Mapping[str, Any]) -> KafkaReassignmentThrottle:
    """A throttle that is being deleted, with only ``spec.kafka``: enough to restore what it changed in Kafka.

    Refused("InvalidSpec") where that is invalid.
    """
    kafka = validate(KafkaSource, body.get("spec", {}).get("kafka", {}), "spec.kafka")
    return KafkaReassignmentThrottle(
        metadata=parse_metadata(body),
        spec=KafkaReassignmentThrottleSpec(kafka=kafka),
        status=_lenient(KafkaReassignmentThrottleStatus, body.get("status")),
    )


def lenient_conditions(status: Any) -> tuple[Condition, ...]:
    """The conditions of either resource's status; none where it is invalid."""
    return _lenient(ResourceStatus, status).conditions


def planning_hash(spec: KafkaRebalanceSpec) -> str:
    """``sha256:…`` of the part of the spec that decides what is planned.

    Only values other than the defaults count, and the order of lists does not: a new field in a later version, or
    the same lists in another order, must not supersede a running plan.
    """
    whole = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    part = {name: value for name, value in whole.items() if name in PLANNING_FIELDS}
    for section in ("topics", "brokers"):
        part[section] = {name: sorted(set(values)) for name, values in part.get(section, {}).items() if values}
    text = json.dumps(part, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _lenient(model: type[_Model], value: Any) -> _Model:
    """An invalid status counts as empty: the operator writes it and bases no decision on it."""
    try:
        return model.model_validate(value or {}, by_alias=True, by_name=False)
    except ValidationError:
        return model()
