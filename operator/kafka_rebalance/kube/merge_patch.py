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


def merge_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that turns ``before`` into ``after``."""
    patch: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        if key not in before or not isinstance(value, Mapping) or not isinstance(before[key], Mapping):
            patch |= {} if key in before and before[key] == value else {key: value}
        elif inner := merge_difference(before[key], value):
            patch[key] = inner
    return patch
