"""The health gate: each check, their order, and which partitions and brokers are exempt."""

import pytest

from kafka_rebalance.execution.health_gate import Change, Tolerance, Vitals, gate, is_unhealthy, unhealthy
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of

LIVE = frozenset(replicas_of(1, 2, 3, 4, 5))
STRICT = Tolerance()


def brokers(*ids):
    return frozenset(replicas_of(*ids))


def state(*ids, isr=None, leader=0, adding=(), name="t-0"):
    """``leader=0``: the first in-sync replica leads."""
    topic, number = name.rsplit("-", 1)
    in_sync = brokers(*(ids if isr is None else isr))
    first = next((b for b in ids if b in in_sync), None)
    return PartitionState(
        TopicPartition(topic, int(number)),
        "",
        replicas_of(*ids),
        in_sync,
        first if leader == 0 else leader,
        replicas_of(*adding),
    )


def vitals(*states, min_insync=None, changed=None, live=LIVE):
    return Vitals({s.tp: s for s in states}, min_insync or {}, changed, live)


def check_of(*states, ours=(), tolerance=STRICT, **read):
    closed = gate(vitals(*states, **read), {TopicPartition(*o) for o in ours}, tolerance)
    return closed and closed.check


def message_of(*states, tolerance=STRICT, **read):
    closed = gate(vitals(*states, **read), (), tolerance)
    assert closed is not None
    return closed.message


class TestOpen:
    def test_a_healthy_cluster(self):
        """Everything is in sync and no broker joined or left: a step may start."""
        assert check_of(state(1, 2, 3), state(2, 3, name="t-1"), min_insync={"t": 2}) is None

    def test_an_empty_cluster(self):
        """Without partitions the gate is open."""
        assert check_of() is None


class TestBelowMinIsr:
    def test_fewer_in_sync_than_the_topic_demands(self):
        """One of three replicas in sync, two required."""
        assert check_of(state(1, 2, 3, isr=[1]), min_insync={"t": 2}) == "BelowMinIsr"

    def test_as_many_as_demanded_is_not_below(self):
        """Two of three replicas in sync, two required: only under-replicated."""
        assert check_of(state(1, 2, 3, isr=[1, 2]), min_insync={"t": 2}) == "UnderReplicated"

    def test_a_topic_that_is_not_named_demands_one(self):
        """Kafka's default of min.insync.replicas."""
        assert check_of(state(1, 2, 3, isr=[1])) == "UnderReplicated"

    @pytest.mark.parametrize("isr", [(), (1,)])
    def test_without_a_leader_it_is_below_whatever_the_isr_says(self, isr):
        """A single replica on a dead broker stays in the ISR without KIP-966."""
        assert check_of(state(1, isr=isr, leader=None), tolerance=Tolerance(max_unhealthy=9)) == "BelowMinIsr"

    def test_never_more_is_demanded_than_there_are_replicas(self):
        """One replica with min.insync.replicas=2 had this problem before the rebalance."""
        assert check_of(state(1), min_insync={"t": 2}) is None

    def test_a_copy_being_added_is_not_one_of_the_replicas_that_may_be_demanded(self):
        """One replica, another being added, two required: the topic has one replica until the copy is in sync."""
        assert check_of(state(1, 2, isr=[1], adding=[2]), min_insync={"t": 2}) is None

    def test_a_copy_that_has_arrived_is_in_sync_and_still_raises_no_demand(self):
        """One of two replicas plus the new copy makes two in sync: enough for two, or for all there are."""
        seen = state(1, 2, 3, isr=[1, 3], adding=[3])
        assert check_of(seen, min_insync={"t": 2}) == "UnderReplicated"
        assert check_of(seen, min_insync={"t": 3}, tolerance=Tolerance(max_unhealthy=1)) is None

    def test_max_unhealthy_does_not_cover_it(self):
        """The user tolerates lagging partitions, not partitions that reject writes."""
        found = check_of(state(1, 2, isr=[1]), min_insync={"t": 2}, tolerance=Tolerance(max_unhealthy=9))
        assert found == "BelowMinIsr"

    def test_ours_do_not_count(self):
        """Our steps respect min.insync.replicas themselves."""
        assert check_of(state(1, 2, isr=[1]), min_insync={"t": 2}, ours=[("t", 0)]) is None


