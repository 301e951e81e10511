"""The state machine of one throttle rate: every row of its table, and the ledger row that each write requires."""

from dataclasses import replace

import pytest

from kafka_rebalance.execution.ledger import Before, EmergencyBrake, RateRecord
from kafka_rebalance.execution.rate_state import (
    LATE_SECONDS,
    SILENT,
    Doubt,
    RateAction,
    RatePhase,
    RateRead,
    RateState,
    RateUnread,
    RateWritten,
    Transition,
    row_to_write,
    transition,
)
from kafka_rebalance.execution.reassignment_throttle import RequestedRate

UNSET = Before(None, dynamic=False)
ROW = RateRecord(UNSET, possibly_ours=frozenset({20, 50}), intended=50)
ASKED = {"a": RequestedRate(50)}
NOW = 1000.0

UNKNOWN = RateState(0.0)
WRITTEN = RateState(0.0, RatePhase.WRITTEN, 50)
IN_PLACE = RateState(0.0, RatePhase.IN_PLACE, 50)
OVERWRITTEN = RateState(0.0, RatePhase.OVERWRITTEN)
RESTORED = RateState(0.0, RatePhase.RESTORED)
EVERY = pytest.mark.parametrize("state", [UNKNOWN, WRITTEN, IN_PLACE, OVERWRITTEN, RESTORED], ids=lambda s: s.phase)
READ_BEFORE = {RatePhase.IN_PLACE, RatePhase.OVERWRITTEN}


def read(state, value, row=ROW, asked=ASKED, now=NOW):
    return transition(state, RateRead(value, row, asked), now)


def twice(state, value, row=ROW):
    return read(read(state, value, row).state, value, row)


def test_the_samples_are_all_phases():
    """So that the tests below cover every row of the table."""
    assert {s.phase for s in (UNKNOWN, WRITTEN, IN_PLACE, OVERWRITTEN, RESTORED)} == set(RatePhase)


class TestWritten:
    @EVERY
    def test_an_answered_write(self, state):
        """The rate counts as set; earlier doubts are dropped."""
        doubted = replace(state, doubt=Doubt(7, 50))
        assert transition(doubted, RateWritten(60, accepted=True), NOW) == Transition(
            RateState(0.0, RatePhase.WRITTEN, 60)
        )

    @EVERY
    def test_an_unanswered_write(self, state):
        """The write may have reached the broker, or may still do so; from when on is known at the next answer."""
        assert transition(state, RateWritten(60, accepted=False), NOW) == Transition(RateState(SILENT))


class TestReadWhileClaimed:
    @EVERY
    def test_the_expected_rate(self, state):
        """Read back; after a restore the reading is late, so our rate has to be written again."""
        expected = RESTORED if state is RESTORED else RateState(0.0, RatePhase.IN_PLACE, 50)
        assert read(state, 50) == Transition(expected)
        assert expected.must_write(50) is (state is RESTORED)

    def test_what_is_known_to_be_set_is_expected_before_the_ledger(self):
        """An emergency brake stays: its rate is read again and again."""
        braked = RateState(0.0, RatePhase.IN_PLACE, 3)
        assert read(braked, 3).state == braked

    @EVERY
    @pytest.mark.parametrize("value", [None, 3, 60])
    def test_another_value_for_the_first_time(self, state, value):
        """Noted. Unless an earlier write of ours explains the value, it is not overwritten meanwhile."""
        stale = value is None and state.phase not in READ_BEFORE
        doubt = Doubt(value, None if stale else 50)
        assert read(state, value) == Transition(replace(state, doubt=doubt))

    @EVERY
    @pytest.mark.parametrize("value", [None, 3, 20, 60])
    def test_another_value_than_the_last_time(self, state, value):
        """The same value has to be read twice in a row; a value that must not be overwritten stays protected."""
        found = read(replace(state, doubt=Doubt(7, 50)), value)
        assert found == Transition(replace(state, doubt=Doubt(value, 50)))

    @EVERY
    def test_one_of_our_earlier_rates(self, state):
        """No one else changed it, so it is overwritten. The state remembers that our rate was read before."""
        phase = RatePhase.OVERWRITTEN if state.phase in READ_BEFORE else RatePhase.UNKNOWN
        assert twice(state, 20) == Transition(RateState(0.0, phase))

    @pytest.mark.parametrize("original", [None, 900])
    @EVERY
    def test_the_original_value(self, state, original):
        """Before our rate was read back, our write is late or lost; afterwards another tool restored the value."""
        row = replace(ROW, original=Before("900", dynamic=True)) if original else ROW
        found = twice(state, original, row)
        assert found.state == RateState(0.0)
        assert found.action is (RateAction.SAVE_REVERT if state.phase in READ_BEFORE else RateAction.NOTHING)

    @EVERY
    def test_a_lower_rate_is_a_ceiling(self, state):
        """An emergency brake: it is in place, and it is restored at the end."""
        row = replace(ROW, set_by_others=Before("3", dynamic=True), brake=EmergencyBrake(3, {"a": 50}))
        state = RateState(0.0, RatePhase.IN_PLACE, 3)
        assert twice(state, 3) == Transition(state)
        assert twice(UNKNOWN, 3) == Transition(state, RateAction.SAVE_BRAKE, row)

    @EVERY
    def test_a_lower_rate_is_believed_in_every_phase(self, state):
        """Regardless of the earlier phase."""
        found = twice(state, 3)
        assert (found.state, found.action) == (RateState(0.0, RatePhase.IN_PLACE, 3), RateAction.SAVE_BRAKE)
        assert found.row.brake == EmergencyBrake(3, {"a": 50})

    @EVERY
    def test_a_higher_rate_is_put_back(self, state):
        """The value that was set by hand is restored at the end. A brake ends with it."""
        row = replace(ROW, brake=EmergencyBrake(3, {"a": 50}))
        reverted = replace(ROW, set_by_others=Before("60", dynamic=True))
        assert twice(state, 60, row) == Transition(RateState(0.0), RateAction.SAVE_REVERT, reverted)

    def test_a_deleted_rate_is_put_back(self):
        """At the end the config stays unset."""
        reverted = replace(ROW, set_by_others=UNSET)
        assert twice(IN_PLACE, None) == Transition(RateState(0.0), RateAction.SAVE_REVERT, reverted)

    def test_beside_a_replication_throttle_the_new_value_is_that_throttle(self):
        """A brake does not change it."""
        row = replace(ROW, original=Before("900", dynamic=True))
        assert twice(IN_PLACE, 700, row).row.replication_set_by_others == Before("700", dynamic=True)
        assert twice(IN_PLACE, 3, row).row.replication_set_by_others is None

    def test_a_deleted_rate_uncovers_the_static_replication_throttle(self):
        """A throttle of the broker's file, or of all brokers, applies again and still counts."""
        row = replace(ROW, original=Before("900", dynamic=False), set_by_others=Before("3", dynamic=True))
        found = twice(IN_PLACE, None, row).row
        assert (found.set_by_others, found.replication) == (row.original, 900)
        assert (
            twice(IN_PLACE, None, replace(row, replication_set_by_others=Before("700", dynamic=True))).row.replication
            == 900
        )

    @EVERY
    def test_before_any_rate_is_on_record(self, state):
        """There is no value to compare with."""
        assert read(state, 50, replace(ROW, intended=None)) == Transition(state)


class TestReadUnclaimed:
    @EVERY
    @pytest.mark.parametrize("value", [20, 50])
    def test_a_rate_of_ours(self, state, value):
        """Restored as often as necessary."""
        assert read(state, value, asked={}) == Transition(state, RateAction.RESTORE)

    @EVERY
    def test_a_rate_of_somebody_else(self, state):
        """The value stays."""
        assert read(state, 7, asked={}) == Transition(state, RateAction.FORGET)

    @pytest.mark.parametrize("original", [None, 900])
    @EVERY
    def test_the_original_value(self, state, original):
        """If our rate was set, the reading is late, and the value is restored anyway."""
        row = replace(ROW, original=Before("900", dynamic=True)) if original else ROW
        action = RateAction.RESTORE if state.rate else RateAction.FORGET
        assert read(state, original, row, {}) == Transition(state, action)

    @EVERY
    def test_an_unanswered_write_may_still_arrive(self, state):
        """For half a minute; not after a restore, which the broker processed after it."""
        late = replace(state, rate=None, answered_again_at=NOW - LATE_SECONDS + 1)
        over = state is RESTORED
        assert read(late, None, asked={}).action is (RateAction.FORGET if over else RateAction.RESTORE)
        assert read(late, None, asked={}, now=NOW + 1).action is RateAction.FORGET

    @EVERY
    def test_an_unanswered_write_may_replace_what_somebody_else_has_set(self, state):
        """The value stays, and the row too, until the write can arrive no more. Nothing of ours is sent."""
        late = replace(state, rate=None, answered_again_at=NOW - LATE_SECONDS + 1)
        first = RateAction.FORGET if state is RESTORED else RateAction.WAIT
        assert read(late, 7, asked={}) == Transition(late, first)
        assert read(late, 7, asked={}, now=NOW + 1).action is RateAction.FORGET

    def test_after_a_restore_the_original_value_ends_it(self):
        """Also if a claim returned meanwhile and our rate was read late."""
        assert read(read(RESTORED, 50).state, None, asked={}).action is RateAction.FORGET

    @EVERY
    def test_a_broker_that_hangs_has_not_carried_out_anything_yet(self, state):
        """However long it hangs: half a minute counts from its first answer."""
        silent = transition(state, RateUnread(), NOW).state
        assert silent == replace(state, answered_again_at=SILENT)
        back = read(silent, 20, asked={}, now=NOW + 100).state
        assert back.answered_again_at == NOW + 100
        if state is not RESTORED:
            late = replace(back, rate=None)
            assert read(late, None, asked={}, now=NOW + 129).action is RateAction.RESTORE
            assert read(late, None, asked={}, now=NOW + 131).action is RateAction.FORGET


class TestRestored:
    @EVERY
    def test_an_answered_restore(self, state):
        """The time of the last unanswered write does not change."""
        started = replace(state, answered_again_at=5.0, doubt=Doubt(7, 50))
        assert transition(started, RateWritten(None, accepted=True), NOW) == Transition(
            RateState(5.0, RatePhase.RESTORED)
        )

    @EVERY
    def test_an_unanswered_restore(self, state):
        """An earlier restore that was answered still counts."""
        expected = RESTORED if state is RESTORED else UNKNOWN
        assert transition(state, RateWritten(None, accepted=False), NOW) == Transition(expected)


class TestMustWrite:
    @EVERY
    def test_what_is_not_in_place(self, state):
        """Written again and again until it is in place."""
        assert state.must_write(50) is (state.rate is None)
        assert state.must_write(51)

    @EVERY
    def test_nothing_is_asked_for(self, state):
        """Nothing is written."""
        assert not state.must_write(None)
        assert not state.lacks(None)

    def test_a_doubted_value_is_not_written_over(self):
        """It may be a brake, so the doubted rate is not overwritten; another requested rate is written."""
        doubted = read(UNKNOWN, 3).state
        assert not doubted.must_write(50)
        assert doubted.lacks(50)
        assert doubted.must_write(40)


class TestRowToWrite:
    def test_a_new_rate_is_recorded_with_those_that_may_be_set(self):
        """All written rates are recorded until one of them is read back."""
        assert row_to_write(ROW, 60, WRITTEN, ASKED, ASKED) == replace(
            ROW, possibly_ours=frozenset({20, 50, 60}), intended=60
        )
        assert row_to_write(ROW, 60, IN_PLACE, ASKED, ASKED) == replace(
            ROW, possibly_ours=frozenset({50, 60}), intended=60
        )

    def test_a_known_rate_adds_nothing(self):
        """The set of rates that may be set does not change."""
        assert row_to_write(ROW, 20, IN_PLACE, ASKED, ASKED) == replace(ROW, intended=20)

    def test_a_ceiling_holds_until_a_claim_asks_otherwise(self):
        """It caps the rate and never raises it; a new claim changes nothing."""
        row = replace(ROW, brake=EmergencyBrake(30, {"a": 50}))
        assert row_to_write(row, 50, UNKNOWN, ASKED | {"b": RequestedRate(9)}, {"a", "b"}).intended == 30
        assert row_to_write(row, 10, UNKNOWN, ASKED, ASKED).intended == 10
        lifted = row_to_write(row, 51, UNKNOWN, {"a": RequestedRate(51)}, {"a"})
        assert (lifted.brake, lifted.intended) == (None, 51)
