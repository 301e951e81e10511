"""The keeper of one cluster's throttle, other people's hands on the same configs, and brokers that do not answer."""

import asyncio

import pytest
from tests.unit.configs_in_memory import Configs, Records

from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.ledger import ledger_from_json
from kafka_rebalance.execution.throttle import (
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    Claim,
    Mode,
    Rates,
)
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.reconcile.throttling import ThrottleKeeper

ONE, TWO = BrokerId(1), BrokerId(2)
ALIVE = (ONE, TWO)


def claim(leader=50, follower=40, asked=True):
    sends, receives = {"t": frozenset({"0:1"})}, {"t": frozenset({"0:2"})}
    return {"a": Claim(Rates(leader, follower), frozenset(ALIVE), sends, receives, asked=asked)}


class Cluster:
    """Kafka, the stored ledger, and the keeper of one process after the other; a tick takes two seconds."""

    def __init__(self, before=None, files=None):
        self.kafka = Configs(before, files)
        self.records = Records()
        self.now = 0.0
        self.restart()

    def restart(self):
        self.keeper = ThrottleKeeper("cluster", self.kafka, self.records, lambda: self.now)

    def tick(self, claims, *, mode=Mode.ADDITIVE, elsewhere=None):
        async def once():
            await self.keeper.load()
            uncovered = await self.keeper.extend(claims, ALIVE, mode, (), elsewhere)
            await self.keeper.shrink(ALIVE, elsewhere)
            return uncovered

        self.now += 2
        return asyncio.run(once())

    def ticks(self, claims, count=4, **more):
        for _ in range(count):
            uncovered = self.tick(claims, **more)
        return uncovered


@pytest.fixture
def cluster():
    return Cluster()


class TestInPlace:
    def test_rates_and_entries_before_anything_is_submitted(self, cluster):
        """One call later nothing is uncovered, and the ledger covers all of it."""
        assert cluster.tick(claim()) == frozenset()
        assert cluster.kafka.rates(ONE) == cluster.kafka.rates(TWO) == ("50", "40")
        assert cluster.kafka.lists("t") == ({"0:1"}, {"0:2"})
        assert cluster.keeper.in_place(ONE) == {LEADER_RATE: (50, "a"), FOLLOWER_RATE: (40, "a")}
        assert cluster.keeper.brokers_in_place(ALIVE) == 2

    def test_nothing_is_left_at_the_end(self, cluster):
        """No rate, no list, not even an empty one, and no ledger."""
        cluster.tick(claim())
        cluster.ticks({})
        assert cluster.kafka.values == {}
        assert cluster.keeper.settled
        assert ledger_from_json(cluster.records.kept).empty

    def test_full_speed_writes_nothing_where_replication_is_not_throttled(self, cluster):
        """And the copy may go."""
        assert cluster.tick(claim(None, None)) == frozenset()
        assert cluster.kafka.values == {}

    def test_full_speed_takes_part_in_a_replication_throttle(self):
        """KIP-542's first row: any replication can take up to that rate. Only where the rate is."""
        cluster = Cluster({(TWO, FOLLOWER_RATE): "9"})
        assert cluster.tick(claim(None, None)) == frozenset()
        assert cluster.kafka.lists("t") == (None, {"0:2"})
        assert cluster.kafka.rates(TWO) == (None, "9")
        cluster.tick({})
        assert cluster.kafka.values == {(TWO, FOLLOWER_RATE): "9"}

    @pytest.mark.parametrize(("mode", "rate"), [(Mode.ADDITIVE, "950"), (Mode.SEPARATE, "50")])
    def test_beside_a_replication_throttle(self, mode, rate):
        """Whatever its source, it is what is back at the end."""
        cluster = Cluster({(ONE, LEADER_RATE): "900"}, {(TWO, LEADER_RATE): "900"})
        cluster.tick(claim(), mode=mode)
        assert cluster.kafka.rates(ONE)[0] == cluster.kafka.rates(TWO)[0] == rate
        cluster.tick({})
        assert cluster.kafka.values == {(ONE, LEADER_RATE): "900"}

    def test_what_was_there_is_read_when_it_is_put_on_record(self):
        """Not taken from what was seen a while ago, when full speed needed no record."""
        cluster = Cluster({(TWO, FOLLOWER_RATE): "900"})
        cluster.tick(claim(None, None))
        cluster.kafka.values[TWO, FOLLOWER_RATE] = "800"
        cluster.tick(claim(None, 40))
        assert cluster.kafka.rates(TWO)[1] == "840"
        cluster.tick({})
        assert cluster.kafka.values == {(TWO, FOLLOWER_RATE): "800"}

    def test_a_rate_above_the_replication_throttle_is_refused(self):
        """Nothing is written for that broker, no copy starts there, and what was valid before stays."""
        cluster = Cluster({(TWO, FOLLOWER_RATE): "45"})
        assert cluster.tick(claim()) == frozenset()
        assert cluster.tick(claim(follower=46)) == {("t", "0:2")}
        assert cluster.kafka.rates(TWO) == ("50", "85")
        assert cluster.kafka.rates(ONE) == ("50", "46")
        assert all(word in cluster.keeper.refusals() for word in ("broker 2", "46", "45", FOLLOWER_RATE))
        assert cluster.keeper.refusals({ONE}) == ""
        cluster.tick({})
        assert cluster.kafka.values == {(TWO, FOLLOWER_RATE): "45"}

    def test_the_next_claim_binds_when_the_lowest_ends(self, cluster):
        """And the first value returns with the last."""
        low = {"b": Claim(Rates(5, 5), frozenset({ONE}))}
        cluster.tick(claim() | low)
        assert cluster.kafka.rates(ONE) == ("5", "5")
        assert cluster.keeper.in_place(ONE)[LEADER_RATE] == (5, "b")
        cluster.tick(claim())
        assert cluster.kafka.rates(ONE) == ("50", "40")

    def test_a_wildcard_stays_as_it_is(self):
        """It takes no entries, and throttles everything of the topic already."""
        cluster = Cluster({("t", LEADER_LIST): "*", ("t", FOLLOWER_LIST): "7:7"})
        assert cluster.ticks(claim()) == frozenset()
        assert cluster.kafka.lists("t") == ({"*"}, {"7:7", "0:2"})
        cluster.tick({})
        assert cluster.kafka.values == {("t", LEADER_LIST): "*", ("t", FOLLOWER_LIST): "7:7"}

    def test_what_is_in_flight_unclaimed_keeps_its_throttle(self, cluster):
        """The operator has started again and its resources come in one by one."""
        cluster.tick(claim())
        cluster.restart()
        flying = {TopicPartition("t", 0): replicas_of(1, 2)}
        cluster.ticks({}, elsewhere=flying)
        assert cluster.kafka.rates(ONE) == ("50", "40")
        assert cluster.kafka.lists("t") == ({"0:1"}, {"0:2"})
        cluster.tick({})
        assert cluster.kafka.values == {}


