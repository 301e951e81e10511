"""The state of one list of throttled replicas: entries appended, read back, and removed by others."""

from kafka_rebalance.execution.list_state import ListState

A, B = "0:1", "0:2"
BOTH = frozenset({A, B})


class TestWritten:
    def test_appended_entries_are_listed(self):
        """And no longer missing."""
        assert ListState(frozenset({A}), BOTH).after_append(frozenset({B})) == ListState(BOTH, frozenset({A}))

    def test_subtracted_entries_are_not(self):
        """The others stay."""
        assert ListState(BOTH).after_subtract(frozenset({A})) == ListState(frozenset({B}))


class TestReading:
    def test_all_there(self):
        """Entries of others are ignored."""
        assert ListState(BOTH).after_reading(f"7:7,{A},{B}", BOTH) == (ListState(BOTH), frozenset())

    def test_missing_once(self):
        """Noted only: the reading may be stale."""
        assert ListState(BOTH).after_reading(A, BOTH) == (ListState(BOTH, frozenset({B})), frozenset())

    def test_missing_twice_is_gone(self):
        """The entry is appended again. An entry missing for the first time is only noted."""
        once, _ = ListState(BOTH).after_reading(A, BOTH)
        assert once.after_reading(None, BOTH) == (ListState(frozenset({A}), frozenset({A})), frozenset({B}))

    def test_missing_twice_not_in_a_row(self):
        """If the entry was present in between, the count starts again."""
        once, _ = ListState(BOTH).after_reading(A, BOTH)
        between, _ = once.after_reading(f"{A},{B}", BOTH)
        assert between.after_reading(A, BOTH) == (once, frozenset())

    def test_what_is_not_wanted_or_was_not_appended_is_not_missed(self):
        """Only entries that are both wanted and appended count."""
        state = ListState(frozenset({A}))
        assert state.after_reading("", frozenset({B})) == (state, frozenset())

    def test_a_wildcard_covers_everything(self):
        """With a wildcard no entry is missing; its removal is detected."""
        once, _ = ListState(BOTH).after_reading(A, BOTH)
        wild, gone = once.after_reading("*", BOTH)
        assert (wild, gone) == (ListState(BOTH, wildcard=True), frozenset())
        assert wild.after_reading("", BOTH) == (ListState(BOTH, BOTH), frozenset())
