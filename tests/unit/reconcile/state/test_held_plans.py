"""How much the plans of a namespace's inline connections may take of the memory."""

from dataclasses import replace

import pytest

from kafka_rebalance.errors import Transient
from kafka_rebalance.model.plan import Certificate, LogDirMove, Plan, PlannedPartition, SkippedPartition
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.reconcile.state.held_plans import HeldPlans


def plan(partitions=3, replicas=1):
    now, then = replicas_of(*range(replicas)), replicas_of(*range(1, replicas + 1))
    rows = tuple(PlannedPartition(TopicPartition("t", n), now, then) for n in range(partitions))
    return Plan(rows, Certificate(partitions, optimal=True))


def test_a_plan_counts_for_as_long_as_it_is_in_memory():
    held, mine = HeldPlans(3), plan()
    held.take("a", mine)
    held.refuse("a")
    with pytest.raises(Transient, match=r"the plans of 1 other rebalances .* have 3 partitions of three replicas"):
        held.refuse("b")
    del mine
    held.refuse("b")


def test_a_new_plan_that_is_dropped_does_not_take_the_present_one_with_it():
    """For example if the edited spec leads to a broker without room."""
    held, present, new = HeldPlans(3), plan(), plan()
    held.note("a", present)
    held.take("a", new)
    with pytest.raises(Transient, match="6 partitions"):
        held.refuse("b")
    del new
    with pytest.raises(Transient, match="3 partitions"):
        held.refuse("b")
    assert present.partitions


def test_long_lists_count_by_their_length():
    """A server may claim 100 replicas of each partition, which take as much as 17 partitions of three or more."""
    held, mine = HeldPlans(100), plan(3, replicas=100)
    held.take("a", mine)
    with pytest.raises(Transient, match="102 partitions"):
        held.refuse("b")


def test_what_a_plan_has_besides_its_partitions_counts():
    """Servers may claim any number of replicas in log dirs, and of partitions that are not moved."""
    tp = TopicPartition("t", 0)
    moved = LogDirMove(tp, BrokerId(1), "/a", "/b", "/a")
    for more in ({"skipped": (SkippedPartition(tp, "why"),)}, {"in_place": (tp,)}, {"log_dirs": (moved,)}):
        held, mine = HeldPlans(1), replace(plan(0), **more)
        held.take("a", mine)
        with pytest.raises(Transient, match="1 partitions"):
            held.refuse("b")


def test_the_same_plan_is_counted_once():
    held, mine = HeldPlans(4), plan()
    held.take("a", mine)
    held.note("a", mine)
    held.refuse("b")
