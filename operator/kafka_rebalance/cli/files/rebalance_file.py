"""A KafkaRebalance in a file of YAML documents, as commands are given it. Parses bytes; opens nothing."""

from __future__ import annotations

from typing import Any

from kafka_rebalance.api.admission import check_metadata, check_spec, without_nulls
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.api.v1alpha1 import API_VERSION
from kafka_rebalance.cli.files.kubernetes_yaml import load_all
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.windows import check

_KIND = "KafkaRebalance"
_FIELDS = frozenset(("apiVersion", "kind", "metadata", "spec", "status"))


def read_rebalance(data: bytes) -> dict[str, Any]:
    """The one KafkaRebalance in the file, as written but for nulls in its metadata, which would be taken.

    ValueError says what is wrong, with the line where it can.
    """
    documents = load_all(data)
    ours = [found for found in documents if _is_ours(found)]
    if len(ours) != 1:
        raise ValueError(f"expected one {_KIND}, found {', '.join(map(_name_of, documents)) or 'nothing'}")
    found: dict[str, Any] = ours[0]
    if unknown := found.keys() - _FIELDS:
        raise ValueError(f"{min(map(str, unknown))}: unknown field")
    for part in ("metadata", "spec"):
        if not isinstance(found.get(part), dict | None):
            raise ValueError(f"{part}: expected an object, found {found[part]!r:.60}")
    metadata = found.get("metadata") or {}
    try:
        check_metadata(metadata)
    except Refused as invalid:
        raise ValueError(invalid.message) from invalid
    return found | {"metadata": without_nulls(metadata)}


def read_beginning(data: bytes) -> dict[str, Any]:
    """As ``read_rebalance``, where the spec need not be whole: what lacks is put in before ``spec_of`` judges it."""
    found = read_rebalance(data)
    if not found.get("spec"):
        raise ValueError("the KafkaRebalance has no spec")
    return found


def read_spec(data: bytes) -> KafkaRebalanceSpec:
    """What a KafkaRebalance that could be applied as it is asks for. ValueError names the field."""
    found = read_rebalance(data)
    if "apiVersion" not in found:
        raise ValueError(f"apiVersion: expected {API_VERSION}, found nothing")
    return spec_of(found.get("spec") or {})


def spec_of(spec: Any) -> KafkaRebalanceSpec:
    """A spec that the API server would take and the operator could carry out. ValueError names the field."""
    try:
        read = check_spec(spec)
    except Refused as invalid:
        raise ValueError(invalid.message) from invalid
    for at, window in enumerate(read.execution.windows):
        try:
            check(window.as_rule())
        except ValueError as wrong:
            raise ValueError(f"spec.execution.windows[{at}]: {wrong}") from wrong
    return read


def _is_ours(document: Any) -> bool:
    """Strimzi has a kind of that name too."""
    return (
        isinstance(document, dict)
        and document.get("kind") == _KIND
        and document.get("apiVersion", API_VERSION) == API_VERSION
    )


def _name_of(document: Any) -> str:
    if not isinstance(document, dict):
        return "text"
    kind, version = document.get("kind", "an object without a kind"), document.get("apiVersion", API_VERSION)
    return f"{kind}" if version == API_VERSION else f"{kind} of {version}"
