"""The field reference, docs/reference.md. The descriptions come from the CRDs, and so from the models."""

import json
from collections.abc import Iterator
from typing import Any

from kafka_rebalance.api.crd import definitions

_HEAD = """\
# Reference

Generated from `operator/kafka_rebalance/api` by `make crds`; do not edit. `kubectl explain kafkarebalances.spec
--api-version=kafkarebalance.dev/v1alpha1` prints the same. Sizes are in bytes and rates in bytes per second, as
Kubernetes quantities (`50Mi`, `1.5Gi`). Durations look like `15m`, `1h30m` or `2d`.
"""


def render() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_resource(definition) for definition in definitions().values())])


def _resource(definition: dict[str, Any]) -> str:
    names = definition["spec"]["names"]
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    title = f"`{definition['metadata']['name']}`, short name `{names['shortNames'][0]}`, version `{version['name']}`."
    lines = [f"## {names['kind']}", "", f"{title} {schema['description']}", ""]
    for part in ("spec", "status"):
        lines += [
            f"### {names['kind']} {part}",
            "",
            "| Field | Type | Default | Description |",
            "| --- | --- | --- | --- |",
        ]
        lines += [_row(path, field, needed=needed) for path, field, needed in _fields(schema["properties"][part])]
        lines.append("")
    return "\n".join(lines)


def _fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Path, schema and whether it is required, depth first in the models' order."""
    for name, field in schema.get("properties", {}).items():
        here = f"{path}{name}"
        yield here, field, name in schema.get("required", ())
        yield from _fields(field, f"{here}.")
        yield from _fields(field.get("items", {}), f"{here}[].")


def _row(path: str, field: dict[str, Any], *, needed: bool) -> str:
    default = field.get("default")
    if needed:
        shown = "required"
    else:
        shown = "" if default in (None, {}) else f"`{default if isinstance(default, str) else json.dumps(default)}`"
    return f"| `{path}` | {_type(field)} | {shown} | {field['description']} |"


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{value if isinstance(value, str) else json.dumps(value)}`" for value in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    if field["type"] == "array":
        return f"list of {field['items']['type']}, at most {field['maxItems']}"
    return str(field.get("format", field["type"]))
