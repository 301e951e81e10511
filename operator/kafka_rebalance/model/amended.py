"""A large mapping of which few values change: a change costs what changed, and no value is ever written to."""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_SHARE = 32
"""From this share of all values on, the changes are merged, because they are copied with each further one."""
_ABSENT: Any = object()


class Amended(Mapping[K, V], Generic[K, V]):
    """The mapping ``whole`` with these values ``changed``, all of keys that it has."""

    __slots__ = ("_changed", "_whole")

    def __init__(self, whole: Mapping[K, V], changed: Mapping[K, V]) -> None:
        self._whole, self._changed = whole, changed

    def __getitem__(self, key: K) -> V:
        found = self._changed.get(key, _ABSENT)
        return self._whole[key] if found is _ABSENT else found

    def get(self, key: K, default: Any = None) -> Any:
        """Faster than ``Mapping.get``, which calls ``__getitem__``."""
        found = self._changed.get(key, _ABSENT)
        return self._whole.get(key, default) if found is _ABSENT else found

    def __contains__(self, key: object) -> bool:
        return key in self._whole

    def __iter__(self) -> Iterator[K]:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)

    def amended(self, changed: Mapping[K, V]) -> Mapping[K, V]:
        """With these values as well."""
        return _together(self._whole, self._changed, changed)


def amended(whole: Mapping[K, V], changed: Mapping[K, V]) -> Mapping[K, V]:
    """The mapping with these values. New keys stand at its end."""
    if isinstance(whole, Amended):
        return whole.amended(changed)
    return _together(whole, {}, changed)


def _together(whole: Mapping[K, V], before: Mapping[K, V], changed: Mapping[K, V]) -> Mapping[K, V]:
    """``before`` has values of keys of the whole, ``changed`` may have new keys."""
    values = {**before, **changed}
    if len(values) * _SHARE >= len(whole) or not whole.keys() >= changed.keys():
        return {**whole, **values}
    return Amended(whole, values)
