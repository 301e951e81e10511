"""What a report counts of a plan."""

from dataclasses import replace

from tests.unit.report.report_values import BROKERS, LISTS, PLAN, ROWS, SIZES

from kafka_rebalance.model.plan import Certificate, Imbalance, SkippedPartition, Spread
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.report.plan_contents import (
    broker_rows,
    copy_flows,
    partition_rows_of,
    plan_facts_of,
    risks_of,
)

MIB = 1 << 20


class TestBrokers:
    def test_before_and_after(self):
        """By rack and id; partitions that stay count, too."""
        assert [(row.broker, row.rack, row.target) for row in ROWS] == [
            (1, "a", True),
            (3, "a", True),
            (2, "b", True),
            (4, "b", False),
        ]
        one, three, two, four = ROWS
        assert (one.replicas, one.leaders, one.size_bytes) == ((4, 2), (3, 1), (10 * MIB, 4 * MIB))
        assert (three.replicas, three.leaders, three.size_bytes) == ((0, 2), (0, 1), (0, 6 * MIB))
        assert (two.replicas, two.leaders) == ((3, 3), (1, 2))
        assert (four.replicas, four.size_bytes) == ((1, 1), (3 * MIB, 3 * MIB))

    def test_only_what_changes(self):
        """Without a cluster file."""
        rows = {row.broker: row for row in broker_rows(PLAN, (), {}, {})}
        assert rows.keys() == {1, 2, 3}
        assert rows[BrokerId(1)].replicas == (3, 1)
        assert {row.rack for row in rows.values()} == {None}

    def test_a_broker_that_is_gone(self):
        """It still holds replicas in the lists."""
        rows = broker_rows(PLAN, BROKERS[:1], LISTS, SIZES)
        assert [row.broker for row in rows] == [1, 2, 3, 4]


class TestFlows:
    def test_from_the_leader(self):
        """A new replica fetches from the leader."""
        assert [(f.source, f.destination, f.replicas, f.size_bytes) for f in copy_flows(PLAN.partitions)] == [
            (1, 3, 1, MIB),
            (2, 3, 1, 5 * MIB),
        ]


class TestProof:
    def test_within_a_budget(self):
        """The lower bound of moves compares equally even plans, so it says nothing about a plan within a budget."""
        limited = replace(PLAN, imbalance=Imbalance(3, 3))
        best, unproved = (replace(limited, certificate=Certificate(2, optimal=optimal)) for optimal in (True, False))
        assert plan_facts_of(best)[0].text == "2 (proved: no plan within the movement budget balances better)"
        assert plan_facts_of(unproved)[0].text == "2 (not proved to be the best within the movement budget)"


class TestSpread:
    def text(self, most, **more):
        plan = replace(PLAN, before=Spread(0, 6), after=Spread(2, most), **more)
        return next(fact.text for fact in plan_facts_of(plan) if fact.label == "Replicas per broker")

    def test_even(self):
        """As even as counts can be: nothing to explain."""
        assert self.text(3) == "0 to 6 before, 2 to 3 after"

    def test_uneven(self):
        """The report says what may prevent equal counts."""
        assert (
            self.text(4)
            == "0 to 6 before, 2 to 4 after (racks and replication factors can make equal counts impossible)"
        )
        assert self.text(4, imbalance=Imbalance(3, 3)) == "0 to 6 before, 2 to 4 after (limited by the movement budget)"


class TestPartitions:
    def test_largest_copies_first(self):
        rows = partition_rows_of(PLAN, {TopicPartition("orders", 0): 4})
        assert [(str(row.tp), row.why) for row in rows] == [("orders-1", -1), ("orders-0", 4), ("<b>&topic-0", -1)]


class TestSentences:
    def test_facts(self):
        """The proof is in the words of `plan`."""
        facts = {fact.label: fact.text for fact in plan_facts_of(PLAN)}
        assert facts["Replica moves"] == "2 (proved: no plan that balances as well needs fewer)"
        assert facts["Data to copy"] == "6.0 MiB"
        assert facts["Plan"] == PLAN.hash

    def test_risks(self):
        """What to look at before an approval."""
        plan = replace(
            PLAN,
            rack_violations=2,
            imbalance=Imbalance(3, 1),
            skipped=(SkippedPartition(TopicPartition("t", 0), "NoLeader"),),
        )
        risks = " ".join(risks_of(plan, ROWS, {BrokerId(3): 7 * MIB}, 1))
        for words in ("2 replicas still share", "sizes of 1 partitions", "budget", "t-0", "broker 3 (86%)"):
            assert words in risks
        assert risks_of(PLAN, ROWS, {BrokerId(3): 100 * MIB}, 0) == []
