"""Entries of ours leave the lists for good: appends that are carried out late, and readings that lag."""

from typing import ClassVar

import pytest
from tests.fakes.throttled_cluster import ALIVE, LATE_TICKS, Cluster, claim, sides

from kafka_rebalance.errors import Transient
from kafka_rebalance.execution import list_budget
from kafka_rebalance.execution.ledger_json import ledger_from_json
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, LEADER_LIST, LIST_NAMES, Claim, Rates
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.reconcile.throttle import throttle_keeper

OTHER = {"b": Claim(Rates(50, 40), frozenset(ALIVE), sides({"1:1"}, {"1:2"}))}


@pytest.fixture
def cluster():
    return Cluster()


def append_without_an_answer(cluster, claims):
    """One broker passes the append on to the controller much later; the next requests go through another one."""
    cluster.kafka.hung = True
    with pytest.raises(Transient):
        cluster.tick(claims)
    cluster.kafka.hung = False


class TestAppendCarriedOutLate:
    def test_after_the_entry_was_taken_out_of_a_list_in_use(self, cluster):
        """It stays on record while the append may arrive, and goes when it does."""
        cluster.ticks(OTHER)
        append_without_an_answer(cluster, claim() | OTHER)
        cluster.ticks(OTHER)
        assert not cluster.keeper.restored({"t"}, ALIVE)
        cluster.kafka.resume()
        assert cluster.kafka.lists("t") == ({"0:1", "1:1"}, {"0:2", "1:2"})
        cluster.ticks(OTHER)
        assert cluster.kafka.lists("t") == ({"1:1"}, {"1:2"})
        cluster.ticks(OTHER, count=LATE_TICKS)
        assert cluster.keeper.restored({"t"}, ALIVE)

    def test_after_the_list_was_restored(self, cluster):
        """The topic stays on record while the append may arrive."""
        append_without_an_answer(cluster, claim())
        cluster.ticks({})
        cluster.kafka.resume()
        assert cluster.kafka.lists("t") == ({"0:1"}, {"0:2"})
        cluster.ticks({}, count=LATE_TICKS)
        assert cluster.kafka.values == {}
        assert cluster.keeper.ledger_empty

    def test_sent_by_an_operator_that_was_killed(self, cluster):
        """What was on record at the start may have been sent just before."""
        append_without_an_answer(cluster, claim())
        cluster.restart()
        cluster.ticks({})
        cluster.kafka.resume()
        cluster.ticks({}, count=LATE_TICKS)
        assert cluster.kafka.values == {}
        assert cluster.keeper.ledger_empty

    def test_a_run_does_not_wait_for_it(self, cluster):
        """Once its topics read as before, it may end; the ledger waits, and removes what arrives after the end."""
        cluster.ticks(claim())
        cluster.restart()
        cluster.ticks({}, count=3)
        assert cluster.kafka.values == {}
        assert cluster.keeper.restored({"t"}, ALIVE)
        assert not cluster.keeper.ledger_empty
        cluster.kafka.values["t", LEADER_LIST] = "0:1"  # an append of the operator before
        cluster.ticks({}, count=LATE_TICKS)
        assert cluster.kafka.values == {}
        assert cluster.keeper.ledger_empty

    def test_after_it_was_sent_again_and_accepted(self, cluster):
        """The second append is answered; the first one arrives after both entries are gone."""
        append_without_an_answer(cluster, claim())
        cluster.tick(claim())
        cluster.ticks({})
        cluster.kafka.resume()
        cluster.ticks({}, count=LATE_TICKS)
        assert cluster.kafka.values == {}
        assert cluster.keeper.ledger_empty

    @pytest.mark.parametrize("theirs", ["0:1,0:2", "*"])
    def test_lists_that_our_append_does_not_change_wait_for_nothing(self, theirs):
        """Others had listed the same entries, or everything."""
        before = {("t", LEADER_LIST): theirs, ("t", FOLLOWER_LIST): theirs}
        cluster = Cluster(before)
        cluster.tick(claim())
        cluster.restart()
        cluster.ticks({})
        assert cluster.kafka.values == before
        assert cluster.keeper.ledger_empty

    def test_a_topic_that_was_answered_waits_for_nothing(self, cluster):
        """Nothing of it can arrive any more."""
        cluster.tick(claim())
        cluster.ticks({}, count=2)
        assert cluster.keeper.ledger_empty


