"""KIP-542 on stock brokers: the rate and list entries on each broker that result from all claims."""

import pytest

from kafka_rebalance.execution.reassignment_throttle import (
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    REPLICATION_THROTTLE,
    Claim,
    Mode,
    Rates,
    Refusal,
    RequestedRate,
    Target,
    brokers_to_throttle,
    combine,
    entries_of,
    moving_brokers,
    needs_relief,
    rate_in,
    refusals_told,
    target_of,
    united,
)
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of

ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)
ADDITIVE, SEPARATE, LOWEST = Mode


def items(*names):
    return frozenset(names)


def claim(leader=None, follower=None, brokers=(), sends=None, receives=None, **more):
    sides = ((LEADER_LIST, sends or {}), (FOLLOWER_LIST, receives or {}))
    entries = united({t: {name: frozenset(e)}} for name, by_topic in sides for t, e in by_topic.items())
    return Claim(Rates(leader, follower), frozenset(brokers), entries, **more)


def state(*ids, isr=None, adding=(), removing=()):
    replicas = replicas_of(*ids)
    in_sync = frozenset(replicas if isr is None else isr)
    return PartitionState(
        TopicPartition("t", 0), "", replicas, in_sync, replicas[0], replicas_of(*adding), replicas_of(*removing)
    )


class TestTable:
    """The four rows of KIP-542: ``replication.throttled.rate`` and our rate, each set or unset."""

    @pytest.mark.parametrize("mode", Mode)
    def test_only_replication_has_a_rate(self, mode):
        """Reassigning replicas join its lists and share its rate; no rate is written."""
        assert target_of(200, {}, mode) == Target(None, listed=True)

    @pytest.mark.parametrize("mode", Mode)
    def test_only_reassignment_has_one(self, mode):
        """The rate applies to listed replicas, and only reassigning replicas are listed."""
        assert target_of(None, {"a": RequestedRate(50)}, mode) == Target(50, listed=True, claim="a")

    @pytest.mark.parametrize("mode", Mode)
    def test_neither_has(self, mode):
        """Nothing is listed and nothing written."""
        assert target_of(None, {}, mode) == Target()

    @pytest.mark.parametrize(("mode", "rate"), [(ADDITIVE, 250), (SEPARATE, 50), (LOWEST, 50)])
    def test_both_have(self, mode, rate):
        """The sum, which a stock broker cannot split; or the lower of the two."""
        assert target_of(200, {"a": RequestedRate(50)}, mode) == Target(rate, listed=True, claim="a")

    @pytest.mark.parametrize("mode", [ADDITIVE, SEPARATE])
    def test_above_the_replication_rate_is_a_configuration_error(self, mode):
        """Nothing is written; the message has both values and the claim. An equal rate is not an error."""
        found = target_of(200, {"a": RequestedRate(201)}, mode)
        assert (found.rate, found.listed) == (None, True)
        assert found.refused == Refusal(201, "a", 200)
        assert not target_of(200, {"a": RequestedRate(200)}, mode).refused

    @pytest.mark.parametrize(("mode", "rate"), [(ADDITIVE, 400), (SEPARATE, 200)])
    def test_a_default_gives_way(self, mode, rate):
        """No user asked for the default, so it is not an error."""
        found = target_of(200, {"a": RequestedRate(300, explicit=False)}, mode)
        assert found == Target(rate, listed=True, claim="the default of a")

    @pytest.mark.parametrize("explicit", [True, False])
    def test_lowest_is_the_lower_of_both_and_says_which_binds(self, explicit):
        """It is not an error that the replication throttle is lower."""
        found = target_of(200, {"a": RequestedRate(300, explicit)}, LOWEST)
        assert found == Target(200, listed=True, claim=REPLICATION_THROTTLE)
        assert target_of(200, {"a": RequestedRate(200)}, LOWEST) == Target(200, listed=True, claim="a")

    def test_refusals_are_told_once_for_all_brokers(self):
        """A leftover of Kafka's own tool is on every broker."""
        low = Refusal(50, "a", 9)
        many = {(BrokerId(b), name): low for b in range(12) for name in (LEADER_RATE, FOLLOWER_RATE)}
        both = f"{FOLLOWER_RATE}, {LEADER_RATE}"
        below = "below the 50 B/s of a"
        assert refusals_told(many | {(BrokerId(20), LEADER_RATE): Refusal(50, "a", 8)}) == [
            f"12 brokers (0, 1, 2 and 9 more) already have a replication throttle of 9 B/s ({both}), {below}",
            f"broker 20 already has a replication throttle of 8 B/s ({LEADER_RATE}), {below}",
        ]

    def test_the_lowest_claim_binds_and_is_named(self):
        """When it ends, the next lowest binds."""
        asked = {"a": RequestedRate(100), "b": RequestedRate(50), "c": RequestedRate(70)}
        assert target_of(None, asked, ADDITIVE) == Target(50, listed=True, claim="b")
        del asked["b"]
        assert target_of(None, asked, ADDITIVE) == Target(70, listed=True, claim="c")

    @pytest.mark.parametrize(("value", "rate"), [(None, None), ("", None), ("-1", None), ("0", 0), ("7", 7)])
    def test_what_counts_as_unset(self, value, rate):
        """-1 as in KIP-542; a static config may have it, but brokers refuse it as a dynamic config."""
        assert rate_in(value) == rate


