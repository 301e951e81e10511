"""What the API server would refuse of a KafkaRebalance, found without one: for commands that print what to apply.

Types, patterns, bounds and unknown fields are judged by the CRD's own schema, its CEL rules by the models, which state
each of them too. Left to the API server are the cost of a rule and whatever depends on what is stored already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from kafka_rebalance.api.crd import Schema, definitions
from kafka_rebalance.api.fields import compile_re2
from kafka_rebalance.api.metadata import metadata_problems
from kafka_rebalance.api.v1alpha1 import GROUP, REBALANCES, KafkaRebalanceSpec, parse_spec
from kafka_rebalance.errors import Refused
from kafka_rebalance.reasons import Reason

_TYPES: dict[str, tuple[type, ...]] = {"object": (Mapping,), "array": (list,), "string": (str,), "integer": (int,)}


def check_spec(spec: Any) -> KafkaRebalanceSpec:
    """The spec of a KafkaRebalance that the API server would take. Refused("InvalidSpec") names the fields."""
    wanted = without_nulls(spec)
    read = parse_spec(wanted)
    _refuse(_problems(wanted, _schema(), "spec"))
    return read


def check_metadata(metadata: Mapping[str, Any]) -> None:
    """What is there of it, each field by itself: no name is asked for. Refused("InvalidMetadata") names the field."""
    _refuse(metadata_problems(metadata), "InvalidMetadata")


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
