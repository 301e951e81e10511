"""The keeper of one cluster's throttle: what it sets and restores, silent brokers, and its ledger."""

import asyncio
from contextlib import suppress

import pytest
from tests.fakes.throttled_cluster import ALIVE, LATE_TICKS, ONE, TWO, Cluster, claim, sides

from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.execution.ledger_json import ledger_from_json
from kafka_rebalance.execution.reassignment_throttle import (
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    REPLICATION_THROTTLE,
    Claim,
    Mode,
    Rates,
)
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.reconcile.throttle.broker_rates import UNCLAIMED


@pytest.fixture
def cluster():
    return Cluster()


class TestInPlace:
    def test_rates_and_entries_before_anything_is_submitted(self, cluster):
        """After one call nothing is uncovered, and everything is recorded in the ledger."""
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
        assert cluster.keeper.ledger_empty
        assert ledger_from_json(cluster.records.kept).empty

    @pytest.mark.parametrize("saves", [1, 2])
    def test_on_record_although_striking_them_off_got_no_answer(self, cluster, monkeypatch, saves):
        """The same claims come back, and the operator is killed: the next one must find what is set."""
        cluster.tick(claim())
        save, left = cluster.records.save, [saves]

        async def store_without_an_answer(*arguments):
            await save(*arguments)
            left[0] -= 1
            if not left[0]:
                raise Transient("ApiServerUnreachable", "no answer")

        with monkeypatch.context() as patched:
            patched.setattr(cluster.records, "save", store_without_an_answer)
            with pytest.raises(Transient):
                cluster.ticks({})
        assert cluster.tick(claim()) == frozenset()
        cluster.restart()
        cluster.ticks({})
        assert cluster.kafka.values == {}

    def test_full_speed_writes_nothing_where_replication_is_not_throttled(self, cluster):
        """The copy may start."""
        assert cluster.tick(claim(None, None)) == frozenset()
        assert cluster.kafka.values == {}

    def test_full_speed_takes_part_in_a_replication_throttle(self):
        """KIP-542's first row: any replication may use up to that rate. Only where the rate is set."""
        cluster = Cluster({(TWO, FOLLOWER_RATE): "9"})
        assert cluster.tick(claim(None, None)) == frozenset()
        assert cluster.kafka.lists("t") == (None, {"0:2"})
        assert cluster.kafka.rates(TWO) == (None, "9")
        cluster.tick({})
        assert cluster.kafka.values == {(TWO, FOLLOWER_RATE): "9"}

    @pytest.mark.parametrize(("mode", "rate"), [(Mode.ADDITIVE, "950"), (Mode.SEPARATE, "50")])
    def test_beside_a_replication_throttle(self, mode, rate):
        """It is restored at the end, with any source."""
        cluster = Cluster({(ONE, LEADER_RATE): "900"}, {(TWO, LEADER_RATE): "900"})
        cluster.tick(claim(), mode=mode)
        assert cluster.kafka.rates(ONE)[0] == cluster.kafka.rates(TWO)[0] == rate
        cluster.tick({})
        assert cluster.kafka.values == {(ONE, LEADER_RATE): "900"}

    def test_what_was_there_is_read_when_it_is_put_on_record(self):
        """Not from an earlier reading, when full speed needed no record."""
        cluster = Cluster({(TWO, FOLLOWER_RATE): "900"})
        cluster.tick(claim(None, None))
        cluster.kafka.values[TWO, FOLLOWER_RATE] = "800"
        cluster.tick(claim(None, 40))
        assert cluster.kafka.rates(TWO)[1] == "840"
        cluster.tick({})
        assert cluster.kafka.values == {(TWO, FOLLOWER_RATE): "800"}

    def test_a_rate_above_the_replication_throttle_is_refused(self):
        """Nothing is written for that broker, no copy starts there, and the earlier rate stays."""
        cluster = Cluster({(TWO, FOLLOWER_RATE): "45"})
        assert cluster.tick(claim()) == frozenset()
        assert cluster.tick(claim(follower=46)) == {("t", "0:2")}
        assert cluster.kafka.rates(TWO) == ("50", "85")
        assert cluster.kafka.rates(ONE) == ("50", "46")
        assert all(word in cluster.keeper.refusals() for word in ("broker 2", "46", "45", FOLLOWER_RATE))
        assert cluster.keeper.refusals({ONE}) == ""
        cluster.tick({})
        assert cluster.kafka.values == {(TWO, FOLLOWER_RATE): "45"}

    def test_the_lower_of_both_where_it_is_asked_for(self):
        """Nothing is refused, the replication throttle is named where it binds, and it is there at the end."""
        before = {(TWO, FOLLOWER_RATE): "30", (TWO, LEADER_RATE): "900"}
        cluster = Cluster(before)
        assert cluster.ticks(claim(), mode=Mode.LOWEST) == frozenset()
        assert cluster.kafka.rates(TWO) == ("50", "30")
        assert cluster.keeper.in_place(TWO) == {LEADER_RATE: (50, "a"), FOLLOWER_RATE: (30, REPLICATION_THROTTLE)}
        assert cluster.keeper.refusals() == ""
        cluster.tick(claim(), mode=Mode.SEPARATE)
        assert "already has a replication throttle of 30 B/s" in cluster.keeper.refusals()
        cluster.ticks({})
        assert cluster.kafka.values == before

    def test_a_rate_that_is_not_raised_names_what_holds_it_down(self, cluster):
        """Copies of a resource that was not seen yet go on at the rate that they had."""
        cluster.tick(claim())
        cluster.restart()
        cluster.ticks(
            {"b": Claim(Rates(80, 80), frozenset(ALIVE))}, elsewhere={TopicPartition("t", 0): replicas_of(1, 2)}
        )
        assert cluster.keeper.in_place(ONE) == {LEADER_RATE: (50, UNCLAIMED), FOLLOWER_RATE: (40, UNCLAIMED)}

    def test_the_next_claim_binds_when_the_lowest_ends(self, cluster):
        """The first rate returns when the last claim ends."""
        low = {"b": Claim(Rates(5, 5), frozenset({ONE}))}
        cluster.tick(claim() | low)
        assert cluster.kafka.rates(ONE) == ("5", "5")
        assert cluster.keeper.in_place(ONE)[LEADER_RATE] == (5, "b")
        cluster.tick(claim())
        assert cluster.kafka.rates(ONE) == ("50", "40")

    def test_a_wildcard_stays_as_it_is(self):
        """It needs no entries, because it already throttles the whole topic."""
        cluster = Cluster({("t", LEADER_LIST): "*", ("t", FOLLOWER_LIST): "7:7"})
        assert cluster.ticks(claim()) == frozenset()
        assert cluster.kafka.lists("t") == ({"*"}, {"7:7", "0:2"})
        cluster.tick({})
        assert cluster.kafka.values == {("t", LEADER_LIST): "*", ("t", FOLLOWER_LIST): "7:7"}

    def test_what_is_in_flight_unclaimed_keeps_its_throttle(self, cluster):
        """The operator has restarted and its resources arrive one by one."""
        cluster.tick(claim())
        cluster.restart()
        flying = {TopicPartition("t", 0): replicas_of(1, 2)}
        cluster.ticks({}, elsewhere=flying)
        assert cluster.kafka.rates(ONE) == ("50", "40")
        assert cluster.kafka.lists("t") == ({"0:1"}, {"0:2"})
        cluster.tick({})
        assert cluster.kafka.values == {}


