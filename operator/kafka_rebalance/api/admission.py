"""What the API server would refuse of a KafkaRebalance, found without one: for commands that print what to apply.

Types, patterns, bounds and unknown fields are judged by the CRD's own schema, its CEL rules by the models, which state
each of them too. Left to the API server are the cost of a rule and whatever depends on what is stored already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from kafka_rebalance.api.conditions import Reason
from kafka_rebalance.api.crd import Schema, definitions
from kafka_rebalance.api.fields import compile_re2
from kafka_rebalance.api.v1alpha1 import GROUP, REBALANCES, KafkaRebalanceSpec, parse_spec
from kafka_rebalance.errors import Refused

_TYPES: dict[str, tuple[type, ...]] = {"object": (Mapping,), "array": (list,), "string": (str,), "integer": (int,)}
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_MAX_ANNOTATIONS = 256 * 1024


def check_spec(spec: Any) -> KafkaRebalanceSpec:
    """The spec of a KafkaRebalance that the API server would take. Refused("InvalidSpec") names the fields."""
    wanted = without_nulls(spec)
    read = parse_spec(wanted)
    _refuse(_problems(wanted, _schema(), "spec"))
    return read


def check_metadata(metadata: Mapping[str, Any]) -> None:
    """Name, namespace, labels and annotations, as far as they are there. Refused("InvalidMetadata") names the field."""
    _refuse(_metadata_problems(without_nulls(metadata)), "InvalidMetadata")


def without_nulls(value: Any) -> Any:
    """As the API server reads it: a field that is null is absent."""
    if isinstance(value, Mapping):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


@cache
def _schema() -> Schema:
    (version,) = definitions()[f"{REBALANCES}.{GROUP}"]["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return schema


def _refuse(problems: Iterator[str], reason: str = Reason.INVALID_SPEC) -> None:
    if lines := list(dict.fromkeys(problems)):
        raise Refused(reason, "; ".join(lines))


def _problems(value: Any, schema: Schema, path: str) -> Iterator[str]:
    """What the models are more patient with than the schema: types, patterns and the lengths of strings."""
    kinds = _TYPES["integer"] + _TYPES["string"] if "anyOf" in schema else _TYPES.get(schema["type"], (bool,))
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds != (bool,)):
        yield f"{path}: expected {_kind(schema)}, found {value!r:.60}"
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _problems(part, schema["properties"][key], f"{path}.{key}")
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from _problems(part, schema["items"], f"{path}[{at}]")
    elif isinstance(value, str) and _outside(value, schema):
        yield f"{path}: {_rule(schema)}, found {value!r:.60}"


def _kind(schema: Schema) -> str:
    return "a quantity" if "anyOf" in schema else f"{'an' if schema['type'][0] in 'aio' else 'a'} {schema['type']}"


def _outside(value: str, schema: Schema) -> bool:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return True
    return "pattern" in schema and compile_re2(schema["pattern"]).search(value) is None


def _rule(schema: Schema) -> str:
    """What a string must be, in the words of its CEL rule where it has one."""
    said = [rule["message"] for rule in schema.get("x-kubernetes-validations", ())]
    return said[0] if said else f"must match {schema.get('pattern', '')} with {schema['maxLength']} characters at most"


def _metadata_problems(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Kubernetes' own rules for the metadata of every object."""
    if "name" in metadata and not _fits(metadata["name"], _SUBDOMAIN, 253):
        yield (
            f"metadata.name: {metadata['name']!r:.60} is not made of lower case letters, digits, - and ., with a "
            "letter or digit at both ends and beside each ., 253 characters at most"
        )
    if "namespace" in metadata and not _fits(metadata["namespace"], _LABEL, 63):
        yield (
            f"metadata.namespace: {metadata['namespace']!r:.60} is not made of lower case letters, digits and -, with "
            "a letter or digit at both ends, 63 characters at most"
        )
    for field in ("labels", "annotations"):
        found = metadata.get(field, {})
        if not isinstance(found, Mapping):
            yield f"metadata.{field}: expected an object, found {found!r:.60}"
            continue
        for key, value in found.items():
            yield from _pair_problems(field, key, value)
    annotations = metadata.get("annotations", {})
    if (
        isinstance(annotations, Mapping)
        and sum(len(f"{k}{v}".encode()) for k, v in annotations.items()) > _MAX_ANNOTATIONS
    ):
        yield f"metadata.annotations: more than {_MAX_ANNOTATIONS} bytes"


def _pair_problems(field: str, key: Any, value: Any) -> Iterator[str]:
    prefix, slash, name = str(key).rpartition("/")
    if field == "annotations":
        prefix = prefix.lower()
    if not isinstance(key, str) or not _fits(name, _NAME, 63) or (slash and not _fits(prefix, _SUBDOMAIN, 253)):
        yield f"metadata.{field}: {key!r:.60} is not a key like example.org/name"
    if not isinstance(value, str):
        yield f"metadata.{field}[{key}]: expected a string, found {value!r:.60}: write it in quotes"
    elif field == "labels" and value and not _fits(value, _NAME, 63):
        yield (
            f"metadata.labels[{key}]: {value!r:.60} is not made of letters, digits, -, _ and ., with a letter or digit "
            "at both ends, 63 characters at most"
        )


def _fits(value: Any, pattern: str, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and re.fullmatch(pattern, value) is not None
