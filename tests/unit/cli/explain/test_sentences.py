"""kafka-rebalance explain where two cases look alike: order or set, bound or count, exchange or loss."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.cli.explain.test_limit_sentences import cluster, told

from kafka_rebalance.cli.explain import limit_sentences as limits
from kafka_rebalance.cli.explain import sentences as words
from kafka_rebalance.model.goals import Balance, LoadGoal, LoadResource
from kafka_rebalance.model.plan import Certificate, Imbalance, Plan, PlannedPartition
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest
from kafka_rebalance.planning.explain.accounts import Why
from kafka_rebalance.planning.explain.explanation import Explanation


def asked(*lists: tuple[int, ...], brokers: int = 3, **goals: Any) -> PlanRequest:
    """Partitions of topic t with these lists, on brokers without racks."""
    known = tuple(Broker(BrokerId(b)) for b in range(brokers))
    partitions = tuple(PartitionInput(TopicPartition("t", n), replicas_of(*row)) for n, row in enumerate(lists))
    return PlanRequest(known, partitions, frozenset(b.id for b in known), Goals(**goals))


def moved(number: int, current: tuple[int, ...], target: tuple[int, ...]) -> PlannedPartition:
    return PlannedPartition(TopicPartition("t", number), replicas_of(*current), replicas_of(*target))


def test_a_plan_by_load_is_not_the_one_with_the_fewest_moves() -> None:
    made = Plan((moved(0, (0,), (1,)), moved(1, (1,), (0,))), Certificate(0, optimal=False))
    explained = Explanation(asked((0,), (1,), brokers=2, load=(LoadGoal(LoadResource.DISK),)), made)
    text = " ".join(words.of_plan(explained))
    assert "brings brokers into the bands of goals.load for few bytes" in text
    assert "fewest" not in text


def test_free_counts_have_no_shares() -> None:
    """The sentences and the brokers' accounts do not mention fair counts."""
    made = Plan((moved(0, (0,), (1,)),), Certificate(0, optimal=False))
    explained = Explanation(asked((0,), (0,), brokers=2, counts=False, load=(LoadGoal(LoadResource.DISK),)), made)
    text = " ".join(words.of_plan(explained))
    assert "counts are free" in text
    assert "as even as" not in text
    assert "share" not in text.lower()
    assert all(account.share is None for account in explained.brokers)


class TestExchangesWithinATopic:
    """A replica is exchanged within its topic if the broker has a share of it and ends with no fewer than before."""

    @pytest.mark.parametrize("balance", [Balance.PER_TOPIC, Balance.BOTH])
    def test_as_many_come_back(self, balance: Balance) -> None:
        made = Plan((moved(0, (0,), (1,)), moved(1, (1,), (0,))), Certificate(0, optimal=False))
        explained = Explanation(asked((0,), (1,), brokers=2, balance=balance), made)
        assert [d.why for d in explained.departures] == [Why.TOPIC_EXCHANGE] * 2

    def test_more_come_back(self) -> None:
        made = Plan((moved(0, (0,), (1,)), moved(1, (1,), (0,)), moved(2, (1,), (0,))), Certificate(0, optimal=False))
        explained = Explanation(asked((0,), (1,), (1,), (1,), brokers=2, balance=Balance.PER_TOPIC), made)
        whys = {d.tp.partition: d.why for d in explained.departures}
        assert (whys[0], whys[1]) == (Why.TOPIC_EXCHANGE, Why.TOPIC_SHARE)

    def test_fewer_come_back(self) -> None:
        """It is not above its share either, because of the budget: only the totals remain as the reason."""
        goals = {"balance": Balance.PER_TOPIC, "max_replica_moves": 1}
        made = Plan((moved(0, (0,), (1,)),), Certificate(0, optimal=False), imbalance=Imbalance(5, 3))
        explained = Explanation(asked((0,), (1,), (2,), **goals), made)
        assert [d.why for d in explained.departures] == [Why.SHARE]

    def test_of_a_topic_without_shares(self) -> None:
        """The topic gives way to the totals, so replicas that come back are not the reason."""
        made = Plan(
            (moved(0, (0,), (1,)), moved(2, (1,), (0,)), moved(3, (1,), (0,))),
            Certificate(0, optimal=False),
            uneven_topics=1,
        )
        explained = Explanation(asked((0,), (0,), (1,), (1,), brokers=2, balance=Balance.BOTH), made)
        assert [d.why for d in explained.departures if d.broker == 0] == [Why.EXCHANGE]


class TestOrder:
    """Brokers are compared as sets, lists with their order."""

    def test_the_same_brokers_in_another_order(self) -> None:
        """Without the limit the order is different; that is not a replica that was not moved."""
        request = asked((0, 1), (0, 1), brokers=2, minimum_gain=50)
        explained = Explanation(request, Plan((), Certificate(0, optimal=True), reason="GainTooSmall"))
        accounts = [explained.partition(TopicPartition("t", n)) for n in (0, 1)]
        assert {account.whole for account in accounts} == {(0, 1), (1, 0)}
        for account in accounts:
            assert limits.of_partition(explained, account) == [
                "The plan without the minimum gain has it on the same brokers."
            ]

    def test_followers_only(self) -> None:
        row = moved(0, (0, 1, 2), (0, 2, 1))
        explained = Explanation(asked((0, 1, 2)), Plan((row,), Certificate(0, optimal=True)))
        assert words.of_partition(explained, explained.partition(row.tp)) == [
            "t-0 has replicas 0,1,2 and gets 0,2,1.",
            "Only the order of its followers changes; 0 stays its preferred leader.",
        ]


class TestBounds:
    def test_what_is_left_and_what_is_proved(self) -> None:
        """The squares of the plan and their lower bound: two figures if they differ."""
        made = Plan((moved(0, (0,), (1,)),), Certificate(1, optimal=False), imbalance=Imbalance(26, 24))
        explained = Explanation(asked(*[(0,)] * 6, max_replica_moves=1), made)
        [squares] = [line for line in limits.of_plan(explained) if line.startswith("The sum of the squares of ")]
        assert squares == (
            "The sum of the squares of target brokers' counts is 26. Proven: no plan within the budget has less than "
            "24."
        )


class TestBrokersWithoutAShare:
    """A broker that holds only pinned replicas, more than the others have, has no share."""

    PINNED = ("--pin-topics", "pin")

    def test_one(self) -> None:
        rows = cluster(*(("pin", n, [2]) for n in range(4)), ("t", 0, [0]), ("t", 1, [1]))
        line = "Counts around broker 2 are as even as pinned replicas and the rack rule allow."
        assert line in told(rows, *self.PINNED)["why"]
        assert line in told(rows, *self.PINNED, "--broker", "2")["why"]

    def test_two(self) -> None:
        rows = cluster(
            *(("pin", n, [2 + n % 2]) for n in range(8)), ("t", 0, [0]), ("t", 1, [1]), racks=(None, None, None, None)
        )
        why = told(rows, *self.PINNED)["why"]
        assert "Counts around brokers 2, 3 are as even as pinned replicas and the rack rule allow." in why
