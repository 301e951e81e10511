"""A large mapping of which few values change: a change costs what changed, and no value is ever written to."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_SHARE = 32
"""From this part of the whole on, the changes are merged, because they are copied with each further one."""
_ABSENT: Any = object()


class Amended(Mapping[K, V], Generic[K, V]):
    """The mapping ``whole`` with these values ``changed``; ``new`` are their keys that it does not have."""

    __slots__ = ("_changed", "_new", "_share", "_whole")

    def __init__(self, whole: Mapping[K, V], changed: Mapping[K, V], new: Sequence[K], share: int) -> None:
        self._whole, self._changed, self._new, self._share = whole, changed, new, share

    def __getitem__(self, key: K) -> V:
        found = self._changed.get(key, _ABSENT)
        return self._whole[key] if found is _ABSENT else found

    def get(self, key: K, default: Any = None) -> Any:
        """Faster than ``Mapping.get``, which calls ``__getitem__``."""
        found = self._changed.get(key, _ABSENT)
        return self._whole.get(key, default) if found is _ABSENT else found

    def __contains__(self, key: object) -> bool:
        return key in self._whole or key in self._changed

    def __iter__(self) -> Iterator[K]:
        yield from self._whole
        yield from self._new

    def __len__(self) -> int:
        return len(self._whole) + len(self._new)

    def amended(self, changed: Mapping[K, V]) -> Mapping[K, V]:
        """With these values as well."""
        return _together(self._whole, self._changed, self._new, changed, self._share)


def amended(whole: Mapping[K, V], changed: Mapping[K, V], share: int = _SHARE) -> Mapping[K, V]:
    """The mapping with these values. New keys stand at its end.

    ``share``: from this part of the whole on, all is copied. Another one for each of several mappings whose values
    change together, so that they are not copied in the same slice of the event loop.
    """
    if isinstance(whole, Amended):
        return whole.amended(changed)
    return _together(whole, {}, (), changed, share)


def _together(
    whole: Mapping[K, V], before: Mapping[K, V], new: Sequence[K], changed: Mapping[K, V], share: int
) -> Mapping[K, V]:
    """``before`` was changed earlier; ``new`` are its keys that the whole does not have."""
    values = {**before, **changed}
    if len(values) * share >= len(whole):
        return {**whole, **values}
    return Amended(whole, values, [*new, *(key for key in changed if key not in whole and key not in before)], share)
