"""KIP-542 on stock brokers: what is written for all claims together, and that undoing restores what was there."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.execution.throttle import (
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    LIST_NAMES,
    RATE_NAMES,
    Before,
    Claim,
    Ledger,
    Rates,
    Wanted,
    combine,
    covers,
    effective_rate,
    entries_of,
    finished_brokers,
    finished_topics,
    ledger_from_json,
    ledger_to_json,
    moving_brokers,
    ours_to_subtract,
    record,
    remaining_after,
    strike_brokers,
    strike_entries,
    strike_topics,
)
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

NOTHING = Before(None, dynamic=False)
ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)


def items(*names):
    return frozenset(names)


def claim(leader=None, follower=None, brokers=(), sends=None, receives=None):
    return Claim(
        Rates(leader, follower),
        frozenset(brokers),
        {t: frozenset(e) for t, e in (sends or {}).items()},
        {t: frozenset(e) for t, e in (receives or {}).items()},
    )


class TestCombine:
    def test_the_lowest_rate_wins_per_broker_and_side(self):
        """Rates are per broker: of all claims on it the minimum applies, each side by itself."""
        found = combine(
            {
                "a": claim(leader=100, follower=30, brokers=[ONE, TWO]),
                "b": claim(leader=50, follower=90, brokers=[TWO, THREE]),
            }
        )
        assert found.rates == {
            ONE: {LEADER_RATE: 100, FOLLOWER_RATE: 30},
            TWO: {LEADER_RATE: 50, FOLLOWER_RATE: 30},
            THREE: {LEADER_RATE: 50, FOLLOWER_RATE: 90},
        }

    def test_the_higher_rate_returns_when_the_lower_claim_ends(self):
        """Nothing is remembered of a claim that is gone."""
        claims = {"a": claim(leader=100, brokers=[ONE]), "b": claim(leader=50, brokers=[ONE])}
        assert combine(claims).rates[ONE] == {LEADER_RATE: 50}
        del claims["b"]
        assert combine(claims).rates[ONE] == {LEADER_RATE: 100}

    def test_entries_of_all_claims_are_listed(self):
        """A list holds what moves now, whoever moves it."""
        found = combine(
            {
                "a": claim(1, 1, sends={"t": ["0:1"]}, receives={"t": ["0:4"]}),
                "b": claim(1, 1, sends={"t": ["1:1"], "u": ["0:2"]}),
            }
        )
        assert found.entries == {
            "t": {LEADER_LIST: items("0:1", "1:1"), FOLLOWER_LIST: items("0:4")},
            "u": {LEADER_LIST: items("0:2")},
        }

    def test_a_side_without_a_rate_is_not_listed(self):
        """Listed without a rate, a replica would be slowed by somebody else's."""
        found = combine({"a": claim(follower=5, brokers=[ONE], sends={"t": ["0:1"]}, receives={"t": ["0:4"]})})
        assert found == Wanted({ONE: {FOLLOWER_RATE: 5}}, {"t": {FOLLOWER_LIST: items("0:4")}})

    def test_full_speed_wants_nothing(self):
        """Unlimited touches no broker and no topic."""
        assert combine({"a": claim(brokers=[ONE], sends={"t": ["0:1"]})}) == Wanted()
        assert combine({}) == Wanted()


class TestEntries:
    def test_entries_are_partition_and_broker(self):
        """Kafka's form, ``partition:broker``."""
        found = entries_of(TopicPartition("t", 7), frozenset({ONE, TWO}), frozenset({THREE}))
        assert found == (items("7:1", "7:2"), items("7:3"))

    def test_only_brokers_between_which_a_copy_is_made_take_part(self):
        """A reorder or a drop moves no data, so no broker is throttled for it."""
        assert moving_brokers(replicas_of(1, 2), replicas_of(2, 3)) == {1, 2, 3}
        assert moving_brokers(replicas_of(1, 2), replicas_of(2, 1)) == frozenset()
        assert moving_brokers(replicas_of(1, 2), replicas_of(1)) == frozenset()


class TestEffectiveRate:
    @pytest.mark.parametrize("before", [None, "", "-1"])
    def test_alone_it_is_what_was_asked_for(self, before):
        """No replication throttle: the rate is ours."""
        assert effective_rate(50, Before(before, dynamic=False)) == 50

    @pytest.mark.parametrize("dynamic", [True, False])
    def test_it_comes_on_top_of_the_replication_throttle(self, dynamic):
        """KIP-542: the total is the sum, wherever the replication throttle was set."""
        assert effective_rate(50, Before("200", dynamic=dynamic)) == 250