class TestDrift:
    def test_list_entries_that_are_taken_away_come_back(self, cluster):
        """Strimzi's topic operator deletes the list: it is put back, counted, and gone at the end."""
        cluster.tick(claim())
        del cluster.kafka.values["t", LEADER_LIST]
        cluster.ticks(claim())
        assert cluster.kafka.lists("t") == ({"0:1"}, {"0:2"})
        assert cluster.keeper.reverts == 1
        cluster.tick({})
        assert cluster.kafka.values == {}

    def test_one_reading_that_differs_proves_nothing(self, cluster):
        """Reading follows writing late."""
        cluster.tick(claim())
        taken = cluster.kafka.values.pop(("t", LEADER_LIST))
        cluster.tick(claim())
        cluster.kafka.values["t", LEADER_LIST] = taken
        cluster.ticks(claim())
        assert cluster.keeper.reverts == 0

    def test_after_repeated_reverts_it_says_who_it_may_be(self, cluster):
        """Three in ten minutes are no accident; later it is forgotten."""
        for _ in range(3):
            assert cluster.keeper.contested == ""
            cluster.ticks(claim())
            del cluster.kafka.values["t", LEADER_LIST]
            cluster.ticks(claim())
        assert "Strimzi's topic operator" in cluster.keeper.contested
        cluster.now += 700
        assert cluster.keeper.contested == ""

    def test_what_was_contested_is_forgotten_with_the_throttle(self, cluster):
        """The next one begins anew; the count goes on."""
        for _ in range(3):
            cluster.ticks(claim())
            del cluster.kafka.values["t", LEADER_LIST]
            cluster.ticks(claim())
        cluster.ticks({})
        assert (cluster.keeper.contested, cluster.keeper.reverts) == ("", 3)

    @pytest.mark.parametrize("value", [None, "60"])
    def test_a_rate_that_is_deleted_or_raised_is_put_back(self, cluster, value):
        """A copy must not run at a speed that nobody asked of us; what its owner made of it is restored in the end."""
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
        """An emergency brake: it holds, also over a restart, copies may go on below it, and it is left in the end."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        cluster.ticks(claim())
        cluster.restart()
        assert cluster.ticks(claim()) == frozenset()
        assert cluster.kafka.rates(ONE) == ("3", "40")
        assert "broker 1" in cluster.keeper.ceilings
        assert cluster.keeper.in_place(ONE)[LEADER_RATE] == (3, "set by hand")
        cluster.tick({})
        assert cluster.kafka.values == {(ONE, LEADER_RATE): "3"}

    def test_it_is_seen_although_the_operator_was_away(self, cluster):
        """What it reads first is not written over before it has been read twice."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        cluster.restart()
        cluster.ticks(claim())
        assert cluster.kafka.rates(ONE) == ("3", "40")

    def test_a_ceiling_holds_until_the_spec_changes(self, cluster):
        """Another claim that comes is no change of what was asked for."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        other = {"b": Claim(Rates(45, 45), frozenset({ONE}))}
        cluster.ticks(claim())
        cluster.ticks(claim() | other)
        assert cluster.kafka.rates(ONE)[0] == "3"
        cluster.ticks(claim(leader=51) | other)
        assert cluster.kafka.rates(ONE)[0] == "45"
        assert cluster.keeper.ceilings == ""

    def test_a_brake_that_is_let_go_is_let_go(self, cluster):
        """Deleted or raised again, ours is put back."""
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
        """What reads as before us is ours that has not arrived: no brake, no revert, written again."""
        cluster = Cluster({} if rep is None else {(ONE, LEADER_RATE): rep})
        cluster.kafka.refusing = {ONE}
        cluster.ticks(claim())
        assert "broker 1" in cluster.keeper.trouble
        if restarted:
            cluster.restart()
        cluster.now += 60
        cluster.ticks(claim())
        assert (cluster.keeper.reverts, cluster.keeper.ceilings) == (0, "")
        cluster.kafka.refusing = set()
        cluster.now += 60
        assert cluster.ticks(claim()) == frozenset()
        assert cluster.kafka.rates(ONE)[0] == ("50" if rep is None else "950")
        assert cluster.keeper.trouble == ""

    def test_our_own_earlier_rate_is_no_brake(self, cluster):
        """A patch from 20 to 50 of which the answer was lost: what reads 20 is ours."""
        cluster.ticks(claim(leader=20))
        cluster.kafka.refusing = {ONE}
        cluster.ticks(claim(leader=50))
        cluster.kafka.refusing = set()
        cluster.restart()
        cluster.now += 60
        cluster.ticks(claim(leader=50))
        assert cluster.kafka.rates(ONE)[0] == "50"
        assert (cluster.keeper.reverts, cluster.keeper.ceilings) == (0, "")

    def test_a_list_is_put_back_although_its_partitions_come_and_go(self, cluster):
        """An entry is confirmed by itself: what else is listed or finished meanwhile changes nothing."""

        def moving(number):
            entries = frozenset({"0:1", f"{number}:1"})
            return {"a": Claim(Rates(50, 40), frozenset(ALIVE), {"t": entries}, {})}

        cluster.tick(moving(1))
        del cluster.kafka.values["t", LEADER_LIST]
        for number in range(2, 6):
            cluster.tick(moving(number))
        assert "0:1" in cluster.kafka.lists("t")[0]
        assert cluster.keeper.reverts == 1

    def test_a_restored_rate_is_on_record_until_it_reads_so(self, cluster):
        """Read late, our own rate would be learnt as the one to restore, and stay for ever."""
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
        """Set, and at once over: the reading is still that of before."""
        cluster.kafka.late = {(ONE, LEADER_RATE): None, ("t", LEADER_LIST): None}
        cluster.tick(claim())
        cluster.tick({})
        cluster.kafka.late = {}
        cluster.ticks({})
        assert cluster.kafka.values == {}
        assert cluster.keeper.settled

    def test_what_a_person_set_is_kept_by_the_next_process_too(self, cluster):
        """The end comes before the first read-back."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        cluster.restart()
        cluster.ticks({})
        assert cluster.kafka.values == {(ONE, LEADER_RATE): "3"}

    def test_a_brake_outlives_claims_that_come_and_go(self, cluster):
        """A lower claim passes by; the claimant of that time finishes while another goes on."""
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
        """It is put back too; and when its owner raises the replication throttle as he was told, ours goes on top."""
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
        """The rebalance with the lower rate has not come in yet after a start."""
        cluster.ticks(claim(leader=5, follower=5))
        cluster.restart()
        flying = {TopicPartition("t", 0): replicas_of(1, 2)}
        other = {"b": Claim(Rates(500, 500), frozenset(ALIVE))}
        cluster.ticks(other, elsewhere=flying)
        assert cluster.kafka.rates(ONE) == ("5", "5")
        cluster.ticks(other)
        assert cluster.kafka.rates(ONE) == ("500", "500")

    def test_a_wildcard_that_somebody_sets_meanwhile(self, cluster):
        """It takes no entries and covers all of them; later copies of the topic go on."""
        cluster.tick(claim())
        cluster.kafka.values["t", LEADER_LIST] = "*"
        cluster.ticks(claim())
        more = {"a": Claim(Rates(50, 40), frozenset(ALIVE), {"t": frozenset({"0:1", "5:1"})}, {})}
        assert cluster.ticks(more) == frozenset()
        cluster.ticks({})
        assert cluster.kafka.values == {("t", LEADER_LIST): "*"}

    def test_somebody_who_changes_it_just_before_the_end_keeps_what_he_set(self, cluster):
        """Read before it is restored."""
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "3"
        cluster.tick({})
        assert cluster.kafka.values == {(ONE, LEADER_RATE): "3"}

    def test_a_list_that_its_owner_deletes_stays_deleted(self):
        """Entries that were there before us went with it: they are not made up again, nor is an empty list left."""
        cluster = Cluster({("t", LEADER_LIST): "7:7"})
        cluster.tick(claim())
        del cluster.kafka.values["t", LEADER_LIST]
        cluster.ticks(claim())
        assert cluster.kafka.lists("t")[0] == {"0:1"}
        cluster.tick({})
        assert cluster.kafka.values == {}

    def test_a_wildcard_that_its_owner_takes_away(self):
        """Our entries are listed then, and what he has put in its place is what stays."""
        cluster = Cluster({("t", LEADER_LIST): "*"})
        cluster.tick(claim())
        cluster.kafka.values["t", LEADER_LIST] = "7:7"
        cluster.ticks(claim())
        assert cluster.kafka.lists("t")[0] == {"7:7", "0:1"}
        cluster.tick({})
        assert cluster.kafka.values == {("t", LEADER_LIST): "7:7"}


