"""kafka-rebalance explain: budgets, minimum gain, pinned topics and balanced topics, in sentences and fields."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.cli.commands.test_explain_command import run

from kafka_rebalance.cli.explain import limit_sentences as limits
from kafka_rebalance.model.goals import Balance
from kafka_rebalance.model.plan import Certificate, Imbalance, Plan, PlannedPartition
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest
from kafka_rebalance.planning.explain.explanation import Explanation
from kafka_rebalance.planning.explain.fair_shares import FairShares

Row = tuple[str, int, list[int]]


def cluster(*rows: Row, racks: tuple[str | None, ...] = (None, None, None), size: int | None = None) -> dict[str, Any]:
    sized = {} if size is None else {"size": size}
    return {
        "brokers": [{"id": b, "rack": rack} for b, rack in enumerate(racks)],
        "partitions": [{"topic": t, "partition": n, "replicas": replicas, **sized} for t, n, replicas in rows],
    }


SKEWED = cluster(*(("t", n, [0]) for n in range(6)), size=2**20)
"""Six replicas on the first of three brokers: two each take four moves."""

LEAVING = cluster(("t", 0, [2]), ("t", 1, [2]), ("t", 2, [0]), ("t", 3, [1]))

BY_TOPIC = cluster(*((t, n, [b]) for b, t in enumerate("ab") for n in range(3)), racks=(None, None))
"""Totals are balanced, and each topic is on one broker."""

GIVING_WAY = cluster(
    *(("a", n, [n % 2, 2]) for n in range(4)), *(("b", n, [n % 3]) for n in range(3)), racks=("x", "x", "y")
)
"""The lone broker of rack y holds every partition of a: with Both it holds less of b."""


def told(described: dict[str, Any], *arguments: str) -> dict[str, Any]:
    code, out, err = run("-o", "json", *arguments, cluster=described)
    assert code == 0, err
    document = json.loads(out)
    assert isinstance(document, dict)
    return document


class TestBudget:
    def test_the_whole_plan(self) -> None:
        """The budget, the cost of full balance, the remaining imbalance, and where it is."""
        document = told(SKEWED, "--max-replica-moves", "1")
        assert document["budget"] == {"maxReplicaMoves": 1, "reached": True}
        assert document["withoutLimits"] == {
            "replicaMoves": 4,
            "dataToMove": 4 * 2**20,
            "after": {"fewest": 2, "most": 2},
        }
        assert document["plan"]["imbalance"] == {"squares": 26, "least": 26}
        why = document["why"]
        assert "Fair share: 6 replicas over 3 brokers are 2 for each." in why
        assert (
            "The movement budget is reached: full balance takes 4 replica moves, the budget is 1 replica move. "
            "This plan takes 1 replica move." in why
        )
        assert "It leaves 0 to 5 replicas on a target broker; before it is 0 to 6, at full balance 2 to 2." in why
        assert (
            "The sum of the squares of target brokers' counts is 26. Proven: no better plan is within the budget."
            in why
        )
        assert "Shares are those of the plan without the budget." in why
        [outside] = [line for line in why if line.startswith("Outside their shares")]
        assert "0 (3 more than its share)" in outside
        assert "1 replica moves. Proven: no plan that meets the goals to the same extent moves fewer." in why

    def test_a_broker(self) -> None:
        """Its share is that of full balance, and the text says why it is above it."""
        document = told(SKEWED, "--max-replica-moves", "1", "--broker", "0")
        assert document["broker"]["share"] == {"low": 2, "high": 2, "replicas": 6, "brokers": 3}
        assert (
            "It ends with 3 more than its share: full balance takes 4 replica moves, the budget is 1 replica move."
            in document["why"]
        )

    def test_partitions(self) -> None:
        """One that would move and one that would not."""
        lines = [
            told(SKEWED, "--max-replica-moves", "0", "--partition", f"t-{n}")["why"][-1].split(": ")[0]
            for n in range(6)
        ]
        assert sorted(lines) == [*["Not done"] * 4, *["The plan without the budget has it on the same brokers."] * 2]

    def test_bytes(self) -> None:
        """A budget in bytes is reported in bytes, next to the moves."""
        why = told(SKEWED, "--max-data-to-move", "2Mi", "--max-replica-moves", "3")["why"]
        [reached] = [line for line in why if line.startswith("The movement budget is reached")]
        assert "full balance takes 4 replica moves and 4.0 MiB, the budget is 3 replica moves and 2.0 MiB" in reached
        assert reached.endswith("This plan takes 2 replica moves and 2.0 MiB.")

    def test_a_broker_that_is_not_emptied(self) -> None:
        """The text says which replicas stay on the drained broker, and why."""
        budget = ("--decommission", "2", "--max-replica-moves", "1")
        assert "Not drained, although they must not hold replicas: 2 (holds 1)." in told(LEAVING, *budget)["why"]
        why = told(LEAVING, *budget, "--broker", "2")["why"]
        assert "1 replica stays on it: full balance takes 2 replica moves, the budget is 1 replica move." in why

    def test_not_reached(self) -> None:
        """The plan is that of full balance, and so are the shares."""
        document = told(SKEWED, "--max-replica-moves", "4")
        assert document["budget"] == {"maxReplicaMoves": 4, "reached": False}
        assert "withoutLimits" not in document
        assert "The movement budget of 4 replica moves is not reached." in document["why"]

    def test_where_topics_are_balanced(self) -> None:
        """Nothing is called proven that is not."""
        why = told(BY_TOPIC, "--balance", "PerTopic", "--max-replica-moves", "1")["why"]
        assert any(line.endswith("whether a better plan is within the budget is not proven.") for line in why)
        assert "1 replica moves. Whether fewer are possible is not proven." in why

    def test_squares_of_topics(self) -> None:
        """Pinned topics are not included, and the text does not say that they are."""
        rows = cluster(
            *((t, n, [b]) for b, t in enumerate(("a", "b", "pin")) for n in range(3)), racks=(None, None, None)
        )
        why = told(rows, "--balance", "PerTopic", "--max-replica-moves", "1", "--pin-topics", "pin")["why"]
        [squares] = [line for line in why if line.startswith("The sum of the squares of ")]
        assert squares.startswith("The sum of the squares of target brokers' counts of each topic that may move is 14")

    def test_what_is_proved_of_topics(self) -> None:
        """A plan that is proven to be the best within the budget is described as such."""
        tp = TopicPartition("a", 0)
        brokers = (Broker(BrokerId(0)), Broker(BrokerId(1)))
        partitions = tuple(PartitionInput(TopicPartition("a", n), replicas_of(0)) for n in range(4))
        goals = Goals(balance=Balance.PER_TOPIC, max_replica_moves=1)
        request = PlanRequest(brokers, partitions, frozenset(b.id for b in brokers), goals)
        moved = (PlannedPartition(tp, replicas_of(0), replicas_of(1)),)
        for optimal in (True, False):
            made = Plan(moved, Certificate(1, optimal=optimal), imbalance=Imbalance(10, 10))
            lines = limits.of_plan(Explanation(request, made))
            assert any(line.endswith("10. Proven: no better plan is within the budget.") for line in lines) == optimal


class TestGain:
    def test_too_small(self) -> None:
        """Both figures, and no certificate of an empty plan."""
        document = told(SKEWED, "--minimum-gain", "67")
        assert document["plan"]["reason"] == "GainTooSmall"
        assert (
            "Nothing moves, because the gain is too small: the fullest broker holds 6 and would hold 2 after 4 replica "
            "moves, 66.6 % less, and the minimum gain is 67 %." in document["why"]
        )
        assert not any("Proved" in line for line in document["why"])
        assert (
            "It ends with 4 more than its share: full balance gains less than the minimum of 67 %."
            in (told(SKEWED, "--minimum-gain", "67", "--broker", "0")["why"])
        )

    def test_enough(self) -> None:
        assert (
            "The minimum gain of 66 % is met: the fullest broker holds 6 and holds 2 after 4 replica moves, 66.6 % "
            "less." in told(SKEWED, "--minimum-gain", "66")["why"]
        )

    def test_too_small_within_a_budget(self) -> None:
        """The plan within the budget is judged; the text does not say that full balance gains too little."""
        limits = ("--max-replica-moves", "1", "--minimum-gain", "25")
        document = told(SKEWED, *limits)
        assert document["budget"] == {"maxReplicaMoves": 1, "reached": True}
        assert (
            "The movement budget is reached: full balance takes 4 replica moves, the budget is 1 replica move; "
            "the plan within it takes 1 replica move and gains too little." in document["why"]
        )
        assert (
            "Nothing moves, because the gain is too small: the fullest broker holds 6 and would hold 5 after 1 replica "
            "move, 16.6 % less, and the minimum gain is 25 %." in document["why"]
        )
        assert "Shares are those of the plan without the budget and the minimum gain." in document["why"]
        why = told(SKEWED, *limits, "--broker", "0")["why"]
        assert (
            "It ends with 4 more than its share: the plan within the budget gains less than the minimum of 25 %." in why
        )

    def test_enough_within_a_budget(self) -> None:
        """The figures are those of the plan within the budget."""
        assert (
            "The minimum gain of 16 % is met: the fullest broker holds 6 and holds 5 after 1 replica move, 16.6 % less."
            in told(SKEWED, "--max-replica-moves", "1", "--minimum-gain", "16")["why"]
        )

    @pytest.mark.parametrize("balance", ["PerTopic", "Both"])
    def test_of_topics(self, balance: str) -> None:
        """Totals are balanced and stay so: the topics gain, and the text says so."""
        topics = (
            "summed over the topics that may move, the fullest broker of each holds 6 of it and holds 4 after 2 "
            "replica moves, 33.3 % less."
        )
        totals = "the fullest broker holds 3 and holds 3 after 2 replica moves, 0.0 % less; " * (balance == "Both")
        assert (
            f"The minimum gain of 30 % is met: {totals}{topics}"
            in told(BY_TOPIC, "--balance", balance, "--minimum-gain", "30")["why"]
        )

    def test_forced(self) -> None:
        """The gain does not matter if a broker has to be drained."""
        why = told(LEAVING, "--minimum-gain", "99", "--decommission", "2")["why"]
        assert "The minimum gain of 99 % does not apply: the plan has forced moves." in why


class TestPinned:
    ROWS = cluster(*(("pin", n, [0]) for n in range(5)), *(("t", n, [1]) for n in range(4)))

    def test_shares_count_them(self) -> None:
        """Broker 0 has five pinned replicas, more than a share: the others share the rest."""
        document = told(self.ROWS, "--pin-topics", "pin")
        why = document["why"]
        assert (
            "Fair share: 4 replicas over 2 brokers are 2 for each; 1 further broker has only pinned replicas, at "
            "least as many." in why
        )
        assert (
            "Pinned: 5 partitions with 5 replicas. Pinned partitions stay, the others are balanced around "
            "them, and shares include them." in why
        )
        assert [row["pinned"] for row in document["brokers"]] == [5, 0, 0]
        assert [row["share"] and row["share"]["high"] for row in document["brokers"]] == [None, 2, 2]

    def test_fewer_than_the_others(self) -> None:
        """One pinned replica alone does not fill a broker while others have three: there is no share."""
        counts, racks = {BrokerId(0): 1, BrokerId(1): 3, BrokerId(2): 3}, dict.fromkeys(map(BrokerId, range(3)))
        shares = FairShares(counts, racks, {BrokerId(0): 1})
        assert [shares.of(b) for b in racks] == [None] * 3

    def test_within_a_share(self) -> None:
        """A broker below its share gets the rest of it."""
        rows = cluster(("pin", 0, [0]), *(("t", n, [1]) for n in range(5)))
        document = told(rows, "--pin-topics", "pin", "--broker", "0")
        assert document["broker"]["share"] == {"low": 2, "high": 2, "replicas": 6, "brokers": 3}
        assert "1 replica on it is pinned and stays, and counts in the shares." in document["why"]

    def test_a_pinned_partition(self) -> None:
        assert told(self.ROWS, "--pin-topics", "pin", "--partition", "pin-0")["why"] == [
            "pin-0 is pinned: it stays on 0, and the other partitions are balanced around it."
        ]

    def test_on_a_broker_to_be_emptied(self) -> None:
        """It stays there, and the text says so."""
        why = told(self.ROWS, "--pin-topics", "pin", "--decommission", "0")["why"]
        assert "5 of these replicas stay on brokers that must not hold replicas, outside any share." in why
        of_broker = told(self.ROWS, "--pin-topics", "pin", "--decommission", "0", "--broker", "0")["why"]
        assert "5 replicas on it are pinned and stay." in of_broker


class TestTopics:
    def test_per_topic(self) -> None:
        """Totals are balanced; shares are per topic, and no total is called a share."""
        document = told(BY_TOPIC, "--balance", "PerTopic")
        assert document["topics"] == {
            "evenOverAll": 2,
            "evenInRacks": 0,
            "givingWay": 0,
            "outsideBefore": 2,
            "outsideAfter": 0,
        }
        assert document["brokers"][0]["share"] is None
        assert document["brokers"][0]["topics"] == {"outsideBefore": 2, "outsideAfter": 0}
        assert document["brokers"][0]["leavingBecause"] == {"TopicShare": 1}
        assert not any(line.startswith("Fair share") for line in document["why"])
        assert (
            "Shares are per topic. Balanced at full balance: 2 topics over all brokers. Topics with a "
            "broker outside its share: 2 before, 0 at the end." in document["why"]
        )

    def test_a_pinned_topic_has_no_share(self) -> None:
        """Though unbalanced, it is not among the balanced topics, nor outside any share."""
        rows = [(t, n, [b]) for b, t in enumerate("ab") for n in range(3)]
        pinned = [("pin", n, [0]) for n in range(5)]
        document = told(cluster(*rows, *pinned, racks=(None, None)), "--balance", "PerTopic", "--pin-topics", "pin")
        assert document["topics"] == told(BY_TOPIC, "--balance", "PerTopic")["topics"]
        assert [row["topics"]["outsideAfter"] for row in document["brokers"]] == [0, 0]

    def test_a_partition(self) -> None:
        """The reason for leaving and the counts at its destination, in terms of its topic."""
        moved = next(
            document
            for n in range(3)
            if (document := told(BY_TOPIC, "--balance", "PerTopic", "--partition", f"a-{n}"))["arriving"]
        )
        assert moved["leaving"] == [{"broker": 0, "why": "TopicShare"}]
        assert (
            "The replica on broker 0 leaves: it holds 3 replicas of topic a, above its share of 1 or 2, and ends with "
            "2." in moved["why"]
        )
        share = {"low": 1, "high": 2, "replicas": 3, "brokers": 2}
        assert [row["topic"] for row in moved["brokers"]] == [
            {"before": 3, "after": 2, "share": share},
            {"before": 0, "after": 1, "share": share},
        ]

    def test_the_larger_share_is_for_some(self) -> None:
        """Four replicas on three brokers: only one may have two, so one of the two brokers with two gives one away."""
        rows = cluster(*(("a", n, [n % 2]) for n in range(4)))
        why = [
            line
            for n in range(4)
            for line in told(rows, "--balance", "PerTopic", "--partition", f"a-{n}")["why"]
            if line.startswith("The replica on ")
        ]
        assert len(why) == 1
        assert why[0].endswith(
            "it holds 2 replicas of topic a and ends with 1: its share is 1 or 2, and only 1 of 3 brokers can have 2."
        )

    def test_topics_that_give_way(self) -> None:
        """Both: a replica that leaves for the totals is not described as above its topic's share."""
        document = told(GIVING_WAY, "--balance", "Both")
        assert document["topics"]["givingWay"] == 1
        assert "1 topic less even, because totals take precedence" in " ".join(document["why"])
        gone = told(GIVING_WAY, "--balance", "Both", "--broker", "2")
        assert [row["why"] for row in gone["leaving"]] == ["Share"]
        assert gone["leaving"][0]["topic"] == "b"

    @pytest.mark.parametrize(("balance", "header"), [("PerTopic", False), ("Both", True)])
    def test_as_a_table(self, balance: str, *, header: bool) -> None:
        """Columns for topics, and for totals if these are a goal."""
        headers = run("--balance", balance, cluster=BY_TOPIC)[1].partition("BROKER")[2].splitlines()[0]
        assert "TOPICS OUTSIDE SHARE" in headers
        assert ("SHARE" in headers.replace("TOPICS OUTSIDE SHARE", "")) == header
        of_partitions = [run("--balance", balance, "--partition", f"a-{n}", cluster=BY_TOPIC)[1] for n in range(3)]
        assert sum("OF THE TOPIC" in out for out in of_partitions) == 1


class TestOne:
    def test_is_not_called_many(self) -> None:
        """One partition, one replica, one broker, one move."""
        rows = {"brokers": [{"id": 0}], "partitions": [{"topic": "t", "partition": 0, "replicas": [9]}]}
        why = told(rows)["why"]
        assert why[0].startswith("1 partition with 1 replica, to be placed on 1 broker: ")
        assert "Fair share: 1 replica over 1 broker is 1 for each." in why
        assert any(line.startswith("1 replica moves. ") for line in why)
        assert any(line.startswith("1 preferred leader changes") for line in why)