class TestRecord:
    wanted = Wanted({ONE: {LEADER_RATE: 5}}, {"t": {LEADER_LIST: items("0:1")}})
    brokers = {ONE: {LEADER_RATE: Before("7", dynamic=True)}}  # noqa: RUF012
    topics = {"t": {LEADER_LIST: Before("9:9", dynamic=True)}}  # noqa: RUF012

    def test_what_is_recorded_is_covered(self):
        """Ledger first: nothing is applied before it is covered."""
        assert not covers(Ledger(), self.wanted)
        ledger = record(Ledger(), self.wanted, self.brokers, self.topics)
        assert covers(ledger, self.wanted)
        assert ledger.brokers == self.brokers
        assert ledger.topics == self.topics
        assert ledger.entries == {"t": {LEADER_LIST: items("0:1")}}

    def test_the_first_reading_is_the_one_to_restore(self):
        """A second reading shows our own values: recorded, they would be left behind for ever."""
        ledger = record(Ledger(), self.wanted, self.brokers, self.topics)
        ours = {ONE: {LEADER_RATE: Before("12", dynamic=True)}}
        our_list = {"t": {LEADER_LIST: Before("9:9,0:1", dynamic=True)}}
        more = Wanted(self.wanted.rates, {"t": {LEADER_LIST: items("1:1")}})
        again = record(ledger, more, ours, our_list)
        assert again.brokers == self.brokers
        assert again.topics == self.topics
        assert again.entries == {"t": {LEADER_LIST: items("0:1", "1:1")}}

    @pytest.mark.parametrize(
        "more",
        [
            Wanted({ONE: {FOLLOWER_RATE: 5}}),
            Wanted({TWO: {LEADER_RATE: 5}}),
            Wanted({}, {"t": {LEADER_LIST: items("1:1")}}),
            Wanted({}, {"t": {FOLLOWER_LIST: items("0:1")}}),
            Wanted({}, {"u": {LEADER_LIST: items("0:1")}}),
        ],
    )
    def test_another_side_broker_topic_or_entry_is_not_covered(self, more):
        """Each must be on record by itself."""
        assert not covers(record(Ledger(), self.wanted, self.brokers, self.topics), more)

    def test_what_could_not_be_read_is_not_recorded(self):
        """A broker or topic that did not answer stays uncovered, so it is not touched."""
        ledger = record(Ledger(), self.wanted, {}, {})
        assert ledger.empty
        assert not covers(ledger, self.wanted)

    def test_another_rate_is_covered_already(self):
        """What was before does not depend on what we set."""
        ledger = record(Ledger(), self.wanted, self.brokers, self.topics)
        assert covers(ledger, Wanted({ONE: {LEADER_RATE: 500}}, self.wanted.entries))


class TestUndo:
    ledger = Ledger(
        {ONE: {LEADER_RATE: Before("7", dynamic=True), FOLLOWER_RATE: NOTHING}, TWO: {LEADER_RATE: NOTHING}},
        {"t": {LEADER_LIST: Before("9:9,0:1", dynamic=True)}, "u": {LEADER_LIST: NOTHING}},
        {"t": {LEADER_LIST: items("0:1", "0:2", "1:1")}, "u": {LEADER_LIST: items("0:1")}},
    )
    wanted = Wanted({ONE: {LEADER_RATE: 3}}, {"t": {LEADER_LIST: items("0:2")}})

    def test_finished_entries_are_subtracted_but_not_those_that_were_there_before(self):
        """An entry that somebody else had set is not ours, even where we wanted it too."""
        found = ours_to_subtract(self.ledger, self.wanted)
        assert found == {"t": {LEADER_LIST: items("1:1")}, "u": {LEADER_LIST: items("0:1")}}

    def test_a_topic_is_finished_when_no_entry_is_wanted(self):
        """Then its lists become what they were."""
        assert finished_topics(self.ledger, self.wanted) == {"u"}
        assert finished_topics(self.ledger, Wanted()) == {"t", "u"}

    def test_rates_are_finished_side_by_side(self):
        """A side that no claim wants is restored while the other stays."""
        assert finished_brokers(self.ledger, self.wanted) == {
            ONE: {FOLLOWER_RATE: NOTHING},
            TWO: {LEADER_RATE: NOTHING},
        }

    def test_struck_brokers_are_off_the_record(self):
        """Only what was restored; a broker that did not answer stays."""
        left = strike_brokers(self.ledger, {TWO: {LEADER_RATE: NOTHING}, ONE: {FOLLOWER_RATE: NOTHING}})
        assert left.brokers == {ONE: {LEADER_RATE: Before("7", dynamic=True)}}
        assert left.topics == self.ledger.topics

    def test_struck_topics_are_off_the_record(self):
        """With their entries."""
        left = strike_topics(self.ledger, frozenset({"u"}))
        assert set(left.topics) == set(left.entries) == {"t"}
        assert left.brokers == self.ledger.brokers

    def test_struck_entries_leave_what_was_before_on_record(self):
        """The list itself is still ours to restore."""
        left = strike_entries(self.ledger, {"t": {LEADER_LIST: items("1:1")}})
        assert left.entries["t"] == {LEADER_LIST: items("0:1", "0:2")}
        assert left.topics == self.ledger.topics

    def test_a_ledger_with_anything_left_is_not_empty(self):
        """It is kept until everything is settled, a dead broker included."""
        assert Ledger().empty
        assert not Ledger(brokers={ONE: {LEADER_RATE: NOTHING}}).empty
        assert not strike_topics(self.ledger, frozenset({"t", "u"})).empty


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
        """Nothing set before and nothing of others now: the config goes away, or it would stay as an empty value."""
        found = remaining_after(Before(before, dynamic=before is not None), now, frozenset(ours))
        assert found == left


