"""The one cluster of a client: which brokers are asked, and what follows if one belongs to another cluster."""

import pytest
from tests.fakes.settable_clock import SettableClock

from kafka_rebalance.errors import Refused
from kafka_rebalance.kafka.answering_cluster import AnsweringCluster
from kafka_rebalance.model.topology import Broker, BrokerId


def brokers(*ids, host="kafka"):
    return [Broker(BrokerId(n), None, host, 9000 + n) for n in ids]


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture
def cluster(clock):
    cluster = AnsweringCluster(monotonic=clock)
    cluster.described("c", brokers(1, 2))
    return cluster


class TestAsked:
    def test_once_a_minute(self, cluster, clock):
        assert cluster.to_ask([]) == [1, 2]
        clock.now = 59.0
        assert cluster.to_ask([BrokerId(1)]) == []
        clock.now = 60.0
        assert cluster.to_ask([BrokerId(2)]) == [2, 1]

    def test_at_once_at_another_address(self, cluster):
        cluster.to_ask([])
        cluster.described("c", [*brokers(1), *brokers(2, host="elsewhere")])
        assert cluster.to_ask([]) == [2]

    def test_those_that_the_order_concerns_and_some_others(self, cluster):
        cluster.described("c", brokers(*range(200)))
        concerned = [BrokerId(n) for n in range(100, 160)]
        asked = cluster.to_ask(concerned)
        assert asked[:60] == concerned
        assert len(asked) == 72


class TestTwoIds:
    def test_of_a_broker(self, cluster):
        cluster.answered(BrokerId(1), "c")
        with pytest.raises(Refused) as refused:
            cluster.answered(BrokerId(2), "other")
        assert refused.value.reason == "OtherCluster"
        with pytest.raises(Refused, match="broker 2 answers as Kafka cluster other, and others answered as c"):
            cluster.check()

    def test_of_the_description(self, cluster):
        with pytest.raises(Refused, match="a broker answers as Kafka cluster other"):
            cluster.described("other", brokers(1))

    def test_no_order_is_sent_for_a_minute(self, cluster, clock):
        with pytest.raises(Refused):
            cluster.described("other", brokers(1))
        cluster.described("c", brokers(1))
        clock.now = 59.0
        with pytest.raises(Refused):
            cluster.check()
        clock.now = 60.0
        cluster.check()
        assert cluster.to_ask([]) == [1]

    def test_the_minute_begins_with_the_last_wrong_answer(self, cluster, clock):
        """Otherwise it would end while the broker counts as asked."""
        for clock.now in (0.0, 30.0):
            cluster.to_ask([])
            with pytest.raises(Refused):
                cluster.answered(BrokerId(2), "other")
        clock.now = 89.0
        with pytest.raises(Refused):
            cluster.check()
        clock.now = 90.0
        cluster.check()
        assert cluster.to_ask([]) == [1, 2]

    def test_the_first_one_counts(self, cluster, clock):
        """Owner and permission were decided for it. Later descriptions do not change it, also after the minute."""
        for _ in range(2):
            with pytest.raises(Refused):
                cluster.described("other", brokers(1, 2))
            clock.now += 60.0
        cluster.answered(BrokerId(1), "c")
        with pytest.raises(Refused, match="broker 2 answers as Kafka cluster other, and others answered as c"):
            cluster.answered(BrokerId(2), "other")

    def test_the_one_that_is_known_from_before(self, clock):
        """Of a client that was replaced."""
        cluster = AnsweringCluster("c", clock)
        assert not cluster.has_been_described
        with pytest.raises(Refused):
            cluster.described("other", brokers(1))
        cluster.described("c", brokers(1))
        assert cluster.has_been_described
