"""The CustomResourceDefinitions, from the models: ``python -m kafka_rebalance.api.crd crds`` writes them.

pydantic speaks JSON Schema; the API server wants *structural* OpenAPI v3: no references, no titles, no unions with
null, no ``additionalProperties`` beside ``properties``. The translation knows only what our models use and refuses
the rest, so that nothing is dropped unnoticed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from kafka_rebalance.api.v1alpha1 import (
    GROUP,
    REASSIGNMENT_THROTTLES,
    REBALANCES,
    VERSION,
    KafkaReassignmentThrottle,
    KafkaRebalance,
)

Schema = dict[str, Any]

_KEPT = frozenset(
    {"anyOf", "description", "enum", "format", "items", "pattern", "properties", "required", "type"}
    | {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"}
    | {"x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations"}
)
_DROPPED = frozenset({"$defs", "additionalProperties", "const", "default", "title"})


@dataclass(frozen=True, slots=True)
class _Resource:
    model: type[BaseModel]
    plural: str
    singular: str
    short_name: str
    columns: tuple[tuple[str, str, str, str], ...]
    """name, type, JSON path, description"""


_STATE = '.status.conditions[?(@.type=="Ready")].reason'
_AGE = ("Age", "date", ".metadata.creationTimestamp", "Time since it was created.")

_RESOURCES = (
    _Resource(
        model=KafkaRebalance,
        plural=REBALANCES,
        singular="kafkarebalance",
        short_name="krb",
        columns=(
            ("State", "string", _STATE, "Reason of the Ready condition."),
            ("Progress", "string", ".status.display.progress", "Share of the work done."),
            ("Moved", "string", ".status.display.moved", "Bytes moved of bytes to move."),
            # Text, not a date: kubectl shows a date in the future as <invalid>.
            ("ETA", "string", ".status.display.eta", "Time left."),
            ("Throttle", "string", ".status.display.throttle", "Throttle in force."),
            _AGE,
        ),
    ),
    _Resource(
        model=KafkaReassignmentThrottle,
        plural=REASSIGNMENT_THROTTLES,
        singular="kafkareassignmentthrottle",
        short_name="krt",
        columns=(
            ("State", "string", _STATE, "Reason of the Ready condition."),
            ("Leader", "string", ".status.display.leader", "Rate of each broker, sending side."),
            ("Follower", "string", ".status.display.follower", "Rate of each broker, fetching side."),
            ("Brokers", "integer", ".status.brokersTotal", "Brokers on which reassignments are limited."),
            ("Foreign", "integer", ".status.foreignReassignments", "Reassignments of others that are limited."),
            _AGE,
        ),
    ),
)


class _PlainDumper(yaml.SafeDumper):
    """YAML without anchors: a schema that occurs twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - yaml's signature
        return True


def definitions() -> dict[str, Schema]:
    """Every CustomResourceDefinition, by its name (plural.group)."""
    return {f"{resource.plural}.{GROUP}": _definition(resource) for resource in _RESOURCES}


def render(definition: Schema) -> str:
    """One definition as the file that is committed."""
    text: str = yaml.dump(definition, Dumper=_PlainDumper, sort_keys=False, width=120, allow_unicode=True)
    return f"# Generated from operator/kafka_rebalance/api by `make crds`; do not edit.\n{text}"


def write(directory: Path) -> None:
    """Write all definitions, one file each."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, definition in definitions().items():
        (directory / f"{name}.yaml").write_text(render(definition), encoding="utf-8")


def _definition(resource: _Resource) -> Schema:
    kind = resource.model.__name__
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": resource.plural,
                "singular": resource.singular,
                "shortNames": [resource.short_name],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": name, "type": kind_, "jsonPath": path, "description": description}
                        for name, kind_, path, description in resource.columns
                    ],
                    "schema": {"openAPIV3Schema": _root(resource.model)},
                }
            ],
        },
    }


def _root(model: type[BaseModel]) -> Schema:
    raw = model.model_json_schema(by_alias=True, mode="validation")
    definitions_ = raw.get("$defs", {})
    status = _without_defaults(structural(raw["properties"]["status"], definitions_))
    # kstatus takes a resource without a status for done; with this one nobody sees it as done before we wrote.
    status["default"] = {"observedGeneration": -1}
    return {
        "type": "object",
        "description": raw["description"],
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{GROUP}/{VERSION}"},
            "kind": {"type": "string", "description": model.__name__},
            "metadata": {"type": "object"},
            "spec": structural(raw["properties"]["spec"], definitions_),
            "status": status,
        },
    }


def structural(schema: Schema, definitions_: dict[str, Schema]) -> Schema:
    """A JSON schema of pydantic's as structural OpenAPI v3; ValueError for a keyword that is not known here."""
    merged = _without_null(_resolved(schema, definitions_), definitions_)
    unknown = set(merged) - _KEPT - _DROPPED
    if unknown:
        raise ValueError(f"cannot translate {sorted(unknown)} of {merged}")
    result = {key: merged[key] for key in merged if key in _KEPT}
    if "const" in merged:
        result["enum"] = [merged["const"]]
    if "properties" in result:
        result["properties"] = {name: structural(part, definitions_) for name, part in result["properties"].items()}
    if "items" in result:
        result["items"] = structural(result["items"], definitions_)
    return _with_default(result, merged)


def _resolved(schema: Schema, definitions_: dict[str, Schema]) -> Schema:
    """The schema with its reference replaced by what it refers to; what stands beside the reference wins."""
    if "$ref" not in schema:
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**definitions_[schema["$ref"].removeprefix("#/$defs/")], **beside}


def _without_null(schema: Schema, definitions_: dict[str, Schema]) -> Schema:
    """``X | None`` as X: absent is how None is written."""
    arms = schema.get("anyOf", [])
    present = [arm for arm in arms if arm != {"type": "null"}]
    if len(present) == len(arms):
        return schema
    if len(present) != 1:
        raise ValueError(f"a union of several kinds has no structural form: {schema}")
    beside = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
    return {**_resolved(present[0], definitions_), **beside}


def _with_default(result: Schema, merged: Schema) -> Schema:
    """Defaults of plain values as they are; of objects ``{}``, where that fills in something; of lists none."""
    default = merged.get("default")
    if result.get("type") == "object":
        if "default" in merged and any("default" in part for part in result["properties"].values()):
            result["default"] = {}
    elif default is not None and result.get("type") != "array":
        result["default"] = default
    return result


def _without_defaults(schema: Schema) -> Schema:
    """A status is what the operator wrote; the API server adds nothing to it."""
    result = {key: value for key, value in schema.items() if key != "default"}
    if "properties" in result:
        result["properties"] = {name: _without_defaults(part) for name, part in result["properties"].items()}
    if "items" in result:
        result["items"] = _without_defaults(result["items"])
    return result


if __name__ == "__main__":
    write(Path(sys.argv[1]))
