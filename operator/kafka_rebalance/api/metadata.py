"""Kubernetes' own rules for the metadata of every object that is created, as the API server of 1.36 was seen to judge.

It judges strictly, as kubectl asks it to: fields that it does not know are refused, also where they are null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})"
_MAX_ANNOTATIONS = 256 * 1024
_MAX_INT64 = 2**63 - 1
_GENERATED = 5
"""Characters that are put behind generateName, of which at most 58 are taken."""

_KINDS = {
    "name": "name",
    "generateName": "string",
    "namespace": "namespace",
    "labels": "labels",
    "annotations": "annotations",
    "finalizers": "list",
    "ownerReferences": "list",
    "managedFields": "list",
    "uid": "string",
    "resourceVersion": "string",
    "selfLink": "string",
    "creationTimestamp": "time",
    "deletionTimestamp": "time",
    "generation": "integer",
    "deletionGracePeriodSeconds": "integer",
}
"""Every field of metadata, and what it is."""
_OWNER = {
    "apiVersion": "string",
    "kind": "string",
    "name": "string",
    "uid": "string",
    "controller": "boolean",
    "blockOwnerDeletion": "boolean",
}
_MANAGED = {
    "manager": "string",
    "operation": "string",
    "apiVersion": "string",
    "time": "time",
    "fieldsType": "string",
    "fieldsV1": "anything",
    "subresource": "string",
}


def metadata_problems(metadata: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong, each with its field. What must be there, and may come from options yet, is not asked for."""
    yield from _fields_problems(metadata, _KINDS, "metadata")
    name, prefix = metadata.get("name"), metadata.get("generateName")
    if name is not None and not _fits(name, _SUBDOMAIN, 253):
        yield (
            f"metadata.name: {name!r:.60} is not made of lower case letters, digits, - and ., with a letter or digit "
            "at both ends and beside each ., 253 characters at most"
        )
    if isinstance(prefix, str) and prefix and not _begins_names(prefix):
        yield (
            f"metadata.generateName: {prefix!r:.60} is not the beginning of a name of lower case letters, digits, - "
            "and ., 253 characters at most"
        )
    namespace = metadata.get("namespace")
    if namespace is not None and not _fits(namespace, _LABEL, 63):
        yield (
            f"metadata.namespace: {namespace!r:.60} is not made of lower case letters, digits and -, with a letter or "
            "digit at both ends, 63 characters at most"
        )
    for field in ("labels", "annotations"):
        yield from _pairs_problems(field, metadata.get(field))
    if isinstance(finalizers := metadata.get("finalizers"), list):
        yield from _finalizer_problems(finalizers)
    if isinstance(owners := metadata.get("ownerReferences"), list):
        yield from _owner_problems(owners)
    if isinstance(managed := metadata.get("managedFields"), list):
        for at, entry in enumerate(managed):
            yield from _object_problems(entry, _MANAGED, f"metadata.managedFields[{at}]")


def _fields_problems(found: Mapping[str, Any], known: Mapping[str, str], path: str) -> Iterator[str]:
    for field, value in found.items():
        kind = known.get(field)
        if kind is None:
            yield f"{path}.{field}: unknown field"
        elif value is not None and not _is(kind, value):
            yield f"{path}.{field}: expected {'an' if kind[0] in 'aeio' else 'a'} {kind}, found {value!r:.60}"


def _object_problems(found: Any, known: Mapping[str, str], path: str) -> Iterator[str]:
    """Null is an object without fields."""
    if isinstance(found, Mapping):
        yield from _fields_problems(found, known, path)
    elif found is not None:
        yield f"{path}: expected an object, found {found!r:.60}"


def _is(kind: str, value: Any) -> bool:
    """Whether it is of the kind; those that have rules of their own are judged by these."""
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool) and -_MAX_INT64 - 1 <= value <= _MAX_INT64
        case "list":
            return isinstance(value, list)
        case "time":
            return _is_time(value)
    return True


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or re.fullmatch(_TIME, value) is None:
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _begins_names(prefix: str) -> bool:
    """As Kubernetes looks at it: without a hyphen at its end; and the names that it makes of it."""
    stem = prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
    return _fits(stem, _SUBDOMAIN, 253) and _fits(prefix[: 63 - _GENERATED] + "a" * _GENERATED, _SUBDOMAIN, 253)


def _finalizer_problems(finalizers: list[Any]) -> Iterator[str]:
    for at, finalizer in enumerate(finalizers):
        if not _is_key(finalizer):
            yield f"metadata.finalizers[{at}]: {finalizer!r:.60} is not a name like example.org/name"
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        yield "metadata.finalizers: orphan and foregroundDeletion exclude each other"


def _owner_problems(owners: list[Any]) -> Iterator[str]:
    for at, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{at}]"
        yield from _object_problems(owner, _OWNER, path)
        if not isinstance(owner, Mapping | None):
            continue
        fields = owner or {}
        for field in ("kind", "name", "uid"):
            if not fields.get(field):
                yield f"{path}.{field}: must not be empty"
        version = fields.get("apiVersion")
        if not isinstance(version, str) or re.fullmatch("([^/]*/)?[^/]+", version) is None:
            yield f"{path}.apiVersion: expected a group and a version like apps/v1, found {version!r:.60}"
        elif (version, fields.get("kind")) == ("v1", "Event"):
            yield f"{path}: an Event owns nothing"
    if sum(isinstance(owner, Mapping) and owner.get("controller") is True for owner in owners) > 1:
        yield "metadata.ownerReferences: only one owner can be the controller"


def _pairs_problems(field: str, found: Any) -> Iterator[str]:
    if found is None:
        return
    if not isinstance(found, Mapping):
        yield f"metadata.{field}: expected an object, found {found!r:.60}"
        return
    for key, value in found.items():
        yield from _pair_problems(field, key, value)
    if field == "annotations" and sum(len(f"{key}{value}".encode()) for key, value in found.items()) > _MAX_ANNOTATIONS:
        yield f"metadata.annotations: more than {_MAX_ANNOTATIONS} bytes"


def _pair_problems(field: str, key: Any, value: Any) -> Iterator[str]:
    if not _is_key(key.lower() if field == "annotations" and isinstance(key, str) else key):
        yield f"metadata.{field}: {key!r:.60} is not a key like example.org/name"
    if value is not None and not isinstance(value, str):
        yield f"metadata.{field}[{key}]: expected a string, found {value!r:.60}: write it in quotes"
    elif field == "labels" and value and not _fits(value, _NAME, 63):
        yield (
            f"metadata.labels[{key}]: {value!r:.60} is not made of letters, digits, -, _ and ., with a letter or digit "
            "at both ends, 63 characters at most"
        )


def _is_key(key: Any) -> bool:
    """A qualified name: with a domain before a slash, or without."""
    prefix, slash, name = str(key).rpartition("/")
    return isinstance(key, str) and _fits(name, _NAME, 63) and (not slash or _fits(prefix, _SUBDOMAIN, 253))


def _fits(value: Any, pattern: str, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and re.fullmatch(pattern, value) is not None
