"""Checks the resources in a manifest file as the API server and the operator do. Parses bytes; opens nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from kafka_rebalance.api.connection_resource import KafkaConnectionSpec
from kafka_rebalance.api.fields import ApiModel
from kafka_rebalance.api.spec_risks import rebalance_risks
from kafka_rebalance.api.spec_warnings import rebalance_warnings, throttle_warnings
from kafka_rebalance.api.throttle_resource import KafkaReassignmentThrottleSpec
from kafka_rebalance.api.v1alpha1 import GROUP, KINDS
from kafka_rebalance.api.validation import validate, without_nulls
from kafka_rebalance.cli.files.kubernetes_yaml import load_all
from kafka_rebalance.cli.files.rebalance_file import FileMetadata, spec_of
from kafka_rebalance.errors import Refused


@dataclass(frozen=True, slots=True)
class LintedResource:
    """One resource of the file, with what is wrong and what is probably a mistake. ``what``: kind and name."""

    what: str
    errors: Sequence[str] = ()
    warnings: Sequence[str] = field(default=())


class _NamedMetadata(FileMetadata):
    """A resource needs a name, unless the API server makes one."""

    generate_name: str | None = None


class _AnyResource(ApiModel):
    """The parts of any of our resources; each spec has its own model."""

    api_version: Literal["kafkarebalance.dev/v1alpha1"]
    kind: Literal["KafkaRebalance", "KafkaReassignmentThrottle", "KafkaConnection"]
    metadata: _NamedMetadata
    spec: dict[str, Any] = Field(description="Checked by the model of its kind.")
    status: Any = None


def _rebalance(spec: Any) -> list[str]:
    read = spec_of(spec)
    return [*(text for _, text in rebalance_warnings(read)), *rebalance_risks(read)]


def _throttle(spec: Any) -> list[str]:
    return [text for _, text in throttle_warnings(validate(KafkaReassignmentThrottleSpec, spec, "spec"))]


def _connection(spec: Any) -> list[str]:
    validate(KafkaConnectionSpec, spec, "spec")
    return []


_SPECS: dict[str, Callable[[Any], list[str]]] = dict(
    zip(KINDS.values(), (_rebalance, _connection, _throttle), strict=True)
)


def lint(data: bytes) -> list[LintedResource]:
    """Every resource of ours in the file, and the items of Lists; other resources are left out.

    ValueError if the file is not YAML.
    """
    documents = [item for found in load_all(data) for item in items_of(found)]
    return [_linted(found) for found in documents if _is_ours(found)]


def items_of(document: Any) -> list[Any]:
    """The document itself, or the items if it is a List."""
    listed = isinstance(document, dict) and document.get("kind") == "List" and isinstance(document.get("items"), list)
    return list(document["items"]) if listed else [document]


def _is_ours(document: Any) -> bool:
    return isinstance(document, dict) and str(document.get("apiVersion", "")).partition("/")[0] == GROUP


def _linted(document: dict[str, Any]) -> LintedResource:
    found = without_nulls(document)
    metadata = found.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    what = f"{found.get('kind', 'a resource without a kind')} {name}".rstrip()
    try:
        resource = validate(_AnyResource, found, "")
        if resource.metadata.name is None and resource.metadata.generate_name is None:
            return LintedResource(what, ("metadata.name: is required",))
        return LintedResource(what, (), _SPECS[resource.kind](found["spec"]))
    except (Refused, TypeError, ValueError, RecursionError) as wrong:
        return LintedResource(what, (str(wrong),))
