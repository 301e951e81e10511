"""The CustomResourceDefinitions, from the models. ``make crds`` writes them to files (tests/arch/crd_files.py).

pydantic produces JSON Schema; the API server requires *structural* OpenAPI v3: no references, no titles, no unions
with null, no ``additionalProperties`` beside ``properties``. The translation supports only what our models use and
refuses the rest, so that nothing is dropped unnoticed.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from kafka_rebalance.api import v1alpha1

Schema = dict[str, Any]

_KEPT = frozenset(
    {
        "additionalProperties",
        "anyOf",
        "description",
        "enum",
        "format",
        "items",
        "pattern",
        "properties",
        "required",
        "type",
    }
    | {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
    | {"x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations"}
)
_DROPPED = frozenset({"$defs", "const", "default", "title"})


@dataclass(frozen=True, slots=True)
class _Resource:
    model: type[BaseModel]
    plural: str
    singular: str
    short_name: str
    columns: tuple[tuple[str, str, str, str], ...]
    """name, type, JSON path, description"""
    wide: tuple[tuple[str, str, str, str], ...] = ()
    """More columns, for `kubectl get -o wide`."""
    selectable: tuple[str, ...] = ()
    """JSON paths of the fields that `kubectl get --field-selector` takes, with ``_SELECTABLE`` at most eight."""


_STATE = '.status.conditions[?(@.type=="Ready")].reason'
_CLUSTER = ("Cluster", "string", ".status.clusterId", "Id of the Kafka cluster.")
_CATEGORY = "kafka-rebalance"
"""`kubectl get kafka-rebalance` lists all kinds. Not "kafka" or "strimzi", which Strimzi's resources have."""
_SELECTABLE = ".status.clusterId"
_CONNECTION = ".spec.kafka.connectionRef.name"
_AGE = ("Age", "date", ".metadata.creationTimestamp", "Time since the resource was created.")

_RESOURCES = (
    _Resource(
        model=v1alpha1.KafkaConnection,
        plural=v1alpha1.CONNECTIONS,
        singular="kafkaconnection",
        short_name="krc",
        columns=(
            ("State", "string", _STATE, "Reason of the Ready condition."),
            _CLUSTER,
            ("Brokers", "integer", ".status.brokers.live", "Number of live brokers."),
            _AGE,
        ),
        wide=(("Version", "string", ".status.kafkaVersion", "Version of Kafka, as reported by the brokers."),),
    ),
    _Resource(
        model=v1alpha1.KafkaRebalance,
        plural=v1alpha1.REBALANCES,
        singular="kafkarebalance",
        short_name="krb",
        columns=(
            ("State", "string", _STATE, "Reason of the Ready condition."),
            ("Progress", "string", ".status.display.progress", "Percentage of the work that is done."),
            ("Moved", "string", ".status.display.moved", "Bytes copied of the bytes to copy."),
            # Text, not a date: kubectl shows a date in the future as <invalid>.
            ("ETA", "string", ".status.display.eta", "Estimated time left."),
            ("Throttle", "string", ".status.display.throttle", "Throttle in force."),
            _AGE,
        ),
        wide=(
            _CLUSTER,
            ("Moves", "integer", ".status.plan.replicaMoves", "Replica moves of the plan."),
            ("Approval", "string", ".spec.approval.policy", "Whether the plan requires approval."),
            ("Completed", "string", ".status.completedAt", "When the last run ended."),
        ),
        selectable=(".spec.strategy", ".spec.approval.policy", ".spec.suspend", ".spec.execution.suspend", _CONNECTION),
    ),
    _Resource(
        model=v1alpha1.KafkaReassignmentThrottle,
        plural=v1alpha1.REASSIGNMENT_THROTTLES,
        singular="kafkareassignmentthrottle",
        short_name="krt",
        columns=(
            ("State", "string", _STATE, "Reason of the Ready condition."),
            ("Leader", "string", ".status.display.leader", "Throttle rate of each leader (sending side)."),
            ("Follower", "string", ".status.display.follower", "Throttle rate of each follower (fetching side)."),
            ("Brokers", "integer", ".status.brokersTotal", "Number of throttled brokers."),
            ("Foreign", "integer", ".status.foreignReassignments", "Throttled reassignments that other tools started."),
            _AGE,
        ),
        wide=(_CLUSTER, ("Freeze", "boolean", ".spec.freeze", "Whether no rebalance submits new steps.")),
        selectable=(".spec.freeze", _CONNECTION),
    ),
)