class TestNotAllowed:
    """Brokers whose configs we may not alter, as with most providers of managed Kafka."""

    @pytest.mark.parametrize("code", ["CLUSTER_AUTHORIZATION_FAILED: no", "POLICY_VIOLATION: not here"])
    def test_it_is_told_with_the_answer(self, cluster, code):
        """Until the right is there; a broker that does not answer is something else."""
        cluster.kafka.refusing, cluster.kafka.refusal = {ONE}, code
        assert cluster.ticks(claim()) == {("t", "0:1")}
        assert cluster.keeper.not_allowed() == f"broker 1 does not allow to set a throttle rate ({code})"
        assert cluster.keeper.not_allowed({TWO}) == ""
        cluster.kafka.refusal = "_TIMED_OUT"
        cluster.ticks(claim(), count=20)
        assert cluster.keeper.not_allowed() == ""

    @pytest.mark.parametrize("failing", range(4))
    def test_nothing_is_on_record_that_somebody_else_may_set(self, cluster, monkeypatch, failing):
        """Another owner of the cluster, with other rights, would restore it: a rate of others would be lost.

        Also if one write of the ledger fails.
        """
        carry_out, save, saves = cluster.kafka._apply, cluster.records.save, []

        async def sometimes(*arguments):
            saves.append(arguments)
            if len(saves) == failing:
                raise Transient("ApiServerUnreachable", "no answer")
            await save(*arguments)

        monkeypatch.setattr(cluster.records, "save", sometimes)
        cluster.kafka.refusing, cluster.kafka.refusal = {ONE, TWO}, "CLUSTER_AUTHORIZATION_FAILED: no"
        cluster.kafka._apply = lambda w, ops: "TOPIC_AUTHORIZATION_FAILED" if w == "t" else carry_out(w, ops)
        for _ in range(4 if failing else 1):
            with suppress(Transient):
                cluster.tick(claim())
        for _ in range(10):
            assert cluster.tick(claim()) == {("t", "0:1"), ("t", "0:2")}
            recorded = ledger_from_json(cluster.records.kept)
            assert not recorded.brokers
            assert not any(recorded.listed("t", name) for name in (LEADER_LIST, FOLLOWER_LIST))
        theirs = {(ONE, LEADER_RATE): "50", (TWO, FOLLOWER_RATE): "7", ("t", LEADER_LIST): "0:1"}
        cluster.kafka.values |= theirs
        cluster.kafka.refusing, cluster.kafka._apply = set(), carry_out
        cluster.restart()
        cluster.ticks({}, count=LATE_TICKS)
        assert cluster.kafka.values == theirs
        assert cluster.keeper.ledger_empty

    def test_what_others_set_meanwhile_counts_when_the_right_is_there(self, cluster):
        """It is what was there before us."""
        cluster.kafka.refusing, cluster.kafka.refusal = {ONE, TWO}, "CLUSTER_AUTHORIZATION_FAILED: no"
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "300"
        cluster.kafka.refusing = set()
        cluster.ticks(claim(), count=LATE_TICKS)
        assert cluster.kafka.rates(ONE) == ("350", "40")
        cluster.ticks({}, count=LATE_TICKS)
        assert cluster.kafka.values == {(ONE, LEADER_RATE): "300"}

    def test_what_is_recorded_again_was_read_just_before(self, cluster, monkeypatch):
        """The pause of the brokers ends in the middle of a round, and others have set a rate during it."""
        cluster.kafka.refusing, cluster.kafka.refusal = {ONE, TWO}, "CLUSTER_AUTHORIZATION_FAILED: no"
        cluster.ticks(claim())
        cluster.kafka.values[ONE, LEADER_RATE] = "300"
        cluster.kafka.refusing, asked = set(), []

        def ends_meanwhile(brokers):
            asked.append(brokers)
            return sorted(brokers) if len(asked) > 1 else []

        with monkeypatch.context() as patched:
            patched.setattr(cluster.keeper._rates._backoff, "due", ends_meanwhile)
            cluster.tick(claim())
        assert not ledger_from_json(cluster.records.kept).brokers
        cluster.ticks(claim(), count=LATE_TICKS)
        assert cluster.kafka.rates(ONE) == ("350", "40")

    def test_at_full_speed_it_does_not_matter(self, cluster):
        """The way out: nothing has to be set, and the copy may start."""
        cluster.kafka.refusing, cluster.kafka.refusal = {ONE, TWO}, "CLUSTER_AUTHORIZATION_FAILED: no"
        cluster.ticks(claim())
        assert cluster.ticks(claim(None, None)) == frozenset()
        assert cluster.keeper.not_allowed() == ""

    def test_rates_that_may_not_even_be_read(self, cluster):
        """They cannot be set either; until the right is there."""
        cluster.kafka.forbidden = {ONE}
        assert cluster.ticks(claim()) == {("t", "0:1")}
        assert cluster.keeper.not_allowed() == (
            "broker 1 does not allow to set a throttle rate (Kafka does not allow us to describe 1)"
        )
        cluster.kafka.forbidden = set()
        assert cluster.ticks(claim(), count=20) == frozenset()
        assert cluster.keeper.not_allowed() == ""

    @pytest.mark.parametrize("denied", ["refusing", "forbidden"])
    def test_what_goes_at_full_speed_does_not_wait_for_the_rate_of_another(self, cluster, denied):
        """Only copies under a throttle need the rate. Where a claim limits everything, nothing goes at full speed."""
        setattr(cluster.kafka, denied, {ONE, TWO})
        cluster.kafka.refusal = "CLUSTER_AUTHORIZATION_FAILED: no"
        free = {"free": Claim(Rates(), frozenset(ALIVE), sides({"1:1"}, {"1:2"}))}
        assert cluster.ticks(claim() | free) == {("t", "0:1"), ("t", "0:2")}
        everything = {"all": Claim(Rates(9, 9), frozenset(ALIVE), sides({"1:1"}, {"1:2"}))}
        assert cluster.ticks(free | everything) == {("t", "1:1"), ("t", "1:2")}


