"""Parses JSON of the API server without managed fields, even if it is nested too deeply, or takes much memory.

The API server accepts ``metadata.managedFields`` of more than 1 MB that are nested 10,000 levels deep, from every user
who may write the object, and returns them in each answer. The operator does not use them. They are cut off before
anything is parsed, without a step in Python for each of their 300,000 brackets. Python's parsers refuse JSON that is
nested so deeply, and one such object would make its whole list unreadable; so what is nested too deeply anywhere else
is cut off too. Fields that the operator reads have less than a tenth of that depth.

The API server also accepts more than 1 MB of labels, owner references or finalizers for each object, which take 18 MiB
as Python values. Of what the operator watches, labels and owner references are cut off in the same way, and the items
of a list are parsed one after the other, and only what is needed of each is kept. Pure.
"""

import json
import re
from array import array
from collections.abc import Callable
from itertools import accumulate, islice
from typing import Any

from pydantic_core import from_json

from kafka_rebalance.api.v1alpha1 import ObjectMeta, few_finalizers, own_annotations

MAX_DEPTH = 100
"""Levels that are kept of an answer that is nested too deeply."""

_Keys = dict[bytes, "_Keys"]
_METADATA: _Keys = {b'"metadata"': {b'"managedFields"': {}}}
_WATCHED: _Keys = {b'"metadata"': {b'"managedFields"': {}, b'"labels"': {}, b'"ownerReferences"': {}}}
_CUT_OFF: _Keys = {**_METADATA, b'"object"': _METADATA}
"""The keys that lead to what is cut off: in an object, and in an event about one."""
_CUT_OFF_WATCHED: _Keys = {**_WATCHED, b'"object"': _WATCHED}
"""The same if the caller keeps only what ``without_ballast`` leaves."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_FLAT = rb'(?:[^\[\]{}"]++|' + _STRING + rb")*+"
_BEFORE_ITEMS = re.compile(
    rb'\s*+\{(?:"(?:kind|apiVersion)":' + _STRING + rb',|"metadata":\{' + _FLAT + rb'\},)*+"items":\[', re.DOTALL
)
_FIRST, _NEXT = re.compile(rb"\s*+(?=\{)"), re.compile(rb",(?=\{)")
_MEMBER = re.compile(
    rb"\s*+(?P<comma>,?+)\s*+(?P<key>" + _STRING + rb")\s*+:\s*+(?P<scalar>" + _STRING + rb'|[^\s,:\[\]{}"]++)?+',
    re.DOTALL,
)
_COMMA, _CLOSE = re.compile(rb"\s*+,"), re.compile(rb"\s*+\}")

_SMALLEST_BLOCK, _LARGEST_BLOCK = 512, 16_384
_AFTER_ESCAPES = re.compile(rb"\\*+.?+", re.DOTALL)
_BRACKETS = b"[{]}"
_STEPS = bytes.maketrans(_BRACKETS, array("b", [1, 1, -1, -1]).tobytes())
_OTHERS = bytes(set(range(256)) - set(_BRACKETS + b'"'))
_TO_BRACKET = re.compile(rb'(?:[^\[\]{}"]++|"[^"]*+")*+[\[\]{}]')

_READ_METADATA = frozenset(field.alias for field in ObjectMeta.model_fields.values())


def read_object_json(data: bytes, kept: Callable[[Any], Any] | None = None) -> Any:
    """The value; values that are nested too deeply are null. ValueError if it is not JSON.

    An object, the object of an event and, with ``kept``, the items of a list are read without their managed fields.

    ``kept``: what to keep of each item, if it is a list of objects. It must drop what ``without_ballast`` drops: labels
    and owner references are not read, and neither are those of the object of an event.
    """
    cut_off = _CUT_OFF if kept is None else _CUT_OFF_WATCHED
    before = None if kept is None else _BEFORE_ITEMS.match(data)
    if kept is None or before is None:
        object_begin = _FIRST.match(data)
        if object_begin is not None:
            text, end = _without(cut_off, data, object_begin.end())
            data = text + data[end:]
        answer = _read(data)
        if kept is not None and isinstance(answer, dict) and isinstance(answer.get("items"), list):
            return {**answer, "items": list(map(kept, answer["items"]))}
        return answer
    items: list[Any] = []
    end = before.end()
    while (begin := (_NEXT if items else _FIRST).match(data, end)) is not None:
        text, end = _without(cut_off, data, begin.end())
        items.append(kept(_read(text)))
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
    if "finalizers" in metadata:
        metadata["finalizers"] = few_finalizers(metadata["finalizers"])
    return {**body, "metadata": metadata}


def _without(cut_off: _Keys, data: bytes, begin: int) -> tuple[bytes, int]:
    """The JSON of the object that begins here, and where it ends in ``data``. ValueError if it does not."""
    parts, kept_from, cuts = [], begin, list[tuple[int, int]]()
    end = _end_of_object(data, begin, cut_off, cuts)
    for cut_from, cut_to in cuts:
        parts.append(data[kept_from:cut_from])
        kept_from = cut_to
    return b"".join([*parts, data[kept_from:end]]), end


def _end_of_object(data: bytes, begin: int, cut_off: _Keys, cuts: list[tuple[int, int]]) -> int:
    """Where the object that begins here ends; ``cuts`` gets where members to cut off begin and end, with a comma."""
    at = begin + 1
    while (member := _MEMBER.match(data, at)) is not None:
        at, keys = member.end(), cut_off.get(member["key"])
        if keys and data[at : at + 1] == b"{":
            at = _end_of_object(data, at, keys, cuts)
        elif member["scalar"] is None:
            at = _end_of_value(data, at)
        if keys == {}:
            comma = None if member["comma"] else _COMMA.match(data, at)
            at = at if comma is None else comma.end()
            cuts.append((member.start(), at))
    close = _CLOSE.match(data, at)
    if close is None:
        raise ValueError("the JSON ends within an object, or something else than a member is in it")
    return close.end()


def _end_of_value(data: bytes, begin: int) -> int:
    """Where the object or list that begins here ends. ValueError if it does not, or if there is none.

    The brackets of a block are counted at once: of its parts between quotes, each second one is outside of strings.
    Without two quotes that have no bracket between them, there are few parts, and the same are outside.
    """
    if data[begin : begin + 1] not in {b"{", b"["}:
        raise ValueError("the JSON has a member without a value")
    at, depth, size, opened = begin + 1, 1, _SMALLEST_BLOCK, b""
    while at < len(data):
        end = next(_AFTER_ESCAPES.finditer(data, at + size - 1)).end()  # a block does not end within an escape
        block = opened + data[at:end].replace(rb"\\", b"__").replace(rb"\"", b"__")
        parts = block.translate(None, _OTHERS).replace(b'""', b"").split(b'"')
        depths = list(accumulate(array("b", b"".join(parts[::2]).translate(_STEPS)), initial=depth))
        if 0 in depths:
            last = next(islice(_TO_BRACKET.finditer(block), depths.index(0) - 1, None))
            return at + last.end() - len(opened)
        at, depth, size = end, depths[-1], min(2 * size, _LARGEST_BLOCK)
        opened = b"" if len(parts) % 2 else b'"'
    raise ValueError("the JSON ends within a value")


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
