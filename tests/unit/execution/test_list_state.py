"""The state of one list of throttled replicas: entries appended, read back, and removed by others."""

from kafka_rebalance.execution.ledger import Before
from kafka_rebalance.execution.list_state import LateAppend, ListState, RestoredList
from kafka_rebalance.execution.rate_state import LATE_SECONDS

A, B = "0:1", "0:2"
BOTH = frozenset({A, B})


class TestWritten:
    def test_appended_entries_are_listed(self):
        """And no longer missing."""
        assert ListState(frozenset({A}), BOTH).after_append(frozenset({B})) == ListState(BOTH, frozenset({A}))

    def test_subtracted_entries_are_not(self):
        """The others stay. A reading has to confirm it."""
        after = ListState(BOTH).after_subtract(frozenset({A}))
        assert after == ListState(frozenset({B}), subtracted=frozenset({A}))

    def test_appended_again_before_that(self):
        """Then no reading confirms anything."""
        state = ListState(subtracted=BOTH)
        assert state.before_append(frozenset({A})) == ListState(subtracted=frozenset({B}))


class TestReading:
    def test_all_there(self):
        """Entries of others are ignored."""
        assert ListState(BOTH).after_reading(BOTH | {"7:7"}, BOTH) == (ListState(BOTH), frozenset())

    def test_missing_once(self):
        """Noted only: the reading may be stale."""
        assert ListState(BOTH).after_reading(frozenset({A}), BOTH) == (ListState(BOTH, frozenset({B})), frozenset())

    def test_missing_twice_is_gone(self):
        """The entry is appended again. An entry missing for the first time is only noted."""
        once, _ = ListState(BOTH).after_reading(frozenset({A}), BOTH)
        assert once.after_reading(frozenset(), BOTH) == (ListState(frozenset({A}), frozenset({A})), frozenset({B}))

    def test_missing_twice_not_in_a_row(self):
        """If the entry was present in between, the count starts again."""
        once, _ = ListState(BOTH).after_reading(frozenset({A}), BOTH)
        between, _ = once.after_reading(BOTH, BOTH)
        assert between.after_reading(frozenset({A}), BOTH) == (once, frozenset())

    def test_what_is_not_wanted_or_was_not_appended_is_not_missed(self):
        """Only entries that are both wanted and appended count."""
        state = ListState(frozenset({A}))
        assert state.after_reading(frozenset(), frozenset({B})) == (state, frozenset())

    def test_a_wildcard_covers_everything(self):
        """With a wildcard no entry is missing; its removal is detected."""
        once, _ = ListState(BOTH).after_reading(frozenset({A}), BOTH)
        wild, gone = once.after_reading(frozenset({"*"}), BOTH)
        assert (wild, gone) == (ListState(BOTH, wildcard=True), frozenset())
        assert wild.after_reading(frozenset(), BOTH) == (ListState(BOTH, BOTH), frozenset())


class TestConfirming:
    def test_gone(self):
        """Struck off the ledger."""
        assert ListState(subtracted=BOTH).after_confirming(frozenset({"7:7"}), late=False) == (ListState(), BOTH)

    def test_still_there(self):
        """It has to be subtracted again, and stays on record."""
        assert ListState(subtracted=BOTH).after_confirming(frozenset({A}), late=False) == (ListState(), frozenset({B}))

    def test_while_an_append_may_be_late(self):
        """What is gone may come back: it stays on record, and a later reading tells."""
        kept = ListState(subtracted=frozenset({B}))
        assert ListState(subtracted=BOTH).after_confirming(frozenset({A}), late=True) == (kept, frozenset())


class TestLateAppend:
    def test_until_half_a_minute_after_the_next_answer(self):
        """While the controller hangs, however long, the append has not been carried out."""
        assert LateAppend().may_come(1e9)
        assert LateAppend(100.0).may_come(100.0 + LATE_SECONDS - 1)
        assert not LateAppend(100.0).may_come(100.0 + LATE_SECONDS)


class TestRestoredLately:
    def test_our_former_entries_are_not_what_to_restore(self):
        """Those of others are; without any the list was not set."""
        unset = RestoredList(0.0, Before(None, dynamic=False), BOTH)
        assert unset.original(Before(f"{A},7:7", dynamic=True)) == Before("7:7", dynamic=True)
        assert unset.original(Before(A, dynamic=True)) == Before(None, dynamic=False)
        assert unset.original(Before("", dynamic=False)) == Before("", dynamic=False)

    def test_what_others_had_listed_too(self):
        """It is theirs, and an empty list that they had set stays."""
        theirs = RestoredList(0.0, Before(A, dynamic=True), BOTH)
        assert theirs.original(Before(f"{A},{B}", dynamic=True)) == Before(A, dynamic=True)
        assert theirs.original(Before(B, dynamic=True)) == Before("", dynamic=True)

    def test_for_half_a_minute(self):
        """After that, what is read is what others have set."""
        restored = RestoredList(100.0, Before(None, dynamic=False), BOTH)
        assert restored.is_recent(100.0 + LATE_SECONDS - 1)
        assert not restored.is_recent(100.0 + LATE_SECONDS)
