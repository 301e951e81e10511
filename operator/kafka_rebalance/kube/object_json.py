"""Parses JSON of the API server, even if it is nested too deeply for Python's parsers.

The API server accepts ``metadata.managedFields`` that are nested 10,000 levels deep, from every user who may write the
object, and returns them in each answer. Python's parsers refuse such JSON, and one such object would make its whole
list unreadable. Fields that the operator reads have less than a tenth of the depth that is cut off here. Pure.
"""

import json
import re
from typing import Any

from pydantic_core import from_json

MAX_DEPTH = 100
"""Levels that are kept of an answer that is nested too deeply."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


def read_object_json(data: bytes) -> Any:
    """The value; values that are nested too deeply are null. ValueError if it is not JSON."""
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