class TestUnderReplicated:
    LAGGING = (state(1, 2, isr=[1]), state(1, 2, isr=[1], name="t-1"))

    @pytest.mark.parametrize(("tolerated", "found"), [(0, "UnderReplicated"), (1, "UnderReplicated"), (2, None)])
    def test_more_than_max_unhealthy_close(self, tolerated, found):
        """A count equal to the limit is tolerated."""
        assert check_of(*self.LAGGING, tolerance=Tolerance(max_unhealthy=tolerated)) == found

    def test_ours_do_not_count(self):
        """Partitions that we move may lack the replica being moved."""
        assert check_of(*self.LAGGING, ours=[("t", 0), ("t", 1)]) is None
        assert check_of(*self.LAGGING, ours=[("t", 0)]) == "UnderReplicated"

    def test_replicas_that_somebody_is_adding_do_not_count(self):
        """A foreign reassignment in progress is not a fault of the cluster, but a lagging old replica is."""
        assert check_of(state(1, 2, 3, isr=[1, 2], adding=[3])) is None
        assert check_of(state(1, 2, 3, isr=[1, 3], adding=[3])) == "UnderReplicated"


class TestGivenUp:
    """Brokers that the spec decommissions: a dead broker must not block its own decommission."""

    GONE = Tolerance(given_up=brokers(3))

    def test_replicas_missing_only_there_do_not_count(self):
        """The partition will not get these replicas back."""
        assert check_of(state(1, 2, 3, isr=[1, 2]), tolerance=self.GONE) is None

    def test_replicas_missing_elsewhere_count(self):
        """The other broker has its own problem."""
        assert check_of(state(1, 2, 3, isr=[1]), tolerance=self.GONE) == "UnderReplicated"

    def test_they_are_not_demanded_for_min_isr_either(self):
        """One of two replicas is on the dead broker: waiting cannot satisfy min.insync.replicas=2 again."""
        assert check_of(state(1, 3, isr=[1]), min_insync={"t": 2}, tolerance=self.GONE) is None

    def test_one_that_is_in_sync_counts_as_a_replica(self):
        """It serves until it is drained: without 1, one of two replicas is left."""
        assert check_of(state(1, 3, isr=[3]), min_insync={"t": 2}, tolerance=self.GONE) == "BelowMinIsr"

    def test_a_partition_that_lived_nowhere_else_is_lost_already(self):
        """Offline for as long as the broker is away, possibly for ever."""
        assert check_of(state(3, isr=[3], leader=None), tolerance=self.GONE) is None
        assert check_of(state(3, 1, isr=[3], leader=None), tolerance=self.GONE) == "BelowMinIsr"

    def test_that_they_left_is_no_change(self):
        """A return of one of them is a change."""
        assert check_of(changed=Change(1.0, left=brokers(3)), tolerance=self.GONE) is None
        assert check_of(changed=Change(1.0, left=brokers(3, 4)), tolerance=self.GONE) == "MembershipChanged"
        assert check_of(changed=Change(1.0, joined=brokers(3)), tolerance=self.GONE) == "MembershipChanged"


class TestMembership:
    @pytest.mark.parametrize("change", [{"joined": brokers(5)}, {"left": brokers(5)}])
    def test_closes_until_it_has_settled(self, change):
        """Steps start again as soon as the settle time has passed."""
        assert check_of(changed=Change(59.9, **change)) == "MembershipChanged"
        assert check_of(changed=Change(60.0, **change)) is None
        assert check_of(changed=Change(20.0, **change), tolerance=Tolerance(settle_seconds=20.0)) is None

    def test_the_message_does_not_change_while_it_waits(self):
        """Otherwise the status would be written on every tick."""
        first = message_of(changed=Change(1.0, left=brokers(5)))
        assert first == message_of(changed=Change(2.0, left=brokers(5)))