class TestReadingsThatLag:
    def test_entries_that_still_show_stay_on_record(self, cluster):
        """They are taken out again until a reading no longer shows them."""
        cluster.ticks(claim() | OTHER)
        cluster.kafka.late = {("t", LEADER_LIST): "0:1,1:1"}
        cluster.ticks(OTHER)
        assert not cluster.keeper.restored({"t"}, ALIVE)
        cluster.kafka.late = {}
        cluster.ticks(OTHER)
        assert cluster.keeper.restored({"t"}, ALIVE)

    @pytest.mark.parametrize("theirs", [None, "7:7"])
    def test_our_own_entries_are_not_taken_for_those_of_others(self, theirs):
        """The next run of the topic begins on a broker that still shows the last one."""
        before = {("t", LEADER_LIST): theirs, ("t", FOLLOWER_LIST): theirs} if theirs else {}
        cluster = Cluster(before)
        cluster.tick(claim())
        cluster.ticks({}, count=2)
        assert cluster.keeper.ledger_empty
        own = f"{theirs}," if theirs else ""
        cluster.kafka.late = {("t", LEADER_LIST): f"{own}0:1", ("t", FOLLOWER_LIST): f"{own}0:2"}
        cluster.tick(claim())
        cluster.kafka.late = {}
        cluster.ticks(claim())
        cluster.ticks({})
        assert cluster.kafka.values == before
        assert cluster.keeper.ledger_empty

    def test_what_others_listed_later_is_theirs(self, cluster):
        """Also if it is an entry that we had once."""
        cluster.tick(claim())
        cluster.ticks({}, count=LATE_TICKS)
        cluster.kafka.values["t", LEADER_LIST] = "0:1"
        cluster.ticks(claim())
        cluster.ticks({})
        assert cluster.kafka.values == {("t", LEADER_LIST): "0:1"}


class TestTakenOut:
    def test_on_record_until_read(self, cluster):
        """An operator that is killed before it has read the list leaves a record of what it took out."""
        cluster.ticks(claim() | OTHER)
        cluster.tick(OTHER)
        stored = ledger_from_json(cluster.records.kept)
        assert stored.listed("t", LEADER_LIST) == {"0:1", "1:1"}
        assert not cluster.keeper.restored({"t"}, ALIVE)
        cluster.tick(OTHER)
        assert cluster.keeper.restored({"t"}, ALIVE)

    def test_sent_once(self, cluster, monkeypatch):
        """An accepted change is not repeated while nothing shows that it was without effect."""
        sent, alter = [], cluster.kafka.alter_topic_configs

        async def noting(changes):
            sent.append(changes)
            return await alter(changes)

        monkeypatch.setattr(cluster.kafka, "alter_topic_configs", noting)
        cluster.ticks(claim() | OTHER)
        sent.clear()
        cluster.ticks(OTHER)
        assert len(sent) == 1

    def test_wanted_again_before_it_was_read(self, cluster):
        """It is listed again, and stays on record."""
        cluster.ticks(claim() | OTHER)
        cluster.tick(OTHER)
        assert cluster.tick(claim() | OTHER) == frozenset()
        cluster.ticks(claim() | OTHER)
        assert cluster.kafka.lists("t") == ({"0:1", "1:1"}, {"0:2", "1:2"})
        cluster.ticks({})
        assert cluster.kafka.values == {}

    def test_read_although_nobody_claims_the_topic(self, cluster):
        """What is in flight unclaimed keeps its entries; those of the ended claim still have to go from the record."""
        cluster.ticks(claim() | OTHER)
        flying = {TopicPartition("t", 1): replicas_of(1, 2)}
        cluster.ticks({}, elsewhere=flying)
        assert cluster.kafka.lists("t") == ({"1:1"}, {"1:2"})
        assert cluster.keeper.restored({"t"}, ())


