"""The sums of a plan are those of its partitions, whichever of them have the same lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.plan_totals import BrokerChange
from kafka_rebalance.model.topology import TopicPartition

LISTS = st.sampled_from([(1, 2), (2, 1), (3, 4), (2, 3, 4)])


def plan_of(*rows):
    found = [PlannedPartition(TopicPartition("t", n), *row[:2], size_bytes=row[2]) for n, row in enumerate(rows)]
    return Plan(tuple(found), Certificate(0, optimal=False))


@given(st.lists(st.tuples(LISTS, LISTS, st.integers(0, 9)), max_size=12))
def test_a_plan_adds_up_to_the_sum_of_plans_of_one_partition_each(rows):
    """Partitions with the same lists are added up together."""
    plan, each = plan_of(*rows), [plan_of(row) for row in rows]
    for name in ("changed", "replica_moves", "leader_moves", "data_to_move_bytes"):
        assert getattr(plan, name) == sum(getattr(one, name) for one in each)
    for side in (0, 1):
        brokers = {broker for one in each for broker in one.bytes_copied[side]}
        sums = {b: sum(one.bytes_copied[side].get(b, 0) for one in each) for b in brokers}
        assert plan.bytes_copied[side] == sums


def test_what_brokers_get_and_give():
    """Two partitions move from broker 2 to 3, and one of them gets another leader; a third stays."""
    plan = plan_of(((1, 2), (1, 3), 5), ((1, 2), (3, 1), 7), ((1, 2), (1, 2), 9))
    assert plan.broker_changes == (
        BrokerChange(3, 2, 0, 12, 0, 1, 0),
        BrokerChange(2, 0, 2, 0, 12, 0, 0),
        BrokerChange(1, 0, 0, 0, 0, 0, 1),
    )
    assert (plan.changed, plan.replica_moves, plan.leader_moves, plan.data_to_move_bytes) == (2, 2, 1, 12)
    assert plan.bytes_copied == ({3: 12}, {1: 12}, {})