class TestSilentBrokers:
    def test_one_that_does_not_answer_delays_no_other(self, cluster):
        """Copies from or to it wait for its rate; the other has its own, and it is settled on return."""
        cluster.kafka.silent = {TWO}
        assert cluster.tick(claim()) == {("t", "0:2")}
        assert cluster.kafka.rates(ONE) == ("50", "40")
        assert "broker 2" in cluster.keeper.trouble
        cluster.kafka.silent = set()
        cluster.now += 60
        assert cluster.tick(claim()) == frozenset()
        assert cluster.kafka.rates(TWO) == ("50", "40")

    def test_it_is_asked_ever_more_seldom(self, cluster):
        """The pause doubles, and never exceeds a minute."""
        cluster.kafka.silent = {TWO}
        for _ in range(300):
            cluster.tick(claim())
        times = sum(TWO in brokers for brokers in cluster.kafka.asked)
        assert 600 / 60 <= times <= 20

    def test_at_the_end_nothing_waits_for_it(self, cluster):
        """The others are restored; it stays on record and is settled on its return."""
        cluster.ticks(claim())
        cluster.kafka.silent = {TWO}
        cluster.tick({})
        assert cluster.kafka.rates(ONE) == (None, None)
        assert cluster.kafka.lists("t") == (None, None)
        assert not cluster.keeper.settled
        assert not cluster.keeper.restored((), [TWO])
        cluster.restart()
        cluster.kafka.silent = set()
        cluster.ticks({})
        assert cluster.kafka.values == {}
        assert cluster.keeper.settled


