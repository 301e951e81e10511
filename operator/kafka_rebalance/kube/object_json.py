"""Parses JSON of the API server, even if it is nested too deeply for Python's parsers, or takes much memory.

The API server accepts ``metadata.managedFields`` that are nested 10,000 levels deep, from every user who may write the
object, and returns them in each answer. Python's parsers refuse such JSON, and one such object would make its whole
list unreadable. Fields that the operator reads have less than a tenth of the depth that is cut off here.

It also accepts more than 1 MB of managed fields or labels for each object, which take 18 MiB as Python values. So the
items of a list are parsed one after the other, and only what is needed of each is kept. Pure.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

from kafka_rebalance.api.v1alpha1 import ObjectMeta, own_annotations

MAX_DEPTH = 100
"""Levels that are kept of an answer that is nested too deeply."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_FLAT = rb'(?:[^\[\]{}"]++|' + _STRING + rb")*+"
_WITHIN = re.compile(rb'(?:[^\[\]{}"]++|' + _STRING + rb"|\{" + _FLAT + rb"\}|\[" + _FLAT + rb"\])*+", re.DOTALL)
"""In an object or a list, up to its end or to a value in it that contains others: in one step, because there may be
100,000 of the others."""
_BEFORE_ITEMS = re.compile(
    rb'\s*+\{(?:"(?:kind|apiVersion)":' + _STRING + rb',|"metadata":\{' + _FLAT + rb'\},)*+"items":\[', re.DOTALL
)
_MARKS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
_FIRST, _NEXT = re.compile(rb"(?=\{)"), re.compile(rb",(?=\{)")
_READ_METADATA = frozenset(field.alias for field in ObjectMeta.model_fields.values())


def read_object_json(data: bytes, kept: Callable[[Any], Any] | None = None) -> Any:
    """The value; values that are nested too deeply are null. ValueError if it is not JSON.

    ``kept``: what to keep of each item, if it is a list of objects.
    """
    if kept is None:
        return _read(data)
    before = _BEFORE_ITEMS.match(data)
    if before is None:
        answer = _read(data)
        is_list = isinstance(answer, dict) and isinstance(answer.get("items"), list)
        return {**answer, "items": list(map(kept, answer["items"]))} if is_list else answer
    items: list[Any] = []
    end = before.end()
    while (begin := (_NEXT if items else _FIRST).match(data, end)) is not None:
        end = _end_of_object(data, begin.end())
        items.append(kept(_read(data[begin.end() : end])))
    answer = _read(data[: before.end()] + data[end:])
    if answer["items"]:
        raise ValueError("the items are no objects, separated by commas")
    return {**answer, "items": items}


def without_ballast(body: Any) -> Any:
    """The object without the metadata that ``ObjectMeta`` ignores."""
    if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
        return body
    metadata = {name: value for name, value in body["metadata"].items() if name in _READ_METADATA}
    if "annotations" in metadata:
        metadata["annotations"] = own_annotations(metadata["annotations"])
    return {**body, "metadata": metadata}


def _end_of_object(data: bytes, begin: int) -> int:
    """Where the object that begins here ends. ValueError if it does not."""
    at, depth = begin + 1, 1
    while depth:
        within = _WITHIN.match(data, at)
        at = within.end() + 1 if within is not None else len(data) + 1
        mark = data[at - 1 : at]
        if mark not in _MARKS:
            raise ValueError("the JSON ends within a value")
        depth += _MARKS[mark]
    return at


def _read(data: bytes) -> Any:
    try:
        return from_json(data)  # refuses what is nested more than some 200 levels deep
    except ValueError:
        return json.loads(_cut(data))


def _cut(data: bytes) -> bytes:
    """The JSON without values below ``MAX_DEPTH``. ValueError if such a value does not end."""
    parts, depth, kept_from = [], 0, 0
    for token in _TOKEN.finditer(data):
        mark = data[token.start() : token.start() + 1]
        if mark in {b"[", b"{"}:
            depth += 1
            if depth == MAX_DEPTH + 1:
                parts += [data[kept_from : token.start()], b"null"]
        elif mark in {b"]", b"}"}:
            if depth == MAX_DEPTH + 1:
                kept_from = token.end()
            depth -= 1
    if depth > MAX_DEPTH:
        raise ValueError("the JSON ends within a value")
    return b"".join([*parts, data[kept_from:]])