class TestSilentBrokers:
    def test_one_that_does_not_answer_delays_no_other(self, cluster):
        """Copies from or to it wait for its rate; the other broker has its own; on return the rate is set."""
        cluster.kafka.silent = {TWO}
        assert cluster.tick(claim()) == {("t", "0:2")}
        assert cluster.kafka.rates(ONE) == ("50", "40")
        assert "broker 2" in cluster.keeper.trouble
        assert cluster.keeper.brokers_pending(ALIVE, ALIVE) == 1
        assert cluster.keeper.brokers_pending(ALIVE, [ONE]) == 0
        cluster.kafka.silent = set()
        cluster.now += 60
        assert cluster.tick(claim()) == frozenset()
        assert cluster.kafka.rates(TWO) == ("50", "40")
        assert cluster.keeper.brokers_pending(ALIVE, ALIVE) == 0

    def test_it_is_asked_ever_more_seldom(self, cluster):
        """The interval doubles up to one minute."""
        cluster.kafka.silent = {TWO}
        for _ in range(300):
            cluster.tick(claim())
        times = sum(TWO in brokers for brokers in cluster.kafka.asked)
        assert 600 / 60 <= times <= 20

    def test_at_the_end_nothing_waits_for_it(self, cluster):
        """The others are restored; its record stays and is restored on its return."""
        cluster.ticks(claim())
        cluster.kafka.silent = {TWO}
        cluster.tick({})
        assert cluster.kafka.rates(ONE) == (None, None)
        assert cluster.kafka.lists("t") == (None, None)
        assert not cluster.keeper.ledger_empty
        assert not cluster.keeper.restored((), [TWO])
        cluster.restart()
        cluster.kafka.silent = set()
        cluster.ticks({}, count=LATE_TICKS)
        assert cluster.kafka.values == {}
        assert cluster.keeper.ledger_empty


