"""JSON of the API server, whatever users have stored in an object.

The API server accepts ``metadata.managedFields`` that are nested 10,000 levels deep, from anybody who may write the
object, and returns them in each answer. Python's parsers give up long before: one such object would hide all others of
its list. Nothing that the operator reads is nested a tenth as deeply as what is left out here. Pure.
"""

import json
import re
from typing import Any

from pydantic_core import from_json

MAX_DEPTH = 100
"""Levels that are read in an answer that is nested too deeply."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


def read_object_json(data: bytes) -> Any:
    """The value; null in place of what is nested too deeply. ValueError where it is not JSON."""
    try:
        return from_json(data)  # refuses what is nested more than some 200 levels deep
    except ValueError:
        return json.loads(_cut(data))


def _cut(data: bytes) -> bytes:
    """Without what is below ``MAX_DEPTH``. ValueError where that does not end."""
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
