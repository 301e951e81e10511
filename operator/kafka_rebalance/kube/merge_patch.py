"""JSON merge patches (RFC 7386), as the API server applies them."""

from collections.abc import Mapping
from typing import Any


def merge_patch(found: Any, patch: Any) -> Any:
    """The value after the patch: objects are merged, None removes a key, anything else replaces the value."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(found) if isinstance(found, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged
