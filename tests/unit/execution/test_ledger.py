"""The throttle ledger: what is recorded, what is left to restore, and that the original values are restored."""

import json
from dataclasses import replace

import pytest

from kafka_rebalance.execution.ledger import (
    Before,
    EmergencyBrake,
    Ledger,
    RateRecord,
    covers_entries,
    finished_rates,
    finished_topics,
    protected,
    remaining_after,
    split,
    stale_entries,
    strike_entries,
    strike_rates,
    strike_topics,
    with_entries,
    with_foreign,
    with_rates,
)
from kafka_rebalance.execution.ledger_json import ledger_from_json, ledger_to_json
from kafka_rebalance.execution.reassignment_throttle import (
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    Claim,
    Rates,
    RequestedRate,
    combine,
)
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

NOTHING = Before(None, dynamic=False)
ONE, TWO = BrokerId(1), BrokerId(2)
OURS = RateRecord(NOTHING, frozenset({5}))


def items(*names):
    return frozenset(names)


def wanted(**entries):
    return {topic: {LEADER_LIST: frozenset(mine)} for topic, mine in entries.items()}


LEDGER = Ledger(
    {ONE: {LEADER_RATE: RateRecord(Before("7", dynamic=True), frozenset({3, 5})), FOLLOWER_RATE: OURS}},
    {"t": {LEADER_LIST: Before("9:9,0:1", dynamic=True)}, "u": {LEADER_LIST: NOTHING}},
    {"t": {LEADER_LIST: items("0:1", "0:2", "1:1")}, "u": {LEADER_LIST: items("0:1")}},
    frozenset({TopicPartition("u", 0)}),
)


class TestEntries:
    before = {"t": {LEADER_LIST: Before("9:9", dynamic=True)}}  # noqa: RUF012

    def test_what_is_on_record_is_covered(self):
        """Ledger first: no entry is listed before it is recorded."""
        assert not covers_entries(Ledger(), wanted(t=["0:1"]))
        ledger = with_entries(Ledger(), wanted(t=["0:1"]), self.before)
        assert covers_entries(ledger, wanted(t=["0:1"]))
        assert ledger.topics == self.before

    def test_the_first_reading_is_the_one_to_restore(self):
        """A second reading shows our own entries; recording them would leave them behind for ever."""
        ledger = with_entries(Ledger(), wanted(t=["0:1"]), self.before)
        again = with_entries(ledger, wanted(t=["1:1"]), {"t": {LEADER_LIST: Before("9:9,0:1", dynamic=True)}})
        assert again.topics == self.before
        assert again.listed("t", LEADER_LIST) == {"0:1", "1:1"}

    @pytest.mark.parametrize("more", [wanted(t=["1:1"]), wanted(u=["0:1"]), {"t": {FOLLOWER_LIST: items("0:1")}}])
    def test_another_topic_side_or_entry_is_not_covered(self, more):
        """Each must be recorded separately."""
        assert not covers_entries(with_entries(Ledger(), wanted(t=["0:1"]), self.before), more)

    def test_a_list_that_could_not_be_read_is_not_recorded(self):
        """So it stays uncovered and is not changed."""
        assert with_entries(Ledger(), wanted(t=["0:1"]), {}).empty


class TestOthers:
    def test_what_is_listed_for_others_is_told_apart(self):
        """A partition that a rebalance claims is not foreign; a record that is not listed now stays."""
        u, t = TopicPartition("u", 0), TopicPartition("t", 0)
        assert with_foreign(LEDGER, wanted(t=["0:1"]), {t}).foreign == {u, t}
        assert with_foreign(LEDGER, wanted(u=["0:1"]), ()).foreign == frozenset()
        assert with_foreign(LEDGER, wanted(), {t}).foreign == {u}


class TestUndo:
    def test_finished_entries_are_subtracted_but_not_those_that_were_there_before(self):
        """An entry that another tool set is not ours, even where we wanted it too."""
        found = stale_entries(LEDGER, wanted(t=["0:2"]))
        assert found == {"t": {LEADER_LIST: items("1:1")}, "u": {LEADER_LIST: items("0:1")}}

    def test_a_topic_is_finished_when_no_entry_is_wanted(self):
        """Then its lists are restored."""
        assert finished_topics(LEDGER, wanted(t=["0:2"], u=[])) == {"u"}
        assert finished_topics(LEDGER, {}) == {"t", "u"}

    def test_rates_are_finished_side_by_side(self):
        """A side that no claim needs is restored while the other stays; brokers that are kept are not restored."""
        asked = combine({"a": Claim(Rates(leader=3), frozenset({ONE}))})
        assert finished_rates(LEDGER, asked, ()) == {ONE: {FOLLOWER_RATE: OURS}}
        assert finished_rates(LEDGER, asked, {ONE}) == {}

    def test_what_is_struck_is_off_the_record(self):
        """Only what was restored is removed; a broker that did not answer stays."""
        left = strike_rates(LEDGER, {ONE: {FOLLOWER_RATE}})
        assert set(left.brokers[ONE]) == {LEADER_RATE}
        assert strike_rates(left, {ONE: {LEADER_RATE}}).brokers == {}
        left = strike_topics(LEDGER, {"u"})
        assert set(left.topics) == set(left.entries) == {"t"}
        assert left.foreign == frozenset()
        both = with_entries(LEDGER, {"t": {FOLLOWER_LIST: items("1:1")}}, {"t": {FOLLOWER_LIST: NOTHING}})
        left = strike_entries(both, {("t", LEADER_LIST): items("1:1")})
        assert left.entries["t"] == {LEADER_LIST: {"0:1", "0:2"}, FOLLOWER_LIST: {"1:1"}}
        assert left.entries["u"] == LEDGER.entries["u"]
        assert left.topics == both.topics

    def test_a_ledger_with_anything_left_is_not_empty(self):
        """It is kept until everything is restored, dead brokers included."""
        assert Ledger().empty
        assert not with_rates(Ledger(), {(ONE, LEADER_RATE): OURS}).empty
        assert not strike_topics(LEDGER, {"t", "u"}).empty

    def test_what_its_owner_made_of_it_is_restored(self):
        """Not the value from when the run began."""
        record = RateRecord(Before("7", dynamic=True), set_by_others=NOTHING)
        assert record.to_restore == NOTHING


class TestProtected:
    def test_what_is_in_flight_unclaimed_keeps_its_entries_and_rates(self):
        """After a restart the resources arrive one by one."""
        keep, brokers = protected(combine({}).entries, LEDGER, {TopicPartition("t", 1): replicas_of(1, 4)})
        assert keep == {"t": {LEADER_LIST: items("1:1")}}
        assert brokers == {1, 4}

    def test_what_we_never_throttled_is_nobodys(self):
        """Foreign reassignments that are not recorded."""
        assert protected({}, LEDGER, {TopicPartition("x", 0): replicas_of(1, 4)}) == ({}, frozenset())


class TestCeiling:
    @pytest.mark.parametrize(
        ("asked", "holds"),
        [
            ({"a": 50, "b": 80}, True),
            ({"a": 50}, True),
            ({"a": 50, "c": 10}, True),
            ({"a": 60, "b": 80}, False),
            ({"c": 10}, True),
            ({"a": 50, "b": None}, False),
        ],
    )
    def test_it_holds_until_somebody_who_was_there_asks_otherwise(self, asked, holds):
        """A claim that appears or goes does not change a spec; one that stays and asks for no rate any more does."""
        brake = EmergencyBrake(5, {"a": 50, "b": 80})
        rates = {name: RequestedRate(rate) for name, rate in asked.items() if rate is not None}
        assert brake.holds(rates, asked) is holds