class TestLedger:
    def establish(self, cluster, *, under_way=True):
        async def once():
            await cluster.keeper.load()
            await cluster.keeper.establish(ALIVE, ["t"], under_way=under_way)

        asyncio.run(once())

    def test_it_is_there_before_the_first_run(self, cluster):
        """Empty; from then on a missing one was deleted by somebody."""
        self.establish(cluster, under_way=False)
        assert ledger_from_json(cluster.records.kept).empty

    @pytest.mark.parametrize("mine", [{(ONE, LEADER_RATE): "50"}, {("t", FOLLOWER_LIST): "0:2"}])
    def test_deleted_under_way_nothing_is_guessed(self, mine):
        """What is set may be ours: it is named, and with it gone a new ledger begins."""
        cluster = Cluster(mine)
        with pytest.raises(Permanent, match=r"(leader|follower)\.replication") as refused:
            self.establish(cluster)
        assert refused.value.reason == "ThrottleLedgerMissing"
        assert cluster.records.kept is None
        cluster.kafka.values.clear()
        self.establish(cluster)
        assert ledger_from_json(cluster.records.kept).empty

    def test_what_others_have_set_before_the_first_run_is_theirs(self):
        """No run is open: whatever is there, it is not ours."""
        cluster = Cluster({(ONE, LEADER_RATE): "50"})
        self.establish(cluster, under_way=False)
        assert cluster.records.kept is not None

    def test_a_damaged_one_is_refused(self, cluster):
        """The message names the cluster; nothing is written."""
        cluster.records.kept = {"version": 1}
        with pytest.raises(Permanent, match="cluster cluster") as refused:
            cluster.tick(claim())
        assert refused.value.reason == "ThrottleLedgerDamaged"
        assert cluster.kafka.values == {}