class TestCombine:
    def test_each_claim_asks_on_its_own_brokers_and_sides(self):
        """Rates are per broker; where claims overlap, the minimum applies."""
        found = combine(
            {
                "a": claim(leader=100, follower=30, brokers=[ONE, TWO]),
                "b": claim(leader=50, brokers=[TWO, THREE], asked=False),
            }
        )
        assert found.brokers == {ONE, TWO, THREE}
        assert found.asked(ONE, LEADER_RATE) == {"a": RequestedRate(100)}
        assert found.asked(TWO, LEADER_RATE) == {"a": RequestedRate(100), "b": RequestedRate(50, explicit=False)}
        assert found.asked(THREE, FOLLOWER_RATE) == {}

    def test_one_broker_can_have_other_rates(self):
        """An override replaces both sides; None removes the limit on a side."""
        overrides = {TWO: Rates(500, None)}
        found = combine({"a": claim(leader=100, follower=30, brokers=[ONE, TWO], overrides=overrides)})
        assert found.asked(ONE, FOLLOWER_RATE) == {"a": RequestedRate(30)}
        assert found.asked(TWO, LEADER_RATE) == {"a": RequestedRate(500)}
        assert found.asked(TWO, FOLLOWER_RATE) == {}

    def test_entries_of_all_claims_are_listed(self):
        """A list holds everything that moves now, for every claim; also without rates, as replication may have one."""
        found = combine(
            {
                "a": claim(1, 1, sends={"t": ["0:1"]}, receives={"t": ["0:4"]}),
                "b": claim(sends={"t": ["1:1"], "u": ["0:2"]}),
            }
        )
        assert found.entries == {
            "t": {LEADER_LIST: items("0:1", "1:1"), FOLLOWER_LIST: items("0:4")},
            "u": {LEADER_LIST: items("0:2")},
        }


class TestWhoIsListed:
    def test_every_present_replica_sends_and_only_new_ones_receive(self):
        """Any replica, even an added one, may become leader between two ticks; a follower in sync is not slowed."""
        assert brokers_to_throttle(state(1, 2, 3), replicas_of(4, 2, 3)) == ({1, 2, 3, 4}, {4})

    def test_in_flight_the_answer_is_the_same(self):
        """The same replicas are listed before and after the call reaches Kafka; otherwise the lists would flap."""
        flying = state(4, 2, 3, 1, isr=(1, 2, 3), adding=(4,), removing=(1,))
        assert brokers_to_throttle(flying, flying.replicas) == ({1, 2, 3, 4}, {4})

    def test_a_reorder_or_a_drop_copies_nothing(self):
        """Without a destination there is nothing to throttle."""
        assert brokers_to_throttle(state(1, 2, 3), replicas_of(3, 1, 2))[1] == frozenset()
        assert brokers_to_throttle(state(1, 2, 3), replicas_of(1, 2))[1] == frozenset()

    def test_a_replica_that_stays_and_is_out_of_sync_needs_relief(self):
        """The leaders' side slows every out-of-sync follower of a listed partition (recorded from brokers)."""
        assert not needs_relief(state(1, 2, 3), replicas_of(1, 2, 3, 4))
        assert needs_relief(state(1, 2, 3, isr=(1, 2)), replicas_of(1, 2, 3, 4))
        flying = state(4, 1, 2, 3, isr=(1, 2, 3), adding=(4,))
        assert not needs_relief(flying, flying.replicas)
        assert needs_relief(state(4, 1, 2, 3, isr=(1, 2), adding=(4,)), flying.replicas)

    def test_one_that_goes_needs_none(self):
        """The step does not wait for it."""
        assert not needs_relief(state(1, 2, 3, isr=(1, 2)), replicas_of(1, 2, 4))
        going = state(4, 1, 2, 3, isr=(1, 2), adding=(4,), removing=(3,))
        assert not needs_relief(going, going.replicas)

    def test_entries_are_partition_and_broker(self):
        """Kafka's form, ``partition:broker``."""
        found = entries_of(TopicPartition("t", 7), frozenset({ONE, TWO}), frozenset({THREE}))
        assert found == {"t": {LEADER_LIST: items("7:1", "7:2"), FOLLOWER_LIST: items("7:3")}}

    def test_only_brokers_between_which_a_copy_is_made_take_part(self):
        """A reorder or a drop moves no data, so no broker is throttled for it."""
        one, two = replicas_of(1, 2), replicas_of(2, 3)
        assert moving_brokers((one, two), (two,)) == {1, 2, 3}
        assert moving_brokers((one, replicas_of(2, 1)), (replicas_of(2, 1),)) == frozenset()
        assert moving_brokers((one, replicas_of(1)), (replicas_of(1),)) == frozenset()

    def test_what_was_dropped_is_copied_on_the_way_back(self):
        """And by a plan that wants it again after an earlier one of the same run has dropped it."""
        one, dropped = replicas_of(1, 2), replicas_of(1)
        assert moving_brokers((one, one, dropped), (dropped, one)) == {1, 2}
        assert moving_brokers((one, dropped, one), (one,)) == {1, 2}