class TestChain:
    def test_the_gravest_is_shown(self):
        """In the order of the chain; the next one is shown when the first is resolved."""
        below, lagging = state(1, 2, isr=[1]), state(1, 2, isr=[1], name="u-0")
        changed = Change(1.0, left=brokers(2))
        demand = {"t": 2}
        assert check_of(below, lagging, min_insync=demand, changed=changed) == "BelowMinIsr"
        assert check_of(lagging, changed=changed) == "UnderReplicated"
        assert check_of(changed=changed) == "MembershipChanged"


class TestMessages:
    def test_partitions_are_counted_and_three_named(self):
        """Sorted, so that the same problem gives the same text."""
        lagging = [state(1, 2, isr=[1], name=f"t-{n}") for n in (10, 3, 2, 1, 7)]
        assert "5 partitions are under-replicated: t-1, t-2, t-3 and 2 more" in message_of(*lagging)
        assert "1 partition is under-replicated: t-1, lacking" in message_of(lagging[3])

    def test_brokers_are_named_and_those_that_are_gone_told_from_those_that_lag(self):
        """So that the user knows which broker to look at first."""
        lagging = (state(1, 2, isr=[1]), state(1, 3, 4, isr=[1], name="t-1"))
        found = message_of(*lagging, live=brokers(1, 3, 4))
        assert "lacking broker 2 (not live), brokers 3, 4 (live, not in sync)" in found

    def test_what_is_not_counted_is_not_named(self):
        """The gate waits neither for a broker given up nor for a copy in flight."""
        seen = state(1, 2, 3, 4, isr=[1], adding=[4])
        found = message_of(seen, tolerance=Tolerance(given_up=brokers(3)))
        assert "lacking broker 2 (live" in found
        assert "3" not in found
        assert "4" not in found

    def test_only_partitions_below_min_isr_are_named_as_such(self):
        """A partition that only lags is not offline."""
        below, lagging = state(1, 2, isr=[1]), state(1, 3, isr=[1], name="u-0")
        found = message_of(below, lagging, min_insync={"t": 2})
        assert "1 partition is offline or below min.insync.replicas: t-0, lacking broker 2 " in found

    def test_who_joined_and_who_left(self):
        """With the settle time."""
        found = message_of(changed=Change(1.0, joined=brokers(5), left=brokers(3, 4)))
        assert found.startswith("broker 5 joined and brokers 3, 4 left")
        assert "60 s" in found


class TestUnhealthy:
    STATES = (
        state(1, 2, 3),
        state(1, 2, 3, isr=[1, 2], adding=[3], name="t-1"),
        state(1, 2, 3, isr=[1, 2], name="t-2"),
        state(1, leader=None, name="t-3"),
        state(1, 2, 3, isr=[1, 3], adding=[3], name="t-4"),
    )

    def test_only_what_lacks_a_replica_or_a_leader_is_left(self):
        """The gate ignores complete partitions and those that only lack a new copy."""
        left = unhealthy({s.tp: s for s in self.STATES})
        assert [tp.partition for tp in left] == [2, 3, 4]
        assert [is_unhealthy(s) for s in self.STATES] == [False, False, True, True, True]

    @pytest.mark.parametrize("tolerated", range(4))
    def test_the_gate_says_the_same_of_what_is_left(self, tolerated):
        """So it can be computed once per reading and shared by the gates of all rebalances."""
        everything = vitals(*self.STATES[:3], self.STATES[4], min_insync={"t": 2})
        reduced = Vitals(unhealthy(everything.partitions), everything.min_insync, None, LIVE)
        tolerance = Tolerance(max_unhealthy=tolerated)
        assert gate(everything, (), tolerance) == gate(reduced, (), tolerance)
        assert (gate(reduced, (), tolerance) is None) == (tolerated >= 2)


def test_a_tolerance_by_default_is_none():
    """The defaults of spec.execution: no foreign partition, one minute."""
    assert (STRICT.max_unhealthy, STRICT.settle_seconds, STRICT.given_up) == (0, 60.0, frozenset[BrokerId]())