class TestRestored:
    def test_not_while_entries_are_left_in_a_list_that_others_use(self, cluster, monkeypatch):
        """The topic stays on record for the other claim; the entries of the ended one still have to go."""
        other = {"b": Claim(Rates(50, 40), frozenset(ALIVE), sides({"1:1"}))}
        cluster.ticks(claim() | other)

        async def silent(changes):
            return {}

        with monkeypatch.context() as patched:
            patched.setattr(cluster.kafka, "alter_topic_configs", silent)
            cluster.tick(other)
            assert not cluster.keeper.restored({"t"}, ALIVE)
        cluster.ticks(other, count=2)
        assert cluster.keeper.restored({"t"}, ALIVE)


class TestLedger:
    def establish(self, cluster, *, under_way=True):
        async def once():
            await cluster.keeper.load()
            await cluster.keeper.establish(ALIVE, ["t"], under_way=under_way)

        asyncio.run(once())

    def test_it_is_there_before_the_first_run(self, cluster):
        """Empty; if it is missing later, it was deleted."""
        self.establish(cluster, under_way=False)
        assert ledger_from_json(cluster.records.kept).empty

    def test_an_empty_one_is_stored_again_before_the_first_run(self, cluster, monkeypatch):
        """Its deletion, when nothing named the cluster any more, may have got no answer: it must fail from now on."""
        self.establish(cluster, under_way=False)
        saved, save = [], cluster.records.save

        async def saving(cluster_id, ledger):
            saved.append(ledger)
            await save(cluster_id, ledger)

        monkeypatch.setattr(cluster.records, "save", saving)
        self.establish(cluster)
        assert not saved
        cluster.restart()
        self.establish(cluster)
        self.establish(cluster)
        assert [ledger_from_json(ledger).empty for ledger in saved] == [True]

    @pytest.mark.parametrize("mine", [{(ONE, LEADER_RATE): "50"}, {("t", FOLLOWER_LIST): "0:2"}])
    def test_deleted_under_way_nothing_is_guessed(self, mine):
        """Existing configs may be ours: they are named, and once they are gone a new ledger starts."""
        cluster = Cluster(mine)
        with pytest.raises(Permanent, match=r"(leader|follower)\.replication") as refused:
            self.establish(cluster)
        assert refused.value.reason == "ThrottleLedgerMissing"
        assert cluster.records.kept is None
        cluster.kafka.values.clear()
        self.establish(cluster)
        assert ledger_from_json(cluster.records.kept).empty

    def test_what_others_have_set_before_the_first_run_is_theirs(self):
        """No run is open, so existing configs are not ours."""
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