class TestManyTopics:
    def test_entries_of_several_rounds_are_taken_out_together(self, cluster, monkeypatch):
        """Some partition of a large run arrives in each round; each change of a list is two requests and two writes."""
        monkeypatch.setattr(throttle_keeper, "_SHRINK_SECONDS_PER_TOPIC", 2.5)
        cluster.ticks(claim() | OTHER, count=3)
        cluster.tick(OTHER)
        assert cluster.kafka.lists("t") == ({"0:1", "1:1"}, {"0:2", "1:2"})
        cluster.ticks(OTHER, count=3)
        assert cluster.kafka.lists("t") == ({"1:1"}, {"1:2"})

    def test_the_last_are_taken_out_at_once(self, cluster, monkeypatch):
        """Nothing is listed any more, so nothing more comes with it."""
        monkeypatch.setattr(throttle_keeper, "_SHRINK_SECONDS_PER_TOPIC", 2.5)
        cluster.ticks(claim())
        cluster.ticks({}, count=2)
        assert cluster.keeper.ledger_empty


class TestEntriesOfOthers:
    """Where there was no list before, it is deleted as a whole, unless others have entries in it by then."""

    BOTH: ClassVar = {"a": Claim(Rates(50, 40), frozenset(ALIVE), {t: sides({"0:1"}, {"0:2"})["t"] for t in "tu"})}
    THEIRS: ClassVar = {(topic, name): "7:7" for topic in "tu" for name in LIST_NAMES}

    @pytest.fixture
    def calls(self, cluster, monkeypatch):
        """The topics of each call about lists from now on, with the name of the call."""
        found = []

        def noted(name):
            call = getattr(cluster.kafka, name)

            async def noting(topics, *names):
                answers = await call(topics, *names)
                found.append((name, *sorted(topics)))
                self.after_call(cluster, found)
                return answers

            return noting

        cluster.ticks(self.BOTH)
        for name in ("topic_configs", "alter_topic_configs"):
            monkeypatch.setattr(cluster.kafka, name, noted(name))
        return found

    after_call = staticmethod(lambda _cluster, _calls: None)

    def others_append(self, cluster, topics):
        for topic, name in ((topic, name) for topic in topics for name in LIST_NAMES):
            before = cluster.kafka.values.get((topic, name))
            cluster.kafka.values[topic, name] = f"{before},7:7" if before else "7:7"

    def test_added_while_the_request_before_is_answered(self, cluster, calls, monkeypatch):
        """Of many topics, later requests are chosen from a reading of their own."""
        monkeypatch.setattr(list_budget, "REQUEST_CHANGES", 1)
        theirs = {}

        def append_to_the_other(cluster, calls):
            if not theirs and calls[-1][0] == "alter_topic_configs":
                (other,) = {"t", "u"} - {calls[-1][1]}
                self.others_append(cluster, [other])
                theirs.update({key: value for key, value in self.THEIRS.items() if key[0] == other})

        monkeypatch.setattr(self, "after_call", append_to_the_other)
        cluster.tick({})
        assert theirs
        assert cluster.kafka.values == theirs
        assert [name for name, *_ in calls] == ["topic_configs", "alter_topic_configs"] * 2
        calls.clear()
        cluster.tick({})
        assert calls == [("topic_configs", "t", "u")]
        assert cluster.kafka.values == theirs
        assert cluster.keeper.ledger_empty

    def test_added_while_the_reading_is_answered(self, cluster, calls, monkeypatch):
        """One that took longer than a second is repeated."""

        def append_to_both(cluster, calls):
            if len(calls) == 1:
                self.others_append(cluster, ["t", "u"])
                cluster.now += 5

        monkeypatch.setattr(self, "after_call", append_to_both)
        cluster.tick({})
        assert cluster.kafka.values == self.THEIRS

    def test_a_later_request_that_fails(self, cluster, calls, monkeypatch):
        """What the requests before it have restored is not deleted again."""
        monkeypatch.setattr(list_budget, "REQUEST_CHANGES", 1)

        def fail_the_second(_cluster, calls):
            if len(calls) == 3:
                raise Transient("KafkaUnreachable", "_TIMED_OUT")

        monkeypatch.setattr(self, "after_call", fail_the_second)
        with pytest.raises(Transient):
            cluster.tick({})
        (first,), (second,) = (topics for _, *topics in calls[1:])
        assert {first, second} == {"t", "u"}
        calls.clear()
        cluster.tick({})
        assert calls == [("topic_configs", "t", "u"), ("alter_topic_configs", second)]
        assert cluster.kafka.values == {}

    def test_one_request(self, cluster, calls):
        """It is sent right after the reading, which is not repeated."""
        cluster.tick({})
        assert calls == [("topic_configs", "t", "u"), ("alter_topic_configs", "t", "u")]
        assert cluster.kafka.values == {}
