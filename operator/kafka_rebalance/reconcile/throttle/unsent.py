"""What the throttle ledger has recorded before a change, and Kafka has never been asked for or has not permitted."""

from collections.abc import Collection, Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
"""A rate of a broker, or a list of a topic."""
V = TypeVar("V", bound=Hashable)
"""A rate, or an entry."""


class Unsent(Generic[K, V]):
    """The ledger is saved before each change, so it has values that are not set yet.

    A value that Kafka has not permitted was never set. It must not stay on record: a later restore, by another owner of
    the cluster with other rights, would remove the same value if others have set it by then.
    """

    def __init__(self) -> None:
        self._unsent: dict[K, frozenset[V]] = {}
        self._denied: dict[K, frozenset[V]] = {}

    def recorded(self, key: K, values: Collection[V]) -> None:
        """These values are about to be recorded."""
        if values:
            self._unsent[key] = self._unsent.get(key, frozenset()).union(values)

    def sent(self, key: K, values: Collection[V]) -> frozenset[V]:
        """Kafka is asked to set these values. Returns those for which it is asked the first time, or was not permitted.

        From now on, they may be set.
        """
        unsent, denied = self._unsent.pop(key, frozenset()), self._denied.pop(key, frozenset())
        if left := unsent.difference(values):
            self._unsent[key] = left
        if left := denied.difference(values):
            self._denied[key] = left
        return (unsent | denied).intersection(values)

    def denied(self, key: K, values: Collection[V]) -> None:
        """Kafka did not permit these, of those that ``sent`` returned: they were never set."""
        if values:
            self._denied[key] = self._denied.get(key, frozenset()).union(values)

    @property
    def to_strike(self) -> Mapping[K, frozenset[V]]:
        """The values to strike off the ledger, until ``struck``: the write may fail."""
        return self._denied

    def struck(self) -> None:
        """The ledger without them is stored."""
        self._denied = {}

    def forget(self, keys: Collection[K]) -> None:
        """The ledger has nothing of these any more."""
        for key in keys:
            self._unsent.pop(key, None)
            self._denied.pop(key, None)

    @property
    def keys(self) -> Collection[K]:
        """Those of which something is known."""
        return self._unsent.keys() | self._denied.keys()
