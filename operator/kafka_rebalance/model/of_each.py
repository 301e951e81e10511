"""One field of each of many values, as a mapping that looks the field up and copies nothing."""

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class OfEach(Mapping[K, V], Generic[K, V]):
    """The field of this name of each of ``values``. A dict of its own would take 50 bytes for each."""

    __slots__ = ("_field", "_values")

    def __init__(self, values: Mapping[K, Any], name: str) -> None:
        self._values, self._field = values, attrgetter(name)

    def __getitem__(self, key: K) -> V:
        return self._field(self._values[key])  # type: ignore[no-any-return]

    def get(self, key: K, default: Any = None) -> Any:
        """Faster than ``Mapping.get``, which catches KeyError."""
        value = self._values.get(key)
        return default if value is None else self._field(value)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
