"""The state of one list of throttled replicas of one topic, as far as this process knows.

Pure. Entries of ours are appended, read back and subtracted one by one. Reads lag behind writes, so an entry is missing
only if two readings in a row do not show it; then it is appended again. An append without an answer may be carried out
after a later subtraction, so a subtracted entry stays on record until a reading no longer shows it and no append is
late any more.
"""

from dataclasses import dataclass, replace
from typing import Self

from kafka_rebalance.execution.ledger import Before, remaining_after
from kafka_rebalance.execution.rate_state import LATE_SECONDS, SILENT

WILDCARD = "*"
"""Throttles every replica of the topic. Kafka accepts no entries beside it."""


@dataclass(frozen=True, slots=True)
class ListState:
    """``listed``: our entries known to be in the list; ``missing``: those of them that the last reading did not show.

    ``wildcard``: the last reading showed a wildcard, so that every entry counts as listed. ``subtracted``: entries
    whose subtraction was accepted, until a reading confirms it. ``unsure``: those listed whose removal was sent, and
    whose answer was an error or did not arrive. They are appended again before they are relied on.
    """

    listed: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    wildcard: bool = False
    subtracted: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()

    @property
    def certain(self) -> frozenset[str]:
        """Our entries that are in the list for certain."""
        return self.listed - self.unsure

    def before_removal(self, entries: frozenset[str]) -> Self:
        """A change that takes these entries out is sent next."""
        return replace(self, unsure=self.unsure | (self.listed & entries))

    def before_append(self, entries: frozenset[str]) -> Self:
        """These entries are wanted again: their subtraction does not count any more."""
        return replace(self, subtracted=self.subtracted - entries)

    def after_append(self, entries: frozenset[str]) -> Self:
        """The broker accepted these entries."""
        return replace(self, listed=self.listed | entries, missing=self.missing - entries, unsure=self.unsure - entries)

    def after_subtract(self, entries: frozenset[str]) -> Self:
        """The broker removed these entries."""
        return replace(
            self, listed=self.listed - entries, subtracted=self.subtracted | entries, unsure=self.unsure - entries
        )

    def after_reading(self, entries: frozenset[str], wanted: frozenset[str]) -> "tuple[ListState, frozenset[str]]":
        """The state after the list was read with these ``entries``, and those ``wanted`` that somebody took out of it.

        Missing for the first time: noted. Missing for the second time: no longer listed, and returned.
        """
        if WILDCARD in entries:
            return replace(self, missing=frozenset(), wildcard=True), frozenset()
        missing = (self.listed & wanted) - entries
        gone = missing & self.missing
        if not (missing or self.missing or self.wildcard):
            return self, gone
        left = replace(
            self, listed=self.listed - gone, missing=missing - gone, unsure=self.unsure - gone, wildcard=False
        )
        return left, gone

    def after_confirming(self, entries: frozenset[str], *, late: bool) -> "tuple[ListState, frozenset[str]]":
        """The state after a reading that is later than the subtractions, and the entries to strike off the ledger.

        An entry that still shows has to be subtracted again. ``late``: an append may still be carried out.
        """
        if not self.subtracted:
            return self, self.subtracted
        shown = self.subtracted & entries
        kept = self.subtracted - shown if late else frozenset[str]()
        return replace(self, subtracted=kept), self.subtracted - shown - kept


@dataclass(frozen=True, slots=True)
class LateAppend:
    """An append without an answer. ``answered_at``: when the controller first answered after it; SILENT until then."""

    answered_at: float = SILENT

    def may_come(self, now: float) -> bool:
        """Whether it may still be carried out. While the controller hangs, it has not been."""
        return self.answered_at == SILENT or now - self.answered_at < LATE_SECONDS


@dataclass(frozen=True, slots=True)
class RestoredList:
    """A list that was restored at ``at``: what was restored, and which entries had been ours."""

    at: float
    before: Before
    ours: frozenset[str]

    def is_recent(self, now: float) -> bool:
        """Whether a broker may still show the list as it was while we used it."""
        return now - self.at < LATE_SECONDS

    def original(self, read: Before) -> Before:
        """What to restore next time, given a reading that may still show our former entries."""
        if not read.dynamic:
            return read
        left = remaining_after(self.before, read.value, self.ours)
        return Before(left, dynamic=left is not None)
