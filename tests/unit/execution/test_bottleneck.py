"""When and where a throttle is too low for a copy ever to finish, without false alarms."""

import pytest

from kafka_rebalance.execution.bottleneck import Copying, never_finishes
from kafka_rebalance.execution.reassignment_throttle import ClusterRates, Rates, Side
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of


def copying(number, produced, *destinations, source=1, in_flight=True):
    source = None if source is None else BrokerId(source)
    return Copying(TopicPartition("t", number), source, replicas_of(*destinations), produced, in_flight)


def throttled(leader=None, follower=None, **own):
    return ClusterRates(Rates(leader, follower), {BrokerId(int(broker[1:])): rates for broker, rates in own.items()})


class TestNeverFinishes:
    @pytest.mark.parametrize("in_flight", [True, False], ids=["in flight", "before"])
    def test_one_partition_produced_as_fast_as_its_pipe(self, in_flight):
        """The copy never catches up with its leader; reported before it starts, too."""
        found = never_finishes([copying(0, 10.0, 4, in_flight=in_flight)], throttled(follower=10), 100)
        assert (found.broker, found.side, found.rate, found.needed) == (4, Side.FOLLOWER, 10, 11)
        assert (found.tp, found.produce_rate) == (TopicPartition("t", 0), 10.0)

    def test_just_below_it_finishes(self):
        """The copy is slow, but the lag shrinks."""
        assert never_finishes([copying(0, 9.9, 4)], throttled(leader=10, follower=10), 100) is None

    @pytest.mark.parametrize("in_flight", [True, False], ids=["in flight", "before"])
    def test_the_leader_carries_every_copy(self, in_flight):
        """Two new replicas fetch everything twice: each gets half of the leader's rate."""
        rates = throttled(leader=10, follower=10)
        found = never_finishes([copying(0, 5.0, 4, 5, in_flight=in_flight)], rates, 100)
        assert (found.broker, found.side, found.needed) == (1, Side.LEADER, 11)
        assert never_finishes([copying(0, 4.9, 4, 5, in_flight=in_flight)], rates, 100) is None

    def test_copies_into_one_broker_share_its_rate(self):
        """Five copies at 2 bytes per second each and a rate of 10: a share of 2 is too little; at 11 it is enough."""
        batch = [copying(number, 2.0, 9, source=number) for number in range(5)]
        found = never_finishes(batch, throttled(follower=10), 100)
        assert (found.broker, found.side, found.needed) == (9, Side.FOLLOWER, 11)
        assert never_finishes(batch, throttled(follower=11), 100) is None

    def test_what_gets_through_leaves_its_share(self):
        """No false alarm: 1 + 9 equals the rate, but the slow one catches up and then the other gets the whole rate."""
        batch = [copying(0, 1.0, 9), copying(1, 9.0, 9)]
        assert never_finishes(batch, throttled(follower=10), 100) is None

    def test_those_that_wait_are_no_batch_yet(self):
        """No false alarm: other limits may keep these copies from running at the same time."""
        waiting = [copying(number, 2.0, 9, in_flight=False) for number in range(5)]
        assert never_finishes(waiting, throttled(follower=10), 100) is None

    @pytest.mark.parametrize(
        ("limits", "needed"),
        [({"parallel_partitions": 100}, 61), ({"parallel_partitions": 4}, 21), ({"per_broker_in": 6}, 25)],
        ids=["all at once", "P", "per broker"],
    )
    def test_what_is_needed_is_enough_for_whatever_runs_at_once(self, limits, needed):
        """A partition at 20 raises the alarm while others at 4 wait: at 21 they would all get stuck together next."""
        waiting = [copying(number, 4.0, 9, in_flight=False) for number in range(1, 15)]
        found = never_finishes(
            [copying(0, 20.0, 9), *waiting], throttled(follower=20), **{"parallel_partitions": 100} | limits
        )
        assert (found.tp.partition, found.needed) == (0, needed)

    def test_the_cap_out_of_a_broker_counts_copies(self):
        """Three partitions to two brokers each: six copies out of broker 1, four of them at once."""
        batch = [copying(number, 10.0, 4, 5, in_flight=number == 0) for number in range(3)]
        assert never_finishes(batch, throttled(leader=10), 100).needed == 61
        assert never_finishes(batch, throttled(leader=10), 100, per_broker_out=4).needed == 41

    def test_the_worst_comes_first(self):
        """The broker that exceeds its rate the most, wherever it is in the list."""
        rates = throttled(follower=10, b5=Rates(None, 2))
        found = never_finishes([copying(0, 11.0, 4), copying(1, 3.0, 5), copying(2, 12.0, 6)], rates, 100)
        assert found.broker == 5

    @pytest.mark.parametrize(
        ("one", "rates"),
        [
            (copying(0, None, 4), throttled(leader=1, follower=1)),
            (copying(0, 0.0, 4), throttled(leader=1, follower=1)),
            (copying(0, 50.0), throttled(leader=1, follower=1)),
            (copying(0, 50.0, 4), throttled(leader=1, follower=1, b1=Rates(), b4=Rates())),
            (copying(0, 50.0, 4), throttled()),
            (copying(0, 50.0, 4, source=None), throttled(leader=1)),
        ],
        ids=["rate not known", "nothing produced", "no copy", "not on these brokers", "unlimited", "no leader"],
    )
    def test_no_alarm_without_a_reason(self, one, rates):
        """Unknown rates raise no alarm."""
        assert never_finishes([one], rates, 100) is None
