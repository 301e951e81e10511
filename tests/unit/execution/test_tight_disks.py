"""Which moves need an order, because of the room on the disks that they go to."""

from kafka_rebalance.execution.room_order import Shift
from kafka_rebalance.execution.tight_disks import PendingMove, shifts_at_tight
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

ONE = BrokerId(1)


def tp(number):
    return TopicPartition("t", number)


def test_other_brokers_make_no_difference():
    """1 is tight: what it gets and gives counts, and not what moves between others."""
    rows = [PendingMove(tp(i), replicas_of(*old), replicas_of(*new), 10) for i, (old, new) in enumerate(
    [((2,), (1,)), ((1,), (3,)), ((2,), (3,)), ((1, 2), (2, 1)), ((1, 2), (1, 3))]
    )]  # fmt: skip
    found = shifts_at_tight(rows, {(tp(1), ONE): 7}, {ONE: 9, BrokerId(3): 100})
    assert found == [Shift(tp(0), {1: 10}, {2: 10}), Shift(tp(1), {3: 10}, {1: 7})]
    assert shifts_at_tight(rows, {}, {ONE: 10}) == []
