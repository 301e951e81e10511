"""Changes by others to the configs of an active throttle: which are reverted, and which are respected."""

from typing import ClassVar

import pytest
from tests.fakes.throttled_cluster import ALIVE, ONE, TWO, Cluster, claim, sides

from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.reassignment_throttle import (
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    Claim,
    Rates,
)
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason


@pytest.fixture
def cluster():
    return Cluster()


class TestDrift:
    def test_list_entries_that_are_taken_away_come_back(self, cluster):
        """Strimzi's topic operator deletes the list: it is written again, counted, and removed at the end."""
        cluster.tick(claim())
        del cluster.kafka.values["t", LEADER_LIST]
        cluster.ticks(claim())
        assert cluster.kafka.lists("t") == ({"0:1"}, {"0:2"})
        assert cluster.keeper.reverts == 1
        cluster.tick({})
        assert cluster.kafka.values == {}

    def test_one_reading_that_differs_proves_nothing(self, cluster):
        """Readings may lag behind writes."""
        cluster.tick(claim())
        taken = cluster.kafka.values.pop(("t", LEADER_LIST))
        cluster.tick(claim())
        cluster.kafka.values["t", LEADER_LIST] = taken
        cluster.ticks(claim())
        assert cluster.keeper.reverts == 0

    def test_after_repeated_reverts_it_says_who_it_may_be(self, cluster):
        """Three times in ten minutes is no accident; later it is forgotten."""
        for _ in range(3):
            assert cluster.keeper.contested == ""
            cluster.ticks(claim())
            del cluster.kafka.values["t", LEADER_LIST]
            cluster.ticks(claim())
        assert "Strimzi's topic operator" in cluster.keeper.contested
        cluster.now += 700
        assert cluster.keeper.contested == ""

    def test_what_was_contested_is_forgotten_with_the_throttle(self, cluster):
        """The next throttle starts without it; the count continues."""
        for _ in range(3):
            cluster.ticks(claim())
            del cluster.kafka.values["t", LEADER_LIST]
            cluster.ticks(claim())
        cluster.ticks({})
        assert (cluster.keeper.contested, cluster.keeper.reverts) == ("", 3)

    @pytest.mark.parametrize("value", [None, "60"])
    def test_a_rate_that_is_deleted_or_raised_is_put_back(self, cluster, value):
        """A copy must not run at a rate that was not requested; the value set by others is restored at the end."""
        cluster.ticks(claim())
        cluster.kafka.values.pop((ONE, LEADER_RATE))
        theirs = {} if value is None else {(ONE, LEADER_RATE): value}
        cluster.kafka.values |= theirs
        cluster.ticks(claim())
        assert cluster.kafka.rates(ONE) == ("50", "40")
        assert cluster.keeper.reverts == 1
        cluster.tick({})
        assert cluster.kafka.values == theirs

    def test_a_rate_that_is_lowered_is_a_ceiling(self, cluster):
        """An emergency brake: it survives a restart, copies may continue below it, and it stays at the end."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        cluster.ticks(claim())
        cluster.restart()
        assert cluster.ticks(claim()) == frozenset()
        assert cluster.kafka.rates(ONE) == ("3", "40")
        assert "broker 1" in cluster.keeper.brakes
        assert cluster.keeper.in_place(ONE)[LEADER_RATE] == (3, "set by hand")
        cluster.tick({})
        assert cluster.kafka.values == {(ONE, LEADER_RATE): "3"}

    def test_a_brake_survives_a_ledger_that_cannot_be_saved(self, cluster, monkeypatch):
        """It counts once it is stored; otherwise our rate would overwrite it."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        cluster.tick(claim())

        async def fail(*_):
            raise Transient(Reason.API_SERVER_UNREACHABLE, "no answer")

        with monkeypatch.context() as patched:
            patched.setattr(cluster.records, "save", fail)
            with pytest.raises(Transient):
                cluster.tick(claim())
        cluster.ticks(claim())
        assert cluster.kafka.rates(ONE)[0] == "3"
        assert "broker 1" in cluster.keeper.brakes

    def test_it_is_seen_although_the_operator_was_away(self, cluster):
        """The first reading is not overwritten before the value has been read twice."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        cluster.restart()
        cluster.ticks(claim())
        assert cluster.kafka.rates(ONE) == ("3", "40")

    def test_a_ceiling_holds_until_the_spec_changes(self, cluster):
        """Another new claim does not change the requested rate."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        other = {"b": Claim(Rates(45, 45), frozenset({ONE}))}
        cluster.ticks(claim())
        cluster.ticks(claim() | other)
        assert cluster.kafka.rates(ONE)[0] == "3"
        cluster.ticks(claim(leader=51) | other)
        assert cluster.kafka.rates(ONE)[0] == "45"
        assert cluster.keeper.brakes == ""

    def test_a_ceiling_ends_when_a_claim_no_longer_requests_a_rate(self, cluster):
        """From the default to a rate of its own, then to no rate: each change of the spec ends the brake of then."""
        other = {"b": Claim(Rates(60, 60), frozenset({ONE}))}
        default, explicit, unlimited = claim(asked=False) | other, claim(leader=51) | other, claim(None, None) | other
        cluster.ticks(default)
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        cluster.ticks(default)
        assert cluster.kafka.rates(ONE)[0] == "3"
        cluster.ticks(explicit)
        assert cluster.kafka.rates(ONE)[0] == "51"
        cluster.kafka.values[ONE, LEADER_RATE] = "4"
        cluster.ticks(explicit)
        assert cluster.kafka.rates(ONE)[0] == "4"
        cluster.ticks(unlimited)
        assert (cluster.kafka.rates(ONE)[0], cluster.keeper.brakes) == ("60", "")

    def test_a_brake_that_is_let_go_is_let_go(self, cluster):
        """When it is deleted or raised again, our rate is written again."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        cluster.ticks(claim())
        del cluster.kafka.values[ONE, LEADER_RATE]
        cluster.ticks(claim())
        assert cluster.kafka.rates(ONE)[0] == "50"
        cluster.tick({})
        assert cluster.kafka.values == {}

    @pytest.mark.parametrize("restarted", [False, True])
    @pytest.mark.parametrize("rep", [None, "900"])
    def test_a_write_that_was_lost_is_nobodys_deed(self, rep, restarted):
        """If the earlier value is read, our write has not arrived: no brake, no revert, written again."""
        cluster = Cluster({} if rep is None else {(ONE, LEADER_RATE): rep})
        cluster.kafka.refusing = {ONE}
        cluster.ticks(claim())
        assert "broker 1" in cluster.keeper.trouble
        if restarted:
            cluster.restart()
        cluster.now += 60
        cluster.ticks(claim())
        assert (cluster.keeper.reverts, cluster.keeper.brakes) == (0, "")
        cluster.kafka.refusing = set()
        cluster.now += 60
        assert cluster.ticks(claim()) == frozenset()
        assert cluster.kafka.rates(ONE)[0] == ("50" if rep is None else "950")
        assert cluster.keeper.trouble == ""

    def test_our_own_earlier_rate_is_no_brake(self, cluster):
        """A patch from 20 to 50 whose answer was lost: a reading of 20 is our own rate."""
        cluster.ticks(claim(leader=20))
        cluster.kafka.refusing = {ONE}
        cluster.ticks(claim(leader=50))
        cluster.kafka.refusing = set()
        cluster.restart()
        cluster.now += 60
        cluster.ticks(claim(leader=50))
        assert cluster.kafka.rates(ONE)[0] == "50"
        assert (cluster.keeper.reverts, cluster.keeper.brakes) == (0, "")

    def test_a_list_is_put_back_although_its_partitions_come_and_go(self, cluster):
        """Each entry is confirmed separately, even if others are listed or finished meanwhile."""

        def moving(number):
            return {"a": Claim(Rates(50, 40), frozenset(ALIVE), sides({"0:1", f"{number}:1"}))}

        cluster.tick(moving(1))
        del cluster.kafka.values["t", LEADER_LIST]
        for number in range(2, 6):
            cluster.tick(moving(number))
        assert "0:1" in cluster.kafka.lists("t")[0]
        assert cluster.keeper.reverts == 1

    def test_a_restored_rate_is_on_record_until_it_reads_so(self, cluster):
        """With a stale reading, our own rate would be recorded as the one to restore, and stay for ever."""
        cluster.ticks(claim())
        cluster.tick({})
        cluster.kafka.late = {(ONE, LEADER_RATE): "50"}
        cluster.tick(claim())
        cluster.kafka.late = {}
        cluster.ticks(claim())
        assert cluster.kafka.rates(ONE)[0] == "50"
        cluster.ticks({})
        assert cluster.kafka.values == {}

    def test_what_is_deleted_before_it_reads_as_set_is_still_undone(self, cluster):
        """Set and finished at once: the reading still shows the earlier value."""
        cluster.kafka.late = {(ONE, LEADER_RATE): None, ("t", LEADER_LIST): None}
        cluster.tick(claim())
        cluster.tick({})
        cluster.kafka.late = {}
        cluster.ticks({})
        assert cluster.kafka.values == {}
        assert cluster.keeper.ledger_empty

    def test_what_a_person_set_is_kept_by_the_next_process_too(self, cluster):
        """The end comes before the first read-back."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        cluster.restart()
        cluster.ticks({})
        assert cluster.kafka.values == {(ONE, LEADER_RATE): "3"}

    def test_a_brake_outlives_claims_that_come_and_go(self, cluster):
        """A lower claim comes and goes; the original claim ends while another continues."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        cluster.ticks(claim())
        lower = {"b": Claim(Rates(2, 2), frozenset({ONE}))}
        cluster.ticks(claim() | lower)
        assert cluster.kafka.rates(ONE)[0] == "2"
        cluster.ticks(claim())
        assert cluster.kafka.rates(ONE)[0] == "3"
        cluster.ticks({"c": Claim(Rates(60, 60), frozenset({ONE}))})
        assert cluster.kafka.rates(ONE)[0] == "3"

    def test_a_refused_rate_leaves_the_last_one_in_force(self):
        """It is restored, too; when the owner raises the replication throttle as advised, our rate is added to it."""
        cluster = Cluster({(TWO, FOLLOWER_RATE): "45"})
        cluster.ticks(claim())
        cluster.ticks(claim(follower=46))
        assert cluster.keeper.refusals()
        cluster.kafka.values[TWO, FOLLOWER_RATE] = "1000"
        cluster.ticks(claim(follower=46))
        assert cluster.keeper.refusals() == ""
        assert cluster.kafka.rates(TWO)[1] == "1046"
        cluster.ticks({})
        assert cluster.kafka.values == {(TWO, FOLLOWER_RATE): "1000"}

    def test_no_rate_is_raised_under_copies_that_nobody_claims(self, cluster):
        """The rebalance with the lower rate has not arrived yet after a restart."""
        cluster.ticks(claim(leader=5, follower=5))
        cluster.restart()
        flying = {TopicPartition("t", 0): replicas_of(1, 2)}
        other = {"b": Claim(Rates(500, 500), frozenset(ALIVE))}
        cluster.ticks(other, elsewhere=flying)
        assert cluster.kafka.rates(ONE) == ("5", "5")
        cluster.ticks(other)
        assert cluster.kafka.rates(ONE) == ("500", "500")

    def test_a_wildcard_that_somebody_sets_meanwhile(self, cluster):
        """It needs no entries and covers all of them; later copies of the topic start."""
        cluster.tick(claim())
        cluster.kafka.values["t", LEADER_LIST] = "*"
        cluster.ticks(claim())
        more = {"a": Claim(Rates(50, 40), frozenset(ALIVE), sides({"0:1", "5:1"}))}
        assert cluster.ticks(more) == frozenset()
        cluster.ticks({})
        assert cluster.kafka.values == {("t", LEADER_LIST): "*"}

    def test_somebody_who_changes_it_just_before_the_end_keeps_what_he_set(self, cluster):
        """The value is read before it is restored."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        cluster.tick({})
        assert cluster.kafka.values == {(ONE, LEADER_RATE): "3"}

    def test_a_list_that_its_owner_deletes_stays_deleted(self):
        """Entries from before us went with it: they are not recreated, and no empty list is left."""
        cluster = Cluster({("t", LEADER_LIST): "7:7"})
        cluster.tick(claim())
        del cluster.kafka.values["t", LEADER_LIST]
        cluster.ticks(claim())
        assert cluster.kafka.lists("t")[0] == {"0:1"}
        cluster.tick({})
        assert cluster.kafka.values == {}

    def test_a_wildcard_that_its_owner_takes_away(self):
        """Then our entries are listed, and the new list of the owner stays."""
        cluster = Cluster({("t", LEADER_LIST): "*"})
        cluster.tick(claim())
        cluster.kafka.values["t", LEADER_LIST] = "7:7"
        cluster.ticks(claim())
        assert cluster.kafka.lists("t")[0] == {"7:7", "0:1"}
        cluster.tick({})
        assert cluster.kafka.values == {("t", LEADER_LIST): "7:7"}