class TestLedgerText:
    def test_round_trip(self):
        """What is stored is what is read, through JSON text."""
        text = json.dumps(ledger_to_json(TestUndo.ledger))
        assert ledger_from_json(json.loads(text)) == TestUndo.ledger
        assert ledger_from_json(json.loads(json.dumps(ledger_to_json(Ledger())))) == Ledger()

    def test_equal_ledgers_are_equal_texts(self):
        """Sorted, so that writing again changes nothing."""
        one = Ledger({ONE: {}, TWO: {}}, {}, {"t": {LEADER_LIST: items("0:1", "0:2")}})
        other = Ledger({TWO: {}, ONE: {}}, {}, {"t": {LEADER_LIST: items("0:2", "0:1")}})
        assert json.dumps(ledger_to_json(one)) == json.dumps(ledger_to_json(other))

    @pytest.mark.parametrize(
        "damage",
        [
            lambda data: data.clear(),
            lambda data: data.update(version=2),
            lambda data: data.pop("brokers"),
            lambda data: data.pop("topics"),
            lambda data: data.pop("entries"),
            lambda data: data["brokers"].update(x={}),
            lambda data: data["brokers"]["1"][LEADER_RATE].pop("value"),
            lambda data: data["topics"]["t"][LEADER_LIST].pop("dynamic"),
            lambda data: data["topics"]["t"].update({LEADER_LIST: "0:1"}),
            lambda data: data["entries"]["t"].update({LEADER_LIST: None}),
        ],
    )
    def test_a_damaged_ledger_is_refused(self, damage):
        """Never guess what to restore."""
        data = ledger_to_json(TestUndo.ledger)
        damage(data)
        with pytest.raises((KeyError, TypeError, ValueError)):
            ledger_from_json(data)


