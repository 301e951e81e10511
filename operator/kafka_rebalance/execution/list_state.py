"""The state of one list of throttled replicas of one topic, as far as this process knows.

Pure. Entries of ours are appended, read back and subtracted one by one. Reads lag behind writes, so an entry is gone
only when it is missing twice in a row; then it is appended again.
"""

from dataclasses import dataclass, replace
from typing import Self

from kafka_rebalance.execution.ledger import split

WILDCARD = "*"
"""Throttles every replica of the topic. Kafka accepts no entries beside it."""


@dataclass(frozen=True, slots=True)
class ListState:
    """``listed``: our entries known to be in the list; ``missing``: those of them that the last reading did not show.

    ``wildcard``: the last reading showed a wildcard, so that every entry counts as listed.
    """

    listed: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    wildcard: bool = False

    def after_append(self, entries: frozenset[str]) -> Self:
        """The broker accepted these entries."""
        return replace(self, listed=self.listed | entries, missing=self.missing - entries)

    def after_subtract(self, entries: frozenset[str]) -> Self:
        """The broker removed these entries."""
        return replace(self, listed=self.listed - entries)

    def after_reading(self, value: str | None, wanted: frozenset[str]) -> "tuple[ListState, frozenset[str]]":
        """The state after the list was read, and those of the ``wanted`` entries that somebody took out of it.

        Missing for the first time: noted. Missing for the second time: no longer listed, and returned.
        """
        entries = split(value)
        if WILDCARD in entries:
            return ListState(self.listed, wildcard=True), frozenset()
        missing = (self.listed & wanted) - entries
        gone = missing & self.missing
        return ListState(self.listed - gone, missing - gone), gone