class TestWhileRatesAreRestored:
    """Kafka has no change that depends on the value before it, so a rate is restored by a recent reading."""

    THEIRS: ClassVar = {(TWO, LEADER_RATE): "777"}

    @pytest.fixture
    def others_act(self, cluster, monkeypatch):
        """Others set a rate after its broker has answered the next reading; another one delays the answers of both."""
        read = cluster.kafka.broker_configs

        def during_the_next_reading():
            asked = []

            async def slow(brokers, names):
                answers = await read(brokers, names)
                asked.append(sorted(brokers))
                if len(asked) == 1:
                    cluster.kafka.values |= self.THEIRS
                    cluster.now += 9
                return answers

            monkeypatch.setattr(cluster.kafka, "broker_configs", slow)
            return asked

        cluster.ticks(claim())
        return during_the_next_reading

    def test_what_the_brokers_answer_together_may_be_old(self, cluster, others_act):
        """Those that are restored are read again if one has delayed the answers."""
        asked = others_act()
        cluster.tick({})
        assert asked == [[ONE, TWO]] * 2
        cluster.ticks({})
        assert cluster.kafka.values == self.THEIRS
        assert cluster.keeper.ledger_empty

    def test_where_all_rates_read_as_before(self, cluster, others_act):
        """Nothing is written, so a slow reading is not repeated."""
        cluster.tick({})
        asked = others_act()
        cluster.tick({})
        assert asked == [[ONE, TWO]]
        assert cluster.kafka.values == self.THEIRS
        assert cluster.keeper.ledger_empty