def definitions() -> dict[str, Schema]:
    """Every CustomResourceDefinition by name (plural.group)."""
    return {f"{resource.plural}.{v1alpha1.GROUP}": _definition(resource) for resource in _RESOURCES}


def _definition(resource: _Resource) -> Schema:
    kind = resource.model.__name__
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{v1alpha1.GROUP}"},
        "spec": {
            "group": v1alpha1.GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": resource.plural,
                "singular": resource.singular,
                "shortNames": [resource.short_name],
                "categories": [_CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": v1alpha1.VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": name, "type": kind_, "jsonPath": path, "description": description}
                        for name, kind_, path, description in resource.columns
                    ]
                    + [
                        {"name": name, "type": kind_, "jsonPath": path, "description": description, "priority": 1}
                        for name, kind_, path, description in resource.wide
                    ],
                    "selectableFields": [{"jsonPath": path} for path in (*resource.selectable, _SELECTABLE)],
                    "schema": {"openAPIV3Schema": _root(resource.model)},
                }
            ],
        },
    }


def _root(model: type[BaseModel]) -> Schema:
    raw = model.model_json_schema(by_alias=True, mode="validation")
    definitions_ = raw.get("$defs", {})
    status = _without_defaults(structural(raw["properties"]["status"], definitions_))
    # kstatus considers a resource without a status done. With this default it waits for the first status.
    status["default"] = {"observedGeneration": -1}
    return {
        "type": "object",
        "description": raw["description"],
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{v1alpha1.GROUP}/{v1alpha1.VERSION}"},
            "kind": {"type": "string", "description": model.__name__},
            "metadata": {"type": "object"},
            "spec": structural(raw["properties"]["spec"], definitions_),
            "status": status,
        },
    }


def structural(schema: Schema, definitions_: dict[str, Schema]) -> Schema:
    """A JSON schema from pydantic as structural OpenAPI v3. ValueError for an unknown keyword."""
    merged = _without_null(_resolved(schema, definitions_), definitions_)
    unknown = set(merged) - _KEPT - _DROPPED
    if unknown:
        raise ValueError(f"cannot translate {sorted(unknown)} of {merged}")
    result = {key: merged[key] for key in merged if key in _KEPT}
    if "const" in merged:
        result["enum"] = [merged["const"]]
    values = result.pop("additionalProperties", None)
    if isinstance(values, dict):
        result["additionalProperties"] = structural(values, definitions_)
    if "properties" in result:
        result["properties"] = {name: structural(part, definitions_) for name, part in result["properties"].items()}
    if "items" in result:
        result["items"] = structural(result["items"], definitions_)
    return _with_default(result, merged)


def _resolved(schema: Schema, definitions_: dict[str, Schema]) -> Schema:
    """The schema with its reference resolved; keywords beside the reference win."""
    if "$ref" not in schema:
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**definitions_[schema["$ref"].removeprefix("#/$defs/")], **beside}


def _without_null(schema: Schema, definitions_: dict[str, Schema]) -> Schema:
    """``X | None`` as X: in a resource, None is an absent field."""
    arms = schema.get("anyOf", [])
    present = [arm for arm in arms if arm != {"type": "null"}]
    if len(present) == len(arms):
        return schema
    if len(present) != 1:
        raise ValueError(f"a union of several types has no structural form: {schema}")
    beside = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
    return {**_resolved(present[0], definitions_), **beside}


def _with_default(result: Schema, merged: Schema) -> Schema:
    """Keeps defaults of plain values. An object gets ``{}`` if a field of it has a default; a list gets none."""
    default = merged.get("default")
    if result.get("type") == "object":
        if "default" in merged and any("default" in part for part in result.get("properties", {}).values()):
            result["default"] = {}
    elif default is not None and result.get("type") != "array":
        result["default"] = default
    return result


def _without_defaults(schema: Schema) -> Schema:
    """Removes the defaults: the API server must not add anything to what the operator wrote."""
    result = {key: value for key, value in schema.items() if key != "default"}
    if "properties" in result:
        result["properties"] = {name: _without_defaults(part) for name, part in result["properties"].items()}
    if "items" in result:
        result["items"] = _without_defaults(result["items"])
    return result