class TestRemainingAfter:
    @pytest.mark.parametrize(
        ("before", "now", "ours", "left"),
        [
            (None, "0:1,0:2", ["0:1", "0:2"], None),
            (None, "", ["0:1"], None),
            (None, None, ["0:1"], None),
            (None, "0:1,8:8", ["0:1"], "8:8"),
            ("9:9", "9:9,0:1", ["0:1"], "9:9"),
            ("9:9", "9:9,0:1,8:8", ["0:1"], "9:9,8:8"),
            ("9:9,0:1", "9:9,0:1", ["0:1"], "9:9,0:1"),
            ("9:9", "8:8", ["0:1"], "8:8"),
            ("", "0:1", ["0:1"], ""),
        ],
    )
    def test_what_was_there_and_what_others_added_stays(self, before, now, ours, left):
        """If the list was unset before and holds no foreign entries now, the config is deleted, not left empty."""
        found = remaining_after(Before(before, dynamic=before is not None), now, frozenset(ours))
        assert found == left

    def test_of_an_entry_that_is_there_many_times(self, monkeypatch):
        """A server may show it 8,000 times, beside a long list from before: it is split once."""
        splits = []
        monkeypatch.setattr(f"{split.__module__}.split", lambda value: splits.append(value) or split(value))
        assert remaining_after(Before("9:9", dynamic=True), ",".join(["0:1"] * 100), frozenset({"0:1"})) == ""
        assert splits == ["9:9"]


class TestText:
    full = with_rates(
        LEDGER,
        {
            (TWO, LEADER_RATE): RateRecord(
                NOTHING, frozenset({9}), 4, Before("4", dynamic=True), NOTHING, EmergencyBrake(4, {"a": 9})
            )
        },
    )

    def test_round_trip(self):
        """The ledger survives a round trip through JSON text."""
        for ledger in (self.full, replace(self.full, cordons=frozenset({ONE, TWO})), Ledger()):
            assert ledger_from_json(json.loads(json.dumps(ledger_to_json(ledger)))) == ledger

    def test_equal_ledgers_are_equal_texts(self):
        """Sorted, so that rewriting it changes nothing."""
        one = Ledger({ONE: {}, TWO: {}}, {}, {"t": {LEADER_LIST: items("0:1", "0:2")}})
        other = Ledger({TWO: {}, ONE: {}}, {}, {"t": {LEADER_LIST: items("0:2", "0:1")}})
        assert json.dumps(ledger_to_json(one)) == json.dumps(ledger_to_json(other))

    def test_one_of_an_earlier_version_has_no_cordons(self):
        data = ledger_to_json(self.full)
        del data["cordons"]
        assert ledger_from_json(data) == self.full

    def test_it_is_not_empty_while_a_cordon_is_left(self):
        """The engine goes on until the broker is back."""
        assert not Ledger(cordons=frozenset({ONE})).empty

    @pytest.mark.parametrize(
        "damage",
        [
            lambda data: data.clear(),
            lambda data: data.update(cordons=["4"]),
            lambda data: data.update(version=1),
            lambda data: data.pop("brokers"),
            lambda data: data.pop("topics"),
            lambda data: data.pop("entries"),
            lambda data: data.update(others=[["t"]]),
            lambda data: data.update(others=[[0, 0]]),
            lambda data: data["brokers"].update(x={}),
            lambda data: data["brokers"]["1"][LEADER_RATE].pop("before"),
            lambda data: data["brokers"]["1"][LEADER_RATE].update(written=["5"]),
            lambda data: data["brokers"]["2"][LEADER_RATE].update(owner={}),
            lambda data: data["brokers"]["2"][LEADER_RATE]["ceiling"].pop("asked"),
            lambda data: data["topics"]["t"][LEADER_LIST].pop("dynamic"),
            lambda data: data["topics"]["t"].update({LEADER_LIST: "0:1"}),
            lambda data: data["entries"]["t"].update({LEADER_LIST: None}),
        ],
    )
    def test_a_damaged_ledger_is_refused(self, damage):
        """The operator never guesses what to restore."""
        data = ledger_to_json(self.full)
        damage(data)
        with pytest.raises((KeyError, TypeError, ValueError)):
            ledger_from_json(data)