class Configs:
    """Broker rates and topic lists as Kafka keeps them, and the order in which the ledger is written and undone."""

    def __init__(self, rates, defaults, lists):
        self.rates = rates  # broker -> name -> dynamic value
        self.defaults = defaults  # broker -> name -> value from the broker's file
        self.lists = lists  # topic -> name -> value

    def before_rate(self, broker, name):
        mine = self.rates.get(broker, {}).get(name)
        value = mine if mine is not None else self.defaults.get(broker, {}).get(name)
        return Before(value, dynamic=mine is not None)

    def before_list(self, topic, name):
        value = self.lists.get(topic, {}).get(name)
        return Before(value, dynamic=value is not None)

    def apply(self, stored, wanted):
        """One tick by the ledger as stored; returns the ledger to store. ``stored`` is what a crash would leave."""
        ledger = ledger_from_json(stored)
        brokers = {b: {name: self.before_rate(b, name) for name in RATE_NAMES} for b in wanted.rates}
        topics = {t: {name: self.before_list(t, name) for name in LIST_NAMES} for t in wanted.entries}
        ledger = record(ledger, wanted, brokers, topics)
        assert covers(ledger, wanted)
        for broker, names in wanted.rates.items():
            for name, rate in names.items():
                value = str(effective_rate(rate, ledger.brokers[broker][name]))
                self.rates.setdefault(broker, {})[name] = value
        for topic, lists in wanted.entries.items():
            for name, mine in lists.items():
                self.put(topic, name, self.split(topic, name) + sorted(mine - set(self.split(topic, name))))
        stale = ours_to_subtract(ledger, wanted)
        stale = {topic: lists for topic, lists in stale.items() if wanted.entries.get(topic)}
        for topic, lists in stale.items():
            for name, gone in lists.items():
                self.put(topic, name, [entry for entry in self.split(topic, name) if entry not in gone])
        ledger = strike_entries(ledger, stale)
        over = finished_brokers(ledger, wanted)
        for broker, names in over.items():
            for name, before in names.items():
                if before.dynamic:
                    self.rates[broker][name] = before.value
                else:
                    del self.rates[broker][name]
        topics_over = finished_topics(ledger, wanted)
        for topic in topics_over:
            for name, before in ledger.topics[topic].items():
                ours = ledger.entries[topic].get(name, frozenset())
                left = remaining_after(before, self.lists[topic][name], ours)
                if left is None:
                    del self.lists[topic][name]
                else:
                    self.lists[topic][name] = left
        return ledger_to_json(strike_topics(strike_brokers(ledger, over), topics_over))

    def split(self, topic, name):
        return [entry for entry in self.lists.get(topic, {}).get(name, "").split(",") if entry]

    def put(self, topic, name, entries):
        self.lists.setdefault(topic, {})[name] = ",".join(entries)

    def snapshot(self):
        return (
            {(b, n): v for b, names in self.rates.items() for n, v in names.items()},
            {(t, n): v for t, names in self.lists.items() for n, v in names.items()},
        )


BROKER_IDS = st.sampled_from([ONE, TWO, THREE])
RATE = st.none() | st.integers(1, 9)
ENTRY = st.builds("{}:{}".format, st.integers(0, 2), st.integers(1, 3))
ENTRIES = st.dictionaries(st.sampled_from(["t", "u"]), st.frozensets(ENTRY, max_size=4), max_size=2)
CLAIMS = st.dictionaries(
    st.sampled_from(["a", "b"]),
    st.builds(Claim, st.builds(Rates, RATE, RATE), st.frozensets(BROKER_IDS), ENTRIES, ENTRIES),
    max_size=2,
)
VALUES = st.dictionaries(st.sampled_from(RATE_NAMES), st.integers(1, 99).map(str))
LISTS = st.dictionaries(
    st.sampled_from(LIST_NAMES), st.lists(ENTRY, min_size=1, max_size=3, unique=True).map(",".join), max_size=2
)


@st.composite
def clusters(draw):
    rates = draw(st.dictionaries(BROKER_IDS, VALUES))
    defaults = draw(st.dictionaries(BROKER_IDS, VALUES))
    return Configs(rates, defaults, draw(st.dictionaries(st.sampled_from(["t", "u"]), LISTS)))


class TestAnyClaims:
    @given(clusters(), st.lists(CLAIMS, max_size=5))
    def test_in_the_end_everything_is_as_it_was(self, configs, history):
        """Any claims, one tick after another and then none: each config is what it was, set or not, and in order."""
        before = copy.deepcopy(configs.snapshot())
        stored = ledger_to_json(Ledger())
        for claims in [*history, {}]:
            stored = configs.apply(stored, combine(claims))
        assert configs.snapshot() == before
        assert ledger_from_json(stored).empty

    @given(clusters(), st.lists(CLAIMS, max_size=5))
    def test_at_any_time_the_lists_hold_what_is_wanted_and_what_others_set(self, configs, history):
        """Neither more nor less: an entry too many slows somebody, one too few makes us exceed the rate."""
        _, foreign = copy.deepcopy(configs.snapshot())
        stored = ledger_to_json(Ledger())
        for claims in history:
            wanted = combine(claims)
            stored = configs.apply(stored, wanted)
            for topic in ("t", "u"):
                for name in LIST_NAMES:
                    theirs = set(filter(None, foreign.get((topic, name), "").split(",")))
                    ours = wanted.entries.get(topic, {}).get(name, frozenset())
                    assert set(configs.split(topic, name)) == theirs | ours

    @given(clusters(), CLAIMS, CLAIMS)
    def test_entries_that_others_add_meanwhile_survive(self, configs, first, second):
        """Appended and subtracted, never overwritten."""
        stored = configs.apply(ledger_to_json(Ledger()), combine(first))
        configs.put("t", LEADER_LIST, [*configs.split("t", LEADER_LIST), "77:7"])
        for claims in (second, {}):
            stored = configs.apply(stored, combine(claims))
        assert "77:7" in configs.split("t", LEADER_LIST)
