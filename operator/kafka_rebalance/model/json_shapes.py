"""JSON from files of users and other tools: unpacked, limited in size, and checked. Parses bytes and opens no files.

Every function raises ValueError with the JSON path of the value and what was expected there.
"""

import gzip
import io
import json
import zlib
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from pydantic_core import from_json

from kafka_rebalance.units import format_bytes

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
MAX_BYTES = 4 * 2**30
"""Larger than the file of any cluster: an endless stream or a gzip bomb."""

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 2**20


def read_limited(read: Callable[[int], bytes], limit: int = MAX_BYTES) -> bytes:
    """Read the whole stream. Raises ValueError as soon as there are more than ``limit`` bytes."""
    found = io.BytesIO()
    while chunk := read(_CHUNK_BYTES):
        if found.tell() + len(chunk) > limit:
            raise ValueError(f"larger than {format_bytes(limit)}, which is the most that is read")
        found.write(chunk)
    return found.getvalue()


def decode_object(data: bytes, limit: int = MAX_BYTES) -> dict[str, Any]:
    """The JSON object in these bytes, which may be gzip'd; at most ``limit`` bytes unpacked."""
    try:
        if data.startswith(_GZIP_MAGIC):
            with gzip.open(io.BytesIO(data)) as unpacked:
                data = read_limited(unpacked.read, limit)
        document = _decode(data)
    except (OSError, EOFError, zlib.error) as broken:
        raise ValueError(f"the gzip stream is broken: {broken}") from broken
    except (json.JSONDecodeError, UnicodeDecodeError) as broken:
        raise ValueError(f"not JSON: {broken}") from broken
    except RecursionError as deep:
        raise ValueError("not JSON: nested too deeply") from deep
    if not isinstance(document, dict):
        raise ValueError("$: expected an object")
    return document


def _decode(data: bytes) -> Any:
    """Equal strings are shared. What the fast parser refuses (UTF-16, say) the slower one reads or explains."""
    try:
        return from_json(data, cache_strings="all")
    except ValueError:
        return json.loads(data)


def known_keys(value: Any, known: AbstractSet[str], path: str) -> None:
    """Refuse an object with any other key: a typo must not silently disable what the key sets."""
    if isinstance(value, dict) and not value.keys() <= known:
        unknown = min(value.keys() - known)
        raise ValueError(f"{path}: unknown key {unknown!r:.60}; known are {', '.join(sorted(known))}")


def member(value: Any, key: str, path: str) -> Any:
    """The value of a required key of an object."""
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected an object, found {value!r:.60}")
    if key not in value:
        raise ValueError(f"{path}: {key!r} is missing")
    return value[key]


def listed(value: Any, path: str) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        raise ValueError(f"{path}: expected a list, found {value!r:.60}")
    return value


def integer(value: Any, path: str, highest: int = MAX_INT32) -> int:
    """A whole number from 0 to ``highest``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{path}: expected an integer, found {value!r:.60}")
    if not 0 <= value <= highest:
        raise ValueError(f"{path}: {value} is not between 0 and {highest}")
    return value


def text(value: Any, path: str) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{path}: expected a name, found {value!r:.60}")
    return value
