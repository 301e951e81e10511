"""kafka-rebalance explain: sentences and fields for the plan, a broker and a partition."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml
from tests.fakes.whole_program import run_program

from kafka_rebalance.cli.commands import explain_command
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import Strategy
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition, SkippedPartition
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import PartitionInput, PlanRequest
from kafka_rebalance.planning.explain.accounts import Fit, Why, WhyLed
from kafka_rebalance.planning.explain.explanation import Explanation

CLUSTER = {
    "brokers": [{"id": 0, "rack": "a"}, {"id": 1, "rack": "b"}, {"id": 2, "rack": "c"}, {"id": 3, "rack": "a"}],
    "partitions": [
        {"topic": "t-x", "partition": 0, "replicas": [0, 1]},
        {"topic": "t-x", "partition": 1, "replicas": [0, 1]},
        {"topic": "t-x", "partition": 2, "replicas": [0, 3]},
        {"topic": "t-x", "partition": 3, "replicas": [0, 9]},
        {"topic": "u", "partition": 5, "replicas": [1, 0]},
        {"topic": "u", "partition": 7, "replicas": [1, 0]},
    ],
}


def run(*arguments: str, cluster: Any = CLUSTER) -> tuple[Any, str, str]:
    return run_program("explain", "--cluster", "-", *arguments, stdin=json.dumps(cluster))


def told(*arguments: str) -> dict[str, Any]:
    code, out, err = run("-o", "json", *arguments)
    assert code == 0, err
    document = json.loads(out)
    assert isinstance(document, dict)
    return document


class TestPlan:
    def test_in_words(self) -> None:
        """Share, reasons and certificate, with figures."""
        why = told()["why"]
        assert "Fair share: 12 replicas over 4 brokers are 3 for each." in why
        assert "1 of 5 that leave: the broker is not in the cluster." in why
        assert "5 replicas move. Proven: no plan that meets the same goals moves fewer." in why

    def test_fields(self) -> None:
        document = told()
        assert document["plan"]["replicaMoves"] == 5
        assert document["brokers"][0] | {"leadersAfter": 0} == {
            "id": 0,
            "rack": "a",
            "mayHold": True,
            "before": 6,
            "after": 3,
            "pinned": 0,
            "share": {"low": 3, "high": 3, "replicas": 12, "brokers": 4},
            "leaving": 3,
            "leavingBecause": {"RackRule": 1, "Share": 2},
            "arriving": 0,
            "leadersBefore": 4,
            "leadersAfter": 0,
        }

    def test_yaml_says_the_same(self) -> None:
        assert yaml.safe_load(run("-o", "yaml")[1]) == told()

    def test_nothing_moves(self) -> None:
        settled = {
            "brokers": [{"id": 0}, {"id": 1}],
            "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 0]}],
        }
        out = run(cluster=settled)[1]
        assert "Nothing moves: the plan is empty." in out
        assert "t-0 stays on 1,0." in run("--partition", "t-0", cluster=settled)[1]

    def test_options_of_plan_count(self) -> None:
        """--decommission, for example, and every other option of plan."""
        document = told("--decommission", "1", "--broker", "1")
        assert document["broker"]["leavingBecause"] == {"NotTarget": 4}
        assert "It must not hold replicas: it is decommissioned, or not in the list of brokers." in document["why"]


class TestPartition:
    def test_the_rack_rule(self) -> None:
        """A topic name may have hyphens."""
        document = told("--partition", "t-x-2")
        assert document["partition"] == {
            "topic": "t-x",
            "partition": 2,
            "current": [0, 3],
            "target": [3, 2],
            "pinned": False,
        }
        assert document["leaving"] == [{"broker": 0, "why": "RackRule"}]
        assert document["arriving"] == [2]
        assert (
            "The replica on broker 0 leaves: rack a holds 2 of its replicas, and the rack rule allows 1."
            in document["why"]
        )
        assert {row["id"]: row["fit"] for row in document["brokers"]} == {
            0: "Held",
            1: "GetsNothing",
            2: "Chosen",
            3: "Held",
        }

    def test_each_fit_is_worded_in_the_table(self) -> None:
        """The names in JSON are not shown there."""
        assert explain_command._FIT_CELLS.keys() == set(Fit)

    def test_a_broker_that_is_gone(self) -> None:
        assert (
            "The replica on broker 9 leaves: the broker is not in the cluster." in told("--partition", "t-x-3")["why"]
        )

    def test_stays(self) -> None:
        """Each of its brokers is mentioned."""
        why = told("--partition", "t-x-0")["why"]
        assert why == [
            "t-x-0 stays on 0,1.",
            "Broker 0 gives 3 of its 6 replicas, not this one.",
            "Broker 1 gives 1 of its 4 replicas, not this one.",
        ]

    @pytest.mark.parametrize(
        ("arguments", "code", "says"),
        [
            (["--partition", "t-x-9"], 3, "refused (UnknownPartition)"),
            (["--broker", "7"], 3, "refused (UnknownBroker)"),
            (["--partition", "t"], 2, "is not a topic-partition"),
            (["--partition", "u-5", "--broker", "1"], 2, "one of --partition, --broker and --curve"),
        ],
    )
    def test_what_is_not_there(self, arguments: list[str], code: int, says: str) -> None:
        exit_code, out, err = run(*arguments)
        assert (exit_code, out) == (code, "")
        assert says in err


class TestOtherStrategies:
    """The request determines the reasons, however the plan was made."""

    def request(self, *lists: tuple[int, ...], **changes: Any) -> PlanRequest:
        brokers = tuple(Broker(BrokerId(b), "a" if b < 2 else "b") for b in range(4))
        partitions = tuple(PartitionInput(TopicPartition("t", n), replicas_of(*row)) for n, row in enumerate(lists))
        return PlanRequest(brokers, partitions, frozenset(b.id for b in brokers), **changes)

    def test_an_assignment(self) -> None:
        """Moves that a user has specified do not have racks or counts as their reason."""
        moved = PlannedPartition(TopicPartition("t", 0), replicas_of(0, 1), replicas_of(2, 3))
        request = self.request((0, 1), strategy=Strategy.ASSIGNMENT)
        explained = Explanation(request, Plan((moved,), Certificate(0, optimal=False)))
        assert [d.why for d in explained.departures] == [Why.ASSIGNED] * 2

    def test_fewer_replicas(self) -> None:
        """Two replicas leave, and one of them is not replaced."""
        moved = PlannedPartition(TopicPartition("t", 0), replicas_of(0, 1, 2), replicas_of(2, 3))
        explained = Explanation(
            self.request((0, 1, 2), replication_factor=2), Plan((moved,), Certificate(0, optimal=True))
        )
        assert sorted(d.why for d in explained.departures) == [Why.FEWER_REPLICAS, Why.SHARE]

    def test_uneven_counts_have_no_share(self) -> None:
        """Counts that a plan does not balance are not called a share."""
        request = self.request((0, 2), (0, 2), (0, 3), strategy=Strategy.FORCED_MOVES_ONLY)
        explained = Explanation(request, Plan((), Certificate(0, optimal=True)))
        assert explained.broker(0).share is None

    def test_what_was_skipped(self) -> None:
        tp = TopicPartition("t", 0)
        request = self.request((0, 2))
        explained = Explanation(
            request, Plan((), Certificate(0, optimal=True), skipped=(SkippedPartition(tp, "NoLeader"),))
        )
        assert explained.partition(tp).skipped == "NoLeader"
        with pytest.raises(Refused, match="t-1"):
            explained.partition(TopicPartition("t", 1))

    def test_a_leader_that_shall_hold_nothing(self) -> None:
        """Its copy stays, because nothing moves, and another replica leads."""
        moved = PlannedPartition(TopicPartition("t", 0), replicas_of(0, 1), replicas_of(1, 0))
        request = replace(self.request((0, 1), strategy=Strategy.PREFERRED_LEADERS), targets=frozenset({BrokerId(1)}))
        explained = Explanation(request, Plan((moved,), Certificate(0, optimal=True)))
        assert explained.led(moved) is WhyLed.NOT_TARGET


class TestCurve:
    def test_from_what_has_to_move_to_the_whole_plan(self) -> None:
        """Two replicas have to move (a rack used twice, a broker that is gone); the last point is the plan."""
        document = told("--curve", "3")
        points = document["curve"]
        assert [point["moves"] for point in points] == [2, 3, 5]
        assert points[-1]["moves"] == document["plan"]["replicaMoves"]
        assert points[-1]["spread"] == {"fewest": 3, "most": 3}
        assert sorted(point["squares"] for point in points)[::-1] == [point["squares"] for point in points]

    def test_as_a_table(self) -> None:
        _, out, _ = run("--curve", "2")
        assert "REPLICAS PER BROKER" in out
        assert "3-3" in out

    def test_fields(self) -> None:
        """Named like all our JSON fields."""
        assert all(set(point) == {"moves", "spread", "squares", "dataBytes", "optimal"} for point in curve_of("3"))

    def test_sizes_that_nobody_knows(self) -> None:
        assert "Its data does not include 6 partitions of unknown size." in told("--curve", "2")["why"]

    @pytest.mark.parametrize("balance", ["PerTopic", "Both"])
    def test_where_topics_are_balanced(self, balance: str) -> None:
        """The ends are the forced moves and the plan; points in between are marked as not proved."""
        document = told("--curve", "9", "--balance", balance)
        points = document["curve"]
        assert points[-1]["moves"] == document["plan"]["replicaMoves"]
        assert points[-1]["optimal"]
        assert not any(point["optimal"] for point in points[:-1])
        assert len(points) > 1
        assert any(line.startswith("Its points before the last take the most") for line in document["why"])
        assert any("the counts of each topic. Totals" in line for line in document["why"]) == (balance == "PerTopic")

    @pytest.mark.parametrize("limit", [("--max-replica-moves", "3"), ("--minimum-gain", "99")])
    def test_goes_to_full_balance(self, limit: tuple[str, str]) -> None:
        """Whichever limit applies to the plan."""
        document = told("--curve", "3", *limit)
        assert [point["moves"] for point in document["curve"]] == [2, 3, 5]
        assert any(line.startswith("The curve ignores the m") for line in document["why"])

    def test_around_what_is_pinned(self) -> None:
        """It ends with the plan that leaves the pinned topic in place."""
        document = told("--curve", "3", "--pin-topics", "u")
        assert document["curve"][-1]["moves"] == document["plan"]["replicaMoves"] > document["curve"][0]["moves"]
        assert document["curve"][-1]["spread"] == {"fewest": 3, "most": 3}

    @pytest.mark.parametrize(
        ("options", "beyond"),
        [
            (("--strategy", "ForcedMovesOnly"), "the strategy ForcedMovesOnly"),
            (("--replication-factor", "1"), "a replication factor"),
        ],
    )
    def test_where_there_is_none(self, options: tuple[str, str], beyond: str) -> None:
        """A point is a plan with a budget: without budgets there is no curve."""
        code, out, err = run("--curve", "3", *options)
        assert (code, out) == (3, "")
        assert f"refused (NotExplained): --curve is not available with {beyond}" in err
        assert run(*options)[0] == 0


def curve_of(points: str) -> list[dict[str, Any]]:
    found = told("--curve", points)["curve"]
    assert isinstance(found, list)
    return found
